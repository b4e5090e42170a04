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
    for path in _TESTS.rglob("test_*.py")
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
    assert sum("mark.sampled" in text for text in _FILES.values()) >= 2
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


def test_each_file_of_tests_is_in_a_folder_that_ci_runs() -> None:
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    folders = dict(re.findall(r"^(UNIT|OTHER_TESTS) := (.+)$", makefile, re.MULTILINE))
    others = re.fullmatch(r"\$\(addprefix eval/tests/,(.+)\)", folders["OTHER_TESTS"])
    assert others is not None
    run = {*folders["UNIT"].split(), *(f"eval/tests/{name}" for name in others[1].split())}
    for suite in ("eval/tests", "sdks/py/tests"):
        for file in (CHECKOUT / suite).rglob("test_*.py"):
            folder = file.relative_to(CHECKOUT).as_posix()
            assert any(folder.startswith(f"{each}/") for each in run), folder


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


_PACKAGE = CHECKOUT / "eval" / "memconform"


def _misplaced(files: Mapping[str, str]) -> list[str]:
    """Unit tests that do not lie in the folder of a room that they use.

    Tests of the project itself lie in `project`, those of a room of one module in no folder.
    """
    misplaced = []
    for name, text in files.items():
        if not name.startswith("unit/"):
            continue
        *folder, _ = name.removeprefix("unit/").split("/")
        if not folder:
            modules = re.findall(r"memconform\.(\w+) import|import (\w+)", text)
            is_right = any((_PACKAGE / f"{each}.py").exists() for pair in modules for each in pair)
        elif folder == ["project"]:
            is_right = True
        else:
            [room] = folder
            is_room = (_PACKAGE / room).is_dir()
            is_right = is_room and re.search(rf"\b(?:memconform\.)?{room}\b", text) is not None
        if not is_right:
            misplaced.append(name)
    return misplaced


def test_unit_tests_lie_in_the_folder_of_their_room() -> None:
    assert sum(name.startswith("unit/") for name in _FILES) > 150
    assert _misplaced(_FILES) == []


def test_a_unit_test_in_another_folder_is_found() -> None:
    files = {
        "unit/bench/test_right.py": "from memconform.bench.plan import BenchPlan\n",
        "unit/bench/test_wrong.py": "from memconform.stats.paired import mid_p\n",
        "unit/cellar/test_wrong.py": "from memconform.bench.plan import BenchPlan\n",
        "unit/test_tls.py": "from memconform.tls import context\n",
        "unit/test_wrong.py": "from memconform.bench.plan import BenchPlan\n",
        "integration/test_right.py": "",
    }
    assert _misplaced(files) == [
        *("unit/bench/test_wrong.py", "unit/cellar/test_wrong.py", "unit/test_wrong.py"),
    ]
