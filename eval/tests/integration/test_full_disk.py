"""A disk that is full at any write of a change fails the request, and nothing else."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import httpx
import pytest

from memconform.daemons.manifest_runner import ManagedDaemon
from tests.conftest import CHECKOUT, REQUIRE_ALL, runnable
from tests.integration.changes import (
    BASE,
    CHANGES,
    REMOVE,
    Contents,
    Request,
    contents,
    expected,
    send,
    sent,
    serving,
)

_PAGE = 4096

_ON_A_DISK_OF_ITS_OWN = (
    "unshare", "--user", "--map-root-user", "--mount", "--",
    "sh", "-c", 'mount -t tmpfs -o size=16m memory "$0" && exec "$@"', "{state_dir}",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _namespaces(tmp_path: Path) -> None:
    if REQUIRE_ALL:
        return
    command = [*_ON_A_DISK_OF_ITS_OWN[:-1], str(tmp_path), "true"]
    if shutil.which("unshare") is None or subprocess.run(command, check=False).returncode:
        pytest.skip("unshare cannot mount a file system here: no disk is filled")


@contextmanager
def _full_but_for(disk: Path, pages: int) -> Iterator[None]:
    """Leave some pages of 4 KiB free."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(2**16)) == 2**16:
                pass
            while file.write(bytes(_PAGE)):
                pass
        except OSError:
            file.truncate((file.tell() // _PAGE - pages) * _PAGE)
    try:
        yield
    finally:
        filler.unlink()


class _Change:
    """A change that is tried with more and more free space, each time in a new brain."""

    def __init__(
        self, client: httpx.AsyncClient, disk: Path, request: Request, states: list[Contents]
    ) -> None:
        self._client, self._disk, self._request = client, disk, request
        self._before, self._after = states

    async def fails(self, brain: str, pages: int) -> bool:
        """Make the change with some pages free; returns whether it failed, without any effect."""
        client = self._client
        for request in BASE:
            await send(client, brain, request)
        with _full_but_for(self._disk, pages):
            answer = await sent(client, brain, self._request)
            found = await contents(client, brain)
        if answer.is_success:
            assert found == self._after
        else:
            assert answer.status_code == 500, answer.text
            assert answer.json()["code"] == "internal_error"
            assert found == self._before
            assert await contents(client, brain) == self._before
            await send(client, brain, self._request)
            assert await contents(client, brain) == self._after
        return not answer.is_success


async def _fill(
    daemon: ManagedDaemon,
    client: httpx.AsyncClient,
    home: Path,
    states: Mapping[str, list[Contents]],
) -> dict[str, Contents]:
    """Make each change with more and more free pages, until it succeeds.

    Returns:
        The brains that were made, and what each of them holds in the end.
    """
    assert daemon.process is not None
    # The daemon alone sees what is mounted in its namespace.
    disk = Path(f"/proc/{daemon.process.pid}/root{home}/state")
    made: dict[str, Contents] = {}
    for number, (name, requests) in enumerate(CHANGES.items()):
        if len(requests) > 1:
            continue
        change = _Change(client, disk, requests[0], states[name])
        for pages in count():
            brain = f"full{number}-{pages}"
            failed = await change.fails(brain, pages)
            made[brain] = states[name][1]
            if not failed:
                break
        assert pages or requests[0] is REMOVE, f"{name}: the disk was not full"
    shutil.copytree(disk, home / "after" / "state", ignore=shutil.ignore_patterns("lock*"))
    return made


async def test_a_full_disk_fails_the_request_and_nothing_else(sdk: str, tmp_path: Path) -> None:
    async with serving(sdk, tmp_path / "fresh") as (_, client):
        states = await expected(client)
    async with serving(sdk, tmp_path, _ON_A_DISK_OF_ITS_OWN) as (daemon, client):
        made = await _fill(daemon, client, tmp_path, states)
    for reader in runnable():
        place = tmp_path / reader
        shutil.copytree(tmp_path / "after", place)
        async with serving(reader, place) as (_, client):
            assert {brain: await contents(client, brain) for brain in made} == made


async def test_a_daemon_that_undoes_nothing_on_a_full_disk_is_noticed(
    cache: Path, tmp_path: Path
) -> None:
    del cache
    patched = shutil.copytree(CHECKOUT / "sdks" / "py" / "src", tmp_path / "src")
    placement = patched / "memoryd" / "files" / "placement.py"
    undo = "removable = undo(journal.steps, change, staging.home)"
    assert undo in placement.read_text(encoding="utf-8")
    placement.write_text(placement.read_text(encoding="utf-8").replace(undo, "removable = True"))
    async with serving("py", tmp_path / "fresh") as (_, client):
        states = await expected(client)
    command = ("env", f"PYTHONPATH={patched}", *_ON_A_DISK_OF_ITS_OWN)
    async with serving("py", tmp_path, command) as (daemon, client):
        with pytest.raises(AssertionError):
            await _fill(daemon, client, tmp_path, states)
