"""One run of an SDK, joined from runs of its shards."""

import heapq
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from memconform.datasets.sharding import ShardRecord
from memconform.errors import ExitCode, gravest
from memconform.ingest.records import IndexVerified
from memconform.records import Incident
from memconform.runs.events import RunFinished
from memconform.runs.journal import Header, Journal, read_attempts
from memconform.runs.plan import Floor, Settings
from memconform.runs.rescore import stored_floors
from memconform.runs.result_builder import ResultBuilder, RunOutline
from memconform.runs.results import (
    DaemonRecord,
    Provenance,
    QuestionResult,
    RunSummary,
    UpstreamRecord,
    VerificationRecord,
)
from memconform.runs.stored_run import read_questions, read_summary
from memconform.storage.folders import JOURNAL, RunFolder, new_run_id
from memconform.storage.journal import read_header
from memconform.storage.provenance import HostOrigin, PartOrigin
from memconform.storage.result_file import reading
from memconform.storage.sink import copy_written

if TYPE_CHECKING:
    from memconform.scoring.judge.calibration import Calibration


@dataclass(frozen=True, slots=True)
class RunPart:
    """The run of a shard, or of several that were joined before."""

    folder: Path
    summary: RunSummary
    header: Header
    floors: tuple[Floor, ...]

    @classmethod
    def read_result(cls, result: Path) -> "RunPart":
        """Read a run's result, and what lies beside it.

        Raises:
            UsageError: if its result, journal or manifest is missing or damaged
                (`result_unreadable`, `journal_unreadable`).
        """
        folder, journal = result.parent, result.with_name(JOURNAL)
        with _reading(folder):
            if not (folder / "manifest.json").is_file():
                raise ValueError("manifest.json is missing, which has the floors")
            summary = read_summary(result)
        return cls(folder, summary, read_header(journal, Header), stored_floors(journal))

    @property
    def name(self) -> str:
        return str(self.folder)

    @property
    def label(self) -> str:
        """Which shard it has, in words."""
        return self.shard.label() if self.shard else self.name

    @property
    def subject(self) -> str:
        """What is joined with parts of the same subject alone."""
        return f"run {self.summary.sdk} {self.summary.scenario} {self.summary.mode}"

    @property
    def shard(self) -> ShardRecord | None:
        return self.header.settings.shard

    @property
    def identity(self) -> Mapping[str, object]:
        """What parts must have in common."""
        settings = self.header.settings.model_dump(mode="json", exclude={"shard", "questions"})
        floors = ", ".join(map(str, self.floors))
        return settings | {
            "floors": floors,
            "version": self.summary.daemon.version,
            "version of memconform": self.summary.provenance.harness_version,
        }

    @property
    def origins(self) -> list[PartOrigin]:
        """Where it comes from; of what was joined before, where each part of it does."""
        provenance = self.summary.provenance
        if provenance.parts or self.shard is None:
            return provenance.parts
        return [
            PartOrigin.of_part(
                provenance,
                self.summary.run_id,
                self.shard.numbers,
                datetime.fromisoformat(self.summary.started_at),
                provenance.resumed_from,
            )
        ]

    def questions(self) -> Iterator[tuple[int, QuestionResult]]:
        """Each question with its place in the whole.

        Raises:
            UsageError: if there are more or fewer than the settings say (`result_unreadable`).
        """
        places = (self.shard.places if self.shard else None) or []
        count = 0
        with _reading(self.folder):
            for question in read_questions(self.folder / "result.json"):
                count += 1
                if count <= len(places):
                    yield places[count - 1], question
            if count != len(places):
                raise ValueError(f"it has {count} of {len(places)} questions")


def merge_runs(
    parts: Sequence[RunPart],
    shard: ShardRecord | None,
    output: Path,
    *,
    calibrated: Path,
    command: Sequence[str],
) -> RunFinished:
    """Write the result of all parts together, as if one run had asked their questions.

    What the daemons took is not added up: each did a part of the work, on a machine of its own.

    Args:
        parts: of one run, with equal settings.
        shard: what the result is a part of; None if it is whole.
        output: the results folder to write to.
        calibrated: the results folder that has the calibrations of judges.
        command: the command line, for the provenance.

    Raises:
        UsageError: if a part is damaged (`result_unreadable`, `journal_unreadable`).
        ResultsError: if the result cannot be written.
    """
    first = parts[0]
    settings = first.header.settings.model_copy(
        update={
            "shard": shard,
            "questions": sum(part.header.settings.questions for part in parts),
        }
    )
    started = datetime.now(UTC)
    run_id = new_run_id(started, first.summary.sdk, settings.scenario)
    outline = RunOutline(
        run_id=run_id,
        sdk=first.summary.sdk,
        started=started,
        settings=settings,
        floors=first.floors,
        provenance=_provenance(parts, settings, command),
        calibrations=_calibrations(settings, calibrated),
    )
    folder = RunFolder(output, run_id)
    builder = ResultBuilder(outline)
    builder.write_manifest(folder)
    journal = Journal(folder.journal, builder.journal_header())
    try:
        _copy_attempts(parts, journal)
        ordered = heapq.merge(*(part.questions() for part in parts), key=itemgetter(0))
        questions = _distinct((question for _, question in ordered), parts)
        summary = builder.finish(
            folder,
            journal,
            questions,
            _incident(parts),
            DaemonRecord(
                name=first.summary.daemon.name,
                version=first.summary.daemon.version,
                build_hash=first.summary.daemon.build_hash,
                ready_ms=None,
                rss_peak_bytes=None,
                cpu_seconds=None,
            ),
            first.summary.seeded,
            _verification(parts),
            _upstream(parts),
        )
    except BaseException:
        # It is closed already if the result could not be written.
        with suppress(ValueError):
            journal.close({"ended": "not merged"})
        folder.remove()
        raise
    copy = folder.publish(started, first.summary.sdk)
    return RunFinished(summary, builder.highlights, folder.result, copy)


def _distinct(
    questions: Iterable[QuestionResult], parts: Sequence[RunPart]
) -> Iterator[QuestionResult]:
    """The questions; raises UsageError `result_unreadable` if one is there twice."""
    seen: set[str] = set()
    with _reading(", ".join(part.name for part in parts)):
        for question in questions:
            if question.id in seen:
                raise ValueError(f"question {question.id!r} is there twice")
            seen.add(question.id)
            yield question


def _provenance(parts: Sequence[RunPart], settings: Settings, command: Sequence[str]) -> Provenance:
    first = parts[0].summary.provenance
    return Provenance(
        sdk_reference=first.sdk_reference,
        dataset_path=first.dataset_path,
        dataset_sha256=first.dataset_sha256,
        **dict(HostOrigin.of(command)),
        rescored_from=None,
        resumed_from=None,
        parts=[origin for part in parts for origin in part.origins],
        settings=settings.model_dump(mode="json"),
        settings_sha256=settings.digest(),
    )


def _calibrations(settings: Settings, results: Path) -> Mapping[str, "Calibration | None"]:
    if settings.judge is None:
        return {}
    from memconform.scoring.judge.gate import calibrations  # noqa: PLC0415 - runs without a judge need none of it

    return calibrations(settings.judge, results)


def _copy_attempts(parts: Sequence[RunPart], journal: Journal) -> None:
    """Copy the attempts of all parts, whose rows count the questions of the whole from now on."""
    places = array("Q", sorted(p for part in parts if part.shard for p in part.shard.places or ()))
    for part in parts:
        own = (part.shard.places if part.shard else None) or []
        for attempt in read_attempts(part.folder / JOURNAL):
            journal.write_unread(attempt.at(bisect_left(places, own[attempt.row])))
        for file in sorted((part.folder / "wire").glob("*.http")):
            row, _, rest = file.name.partition("-")
            row = f"{bisect_left(places, own[int(row)]):06}"
            copy_written(file, journal.path.parent / "wire" / f"{row}-{rest}")
    journal.write_statement(IndexVerified(attempts=journal.written))


def _incident(parts: Sequence[RunPart]) -> Incident | None:
    """The gravest of what ended a part: the whole has no rates without it."""
    labelled = [
        incident.model_copy(update={"message": f"{part.label}: {incident.message}"})
        for part in parts
        if (incident := part.summary.incident) is not None
    ]
    codes = [ExitCode(incident.exit_code) for incident in labelled]
    return labelled[codes.index(gravest(codes))] if codes else None


def _verification(parts: Sequence[RunPart]) -> VerificationRecord | None:
    records = [part.summary.verification for part in parts]
    known = [record for record in records if record is not None]
    if len(known) < len(records):
        return None
    return VerificationRecord(
        reproof=all(record.reproof for record in known),
        verifications=sum(record.verifications for record in known),
        invalidations=sum(record.invalidations for record in known),
        repeated=sum(record.repeated for record in known),
        retracted=sum(record.retracted for record in known),
    )


def _upstream(parts: Sequence[RunPart]) -> UpstreamRecord | None:
    records = [part.summary.upstream for part in parts]
    known = [record for record in records if record is not None]
    if len(known) < len(records):
        return None
    return UpstreamRecord(
        answered=sum(record.answered for record in known),
        asked=sum(record.asked for record in known),
        refused=sum(record.refused for record in known),
        refusal=next((record.refusal for record in reversed(known) if record.refusal), ""),
        elsewhere=sorted({address for record in known for address in record.elsewhere}),
    )


def _reading(path: Path | str) -> AbstractContextManager[None]:
    hint = "give the run's folder below results/runs, with all of its files"
    return reading(Path(path), "the whole result of a run", hint)
