"""A change that one SDK leaves half done is undone by the start of any other."""

import shutil
from pathlib import Path

import httpx
import pytest

from tests.integration.changes import serving
from tests.integration.half_done import CHANGES, Planted, locked, plant_all


async def _paths(client: httpx.AsyncClient, brain: str) -> list[str]:
    answer = await client.get(f"/v1/brains/{brain}/documents", params={"recursive": "true"})
    return [item["path"] for item in answer.json()["items"]]


@pytest.mark.capability("recovery")
async def test_every_change_that_was_left_half_done_is_undone(sdk: str, tmp_path: Path) -> None:
    home = tmp_path / "state"
    planted = plant_all(home)
    assert len(planted.expected) > 90
    _plant_later_writes(planted)
    _plant_finished(planted)
    planted.brain("gone")
    planted.change("gone", CHANGES["over"], 1, "taken")
    for root in ("brains", "meta"):
        shutil.rmtree(home / root / "gone")
    planted.expected["gone"] = {}
    kept = _plant_unreadable(planted)
    running = home / "staging" / "running"
    _plant_running(planted, running)
    with locked(running):
        async with serving(sdk, tmp_path, embedder="none") as (daemon, client):
            found = {name: planted.files(name) for name in planted.expected}
            assert found == planted.expected
            for name in ("file-to-folder-2-taken", "swap-1-taken", "rename-3-begun"):
                documents = [p for p in planted.expected[name] if not p.startswith("meta:")]
                assert await _paths(client, name) == sorted(documents)
                counts = (await client.get(f"/v1/brains/{name}")).json()
                assert counts["documents"] == len(documents)
            assert (await client.get("/v1/brains/gone")).status_code == 404
            log = daemon.log_tail()
            for folder in kept:
                assert (folder / "journal").exists()
                assert str(folder.relative_to(home)) in log, log
            assert not list((home / "staging").glob("other-*"))
            assert not (home / "staging" / "unfinished").exists()
            assert (running / "change" / "journal").exists()


def _plant_later_writes(planted: Planted) -> None:
    """What another daemon wrote after the kill is newer than what the change replaced."""
    for change, path, text in (
        ("over", "a", "later"),
        ("rename", "a", "later"),
        ("delete", "a/below", "later"),
        ("new", "n/e/w", "later"),
        ("swap", "b", "later"),
    ):
        steps = CHANGES[change]
        name = f"later-{change}"
        planted.brain(name)
        planted.change(name, steps, len(steps) - 1, "taken")
        planted.write(name, path, text)
        if "/below" in path:
            # Its own old self would be in the way.
            del planted.expected[name]["a"]
        planted.expected[name][path] = text
    # The rest of the change is undone.


def _plant_finished(planted: Planted) -> None:
    """Without its journal, a change is committed, and what is left in staging is not needed."""
    for change, steps in CHANGES.items():
        name = f"finished-{change}"
        planted.brain(name)
        folder = planted.change(name, steps, len(steps) - 1, "taken")
        (folder / "journal").unlink()
        planted.expected[name] = planted.files(name)
    unfinished = planted.home / "staging" / "unfinished" / "change"
    unfinished.mkdir(parents=True)
    (unfinished / "1").write_text("never placed")


def _plant_unreadable(planted: Planted) -> list[Path]:
    """Journals of which nothing is undone; returns the folders that must stay."""
    kept = []
    for number, line in enumerate(
        (
            "{}",
            "not JSON",
            '{"put": "brains/unreadable-2/a"}',
            '{"put": "brains/unreadable-3/../../a", "new": "0.new", "old": "0.old"}',
            '{"remove": "brains/unreadable-4/a", "old": "../journal"}',
            '{"remove": "index/x/y", "old": "1"}',
            '{"link": "brains/unreadable-6/a", "old": "1"}',
        )
    ):
        name = f"unreadable-{number}"
        planted.brain(name)
        folder = planted.change(name, CHANGES["over"], 1, "taken")
        with (folder / "journal").open("a") as journal:
            journal.write(f"{line}\n")
        moved = planted.home / "staging" / name / "change"
        moved.parent.mkdir()
        folder.rename(moved)
        planted.expected[name] = planted.files(name)
        kept.append(moved)
    # As daemons wrote it before there was one format.
    old = planted.home / "staging" / "go-change-123"
    old.mkdir()
    (old / "journal").write_text('{"placed":[],"removed":[]}')
    return [*kept, old]


def _plant_running(planted: Planted, daemon: Path) -> None:
    """The change of a daemon that runs."""
    planted.brain("running")
    folder = planted.change("running", CHANGES["over"], 1, "taken")
    daemon.mkdir()
    folder.rename(daemon / "change")
    planted.expected["running"] = planted.files("running")


async def test_a_recreated_brain_gets_nothing_of_the_old_one(sdk: str, tmp_path: Path) -> None:
    """What a killed daemon replaced in a brain that was deleted since is not undone later."""
    home = tmp_path / "state"
    planted = Planted(home)
    async with serving(sdk, tmp_path, embedder="none") as (_, client):
        planted.brain("b")
        planted.change("b", CHANGES["delete"], 2, "taken")
        confirmed = {"X-Confirm-Delete": "yes"}
        assert (await client.delete("/v1/brains/b", headers=confirmed)).status_code == 204
        body = {"brainId": "b", "description": "second"}
        assert (await client.post("/v1/brains", json=body)).status_code == 201
        assert not list((home / "staging").glob("other-*"))
    async with serving(sdk, tmp_path, embedder="none") as (_, client):
        assert await _paths(client, "b") == []
        assert (home / "descriptions" / "b.txt").read_text() == "second"
