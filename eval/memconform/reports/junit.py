"""Conformance as JUnit XML: one suite per SDK, one test case per check.

Follows Ant's schema, the strictest that CI servers validate against: `properties` come first, the
suite's output last, and a test case contains at most one of skipped, error and failure.
"""

from collections import Counter
from datetime import UTC
from xml.etree import ElementTree as ET

from memconform.conformance.results import Check, ConformReport, Result, SdkResult
from memconform.printing.escaping import escape_line, escape_lines
from memconform.redaction import redact
from memconform.reports.check_status import CHECK_STATUS, OutcomeStatus
from memconform.storage.sink import Masked, Sink


def write_junit(target: Sink, report: ConformReport) -> None:
    """Write a report as JUnit XML."""
    root = ET.Element("testsuites")
    for number, sdk in enumerate(report.sdks):
        root.append(_suite(number, sdk, report))
    ET.indent(root)
    # Each text is masked already: in finished XML, a mask could replace a tag or a count.
    target.write_masked(Masked(ET.tostring(root, encoding="utf-8", xml_declaration=True)))


def _suite(number: int, sdk: SdkResult, report: ConformReport) -> ET.Element:
    checks = [(case, check) for case in sdk.cases for check in case.checks]
    counts = Counter(CHECK_STATUS[check.result] for _, check in checks)
    suite = ET.Element(
        "testsuite",
        id=str(number),
        package="memconform.conform",
        name=_clean_line(sdk.sdk),
        tests=str(len(checks) + len(sdk.problems) + len(sdk.stale_known)),
        failures=str(counts[OutcomeStatus.FAILED] + len(sdk.stale_known)),
        errors=str(counts[OutcomeStatus.ERROR] + len(sdk.problems)),
        skipped=str(counts[OutcomeStatus.SKIPPED]),
        time=f"{sdk.took_s:.3f}",
        timestamp=report.started_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        hostname="localhost",
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in (("run", report.run), ("contract", report.contract)):
        ET.SubElement(properties, "property", name=name, value=_clean_line(value))
    for case, check in checks:
        # A case's time is reported once, with its first check.
        seconds = case.took_ms / 1e3 if check is case.checks[0] else 0
        suite.append(_case(sdk.sdk, check, seconds))
    for index, problem in enumerate(sdk.problems):
        element = ET.SubElement(
            suite, "testcase", name=f"daemon {index}", classname=_clean_line(sdk.sdk), time="0"
        )
        _add(element, "error", problem.partition("\n")[0], problem)
    for index, cause in enumerate(sdk.stale_known):
        element = ET.SubElement(
            suite, "testcase", name=f"known {index}", classname=_clean_line(sdk.sdk), time="0"
        )
        message = f"listed as known to fail, but no longer occurs: {cause}"
        _add(element, "failure", message, message)
    warnings = [
        f"{check.id}: {'; '.join(check.got)}" for _, check in checks if check.result is Result.WARN
    ]
    ET.SubElement(suite, "system-out").text = _clean("\n".join(warnings))
    ET.SubElement(suite, "system-err").text = ""
    return suite


def _case(sdk: str, check: Check, took_s: float) -> ET.Element:
    case, _, slot = check.id.partition("#")
    element = ET.Element(
        "testcase",
        name=_clean_line(slot),
        classname=_clean_line(f"{sdk}.{case}"),
        time=f"{took_s:.3f}",
    )
    causes = [cause.cause for cause in check.causes]
    lines = [*check.got, check.curl, f"rules: {', '.join(check.rules)}"]
    text = "\n".join([*lines, *(f"cause: {cause}" for cause in causes)])
    kind = causes[0] if causes else ""
    first = check.got[0] if check.got else check.result.value
    status = CHECK_STATUS[check.result]
    if status is OutcomeStatus.FAILED:
        message = f"passes, but is listed as known to fail: {check.known}"
        _add(element, "failure", first if check.result is Result.FAIL else message, text, kind)
    elif status is OutcomeStatus.ERROR:
        _add(element, "error", f"{check.result.value}: {first}", text, kind)
    elif check.result is Result.NOT_APPLICABLE:
        ET.SubElement(element, "skipped", message=_clean_line(first))
    elif check.result is Result.XFAIL:
        ET.SubElement(element, "skipped", message=_clean_line(f"known to fail: {check.known}"))
    return element


def _add(element: ET.Element, tag: str, message: str, text: str, kind: str = "") -> None:
    """Add a failure or error; CI servers group those of one kind, which is the first cause."""
    attributes = {"message": _clean_line(message), "type": _clean_line(kind or tag)}
    ET.SubElement(element, tag, attributes).text = _clean(text)


def _clean(text: str) -> str:
    """Redact and escape text of several lines, for CI servers that print it."""
    # Redact before XML escaping, after which a secret with `&` would not be recognized.
    return escape_lines(redact(text))


def _clean_line(text: str) -> str:
    return escape_line(redact(text))
