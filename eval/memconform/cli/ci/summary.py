"""The page of a CI job: what each step came to, then the report of the results."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from memconform.cli.commands import Command
from memconform.cli.lazy import import_command
from memconform.errors import ExitCode
from memconform.printing.escaping import Lines, printable
from memconform.reports.markdown import markdown_table

_MOST_LINES = 100
"""Lines of a failed `doctor` that the page shows; all are in the job's log."""


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """A command of the job, and how it ended."""

    name: str
    verb: str
    command: str
    """As a shell takes it."""
    exit_code: ExitCode
    output: str = ""
    """What it printed, if it has no result that a report could show."""

    @property
    def meaning(self) -> str:
        """What its exit code means, as its help says."""
        command = import_command(f"{self.verb}.command:command")
        codes = command.exit_codes if isinstance(command, Command) else {}
        text = codes.get(self.exit_code, self.exit_code.name.lower())
        return (
            text if self.exit_code is ExitCode.OK else f"{text} (exit code {int(self.exit_code)})"
        )


def render_summary(outcomes: Sequence[StepOutcome], report: str, notes: Sequence[str]) -> str:
    """Render the page in Markdown; texts of commands and daemons are escaped."""
    rows = [
        [outcome.name, _mark(outcome.exit_code), outcome.meaning, outcome.command]
        for outcome in outcomes
    ]
    table = markdown_table(("step", "", "outcome", "command"), rows, left=range(4))
    parts = ["\n".join(table)]
    if notes:
        parts.append("\n".join(f"- {printable(note)}" for note in notes))
    if report:
        parts.append(report.rstrip())
    for outcome in outcomes:
        if outcome.output and outcome.exit_code is not ExitCode.OK:
            lines = outcome.output.splitlines()
            shown = printable(Lines("\n".join(lines[:_MOST_LINES])))
            title = f"<summary>What {outcome.name} printed</summary>"
            body = html.escape(shown)
            parts.append(f"<details>{title}\n\n<pre>\n{body}\n</pre>\n</details>")
    return "\n\n".join(parts) + "\n"


def _mark(code: ExitCode) -> str:
    if code is ExitCode.OK:
        return "✅"
    return "❌" if code is ExitCode.FAILED else "❔"
