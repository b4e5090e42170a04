"""Load reports: progress, a table of all SDKs, and where each stopped keeping up."""

from collections.abc import Sequence

from memconform.load.events import (
    LoadEvent,
    LoadFinished,
    SdkHalted,
    SdkStarted,
    StepFinished,
    StepStarted,
)
from memconform.load.plan import LoadPlan
from memconform.load.records import LoadReport, OperationRecord, SdkLoad, StepRecord
from memconform.printing.errors import render_error
from memconform.printing.escaping import Lines
from memconform.printing.plurals import plural
from memconform.reports.console import table_console
from memconform.reports.fitted_table import fitting_table, omission
from memconform.reports.progress import RowsProgress
from memconform.reports.rates import NO_FIGURE

_HEADER = (
    *("sdk", "load", "operation", "sent", "answered", "errors", "answers/s"),
    *("p50 ms", "p99 ms", "p99.9 ms", "service p99", "late p99"),
    *("daemon cores", "other cores", "MiB", "verdict"),
)
_IMPORTANCE = ("verdict", "p99 ms", "answers/s", "p50 ms", "errors", "late p99", "other cores")


class LoadConsole(RowsProgress):
    """Event handler that shows the progress of a load, with a row per SDK."""

    def __init__(self, plan: LoadPlan, names: Sequence[str], *, quiet: bool = False) -> None:
        super().__init__(names, quiet=quiet)
        self._steps = len(plan.steps)

    def handle(self, event: LoadEvent) -> None:
        """Update the rows, and print an error that halts an SDK."""
        match event:
            case SdkStarted():
                self.begin(event.sdk, "starting", self._steps)
            case StepStarted():
                self.tell(event.sdk, event.step.label)
            case StepFinished():
                self.advance(event.sdk)
                if event.record.failure is not None:
                    text = f"{event.sdk} {_load(event.record)}: {event.record.failure.message}"
                    self._console.print(Lines(text), style="yellow")
            case SdkHalted():
                self.end(event.sdk, "failed")
                self._console.print(Lines(f"{event.sdk}: {render_error(event.error)}"), style="red")
            case LoadFinished():
                for sdk in event.report.sdks:
                    if sdk.incident is None:
                        self.end(sdk.sdk, "done")


def show_load(report: LoadReport) -> None:
    """Print the table of all SDKs, and what follows from it."""
    console = table_console(stderr=False)
    header, rows = load_table(report)
    if rows:
        table, omitted = fitting_table(header, rows, console.width, names=3, importance=_IMPORTANCE)
        console.print(table)
        if omitted:
            console.print(omission(omitted, "--json has all"))
    for sdk in report.sdks:
        if sdk.saturation is not None:
            console.print(f"{sdk.sdk}: {sdk.saturation.statement}")
        for step in sdk.steps:
            if (slow := step.slow_readers) is not None:
                failed = sum(slow.errors.values())
                console.print(
                    f"{sdk.sdk} {_load(step)}: {plural(slow.readers, 'slow reader')} opened"
                    f" {plural(slow.opened, 'answer')}: {slow.completed} read to the end,"
                    f" {slow.interrupted} open at the end of the step, {failed} failed"
                )
    if (note := busy_machine(report)) is not None:
        console.print(note)
    for line in report.missed:
        console.print(f"--max-p99 missed: {line}")


def load_table(report: LoadReport) -> tuple[Sequence[str], list[list[str]]]:
    """The header and the rows of the table, one for each operation of each step of each SDK."""
    return _HEADER, [
        _row(sdk, step, each)
        for sdk in report.sdks
        for step in sdk.steps
        for each in step.operations
    ]


def _load(step: StepRecord) -> str:
    return f"{step.rate:g}/s" if step.rate is not None else f"{step.workers} closed"


def _row(sdk: SdkLoad, step: StepRecord, each: OperationRecord) -> list[str]:
    """Cells of one operation of a step; a step that was not measured has no figures."""
    latency, daemon = each.latency or each.service, step.daemon
    share = each.answered / step.answered if step.answered else 0.0
    rate = None if step.achieved_per_s is None else step.achieved_per_s * share
    quantiles: list[float | None] = [None] * 4
    if latency is not None and each.service is not None:
        quantiles = [latency.p50_ms, latency.p99_ms, latency.p999_ms, each.service.p99_ms]
    return [
        sdk.sdk,
        _load(step),
        each.operation,
        str(each.sent),
        str(each.answered),
        str(sum(each.errors.values())),
        *map(_figure, [rate, *quantiles]),
        _figure(step.lateness.p99_ms),
        NO_FIGURE if daemon is None else f"{daemon.cpu_cores:.2f}",
        f"{_other_cores(step):.2f}",
        NO_FIGURE if daemon is None else f"{daemon.rss_peak_bytes / 2**20:.0f}",
        _verdict(step),
    ]


def busy_machine(report: LoadReport) -> str | None:
    """A note if other programs used half of the machine or more in a measured step."""
    measured = [s for sdk in report.sdks for s in sdk.steps if s.status == "measured"]
    busiest = max(measured, key=_other_cores, default=None)
    if busiest is None or _other_cores(busiest) < busiest.machine_cores / 2:
        return None
    return (
        f"other programs used up to {_other_cores(busiest):.2f} of {busiest.machine_cores}"
        " processors, the upstream included: latencies contain the wait for them"
    )


def _other_cores(step: StepRecord) -> float:
    """Processors that neither the harness nor the daemon kept busy; its upstream is among them."""
    own = step.lateness.cpu_cores + (0.0 if step.daemon is None else step.daemon.cpu_cores)
    return max(step.machine_cores_busy - own, 0.0)


def _figure(value: float | None) -> str:
    return NO_FIGURE if value is None else f"{value:.1f}"


def _verdict(step: StepRecord) -> str:
    if step.failure is not None:
        return f"not measured: {step.failure.code}"
    if step.saturated is None:
        return "measured"
    return "saturated" if step.saturated else "keeps up"


def load_banner(report: LoadReport) -> str:
    """Format how many steps were measured, of which SDKs."""
    steps = [step for sdk in report.sdks for step in sdk.steps]
    measured = sum(step.status == "measured" for step in steps)
    names = ", ".join(sdk.sdk for sdk in report.sdks)
    missed = f"; --max-p99 missed {plural(len(report.missed), 'time')}" if report.missed else ""
    return f"{names}: {measured} of {plural(len(steps), 'step')} measured{missed}"
