"""`doctor` without an SDK, on machines that lack something."""

import resource
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memconform.errors import UsageError
from memconform.llm.services import ModelCheck
from memconform.printing.errors import render_error
from memconform.runs.doctor import Step
from memconform.runs.machine import Machine, check_machine


async def _no_services(env: Mapping[str, str]) -> list[ModelCheck]:
    del env
    return []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine that has everything; the folders are those of the test."""
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    for name in ("MEMCONFORM_CACHE", "MEMCONFORM_DATA", "MEMCONFORM_SOURCES", "MEMCONFORM_PRICES"):
        monkeypatch.delenv(name, raising=False)
    return Machine(
        env={},
        which=lambda name: f"/bin/{name}",
        output_of=lambda argv: f"{argv[0]} 1.0\n",
        accepts=lambda _: None,
        files=lambda: (1024, 4096),
        free=lambda _: 50 << 30,
        services=_no_services,
        now=lambda: 1.8e9,
    )


def _is_empty(folder: Path) -> bool:
    return not any(folder.iterdir())


async def _steps(machine: Machine, tmp_path: Path) -> dict[str, Step]:
    return {step.name: step async for step in check_machine(machine, tmp_path / "results")}


async def test_a_machine_with_everything_has_no_fault(machine: Machine, tmp_path: Path) -> None:
    steps = await _steps(machine, tmp_path)
    assert [step for step in steps.values() if step.error is not None] == []
    assert all("\n" not in step.detail and step.detail for step in steps.values())
    names = {"python", "git", "go", "node", "npm", "proxies", "certificates", "builds", "cache"}
    names |= {"downloads", "results", "temporary files", "disk", "open files", "processes"}
    names |= {"file sizes", "memory"}
    assert steps.keys() == names | {"ports", "locale", "clock", "settings"}
    # A check looks; it makes no folder.
    assert _is_empty(tmp_path)


def _broken_tool(argv: tuple[str, ...]) -> str:
    raise subprocess.CalledProcessError(9, argv, stderr=f"{argv[0]}: --x is not in NODE_OPTIONS")


async def _bad_service(env: Mapping[str, str]) -> list[ModelCheck]:
    del env
    error = UsageError("OPENAI_BASE_URL is 'x'", code="bad_base_url")
    return [ModelCheck(provider="openai", error=error)]


_NOWHERE = "/proc/nowhere"


@pytest.mark.parametrize(
    ("change", "name", "says"),
    [
        ({"output_of": _broken_tool}, "node", "node --version fails"),
        ({"services": _bad_service}, "model openai", "OPENAI_BASE_URL"),
        ({"env": {"HTTPS_PROXY": "ftp://p"}}, "proxies", "HTTPS_PROXY is 'ftp://p'"),
        ({"env": {"SSL_CERT_FILE": _NOWHERE}}, "certificates", f"SSL_CERT_FILE is {_NOWHERE}"),
        ({"env": {"JB_EVAL_JUDGE_MODEL": "mine"}}, "settings", "JB_EVAL_JUDGE_MODEL"),
        ({"env": {"JB_LME_ACTOR_MODEL": "mine"}}, "settings", "JB_LME_ACTOR_MODEL"),
        ({"env": {"JB_LME_JUDGE_MODEL": "mine"}}, "settings", "JB_LME_JUDGE_MODEL"),
        ({"env": {"JB_EVAL_BUDGET_USD": "much"}}, "settings", "JB_EVAL_BUDGET_USD"),
        ({"free": lambda _: 1 << 20}, "disk", "1 MiB are free at"),
        ({"files": lambda: (16, 16)}, "open files", "at most 16 open files"),
        ({"accepts": lambda _: "Network is unreachable"}, "ports", "cannot connect to itself"),
    ],
)
async def test_what_would_break_a_run_fails(
    machine: Machine, tmp_path: Path, change: dict[str, Any], name: str, says: str
) -> None:
    step = (await _steps(replace(machine, **change), tmp_path))[name]
    assert step.error is not None
    assert step.is_needed
    assert says in render_error(step.error)


@pytest.mark.parametrize(
    ("limit", "size", "name", "is_needed"),
    [
        (resource.RLIMIT_FSIZE, 64 << 10, "file sizes", True),
        (resource.RLIMIT_AS, 200 << 20, "memory", True),
        (resource.RLIMIT_AS, 1000 << 20, "memory", False),
    ],
)
async def test_a_limit_of_the_shell_that_fails_daemons_is_named(
    machine: Machine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
    size: int,
    name: str,
    *,
    is_needed: bool,
) -> None:
    """`doctor` was green under `ulimit -f`, under which `conform` does not begin."""
    whole = resource.getrlimit
    monkeypatch.setattr(
        "memconform.daemons.limits.resource.getrlimit",
        lambda which: (size, size) if which == limit else whole(which),
    )
    step = (await _steps(machine, tmp_path))[name]
    assert step.error is not None
    assert step.is_needed is is_needed
    assert "ulimit" in step.error.hint


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("XDG_CACHE_HOME", "builds"),
        ("MEMCONFORM_CACHE", "cache"),
        ("MEMCONFORM_DATA", "downloads"),
        ("MEMCONFORM_SOURCES", "settings"),
        ("MEMCONFORM_PRICES", "settings"),
        ("MEMCONFORM_LEDGER", "settings"),
    ],
)
async def test_a_setting_that_cannot_be_used_fails(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, name: str
) -> None:
    monkeypatch.setenv(variable, _NOWHERE)
    step = (await _steps(machine, tmp_path))[name]
    assert step.error is not None
    assert step.is_needed


@pytest.mark.parametrize(
    ("change", "name", "says"),
    [
        ({"which": lambda _: None}, "go", "--sdk all skips SDKs in Go"),
        ({"free": lambda _: 500 << 20}, "disk", "500 MiB are free at"),
        ({"files": lambda: (64, 64)}, "open files", "enough for --concurrency 32"),
        ({"now": lambda: 0.0}, "clock", "the clock says 1970"),
        ({"env": {"TZ": "Nowhere/Gone"}}, "clock", "TZ is 'Nowhere/Gone'"),
        ({"env": {"TMPDIR": _NOWHERE}}, "temporary files", f"TMPDIR is {_NOWHERE}"),
    ],
)
async def test_what_only_degrades_a_run_is_a_warning(
    machine: Machine, tmp_path: Path, change: dict[str, Any], name: str, says: str
) -> None:
    step = (await _steps(replace(machine, **change), tmp_path))[name]
    assert step.error is not None
    assert not step.is_needed
    assert says in render_error(step.error)


async def test_one_loopback_address_is_enough(machine: Machine, tmp_path: Path) -> None:
    v6 = replace(machine, accepts=lambda host: None if ":" in host else "no such address")
    step = (await _steps(v6, tmp_path))["ports"]
    assert step.error is None
    assert step.detail == "daemons can listen at ::1; 127.0.0.1: no such address"


async def test_a_secret_of_a_proxy_is_not_shown(machine: Machine, tmp_path: Path) -> None:
    env = {"HTTPS_PROXY": "http://user:hunter2@proxy:3128"}
    step = (await _steps(replace(machine, env=env), tmp_path))["proxies"]
    assert "proxy:3128" in step.detail
    assert "hunter2" not in step.detail


async def test_a_python_that_cannot_be_started_fails_its_check_and_no_other(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing process ended `doctor` with a traceback."""
    monkeypatch.setattr("memconform.runs.machine.sys.executable", "/bin/false")
    steps = await _steps(machine, tmp_path)
    failed = steps["processes"].error
    assert failed is not None
    assert failed.code == "too_many_processes"
    assert steps["settings"].error is None


async def test_a_folder_below_one_that_cannot_be_searched_ends_no_other_check(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking whether it exists is an error there, and ended `doctor`."""
    exists = Path.exists

    def refused(path: Path) -> bool:
        if path.name == "results":
            raise PermissionError(13, "Permission denied", str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", refused)
    steps = await _steps(machine, tmp_path)
    assert {"results", "disk", "settings"} <= steps.keys()
