"""`ci`, and what action.yml does with it on a CI server."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import CHECKOUT, Ended
from tests.program import PROGRAM

Call = Callable[..., Ended]

_MINIMAL = CHECKOUT / "sdks" / "examples" / "minimal"
_ACTION: dict[str, Any] = yaml.safe_load((CHECKOUT / "action.yml").read_text(encoding="utf-8"))
_GIT = shutil.which("git") or "git"


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run([_GIT, *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(workspace: Path) -> Path:
    """An SDK with a release `v1`, and a commit since then."""
    for name in ("memory.py", "sdk.toml"):
        shutil.copy(_MINIMAL / name, workspace)
    _git(workspace, "init", "--quiet")
    _git(workspace, "add", "memory.py", "sdk.toml")
    _git(workspace, "commit", "--quiet", "-m", "first")
    _git(workspace, "tag", "v1")
    (workspace / "README.md").write_text("since then\n")
    _git(workspace, "add", "README.md")
    _git(workspace, "commit", "--quiet", "-m", "second")
    return workspace


def _table(folder: Path) -> dict[str, str]:
    """The mark of each step in the summary."""
    text = (folder / "results" / "ci" / "summary.md").read_text(encoding="utf-8")
    _, _, *rows = text.partition("\n\n")[0].splitlines()
    return {name.strip(): mark.strip() for _, name, mark, *_ in (row.split("|") for row in rows)}


@pytest.mark.capability("ci")
def test_the_script_of_the_action_does_each_step_and_reports_it(
    repository: Path, environment: dict[str, str]
) -> None:
    """As on a CI server, but for the installation: the reference daemon against the example."""
    program = repository / "temp" / "memconform" / "bin" / "memconform"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{PROGRAM}" "$@"\n')
    program.chmod(0o755)
    [step] = [step for step in _ACTION["runs"]["steps"] if step.get("id") == "test"]
    defaults = {
        name: _ACTION["inputs"][value.removeprefix("${{ inputs.").removesuffix(" }}")]["default"]
        for name, value in step["env"].items()
    }
    inputs = {
        "INPUT_SDK": str(CHECKOUT / "sdks" / "py" / "sdk.toml"),
        "INPUT_AGAINST": "./sdk.toml",
        "INPUT_PROFILES": "auth",
        "INPUT_MODE": "bm25",
    }
    place = {
        "RUNNER_TEMP": str(repository / "temp"),
        "GITHUB_ACTION_PATH": str(CHECKOUT),
        "GITHUB_OUTPUT": str(repository / "output"),
        "GITHUB_STEP_SUMMARY": str(repository / "summary.md"),
    }
    ended = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],  # noqa: S607 - as a runner does
        cwd=repository,
        env=environment | defaults | inputs | place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert (repository / "output").read_text() == "exit-code=0\n", ended.stdout + ended.stderr
    steps = ("doctor", "conform", "client", "reference", "run", "parity")
    assert _table(repository) == dict.fromkeys(steps, "✅")
    folder = repository / "results" / "ci"
    summary = (repository / "summary.md").read_text(encoding="utf-8")
    assert summary == (folder / "summary.md").read_text(encoding="utf-8")
    assert "| 1.000 (0.839 to 1.000) | 1.000 (0.839 to 1.000) | identical |" in summary
    # Annotations are commands of their own; nothing else in the log may be one.
    commands = [line for line in ended.stdout.splitlines() if line.startswith("::")]
    assert commands == (folder / "annotations.txt").read_text(encoding="utf-8").splitlines()
    assert commands
    assert json.loads((folder / "badge.json").read_text())["schemaVersion"] == 1
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!")
    assert "<testsuites>" in (folder / "junit.xml").read_text(encoding="utf-8")


def test_the_last_release_is_the_baseline_and_leaves_no_checkout(
    repository: Path, memconform: Call
) -> None:
    ended = memconform("ci", "--step", "parity", "--against-ref", "latest", "--quiet")
    assert ended.code == 0, ended.out + ended.err
    assert _table(repository) == dict.fromkeys(("reference", "run", "parity"), "✅")
    assert "identical on 20 questions" in ended.out
    listed = subprocess.run(
        [_GIT, "worktree", "list"], cwd=repository, capture_output=True, text=True, check=True
    )
    assert len(listed.stdout.splitlines()) == 1
    # A tag of this commit itself is the release in the making.
    _git(repository, "tag", "v2")
    again = memconform("ci", "--step", "parity", "--against-ref", "latest", "--quiet")
    assert again.code == 0
    assert "release/sdk.toml" in again.out


def test_what_the_last_release_found_and_this_commit_does_not_is_drift(
    repository: Path, memconform: Call
) -> None:
    """Only questions find nothing, so that the index is still proven."""
    text = (repository / "memory.py").read_text()
    broken = text.replace("hits[:top_k]", 'hits[: 0 if query.endswith("?") else top_k]')
    assert broken != text
    (repository / "memory.py").write_text(broken)
    ended = memconform("ci", "--step", "parity", "--against-ref", "v1", "--floor", "0", "--quiet")
    assert ended.code == 1, ended.out + ended.err
    assert _table(repository) == {"reference": "✅", "run": "✅", "parity": "❌"}
    summary = (repository / "results" / "ci" / "summary.md").read_text(encoding="utf-8")
    assert "that its baseline passed" in summary
    assert "::error" in (repository / "results" / "ci" / "annotations.txt").read_text()


# Each takes 10 s of CPU.
@pytest.mark.parametrize(
    "ref",
    [
        "-h",
        "$(touch pwned)",
        pytest.param("v0", marks=pytest.mark.slow),
        pytest.param("--output=pwned", marks=pytest.mark.slow),
    ],
)
def test_a_release_that_does_not_exist_is_named_and_the_rest_is_done(
    repository: Path, memconform: Call, ref: str
) -> None:
    ended = memconform("ci", "--step=run", "--step=parity", f"--against-ref={ref}", "--quiet")
    assert ended.code == 2, ended.out
    assert "no_release: git rev-parse:" in ended.err
    table = _table(repository)
    assert table == {"reference": "❔", "run": "✅"}
    summary = (repository / "results" / "ci" / "summary.md").read_text(encoding="utf-8")
    assert "parity was not tried: one of the two results is missing" in summary
    assert not list(repository.rglob("pwned"))


def test_a_repository_without_a_tag_has_no_last_release(workspace: Path, memconform: Call) -> None:
    for name in ("memory.py", "sdk.toml"):
        shutil.copy(_MINIMAL / name, workspace)
    _git(workspace, "init", "--quiet")
    _git(workspace, "add", "sdk.toml")
    _git(workspace, "commit", "--quiet", "-m", "first")
    ended = memconform("ci", "--step", "parity", "--against-ref", "latest", "--quiet")
    assert ended.code == 2
    assert "no_release: no ancestor of this commit has a tag" in ended.err
    assert "fetch-depth: 0" in ended.err


def test_a_daemon_that_does_not_start_is_in_the_summary_and_no_low_score(
    workspace: Path, memconform: Call
) -> None:
    (workspace / "sdk.toml").write_text(
        'name = "mine"\nlanguage = "python"\n'
        '[serve]\nargv = ["{python}", "-c", "raise SystemExit(\'<b>no</b> | database\')"]\n'
        '[capabilities]\nprofiles = ["core"]\nmodes = ["bm25"]\n'
    )
    ended = memconform("ci", "--step", "doctor", "--step", "run", "--mode", "bm25", "--quiet")
    assert ended.code == 3, ended.out
    assert _table(workspace) == {"doctor": "❔", "run": "❔"}
    summary = (workspace / "results" / "ci" / "summary.md").read_text(encoding="utf-8")
    assert "What doctor printed" in summary
    assert "change: sdk.toml:4 [serve] argv" in summary
    assert "<b>no" not in summary


def test_an_invalid_manifest_ends_with_the_first_step(workspace: Path, memconform: Call) -> None:
    (workspace / "sdk.toml").write_text('name = "mine"\nlanguag = "x"\n')
    ended = memconform("ci")
    assert ended.code == 2
    assert "sdk.toml:2: languag: unknown key" in ended.err
    assert _table(workspace) == {"doctor": "❔"}


def test_results_of_an_earlier_call_are_not_reported(repository: Path, memconform: Call) -> None:
    assert memconform("ci", "--step", "run", "--quiet").code == 0
    folder = repository / "results" / "ci"
    assert (folder / "run.json").is_file()
    assert memconform("ci", "--step", "doctor", "--quiet").code == 0
    assert not (folder / "run.json").exists()
    assert not (folder / "junit.xml").exists()
    assert _table(repository) == {"doctor": "✅"}


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--against", "py", "--against-ref", "v1"), "give either --against or --against-ref"),
        (("--step", "parity"), "--step parity needs --against or --against-ref"),
        (("--step", "deploy"), "'deploy' is not one of"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(
    memconform: Call, flags: tuple[str, ...], says: str
) -> None:
    ended = memconform("ci", *flags)
    assert ended.code == 2
    assert says in ended.err
