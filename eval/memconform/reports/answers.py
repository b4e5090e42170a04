"""Answers by arm on the terminal."""

from collections.abc import Iterator

from memconform.bench.answering.records import AnswerReport, ArmReport
from memconform.bench.tasks import ALL
from memconform.printing.plurals import plural
from memconform.reports.accuracies import accuracy_cell, estimate_cell, metric_cell
from memconform.reports.console import table_console
from memconform.reports.fitted_table import fitting_table, omission
from memconform.reports.rates import NO_FIGURE, NOT_MEASURED
from memconform.scoring.statuses import QuestionStatus

_IMPORTANCE = ("accuracy", "kept %", "all gold shown", "some gold missing", "F1", "cost $")


def show_answers(report: AnswerReport, *, quiet: bool = False) -> None:
    """Print a table per view to standard error; `quiet` prints only what was not measured."""
    console = table_console(stderr=True)
    if not quiet:
        reader = report.settings.reader
        console.print(
            f"{report.settings.suite}: {plural(report.questions, 'question', spec=',')}, read by"
            f" {reader.model.model} ({reader.method}, {reader.prompts} prompts), judged by"
            f" {', '.join(judge.model for judge in report.settings.judge.models)}"
            f" ({report.settings.rubric}); accuracy in percent",
            style="bold",
        )
        for view in report.arms[0].views:
            header, cells = _table(report, view)
            console.print(view, style="bold")
            table, omitted = fitting_table(
                header, cells, console.width, names=1, importance=_IMPORTANCE
            )
            console.print(table)
            if omitted:
                console.print(omission(omitted, "--json FILE has all"), style="dim")
        for line in _notes(report):
            console.print(line, style="dim")
    for line in _faults(report):
        console.print(line, style="bold red")


def answer_lines(report: AnswerReport) -> Iterator[str]:
    """One line an arm: its name, accuracy, and how many questions count."""
    for arm in report.arms:
        overall = arm.views[ALL].overall
        yield f"{arm.name}: {accuracy_cell(overall)} of {overall.expected}"


def _table(report: AnswerReport, view: str) -> tuple[list[str], list[list[str]]]:
    categories = list(report.arms[0].views[view].by_category)
    is_all = view == ALL
    header = ["arm", "accuracy", "task-averaged", "abstention"]
    if is_all:
        header += ["kept %", "all gold shown", "some gold missing"]
        if any(arm.f1 is not None for arm in report.arms):
            header.append("F1")
        header += ["tokens in", "tokens out", "cost $"]
    header += categories
    cells = []
    for arm in report.arms:
        scores = arm.views[view]
        row = [
            arm.name,
            accuracy_cell(scores.overall),
            estimate_cell(scores.task_averaged.rate),
            accuracy_cell(scores.abstention) if scores.abstention.expected else NO_FIGURE,
        ]
        if is_all:
            row += [_kept(arm), accuracy_cell(arm.with_gold), accuracy_cell(arm.without_gold)]
            if "F1" in header:
                row.append(metric_cell(arm.f1))
            row += [
                f"{sum(use.input_tokens for use in arm.use):,}",
                f"{sum(use.output_tokens for use in arm.use):,}",
                f"{sum(use.cost_usd for use in arm.use):.4f}",
            ]
        row += [accuracy_cell(scores.by_category.get(category)) for category in categories]
        cells.append(row)
    return header, cells


def _kept(arm: ArmReport) -> str:
    if arm.kept is None or arm.kept.share is None:
        return NO_FIGURE
    return estimate_cell(arm.kept.share)


def _notes(report: AnswerReport) -> Iterator[str]:
    yield (
        "kept: the share of oracle's gain over no-memory, with Fieller's interval; all gold shown,"
        " some gold missing: accuracy on questions with an answer, by what the reader saw"
    )
    reasons = dict.fromkeys(
        arm.kept.why for arm in report.arms if arm.kept is not None and arm.kept.why
    )
    for reason in reasons:
        yield f"no share kept: {reason}"
    for arm in report.arms:
        if arm.cut:
            yield (
                f"{arm.name}: in {plural(arm.cut, 'question', spec=',')} some passages had no room"
                f" in {report.settings.reader.context_tokens:,} tokens"
            )
    cached, calls = (
        sum(getattr(use, name) for arm in report.arms for use in arm.use)
        for name in ("cached", "calls")
    )
    if cached:
        yield f"{cached:,} of {calls:,} calls were cached, and count no tokens"
    if report.data.pinned is None:
        yield "dataset file: not one of the pinned versions"


def _faults(report: AnswerReport) -> Iterator[str]:
    """What kept the report from being complete, or puts it in doubt."""
    asked = report.settings.reader.model.model.partition(":")[2]
    others = [name for name in report.served_models if not name.startswith(asked)]
    if others:
        yield f"the reader is not {asked}: the service says that it used {', '.join(others)}"
    if report.incident is not None:
        yield f"{report.incident.code}: {report.incident.message}"
        yield f"  try: {report.incident.hint}"
    for arm in report.arms:
        missing = sum(n for status, n in arm.statuses.items() if not status.measured)
        if not missing:
            continue
        overall = arm.views[ALL].overall
        right = f"; {overall.correct} of {overall.measured} measured ones are right"
        yield (
            f"{arm.name}: {plural(missing, 'question')} {NOT_MEASURED} ({_counts(arm)})"
            f"{right if overall.measured else ''}"
        )
        yield from (f"  {failure}" for failure in arm.failures)
        if arm.incident is not None and arm.incident.hint:
            yield f"  try: {arm.incident.hint}"
    for arm in report.arms:
        if arm.other_retrieval:
            yield (
                f"{arm.name}: {plural(arm.other_retrieval, 'answer', spec=',')} from other items"
                " than the daemon's search found: the two arms differ in more than the reader"
            )


def _counts(arm: ArmReport) -> str:
    names = {QuestionStatus.NOT_RUN: "without an answer or a verdict"}
    return ", ".join(
        f"{count} {names.get(status, status.value)}"
        for status, count in arm.statuses.items()
        if not status.measured
    )
