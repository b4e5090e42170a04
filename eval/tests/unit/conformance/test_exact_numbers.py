"""Numbers of responses are compared as decimals where a case asks for it."""

import json

import pytest

from memconform.conformance.matchers import mismatches
from memconform.conformance.step_result import StepResult


def _got(literal: str) -> object:
    return StepResult("x", body=f'{{"n": {literal}}}'.encode()).json()


@pytest.mark.parametrize(
    ("expected", "literal"),
    [
        ("9007199254740993", "9007199254740993"),
        ("5.0", "5"),
        ("5", "5.0"),
        ("-0", "0"),
        ("1e308", "1" + "0" * 308),
        ("1e-400", "1E-400"),
        ("0.10000000000000001", "0.10000000000000001"),
    ],
)
def test_an_exact_number_matches_however_it_is_written(expected: str, literal: str) -> None:
    assert mismatches({"n": {"$number": expected}}, _got(literal)) == []


@pytest.mark.parametrize(
    ("expected", "literal"),
    [
        ("9007199254740993", "9007199254740992"),
        ("9007199254740993", "9007199254740993.5"),
        ("0.10000000000000001", "0.1"),
        ("1e-400", "0"),
        ("4.9e-324", "5e-324"),
        ("1", "true"),
        ("1", '"1"'),
        ("1", "null"),
    ],
)
def test_another_number_does_not_match(expected: str, literal: str) -> None:
    [fault] = mismatches({"n": {"$number": expected}}, _got(literal))
    assert fault.where == "/n"


def test_a_number_of_a_response_is_a_float_everywhere_else() -> None:
    got = _got("0.5")
    assert got == {"n": 0.5}
    assert mismatches({"n": {"$approx": [0.5, 1e-9]}}, got) == []
    assert json.dumps(got) == '{"n": 0.5}'
