"""Everything that a report shows, read from result files."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from memconform.bench.records import BenchReport
from memconform.bench.wmb.records import WmbScore
from memconform.conformance.mutation.results import MutationReport
from memconform.conformance.results import ConformReport
from memconform.errors import UsageError
from memconform.fuzzing.results import FuzzReport
from memconform.parity.loaded_runs import LoadedRun, load_runs
from memconform.parity.records import ParityReport
from memconform.replay.records import LmeParity, LmeResult
from memconform.reports.machine import REPORT_SCHEMA
from memconform.reports.overview.groups import (
    QuestionRow,
    RunGroup,
    compare_with_baselines,
    group_runs,
)
from memconform.reports.overview.sources import (
    Source,
    find_sources,
    read_document,
    read_run_report,
    unreadable,
)
from memconform.runs.results import RESULT_SCHEMA
from memconform.storage.writing import json_bytes

RowTaker = Callable[[int, QuestionRow], None]
"""Takes a row of the group with a number."""


@dataclass(slots=True)
class Overview(AbstractContextManager["Overview"]):
    """Results by kind. `with` keeps the temporary files of runs that came inside other files."""

    groups: list[RunGroup] = field(default_factory=list)
    conformance: list[ConformReport] = field(default_factory=list)
    mutation: list[MutationReport] = field(default_factory=list)
    fuzzing: list[FuzzReport] = field(default_factory=list)
    benches: list[BenchReport] = field(default_factory=list)
    replays: list[LmeResult] = field(default_factory=list)
    replay_parity: list[LmeParity] = field(default_factory=list)
    parities: list[ParityReport] = field(default_factory=list)
    wmb: list[WmbScore] = field(default_factory=list)
    conformance_baselines: list[ConformReport] = field(default_factory=list)
    sources: list[Path] = field(default_factory=list)
    has_baseline: bool = False
    _folder: TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    @classmethod
    def load(cls, references: Sequence[str], baselines: Sequence[str], output: Path) -> Self:
        """Read results and baselines; the questions of runs are read by `read_questions`.

        Raises:
            UsageError: if a result is missing or unreadable (`unknown_run`, `result_unreadable`).
        """
        overview = cls(has_baseline=bool(baselines))
        try:
            runs = overview._take(find_sources(references, output), output)
            earlier = cls()
            earlier._folder = overview._folder
            baseline_runs = earlier._take(find_sources(baselines, output), output)
            overview._folder = earlier._folder
            overview.conformance_baselines = earlier.conformance
            overview.groups = group_runs(runs, baseline_runs)
        except BaseException:
            overview.__exit__(None, None, None)
            raise
        return overview

    def read_questions(self, take: RowTaker) -> None:
        """Read the questions of every group once, and compare its runs.

        Raises:
            UsageError: if a file contradicts itself, or a baseline's settings differ
                (`unlike_runs`, `result_unreadable`).
        """
        for number, group in enumerate(self.groups):
            compare_with_baselines(group)
            group.read_rows(lambda row, number=number: take(number, row))  # type: ignore[misc]

    def _take(self, sources: Sequence[Source], output: Path) -> list[LoadedRun]:
        paths: dict[str, Path] = {}
        runs: list[LoadedRun] = []
        for source in sources:
            self.sources.append(source.path)
            if source.schema == RESULT_SCHEMA:
                self._add_run(runs, paths, source.path, output)
            elif source.schema == REPORT_SCHEMA:
                for index, run in enumerate(read_run_report(source)):
                    path = self._write_run(source, index, run)
                    self._add_run(runs, paths, path, output)
            else:
                self._add_document(source)
        return runs

    def _add_run(
        self, runs: list[LoadedRun], paths: dict[str, Path], path: Path, output: Path
    ) -> None:
        """Add a run unless it is another copy of one that was added."""
        [run] = load_runs([str(path)], output)
        run_id = run.summary.run_id
        if run_id not in paths:
            paths[run_id] = path
            runs.append(run)
        elif next(r for r in runs if r.summary.run_id == run_id).summary != run.summary:
            raise unreadable(path, f"{paths[run_id]} says otherwise about run {run_id}")

    def _write_run(self, source: Source, index: int, run: dict[str, object]) -> Path:
        """Write a run of a report to a file of its own, so that its questions can be streamed."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="memconform-report-")
        path = Path(self._folder.name) / f"{abs(hash(source.path))}-{index}.json"
        path.write_bytes(json_bytes(run))
        return path

    def _add_document(self, source: Source) -> None:
        document = read_document(source)
        kinds: dict[type, list[object]] = {
            BenchReport: self.benches,
            ConformReport: self.conformance,
            FuzzReport: self.fuzzing,
            LmeParity: self.replay_parity,
            LmeResult: self.replays,
            MutationReport: self.mutation,
            ParityReport: self.parities,
            WmbScore: self.wmb,
        }  # type: ignore[assignment] # each list holds its own kind
        kinds[type(document)].append(document)


def require_results(overview: Overview) -> None:
    """Raise UsageError `unknown_run` if there is nothing to show."""
    if not overview.sources:
        raise UsageError(
            "there is no result to show", code="unknown_run", hint="name at least one result"
        )
