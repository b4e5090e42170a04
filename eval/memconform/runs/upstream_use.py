"""Checks that the answers of a run came from the scripted upstream that it asked for.

A daemon that ignores the address of the upstream is answered by another reader, or by none, and its
scores look like those of the scripted one.
"""

from collections.abc import Iterator

import httpx

from memconform.daemons.sdk_runner import Daemon
from memconform.errors import DaemonError
from memconform.ingest.records import IndexInvalidated
from memconform.printing.plurals import plural
from memconform.records import Failure
from memconform.runs.journal import Journal
from memconform.runs.results import UpstreamRecord
from memconform.upstream.prompt_watch import read_counts


class UpstreamUse:
    """Compares a run's answers with the calls that reached the upstream meanwhile."""

    def __init__(
        self, address: str, journal: Journal, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._address = address
        self._journal = journal
        self._transport = transport
        self._before: dict[str, int] | None = None
        self._refusal = ""
        # Attempts of an earlier run were checked by that run.
        self._first = journal.settled

    async def begin(self) -> None:
        """Note what has arrived so far, such as the calls of filling the brain."""
        self._before = await self._read()

    async def finish(self, answered: int, daemon: Daemon) -> UpstreamRecord | None:
        """Compare, and invalidate the attempts of the run if the upstream was never asked.

        Args:
            answered: answers of this run that followed a retrieval with results.
            daemon: the daemon, whose connections were sampled.

        Returns:
            What was found; None if the upstream could not be asked.
        """
        after = await self._read()
        if self._before is None or after is None:
            return None
        resources = daemon.resources()
        connections = resources.connections if resources is not None else ()
        own = self._address.removeprefix("http://")
        record = UpstreamRecord(
            answered=answered,
            asked=after["answers"] - self._before["answers"],
            refused=after["refused"] - self._before["refused"],
            refusal=self._refusal,
            elsewhere=[address for address in connections if address != own],
        )
        if record.ignored and self._journal.written > self._first:
            self._journal.write_statement(
                IndexInvalidated(
                    attempts=self._journal.written,
                    since=self._first,
                    error=Failure(code="upstream_not_called", message=not_called(record).message),
                )
            )
        return record

    async def _read(self) -> dict[str, int] | None:
        counts = await read_counts(self._address, self._transport)
        if counts is None:
            return None
        self._refusal = str(counts["last_refusal"])
        return {name: int(counts[name]) for name in ("answers", "refused")}


def not_called(record: UpstreamRecord) -> DaemonError:
    """The error of a run whose answers cannot be those of the scripted reader."""
    seen = f"; the daemon had connections to {', '.join(record.elsewhere)}" * bool(record.elsewhere)
    return DaemonError(
        f"the daemon gave {plural(record.answered, 'answer')} without asking the scripted upstream"
        f" for one{seen}",
        code="upstream_not_called",
        hint="check the variables of [upstream.scripted] in the sdk.toml, and --env;"
        " --upstream own measures the daemon's own reader",
    )


def warnings(record: UpstreamRecord) -> Iterator[str]:
    """Say what makes the answers of a run doubtful."""
    if record.refused:
        yield (
            f"the scripted upstream refused {plural(record.refused, 'prompt')} of the daemon:"
            f" {record.refusal}"
        )
    if 0 < record.asked < record.answered:
        yield (
            f"the scripted upstream was asked for {plural(record.asked, 'answer')}, and the daemon"
            f" gave {record.answered}: the others are its own, or another service's"
        )
    if record.elsewhere:
        yield (
            f"the daemon had connections to {', '.join(record.elsewhere)} besides the scripted"
            " upstream; a model that answers there is not the one of this run"
        )
