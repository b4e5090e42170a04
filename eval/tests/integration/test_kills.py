"""A daemon that is killed anywhere in a change leaves what any other daemon can make whole."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import REQUIRE_ALL, SDKS, runnable
from tests.integration.changes import BASE, CHANGES, expected, send, serving
from tests.integration.file_operations import Replay, calls, traced
from tests.integration.killed_changes import leave, record, violations

_SAMPLED = 29
"""Every 29th call, beginning with another one for each pair; all of them in the slow form."""


@pytest.fixture(autouse=True)
def _strace() -> None:
    if shutil.which("strace") is None and not REQUIRE_ALL:
        pytest.skip("strace is not on PATH: nothing is killed at every system call")


@pytest.mark.parametrize("every", [_SAMPLED, pytest.param(1, marks=pytest.mark.slow)])
async def test_every_kill_leaves_what_any_sdk_makes_whole(
    sdk: str, every: int, tmp_path: Path
) -> None:
    folder = tmp_path / "writer"
    recorded = await record(sdk, folder)
    for number, reader in enumerate(runnable()):
        place = tmp_path / reader
        async with serving(reader, place / "fresh") as (_, client):
            states = await expected(client)
        first = (3 * SDKS.index(sdk) + number) % every
        home = place / "state"
        left = leave(recorded, folder, home, place / "copy", every=every, first=first)
        assert {brain.change for brain in left} == set(CHANGES)
        async with serving(reader, place) as (_, client):
            assert await violations(client, left, states) == []


async def test_a_daemon_that_undoes_nothing_shows_changes_half_made(
    cache: Path, tmp_path: Path
) -> None:
    del cache
    recorded = await record("py", tmp_path / "writer")
    home = tmp_path / "state"
    left = leave(recorded, tmp_path / "writer", home, tmp_path / "copy", every=3)
    # Without its journals, no daemon knows of a change.
    shutil.rmtree(home / "staging")
    async with serving("py", tmp_path / "fresh") as (_, client):
        states = await expected(client)
    async with serving("py", tmp_path) as (_, client):
        wrong = await violations(client, left, states)
    half_made = {line.partition(",")[0] for line in wrong}
    assert {"renamed", "renamed-over", "batch"} <= half_made


async def test_calls_repeated_to_the_end_give_the_files_of_the_daemon(
    sdk: str, tmp_path: Path
) -> None:
    folder = tmp_path
    async with serving(sdk, folder, traced(folder / "calls.txt")) as (_, client):
        for number, requests in enumerate(CHANGES.values()):
            for request in (*BASE, *requests):
                await send(client, f"b{number}", request)
    replay = Replay(folder / "state", folder / "copy", folder)
    with (folder / "calls.txt").open(encoding="ascii") as lines:
        changes = [place for call in calls(lines) if (place := replay.do(call)) is not None]
    assert len(changes) > 500
    assert _files(folder / "copy") == _files(folder / "state")


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }
