"""Pipes and links in the state folder: no request and no start waits for one, or follows one."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.integration.changes import BASE, document, ingest, put, send, serving

_SOON = httpx.Timeout(20)


async def _describe(client: httpx.AsyncClient) -> dict[str, object]:
    answer = await client.get("/v1/brains/b", timeout=_SOON)
    assert answer.status_code == 200, answer.text
    described: dict[str, object] = answer.json()
    return described


async def test_what_is_no_file_is_no_description(sdk: str, tmp_path: Path) -> None:
    place = tmp_path / "state" / "descriptions" / "b.txt"
    async with serving(sdk, tmp_path) as (daemon, client):
        assert daemon.process is not None
        process = psutil.Process(daemon.process.pid)
        for request in BASE:
            await send(client, "b", request)
        assert (await _describe(client))["description"] == "of herons"
        place.unlink()
        before = process.num_fds()
        for make in (os.mkfifo, os.mkdir):
            make(place)
            for _ in range(20):
                assert "description" not in await _describe(client)
            place.rmdir() if place.is_dir() else place.unlink()
        assert process.num_fds() < before + 20, "a file that is not read stays open"


async def test_a_start_waits_for_no_pipe(sdk: str, tmp_path: Path) -> None:
    home = tmp_path / "state"
    change = home / "staging" / "other" / "change"
    change.mkdir(parents=True)
    os.mkfifo(change / "journal")
    documents = home / "brains" / "b"
    documents.mkdir(parents=True)
    (documents / "a.md").write_text("The heron waits.")
    os.mkfifo(documents / "pipe.md")
    sidecars = home / "meta" / "b"
    sidecars.mkdir(parents=True)
    os.mkfifo(sidecars / "a.md.json")
    async with serving(sdk, tmp_path) as (daemon, client):
        assert (await _describe(client))["documents"] == 1
        await send(client, "b", ingest(document("a.md", "The otter waits.", title="Otter")))
        answer = await client.post("/v1/brains/b/search", json={"query": "otter"}, timeout=_SOON)
        assert [chunk["title"] for chunk in answer.json()["chunks"]] == ["Otter"]
        assert (change / "journal").is_fifo()
        assert "staging/other" in daemon.log_tail()


async def test_a_link_in_place_of_the_sidecars_is_replaced(sdk: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "f").mkdir(parents=True)
    (outside / "x").write_text("Somebody's file.")
    sidecars = tmp_path / "state" / "meta" / "b"
    async with serving(sdk, tmp_path) as (_, client):
        for request in BASE:
            await send(client, "b", request)
        shutil.rmtree(sidecars)
        sidecars.symlink_to(outside)
        # Its sidecar needs a folder where the link leads to a file.
        await send(client, "b", ingest(document("x/y.md", "The toad sings.", title="Toad")))
        await send(client, "b", put("a.md", "The heron sings."))
        answer = await client.delete("/v1/brains/b", headers={"X-Confirm-Delete": "yes"})
        assert answer.status_code == 204
    assert (outside / "x").read_text() == "Somebody's file."
    assert sorted(file.name for file in outside.rglob("*")) == ["f", "x"]


_TIMES = (-(10**11), -(2**31), 5, 2**32, 253_402_300_800, 10**13)
"""Seconds since 1970 of years -1199, 1901, 1970, 2106, 10000 and 318857: of a clock that was wrong,
or of a file from an archive."""


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder whose files can have any time, which those of many file systems cannot."""
    if not Path("/dev/shm").is_dir():  # noqa: S108 - the folder of the test is not shared
        pytest.skip("there is no file system in memory")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


async def test_a_time_of_any_year_breaks_no_listing(sdk: str, memory: Path) -> None:
    documents = memory / "state" / "brains" / "b"
    documents.mkdir(parents=True)
    for number, seconds in enumerate(_TIMES):
        file = documents / f"{number}.md"
        file.write_text("The heron waits.")
        os.utime(file, (seconds, seconds))
    async with serving(sdk, memory) as (_, client):
        items = (await client.get("/v1/brains/b/documents", timeout=_SOON)).json()["items"]
        years = [item["mtime"][:5] for item in items]
        assert years == ["0001-", "1901-", "1970-", "2106-", "9999-", "9999-"]
        for number in range(len(_TIMES)):
            params = {"path": f"{number}.md"}
            answer = await client.get("/v1/brains/b/documents/stat", params=params)
            assert answer.json()["mtime"] == items[number]["mtime"]


async def test_a_document_written_before_its_former_self_is_found(sdk: str, tmp_path: Path) -> None:
    """A clock that is set back, or an old copy that is restored, gives a new file an older time."""
    file = tmp_path / "state" / "brains" / "b" / "a.md"
    file.parent.mkdir(parents=True)
    file.write_text("A heron waits.")
    for text, seconds in (
        ("An otter runs.", 10**9),
        ("A zebra sings.", 10**9 - 1),
        ("A toad waits.", 5),
    ):
        async with serving(sdk, tmp_path) as (_, client):
            assert (await _describe(client))["documents"] == 1
        file.write_text(text)
        os.utime(file, (seconds, seconds))
        async with serving(sdk, tmp_path) as (_, client):
            body = {"query": text, "mode": "bm25"}
            found = (await client.post("/v1/brains/b/search", json=body, timeout=_SOON)).json()
            assert [chunk["text"] for chunk in found["chunks"]] == [text]
