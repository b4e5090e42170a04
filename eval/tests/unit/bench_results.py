"""Result files of benches, made from rankings."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memconform.bench.records import (
    BenchReport,
    BenchSettings,
    DataSource,
    ErrataReport,
    QueryRecord,
    Relevance,
    SystemReport,
)
from memconform.bench.rows import row
from memconform.records import Failure
from memconform.storage.result_file import write_result
from memconform.storage.sink import json_bytes, replacing

Rankings = Mapping[str, Sequence[str] | None]
"""Rankings by query; None is a query that was not measured."""

SETTINGS = BenchSettings(
    format="memini",
    options={},
    content_sha256="c",
    chosen_sha256="q",
    disputed_sha256=None,
    pruned_sha256=None,
    index="isolated",
    ks=[1, 2],
)
_FAILURE = Failure(code="timeout", message="no answer in 1 s")


def gold_of(query: str) -> list[str]:
    """The gold of every query is one item."""
    return [f"{query}-gold"]


def write_bench(
    path: Path,
    rows: Mapping[tuple[str, str], Rankings],
    *,
    run_id: str = "run",
    started: datetime = datetime(2026, 1, 31, tzinfo=UTC),
    view_gold: Sequence[str] | None = None,
    views: Sequence[str] = ("all",),
    data: Mapping[str, Any] | None = None,
    errata: ErrataReport | None = None,
    **settings: Any,
) -> Path:
    """Write a result with a row per system and strategy; each query has its own haystack."""
    used = SETTINGS.model_copy(update=settings)
    records = [
        QueryRecord(
            system=system,
            strategy=strategy,
            haystack=f"h-{query}",
            query=query,
            category="one" if query < "q5" else "other",
            views={}
            if ranking is None
            else {view: Relevance(gold=list(view_gold or gold_of(query))) for view in views},
            ranking=list(ranking or ()),
            latency_ms=None if ranking is None else 2.0,
            search_ms=None,
            error=_FAILURE if ranking is None else None,
        )
        for (system, strategy), rankings in rows.items()
        for query, ranking in rankings.items()
    ]
    queries = max(len(rankings) for rankings in rows.values())
    report = BenchReport(
        run_id=run_id,
        suite="file",
        started_at=started,
        took_s=1.0,
        harness_version="1",
        python_version="3",
        host="host",
        git_revision=None,
        command=["memconform"],
        seed=0,
        settings=used,
        source=source(queries).model_copy(update=dict(data or {})),
        concurrency=1,
        resumed_from=None,
        overhead_ms=None,
        systems=[_system(name) for name in dict.fromkeys(system for system, _ in rows)],
        rows=[
            row(*key, queries, [r for r in records if (r.system, r.strategy) == key], None,
                ks=used.ks)
            for key in rows
        ],
        alike=[],
        errata=errata,
        exit_code=0,
    )  # fmt: skip
    with replacing(path) as target:
        write_result(target, report, map(json_bytes, records))
    return path


def source(queries: int) -> DataSource:
    return DataSource(
        path="/data.json", format="memini", options={}, made=[], sha256="", pinned=None,
        haystacks=1, items=9, queries=queries, with_gold=queries, dropped=0, silent=0,
    )  # fmt: skip


def _system(name: str) -> SystemReport:
    return SystemReport(
        name=name, version="1.2", build_hash="0123456789", documents=9, chunks=9, vectors=9,
        ingest_s=1.0, documents_per_s=9.0, disk_bytes=None, incident=None,
    )  # fmt: skip
