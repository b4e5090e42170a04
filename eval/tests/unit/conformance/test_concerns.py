"""Every rule protects something, and a failed check says what it concerns."""

import pytest

from memconform.conformance.concerns import _TABLE, CONCERNS, Concern, concern_of
from memconform.conformance.defects import defect_of, defects
from memconform.conformance.results import CaseResult, Cause, Check, Result, SdkResult
from memconform.conformance.rules import rules

_SEARCH = "POST /v1/brains/{brain}/search"


def test_every_rule_protects_exactly_one_thing() -> None:
    listed = [rule for _, names in _TABLE for rule in names.split()]
    assert sorted(listed) == sorted(rules())
    assert CONCERNS.keys() == rules().keys()


def _check(cause: str, rule: str = "wire.shape", slot: str = "s", **rest: object) -> Check:
    check = Check(
        id=f"c#{slot}",
        result=Result.FAIL,
        level="must",
        rules=[rule],
        causes=[Cause(cause=cause)],
    )
    return check.model_copy(update=rest)


@pytest.mark.parametrize(
    ("cause", "rule", "concern"),
    [
        # A crash is grave whatever the case is about.
        (f"{_SEARCH}: status 500, expected 400", "wire.types", Concern.SAFETY),
        (f"{_SEARCH}: the daemon exits: exit status 1", "wire.detail", Concern.SAFETY),
        (f"{_SEARCH}: no response in time", "core.tuning", Concern.SAFETY),
        (
            "DELETE /v1/brains/{brain}: the connection ends after the response, unannounced",
            "wire.json",
            Concern.SAFETY,
        ),
        # What is wrongly accepted matters where the rule protects something.
        (f"{_SEARCH}: status 200, expected 403", "robust.origin", Concern.SAFETY),
        (f"{_SEARCH}: status 200, expected 400", "core.search.refuse", Concern.STRICTNESS),
        (f"{_SEARCH}: accepts topK out of range", "wire.json", Concern.STRICTNESS),
        ("PUT /documents: status 204, expected 409", "documents.conflict", Concern.INTERCHANGE),
        # Rejected all the same.
        ("GET /v1/brains: status 403, expected 401", "auth.required", Concern.STRICTNESS),
        ("error responses with status 401: no header allow", "wire.problem", Concern.STRICTNESS),
        # A valid request is rejected.
        (f"{_SEARCH}: status 400, expected 200", "core.tuning", Concern.INTERCHANGE),
        (f"{_SEARCH}: chunks is null", "wire.json", Concern.INTERCHANGE),
        (f"{_SEARCH}: wrong value at trace.candidateK", "core.mode.trace", Concern.STRICTNESS),
        (f"{_SEARCH}: chunks is empty", "core.brain.isolation", Concern.SAFETY),
        (f"{_SEARCH}: chunks is empty", "no.such.rule", Concern.INTERCHANGE),
    ],
)
def test_the_failure_and_its_rule_say_what_it_concerns(
    cause: str, rule: str, concern: Concern
) -> None:
    check = _check(cause, rule)
    assert concern_of(check, check.causes[0]) is concern


def test_a_check_without_a_rule_concerns_a_client() -> None:
    check = _check("x").model_copy(update={"rules": []})
    assert concern_of(check, check.causes[0]) is Concern.INTERCHANGE


@pytest.mark.parametrize(
    ("causes", "defect"),
    [
        (
            [f"{_SEARCH}: accepts topK out of range", f"{_SEARCH}: status 200, expected 400"],
            f"{_SEARCH}: accepts what it must reject",
        ),
        ([f"{_SEARCH}: status 500, expected 400 or 404"], f"{_SEARCH}: status 500"),
        (
            ["the daemon exits: exit status 1", f"{_SEARCH}: the daemon exits: signal 9"],
            "the daemon exits",
        ),
        (
            ["GET /v1/brains: status 403, expected 401", "wrong method: status 404, expected 400"],
            "rejects with another status",
        ),
        (
            [f"{_SEARCH}: chunks is empty", f"{_SEARCH}: chunks has too many items"],
            f"{_SEARCH}: other chunks than expected",
        ),
        (
            [f"{_SEARCH}: wrong value at chunks.*.score"],
            f"{_SEARCH}: wrong or missing chunks.*.score",
        ),
        (["unlike any other"], "unlike any other"),
    ],
)
def test_causes_that_are_one_defect_are_merged(causes: list[str], defect: str) -> None:
    assert {defect_of(cause) for cause in causes} == {defect}


def test_the_gravest_defects_come_first_then_those_of_most_checks() -> None:
    strict = [_check(f"{_SEARCH}: accepts key{n}", slot=f"s{n}") for n in range(9)]
    null = [_check(f"{_SEARCH}: chunks is null", slot=f"n{n}") for n in range(2)]
    crash = _check(f"{_SEARCH}: the daemon exits: killed", slot="x")
    known = _check("x", slot="k", causes=[Cause(cause="x", known="because")])
    passed = _check("x", slot="p", result=Result.PASS)
    case = CaseResult(case="c", title="t", checks=[*strict, known, passed, *null, crash])
    found = defects(SdkResult(sdk="mine", profiles=[], modes=[], cases=[case]))
    assert [(d.concern, len(d.checks), d.shown) for d in found] == [
        (Concern.SAFETY, 1, f"{_SEARCH}: the daemon exits: killed"),
        (Concern.INTERCHANGE, 2, f"{_SEARCH}: chunks is null"),
        (Concern.STRICTNESS, 9, f"{_SEARCH}: accepts what it must reject"),
    ]


def test_a_defect_of_two_concerns_is_one_of_each() -> None:
    cause = f"{_SEARCH}: status 200, expected 400"
    checks = [_check(cause, "documents.path", "a"), _check(cause, "wire.types", "b")]
    case = CaseResult(case="c", title="t", checks=checks)
    found = defects(SdkResult(sdk="mine", profiles=[], modes=[], cases=[case]))
    assert [d.concern for d in found] == [Concern.SAFETY, Concern.STRICTNESS]
