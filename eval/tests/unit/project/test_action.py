"""action.yml: no input reaches a shell as text, each is used and documented, actions are pinned."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from memconform.cli.ci.command import CiOptions
from memconform.cli.lazy import captured
from memconform.cli.main import cli
from memconform.daemons.manifest_draft import ACTION, draft_workflow
from tests.conftest import CHECKOUT

_ACTION: dict[str, Any] = yaml.safe_load((CHECKOUT / "action.yml").read_text(encoding="utf-8"))
_SCRIPT = CHECKOUT / "scripts" / "action.sh"
_STEPS: list[dict[str, Any]] = _ACTION["runs"]["steps"]
_PAGE = (CHECKOUT / "docs" / "CI.md").read_text(encoding="utf-8")

_BASH = shutil.which("bash") or "bash"


def _shell_faults(action: dict[str, Any]) -> list[str]:
    """Scripts with an expression in them, and steps without a shell."""
    faults = []
    for step in action["runs"]["steps"]:
        if "${{" in step.get("run", ""):
            faults.append(step["run"])
        if "run" in step and step.get("shell") != "bash":
            faults.append("no shell")
    return faults


def test_no_expression_stands_in_a_script() -> None:
    assert sum("run" in step for step in _STEPS) == 3
    assert _shell_faults(_ACTION) == []


def test_an_expression_in_a_script_is_found() -> None:
    step = {"shell": "bash", "run": "memconform ci --sdk ${{ inputs.sdk }}"}
    assert _shell_faults({"runs": {"steps": [step, {"run": "true"}]}}) == [
        *(step["run"], "no shell"),
    ]


def test_actions_are_pinned_as_those_of_the_workflows_are() -> None:
    used = [step["uses"] for step in _STEPS if "uses" in step]
    workflows = "".join(
        path.read_text(encoding="utf-8") for path in (CHECKOUT / ".github/workflows").glob("*.yml")
    )
    assert len(used) == 2
    for reference in used:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", reference)
        assert reference in workflows


def _variables() -> dict[str, str]:
    """The variables of the step that tests, and the inputs that they hold."""
    [step] = [step for step in _STEPS if step.get("id") == "test"]
    return {
        name: re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", value)[1]  # type: ignore[index]
        for name, value in step["env"].items()
    }


def test_each_input_is_described_used_and_documented() -> None:
    inputs: dict[str, Any] = _ACTION["inputs"]
    elsewhere = {"artifact", "python-version"}
    assert set(_variables().values()) | elsewhere == set(inputs)
    text = _SCRIPT.read_text(encoding="utf-8")
    assert set(re.findall(r"\bINPUT_[A-Z_]+", text)) - {"INPUT_"} == set(_variables())
    for name in elsewhere:
        assert f"${{{{ inputs.{name}" in (CHECKOUT / "action.yml").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z-]+)` \|([^|]*)\|", _PAGE, re.MULTILINE))
    documented = {name: default.strip(" `") for name, default in rows.items() if name in inputs}
    assert documented == {name: spec["default"] for name, spec in inputs.items()}
    assert all(spec["description"] for spec in inputs.values())


def _run_script(folder: Path, inputs: dict[str, str]) -> tuple[list[str], str]:
    """The arguments that memconform gets of the script, and the output of the step."""
    program = folder / "temp" / "memconform" / "bin" / "memconform"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text('#!/bin/sh\nprintf \'%s\\0\' "$@" > "$RECORD"\nexit 3\n')
    program.chmod(0o755)
    defaults = {name: _ACTION["inputs"][each]["default"] for name, each in _variables().items()}
    files = {
        name: str(folder / name) for name in ("RECORD", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
    }
    place = {"RUNNER_TEMP": str(folder / "temp"), "GITHUB_ACTION_PATH": str(CHECKOUT)}
    work = folder / "work"
    work.mkdir(exist_ok=True)
    ended = subprocess.run(
        [_BASH, "--noprofile", "--norc", "-eo", "pipefail", "-c", f'"{_SCRIPT}"'],
        cwd=work,
        env={"PATH": "/usr/bin:/bin", **defaults, **inputs, **files, **place},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    arguments = Path(files["RECORD"]).read_text(encoding="utf-8").split("\0")[:-1]
    return arguments, Path(files["GITHUB_OUTPUT"]).read_text(encoding="utf-8")


def _options(arguments: list[str]) -> CiOptions:
    with captured() as calls:
        cli.main(arguments, prog_name="memconform", standalone_mode=False)
    [(_, options)] = calls
    assert isinstance(options, CiOptions)
    return options


def test_defaults_are_those_of_the_verb(tmp_path: Path) -> None:
    arguments, output = _run_script(tmp_path, {})
    assert _options(arguments) == _options(["ci"])
    assert output == "exit-code=3\n"


def test_inputs_become_flags(tmp_path: Path) -> None:
    inputs = {
        "INPUT_AGAINST": "py",
        "INPUT_STEPS": "doctor\n\nparity\n",
        "INPUT_PROFILES": "core",
        "INPUT_FLOOR": "0.8",
        "INPUT_SDK": "-a path with spaces/sdk.toml",
    }
    options = _options(_run_script(tmp_path, inputs)[0])
    assert options.against == str(CHECKOUT / "sdks" / "py" / "sdk.toml")
    assert options.step == ("doctor", "parity")
    assert options.profile == ("core",)
    assert options.floor == "0.8"
    assert options.sdk == "-a path with spaces/sdk.toml"


_HOSTILE = ('"; touch pwned; #', "$(touch pwned)", "`touch pwned`", "'; touch pwned; '", "*", "a b")


@pytest.mark.parametrize("value", _HOSTILE)
@pytest.mark.parametrize("variable", sorted(_variables()))
def test_a_hostile_input_is_one_argument_and_no_command(
    tmp_path: Path, variable: str, value: str
) -> None:
    arguments, output = _run_script(tmp_path, {variable: value})
    assert [argument.partition("=")[2] for argument in arguments].count(value) == 1
    assert not list(tmp_path.rglob("pwned"))
    assert not list(CHECKOUT.glob("pwned"))
    assert output == "exit-code=3\n"


def _yaml_blocks(text: str) -> list[dict[str, Any]]:
    return [
        yaml.safe_load(block)
        for block in re.findall(r"^```yaml\n(.+?)^```", text, re.MULTILINE | re.DOTALL)
    ]


def test_documented_and_generated_workflows_use_inputs_that_exist() -> None:
    workflows = [yaml.safe_load(draft_workflow("./sdk.toml")), *_yaml_blocks(_PAGE)]
    steps = [
        step
        for workflow in workflows
        for job in workflow.get("jobs", {}).values()
        for step in job["steps"]
        if step.get("uses", "").startswith(ACTION.partition("@")[0])
    ]
    assert len(steps) >= 3
    for step in steps:
        assert step["uses"] == ACTION
        assert set(step.get("with", {})) <= set(_ACTION["inputs"])


def test_documented_commands_of_ci_parse() -> None:
    lines = re.findall(r"^\s*(?:- )?memconform (ci .*)$", _PAGE, re.MULTILINE)
    assert len(lines) >= 2
    for line in lines:
        assert _options(line.split()).sdk == "./sdk.toml"
