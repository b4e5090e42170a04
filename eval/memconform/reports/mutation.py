"""The mutation score on the terminal, and as the table that a README shows."""

from collections.abc import Mapping

from memconform.conformance.mutation.results import Fate, KillCount, MutationReport
from memconform.conformance.mutation.score import (
    BaselineCaseFinished,
    Event,
    MutantFinished,
    ScoringStarted,
)
from memconform.conformance.rules import rules
from memconform.reports.console import ProgressReport, standard_error


class MutationConsole(ProgressReport):
    """Listens to the events of a score."""

    def __init__(self, mutants: int) -> None:
        super().__init__()
        self._cases = self._progress.add_task("nothing broken", total=None)
        self._mutants = self._progress.add_task("mutants", total=mutants)

    def handle(self, event: Event) -> None:
        match event:
            case ScoringStarted():
                self._progress.update(self._cases, total=event.cases)
            case BaselineCaseFinished():
                self._progress.advance(self._cases)
            case MutantFinished():
                self._progress.advance(self._mutants)


def mutation_table(scores: Mapping[str, KillCount]) -> str:
    """Markdown: killed of total, by profile."""
    lines = ["| profile | mutants killed |", "| --- | --- |"]
    lines += [f"| {name} | {s.killed} of {s.total} |" for name, s in scores.items()]
    killed, total = (sum(getattr(s, n) for s in scores.values()) for n in ("killed", "total"))
    return "\n".join([*lines, f"| all | {killed} of {total} |"])


def mutation_banner(report: MutationReport) -> str:
    """`<sdk>: <killed> of <total> mutants killed, <n> false alarms of <cases> cases …, <s> s`."""
    line = f"{report.sdk}: {report.killed} of {report.total} mutants killed"
    if report.left_out:
        line += f", {report.left_out} skipped: this SDK cannot be made into them"
    alarms = f"{len(report.false_alarms)} false alarms of {report.cases_tried} cases"
    return f"{line}, {alarms} where nothing is broken, {report.took_s:.0f} s"


def show_survivors(report: MutationReport) -> None:
    """What was not found, and what was found where nothing is, to standard error."""
    console = standard_error()
    for alarm in report.false_alarms:
        console.print(
            f"FALSE ALARM {alarm.check} ({alarm.result}) where nothing is broken", style="bold red"
        )
        for line in alarm.got:
            console.print(f"    got       {line}")
    if report.false_alarms:
        console.print(f"{report.sdk} fails these by itself: see memconform conform")
    for result in report.mutants:
        if result.fate is not Fate.KILLED:
            style = "bold red" if result.level == "must" else "yellow"
            console.print(f"{result.fate.value.upper():<10} {result.id}", style=style)
            console.print(f"    breaks    {result.breaks}")
            console.print(f"    rule      {result.rule}: {rules()[result.rule].text}")
            for line in result.got:
                console.print(f"    untested  {line}")
