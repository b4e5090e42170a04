"""Results as CSV, a row for each question, check and figure."""

from collections.abc import Iterable

from memconform.printing.escaping import Lines, printable
from memconform.printing.spreadsheets import csv_line
from memconform.reports.overview.outcomes import Figure, Outcome
from memconform.storage.sink import Masked, Sink

HEADER = (
    *("sdk", "suite", "id", "title", "status", "detail", "message", "ms", "tags"),
    *("figure", "value", "low", "high"),
)


def write_csv(target: Sink, outcomes: Iterable[Outcome]) -> None:
    """Write outcomes as CSV (RFC 4180); texts that a spreadsheet would execute begin with `'`."""
    lines = [csv_line(HEADER, "\r\n")]
    for outcome in outcomes:
        texts = [outcome.sdk, outcome.suite, outcome.id, outcome.title, outcome.status.value]
        texts += [outcome.detail, outcome.message]
        ms = "" if outcome.ms is None else f"{outcome.ms:.3f}"
        cells = (*map(_shown, texts), ms, _shown(" ".join(outcome.tags)))
        lines += [
            csv_line((*cells, *_figure_cells(figure)), "\r\n")
            for figure in outcome.figures or (None,)
        ]
    target.write_masked(Masked("".join(lines).encode("utf-8", "backslashreplace")))


def _figure_cells(figure: Figure | None) -> tuple[str | float, ...]:
    if figure is None:
        return ("",) * 4
    return figure.name, figure.value, *(figure.interval or ("", ""))


def _shown(text: str) -> str:
    return printable(Lines(text))
