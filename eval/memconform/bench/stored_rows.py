"""Rows of stored bench results with their queries, to compare and to export them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import fmean
from string import ascii_uppercase

from pydantic import ValidationError

from memconform.bench.query_scores import query_metrics
from memconform.bench.records import BENCH_SCHEMA, BenchReport, QueryRecord, Row, Scores
from memconform.errors import UsageError, nearest
from memconform.stats.stored_figures import is_same_figure
from memconform.storage.folders import ROW_MARK, find_result, split_reference
from memconform.storage.result_file import read_head, read_lines, require_schema, schema_of
from memconform.validation_faults import first_fault


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One system with one strategy of a stored result, with every query that was recorded."""

    name: str
    """Unique among the rows loaded together: `go bm25`, or `A: go bm25` of several results."""
    path: Path
    report: BenchReport
    row: Row
    records: Mapping[str, QueryRecord]
    """By query id, in the order of the file. A query that the bench did not reach has none."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Run id, system and strategy."""
        return self.report.run_id, self.row.system, self.row.strategy

    @property
    def address(self) -> str:
        """The reference that selects this row: `RUN-ID#SYSTEM/STRATEGY`."""
        return f"{self.report.run_id}{ROW_MARK}{row_label(self.row)}"

    def measured(self, query: str) -> QueryRecord | None:
        """The record of a query; None if it was not measured."""
        record = self.records.get(query)
        return record if record is not None and record.error is None else None


def row_label(row: Row) -> str:
    """The part of an address behind the mark: `SYSTEM/STRATEGY`, of a baseline `SYSTEM`."""
    return f"{row.system}/{row.strategy}" if row.strategy else row.system


def is_bench_report(path: Path) -> bool:
    """Whether a file declares itself the report or the result of a bench.

    Raises:
        OSError: if it is unreadable.
    """
    try:
        return schema_of(path) == BENCH_SCHEMA
    except (ValueError, RecursionError):
        return False


def read_report(path: Path) -> BenchReport:
    """Read the report of a result, or of `bench --json`, which has no queries.

    Raises:
        UsageError: if it is invalid, or its queries contradict it (`result_unreadable`).
    """
    try:
        loaded = json.loads(path.read_bytes())
        if "questions" not in loaded:
            return BenchReport.model_validate(loaded)
    except ValidationError as error:
        raise _unreadable(path, first_fault(error)) from error
    except (ValueError, OSError, RecursionError) as error:
        raise _unreadable(path) from error
    [first, *_] = _read(path)
    return first.report


def load_rows(references: Sequence[str], output: Path) -> list[StoredRow]:
    """Load the rows that references select, in their order.

    A reference is a result file, a run's folder or a run id below `output`; `#SYSTEM`,
    `#SYSTEM/STRATEGY` or a pattern such as `#*/hybrid*` behind it selects some of its rows.

    Raises:
        UsageError: if a result is missing (`unknown_run`), is not a bench's with its queries or
            was edited (`result_unreadable`), has no such row (`unknown_row`), or a row was given
            twice (`one_run_twice`).
    """
    return [stored for side in load_sides(references, output) for stored in side]


def load_sides(references: Sequence[str], output: Path) -> list[list[StoredRow]]:
    """Load the rows that each reference selects, as `load_rows` does; no list is empty."""
    results: dict[Path, list[StoredRow]] = {}
    sides: list[list[StoredRow]] = []
    for reference in references:
        result, pattern = split_reference(reference)
        path = find_result(output, result)
        if path not in results:
            require_schema("bench-report", path)
            results[path] = _read(path)
        sides.append(_matching(results[path], pattern, path))
    named = iter(_named([stored for side in sides for stored in side]))
    return [[next(named) for _ in side] for side in sides]


def _matching(rows: Sequence[StoredRow], pattern: str, path: Path) -> list[StoredRow]:
    if not pattern:
        return list(rows)
    labels = [row_label(stored.row) for stored in rows]
    # A label may contain a bracket, so it is compared as it is before it is taken as a pattern.
    if pattern in labels:
        return [rows[labels.index(pattern)]]
    matching = [
        stored
        for stored, label in zip(rows, labels, strict=True)
        if stored.row.system == pattern or fnmatchcase(label, pattern)
    ]
    if not matching:
        raise UsageError(
            f"{path} has no row {pattern!r}",
            code="unknown_row",
            hint=nearest(pattern, labels) or f"its rows are {', '.join(labels)}",
        )
    return matching


def _named(rows: Sequence[StoredRow]) -> list[StoredRow]:
    """Give each row a name that is unique: with a letter for its result if there are several."""
    keys = [stored.key for stored in rows]
    for stored in rows:
        if keys.count(stored.key) > 1:
            raise UsageError(
                f"row {stored.address} was given twice",
                code="one_run_twice",
                hint="name each row once",
            )
    runs = list(dict.fromkeys(run_id for run_id, _, _ in keys))
    letters = [*ascii_uppercase, *(str(number) for number in range(27, len(runs) + 1))]
    prefix = dict(zip(runs, letters, strict=False)) if len(runs) > 1 else {}
    named = []
    for stored in rows:
        name = f"{stored.row.system} {stored.row.strategy}".strip()
        if letter := prefix.get(stored.report.run_id):
            name = f"{letter}: {name}"
        named.append(replace(stored, name=name))
    return named


def _read(path: Path) -> list[StoredRow]:
    try:
        report = BenchReport.model_validate_json(read_head(path))
        by_row: dict[tuple[str, str], dict[str, QueryRecord]] = {
            (row.system, row.strategy): {} for row in report.rows
        }
        for line in read_lines(path):
            record = QueryRecord.model_validate_json(line)
            records = by_row.get((record.system, record.strategy))
            if records is None or record.query in records:
                raise _contradiction(path, f"query {record.query!r} of {record.system}")
            records[record.query] = record
    except ValidationError as error:
        raise _unreadable(path, first_fault(error)) from error
    except (ValueError, OSError, RecursionError) as error:
        raise _unreadable(path, str(error) if isinstance(error, ValueError) else "") from error
    stored = [
        StoredRow("", path, report, row, by_row[row.system, row.strategy]) for row in report.rows
    ]
    for each in stored:
        _require_consistent(each)
    return stored


def _require_consistent(stored: StoredRow) -> None:
    """Check that the queries give the counts and the means that the report states."""
    row = stored.row
    label = row_label(row)
    missing = row.queries - sum(record.error is None for record in stored.records.values())
    if missing != row.not_measured:
        raise _contradiction(
            stored.path, f"{label} reports {row.not_measured} queries not measured, has {missing}"
        )
    for name, view in row.views.items():
        scopes: Mapping[str, Scores] = {"all": view} | {
            f"category {category}": scores for category, scores in view.by_category.items()
        }
        values = _values(stored, name)
        for scope, scores in scopes.items():
            if fault := _fault(scores, values.get(scope, [])):
                raise _contradiction(stored.path, f"{label}, view {name}, {scope}: {fault}")


def _values(stored: StoredRow, view: str) -> dict[str, list[dict[str, float]]]:
    """The metrics of the queries of a view: of all and by category."""
    ks = stored.report.settings.ks
    values: dict[str, list[dict[str, float]]] = {}
    for record in stored.records.values():
        if (relevance := record.views.get(view)) is not None:
            measured = query_metrics(record, relevance, ks)
            for scope in ("all", f"category {record.category}"):
                values.setdefault(scope, []).append(measured)
    return values


def _fault(reported: Scores, values: Sequence[Mapping[str, float]]) -> str | None:
    """What a report states otherwise than its queries do."""
    if not values or not reported.metrics:
        return "has no query, or no metric"
    if reported.queries != len(values):
        return f"reports {reported.queries} queries, has {len(values)}"
    # Reports of other versions may have metrics of other names.
    for metric in reported.metrics.keys() & values[0].keys():
        stated, actual = reported.metrics[metric].value, 100 * fmean(v[metric] for v in values)
        if not is_same_figure(stated, actual):
            return f"reports {metric} {stated}, has {actual}"
    return None


def _contradiction(path: Path, excerpt: str) -> UsageError:
    return UsageError(
        f"{path} contradicts itself",
        code="result_unreadable",
        hint="give a result as `bench` wrote it: results/runs/<run-id>/result.json",
        excerpt=excerpt,
    )


def _unreadable(path: Path, excerpt: str = "") -> UsageError:
    return UsageError(
        f"{path} is not the result of a bench with its queries",
        code="result_unreadable",
        hint="give results/runs/<run-id>/result.json, the run's folder or its id; the file of"
        " `bench --json` has no queries",
        excerpt=excerpt,
    )
