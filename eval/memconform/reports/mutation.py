"""Reports of the mutation score: terminal output, and the table of the README."""

from collections.abc import Mapping

from memconform.conformance.mutation.results import Fate, KillCount, MutationReport
from memconform.conformance.mutation.score import (
    BaselineCaseFinished,
    Event,
    MutantFinished,
    ScoringStarted,
)
from memconform.conformance.rules import rules
from memconform.printing.console import standard_error
from memconform.printing.plurals import plural
from memconform.reports.markdown import markdown_table
from memconform.reports.progress import ProgressReport


class MutationConsole(ProgressReport):
    """Event handler that shows the progress of a mutation run."""

    def __init__(self, mutants: int, *, quiet: bool = False) -> None:
        super().__init__(quiet=quiet)
        self._cases = self._progress.add_task("unmodified daemon", total=None)
        self._mutants = self._progress.add_task("mutants", total=mutants)

    def handle(self, event: Event) -> None:
        """Advance the progress bars."""
        match event:
            case ScoringStarted():
                self._progress.update(self._cases, total=event.cases)
            case BaselineCaseFinished():
                self._progress.advance(self._cases)
            case MutantFinished():
                self._progress.advance(self._mutants)


def mutation_table(scores: Mapping[str, KillCount]) -> str:
    """Render killed and total mutants by profile as Markdown."""
    killed, total = (sum(getattr(s, n) for s in scores.values()) for n in ("killed", "total"))
    rows = [[name, f"{score.killed} of {score.total}"] for name, score in scores.items()]
    rows.append(["all", f"{killed} of {total}"])
    return "\n".join(markdown_table(["profile", "mutants killed"], rows, left=range(2)))


def mutation_banner(report: MutationReport) -> str:
    """Format `<sdk>: <killed> of <total> mutants killed, <n> false alarms in <cases> cases …`."""
    line = f"{report.sdk}: {report.killed} of {plural(report.total, 'mutant')} killed"
    if report.left_out:
        line += f", {report.left_out} not applicable to this SDK"
    alarms = plural(len(report.false_alarms), "false alarm")
    cases = plural(report.cases_tried, "case")
    return f"{line}, {alarms} in {cases} on the unmodified daemon, {report.took_s:.0f} s"


def show_survivors(report: MutationReport) -> None:
    """Print false alarms and mutants that were not killed to standard error."""
    console = standard_error()
    for alarm in report.false_alarms:
        console.print(
            f"FALSE ALARM {alarm.check} ({alarm.result}) on the unmodified daemon", style="bold red"
        )
        for line in alarm.got:
            console.print(f"    got       {line}")
    if report.false_alarms:
        console.print(f"{report.sdk} fails these without any mutation: see memconform conform")
    for result in report.mutants:
        if result.fate is not Fate.KILLED:
            style = "bold red" if result.level == "must" else "yellow"
            console.print(f"{result.fate.value.upper():<10} {result.id}", style=style)
            console.print(f"    breaks    {result.breaks}")
            console.print(f"    rule      {result.rule}: {rules()[result.rule].text}")
            for line in result.got:
                console.print(f"    untested  {line}")
