"""Journals of verdicts, which are written before they are reported, and continued later."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import TypeAdapter

from memconform.concurrency import interruption
from memconform.errors import MemconformError
from memconform.records import Record
from memconform.storage.folders import RunFolder
from memconform.storage.journal import (
    JournalFile,
    JournalHeader,
    read_header,
    read_records,
    require_same_settings,
)

_Verdict = TypeVar("_Verdict", bound=Record)
_Header = TypeVar("_Header", bound="VerdictJournalHeader")
_Verdict_contra = TypeVar("_Verdict_contra", bound=Record, contravariant=True)
_Finished = TypeVar("_Finished")
_FinishedOut_co = TypeVar("_FinishedOut_co", covariant=True)


class VerdictJournalHeader(JournalHeader):
    """The first line of a journal of verdicts."""

    run_id: str
    settings: Record
    """What decides the verdicts."""


class ScoreBuilder(Protocol[_Verdict_contra, _FinishedOut_co]):
    """Collects verdicts and writes the report."""

    halted: MemconformError | None
    """Why judging ended early; set by whoever judges."""

    def add(self, verdict: _Verdict_contra, /) -> None:
        """Add the next verdict."""

    def write(self, folder: RunFolder) -> _FinishedOut_co:
        """Write the report; raises ResultsError if it cannot be written."""


def read_verdicts(
    path: Path, header: type[_Header], verdict: type[_Verdict], settings: Record, *, same: str
) -> Iterator[_Verdict]:
    """Yield the verdicts of an earlier scoring.

    Args:
        path: of its journal.
        header: the type of the journal's header.
        verdict: the type of its records.
        settings: those of the scoring that continues.
        same: what the settings consist of.

    Raises:
        UsageError: if the file is not such a journal or damaged (`journal_unreadable`), or was
            written with other settings (`resume_mismatch`).
    """
    earlier = read_header(path, header).settings
    require_same_settings(
        path,
        earlier.model_dump(mode="json"),
        settings.model_dump(mode="json"),
        hint=f"{same} must be the same",
    )
    yield from (record for _, record in read_records(path, TypeAdapter(verdict)))


async def journaled(
    folder: RunFolder,
    header: JournalHeader,
    earlier: Iterable[_Verdict],
    judged: AsyncGenerator[_Verdict, None],
    builder: ScoreBuilder[_Verdict, _Finished],
) -> AsyncGenerator[_Verdict | _Finished, None]:
    """Yield earlier verdicts and those that are judged, each once it is in the journal.

    The last event is what `builder` finished. If the iterating task is cancelled, it finishes with
    the verdicts so far.

    Args:
        folder: of the run; its journal gets a header, the verdicts and a footer.
        header: the journal's first line.
        earlier: verdicts of the scoring that is continued.
        judged: judges, and sets `builder.halted` if it ends early.
        builder: of the report.

    Raises:
        ResultsError: if the journal or the report cannot be written.
    """
    journal = JournalFile(folder.journal, header)
    ended = "not finished"
    try:
        for verdict in earlier:
            journal.append(verdict)
            builder.add(verdict)
            yield verdict
        try:
            async with aclosing(judged):
                async for verdict in judged:
                    journal.append(verdict)
                    builder.add(verdict)
                    yield verdict
        except asyncio.CancelledError:
            builder.halted = interruption()
        ended = builder.halted.code if builder.halted else "done"
    finally:
        journal.close(ended=ended)
    yield builder.write(folder)
