"""A disk that is full at any write of a change fails the request, and nothing else."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.conftest import REQUIRE_ALL, runnable
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

_SAMPLED = 7

_ON_A_DISK_OF_ITS_OWN = (
    "unshare", "--user", "--map-root-user", "--mount", "--",
    "sh", "-c", 'mount -t tmpfs -o size=16m memory "$0" && exec "$@"', "{state_dir}",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _namespaces() -> None:
    command = [*_ON_A_DISK_OF_ITS_OWN[:5], "true"]
    if shutil.which("unshare") and not subprocess.run(command, check=False).returncode:
        return
    if not REQUIRE_ALL:
        pytest.skip("a user may not mount a file system here: no disk is filled")


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
    """One of the changes, in brains of its own, of which each meets a disk with less space."""

    def __init__(
        self, client: httpx.AsyncClient, disk: Path, request: Request, states: list[Contents]
    ) -> None:
        self._client, self._disk, self._request = client, disk, request
        self._before, self._after = states

    async def fails(self, brain: str, pages: int) -> bool:
        """Whether the request fails with some pages free, and leaves all as it was."""
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


@pytest.mark.parametrize("every", [_SAMPLED, pytest.param(1, marks=pytest.mark.slow)])
async def test_a_full_disk_fails_the_request_and_nothing_else(
    sdk: str, every: int, tmp_path: Path
) -> None:
    async with serving(sdk, tmp_path / "fresh") as (_, client):
        states = await expected(client)
    async with serving(sdk, tmp_path, _ON_A_DISK_OF_ITS_OWN) as (daemon, client):
        assert daemon.process is not None
        disk = Path(f"/proc/{daemon.process.pid}/root{tmp_path}/state")
        left: dict[str, Contents] = {}
        for number, (name, requests) in enumerate(CHANGES.items()):
            if len(requests) > 1:
                continue
            change = _Change(client, disk, requests[0], states[name])
            failed, pages = 0, number % every
            while await change.fails(f"full{number}-{pages}", pages):
                failed += 1
                pages += every
            assert failed or requests[0] is REMOVE, name
            left |= {
                f"full{number}-{n}": states[name][1]
                for n in range(number % every, pages + 1, every)
            }
        shutil.copytree(disk, tmp_path / "after" / "state", ignore=shutil.ignore_patterns("lock*"))
    for reader in runnable():
        place = tmp_path / reader
        shutil.copytree(tmp_path / "after", place)
        async with serving(reader, place) as (_, client):
            assert {brain: await contents(client, brain) for brain in left} == left
