"""The workflows do on this machine what they do on a CI server."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.altering import altered
from tests.conftest import CHECKOUT, SDKS

_WORKFLOWS = sorted((CHECKOUT / ".github" / "workflows").glob("*.yml"))


def _loaded(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


@pytest.mark.parametrize("path", _WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_only_read_and_pin_their_actions(path: Path) -> None:
    workflow = _loaded(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        assert job["timeout-minutes"] <= 60
        for step in job["steps"]:
            # What an expression holds must not become a part of a script.
            assert "${{" not in step.get("run", "")
            if "uses" in step:
                assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])
            if step.get("uses", "").startswith("actions/checkout"):
                assert step["with"]["persist-credentials"] is False


def _scripts(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def _carried_out(job: dict[str, Any], clone: Path, summary: Path, sdk: str = "") -> list[int]:
    """Each `run:` of a job, in order, as the runner's shell takes it; their exit codes."""
    home = clone.parent / "home"
    home.mkdir(exist_ok=True)
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    env |= {"HOME": str(home), "GITHUB_STEP_SUMMARY": str(summary)}
    codes = []
    for script in _scripts(job):
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        codes.append(
            subprocess.run(command, cwd=clone, env=env | {"SDK": sdk}, check=False).returncode
        )
    return codes


@pytest.mark.slow
@pytest.mark.timeout(1_500)  # three daemons are built from nothing
def test_each_step_of_the_smoke_workflow_runs_in_a_clean_clone(tmp_path: Path) -> None:
    """In one clone, job after job; what is uploaded is what is downloaded."""
    jobs = _loaded(CHECKOUT / ".github" / "workflows" / "eval-smoke.yml")["jobs"]
    assert tuple(jobs["run"]["strategy"]["matrix"]["sdk"]) == SDKS
    clone, summary = tmp_path / "clone", tmp_path / "summary.md"
    subprocess.run([shutil.which("git") or "git", "clone", "--quiet", CHECKOUT, clone], check=True)
    for sdk in SDKS:
        assert _carried_out(jobs["run"], clone, summary, sdk) == [0, 0, 0]
    assert _carried_out(jobs["parity"], clone, summary) == [0, 0, 0]
    text = summary.read_text(encoding="utf-8")
    assert text.count("identical on all") == 6
    # A run that was tampered with fails the last job.
    [result] = (clone / "results" / "search-go" / "runs").glob("*/result.json")
    altered(result, tmp_path, _all_failed).replace(result)
    assert _carried_out(jobs["parity"], clone, summary) == [0, 1, 0]
    assert "❌" in summary.read_text(encoding="utf-8")
    # So does one that is missing.
    result.unlink()
    assert _carried_out(jobs["parity"], clone, summary) == [0, 1, 0]
    shutil.rmtree(clone)


def _all_failed(loaded: dict[str, Any]) -> None:
    for question in loaded["questions"]:
        question |= {"passed": False, "score": 0.0, "verdict": "incorrect"}
