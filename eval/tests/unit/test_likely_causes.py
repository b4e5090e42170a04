"""A failure that the machine caused names what the machine lacks."""

import os
import resource
from pathlib import Path
from unittest.mock import Mock

import pytest

from memconform.bench.daemon_session import daemon_session
from memconform.client.timing import Timeouts
from memconform.contract.wire import Profile
from memconform.daemons import limits
from memconform.daemons.build import ensure_built
from memconform.daemons.manifest import Build, Capabilities, Manifest, Serve
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.runner import Launch
from memconform.errors import DaemonError, MemconformError, UsageError
from memconform.runs.engine import execute
from memconform.runs.events import RunFinished, RunHalted
from memconform.runs.loop import interruption
from tests.adversarial.inprocess import FaultyRun, plan_of, write_dataset

_FAILED = DaemonError("seeding failed", code="seed_failed", hint="see its log", excerpt="500")
_UNLIMITED = resource.RLIM_INFINITY


def _manifest(*command: str) -> Manifest:
    return Manifest(
        name="mine",
        language="sh",
        build=Build(command=[*command], inputs=["*"]) if command else None,
        serve=Serve(argv=["false"]),
        capabilities=Capabilities(profiles=[Profile.CORE], modes=["auto"]),
    )


def _allow(monkeypatch: pytest.MonkeyPatch, free: int, memory: int = _UNLIMITED) -> None:
    whole = resource.getrlimit

    def getrlimit(which: int) -> tuple[int, int]:
        return (memory, memory) if which == resource.RLIMIT_AS else whole(which)

    monkeypatch.setattr("memconform.daemons.limits.resource.getrlimit", getrlimit)
    # The one function of the one module, whoever asks.
    monkeypatch.setattr("shutil.disk_usage", lambda _: Mock(free=free))


@pytest.mark.parametrize(
    ("free", "memory", "code"),
    [
        (1 << 20, _UNLIMITED, "disk_full"),
        (1 << 30, 500 << 20, "out_of_memory"),
        (1 << 30, 1000 << 20, "seed_failed"),
        (1 << 30, _UNLIMITED, "seed_failed"),
    ],
)
def test_the_lack_is_named_with_what_failed(
    free: int, memory: int, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _allow(monkeypatch, free, memory)
    error = limits.explained(_FAILED, tmp_path / "gone")
    assert (error.code, error.excerpt, error.exit_code) == (code, "500", _FAILED.exit_code)
    assert error is _FAILED or "seed_failed: seeding failed" in error.message


@pytest.mark.parametrize("error", [interruption(), UsageError("x", code="x")])
def test_what_no_daemon_caused_stays(
    error: MemconformError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _allow(monkeypatch, 0)
    assert limits.explained(error, tmp_path) is error


async def test_a_bench_and_a_replay_name_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`bench` and `lme` said `daemon_exited`."""
    runner, launch = ManifestRunner(_manifest(), tmp_path), Launch("run", tmp_path / "daemon")
    _allow(monkeypatch, 0)
    with pytest.raises(DaemonError) as caught:
        async with daemon_session(
            runner, launch, "own", connections=1, timeouts=Timeouts(), headers={}
        ):
            pass
    assert caught.value.code == "disk_full"
    assert "daemon_exited" in caught.value.message


async def test_a_run_names_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`run` said `seed_failed`, or `daemon_exited`."""
    plan = plan_of(
        FaultyRun((), "ask-basic", concurrency=1), write_dataset(tmp_path), tmp_path / "results"
    )
    _allow(monkeypatch, 0)
    runner = ManifestRunner(_manifest(), tmp_path)
    events = [event async for event in execute(plan, runner)]
    (halted,) = (event.error for event in events if isinstance(event, RunHalted))
    (finished,) = (event for event in events if isinstance(event, RunFinished))
    assert halted.code == "disk_full"
    assert finished.summary.incident is not None
    assert finished.summary.incident.code == "disk_full"


async def test_a_build_names_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was `build_failed`, with the traceback of a build script of ours."""
    _allow(monkeypatch, 1 << 20)
    cache = tmp_path / "cache"
    with pytest.raises(UsageError) as caught:
        await ensure_built(_manifest("false"), tmp_path, "k", lambda _: None, cache=cache)
    assert caught.value.code == "disk_full"
    assert str(cache) in caught.value.message
    assert "XDG_CACHE_HOME" in caught.value.hint


async def test_a_build_below_a_path_that_is_not_utf_8_names_it_if_it_fails(tmp_path: Path) -> None:
    cache = tmp_path / os.fsdecode(b"c\xff")
    with pytest.raises(UsageError) as caught:
        await ensure_built(_manifest("false"), tmp_path, "k", lambda _: None, cache=cache)
    assert caught.value.code == "cache_unwritable"
    assert "not valid UTF-8" in caught.value.message
    built = await ensure_built(_manifest("true"), tmp_path, "k", lambda _: None, cache=cache)
    assert built.parent == cache
