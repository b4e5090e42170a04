"""Questions, checks, mutants and findings as test results, for formats that know nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass

from memconform.bench.records import BenchReport, Row
from memconform.bench.tasks import ALL
from memconform.conformance.mutation.results import Fate
from memconform.conformance.results import Check, Result
from memconform.fuzzing.results import FuzzReport
from memconform.load.records import LoadReport, StepRecord
from memconform.reports.check_status import CHECK_STATUS, OutcomeStatus
from memconform.reports.overview.groups import QuestionRow, RunGroup
from memconform.reports.overview.overview import Overview
from memconform.reports.rates import format_rate
from memconform.scoring.statuses import QuestionStatus


@dataclass(frozen=True, slots=True)
class Figure:
    """A rate in percent, or a latency in ms; its interval is 95 %."""

    name: str
    value: float
    interval: tuple[float, float] | None = None

    def text(self) -> str:
        """Format `recall_any@5 81.2 (74.0 to 86.9)`."""
        return f"{self.name} {format_rate(self.value, self.interval, measured=1, spec='.1f')}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One test's result. Texts are as daemons and datasets wrote them: formats escape them."""

    sdk: str
    suite: str
    """What was tested, such as the dataset and the scenario, or `conformance`."""
    id: str
    title: str
    status: OutcomeStatus
    detail: str
    """The status in the words of the verb that measured it."""
    message: str = ""
    """Why it did not pass."""
    trace: str = ""
    """What shows it: what was expected, the answer, a command."""
    ms: float | None = None
    tags: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    """What was measured, if that is more than a status."""


CONFORMANCE = "conformance"

_QUESTION = {
    QuestionStatus.CORRECT: OutcomeStatus.PASSED,
    QuestionStatus.INCORRECT: OutcomeStatus.FAILED,
    QuestionStatus.ABSTAINED: OutcomeStatus.FAILED,
    QuestionStatus.NOT_APPLICABLE: OutcomeStatus.SKIPPED,
}
"""Every other status is an error."""


def outcomes(overview: Overview) -> list[Outcome]:
    """Every outcome of an overview whose questions have not been read yet.

    Raises:
        UsageError: as `Overview.read_questions`.
    """
    found: list[Outcome] = []
    overview.read_questions(
        lambda number, row: found.extend(_questions(overview.groups[number], row))
    )
    return [*found, *_of_documents(overview)]


def _questions(group: RunGroup, row: QuestionRow) -> Iterator[Outcome]:
    for run, result in zip(group.current, row.results, strict=True):
        message = result.reason
        trace = [f"question: {result.question}"]
        if result.error is not None:
            message = f"{result.error.code}: {result.error.message}"
            trace += [result.error.curl] if result.error.curl else []
        elif result.verdict in (QuestionStatus.INCORRECT, QuestionStatus.ABSTAINED):
            trace.append(f"answer: {result.answer or ''}")
            message = message or "the answer does not pass"
        status = _QUESTION.get(result.verdict, OutcomeStatus.ERROR)
        detail = result.verdict.value
        if group.is_control and result.verdict.measured:
            # What a control gets right or wrong is neither a success nor a failure of a system.
            status, detail = OutcomeStatus.SKIPPED, f"control: {detail}"
            message = f"{detail}: {message}"
        yield Outcome(
            sdk=run.name,
            suite=group.name,
            id=result.id,
            title=result.question,
            status=status,
            detail=detail,
            message="" if result.passed else message,
            trace="" if result.passed else "\n".join(trace),
            ms=result.latency_ms,
            tags=tuple(result.tags),
        )


def _of_documents(overview: Overview) -> Iterator[Outcome]:
    for report in overview.conformance:
        for sdk in report.sdks:
            for case in sdk.cases:
                for check in case.checks:
                    ms = case.took_ms if check is case.checks[0] else 0.0
                    yield _check(sdk.sdk, case.title, check, ms)
            for number, problem in enumerate(sdk.problems):
                yield _problem(sdk.sdk, f"daemon {number + 1}", problem, OutcomeStatus.ERROR)
            for cause in sdk.stale_known:
                message = f"listed as known to fail, but no longer occurs: {cause}"
                yield _problem(sdk.sdk, f"known: {cause}", message, OutcomeStatus.FAILED)
    for mutation in overview.mutation:
        fates = {Fate.KILLED: OutcomeStatus.PASSED, Fate.SURVIVED: OutcomeStatus.FAILED}
        for mutant in mutation.mutants:
            status = fates.get(mutant.fate, OutcomeStatus.ERROR)
            message = (
                "" if status is OutcomeStatus.PASSED else f"{mutant.fate.value}: {mutant.breaks}"
            )
            yield Outcome(
                mutation.sdk, "mutation", mutant.id, mutant.breaks, status, mutant.fate.value,
                message, "\n".join(mutant.got), mutant.took_s * 1_000, (mutant.rule,),
            )  # fmt: skip
        for alarm in mutation.false_alarms:
            yield Outcome(
                mutation.sdk, "mutation", f"unmodified: {alarm.check}", "the unmodified daemon",
                OutcomeStatus.FAILED, alarm.result, "a check fails on the unmodified daemon",
                "\n".join(alarm.got),
            )  # fmt: skip
    for fuzz in overview.fuzzing:
        yield from _fuzzing(fuzz)
    for bench in overview.benches:
        yield from _rows(bench)
    for load in overview.loads:
        yield from _steps(load)


def _check(sdk: str, title: str, check: Check, ms: float) -> Outcome:
    lines = [f"expected: {check.expected}"] if check.expected else []
    lines += [*check.got, check.curl, f"rules: {', '.join(check.rules)}"]
    message = check.got[0] if check.got else check.result.value
    if check.result in (Result.XPASS, Result.XFAIL):
        message = f"known to fail: {check.known}"
    passed = check.result is Result.PASS
    return Outcome(
        sdk, CONFORMANCE, check.id, title, CHECK_STATUS[check.result], check.result.value,
        "" if passed else message, "" if passed else "\n".join(filter(None, lines)), ms,
        tuple(check.rules),
    )  # fmt: skip


def _problem(sdk: str, name: str, text: str, status: OutcomeStatus) -> Outcome:
    message = text.partition("\n")[0]
    return Outcome(sdk, CONFORMANCE, name, name, status, status.value, message, text)


def _fuzzing(report: FuzzReport) -> Iterator[Outcome]:
    sdks = ", ".join(report.sdks)
    against = report.against or "each other"
    found = report.disagreements or ([report.disagreement] if report.disagreement else [])
    for one in found:
        yield Outcome(
            sdks, "fuzzing", one.case, f"against {against}", OutcomeStatus.FAILED, "disagreement",
            f"{one.rule or 'the SDKs'}: differs at {one.pointer}", "\n".join(one.curl),
        )  # fmt: skip
    if not found and (report.exit_code or not report.examples):
        message = f"fuzz ended with exit code {report.exit_code} after {report.examples} programs"
        yield Outcome(
            sdks, "fuzzing", f"seed {report.seed}", f"against {against}", OutcomeStatus.ERROR,
            "not measured", message,
        )  # fmt: skip
    elif not found:
        title = f"{report.examples} programs against {against}"
        yield Outcome(
            sdks, "fuzzing", f"seed {report.seed}", title, OutcomeStatus.PASSED, "no disagreement"
        )


def _steps(report: LoadReport) -> Iterator[Outcome]:
    for sdk in report.sdks:
        for step in sdk.steps:
            name = f"{step.rate:g}/s" if step.rate is not None else f"{step.workers} closed"
            missed = [line for line in report.missed if line.startswith(f"{sdk.sdk} {name} ")]
            status = OutcomeStatus.FAILED if missed else OutcomeStatus.PASSED
            if step.status != "measured":
                status = OutcomeStatus.ERROR
            detail = step.status.replace("_", " ")
            yield Outcome(
                sdk.sdk, "load", name, f"{step.duration_s:g} s of {report.dataset}", status,
                "saturated" if step.saturated else detail, "; ".join(missed or step.reasons),
                figures=tuple(_step_figures(step)),
            )  # fmt: skip
        if sdk.incident is not None:
            yield Outcome(
                sdk.sdk, "load", "daemon", "the daemon of the load", OutcomeStatus.ERROR,
                sdk.incident.code, sdk.incident.message, sdk.incident.excerpt,
            )  # fmt: skip


def _step_figures(step: StepRecord) -> Iterator[Figure]:
    for each in step.operations:
        if (latency := each.latency or each.service) is None:
            continue
        for name, value in (("p50", latency.p50_ms), ("p99", latency.p99_ms)):
            if value is not None:
                yield Figure(f"{each.operation} {name} ms", value)
    if step.achieved_per_s is not None:
        yield Figure("answers/s", step.achieved_per_s)


def _rows(bench: BenchReport) -> Iterator[Outcome]:
    for row in bench.rows:
        status = OutcomeStatus.PASSED if row.measured else OutcomeStatus.ERROR
        yield Outcome(
            row.system, f"bench {bench.suite}", row.strategy or row.system,
            f"{row.queries} queries", status, "measured" if row.measured else "not measured",
            "; ".join(row.why), figures=tuple(_figures(row)),
        )  # fmt: skip


def _figures(row: Row) -> Iterator[Figure]:
    for name, view in row.views.items():
        prefix = "" if name == ALL else f"{name} "
        for metric, estimate in view.metrics.items():
            yield Figure(prefix + metric, estimate.value, (estimate.low, estimate.high))
    if row.latency is not None:
        for quantile, value in row.latency.answer.model_dump().items():
            yield Figure(f"{quantile} ms", value)
