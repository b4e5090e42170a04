"""Gathers what a bench measures, and writes its report."""

import time
from datetime import UTC, datetime

from memconform.bench.journal import in_index
from memconform.bench.plan import BenchPlan
from memconform.bench.records import (
    BenchReport,
    Filled,
    FilledSystem,
    Measured,
    QueryRecord,
    Row,
    SystemRecord,
)
from memconform.bench.rows import ranking_agreement, row, with_added_latency
from memconform.bench.system_agreement import compare_systems
from memconform.errors import ExitCode, MemconformError, gravest
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.records import Failure, Incident
from memconform.stats.quantiles import QuantileSummary
from memconform.storage.folders import RunFolder
from memconform.storage.provenance import HostOrigin
from memconform.storage.result_file import write_result
from memconform.storage.writing import json_bytes, replacing

_UNPROVEN = Failure(
    code="index_not_proven", message="the index was not seen to be whole after this query"
)


class BenchReportBuilder:
    def __init__(self, plan: BenchPlan, run_id: str) -> None:
        self._plan = plan
        self._run_id = run_id
        self._started, self._clock = datetime.now(UTC), time.perf_counter()
        self._queries: dict[tuple[str, str, str], QueryRecord] = {}
        self._unproven: set[tuple[str, str, str]] = set()
        """Keys of queries whose index was not looked at again since."""
        self._filled: dict[tuple[str, str], Filled] = {}
        self._incidents: dict[str, MemconformError] = {}
        self.systems: dict[str, SystemRecord] = {}
        """By name; of those that were started."""
        self.overhead: QuantileSummary | None = None
        self.adopted = False
        """Whether anything is of an earlier bench, whose speed is not this one's."""

    def add(self, record: Measured) -> None:
        match record:
            case Filled():
                self._filled[record.system, record.haystack] = record
            case QueryRecord():
                key = (record.system, record.strategy, record.query)
                self._queries[key] = record
                self._unproven.add(key)
            case IndexVerified():
                self._unproven -= {
                    key for key in self._unproven if in_index(self._queries[key], record)
                }
            case IndexInvalidated():
                for key, query in self._queries.items():
                    if in_index(query, record):
                        self._queries[key] = query.model_copy(update={"error": record.error})

    def halt(self, system: str, error: MemconformError) -> None:
        self._incidents[system] = error

    def incident_of(self, system: str) -> MemconformError | None:
        return self._incidents.get(system)

    def write(self, folder: RunFolder) -> BenchReport:
        """The report, and beside its head every query, in the run's folder.

        Raises:
            ResultsError: where it cannot be written.
        """
        for key in self._unproven:
            if self._queries[key].error is None:
                self._queries[key] = self._queries[key].model_copy(update={"error": _UNPROVEN})
        report = self._report()
        with replacing(folder.result) as target:
            write_result(target, report, map(json_bytes, self._queries.values()))
        return report

    def _report(self) -> BenchReport:
        plan = self._plan
        records = list(self._queries.values())
        rows = self._rows()
        labels = dict.fromkeys(s.label for each in plan.systems for s in each.strategies if s.mode)
        comparisons = [
            ranking_agreement(
                label,
                [e.name for e in plan.systems if any(s.label == label for s in e.strategies)],
                records,
            )
            for label in labels
        ]
        pairs = [
            pair
            for each in comparisons
            if each is not None
            for pair in compare_systems(
                each.strategy,
                each.systems,
                records,
                k=max(plan.settings.ks),
                expected=plan.source().queries,
            )
        ]
        return BenchReport(
            run_id=self._run_id,
            suite=plan.suite,
            started_at=self._started,
            took_s=round(time.perf_counter() - self._clock, 3),
            **dict(HostOrigin.of(plan.command)),
            seed=plan.seed,
            settings=plan.settings,
            source=plan.source(),
            concurrency=plan.concurrency,
            resumed_from=plan.resumed.parent.name if plan.resumed else None,
            overhead_ms=self.overhead,
            systems=[self._system(system.name) for system in plan.systems],
            rows=rows,
            alike=[each for each in comparisons if each is not None],
            parity=pairs,
            exit_code=int(self._exit_code(rows)),
        )

    def _rows(self) -> list[Row]:
        plan = self._plan
        found = []
        for system in plan.systems:
            for strategy in system.strategies:
                own = (system.name, strategy.label)
                found.append(
                    row(
                        *own,
                        len(plan.tasking.chosen),
                        # In one order, or resampling would depend on that of asking.
                        sorted(
                            (r for key, r in self._queries.items() if key[:2] == own),
                            key=lambda record: (record.haystack, record.query),
                        ),
                        self._incidents.get(system.name),
                        ks=plan.settings.ks,
                        seed=plan.seed,
                    )
                )
        if self.adopted:
            return [each.model_copy(update={"latency": None}) for each in found]
        return with_added_latency(found, list(self._queries.values()))

    def _exit_code(self, rows: list[Row]) -> ExitCode:
        codes = [error.exit_code for error in self._incidents.values()]
        codes += [ExitCode.DAEMON for each in rows if not each.measured]
        return gravest(codes)

    def _system(self, name: str) -> FilledSystem:
        filled = [each for (system, _), each in self._filled.items() if system == name]
        seconds = sum(each.ingest_ms for each in filled) / 1e3
        documents = sum(each.documents for each in filled)
        disk = [each.disk_bytes for each in filled if each.disk_bytes is not None]
        incident = self._incidents.get(name)
        known = self.systems.get(name, SystemRecord(name=name))
        return FilledSystem(
            **known.model_dump(),
            documents=documents,
            chunks=sum(each.chunks for each in filled),
            vectors=sum(each.vectors for each in filled),
            ingest_s=seconds,
            documents_per_s=documents / seconds if seconds else None,
            disk_bytes=max(disk, default=None),
            incident=Incident.of(incident) if incident else None,
        )
