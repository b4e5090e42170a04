"""The feed of changes: contents, order, audience and end."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from memoryd.api.app import create_app
from memoryd.api.events import change_events
from memoryd.api.stream import EventStream, Streams
from memoryd.brain.brain import Brain
from memoryd.brain.ingest import NewDocument
from memoryd.brain.store import BrainStore
from memoryd.config import Config
from memoryd.feed import Change, Feed
from memoryd.problem import Problem

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


async def _subscribe(feed: Feed, silence_s: float = 60) -> AsyncGenerator[bytes, None]:
    events = change_events(feed, silence_s)
    assert await anext(events) == _READY
    return events


def _changes(data: bytes) -> list[dict[str, Any]]:
    """The data of each change, and its id."""
    read = []
    for event in data.decode().removesuffix("\n\n").split("\n\n"):
        kind, id_, body = event.split("\n")
        assert kind == "event: change"
        change = json.loads(body.removeprefix("data: "))
        assert change.pop("when").endswith("Z")
        read.append(change | {"id": int(id_.removeprefix("id: "))})
    return read


async def _receive(events: AsyncGenerator[bytes, None], count: int) -> list[dict[str, Any]]:
    changes: list[dict[str, Any]] = []
    while len(changes) < count:
        changes += _changes(await asyncio.wait_for(anext(events), 60))
    return changes


def _new(path: str) -> NewDocument:
    return NewDocument(path, b"zebra", {"contentType": "text/plain"})


async def test_every_kind_of_change_is_published(brain: Brain) -> None:
    brain.ingest([_new("before")])
    events = await _subscribe(brain.feed)
    brain.ingest([_new("a"), _new("b"), _new("a")])
    brain.change(lambda draft: draft.write("a", b"x"))
    brain.change(lambda draft: draft.append("_h", b"x"))
    brain.change(lambda draft: draft.rename("a", "b"))
    brain.change(lambda draft: draft.delete("b"))
    changes = await _receive(events, 6)
    ids = [change.pop("id") for change in changes]
    assert ids == sorted(set(ids))
    assert changes == [
        {"kind": "created", "path": "b"},
        {"kind": "created", "path": "a"},
        {"kind": "updated", "path": "a"},
        {"kind": "created", "path": "_h"},
        {"kind": "renamed", "path": "b", "old_path": "a"},
        {"kind": "deleted", "path": "b"},
    ]
    await events.aclose()


async def test_a_batch_is_published_in_order_with_its_reason(brain: Brain) -> None:
    events = await _subscribe(brain.feed)

    def stage(draft: Any) -> None:
        draft.write("a", b"x")
        draft.delete("a")
        draft.write("a", b"y")

    brain.change(stage, "tidy")
    changes = await _receive(events, 3)
    assert [change["kind"] for change in changes] == ["created", "deleted", "created"]
    assert {change["reason"] for change in changes} == {"tidy"}
    await events.aclose()


async def test_an_edit_without_effect_is_not_published(brain: Brain, tmp_path: Path) -> None:
    brain.ingest([_new("a")])
    events = await _subscribe(brain.feed)
    following = asyncio.create_task(_receive(events, 1))
    await asyncio.sleep(0)
    # While the stream waits: an empty wakeup once ended it.
    await asyncio.to_thread(brain.change, lambda draft: draft.rename("a", "a"))
    for _ in range(5):
        await asyncio.sleep(0)
    with pytest.raises(Problem):
        brain.change(lambda draft: draft.write("a/b", b""))
    (tmp_path / "brains" / "b" / "found").write_text("by reconciling")
    brain.change(lambda draft: draft.write("last", b""))
    assert [change["path"] for change in await following] == ["last"]
    await events.aclose()


async def test_all_streams_of_a_brain_are_equal_and_exclude_other_brains(store: BrainStore) -> None:
    brain, other = store.create("one", None), store.create("two", None)
    streams = [await _subscribe(brain.feed) for _ in range(3)]
    other.ingest([_new("elsewhere")])
    brain.ingest([_new("a")])
    changes = [await _receive(stream, 1) for stream in streams]
    assert changes[0] == changes[1] == changes[2]
    assert changes[0][0]["path"] == "a"
    for stream in streams:
        await stream.aclose()


async def test_silence_is_filled_with_pings() -> None:
    events = await _subscribe(Feed(), 0.01)
    assert [await anext(events), await anext(events)] == [_PING, _PING]
    await events.aclose()


async def test_a_listener_that_does_not_read_is_cut_off_and_delays_nobody() -> None:
    feed = Feed()
    slow, quick = await _subscribe(feed), await _subscribe(feed)
    feed.publish([Change("created", "first")])
    await _receive(quick, 1)
    for batch in range(3):
        feed.publish([Change("updated", f"{batch}/{number}") for number in range(1_023)])
        assert len(await _receive(quick, 1_023)) == 1_023
    # It is ended only when it is 1,024 changes behind, and nothing is missing before its end.
    late = [change["path"] for change in await _receive(slow, 1 + 2_046 - 1_023)]
    assert late == ["first", *(f"0/{number}" for number in range(1_023))]
    with pytest.raises(StopAsyncIteration):
        await anext(slow)
    await quick.aclose()


async def test_ids_increase_across_restarts_and_without_listeners() -> None:
    ids = []
    for _ in range(2):
        feed = Feed()
        feed.publish([Change("created", "unheard")] * 9)
        events = await _subscribe(feed)
        feed.publish([Change("created", "a"), Change("updated", "a")], "tidy")
        ids += [change["id"] for change in await _receive(events, 2)]
        await events.aclose()
    assert ids == sorted(set(ids))


async def test_a_disconnected_listener_is_removed() -> None:
    feed = Feed()
    events = await _subscribe(feed)
    assert len(feed._subscriptions) == 1
    await events.aclose()
    assert not feed._subscriptions


async def test_deleting_a_brain_ends_its_streams(store: BrainStore, brain: Brain) -> None:
    events = await _subscribe(brain.feed)
    brain.ingest([_new("a")])
    store.delete("b")
    assert len(await _receive(events, 1)) == 1
    with pytest.raises(StopAsyncIteration):
        await anext(events)
    late = await _subscribe(brain.feed)
    with pytest.raises(StopAsyncIteration):
        await anext(late)


def test_head_of_the_stream_is_not_allowed(tmp_path: Path) -> None:
    with TestClient(create_app(Config(tmp_path))) as http:
        http.post("/v1/brains", json={"brainId": "b"})
        answer = http.head("/v1/brains/b/events")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


async def test_a_stop_of_the_daemon_ends_streams_with_a_final_event() -> None:
    streams, feed = Streams(), Feed()
    sent: list[bytes] = []
    begun = asyncio.Event()

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))
        if sent[-1] == _READY:
            begun.set()

    stream = EventStream(change_events(feed), streams, final_event=b"bye")
    task = asyncio.create_task(stream.stream_response(send))
    await begun.wait()
    streams.end()
    await asyncio.wait_for(task, 60)
    assert sent[-1] == b"bye"
    assert not feed._subscriptions
    late = EventStream(change_events(feed), streams)
    await asyncio.wait_for(late.stream_response(send), 60)
