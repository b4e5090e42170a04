"""Results in a few lines of Markdown, for the job summary of a CI server or a pull request."""

from collections.abc import Sequence

from memconform.printing.escaping import escape_markdown
from memconform.printing.plurals import plural
from memconform.reports.bench import bench_markdown
from memconform.reports.check_status import OutcomeStatus
from memconform.reports.markdown import markdown_table
from memconform.reports.overview.groups import RunGroup
from memconform.reports.overview.headline import Grade, Statement
from memconform.reports.overview.outcomes import Outcome
from memconform.reports.overview.overview import Overview
from memconform.reports.rates import pass_rate_text

_SHOWN = 20
_MARKS = {
    Grade.BAD: "❌",
    Grade.UNKNOWN: "❔",
    Grade.NOTED: "🔹",
    Grade.GOOD: "✅",
    Grade.CONTROL: "▫️",
}


def summary_markdown(
    overview: Overview, statements: Sequence[Statement], outcomes: Sequence[Outcome]
) -> str:
    """The verdict, the matrix of pass rates, the tables of benches, and the first failures."""
    lines: list[str] = []
    if statements:
        first = statements[0]
        lines += [f"## {_MARKS[first.grade]} {escape_markdown(first.sentence())}", ""]
        lines += [
            f"- {_MARKS[s.grade]} {escape_markdown(s.sentence())}" for s in statements[1:_SHOWN]
        ]
        lines += [""] if len(statements) > 1 else []
    if overview.groups:
        lines += [*_matrix(overview.groups), ""]
    lines += [bench_markdown(bench, by_category=False) for bench in overview.benches]
    for status, title in (
        (OutcomeStatus.FAILED, "Failed"),
        (OutcomeStatus.ERROR, "Not measured"),
    ):
        found = [outcome for outcome in outcomes if outcome.status is status]
        if found:
            lines += [*_list(title, found), ""]
    return "\n".join(lines)


def _matrix(groups: Sequence[RunGroup]) -> list[str]:
    sdks = sorted({run.name for group in groups for run in group.current})
    rows = []
    for group in groups:
        by_name = {run.name: run for run in group.current}
        cells = [
            pass_rate_text(by_name[sdk].summary) if sdk in by_name else "not run" for sdk in sdks
        ]
        parity = group.parity.verdict.value if group.parity is not None else "-"
        rows.append([group.name, *cells, parity])
    header = ["dataset, scenario, mode", *map(escape_markdown, sdks), "parity"]
    return markdown_table(header, rows, left=range(len(header)))


def _list(title: str, found: Sequence[Outcome]) -> list[str]:
    lines = [f"### {title}: {plural(len(found), 'test', spec=',')}", ""]
    for outcome in found[:_SHOWN]:
        name = escape_markdown(f"{outcome.sdk}, {outcome.suite}: {outcome.id}")
        lines.append(f"- **{name}** {escape_markdown(outcome.message or outcome.detail)}")
    if len(found) > _SHOWN:
        lines.append(f"- and {len(found) - _SHOWN:,} more")
    return lines
