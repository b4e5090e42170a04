"""Everything that a report shows: groups of runs, and other results by kind."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from memconform.bench.records import BenchReport
from memconform.bench.wmb.records import WmbScore
from memconform.conformance.mutation.results import MutationReport
from memconform.conformance.results import ConformReport
from memconform.fuzzing.results import FuzzReport
from memconform.load.records import LoadReport
from memconform.replay.records import LmeParity, LmeResult
from memconform.reports.overview.groups import (
    QuestionRow,
    RunGroup,
    compare_with_baselines,
    group_runs,
)
from memconform.reports.overview.stored_results import StoredResults
from memconform.reports.progress import StepProgress
from memconform.results.records import ParityReport
from memconform.storage.provenance import ReportHeader

RowTaker = Callable[[int, QuestionRow], None]
"""Takes a row of the group with a number."""


@dataclass(slots=True)
class Overview(AbstractContextManager["Overview"]):
    """Results by kind; `with` removes the temporary files of runs that came inside others."""

    groups: list[RunGroup]
    results: StoredResults
    baselines: StoredResults
    _folder: "TemporaryDirectory[str]"
    quiet: bool = False
    """Whether reading shows no progress."""

    @property
    def not_shown(self) -> list[str]:
        """Files of named folders that could not be read, with the reason."""
        return [*self.results.skipped, *self.baselines.skipped]

    @property
    def conformance(self) -> list[ConformReport]:
        return self.results.of(ConformReport)

    @property
    def mutation(self) -> list[MutationReport]:
        return self.results.of(MutationReport)

    @property
    def fuzzing(self) -> list[FuzzReport]:
        return self.results.of(FuzzReport)

    @property
    def loads(self) -> list[LoadReport]:
        return self.results.of(LoadReport)

    @property
    def benches(self) -> list[BenchReport]:
        return self.results.of(BenchReport)

    @property
    def replays(self) -> list[LmeResult]:
        return self.results.of(LmeResult)

    @property
    def replay_parity(self) -> list[LmeParity]:
        return self.results.of(LmeParity)

    @property
    def parities(self) -> list[ParityReport]:
        return self.results.of(ParityReport)

    @property
    def wmb(self) -> list[WmbScore]:
        return self.results.of(WmbScore)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary files."""
        self._folder.cleanup()

    @classmethod
    def load(
        cls,
        references: Sequence[str],
        baselines: Sequence[str],
        output: Path,
        *,
        quiet: bool = False,
    ) -> Self:
        """Read results and baselines; the questions of runs are read by `read_questions`.

        Raises:
            UsageError: as `StoredResults.read`, and if nothing can be shown (`unknown_run`).
        """
        folder = TemporaryDirectory(prefix="memconform-report-")
        try:
            current, earlier = (_stored(Path(folder.name) / name) for name in ("now", "before"))
            current.read(references, output)
            earlier.read(baselines, output)
            current.require_any()
            groups = group_runs(current.runs, earlier.runs)
            return cls(groups, current, earlier, folder, quiet)
        except BaseException:
            folder.cleanup()
            raise

    def read_questions(self, take: RowTaker) -> None:
        """Read the questions of every group once, compare its runs, and show the progress.

        Raises:
            UsageError: if a file contradicts itself, or a baseline's settings differ
                (`unlike_runs`, `result_unreadable`).
        """
        total = sum(group.current[0].summary.total for group in self.groups)
        with StepProgress("reading questions", total, quiet=self.quiet) as step:
            for number, group in enumerate(self.groups):
                compare_with_baselines(group)

                def take_row(row: QuestionRow, number: int = number) -> None:
                    take(number, row)
                    step.advance()

                group.read_rows(take_row)

    def period(self) -> tuple[datetime, datetime]:
        """When the first result was begun and the last one was finished, as far as is known."""
        moments = list(self._moments())
        return min(moments), max(moments)

    def _moments(self) -> Iterator[datetime]:
        for run in self.results.runs:
            yield datetime.fromisoformat(run.summary.started_at)
            yield datetime.fromisoformat(run.summary.finished_at)
        for document in self.results.documents:
            if isinstance(document, ReportHeader):
                yield document.started_at.astimezone(UTC)
            if isinstance(document, ConformReport):
                yield document.finished_at.astimezone(UTC)
        if not any(isinstance(d, ReportHeader) for d in self.results.documents):
            # Comparisons of runs do not say when they were made.
            yield from () if self.results.runs else (datetime.now(UTC),)


def _stored(folder: Path) -> StoredResults:
    folder.mkdir()
    return StoredResults(folder)
