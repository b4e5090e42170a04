"""Slow readers: how an answer that is read slowly ended."""

import asyncio

import h11
import pytest

from memconform.client.client import ContractClient
from memconform.contract.ask import AskRequest
from memconform.errors import UsageError
from memconform.load.slow_reader import READ_BYTES, SlowReaders

_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"


def _message(base_url: str) -> bytes:
    client = ContractClient(base_url, headers={"X-Key": "value"})
    return client.ask_message("b", AskRequest(question="Who?"))


async def _read(answer: bytes) -> tuple[SlowReaders, str | None]:
    """Have one reader read one answer."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        readers = SlowReaders(f"http://127.0.0.1:{port}", 1, 60)
        return readers, await readers._read(_message(f"http://127.0.0.1:{port}"))


def test_the_request_of_a_slow_reader_is_one_that_any_server_understands() -> None:
    server = h11.Connection(h11.SERVER)
    server.receive_data(_message("http://127.0.0.1:80"))
    request, body, end = server.next_event(), server.next_event(), server.next_event()
    assert isinstance(request, h11.Request)
    assert (request.method, request.target) == (b"POST", b"/v1/brains/b/ask")
    headers = dict(request.headers)
    assert (headers[b"connection"], headers[b"x-key"]) == (b"close", b"value")
    assert isinstance(body, h11.Data)
    assert b'"question":"Who?"' in bytes(body.data).replace(b": ", b":")
    assert isinstance(end, h11.EndOfMessage)


async def test_an_answer_is_read_in_small_pieces_to_its_end() -> None:
    text = b"x" * 600
    answer = _OK + _CHUNKED + b"258\r\n" + text + b"\r\n0\r\n\r\n"
    readers, failure = await _read(answer)
    record = readers.record()
    assert failure is None
    assert (record.opened, record.completed, record.bytes_read) == (1, 1, len(answer))
    assert len(answer) > 2 * READ_BYTES


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (_OK + _CHUNKED + b"5\r\nevent\r\n", "connection_broken"),
        (b"", "connection_broken"),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "http_503"),
    ],
)
async def test_an_answer_that_is_cut_off_or_refused_is_a_failure(answer: bytes, code: str) -> None:
    readers, failure = await _read(answer)
    assert failure == code
    assert readers.record().completed == 0


def test_tls_reads_ahead_and_is_refused() -> None:
    with pytest.raises(UsageError):
        SlowReaders("https://127.0.0.1:1", 1, 60)
