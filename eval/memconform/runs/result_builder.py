"""Builds a run's result from the results of its questions."""

import time
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from memconform.client.timings import is_short, short_latencies
from memconform.contract.core import score_rise
from memconform.contract.skipped_stages import count_skip, skipped_stage
from memconform.contract.wire import UNCONFIRMED
from memconform.errors import MemconformError
from memconform.ingest.records import SeedRecord, nothing_found
from memconform.measuring.scenarios import SCENARIOS
from memconform.records import Incident
from memconform.runs.aggregation import aggregate_attempts
from memconform.runs.highlights import Highlights
from memconform.runs.journal import Header, Journal
from memconform.runs.plan import Floor, Plan, Settings, own_brain
from memconform.runs.question_runner import is_applicable
from memconform.runs.results import (
    DaemonRecord,
    LatencySummary,
    Provenance,
    QuestionResult,
    RunSummary,
    UpstreamRecord,
    VerificationRecord,
)
from memconform.runs.upstream_use import warnings
from memconform.runs.verdict import Tally, conclude
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.intervals import wilson
from memconform.stats.quantiles import QuantileSummary
from memconform.storage.folders import RunFolder
from memconform.storage.provenance import HostOrigin
from memconform.storage.result_file import write_result
from memconform.storage.sink import Masked, replacing

if TYPE_CHECKING:
    from memconform.scoring.judge.calibration import Calibration
    from memconform.scoring.judge.tally import JudgingTally

MANIFEST_SCHEMA = "memconform/run-manifest@1"


@dataclass(frozen=True, slots=True)
class RunOutline:
    """What a run is and how it is judged, without what was asked and answered."""

    run_id: str
    sdk: str
    started: datetime
    settings: Settings
    floors: Sequence[Floor]
    provenance: Provenance
    calibrations: Mapping[str, "Calibration | None"]
    """What is known of each judge, by its name."""

    @classmethod
    def of(cls, plan: Plan, sdk: str, run_id: str, started: datetime) -> "RunOutline":
        """The outline of a run that is about to start."""
        settings = plan.settings
        provenance = Provenance(
            sdk_reference=plan.reference,
            dataset_path=str(plan.selected.dataset.path.resolve()),
            dataset_sha256=settings.dataset_sha256,
            **dict(HostOrigin.of(plan.command)),
            rescored_from=plan.rescored,
            resumed_from=plan.resumed.parent.name if plan.resumed else None,
            settings=settings.model_dump(mode="json"),
            settings_sha256=settings.digest(),
        )
        return cls(run_id, sdk, started, settings, plan.floors, provenance, plan.calibrations)


class ResultBuilder:
    """Builds the manifest and result of a run, with one question in memory at a time."""

    def __init__(self, outline: RunOutline) -> None:
        self._outline = outline
        self._tally = Tally(tags=frozenset(floor.tag for floor in outline.floors if floor.tag))
        # Monotonic: a clock that is set back must not end a run before it started.
        self._started_clock = time.monotonic()
        self._modes: Counter[str] = Counter()
        self._skipped_stages: dict[str, int] = {}
        self._rising = 0
        self._null_lists = self._empty = 0
        self._short = 0
        self._judging = _judging_tally(outline)
        self.highlights = Highlights()
        self._latency = {"done": array("d"), "first_event": array("d"), "first_delta": array("d")}

    def write_manifest(self, folder: RunFolder) -> None:
        """Write `manifest.json`, which identifies the run before anything is asked."""
        manifest = {
            "schema_version": MANIFEST_SCHEMA,
            "run_id": self._outline.run_id,
            "sdk": self._outline.sdk,
            "floors": [str(floor) for floor in self._outline.floors],
        } | self._outline.provenance.model_dump(mode="json")
        with replacing(folder.path / "manifest.json") as file:
            file.write_json(manifest)

    def journal_header(self) -> Header:
        """The header of the run's journal."""
        settings = self._outline.settings
        return Header(
            run_id=self._outline.run_id,
            sdk=self._outline.sdk,
            dataset_path=self._outline.provenance.dataset_path,
            settings=settings,
            settings_sha256=settings.digest(),
        )

    def count_unfinished(self, error: MemconformError | None) -> None:
        """Count what judges cost whose panel an error ended before it decided."""
        if self._judging is not None:
            self._judging.add_unfinished(error)

    def finish(  # noqa: PLR0917 - the parts of a result
        self,
        folder: RunFolder,
        journal: Journal,
        results: Iterable[QuestionResult],
        incident: Incident | None,
        daemon: DaemonRecord,
        seeded: SeedRecord | None,
        verification: VerificationRecord | None = None,
        upstream: UpstreamRecord | None = None,
    ) -> RunSummary:
        """Write the result, summary first, and close the journal.

        Raises:
            ResultsError: if the result cannot be written.
        """
        part = folder.path / "questions.part"
        with replacing(part) as questions:
            for result in results:
                self._count(result)
                questions.write_json(result, indent=None)
        summary = self._summary(incident, daemon, seeded, verification, upstream)
        journal.close({"exit_code": summary.exit_code, "counts": summary.counts})
        with replacing(folder.result) as target, part.open("rb") as questions:
            write_result(target, summary, map(Masked, questions))
        part.unlink()
        return summary

    def _count(self, result: QuestionResult) -> None:
        self._tally.add(result)
        if self._judging is not None:
            verdicts = [attempt.verdict for attempt in result.attempts] or [result.verdict]
            self._judging.add(result.judges, verdicts)
        if result.verdict not in (QuestionStatus.NOT_RUN, QuestionStatus.NOT_APPLICABLE):
            self.highlights.add(result)
        if result.trace is not None:
            self._modes[result.trace.get("effectiveMode", UNCONFIRMED)] += 1
            if result.verdict.measured:
                count_skip(self._skipped_stages, skipped_stage(result.trace))
        self._rising += score_rise([chunk.score for chunk in result.ranking]) is not None
        self._null_lists += result.null_chunks
        self._empty += result.verdict.measured and not result.ranking
        if result.timings is not None:
            self._short += is_short(result.timings.done, result.timings.daemon)
        if result.verdict.measured and result.timings is not None:
            for name, values in self._latency.items():
                value = getattr(result.timings, name)
                if value is not None:
                    values.append(value)

    def _summary(
        self,
        incident: Incident | None,
        daemon: DaemonRecord,
        seeded: SeedRecord | None,
        verification: VerificationRecord | None,
        upstream: UpstreamRecord | None,
    ) -> RunSummary:
        tally, outline, settings = self._tally, self._outline, self._outline.settings
        conclusion = conclude(tally, outline.floors, incident, settings.shard)
        # A run that an incident ended, or that measured nothing, has counts but no rates that could
        # be mistaken for a score.
        void = incident is not None or not tally.measured
        total, measured = (0, 0) if void else (tally.total, tally.measured)
        return RunSummary(
            run_id=outline.run_id,
            sdk=outline.sdk,
            scenario=settings.scenario,
            mode=settings.mode,
            dataset=settings.dataset,
            scorer=settings.scorer,
            brain=settings.brain or own_brain(outline.run_id),
            started_at=outline.started.isoformat(),
            finished_at=(
                outline.started + timedelta(seconds=time.monotonic() - self._started_clock)
            ).isoformat(),
            total=tally.total,
            passed=tally.passed,
            pass_rate=tally.passed / total if total else None,
            pass_rate_interval=tally.interval() if total else wilson(0, 0),
            pass_rate_answered=tally.passed / measured if measured else None,
            mean_score=None if void else tally.score.value,
            counts={verdict: tally.counts[verdict] for verdict in QuestionStatus},
            unstable=tally.unstable,
            served_modes=dict(self._modes),
            skipped_stages=self._skipped_stages,
            rising_scores=self._rising,
            null_lists=self._null_lists,
            empty_rankings=self._empty,
            short_latencies=self._short,
            latency=LatencySummary(
                **{name: QuantileSummary.of(values) for name, values in self._latency.items()}
            ),
            floors=list(conclusion.floors),
            exit_code=conclusion.exit_code,
            reasons=[
                *conclusion.reasons,
                *(warnings(upstream) if upstream else ()),
                *([short_latencies(self._short)] if self._short else ()),
                *([nothing_found(measured)] if measured and self._empty == measured else ()),
            ],
            incident=incident,
            daemon=daemon,
            seeded=seeded,
            verification=verification,
            upstream=upstream,
            judging=None if self._judging is None else self._judging.summary(void=void),
            provenance=outline.provenance,
        )


def question_results(plan: Plan, journal: Journal) -> Iterator[QuestionResult]:
    """The results of the questions of a plan, by what a journal has of them."""
    settings = plan.settings
    scenario = SCENARIOS[settings.scenario]
    for row, question in enumerate(plan.selected):
        if is_applicable(question, scenario):
            yield aggregate_attempts(question, journal.read(row), settings.repeat)
        else:
            yield QuestionResult.unmeasured(question, QuestionStatus.NOT_APPLICABLE)


def _judging_tally(outline: RunOutline) -> "JudgingTally | None":
    """Counts what the judges do; None with another scorer."""
    settings = outline.settings
    if settings.judge is None:
        return None
    from memconform.scoring.judge.tally import JudgingTally  # noqa: PLC0415 - runs without a judge need none of it

    # With another upstream than the real services, no vendor's model reads.
    reader = settings.variables.get("JB_LLM_PROVIDER") if settings.upstream == "real" else None
    return JudgingTally(settings.judge, outline.calibrations, reader)
