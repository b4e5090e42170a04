"""What is told of changes: when, in which order, to whom, and until when."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from memoryd.app import create_app
from memoryd.brain import Brain, NewDocument
from memoryd.brains import BrainStore
from memoryd.changes import Change, Hub
from memoryd.config import Config
from memoryd.problems import Problem
from memoryd.streams import EventStream, Streams

_READY = b"event: ready\ndata: ok\n\n"
_PING = b"event: ping\ndata: ok\n\n"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BrainStore]:
    store = BrainStore(tmp_path, None)
    yield store
    store.close()


@pytest.fixture
def brain(store: BrainStore) -> Brain:
    return store.create("b", None)


async def _begun(hub: Hub) -> AsyncGenerator[bytes, None]:
    events = hub.events()
    assert await anext(events) == _READY
    return events


def _changes(told: bytes) -> list[dict[str, Any]]:
    """The data of each change, and its id."""
    read = []
    for event in told.decode().removesuffix("\n\n").split("\n\n"):
        kind, id_, data = event.split("\n")
        assert kind == "event: change"
        change = json.loads(data.removeprefix("data: "))
        assert change.pop("when").endswith("Z")
        read.append(change | {"id": int(id_.removeprefix("id: "))})
    return read


async def _told(events: AsyncGenerator[bytes, None], count: int) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    while len(told) < count:
        told += _changes(await asyncio.wait_for(anext(events), 5))
    return told


def _new(path: str) -> NewDocument:
    return NewDocument(path, b"zebra", {"contentType": "text/plain"})


async def test_every_kind_of_change_is_told(brain: Brain) -> None:
    brain.ingest([_new("before")])
    events = await _begun(brain.hub)
    brain.ingest([_new("a"), _new("b"), _new("a")])
    brain.change(lambda staged: staged.write("a", b"x"))
    brain.change(lambda staged: staged.append("_h", b"x"))
    brain.change(lambda staged: staged.rename("a", "b"))
    brain.change(lambda staged: staged.delete("b"))
    told = await _told(events, 6)
    ids = [change.pop("id") for change in told]
    assert ids == sorted(set(ids))
    assert told == [
        {"kind": "created", "path": "b"},
        {"kind": "created", "path": "a"},
        {"kind": "updated", "path": "a"},
        {"kind": "created", "path": "_h"},
        {"kind": "renamed", "path": "b", "old_path": "a"},
        {"kind": "deleted", "path": "b"},
    ]
    await events.aclose()


async def test_a_batch_is_told_in_its_order_with_its_reason(brain: Brain) -> None:
    events = await _begun(brain.hub)

    def stage(staged: Any) -> None:
        staged.write("a", b"x")
        staged.delete("a")
        staged.write("a", b"y")

    brain.change(stage, "tidy")
    told = await _told(events, 3)
    assert [change["kind"] for change in told] == ["created", "deleted", "created"]
    assert {change["reason"] for change in told} == {"tidy"}
    await events.aclose()


async def test_what_changes_nothing_is_not_told(brain: Brain, tmp_path: Path) -> None:
    brain.ingest([_new("a")])
    events = await _begun(brain.hub)
    following = asyncio.create_task(_told(events, 1))
    await asyncio.sleep(0)
    # While the stream waits: what told nothing once woke it, which was its end.
    await asyncio.to_thread(brain.change, lambda staged: staged.rename("a", "a"))
    await asyncio.sleep(0.05)
    with pytest.raises(Problem):
        brain.change(lambda staged: staged.write("a/b", b""))
    (tmp_path / "brains" / "b" / "found").write_text("by reconciling")
    brain.change(lambda staged: staged.write("last", b""))
    assert [change["path"] for change in await following] == ["last"]
    await events.aclose()


async def test_all_streams_of_a_brain_tell_the_same_and_no_other_s(store: BrainStore) -> None:
    brain, other = store.create("one", None), store.create("two", None)
    streams = [await _begun(brain.hub) for _ in range(3)]
    other.ingest([_new("elsewhere")])
    brain.ingest([_new("a")])
    told = [await _told(stream, 1) for stream in streams]
    assert told[0] == told[1] == told[2]
    assert told[0][0]["path"] == "a"
    for stream in streams:
        await stream.aclose()


async def test_a_silence_is_filled_with_pings() -> None:
    events = await _begun(Hub(silence_s=0.01))
    assert [await anext(events), await anext(events)] == [_PING, _PING]
    await events.aclose()


async def test_who_does_not_read_is_let_go_and_nobody_waits() -> None:
    hub = Hub()
    slow, quick = await _begun(hub), await _begun(hub)
    hub.publish([Change("created", "first")])
    await _told(quick, 1)
    for _ in range(2):
        hub.publish([Change("updated", str(number)) for number in range(1_024)])
        assert len(await _told(quick, 1_024)) == 1_024
    assert [change["path"] for change in await _told(slow, 1)] == ["first"]
    with pytest.raises(StopAsyncIteration):
        await anext(slow)
    await quick.aclose()


async def test_ids_rise_over_a_restart_and_without_listeners() -> None:
    ids = []
    for _ in range(2):
        hub = Hub()
        hub.publish([Change("created", "unheard")] * 9)
        events = await _begun(hub)
        hub.publish([Change("created", "a"), Change("updated", "a")], "tidy")
        ids += [change["id"] for change in await _told(events, 2)]
        await events.aclose()
    assert ids == sorted(set(ids))


async def test_a_listener_that_has_gone_is_forgotten() -> None:
    hub = Hub()
    events = await _begun(hub)
    assert len(hub._listeners) == 1
    await events.aclose()
    assert not hub._listeners


async def test_deleting_a_brain_ends_its_streams(store: BrainStore, brain: Brain) -> None:
    events = await _begun(brain.hub)
    brain.ingest([_new("a")])
    store.delete("b")
    assert len(await _told(events, 1)) == 1
    with pytest.raises(StopAsyncIteration):
        await anext(events)
    late = await _begun(brain.hub)
    with pytest.raises(StopAsyncIteration):
        await anext(late)


def test_a_head_of_the_stream_ends(tmp_path: Path) -> None:
    with TestClient(create_app(Config(tmp_path))) as http:
        http.post("/v1/brains", json={"brainId": "b"})
        answer = http.head("/v1/brains/b/events")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"


async def test_the_end_of_the_daemon_ends_streams_with_a_farewell() -> None:
    streams, hub = Streams(), Hub()
    sent: list[bytes] = []
    begun = asyncio.Event()

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))
        if sent[-1] == _READY:
            begun.set()

    stream = EventStream(hub.events(), streams, farewell=b"bye")
    task = asyncio.create_task(stream.stream_response(send))
    await begun.wait()
    streams.end()
    await asyncio.wait_for(task, 5)
    assert sent[-1] == b"bye"
    assert not hub._listeners
    late = EventStream(hub.events(), streams)
    await asyncio.wait_for(late.stream_response(send), 5)
