"""Scored answers on the terminal."""

from collections import Counter
from collections.abc import Iterator, Mapping

from memconform.bench.qa.authors_log import ACCEPTED_MODEL, official_lines
from memconform.bench.qa.records import (
    AnswerFile,
    OfficialFigures,
    QaMetrics,
    QaReport,
    RubricReport,
    TextScores,
)
from memconform.bench.tasks import ALL
from memconform.printing.console import standard_error
from memconform.printing.plurals import listed, plural
from memconform.reports.accuracies import accuracy_cell, estimate_cell, metric_cell
from memconform.reports.console import table_console
from memconform.reports.fitted_table import fitting_table, omission
from memconform.reports.rates import NOT_MEASURED
from memconform.reports.run_judges import judging_lines, reasoning_notice
from memconform.scoring.accuracy import QaScores
from memconform.scoring.statuses import QuestionStatus

_SHOWN = 10
_SHOWN_MESSAGES = 3
_Cells = list[list[str]]


def show_qa(report: QaReport, *, quiet: bool = False) -> None:
    """Print the tables to standard error; `quiet` prints only what was not measured."""
    console = table_console(stderr=True)
    if not quiet:
        console.print(
            f"{report.settings.suite}: {plural(report.data.questions, 'question', spec=',')},"
            f" {plural(report.hypotheses.answers, 'answer', spec=',')}; accuracy in percent",
            style="bold",
        )
        for heading, header, cells in _tables(report):
            console.print(heading, style="bold")
            table, omitted = fitting_table(header, cells, console.width, names=1)
            console.print(table)
            if omitted:
                console.print(omission(omitted, "--json FILE has all"), style="dim")
        for rubric in report.rubrics:
            for line in _rubric_lines(rubric):
                console.print(line)
        if (span := report.span) is not None:
            ends = f", from {span.lowest} to {span.highest}" if span.points else ""
            console.print(
                f"span: {span.points:.1f} points for the rubric alone{ends}, on"
                f" {plural(span.answers, 'answer', spec=',')} that every rubric measured",
                style="bold",
            )
    for line in _faults(report):
        console.print(line, style="bold red")
    for line in suspicions(report.hypotheses, stripped=report.settings.strip_reasoning):
        console.print(line, style="bold yellow")
    for line in () if quiet else _notices(report):
        console.print(line, style="yellow")


def metrics_lines(metrics: QaMetrics) -> Iterator[str]:
    """The scores of a log, a line each."""
    header, cells = _accuracy_cells(metrics.views)
    for view, *row in cells:
        for name, cell in zip(header[1:], row, strict=True):
            yield f"{view}, {name}: {cell}"
    yield from _official_lines(metrics.official)


def show_missing(metrics: QaMetrics) -> None:
    """Print to standard error which questions a log lacks."""
    if metrics.missing:
        standard_error().print(f"not in the log: {listed(metrics.missing)}", style="bold red")


def qa_banner(report: QaReport) -> Iterator[str]:
    """One line for each rubric, and for the scores by words: name, rate and count."""
    for rubric in report.rubrics:
        overall = rubric.views[ALL].overall
        scored = f"{report.settings.suite}, {rubric.name}"
        yield f"{scored}: {accuracy_cell(overall)} of {overall.expected}"
    if (text := report.text.get(ALL)) is not None:
        bleu = f", BLEU-1 {metric_cell(text.bleu1)}" if text.bleu1 is not None else ""
        yield f"{report.settings.suite}: F1 {metric_cell(text.f1)}{bleu} of {text.f1.questions}"


def _tables(report: QaReport) -> Iterator[tuple[str, list[str], _Cells]]:
    for view, text in report.text.items():
        yield f"{view}, by words", *_text_cells(text)
    if report.rubrics:
        for view in report.rubrics[0].views:
            rows = {rubric.name: rubric.views[view] for rubric in report.rubrics}
            yield f"{view}, by rubric", *_accuracy_cells(rows)


def _accuracy_cells(rows: Mapping[str, QaScores]) -> tuple[list[str], _Cells]:
    categories = list(
        dict.fromkeys(name for scores in rows.values() for name in scores.by_category)
    )
    header = ["", "overall", "task-averaged", "abstention", *categories]
    cells = [
        [
            name,
            accuracy_cell(scores.overall),
            estimate_cell(scores.task_averaged.rate),
            accuracy_cell(scores.abstention),
            *(accuracy_cell(scores.by_category.get(category)) for category in categories),
        ]
        for name, scores in rows.items()
    ]
    return header, cells


def _text_cells(text: TextScores) -> tuple[list[str], _Cells]:
    header = ["", "overall", *text.f1_by_category]
    cells = [["F1", metric_cell(text.f1), *map(metric_cell, text.f1_by_category.values())]]
    if text.bleu1 is not None:
        bleu = (text.bleu1_by_category.get(name) for name in text.f1_by_category)
        cells.append(["BLEU-1", metric_cell(text.bleu1), *map(metric_cell, bleu)])
    return header, cells


def _rubric_lines(rubric: RubricReport) -> Iterator[str]:
    prompts = "" if rubric.prompts == "own" else ", official prompts"
    yield f"{rubric.name}{prompts}, prompt {rubric.judging.prompt}:"
    yield from (f"  {line}" for line in judging_lines(rubric.judging))
    if (labels := rubric.substring_labels) is not None and labels.differing:
        yield (
            f"  {labels.correct} correct by the word yes, {labels.contains_yes} by its letters, as"
            f" evaluate_qa.py counts; they differ on {listed(labels.differing)}"
        )
    if rubric.official is not None:
        yield from (f"  {line}" for line in _official_lines(rubric.official))


def _official_lines(figures: OfficialFigures) -> Iterator[str]:
    yield "print_qa_metrics.py on the log, as fractions of the questions in it:"
    yield from (f"  {line.expandtabs(2)}" for line in official_lines(figures))
    if not figures.model_accepted:
        yield f"  (the script itself accepts labels of {ACCEPTED_MODEL} alone)"


def error_lines(answers: AnswerFile) -> Iterator[str]:
    """Say which answers are error messages."""
    if answers.errors:
        count = plural(len(answers.errors), "error message", spec=",")
        yield f"{NOT_MEASURED}, {count} instead of an answer:"
        messages = Counter(answers.errors.values())
        for message, times in messages.most_common(_SHOWN_MESSAGES):
            first = next(name for name, text in answers.errors.items() if text == message)
            yield f"  {times} of {message!r}, the first {first}"


def suspicions(answers: AnswerFile, *, stripped: bool) -> Iterator[str]:
    """What makes it doubtful that answers are a system's.

    `stripped` says whether their reasoning was removed.
    """
    if answers.reasoning:
        yield reasoning_notice(answers.reasoning, stripped=stripped)
    if (same := answers.same_text) is not None:
        text = repr(same.text) if same.text else "empty"
        yield f"{same.answers} of {answers.answers} answers are the same text: {text}"
    if answers.resembling_errors:
        yield (
            "scored, though the text begins as an error message does:"
            f" {listed(answers.resembling_errors)}"
        )
    if answers.empty:
        yield f"empty, which is wrong: {plural(answers.empty, 'answer', spec=',')}"


def _faults(report: QaReport) -> Iterator[str]:
    """What kept the report from being complete."""
    if report.incident is not None:
        yield f"{report.incident.code}: {report.incident.message}"
        if report.incident.hint:
            yield f"  try: {report.incident.hint}; --resume {report.run_id}"
    yield from error_lines(report.hypotheses)
    if report.hypotheses.missing and not report.settings.partial:
        yield f"{NOT_MEASURED}, no answer: {listed(report.hypotheses.missing)}"
    for rubric in report.rubrics:
        for status in (QuestionStatus.JUDGE_ERROR, QuestionStatus.NOT_RUN):
            if count := rubric.statuses.get(status, 0):
                overall = rubric.views[ALL].overall
                yield (
                    f"{rubric.name}: {plural(count, 'answer')} {status.value}, {NOT_MEASURED};"
                    f" {overall.correct} of {overall.measured} measured ones are right"
                )
        yield from (f"  {failure}" for failure in rubric.failures)


def _notices(report: QaReport) -> Iterator[str]:
    files = report.hypotheses
    if files.unknown:
        yield f"not questions of the benchmark, skipped: {listed(files.unknown)}"
    if files.repeated:
        yield f"repeated with the same answer, counted once: {listed(files.repeated)}"
    if files.missing and report.settings.partial:
        yield f"--partial: {plural(len(files.missing), 'question')} without an answer left out"
    if report.data.pinned is None:
        yield "dataset file: not one of the pinned versions"
