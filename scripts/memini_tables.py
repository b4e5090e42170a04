"""Figures that another system's authors publish, beside the published rows of the same measurement.

They are data with a source (`results/published/memini.json`), so that a table of them and of our
rows, with the differences, is generated like the other tables.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from memconform.bench.records import BenchReport, Scores, View
from memconform.bench.tasks import ALL
from memconform.errors import UsageError
from memconform.reports.markdown import markdown_table
from memconform.validation_faults import first_fault

_METRICS = ("recall_any@5", "recall_any@10", "mrr@10")
_DATE_FIGURES = (
    ("both", "recall_any@1"),
    ("knowledge-update", "recall_any@1"),
    ("temporal-reasoning", "recall_any@1"),
    ("both", "mrr@10"),
)
"""Scope and metric: all questions, or those of a category."""


def _require_figures(theirs: Mapping[str, float], names: Sequence[str]) -> None:
    if list(theirs) != list(names):
        raise ValueError(f"theirs must have {', '.join(names)}, in this order")


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class RowName(_Data):
    """A row of a published bench."""

    bench: str
    """The name of its file, without suffix."""
    row: str
    """System and strategy, such as `go hybrid kernel=inverse-l2`."""


class OtherRow(_Data):
    """A row of theirs, with ours or the reason for its absence."""

    benchmark: str
    system: str
    theirs: dict[str, float]
    """In percent, by the names of our metrics."""
    ours: RowName | None = None
    absent: str | None = None
    """Why there is no row of ours."""

    @model_validator(mode="after")
    def _is_complete(self) -> "OtherRow":
        if (self.ours is None) == (self.absent is None):
            raise ValueError("give either ours or absent")
        _require_figures(self.theirs, _METRICS)
        return self


class DateRow(_Data):
    """A ranking by dates, whose figures are named `SCOPE METRIC`, and our row of it."""

    ranking: str
    row: str
    theirs: dict[str, float]

    @model_validator(mode="after")
    def _is_complete(self) -> "DateRow":
        _require_figures(self.theirs, [" ".join(figure) for figure in _DATE_FIGURES])
        return self


class DateRows(_Data):
    """Rankings by dates; our scores are those of all queries of several benches."""

    benches: list[str]
    rows: list[DateRow]


class OtherFigures(_Data):
    """Everything that is compared with one other system."""

    name: str
    source: str
    """The address of the page that has the figures, at a fixed commit."""
    setting: str
    """How they were measured there, in words."""
    rows: list[OtherRow]
    dates: DateRows


def read_others(path: Path) -> OtherFigures:
    """Read the published figures of another system.

    Raises:
        UsageError: if the file is missing or invalid (`not_published`).
    """
    try:
        return OtherFigures.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        fault = first_fault(error) if isinstance(error, ValidationError) else str(error)
        raise _unpublished(f"{path}: {fault}", "restore the file from the repository") from error


def comparison_table(others: OtherFigures, benches: Mapping[str, BenchReport]) -> str:
    """A row for each of theirs: their metrics, ours, and the differences in points.

    Raises:
        UsageError: if a row that is named is not published (`not_published`).
    """
    rows = []
    for row in others.rows:
        scores = None if row.ours is None else _view(benches, row.ours)
        name = f"not measured: {row.absent}" if row.ours is None else row.ours.row
        cells = [row.benchmark, row.system, name]
        for metric in _METRICS:
            ours = None if scores is None else scores.metrics[metric].value
            cells += _pair(row.theirs[metric], ours)
        rows.append(cells)
    return _table(others, ["benchmark", f"{others.name}'s row", "ours"], _METRICS, rows)


def dates_comparison_table(others: OtherFigures, benches: Mapping[str, BenchReport]) -> str:
    """The same for rankings by dates: over all of their questions, and by category.

    Raises:
        UsageError: as `comparison_table`.
    """
    rows = []
    for row in others.dates.rows:
        views = [_view(benches, RowName(bench=name, row=row.row)) for name in others.dates.benches]
        by_scope: dict[str, Sequence[Scores]] = {"both": views}
        for view in views:
            by_scope |= {name: [scores] for name, scores in view.by_category.items()}
        cells = [row.ranking]
        for scope, metric in _DATE_FIGURES:
            if scope not in by_scope:
                raise _unpublished(
                    f"{', '.join(others.dates.benches)}: no category {scope}",
                    "name the benches of all categories",
                )
            ours = _mean(by_scope[scope], metric)
            cells += _pair(row.theirs[f"{scope} {metric}"], ours)
        rows.append(cells)
    return _table(others, ["ranking"], [" ".join(figure) for figure in _DATE_FIGURES], rows)


def _table(
    others: OtherFigures,
    names: Sequence[str],
    figures: Sequence[str],
    rows: Sequence[Sequence[str]],
) -> str:
    """The table, and its source. Each figure has a column of theirs and one of ours."""
    header = [*names, *(name for figure in figures for name in (figure, "ours"))]
    source = (
        f"Source: [{others.name}]({others.source}), {others.setting}. Behind ours: the difference."
    )
    return "\n".join([*markdown_table(header, rows, left=range(len(names))), "", source]) + "\n"


def _pair(theirs: float, ours: float | None) -> list[str]:
    """Both values; the difference is that of the rounded ones, which a reader sees."""
    if ours is None:
        return [f"{theirs:.1f}", "-"]
    difference = round(round(ours, 1) - theirs, 1)
    sign = "+" if difference > 0 else ""
    return [f"{theirs:.1f}", f"{ours:.1f} ({sign}{difference or 0:.1f})"]


def _mean(scores: Sequence[Scores], metric: str) -> float:
    queries = sum(each.queries for each in scores)
    return sum(each.metrics[metric].value * each.queries for each in scores) / queries


def _view(benches: Mapping[str, BenchReport], name: RowName) -> View:
    report = benches.get(name.bench)
    rows = [] if report is None else report.rows
    for row in rows:
        if f"{row.system} {row.strategy}" == name.row and ALL in row.views:
            return row.views[ALL]
    raise _unpublished(
        f"bench/{name.bench}.json has no measured row {name.row!r}",
        f"publish it: scripts/publish.py bench/{name.bench}",
    )


def _unpublished(message: str, hint: str) -> UsageError:
    return UsageError(message, code="not_published", hint=hint)
