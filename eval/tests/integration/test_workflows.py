"""The workflows do on this machine what they do on a CI server."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from memconform import __version__
from tests.altering import altered
from tests.conftest import CHECKOUT, SDKS

_WORKFLOWS = sorted((CHECKOUT / ".github" / "workflows").glob("*.yml"))


def _loaded(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


_RIGHTS = {
    ("release", "publish"): {"id-token": "write", "attestations": "write"},
    ("release", "push"): {"packages": "write"},
    ("release", "attach"): {"contents": "write"},
    ("eval-nightly", "pages"): {"pages": "write", "id-token": "write"},
}
"""Permissions of the jobs that may do more than read the repository."""

_OTHERS_ACTIONS = {("release", "publish"): "pypa/gh-action-pypi-publish"}
"""Jobs that use an action that GitHub does not maintain."""


def _faults(name: str, workflow: dict[str, Any]) -> Iterator[str]:
    """Excess permissions of a workflow, and what it trusts although others can change it."""
    if workflow["permissions"] != {"contents": "read"}:
        yield "permissions of the workflow"
    for job_name, job in workflow["jobs"].items():
        yield from (f"{job_name}: {fault}" for fault in _job_faults((name, job_name), job))
        for step in job["steps"]:
            yield from (f"{job_name}: {fault}" for fault in _step_faults((name, job_name), step))


def _job_faults(place: tuple[str, str], job: dict[str, Any]) -> Iterator[str]:
    rights = _RIGHTS.get(place)
    if job.get("permissions") != rights:
        yield "permissions"
    if job["timeout-minutes"] > 60:
        yield "timeout"
    if rights and any("actions/checkout" in step.get("uses", "") for step in job["steps"]):
        yield "code of the repository beside rights"
    if rights and "id-token" in rights:
        if not job.get("environment"):
            yield "no environment"
        if any("run" in step for step in job["steps"]):
            yield "a script beside the token"


def _step_faults(place: tuple[str, str], step: dict[str, Any]) -> Iterator[str]:
    # What an expression holds must not become a part of a script.
    if "${{" in step.get("run", ""):
        yield "an expression in a script"
    if "uses" in step:
        action, _, commit = step["uses"].partition("@")
        settings = step.get("with", {})
        if not re.fullmatch(r"actions/[a-z/-]+", action) and action != _OTHERS_ACTIONS.get(place):
            yield action
        if not re.fullmatch(r"[0-9a-f]{40}", commit):
            yield f"{action} is not pinned"
        if action == "actions/checkout" and settings.get("persist-credentials") is not False:
            yield "credentials stay"
        if place[0] == "release" and (action.startswith("actions/cache") or settings.get("cache")):
            yield "a cache, which other workflows can fill"


@pytest.mark.parametrize("path", _WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_no_right_that_it_does_not_need_and_pins_its_actions(path: Path) -> None:
    assert not [*_faults(path.stem, _loaded(path))]


def _uses(action: str, commit: str = "0" * 40, **settings: object) -> dict[str, Any]:
    return {"steps": [{"uses": f"{action}@{commit}", "with": settings}]}


_PUBLISHING = "pypa/gh-action-pypi-publish"


@pytest.mark.parametrize(
    ("job", "change", "fault"),
    [
        ("publish", {"permissions": {"contents": "write"}}, "permissions"),
        ("package", {"permissions": {"id-token": "write"}}, "permissions"),
        ("attach", {"timeout-minutes": 61}, "timeout"),
        ("publish", {"environment": None}, "no environment"),
        ("publish", {"steps": [{"run": "true"}]}, "a script beside the token"),
        ("attach", {"steps": [{"run": "${{ github.ref }}"}]}, "an expression in a script"),
        ("attach", _uses("actions/checkout"), "code of the repository beside rights"),
        ("package", _uses("actions/checkout"), "credentials stay"),
        ("package", _uses(_PUBLISHING), _PUBLISHING),
        ("publish", _uses(_PUBLISHING, "release/v1"), f"{_PUBLISHING} is not pinned"),
        (
            "package",
            _uses("actions/setup-go", cache=True),
            "a cache, which other workflows can fill",
        ),
        ("package", _uses("actions/cache/save"), "a cache, which other workflows can fill"),
    ],
)
def test_a_release_with_more_rights_or_less_pinned_is_refused(
    job: str, change: dict[str, Any], fault: str
) -> None:
    workflow = _loaded(CHECKOUT / ".github" / "workflows" / "release.yml")
    workflow["jobs"][job] |= change
    assert f"{job}: {fault}" in _faults("release", workflow)
    # The permissions of a release are not those of another workflow.
    assert "publish: permissions" in _faults("ci", workflow)


@pytest.fixture(scope="module")
def shared_clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A clean clone, with a home of its own, so that daemons are built from nothing."""
    folder = tmp_path_factory.mktemp("runner")
    (folder / "home").mkdir()
    git = shutil.which("git") or "git"
    subprocess.run([git, "clone", "--quiet", CHECKOUT, folder / "clone"], check=True)
    yield folder / "clone"
    shutil.rmtree(folder)


@pytest.fixture
def clone(shared_clone: Path) -> Path:
    """The clone without results of another workflow."""
    shutil.rmtree(shared_clone / "results", ignore_errors=True)
    return shared_clone


def _carried_out(job: dict[str, Any], clone: Path, **variables: str | Path) -> list[int]:
    """Each `run:` of a job, in order; their exit codes."""
    return [_run(script, clone, **variables) for script in _scripts(job)]


def _scripts(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def _run(script: str, clone: Path, **variables: str | Path) -> int:
    """A script as the runner's shell takes it."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    env |= {"HOME": str(clone.parent / "home"), **{k: str(v) for k, v in variables.items()}}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    ended = subprocess.run(command, cwd=clone, env=env, stdin=subprocess.DEVNULL, check=False)
    return ended.returncode


def _jobs(name: str) -> dict[str, Any]:
    jobs: dict[str, Any] = _loaded(CHECKOUT / ".github" / "workflows" / name)["jobs"]
    return jobs


@pytest.mark.slow
@pytest.mark.timeout(1_500)  # three daemons are built from nothing
def test_each_step_of_the_smoke_workflow_runs_in_a_clean_clone(clone: Path, tmp_path: Path) -> None:
    """In one clone, job after job; what is uploaded is what is downloaded."""
    jobs, summary = _jobs("eval-smoke.yml"), tmp_path / "summary.md"
    assert tuple(jobs["run"]["strategy"]["matrix"]["sdk"]) == SDKS
    for sdk in SDKS:
        assert _carried_out(jobs["run"], clone, SDK=sdk) == [0, 0, 0]
    assert _carried_out(jobs["parity"], clone, GITHUB_STEP_SUMMARY=summary) == [0, 0, 0]
    text = summary.read_text(encoding="utf-8")
    assert text.count("identical on all") == 6
    # A run that was tampered with fails the last job.
    [result] = (clone / "results" / "search-go" / "runs").glob("*/result.json")
    altered(result, tmp_path, _all_failed).replace(result)
    assert _carried_out(jobs["parity"], clone, GITHUB_STEP_SUMMARY=summary) == [0, 1, 0]
    assert "❌" in summary.read_text(encoding="utf-8")
    # So does one that is missing.
    result.unlink()
    assert _carried_out(jobs["parity"], clone, GITHUB_STEP_SUMMARY=summary) == [0, 1, 0]


def _all_failed(loaded: dict[str, Any]) -> None:
    for question in loaded["questions"]:
        question |= {"passed": False, "score": 0.0, "verdict": "incorrect"}


@pytest.mark.slow
@pytest.mark.timeout(1_500)  # three daemons are built from nothing
def test_each_step_that_measures_by_night_runs_in_a_clean_clone(
    clone: Path, tmp_path: Path
) -> None:
    """Several nights on a few questions, one of which is worse."""
    jobs, summary = _jobs("eval-nightly.yml"), tmp_path / "summary.md"
    matrix = jobs["run"]["strategy"]["matrix"]
    assert tuple(matrix["sdk"]) == SDKS
    assert jobs["run"]["env"]["SHARD"] == f"${{{{ matrix.shard }}}}/{len(matrix['shard'])}"
    for name in ("merged", "last"):
        (tmp_path / name / "runs").mkdir(parents=True)
    assert matrix["scenario"] == ["search-retrieve-only", "ask-basic", "ask-augmented"]
    for scenario in matrix["scenario"][:2]:  # the third takes the same steps
        for sdk, shard in product(SDKS, matrix["shard"]):
            of = {"SDK": sdk, "SCENARIO": scenario, "SHARD": f"{shard}/{len(matrix['shard'])}"}
            assert _carried_out(jobs["run"], clone, **of, LIMIT="4", OPENAI_API_KEY="") == [0, 0]
            (clone / "results" / "runs").rename(tmp_path / f"part-{scenario}-{sdk}-{shard}")
        shutil.rmtree(clone / "parts", ignore_errors=True)
        (clone / "parts").mkdir()
        for part in tmp_path.glob("part-*"):
            part.rename(clone / "parts" / part.name)
        variables: dict[str, str | Path] = {"SCENARIO": scenario, "GITHUB_STEP_SUMMARY": summary}
        # The first night has none before it.
        assert _carried_out(jobs["merge"], clone, **variables) == [0, 0, 0, 0, 0]
        _, merge, parity, diff, keep = _scripts(jobs["merge"])
        assert [_run(script, clone, **variables) for script in (merge, parity, diff)] == [0, 0, 0]
        for name in ("merged", "last"):
            shutil.copytree(clone / name / "runs", tmp_path / name / "runs", dirs_exist_ok=True)
        # Answers that got worse are shown; retrieval that got worse fails the night.
        [result] = (clone / "merged" / "runs").glob("*-go-*/result.json")
        altered(result, tmp_path, _all_failed).replace(result)
        assert _run(diff, clone, **variables) == (scenario == "search-retrieve-only")
        # A missing shard fails the night.
        assert _run(keep, clone) == 0
        shutil.rmtree(next((clone / "parts").iterdir()))
        assert [_run(script, clone, **variables) for script in (merge, parity)] == [2, 1]
        shutil.rmtree(clone / "last")
    assert re.search(r"^## [1-9]\d* regression", summary.read_text(encoding="utf-8"), re.MULTILINE)
    for name in ("merged", "last"):
        (tmp_path / name).rename(clone / name)
    assert _carried_out(jobs["report"], clone, OPENAI_API_KEY="") == [0, 0, 0]
    assert {path.name for path in (clone / "site").iterdir()} == {"index.html", "badge.json"}
    key: dict[str, str | Path] = {"OPENAI_API_KEY": "sk-none", "JUDGE": "fake"}
    assert _carried_out(jobs["report"], clone, **key) == [0, 0, 0]
    assert (clone / "site" / "judged.html").is_file()


@pytest.mark.slow
@pytest.mark.timeout(1_500)  # three daemons are built from nothing
def test_each_step_before_a_release_is_published_runs_in_a_clean_clone(clone: Path) -> None:
    jobs, tag = _jobs("release.yml"), f"v{__version__}"
    assert _carried_out(jobs["package"], clone, GITHUB_REF_NAME=tag) == [0, 0, 0, 0]
    assert len(list((clone / "dist").iterdir())) == 2
    # A tag of another version is not released.
    assert _carried_out(jobs["package"], clone, GITHUB_REF_NAME="v999.0")[1] == 1
    assert _carried_out(jobs["daemons"], clone) == [0, 0, 0]
    assert len(list((clone / "archives").iterdir())) == len(SDKS)


_RELEASED = "release create v1.2.3 --repo Owner/memconform --verify-tag --generate-notes"


def test_the_image_and_the_release_are_published_under_the_tag(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stubs record the calls of docker and gh."""
    for name in ("docker", "gh"):
        program = workspace / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" "($(wc -c))" >> "$LOG"\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(workspace), prepend=os.pathsep)
    files = workspace / "files"
    files.mkdir()
    (files / "one.whl").touch()
    log, jobs = workspace / "log", _jobs("release.yml")
    variables: dict[str, str | Path] = {
        "GITHUB_REF_NAME": "v1.2.3",
        "GITHUB_REPOSITORY": "Owner/memconform",
        "GITHUB_ACTOR": "someone",
        "REGISTRY": "registry.example",
        "TOKEN": "secret",
        "LOG": log,
    }
    assert _carried_out(jobs["push"], workspace, **variables) == [0, 0]
    assert _carried_out(jobs["attach"], workspace, **variables) == [0]
    assert log.read_text().splitlines() == [
        "docker load --input memconform-image.tar.gz (0)",
        "docker login registry.example --username someone --password-stdin (7)",
        "docker tag memconform registry.example/owner/memconform:1.2.3 (0)",
        "docker push registry.example/owner/memconform:1.2.3 (0)",
        "docker logout registry.example (0)",
        f"gh {_RELEASED} files/one.whl (0)",
    ]
    # The context of the image's build is the commit.
    assert _scripts(jobs["image"])[0].startswith(
        "git archive HEAD | docker build --file Containerfile "
    )
