"""Case files: which are rejected, and that the message names file, case and fault."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from memconform.client.recorder import Exchange
from memconform.conformance import strict_yaml
from memconform.conformance.case import (
    AwaitStep,
    Case,
    HttpStep,
    ProcessStep,
    StoreStep,
    StreamStep,
)
from memconform.conformance.case_files import case_line
from memconform.conformance.catalog import catalog, walk_steps
from memconform.conformance.expectations import evaluate
from memconform.conformance.names import CASES
from memconform.conformance.process_report import ProcessReport
from memconform.conformance.step_result import StepResult
from memconform.conformance.variables import UnknownVariableError, references, substitute
from memconform.contract.wire import Profile
from memconform.errors import UsageError

GOOD = """
- id: good
  title: A case
  rules: [core.health]
  steps:
    - http: GET /healthz
      expect:
        ok: 200
"""


def test_a_daemon_that_hangs_does_not_refuse_to_start() -> None:
    """One that hung with a timeout such as `5s` passed start-timeouts-refused."""
    hung = ProcessReport(alive=False, ended="x did not become healthy within 30 s", log="waits")
    outcome = StepResult("process: fails_to_start", value=hung.value())
    refused = [
        (entry.id, step)
        for entry in catalog()
        for step in walk_steps(entry.case)
        if isinstance(step, ProcessStep)
        and step.process == "fails_to_start"
        and any(e.at == "/alive" and e.is_ is False for e in step.expect.values())
    ]
    assert len(refused) > 40
    for case, step in refused:
        results = [evaluate(each, outcome, {}) for each in step.expect.values()]
        assert not all(result.holds for result in results), case


def test_cases_without_ask_configure_no_reader_that_they_do_not_use() -> None:
    """A daemon that does not claim `ask` must refuse to start with a reader that it lacks."""
    configured = {
        entry.base
        for entry in catalog(CASES)
        if Profile.ASK not in entry.needed_profiles
        and entry.case.daemon.env.get("JB_RERANK_PROVIDER") != "llm"
        and entry.case.daemon.env.get("JB_LLM_PROVIDER", "none") not in ("", "none")
    }
    assert configured == set()


def _rejection(folder: Path, text: str) -> str:
    (folder / "bad.yaml").write_text(text, encoding="utf-8")
    catalog.cache_clear()
    with pytest.raises(UsageError) as caught:
        catalog(folder)
    return caught.value.message


def test_a_valid_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    [entry] = catalog(tmp_path)
    assert (entry.id, entry.slots()) == ("good", ["ok"])


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("id: good", "id: good\n  id: better", "'id' occurs twice"),
        ("id: good", "id: Good Case", "id"),
        ("title: A case", "titel: A case", "titel"),
        ("rules: [core.health]", "rules: [core.helath]", "did you mean 'core.health'"),
        ("rules: [core.health]", "rules: []", "rules"),
        ("http: GET /healthz", "htpp: GET /healthz", "a step needs one of"),
        ("http: GET /healthz", "http: GET healthz", "String should match"),
        ("ok: 200", "ok: {status: 200, problem: not_found}", "one of"),
        ("ok: 200", "ok: {at: /ok}", "`at` needs `is`"),
        ("ok: 200", "ok: {header: allow}", "need `is`"),
        ("ok: 200", "ok: not_fuond", "unknown code 'not_fuond'"),
        ("ok: 200", "ok: {is: {$eqals: 1}}", "unknown matcher $eqals"),
        ("ok: 200", "ok: {is: {$regex: '('}}", "$regex"),
        ("ok: 200", "ok: {is: '${brian}'}", "did you mean 'brain'"),
        ("GET /healthz", "GET /${nobody}", "${nobody} is not defined here"),
        ("GET /healthz", "GET /${Nobody}", "a variable is written"),
        ("ok: 200", "Ok: 200", "Ok"),
        ("\n      expect:\n        ok: 200", "", "it has no expectations"),
        ("title: A case", "title: A case\n  upstream: {rules: []}", "needs `daemon: {upstream"),
        ("title: A case", "title: A case\n  matrix: {x: []}", "x has no values"),
        ("title: A case", "title: A case\n  matrix: {x: [1]}", "${x} is never used"),
        ("GET /healthz", "GET /healthz\n      capture: {seen: /ok}", "captured but never used"),
        ("title: A case", "title: A case\n  level: maybe", "level"),
    ],
)
def test_invalid_cases_are_rejected_with_file_and_reason(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    assert old in GOOD
    message = _rejection(tmp_path, GOOD.replace(old, new))
    assert "bad.yaml" in message
    assert reason in message


def test_a_file_that_is_not_a_list_is_rejected(tmp_path: Path) -> None:
    assert "a case file must be a list" in _rejection(tmp_path, "id: good\ntitle: A case\n")


def test_one_slot_in_two_steps_is_rejected(tmp_path: Path) -> None:
    twice = GOOD + GOOD[GOOD.index("    - http") :]
    assert "the slot 'ok' is used in two steps" in _rejection(tmp_path, twice)


def test_one_id_in_two_files_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    assert "a.yaml has a case with the same id" in _rejection(tmp_path, GOOD)


def test_one_id_twice_in_a_file_is_rejected(tmp_path: Path) -> None:
    assert "the id is used twice" in _rejection(tmp_path, GOOD + GOOD)


def test_a_capture_is_defined_only_after_its_step(tmp_path: Path) -> None:
    later = GOOD.replace("GET /healthz", "GET /${seen}") + (
        "    - http: GET /version\n      capture: {seen: /name}\n"
    )
    assert "${seen} is not defined here" in _rejection(tmp_path, later)


def test_a_matrix_makes_a_case_for_every_combination(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(
        GOOD.replace(
            "title: A case", "title: A case\n  matrix: {a: [x, y], b: {one: 1, two: 2}}"
        ).replace("GET /healthz", "GET /healthz?${a}=${b}")
    )
    catalog.cache_clear()
    ids = [entry.id for entry in catalog(tmp_path)]
    assert ids == ["good[x,one]", "good[x,two]", "good[y,one]", "good[y,two]"]


def test_yaml_has_no_surprises(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: yes\nb: 2024-01-01\nc: on\nd: true\ne: 012\nf: null\n")
    loaded = strict_yaml.load_yaml(path)
    assert loaded == {"a": "yes", "b": "2024-01-01", "c": "on", "d": True, "e": 10, "f": None}


@pytest.mark.parametrize(
    ("text", "line"),
    [("a: 1\na: 2\n", 2), ("a: 1\nb: [\n", 3), ("1: x\n", 0), ("a: !!python/object:x {}\n", 1)],
)
def test_bad_yaml_names_the_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    if line == 0:
        # The key is a number, but it was written as plain text.
        assert strict_yaml.load_yaml(path) == {1: "x"}
        return
    with pytest.raises(UsageError, match=rf"x\.yaml:{line}: "):
        strict_yaml.load_yaml(path)


def test_a_variable_that_is_the_whole_text_keeps_its_type() -> None:
    values = {"n": 5, "deep": {"list": [1, {"x": None}]}}
    assert substitute({"a": "${n}", "b": "n=${n}"}, values) == {"a": 5, "b": "n=5"}
    assert substitute("${deep.list.1.x}", values) is None
    assert substitute("${m}", values, partly=True) == "${m}"
    assert references({"${n}": ["${deep.list.0}"]}) == ["n", "deep.list.0"]
    with pytest.raises(UnknownVariableError, match="m"):
        substitute("${m}", values)


class _AnyVariables(dict[str, Any]):
    """Variables that define every name."""

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> Any:
        return _AnyVariables()


NO_ANSWER = StepResult(
    "GET /x", failure="ConnectError", exchange=Exchange(httpx.Request("GET", "/"))
)
EMPTY_500 = StepResult("GET /x", status=500, ended="end")
_RESPONSE_STEPS = HttpStep | StreamStep | StoreStep | AwaitStep


@pytest.mark.parametrize("outcome", [NO_ANSWER, EMPTY_500], ids=["no answer", "empty 500"])
def test_no_step_passes_without_a_response(outcome: StepResult) -> None:
    """An expectation that something is absent holds for no response: another check must fail."""
    passing = []
    for entry in catalog():
        for step in walk_steps(entry.case):
            if isinstance(step, _RESPONSE_STEPS) and step.expect:
                results = [
                    evaluate(item, outcome, _AnyVariables()) for item in step.expect.values()
                ]
                if all(result.holds for result in results):
                    passing.append(f"{entry.id}: {list(step.expect)}")
    assert passing == []


def test_the_line_of_a_case_is_that_of_its_id() -> None:
    for entry in (catalog()[0], catalog()[-1]):
        lines = (CASES / entry.file).read_text(encoding="utf-8").splitlines()
        assert lines[case_line(entry.file, entry.base, CASES) - 1] == f"- id: {entry.base}"


@pytest.mark.parametrize(
    ("step", "seconds"),
    [
        ({"http": "GET /version"}, 0),
        ({"http": "GET /version", "timeout_ms": 2_000}, 2),
        ({"stream": "GET /version", "name": "a", "timeout_ms": 2_000}, 2),
        ({"raw": ["x"]}, 0),
        ({"raw": ["x"], "timeout_ms": 2_000}, 2),
        ({"await": "a"}, 10),
        ({"process": "stop", "within_ms": 500}, 0.5),
        ({"pause": 1_000, "share": 1.5}, 1.5),
        ({"pause": "${took}"}, 0),
        ({"until": [{"http": "GET /version"}], "within_ms": 3_000}, 3),
        ({"repeat": [{"await": "a"}, {"pause": 500}], "times": 10}, 105),
        ({"parallel": [[{"await": "a"}], [{"await": "a"}, {"await": "b"}]], "copies": 100}, 20),
    ],
)
def test_a_case_has_a_minute_besides_its_waits(step: dict[str, Any], seconds: float) -> None:
    """One that writes 6,144 documents was stopped after 60 s on a busy machine."""
    case = {"id": "a", "title": "A", "rules": ["core.health"], "setup": [step], "steps": [step]}
    assert Case.model_validate(case).limit_s == 60 + 2 * seconds


def test_every_case_has_a_time_limit_that_stops_a_hang() -> None:
    longest = max(catalog(), key=lambda entry: entry.case.limit_s)
    assert longest.case.limit_s <= 600, longest.id
