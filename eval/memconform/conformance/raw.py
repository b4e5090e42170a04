"""Bytes over a connection of their own, for what an HTTP library refuses to send."""

import asyncio
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal
from urllib.parse import urlsplit

import h11

from memconform.client.recorder import printf
from memconform.conformance.step_result import StepResult

_READ = 65_536
_LONGEST = 2**20
"""Bytes of an answer: those to what only raw bytes can say are short."""
_LINGER_NONE = struct.pack("ii", 1, 0)
"""Closing then resets the connection (SO_LINGER with no time)."""


class _Answers:
    """Reads answers off one connection, one after another."""

    def __init__(self, reader: asyncio.StreamReader, outcome: StepResult) -> None:
        self._reader = reader
        self._outcome = outcome
        self._parser = h11.Connection(h11.CLIENT)

    async def next(self, piece: bytes) -> None:
        """The answer to `piece`; its status, or None where none came, joins the outcome's."""
        outcome = self._outcome
        outcome.status, outcome.headers, outcome.body = None, [], b""
        try:
            self._expect(piece)
            await self._read()
        except (h11.RemoteProtocolError, h11.LocalProtocolError) as error:
            outcome.failure = f"the answer is not HTTP: {error}"
            outcome.ended = "cut"
        except ConnectionError as error:
            outcome.failure = f"{type(error).__name__}: {error}"
            outcome.ended = "cut"
        finally:
            outcome.statuses.append(outcome.status)

    def _expect(self, piece: bytes) -> None:
        # The parser must know of a request before it reads an answer; that of a HEAD has no body.
        method = "HEAD" if piece.startswith(b"HEAD ") else "GET"
        if self._parser.our_state is h11.DONE:
            self._parser.start_next_cycle()
        self._parser.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
        self._parser.send(h11.EndOfMessage())

    async def _read(self) -> None:
        outcome = self._outcome
        while True:
            event = self._parser.next_event()
            if event is h11.NEED_DATA:
                self._parser.receive_data(await self._reader.read(_READ))
            elif isinstance(event, h11.Response):
                outcome.status = event.status_code
                outcome.headers = [
                    (n.decode("latin-1"), v.decode("latin-1")) for n, v in event.headers
                ]
            elif isinstance(event, h11.Data):
                outcome.body += bytes(event.data)
                if len(outcome.body) > _LONGEST:
                    outcome.failure = f"the answer has more than {_LONGEST} bytes"
                    return
            elif isinstance(event, h11.EndOfMessage):
                return
            elif isinstance(event, h11.ConnectionClosed):
                outcome.ended = "end"
                return


async def converse(
    base_url: str,
    pieces: Sequence[bytes],
    *,
    answers: Literal["each", "last", "none"] | int,
    end: Literal["keep", "half", "abort"],
    pause: float,
    seconds: float,
) -> StepResult:
    """Send `pieces`, with `pause` seconds behind each, and read the answers.

    The outcome has the last answer, and the statuses of all.
    """
    address = urlsplit(base_url)
    first_line = pieces[0].partition(b"\r\n")[0].decode("latin-1")[:100]
    outcome = StepResult(f"raw: {first_line}", ended="open")
    outcome.shell = f"{printf(b''.join(pieces))} | nc -w 5 {address.hostname} {address.port}"
    started = time.perf_counter()
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
    except (OSError, TimeoutError) as error:
        outcome.failure, outcome.ended = f"no connection: {error}", "cut"
        outcome.statuses.append(None)
        return outcome
    try:
        async with asyncio.timeout(seconds):
            read = _Answers(reader, outcome)
            for number, piece in enumerate(pieces):
                last = number == len(pieces) - 1
                with suppress(ConnectionError):
                    # A daemon may answer and close before it has read all.
                    writer.write(piece)
                    await writer.drain()
                if last and end == "half":
                    await asyncio.sleep(pause)
                    with suppress(OSError):
                        # The daemon may have hung up by now.
                        writer.write_eof()
                for _ in range(_expected(answers, last=last)):
                    await read.next(piece)
                await asyncio.sleep(pause)
    except TimeoutError:
        outcome.failure = f"no answer within {seconds:g} s"
    finally:
        outcome.took_ms = round((time.perf_counter() - started) * 1e3, 3)
        if end == "abort":
            with suppress(OSError):
                raw: socket.socket = writer.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        else:
            # What is still to be sent must not be waited for: the daemon may never read it.
            writer.close()
        writer.transport.abort()
    return outcome


def _expected(answers: Literal["each", "last", "none"] | int, *, last: bool) -> int:
    """How many answers are read behind a piece."""
    if isinstance(answers, int):
        return answers if last else 0
    return int(answers == "each" or (last and answers == "last"))
