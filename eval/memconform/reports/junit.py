"""Results as JUnit XML.

Follows Ant's schema, the strictest that CI servers validate against: `properties` come first, the
suite's output last, and a test case contains at most one of skipped, error and failure.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from memconform.conformance.results import Check, ConformReport, Result, SdkResult
from memconform.printing.escaping import Lines, printable
from memconform.reports.check_status import CHECK_STATUS, OutcomeStatus
from memconform.storage.sink import Masked, Sink

if TYPE_CHECKING:  # it imports the results of every verb
    from memconform.reports.overview.outcomes import Outcome

_TAGS = {
    OutcomeStatus.FAILED: "failure",
    OutcomeStatus.ERROR: "error",
    OutcomeStatus.SKIPPED: "skipped",
}


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    classname: str
    time: str
    status: OutcomeStatus
    message: str = ""
    kind: str = ""
    """CI servers group failures and errors of one kind."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Suite:
    package: str
    name: str
    seconds: float
    started_at: datetime
    cases: Sequence[_Case]
    properties: Mapping[str, str] = field(default_factory=dict)
    output: str = ""


def write_conformance(target: Sink, report: ConformReport) -> None:
    """Write a suite for each SDK, with a test case for each check."""
    suites = []
    for sdk in report.sdks:
        warnings = [
            f"{check.id}: {'; '.join(check.got)}"
            for case in sdk.cases
            for check in case.checks
            if check.result is Result.WARN
        ]
        suite = _Suite(
            package=f"memconform.{report.suite}",
            name=sdk.sdk,
            seconds=sdk.took_s,
            started_at=report.started_at,
            cases=list(_conformance_cases(sdk)),
            properties={"run": report.run, "contract": report.contract},
            output="\n".join(warnings),
        )
        suites.append(suite)
    _write(target, suites)


def write_outcomes(target: Sink, outcomes: Iterable["Outcome"], started_at: datetime) -> None:
    """Write a suite for each SDK and what it was tested on.

    What was not measured is an error, and no failure.

    Args:
        target: where to write.
        outcomes: in any order.
        started_at: when the first of them was begun.
    """
    by_suite: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        by_suite.setdefault((outcome.sdk, outcome.suite), []).append(outcome)
    suites = [
        _Suite(
            package="memconform",
            name=f"{sdk}: {suite}",
            seconds=sum(outcome.ms or 0 for outcome in members) / 1_000,
            started_at=started_at,
            cases=[_outcome_case(outcome) for outcome in members],
            output="\n".join(
                f"{outcome.id}: {figure.text()}"
                for outcome in members
                for figure in outcome.figures
            ),
        )
        for (sdk, suite), members in by_suite.items()
    ]
    _write(target, suites)


def _outcome_case(outcome: "Outcome") -> _Case:
    message = outcome.message
    if outcome.status is OutcomeStatus.SKIPPED:
        message = message or outcome.detail
    return _Case(
        name=outcome.id,
        classname=f"{outcome.sdk}.{outcome.suite}",
        time=_seconds((outcome.ms or 0) / 1_000),
        status=outcome.status,
        message=message,
        kind=outcome.detail,
        text=outcome.trace,
    )


def _conformance_cases(sdk: SdkResult) -> Iterator[_Case]:
    for case in sdk.cases:
        for check in case.checks:
            # A case's time is reported once, with its first check.
            yield _check_case(sdk.sdk, check, case.took_ms / 1e3 if check is case.checks[0] else 0)
    for index, problem in enumerate(sdk.problems):
        first = problem.partition("\n")[0]
        yield _Case(f"daemon {index}", sdk.sdk, "0", OutcomeStatus.ERROR, first, "error", problem)
    for index, cause in enumerate(sdk.stale_known):
        message = f"listed as known to fail, but no longer occurs: {cause}"
        yield _Case(
            f"known {index}", sdk.sdk, "0", OutcomeStatus.FAILED, message, "failure", message
        )


def _check_case(sdk: str, check: Check, took_s: float) -> _Case:
    case, _, slot = check.id.partition("#")
    status = CHECK_STATUS[check.result]
    causes = [cause.cause for cause in check.causes]
    message = check.got[0] if check.got else check.result.value
    if check.result is Result.XPASS:
        message = f"passes, but is listed as known to fail: {check.known}"
    elif check.result is Result.XFAIL:
        message = f"known to fail: {check.known}"
    elif status is OutcomeStatus.ERROR:
        message = f"{check.result.value}: {message}"
    lines = [*check.got, check.curl, f"rules: {', '.join(check.rules)}"]
    return _Case(
        name=slot,
        classname=f"{sdk}.{case}",
        time=_seconds(took_s),
        status=status,
        message=message,
        kind=(causes[0] if causes else "") or _TAGS.get(status, ""),
        text="\n".join([*lines, *(f"cause: {cause}" for cause in causes)]),
    )


def _write(target: Sink, suites: Iterable[_Suite]) -> None:
    root = ET.Element("testsuites")
    root.extend(_suite_element(number, suite) for number, suite in enumerate(suites))
    ET.indent(root)
    # Each text is masked already: in finished XML, a mask could replace a tag or a count, and a
    # secret with `&` would not be recognized.
    target.write_masked(Masked(ET.tostring(root, encoding="utf-8", xml_declaration=True)))


def _suite_element(number: int, suite: _Suite) -> ET.Element:
    counts = Counter(case.status for case in suite.cases)
    element = ET.Element(
        "testsuite",
        id=str(number),
        package=suite.package,
        name=printable(suite.name),
        tests=str(len(suite.cases)),
        failures=str(counts[OutcomeStatus.FAILED]),
        errors=str(counts[OutcomeStatus.ERROR]),
        skipped=str(counts[OutcomeStatus.SKIPPED]),
        time=_seconds(suite.seconds),
        timestamp=suite.started_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        hostname="localhost",
    )
    properties = ET.SubElement(element, "properties")
    for name, value in suite.properties.items():
        ET.SubElement(properties, "property", name=name, value=printable(value))
    element.extend(_case_element(case) for case in suite.cases)
    ET.SubElement(element, "system-out").text = printable(Lines(suite.output))
    ET.SubElement(element, "system-err").text = ""
    return element


def _case_element(case: _Case) -> ET.Element:
    element = ET.Element(
        "testcase", name=printable(case.name), classname=printable(case.classname), time=case.time
    )
    tag = _TAGS.get(case.status)
    if tag == "skipped":
        ET.SubElement(element, tag, message=printable(case.message))
    elif tag is not None:
        attributes = {"message": printable(case.message), "type": printable(case.kind)}
        ET.SubElement(element, tag, attributes).text = printable(Lines(case.text))
    return element


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"
