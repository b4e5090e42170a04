"""No case passes by accident: each one has something that a daemon which does nothing fails."""

from typing import Any

import pytest

from memconform.conformance.case import BaseStep, Expectation, RawStep
from memconform.conformance.catalog import CaseVariant, catalog, walk_steps
from memconform.conformance.valid_requests import control_of, is_rejection
from memconform.contract.wire import JsonValue

JUSTIFIED = {
    "search-empty-brain": "an empty brain has nothing to find",
    "doc-list-empty-brain": "an empty brain has nothing to list",
    "slow-endless": "the connection ends, which it does not by itself",
    "slow-renewed": "the request is complete and would be served; slow-accepted has one that is",
    "slow-trickle": "the connection ends, which it does not by itself",
    "vector-chunk-count": "one vector has no chunk; the variants of the others have theirs",
    "vector-front-matter-chunks": "some vectors have no chunk; the other variants have theirs",
    "stop": "the daemon ends, which it does not by itself",
    "stop-idle-connections": "the daemon ends, which it does not by itself",
}
"""Cases that expect only that something is not there, and why that is enough."""


def _is_absence(expected: JsonValue) -> bool:
    """Whether nothing, or something else, matches too."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            if key in ("$not", "$absent"):
                return True
            if key in ("$equals", "$set", "$multiset", "$subset"):
                return not value
            if key == "$items":
                return not value[0]
            if key == "$in":
                return any(_is_absence(option) for option in value)
        return bool(expected) and all(_is_absence(value) for value in expected.values())
    return expected in ([], "", 0, False, None)


def _is_negative(expected: Expectation) -> bool:
    if is_rejection(expected):
        return True
    if expected.subject == "is":
        return _is_absence(expected.is_)
    if expected.subject == "text":
        return _is_absence(expected.text)
    if expected.subject == "statuses":
        return not any(status in (200, 204) for status in expected.statuses)
    return expected.subject in ("took_ms", "ended")


def _has_control(step: BaseStep) -> bool:
    """Whether a step expects a rejection that counts only if a valid request is served."""
    is_rejected = any(is_rejection(expected) for expected in step.expect.values())
    return is_rejected and not isinstance(step, RawStep)


def _is_vacuous(entry: CaseVariant) -> bool:
    steps = list(walk_steps(entry.case))
    if any(step.require or _has_control(step) for step in steps):
        return False
    return all(_is_negative(e) for step in steps for e in step.expect.values())


def test_every_case_has_something_that_must_be_there() -> None:
    vacuous = {entry.base for entry in catalog() if _is_vacuous(entry)}
    assert vacuous == set(JUSTIFIED)


@pytest.mark.parametrize(
    ("matcher", "absence"),
    [
        ([], True),
        ({"$equals": []}, True),
        ({"documents": 0, "chunks": 0}, True),
        ({"$not": {"$contains": "x"}}, True),
        ({"$items": [0, 5]}, True),
        ({"$items": [1, None]}, False),
        ({"documents": 1, "chunks": 0}, False),
        (["a.md"], False),
        ("a", False),
    ],
)
def test_absences_are_recognized(matcher: Any, absence: bool) -> None:  # noqa: FBT001
    assert _is_absence(matcher) is absence


@pytest.mark.parametrize(
    ("line", "control"),
    [
        ("POST ${brain_url}/search", "POST /v1/brains/mc-control/search"),
        ("GET ${brain_url}/search", "POST /v1/brains/mc-control/search"),
        ("POST /v1/brains/mc-nobody/ask", "POST /v1/brains/mc-control/ask"),
        ("PUT /v1/brains", "POST /v1/brains"),
        ("DELETE ${brain_url}", "DELETE /v1/brains/mc-control"),
        (
            "HEAD ${brain_url}/documents?path=folder",
            "HEAD /v1/brains/mc-control/documents?path=control.md",
        ),
        ("GET /nothing", "GET /version"),
    ],
)
def test_a_rejection_is_compared_with_a_valid_request_to_its_route(line: str, control: str) -> None:
    assert control_of(line).line == control
