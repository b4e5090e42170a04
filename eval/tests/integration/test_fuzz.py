"""`memconform fuzz` from the command line."""

import json
from collections.abc import Callable

import pytest
from jsonschema import Draft202012Validator

from tests.conftest import Ended, runnable

Call = Callable[..., Ended]


def test_one_sdk_cannot_be_compared(memconform: Call) -> None:
    ended = memconform("fuzz", "--sdk", "py", "--examples", "1")
    assert (ended.code, ended.out) == (2, "")
    assert "fuzz compares daemons with each other" in ended.err
    assert "Traceback" not in ended.err


def test_two_reference_daemons_agree_and_the_json_report_says_so(installed: Call) -> None:
    if "go" not in runnable():
        pytest.skip("go cannot run here: go not on PATH")
    ended = installed(
        "fuzz", "--sdk", "py", "--sdk", "go", "--examples", "60", "--seed", "1", "--json", "-"
    )
    assert ended.code == 0, ended.err
    report = json.loads(ended.out)
    schema = json.loads(installed("fuzz", "--schema").out)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(report)
    assert (report["sdks"], report["seed"], report["examples"]) == (["py", "go"], 1, 60)
    assert report["disagreement"] is None
    assert "go, py: agree" in ended.err or "py, go: agree" in ended.err
    assert not list(ended.folder.glob("results/fuzz/*"))
