"""`memconform fuzz` from the command line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.conftest import Ended, runnable

Call = Callable[..., Ended]


def test_one_sdk_cannot_be_compared(memconform: Call) -> None:
    ended = memconform("fuzz", "--sdk", "py", "--examples", "1")
    assert (ended.code, ended.out) == (2, "")
    assert "fuzz compares daemons with each other" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.capability("fuzz")
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


_CORPUS = Path(__file__).with_name("fuzz_corpus")
"""Programs that between them reach every kind of answer that some thousands of programs did."""


def test_a_reference_daemon_answers_the_corpus_as_the_oracle_does(
    sdk: str, memconform: Call, tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus"
    shutil.copytree(_CORPUS, corpus)
    ended = memconform(
        "fuzz", "--sdk", sdk, "--against", "oracle", "--corpus", corpus, "--examples", "20",
        "--seed", "1", "--keep-going", "--json", "-",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    report = json.loads(ended.out)
    assert (report["sdks"], report["against"], report["disagreements"]) == ([sdk], "oracle", [])
    assert report["examples"] == 20 + len(list(_CORPUS.glob("*.json"))) > 40
    assert f"{sdk}: agree with the oracle" in ended.err


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--time", "0m"), ("--time", "soon"), ("--ignore", "/chunks"), ("--against", "py")],
)
def test_an_invalid_flag_is_a_usage_error(memconform: Call, flag: str, value: str) -> None:
    ended = memconform("fuzz", "--sdk", "py", flag, value)
    assert (ended.code, ended.out) == (2, "")
    assert value in ended.err
    assert "Traceback" not in ended.err
