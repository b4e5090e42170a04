"""One bench, joined from benches of its shards."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memconform.bench.events import BenchFinished
from memconform.bench.journal import read_indexes
from memconform.bench.records import (
    BenchJournalHeader,
    BenchReport,
    ErrataReport,
    IndexRecord,
    QueryRecord,
    Row,
    SystemRecord,
)
from memconform.bench.report_builder import BenchOutline, BenchReportBuilder, RowOutline
from memconform.datasets.sharding import ShardRecord
from memconform.ingest.records import IndexVerified
from memconform.records import Incident
from memconform.storage.folders import JOURNAL, RunFolder, new_run_id
from memconform.storage.journal import JournalFile, read_header
from memconform.storage.provenance import PartOrigin
from memconform.storage.result_file import read_head, read_lines, reading

_OWN = ("behaviour", "ready_ms", "rss_peak_bytes", "cpu_seconds")
"""Fields of a system that are each session's own."""


@dataclass(frozen=True, slots=True)
class BenchPart:
    """The bench of a shard, or of several that were joined before."""

    folder: Path
    report: BenchReport
    header: BenchJournalHeader

    @classmethod
    def read_result(cls, result: Path) -> "BenchPart":
        """Read a bench's result, and the journal beside it.

        Raises:
            UsageError: if one is missing or damaged (`result_unreadable`, `journal_unreadable`).
        """
        with _reading(result):
            report = BenchReport.model_validate_json(read_head(result))
        header = read_header(result.with_name(JOURNAL), BenchJournalHeader)
        return cls(result.parent, report, header)

    @property
    def name(self) -> str:
        return str(self.folder)

    @property
    def subject(self) -> str:
        """What is joined with parts of the same subject alone."""
        settings = self.report.settings
        systems = ", ".join(system.name for system in self.report.systems)
        return f"bench {settings.format} {settings.options} {settings.index} {systems}"

    @property
    def shard(self) -> ShardRecord | None:
        return self.report.settings.shard

    @property
    def identity(self) -> Mapping[str, object]:
        """What parts must have in common."""
        report = self.report
        source = report.source.model_dump(
            include={"format", "options", "made", "sha256", "haystacks", "items", "all_with_gold"}
        )
        systems = {
            each.name: each.model_dump(
                mode="json", include=set(SystemRecord.model_fields).difference(_OWN)
            )
            for each in report.systems
        }
        return {
            "settings": report.settings.model_dump(mode="json", exclude={"shard"}),
            "data": source,
            "seed": report.seed,
            "concurrency": report.concurrency,
            "builds": self.header.systems,
            "systems": systems,
            "rows": ", ".join(f"{row.system} {row.strategy}" for row in report.rows),
            "version of memconform": report.harness_version,
            "errata": None if report.errata is None else report.errata.name,
        }

    @property
    def origins(self) -> list[PartOrigin]:
        """Where it comes from; of what was joined before, where each part of it does."""
        report = self.report
        if report.parts or self.shard is None:
            return report.parts
        numbers = self.shard.numbers
        return [
            PartOrigin.of_part(
                report, report.run_id, numbers, report.started_at, report.resumed_from
            )
        ]

    def queries(self) -> Iterator[QueryRecord]:
        """Raises UsageError `result_unreadable` for a damaged one."""
        result = self.folder / "result.json"
        with _reading(result):
            yield from map(QueryRecord.model_validate_json, read_lines(result))

    def indexes(self) -> Iterator[IndexRecord]:
        """The indexes that were built; raises UsageError `journal_unreadable`."""
        return read_indexes(self.folder / JOURNAL)


def merge_benches(
    parts: Sequence[BenchPart], shard: ShardRecord | None, output: Path, *, command: Sequence[str]
) -> BenchFinished:
    """Write the report of all parts together, as if one bench had asked their queries.

    Times, memory and behaviour are left out, as of a bench that was continued: they are of several
    sessions on several machines.

    Args:
        parts: of one bench, with equal settings.
        shard: what the report is a part of; None if it is whole.
        output: the results folder to write to.
        command: the command line, for the report.

    Raises:
        UsageError: if a part is damaged (`result_unreadable`, `journal_unreadable`).
        ResultsError: if the report cannot be written.
    """
    first = parts[0].report
    settings = first.settings.model_copy(update={"shard": shard})
    run_id = new_run_id(datetime.now(UTC), "bench", first.suite)
    outline = BenchOutline(
        run_id=run_id,
        suite=first.suite,
        command=tuple(command),
        seed=first.seed,
        concurrency=first.concurrency,
        settings=settings,
        source=first.source.model_copy(
            update={
                name: sum(getattr(part.report.source, name) for part in parts)
                for name in ("queries", "with_gold")
            }
        ),
        rows=tuple(_row(number, parts) for number in range(len(first.rows))),
        errata=_errata(parts),
        foreign=any(
            system.behaviour or part.report.with_bm25
            for part in parts
            for system in part.report.systems
        ),
        parts=tuple(origin for part in parts for origin in part.origins),
    )
    folder = RunFolder(output, run_id)
    builder = BenchReportBuilder(outline)
    builder.adopted = True
    for system in first.systems:
        fields = {name: getattr(system, name) for name in SystemRecord.model_fields}
        builder.systems[system.name] = SystemRecord(**fields | dict.fromkeys(_OWN))
    header = BenchJournalHeader(run_id=run_id, settings=settings, systems=parts[0].header.systems)
    journal = JournalFile(folder.journal, header)
    try:
        seen: set[tuple[str, str, str]] = set()
        try:
            for part in parts:
                for record in _records(part):
                    if isinstance(record, QueryRecord):
                        if record.key in seen:
                            with _reading(part.folder / "result.json"):
                                fault = f"another part has {record.query!r} of {record.system}, too"
                                raise ValueError(fault)
                        seen.add(record.key)
                    builder.add(record)
                    journal.append(record)
                for system in part.report.systems:
                    if system.incident is not None:
                        builder.halt(system.name, _labelled(system.incident, part))
        finally:
            journal.close(ended="merged")
        report = builder.write(folder)
    except BaseException:
        folder.remove()
        raise
    return BenchFinished(report, folder.result)


def _records(part: BenchPart) -> Iterator[IndexRecord | QueryRecord | IndexVerified]:
    """What a part measured; what its result says of a query is final, and needs no verification."""
    yield from part.indexes()
    yield from part.queries()
    for system in part.report.systems:
        yield IndexVerified(system=system.name)


def _row(number: int, parts: Sequence[BenchPart]) -> RowOutline:
    rows = [part.report.rows[number] for part in parts]
    # A row without a measurement does not say what its system would have.
    measured = [row for row in rows if row.measured] or rows
    first = measured[0]
    compared = any(
        first.system in agreement.systems and first.strategy == agreement.strategy
        for part in parts
        for agreement in part.report.alike
    )
    return RowOutline(
        system=first.system,
        strategy=first.strategy,
        compared=compared,
        kernel=first.kernel,
        ties=first.ties,
        why=tuple(line for row, part in zip(rows, parts, strict=True) for line in _why(row, part)),
    )


def _why(row: Row, part: BenchPart) -> Iterator[str]:
    """What ended a row of a part; counts of failed queries are left out: they are made anew."""
    return (f"{_label(part)}: {line}" for line in row.why if not line[:1].isdigit())


def _labelled(incident: Incident, part: BenchPart) -> Incident:
    return incident.model_copy(update={"message": f"{_label(part)}: {incident.message}"})


def _label(part: BenchPart) -> str:
    return part.shard.label() if part.shard else part.name


def _errata(parts: Sequence[BenchPart]) -> ErrataReport | None:
    reports = [part.report.errata for part in parts if part.report.errata is not None]
    if not reports:
        return None
    counts: dict[str, Any] = {
        name: sum(getattr(report, name) for report in reports)
        for name in ("disputed", "corrected", "noted")
    }
    return reports[0].model_copy(update={**counts, "ceilings": []})


def _reading(path: Path) -> AbstractContextManager[None]:
    hint = "give the bench's folder below results/runs, with all of its files"
    return reading(path, "the whole result of a bench", hint)
