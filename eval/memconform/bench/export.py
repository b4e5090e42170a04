"""Exports of stored rows, query by query: CSV, JSON lines, and LongMemEval's retrieval log."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, cast, get_args

from memconform.bench.query_scores import first_gold_rank, query_metrics, scored_ranking
from memconform.bench.records import QueryRecord
from memconform.bench.retrieval_log import log_entry
from memconform.bench.stored_rows import StoredRow
from memconform.bench.tasks import OFFICIAL
from memconform.datasets.files import PieceReader
from memconform.datasets.haystacks import Level
from memconform.datasets.longmemeval import official_items, read_longmemeval_rows
from memconform.errors import UsageError
from memconform.printing.spreadsheets import csv_line
from memconform.records import Record
from memconform.storage.sink import Sink

ExportFormat = Literal["csv", "jsonl", "longmemeval"]
EXPORT_FORMATS: tuple[str, ...] = get_args(ExportFormat)


class ExportedQuery(Record):
    """A query of a row in one view; a query in no view has one entry without gold and metrics."""

    run_id: str
    system: str
    strategy: str
    haystack: str
    query: str
    category: str
    view: str
    gold: list[str]
    first_gold_rank: int | None
    """The rank of the first gold item, from 1; null if it is not ranked."""
    metrics: dict[str, float]
    """In [0, 1]; empty if the query was not measured or has no gold."""
    ranking: list[str]
    latency_ms: float | None
    error: str
    """Why the query was not measured, as `code: message`; empty if it was."""


def exported_queries(rows: Iterable[StoredRow]) -> Iterator[ExportedQuery]:
    """Yield every recorded query of the rows, once for each view."""
    for stored in rows:
        for record in stored.records.values():
            yield from _views(stored, record)


def _views(stored: StoredRow, record: QueryRecord) -> Iterator[ExportedQuery]:
    error = record.error
    common: dict[str, Any] = {
        "run_id": stored.report.run_id,
        "system": record.system,
        "strategy": record.strategy,
        "haystack": record.haystack,
        "query": record.query,
        "category": record.category,
        "latency_ms": record.latency_ms,
        "error": "" if error is None else f"{error.code}: {error.message}",
    }
    views = record.views if error is None else {}
    for name, relevance in views.items():
        ranking = scored_ranking(record, relevance)
        yield ExportedQuery(
            **common,
            view=name,
            gold=relevance.gold,
            first_gold_rank=first_gold_rank(ranking, relevance.gold),
            metrics=query_metrics(record, relevance, stored.report.settings.ks),
            ranking=ranking,
        )
    if not views:
        yield ExportedQuery(
            **common,
            view="",
            gold=[],
            first_gold_rank=None,
            metrics={},
            ranking=[] if error else record.ranking,
        )


def write_export(
    rows: Sequence[StoredRow], form: ExportFormat, target: Sink, data: Path | None = None
) -> None:
    """Write rows in a format; `data` is the benchmark's file, for `longmemeval`.

    Raises:
        UsageError: if the rows cannot be written in that format (`bad_export`), or the benchmark
            cannot be read.
    """
    match form:
        case "jsonl":
            for query in exported_queries(rows):
                target.write_json(query, indent=None)
        case "csv":
            _write_csv(rows, target)
        case "longmemeval":
            _write_log(rows, target, data)


def _write_csv(rows: Sequence[StoredRow], target: Sink) -> None:
    """Write a header and a line a query; lists are JSON, as an id may contain any character."""
    names = list(dict.fromkeys(name for query in exported_queries(rows) for name in query.metrics))
    columns = [name for name in ExportedQuery.model_fields if name != "metrics"]
    _write_line(target, [*columns, *names])
    for query in exported_queries(rows):
        cells = query.model_dump()
        metrics = cells.pop("metrics")
        values = [cells[name] for name in columns]
        figures = [metrics.get(name) for name in names]
        _write_line(target, [*values, *figures])


def _write_line(target: Sink, values: Iterable[Any]) -> None:
    cells = (
        json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value
        for value in values
    )
    target.write_text(csv_line(cells))


def require_log_format(rows: int, format_name: str) -> None:
    """Check that rows can be written as a retrieval log of LongMemEval.

    Raises:
        UsageError: if it is not one row of LongMemEval (`bad_export`).
    """
    if format_name != "longmemeval":
        raise _bad_export(
            f"a retrieval log needs a longmemeval file, not {format_name}",
            "write its queries: --format queries -o FILE.csv",
        )
    if rows != 1:
        raise _bad_export(
            f"a retrieval log has one ranking a question, but there are {rows} rows",
            "measure one system with one mode, or export one row of the result: memconform report"
            " RESULT#SYSTEM/STRATEGY --format retrieval-log -o FILE",
        )


def _write_log(rows: Sequence[StoredRow], target: Sink, data: Path | None) -> None:
    require_log_format(len(rows), rows[0].report.source.format)
    [stored] = rows
    source = stored.report.source
    path = data or Path(source.path)
    level = cast("Level", source.options["level"])
    depth = max(stored.report.settings.ks)
    written = 0
    with PieceReader(path) as reader:
        for question in read_longmemeval_rows(reader):
            record = stored.measured(question["question_id"])
            if record is None:
                continue
            # At turn level all turns are ranked (`QueryPlanner`).
            items = sum(1 for _ in official_items(question, level)) if level == "turn" else 0
            try:
                entry = log_entry(question, _entries(record), level, max(depth, items))
            except KeyError as error:
                raise _bad_export(
                    f"{path}: question {record.query!r} has no item {error.args[0]!r}",
                    "give the file that was measured with --data",
                ) from error
            target.write_json(entry, indent=None)
            written += 1
        if source.sha256 and reader.sha256 != source.sha256:
            raise _bad_export(
                f"{path} is not the file that was measured",
                f"give the file with sha256 {source.sha256} with --data",
            )
    if not written:
        raise _bad_export(
            f"{stored.address} has no measured query", "measure it again, then export it"
        )


def _entries(record: QueryRecord) -> list[str]:
    """The ranking; with repeated ids if the official view has kept them."""
    official = record.views.get(OFFICIAL)
    return record.ranking if official is None or official.ranking is None else official.ranking


def _bad_export(message: str, hint: str) -> UsageError:
    return UsageError(message, code="bad_export", hint=hint)
