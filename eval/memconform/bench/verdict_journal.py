"""The frame of a scoring: a journal of verdicts that is written before they are reported."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Protocol, TypeVar

from memconform.concurrency import interruption
from memconform.errors import MemconformError
from memconform.records import Record
from memconform.storage.append_only import AppendOnly
from memconform.storage.folders import RunFolder

_Verdict = TypeVar("_Verdict", bound=Record)
_Verdict_contra = TypeVar("_Verdict_contra", bound=Record, contravariant=True)
_Finished = TypeVar("_Finished")
_FinishedOut_co = TypeVar("_FinishedOut_co", covariant=True)


class ScoreBuilder(Protocol[_Verdict_contra, _FinishedOut_co]):
    """Collects verdicts and writes the report."""

    halted: MemconformError | None
    """Why judging ended early; set by whoever judges."""

    def add(self, verdict: _Verdict_contra, /) -> None:
        """Add the next verdict."""

    def write(self, folder: RunFolder) -> _FinishedOut_co:
        """Write the report; raises ResultsError if it cannot be written."""


async def journaled(
    folder: RunFolder,
    header: Record,
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
    journal = AppendOnly(folder.journal)
    journal.append(header)
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
        journal.close({"stage": "footer", "ended": ended})
    yield builder.write(folder)
