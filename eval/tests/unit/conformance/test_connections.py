"""What a daemon does after a response is blamed on that exchange, never on the next one."""

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable

import pytest

from memconform.conformance import connections
from memconform.conformance.case_requests import Sender
from memconform.conformance.connections import CUT
from memconform.conformance.step_result import StepResult

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
_CLOSING = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
_LABELS = ["DELETE /v1/brains/b", "GET /healthz", "GET /healthz"]

Answer = tuple[bytes, bool]
"""What is sent after a request, and whether the connection is then closed."""


async def _serve(
    answers: list[Answer], use: Callable[[Sender], Awaitable[None]]
) -> tuple[int, Sender]:
    """Serve one answer a request, over as many connections as the client opens."""
    rest = iter(answers)
    tasks: list[asyncio.Task[None] | None] = []

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.current_task())
        while await reader.readline():
            while (await reader.readline()).strip():
                pass
            data, closes = next(rest)
            writer.write(data)
            if closes:
                break
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    sender = Sender(f"http://{host}:{port}")
    try:
        await use(sender)
    finally:
        await sender.close()
        await asyncio.gather(*filter(None, tasks))
        server.close()
    return len(tasks), sender


def _exchange(answers: list[Answer]) -> tuple[list[StepResult], list[str], int]:
    """Send three requests; return the results, the causes found, and the connections opened."""
    results: list[StepResult] = []

    async def use(sender: Sender) -> None:
        for label in _LABELS:
            result = await sender.send(*sender.request(label, {}, None), 10)
            results.append(result)

    opened, sender = asyncio.run(_serve(answers, use))
    return results, [fault.cause for fault, _ in sender.faults], opened


_KEEP: Answer = (_OK, False)
_CLOSE: Answer = (_CLOSING, True)
_DROP: Answer = (_NO_CONTENT, True)
_ENDS = "the connection ends after the response, unannounced"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watch connections until something comes, however long this machine takes to deliver it."""
    monkeypatch.setattr(connections, "_PAUSES", itertools.repeat(0.001))
    monkeypatch.setattr(connections, "_IDLE_SECONDS", math.inf)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("first", "cause"),
    [
        ((_NO_CONTENT + b"null", False), "bytes after the response"),
        ((_OK + b"ok", False), "bytes after the response"),
        # A server that refuses to send a body with 204 drops the connection.
        (_DROP, _ENDS),
    ],
)
def test_what_follows_a_response_is_blamed_on_it_and_the_next_request_is_served(
    first: Answer, cause: str
) -> None:
    """Sixty-six checks of one daemon once failed with `POST /v1/brains: no response`."""
    results, causes, opened = _exchange([first, _CLOSE, _CLOSE])
    assert causes == [f"DELETE /v1/brains/{{brain}}: {cause}"]
    assert [result.status for result in results[1:]] == [200, 200]
    assert [result.failure for result in results] == [None] * 3
    assert opened == 3


def test_the_body_of_a_head_response_is_blamed_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "_LABELS", ["HEAD /healthz", "GET /healthz"])
    results, causes, _ = _exchange([_KEEP, _KEEP])
    assert causes == ["wrong method: bytes after the response"]
    assert results[1].body == b"ok"


@pytest.mark.parametrize(
    "first",
    [
        _KEEP,
        (_NO_CONTENT, False),
        _CLOSE,
        # Its end is the end of the body.
        (b"HTTP/1.0 200 OK\r\n\r\nok", True),
    ],
)
def test_a_connection_may_be_kept_or_end_as_announced(first: Answer) -> None:
    results, causes, _ = _exchange([first, _KEEP, _KEEP])
    assert causes == []
    assert [result.ended for result in results] == ["end"] * 3


@pytest.mark.usefixtures("patient")
def test_the_last_exchange_of_a_case_is_examined_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "_LABELS", ["DELETE /v1/brains/b"])
    _, causes, _ = _exchange([_DROP])
    assert causes == [f"DELETE /v1/brains/{{brain}}: {_ENDS}"]


def test_no_end_is_blamed_on_a_response_if_the_machine_stood_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "_PAUSES", itertools.repeat(0.001))
    monkeypatch.setattr(connections, "_IDLE_SECONDS", 0)
    assert _exchange([_DROP, _CLOSE, _CLOSE])[1] == []


@pytest.mark.usefixtures("patient")
def test_a_daemon_that_is_stopped_may_end_its_connections() -> None:
    """Cases that stop a daemon after a response blamed that response for it."""

    async def use(sender: Sender) -> None:
        for label in _LABELS[1:]:
            await sender.send(*sender.request(label, {}, None), 10)
            sender.stop_watching()

    _, sender = asyncio.run(_serve([_DROP, _DROP], use))
    assert sender.faults == []


def test_a_request_that_itself_gets_no_answer_fails_itself() -> None:
    results, causes, _ = _exchange([_KEEP, (b"", True), _KEEP])
    assert causes == []
    assert [result.ended for result in results] == ["end", "cut", "end"]
    assert "disconnected" in (results[1].failure or "")


def test_a_refused_connection_is_no_connection() -> None:
    async def send() -> StepResult:
        sender = Sender("http://127.0.0.1:1")
        try:
            return await sender.send(*sender.request("GET /healthz", {}, None), 10)
        finally:
            await sender.close()

    result = asyncio.run(send())
    assert (result.ended, result.status) == ("cut", None)
    assert (result.failure or "").startswith("ConnectError")


def test_all_connections_are_closed_with_their_sender() -> None:
    """A stream that did not end kept its connection: the pool closes those alone that are idle."""
    ends: list[bytes] = []

    async def run() -> None:
        async with asyncio.timeout(60):
            done = asyncio.Semaphore(0)

            async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                head = await reader.readuntil(b"\r\n\r\n")
                endless = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
                writer.write(endless if b"/events" in head else _OK)
                ends.append(await reader.read())
                writer.close()
                done.release()

            server = await asyncio.start_server(converse, "127.0.0.1", 0)
            host, port = server.sockets[0].getsockname()
            sender = Sender(f"http://{host}:{port}")
            stream = await sender.open(*sender.request("GET /v1/brains/b/events", {}, None), 10)
            assert stream.outcome.status == 200
            await sender.send(*sender.request("GET /healthz", {}, None), 10)
            await sender.close()
            for _ in range(2):
                await done.acquire()
            server.close()

    asyncio.run(run())
    assert ends == [b"", b""]


def test_what_breaks_a_connection_is_an_exception() -> None:
    assert all(issubclass(error, Exception) for error in CUT)
