"""`init`: from a repository that has no sdk.toml to a green `doctor`."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from memconform.bench.raw_http import serving
from memconform.conformance.known_failures import load_known
from memconform.daemons.manifest import load_manifest
from tests.conftest import CHECKOUT, Ended
from tests.fakes.foreign import ForeignDaemon

Call = Callable[..., Ended]

_MINIMAL = CHECKOUT / "sdks" / "examples" / "minimal" / "memory.py"
_MAIN = """\
import argparse
import os
import sys

parser = argparse.ArgumentParser()
serve = parser.add_subparsers().add_parser("serve")
serve.add_argument("--addr")
serve.add_argument("--data-dir")
given = parser.parse_args()
os.execv(sys.executable, [sys.executable, __file__.replace("__main__", "memory"),
    *given.addr.rsplit(":", 1)])
"""
"""The minimal daemon behind a command line as most have it."""


@pytest.fixture
def repository(workspace: Path) -> Path:
    """A Python package without a dependency, which serves the minimal daemon."""
    package = workspace / "src" / "recall"
    package.mkdir(parents=True)
    (workspace / "pyproject.toml").write_text('[project]\nname = "recall"\nversion = "1"\n')
    (package / "__main__.py").write_text(_MAIN)
    shutil.copy(_MINIMAL, package / "memory.py")
    return workspace


@pytest.mark.capability("init")
def test_doctor_passes_from_what_init_has_written(repository: Path, installed: Call) -> None:
    ended = installed("init")
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[-1] == "next      memconform doctor --sdk sdk.toml"
    assert "saw       Python: pyproject.toml and src/recall/__main__.py" in ended.out
    manifest = load_manifest(repository / "sdk.toml")
    assert manifest.known is not None
    assert load_known(repository / manifest.known.file) == []
    workflow = repository / ".github" / "workflows" / "memconform.yml"
    [job] = yaml.safe_load(workflow.read_text())["jobs"].values()
    assert job["steps"][-1]["with"] == {"sdk": "./sdk.toml"}
    doctor = installed("doctor", "--sdk", "sdk.toml")
    assert doctor.code == 0, doctor.out
    assert "FAIL" not in doctor.out


def test_a_failure_of_doctor_names_the_line_that_init_has_marked(
    workspace: Path, memconform: Call
) -> None:
    """This daemon takes host and port as arguments, which no file says."""
    shutil.copy(_MINIMAL, workspace)
    ended = memconform("init")
    assert ended.code == 0, ended.err
    assert "check     sdk.toml:7 argv: not seen in the sources: the command serve" in ended.out
    doctor = memconform("doctor", "--sdk", "sdk.toml")
    assert doctor.code == 3
    assert "       change: sdk.toml:7 [serve] argv\n" in doctor.out
    lines = (workspace / "sdk.toml").read_text().splitlines()
    assert lines[6].startswith("argv = ")
    lines[6] = 'argv = ["{python}", "memory.py", "{host}", "{port}"]'
    (workspace / "sdk.toml").write_text("\n".join(lines))
    assert memconform("doctor", "--sdk", "sdk.toml").code == 0


@pytest.mark.parametrize(
    ("files", "language"),
    [
        ({"go.mod": "module x\n", "cmd/x/main.go": "package main\n\nfunc main() {}\n"}, "go"),
        ({"package.json": json.dumps({"name": "x", "bin": "x.js"}), "x.js": ""}, "javascript"),
    ],
)
def test_a_skeleton_becomes_a_manifest_that_the_program_accepts(
    workspace: Path, memconform: Call, files: dict[str, str], language: str
) -> None:
    for name, text in files.items():
        (workspace / "x" / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / "x" / name).write_text(text)
    assert memconform("init", "x").code == 0
    assert load_manifest(workspace / "x" / "sdk.toml").language == language


@pytest.mark.parametrize(
    "name", ["sdk.toml", "known-failures.yaml", ".github/workflows/memconform.yml"]
)
def test_no_file_is_replaced_and_none_is_written_beside_it(
    repository: Path, memconform: Call, name: str
) -> None:
    (repository / name).parent.mkdir(parents=True, exist_ok=True)
    (repository / name).write_text("mine")
    before = sorted(repository.rglob("*"))
    ended = memconform("init")
    assert ended.code == 2
    assert f"init_exists: {name} exists already" in ended.err
    assert (repository / name).read_text() == "mine"
    assert sorted(repository.rglob("*")) == before


def test_the_workflow_of_a_folder_of_a_repository_lies_at_its_root(
    workspace: Path, memconform: Call
) -> None:
    subprocess.run([shutil.which("git") or "git", "init", "--quiet", workspace], check=True)
    (workspace / "sdks" / "py").mkdir(parents=True)
    shutil.copy(_MINIMAL, workspace / "sdks" / "py")
    ended = memconform("init", "sdks/py")
    assert ended.code == 0, ended.err
    workflow = workspace / ".github" / "workflows" / "memconform-memory.yml"
    [job] = yaml.safe_load(workflow.read_text())["jobs"].values()
    assert job["steps"][-1]["with"] == {"sdk": "./sdks/py/sdk.toml"}


def test_a_folder_without_a_program_says_what_to_write(workspace: Path, memconform: Call) -> None:
    ended = memconform("init")
    assert ended.code == 2
    assert "nothing_recognized: . has no program of Go, Rust, .NET" in ended.err
    assert "| [serve]" in ended.err
    assert not list(workspace.iterdir())


async def test_the_dialect_of_a_daemon_that_runs_is_one_that_doctor_takes(
    workspace: Path, memconform: Call
) -> None:
    """It answers /healthz, has no /version, and calls its brains stores, which nobody can see."""
    async with serving(ForeignDaemon().answer, "127.0.0.1", 0) as port:
        url = f"http://127.0.0.1:{port}"
        ended = await asyncio.to_thread(memconform, "init", "--url", url)
        assert ended.code == 0, ended.err
        assert "answered  GET /healthz\n" in ended.out
        text = (workspace / "dialect.toml").read_text()
        assert "\nversion = false     # GET /version answered 404\n" in text
        assert '\n# create_brain = "POST /PATH"     # POST /v1/brains was not tried\n' in text
        reference = f"url:{url},dialect=dialect.toml"
        assert ended.out.endswith(f"next      memconform doctor --sdk {reference}\n")
        doctor = await asyncio.to_thread(memconform, "doctor", "--sdk", reference)
        assert "ok   version" in doctor.out, doctor.out
        again = await asyncio.to_thread(memconform, "init", "--url", url)
    assert again.code == 2
    assert "init_exists: dialect.toml exists already" in again.err
