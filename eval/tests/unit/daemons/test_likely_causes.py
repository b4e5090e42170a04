"""A failure that the machine caused names what the machine lacks."""

import os
import resource
from collections.abc import AsyncGenerator
from pathlib import Path
from unittest.mock import Mock

import pytest

from memconform.client.timings import Timeouts
from memconform.concurrency import interruption
from memconform.contract.wire import Profile
from memconform.daemons import limits
from memconform.daemons.build import ensure_built
from memconform.daemons.manifest import Build, Capabilities, Manifest, Serve
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.sdk_runner import Launch
from memconform.errors import DaemonError, ExitCode, MemconformError, UsageError
from memconform.measuring.daemon_session import daemon_session
from memconform.runs.events import Event, RunFinished, RunHalted
from memconform.runs.schedule import execute
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


_LITTLE = 500 << 20


@pytest.mark.parametrize(
    ("free", "memory", "lack"),
    [
        (1 << 20, _UNLIMITED, "1 MiB are free"),
        (1 << 30, _LITTLE, "500 MiB of memory are allowed"),
        (1 << 30, 1400 << 20, ""),
        (1 << 30, _UNLIMITED, ""),
    ],
)
def test_the_lack_is_named_as_the_likely_cause_of_what_happened(
    free: int, memory: int, lack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _allow(monkeypatch, free, memory)
    error = limits.explained(_FAILED, tmp_path / "gone", managed=True)
    assert isinstance(error, DaemonError)
    assert (error.code, error.message, error.excerpt) == ("seed_failed", "seeding failed", "500")
    assert error.hint.endswith("see its log")
    assert (f"the likely cause: {lack}" in error.hint) if lack else error is _FAILED


@pytest.mark.parametrize(
    ("free", "memory", "excerpt", "code"),
    [
        (1 << 20, _UNLIMITED, "write /x: no space left on device", "disk_full"),
        (1 << 20, _UNLIMITED, "database or disk is full (13)", "disk_full"),
        (1 << 30, _LITTLE, "Fatal process OOM in CodeRange", "out_of_memory"),
        (1 << 30, _LITTLE, "fatal error: runtime: cannot allocate memory", "out_of_memory"),
        (1 << 30, _LITTLE, "usage: bad flag --prot", "daemon_exited"),
        (1 << 30, _UNLIMITED, "Fatal process OOM in CodeRange", "daemon_exited"),
    ],
)
def test_the_code_is_the_lack_only_if_the_daemon_says_so(
    free: int,
    memory: int,
    excerpt: str,
    code: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A daemon that said `usage: bad flag --prot` was reported as out of memory."""
    _allow(monkeypatch, free, memory)
    ended = DaemonError("exit status 2", code="daemon_exited", hint="see x.log", excerpt=excerpt)
    error = limits.explained(ended, tmp_path, managed=True)
    assert (error.code, error.excerpt) == (code, excerpt)
    assert error.message.removeprefix("daemon_exited: ") == "exit status 2"
    assert "see x.log" in error.hint


@pytest.mark.parametrize(
    ("error", "managed"),
    [
        (interruption(), True),
        (UsageError("x", code="seed_failed"), True),
        (DaemonError("x", code="seed_failed"), False),
        (DaemonError("x", code="daemon_unreachable"), True),
        (DaemonError("x", code="claim_refuted"), True),
        (DaemonError("x", code="contract_version"), True),
        (DaemonError("x", code="upstream_not_called"), True),
        (DaemonError("x", code="http_400"), True),
    ],
    ids=lambda value: value.code if isinstance(value, MemconformError) else None,
)
def test_what_this_machine_cannot_have_caused_stays(
    error: MemconformError, *, managed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of someone else that was not there was reported as out of memory."""
    _allow(monkeypatch, 0)
    assert limits.explained(error, tmp_path, managed=managed) is error


async def test_a_bench_and_a_replay_name_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`bench` and `lme` said `daemon_exited` alone."""
    runner, launch = ManifestRunner(_manifest(), tmp_path), Launch("run", tmp_path / "daemon")
    _allow(monkeypatch, 0)
    with pytest.raises(DaemonError) as caught:
        async with daemon_session(
            runner, launch, "own", connections=1, timeouts=Timeouts(), headers={}
        ):
            pass
    assert caught.value.code == "daemon_exited"
    assert "0 MiB are free" in caught.value.hint


async def test_a_run_names_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`run` said `seed_failed` or `daemon_exited` alone."""
    plan = plan_of(
        FaultyRun((), "ask-basic", concurrency=1), write_dataset(tmp_path), tmp_path / "results"
    )
    _allow(monkeypatch, 0)
    runner = ManifestRunner(_manifest(), tmp_path)
    events = [event async for event in execute(plan, runner)]
    (halted,) = (event.error for event in events if isinstance(event, RunHalted))
    (finished,) = (event for event in events if isinstance(event, RunFinished))
    assert halted.code == "daemon_exited"
    assert "0 MiB are free" in halted.hint
    assert finished.summary.incident is not None
    assert "0 MiB are free" in finished.summary.incident.hint


async def test_a_halt_between_questions_names_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def halting(*_: object) -> AsyncGenerator[Event, None]:
        yield RunHalted(DaemonError("x", code="daemon_died", hint="see the log"))

    plan = plan_of(
        FaultyRun((), "ask-basic", concurrency=1), write_dataset(tmp_path), tmp_path / "results"
    )
    _allow(monkeypatch, 0)
    monkeypatch.setattr("memconform.runs.schedule._stages", halting)
    events = [event async for event in execute(plan, ManifestRunner(_manifest(), tmp_path))]
    (halted,) = (event.error for event in events if isinstance(event, RunHalted))
    (finished,) = (event for event in events if isinstance(event, RunFinished))
    assert halted.code == "daemon_died"
    assert "0 MiB are free" in halted.hint
    assert finished.summary.incident is not None
    assert finished.summary.incident.hint == halted.hint


_TYPING_ERROR = "main.go:3: undefined: foo"


async def _build_error(cache: Path, output: str) -> MemconformError:
    build = _manifest("sh", "-c", f"echo '{output}'; exit 1")
    with pytest.raises(MemconformError) as caught:
        await ensure_built(build, cache.parent, "k", lambda _: None, cache=cache)
    assert output in caught.value.excerpt
    assert "XDG_CACHE_HOME" in caught.value.hint
    assert "the full log is in" in caught.value.hint
    return caught.value


async def test_a_build_names_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was `build_failed`, with the traceback of a build script of ours."""
    _allow(monkeypatch, 1 << 20)
    error = await _build_error(tmp_path / "cache", "[Errno 28] No space left on device")
    assert (error.code, error.exit_code) == ("disk_full", ExitCode.USAGE)
    assert str(tmp_path / "cache") in error.message


async def test_an_error_of_the_build_itself_stays_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _allow(monkeypatch, 1 << 20)
    error = await _build_error(tmp_path / "cache", _TYPING_ERROR)
    assert (error.code, error.exit_code) == ("build_failed", ExitCode.DAEMON)
    assert "a likely cause is" in error.hint
    assert "1 MiB are free there" in error.hint


async def test_a_build_below_a_path_that_is_not_utf_8_names_it_if_it_fails(tmp_path: Path) -> None:
    """The typing error was hidden: no excerpt, and a cause that was not the one."""
    cache = tmp_path / os.fsdecode(b"c\xff")
    error = await _build_error(cache, "UnicodeEncodeError: surrogates not allowed")
    assert (error.code, error.exit_code) == ("cache_unwritable", ExitCode.USAGE)
    assert "not valid UTF-8" in error.message
    error = await _build_error(cache, _TYPING_ERROR)
    assert (error.code, error.exit_code) == ("build_failed", ExitCode.DAEMON)
    assert "not valid UTF-8" in error.hint
    built = await ensure_built(_manifest("true"), tmp_path, "k", lambda _: None, cache=cache)
    assert built.parent == cache
