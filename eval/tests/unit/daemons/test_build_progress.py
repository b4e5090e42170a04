"""What is shown while an SDK is built: a line at the start and one at the end, with seconds."""

import asyncio
import fcntl
import re
from pathlib import Path

import pytest

from memconform.daemons.build import ensure_built
from memconform.daemons.manifest import Manifest
from memconform.errors import DaemonError

_FIRST = "building mine (once, until its sources change)"


def _manifest(*command: str) -> Manifest:
    return Manifest.model_validate(
        {
            "name": "mine",
            "language": "sh",
            "build": {"command": [*command], "inputs": ["*"]},
            "serve": {"argv": ["true"]},
            "capabilities": {"profiles": ["core"], "modes": ["auto"]},
        }
    )


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "memconform" / "builds"


async def test_a_build_has_a_line_at_its_start_and_one_at_its_end(
    cache: Path, tmp_path: Path
) -> None:
    lines: list[str] = []
    target = await ensure_built(_manifest("true"), tmp_path, "k" * 64, lines.append)
    assert target.parent == cache
    assert lines[0] == _FIRST
    assert re.fullmatch(r"built mine in \d+ s", lines[-1])
    again: list[str] = []
    await ensure_built(_manifest("true"), tmp_path, "k" * 64, again.append)
    assert again == []


@pytest.mark.usefixtures("cache")
async def test_a_build_that_fails_is_not_said_to_be_built(tmp_path: Path) -> None:
    lines: list[str] = []
    with pytest.raises(DaemonError, match="building mine failed"):
        await ensure_built(_manifest("false"), tmp_path, "k" * 64, lines.append)
    assert lines == [_FIRST]


async def test_waiting_for_the_build_of_another_process_is_said_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread(cache.mkdir, parents=True)
    lines: list[str] = []
    attempts, flock = asyncio.Semaphore(0), fcntl.flock

    def lock(*arguments: int) -> None:
        attempts.release()
        flock(*arguments)

    with (cache / f"mine-{'k' * 16}.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        monkeypatch.setattr(fcntl, "flock", lock)
        build = asyncio.create_task(
            ensure_built(_manifest("true"), tmp_path, "k" * 64, lines.append)
        )
        for _ in range(3):
            await asyncio.wait_for(attempts.acquire(), 60)
    await asyncio.wait_for(build, 60)
    assert lines[:2] == ["waiting for another process that builds mine", _FIRST]
    assert len([line for line in lines if line.startswith("waiting")]) == 1
