"""Pipes and links in the state folder: no request and no start waits for one, or follows one."""

import os
import shutil
from pathlib import Path

import httpx
import psutil

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
