"""Results of any kind as JUnit XML: a suite for each SDK and what it was tested on.

Follows Ant's schema, the strictest that CI servers validate against.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from memconform.printing.escaping import escape_line, escape_lines
from memconform.redaction import redact
from memconform.reports.check_status import OutcomeStatus
from memconform.reports.overview.outcomes import Outcome
from memconform.storage.sink import Masked, Sink


def write_junit(target: Sink, outcomes: Iterable[Outcome], started_at: datetime) -> None:
    """Write outcomes as JUnit XML; what was not measured is an error, and no failure.

    Args:
        target: where to write.
        outcomes: in any order.
        started_at: when the first of them was begun.
    """
    suites: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        suites.setdefault((outcome.sdk, outcome.suite), []).append(outcome)
    root = ET.Element("testsuites")
    for number, ((sdk, suite), members) in enumerate(suites.items()):
        root.append(_suite(number, sdk, suite, members, started_at))
    ET.indent(root)
    # Each text is masked already: in finished XML, a mask could replace a tag or a count.
    target.write_masked(Masked(ET.tostring(root, encoding="utf-8", xml_declaration=True)))


def _suite(
    number: int, sdk: str, suite: str, members: Sequence[Outcome], started_at: datetime
) -> ET.Element:
    count = {status: sum(o.status is status for o in members) for status in OutcomeStatus}
    element = ET.Element(
        "testsuite",
        id=str(number),
        package="memconform",
        name=_line(f"{sdk}: {suite}"),
        tests=str(len(members)),
        failures=str(count[OutcomeStatus.FAILED]),
        errors=str(count[OutcomeStatus.ERROR]),
        skipped=str(count[OutcomeStatus.SKIPPED]),
        time=f"{sum(o.ms or 0 for o in members) / 1_000:.3f}",
        timestamp=started_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        hostname="localhost",
    )
    ET.SubElement(element, "properties")
    element.extend(_case(outcome) for outcome in members)
    ET.SubElement(element, "system-out").text = ""
    ET.SubElement(element, "system-err").text = ""
    return element


_TAGS = {
    OutcomeStatus.FAILED: "failure",
    OutcomeStatus.ERROR: "error",
    OutcomeStatus.SKIPPED: "skipped",
}


def _case(outcome: Outcome) -> ET.Element:
    element = ET.Element(
        "testcase",
        name=_line(outcome.id),
        classname=_line(f"{outcome.sdk}.{outcome.suite}"),
        time=f"{(outcome.ms or 0) / 1_000:.3f}",
    )
    tag = _TAGS.get(outcome.status)
    if tag == "skipped":
        ET.SubElement(element, tag, message=_line(outcome.message or outcome.detail))
    elif tag is not None:
        attributes = {"message": _line(outcome.message), "type": _line(outcome.detail)}
        ET.SubElement(element, tag, attributes).text = escape_lines(redact(outcome.trace))
    return element


def _line(text: str) -> str:
    return escape_line(redact(text))
