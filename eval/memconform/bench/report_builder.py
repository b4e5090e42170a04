"""Collects the measurements of a bench and writes its report."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from memconform.bench.ceilings import above_ceilings, ceilings
from memconform.bench.chance import chance_levels
from memconform.bench.plan import BenchPlan
from memconform.bench.records import (
    BenchReport,
    BenchSettings,
    Ceiling,
    ChanceLevel,
    DataSource,
    ErrataReport,
    IndexRecord,
    JournalRecord,
    QueryRecord,
    Row,
    SystemRecord,
    SystemReport,
)
from memconform.bench.returned_texts import ReturnedTexts
from memconform.bench.rows import ranking_agreement, row, with_added_latency
from memconform.bench.system_agreement import compare_systems, compare_with_bm25
from memconform.errors import ExitCode, gravest
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.measuring.validity import Validity
from memconform.records import Incident
from memconform.stats.quantiles import QuantileSummary
from memconform.storage.folders import RunFolder
from memconform.storage.provenance import PartOrigin, Start
from memconform.storage.result_file import write_result
from memconform.storage.sink import json_bytes, replacing

_COSTS = (
    *("ready_ms", "rss_peak_bytes", "cpu_seconds", "behaviour"),
    *("ingest_s", "documents_per_s", "disk_bytes"),
)
"""Fields of a system that are sums or peaks over all its sessions."""


@dataclass(frozen=True, slots=True)
class RowOutline:
    """A row of the report, before anything is measured."""

    system: str
    strategy: str
    compared: bool
    """Whether rows of other systems with the same strategy should rank alike."""
    kernel: str | None
    ties: str | None
    why: tuple[str, ...] = ()
    """What ended the measurements of parts of it, if it is merged."""


@dataclass(frozen=True, slots=True)
class BenchOutline:
    """What a bench is, without what was measured."""

    run_id: str
    suite: str
    command: tuple[str, ...]
    seed: int
    concurrency: int
    settings: BenchSettings
    source: DataSource
    rows: tuple[RowOutline, ...]
    errata: ErrataReport | None
    """Without its ceilings."""
    resumed: str | None = None
    """The bench that this one resumes."""
    foreign: bool = False
    """Whether a part that is merged measured a system behind an adapter."""
    parts: tuple[PartOrigin, ...] = ()
    """What is merged."""

    @classmethod
    def of(cls, plan: BenchPlan, run_id: str) -> "BenchOutline":
        """The outline of a bench that is about to start."""
        rows = [
            RowOutline(
                system.name,
                strategy.label,
                strategy.mode is not None,
                system.kernel(strategy),
                system.ties,
            )
            for system in plan.systems
            for strategy in system.strategies
        ]
        return cls(
            run_id=run_id,
            suite=plan.suite,
            command=plan.command,
            seed=plan.seed,
            concurrency=plan.concurrency,
            settings=plan.settings,
            source=plan.source(),
            rows=tuple(rows),
            errata=_errata(plan),
            resumed=plan.resumed.parent.name if plan.resumed else None,
        )


def _errata(plan: BenchPlan) -> ErrataReport | None:
    if plan.errata is None:
        return None
    selected = plan.errata.of(plan.planner.query_ids)
    changed = plan.scan.changed_gold & selected.corrected_gold.keys()
    return ErrataReport(
        name=plan.errata.name,
        shipped=plan.errata.shipped,
        disputed=len(selected.disputed),
        corrected=len(changed),
        noted=len(selected.entries) - len(selected.disputed) - len(changed),
        ceilings=[],
    )


class BenchReportBuilder:
    """Collects the records of a bench and builds the report at its end."""

    def __init__(self, outline: BenchOutline) -> None:
        self._outline = outline
        self._start = Start()
        self._queries: dict[tuple[str, str, str], QueryRecord] = {}
        self._texts = ReturnedTexts()
        self._validity = Validity[tuple[str, str, str]]()
        self._indexes: dict[tuple[str, str], IndexRecord] = {}
        self._incidents: dict[str, Incident] = {}
        self._lost: dict[tuple[str, str], Incident] = {}
        """By system and strategy, what ended the measurements in its mode alone."""
        self.systems: dict[str, SystemRecord] = {}
        """Started systems by name."""
        self.overhead: QuantileSummary | None = None
        self.adopted = False
        """Whether any record comes from an earlier bench; neither speed nor resources are then
        reported, because no single session and machine account for them."""

    def add(self, record: JournalRecord) -> None:
        """Add the next record, in the order of the journal."""
        match record:
            case IndexRecord():
                self._indexes[record.system, record.haystack] = record
                self._validity.replace_index(record.system, record.haystack)
            case QueryRecord():
                self._queries[record.key] = self._texts.put(record.key, record)
                self._validity.add(record.key, record.place)
            case IndexVerified() | IndexInvalidated():
                self._validity.apply(record)

    def halt(self, system: str, incident: Incident) -> None:
        """Record the error that ended a system's measurements."""
        self._incidents[system] = incident

    def lose(self, system: str, strategies: Iterable[str], incident: Incident) -> None:
        """Record the error that ended the measurements of a system's strategies of one mode."""
        self._lost |= {(system, strategy): incident for strategy in strategies}

    def write(self, folder: RunFolder) -> BenchReport:
        """Write the report, followed by every query, to the run's folder.

        Queries that no verification followed count as not measured.

        Raises:
            ResultsError: if it cannot be written (`results_unwritable`).
        """
        for key, query in self._queries.items():
            failure = self._validity.failure(key)
            if failure is not None and query.error is None:
                self._queries[key] = query.model_copy(update={"error": failure})
        self._queries = dict(sorted(self._queries.items(), key=self._in_order))
        report = self._report()
        with replacing(folder.result) as target:
            queries = (self._texts.restored(*each) for each in self._queries.items())
            write_result(target, report, map(json_bytes, queries))
        return report

    @cached_property
    def _row_numbers(self) -> dict[tuple[str, str], int]:
        rows = enumerate(self._outline.rows)
        return {(row.system, row.strategy): number for number, row in rows}

    def _in_order(self, query: tuple[tuple[str, str, str], QueryRecord]) -> tuple[int, int]:
        """Row by row, in the order of the benchmark: not of the sessions that measured them."""
        key, record = query
        return self._row_numbers[key[:2]], record.position

    def _report(self) -> BenchReport:
        outline = self._outline
        source = outline.source
        records = list(self._queries.values())
        rows, limits = self._with_ceilings(self._rows())
        deepest = max(outline.settings.ks)
        systems_by_label: dict[str, list[str]] = {}
        for each in dict.fromkeys(outline.rows):
            if each.compared:
                systems_by_label.setdefault(each.strategy, []).append(each.system)
        agreements = [
            agreement
            for label, alike in systems_by_label.items()
            if (agreement := ranking_agreement(label, alike, records)) is not None
        ]
        pairs = [
            pair
            for agreement in agreements
            for pair in compare_systems(
                agreement.strategy,
                agreement.systems,
                records,
                k=deepest,
                source=source,
            )
        ]
        systems = [self._system(name) for name in dict.fromkeys(r.system for r in outline.rows)]
        foreign = outline.foreign or any(each.behaviour for each in self.systems.values())
        return BenchReport(
            run_id=outline.run_id,
            suite=outline.suite,
            **self._start.header(outline.command),
            seed=outline.seed,
            settings=outline.settings,
            source=source,
            concurrency=outline.concurrency,
            resumed_from=outline.resumed if self.adopted else None,
            parts=list(outline.parts),
            overhead_ms=None if self.adopted else self.overhead,
            systems=systems,
            rows=rows,
            alike=agreements,
            parity=pairs,
            with_bm25=(
                compare_with_bm25(rows, records, k=deepest, source=source) if foreign else []
            ),
            errata=outline.errata and outline.errata.model_copy(update={"ceilings": limits}),
            chance=self._chance(rows),
            exit_code=int(self._exit_code(rows)),
        )

    def _rows(self) -> list[Row]:
        outline = self._outline
        rows = []
        for each in outline.rows:
            row_key = (each.system, each.strategy)
            made = row(
                *row_key,
                outline.source.queries,
                # Sorted, so that the table does not depend on the order of queries.
                sorted(
                    (r for key, r in self._queries.items() if key[:2] == row_key),
                    key=lambda record: (record.haystack, record.query),
                ),
                self._lost.get(row_key) or self._incidents.get(each.system),
                ks=outline.settings.ks,
            )
            why = made.why
            if each.why and not made.measured:
                # What ended a part says so itself; failed queries are counted together.
                why = [*each.why, *(line for line in why if line[:1].isdigit())]
            rows.append(
                made.model_copy(update={"kernel": each.kernel, "ties": each.ties, "why": why})
            )
        if self.adopted:
            return [each.model_copy(update={"latency": None}) for each in rows]
        return with_added_latency(rows, list(self._queries.values()))

    def _with_ceilings(self, rows: list[Row]) -> tuple[list[Row], list[Ceiling]]:
        """The rows with what exceeds the ceilings of wrong gold, and these ceilings."""
        if self._outline.errata is None:
            return rows, []
        ks = self._outline.settings.ks
        limits: list[Ceiling] = []
        extended = []
        for each in rows:
            row_key = (each.system, each.strategy)
            records = [r for key, r in self._queries.items() if key[:2] == row_key]
            if each.measured:
                limits = limits or ceilings(records, ks)
                above = above_ceilings(records, limits, ks)
                extended.append(each.model_copy(update={"above_ceilings": above}))
            else:
                extended.append(each)
        return extended, limits

    def _chance(self, rows: list[Row]) -> dict[str, ChanceLevel]:
        """The levels of chance, which are those of every row: all are of the same queries."""
        measured = next(((row.system, row.strategy) for row in rows if row.measured), None)
        records = (r for key, r in self._queries.items() if key[:2] == measured)
        return chance_levels(records, self._outline.settings.ks)

    def _exit_code(self, rows: list[Row]) -> ExitCode:
        ends = (*self._incidents.values(), *self._lost.values())
        codes = [ExitCode(incident.exit_code) for incident in ends]
        codes += [ExitCode.DAEMON for each in rows if not each.measured or each.unanswered]
        return gravest(codes)

    def _system(self, name: str) -> SystemReport:
        indexes = [index for (system, _), index in self._indexes.items() if system == name]
        seconds = sum(index.ingest_ms for index in indexes) / 1e3
        documents = sum(index.documents for index in indexes)
        disk = [index.disk_bytes for index in indexes if index.disk_bytes is not None]
        record = self.systems.get(name, SystemRecord(name=name))
        report = SystemReport(
            **record.model_dump(),
            documents=documents,
            chunks=_sum(index.chunks for index in indexes),
            vectors=_sum(index.vectors for index in indexes),
            ingest_s=seconds,
            documents_per_s=documents / seconds if seconds else None,
            disk_bytes=max(disk, default=None),
            incident=self._incidents.get(name),
        )
        return report.model_copy(update=dict.fromkeys(_COSTS)) if self.adopted else report


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum of counts; None if one is unknown."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
