"""`make test` runs an integration test of each verb, and `make test-all` all that are not slow."""

import re
from collections.abc import Mapping

import pytest
import yaml
from _pytest.mark.expression import Expression

from memconform.cli.main import cli
from tests.conftest import CHECKOUT

_TESTS = CHECKOUT / "eval" / "tests"
_FILES = {
    str(path.relative_to(_TESTS)): path.read_text(encoding="utf-8")
    for path in _TESTS.glob("*/test_*.py")
    if path.name != "test_markers.py"
}


def _capabilities(files: Mapping[str, str]) -> set[str]:
    return {
        name
        for text in files.values()
        for name in re.findall(r'mark\.capability\("([^"]+)"\)', text)
    }


def test_each_verb_has_a_test_that_make_test_runs() -> None:
    verbs = set(cli.list_commands(None))  # type: ignore[arg-type] # no command needs a context
    assert verbs - _capabilities(_FILES) == set()


def _sampled_alone(files: Mapping[str, str]) -> list[str]:
    """Files whose sampled tests are all that there is."""
    return [
        name
        for name, text in files.items()
        if "mark.sampled" in text and "mark.exhaustive" not in text
    ]


def test_each_file_with_sampled_tests_has_exhaustive_ones() -> None:
    assert sum("mark.sampled" in text for text in _FILES.values()) >= 5
    assert _sampled_alone(_FILES) == []


def test_a_sampled_test_without_an_exhaustive_one_is_found() -> None:
    files = {
        "alone.py": "@pytest.mark.sampled\n",
        "part.py": "@pytest.mark.sampled\n@pytest.mark.exhaustive\n",
        "plain.py": "@pytest.mark.exhaustive\n",
    }
    assert _sampled_alone(files) == ["alone.py"]


def _selected(marks: set[str]) -> list[str]:
    """The targets of the Makefile that run a test with these marks."""
    expressions = dict(
        re.findall(r"^(QUICK|OTHERS) := (.+)$", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    )
    return [
        name
        for name, text in expressions.items()
        if Expression.compile(text).evaluate(lambda mark, /, **_: mark in marks)
    ]


@pytest.mark.parametrize(
    ("marks", "targets"),
    [
        ("unit", ["QUICK"]),
        ("unit sampled", ["QUICK"]),
        ("unit exhaustive", ["OTHERS"]),
        ("capability", ["QUICK"]),
        ("capability sampled", ["QUICK"]),
        ("", ["OTHERS"]),
        ("exhaustive", ["OTHERS"]),
        ("sampled", []),
        ("slow", []),
        ("slow exhaustive", []),
        ("slow unit", []),
    ],
    ids=repr,
)
def test_each_test_that_is_not_slow_is_run_once_by_ci(marks: str, targets: list[str]) -> None:
    ci = (CHECKOUT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert ci[-2:] == ["make test", "make exhaustive"]
    assert _selected(set(marks.split())) == targets


def test_unit_tests_are_known_by_their_folder(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("unit") is not None


def test_each_slow_test_runs_by_night() -> None:
    """By night ran those of one file, and a comment said that all did."""
    jobs = yaml.safe_load((CHECKOUT / ".github/workflows/eval-nightly.yml").read_text())["jobs"]
    folders = {name.partition("/")[0] for name, text in _FILES.items() if "mark.slow" in text}
    assert folders == set(jobs["slow"]["strategy"]["matrix"]["folder"])
    scripts = [step["run"] for step in jobs["slow"]["steps"] if "run" in step]
    (call,) = (script for script in scripts if "pytest" in script)
    assert '-m slow "eval/tests/$FOLDER"' in call
    (left_out,) = re.findall(r"--ignore (\S+)", call)
    assert any(left_out in step.get("run", "") for step in jobs["environment"]["steps"])
    assert any(step.get("run") == "make mutate" for step in jobs["mutate"]["steps"])
