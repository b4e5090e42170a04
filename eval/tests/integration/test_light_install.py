"""What the core of memconform does without: extras, and numpy where it compares nothing."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memconform.cli import lazy
from memconform.cli.run.command import SCENARIO_NAMES
from memconform.errors import UsageError
from memconform.measuring.scenarios import SCENARIOS
from tests.conftest import CALL_SECONDS, CHECKOUT, Ended, runnable

EXTRAS = ("scipy", "rank_bm25", "hypothesis", "hypothesis_jsonschema", "nltk", "regex", "hdrh")
FOREIGN = (*EXTRAS, "numpy", "openai", "anthropic")

_WITHOUT = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""
_MAIN = "from memconform.cli.main import main\nmain()\n"


def call(
    workspace: Path, environment: dict[str, str], *args: str, without: Sequence[str] = FOREIGN
) -> Ended:
    """The program, in an interpreter in which some packages cannot be imported."""
    path = os.pathsep.join([environment["PYTHONPATH"], str(CHECKOUT / "eval")])
    ended = subprocess.run(
        [sys.executable, "-c", _WITHOUT.format(tuple(without)) + _MAIN, *args],
        cwd=workspace,
        env=environment | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=CALL_SECONDS,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr, workspace)


def imported(*modules: str) -> set[str]:
    code = f"import sys, {', '.join(modules)}; print(*(m.partition('.')[0] for m in sys.modules))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ended.stdout.split())


@pytest.mark.parametrize("verb", ["run", "conform", "doctor"])
def test_a_core_verb_imports_no_extra_and_logs_nothing_in_advance(verb: str) -> None:
    modules = imported(f"memconform.cli.{verb}.command", f"memconform.cli.{verb}.execution")
    assert not modules & {*FOREIGN, "structlog"}
    assert "httpx" in modules


@pytest.mark.parametrize("verb", ["run", "conform", "doctor", "bench", "fuzz"])
def test_flags_are_parsed_without_importing_the_commands(verb: str) -> None:
    modules = imported(f"memconform.cli.{verb}.command")
    heavy = {*FOREIGN, "structlog", "asyncio", "httpx", "pydantic", "psutil", "rich"}
    # `bench` imports pydantic for its flags: their choices come from the dataset models.
    assert not modules & (heavy if verb != "bench" else {*FOREIGN, "structlog"})


def test_the_import_guard_detects_imports() -> None:
    assert {"numpy", "scipy"} <= imported("memconform.cli.run.command", "scipy.stats")


def test_the_flag_lists_every_scenario() -> None:
    assert tuple(SCENARIOS) == SCENARIO_NAMES


def test_sdks_that_agree_get_their_verdict_without_numpy_or_any_extra(
    workspace: Path, environment: dict[str, str]
) -> None:
    sdks = runnable()
    smoke = ("--dataset", "smoke", "--scorer", "exact", "--seed-reference-brain", "--quiet")
    ended = call(workspace, environment, "run", "--sdk", "all", *smoke)
    assert ended.code == 0, ended.err
    for sdk in sdks:
        assert f"{sdk}: 20/20 pass_rate=1.0000" in ended.out
    if len(sdks) > 1:
        assert f"{', '.join(sorted(sdks))}: identical on 20 questions" in ended.out


@pytest.mark.exhaustive
def test_disagreeing_sdks_get_the_same_figures_without_any_extra(
    workspace: Path, environment: dict[str, str]
) -> None:
    if "py" not in runnable():
        pytest.skip("py cannot run here")
    arguments = (
        *(
            "--sdk",
            "py",
            "--sdk",
            "tests.negative.faulty:OtherStopWords",
            "--scenario",
            "ask-basic",
        ),
        *("--scorer", "exact", "--floor", "0", "--quiet", "--json", "report.json"),
    )

    def parity(*without: str) -> dict[str, Any]:
        ended = call(workspace, environment, "run", *arguments, without=without)
        assert ended.code in (0, 1), ended.err
        report: dict[str, Any] = json.loads((workspace / "report.json").read_text())["parity"]
        report.pop("runs")  # ids of runs
        return report

    light = parity(*EXTRAS)
    assert light["pairs"][0]["score_difference"]["value"] != 0
    assert light == parity()


@pytest.mark.parametrize(
    ("extra", "args"),
    [
        ("bench", ("bench", "--system", "null")),
        ("fuzz", ("fuzz", "--sdk", "py", "--sdk", "go")),
        ("qa", ("score", "answers.jsonl", "--rubric", "locomo", "--data", "b")),
    ],
)
def test_a_command_names_its_missing_extra(
    workspace: Path, environment: dict[str, str], extra: str, args: tuple[str, ...]
) -> None:
    for name in ("answers.jsonl", "a", "b"):
        (workspace / name).write_text("{}\n")
    ended = call(workspace, environment, *args)
    assert (ended.code, ended.out) == (2, "")
    assert f"extra_missing: {extra} needs " in ended.err
    assert f"try: pip install 'memconform[{extra}]'" in ended.err
    assert len(ended.err.splitlines()) == 2
    for shown in ("--help", "--schema"):
        ended = call(workspace, environment, args[0], shown)
        assert ended.code == 0, ended.err


@pytest.mark.parametrize("args", [("parity", "compare"), ("diff",)])
def test_help_of_a_comparison_needs_no_numpy(
    workspace: Path, environment: dict[str, str], args: tuple[str, ...]
) -> None:
    for shown in ("--help", "--schema"):
        ended = call(workspace, environment, *args, shown)
        assert ended.code == 0, ended.err


@pytest.mark.capability("packages")
def test_extras_install_their_modules_and_the_core_does_not() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]

    def names(requirements: list[str]) -> set[str]:
        # The names of a package and of its module differ by more than a dash only here.
        modules = {"vl_convert_python": "vl_convert", "hdrhistogram": "hdrh"}
        packages = (r.partition(">")[0].partition("=")[0].replace("-", "_") for r in requirements)
        return {modules.get(package, package) for package in packages}

    for extra, modules in lazy._MODULES.items():
        assert names(extras[extra]) == set(modules)
        assert not names(project["dependencies"]) & set(modules)
    [own] = (need for need in extras["dev"] if need.startswith("memconform["))
    assert lazy._MODULES.keys() <= set(own.removeprefix("memconform[").removesuffix("]").split(","))


def test_a_broken_extra_is_reported_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rank_bm25", None)
    with pytest.raises(UsageError, match="bench needs rank_bm25") as raised:
        lazy.require_extra("bench")
    assert raised.value.hint == "pip install 'memconform[bench]'"
    lazy.require_extra("qa")
