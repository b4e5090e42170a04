"""Sends raw bytes over a separate connection, for requests that an HTTP library rejects."""

import asyncio
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal
from urllib.parse import urlsplit

import h11

from memconform.client.timings import time_limit
from memconform.conformance.step_result import StepResult

_READ = 65_536
_MAX_BODY = 2**20
"""Largest response body, in bytes; responses to raw requests are short."""
_LINGER_NONE = struct.pack("ii", 1, 0)
"""SO_LINGER with a timeout of zero: closing then resets the connection."""


class _ResponseReader:
    """Reads the responses on one connection, one after another."""

    def __init__(self, reader: asyncio.StreamReader, outcome: StepResult) -> None:
        self._reader = reader
        self._outcome = outcome
        self._parser = h11.Connection(h11.CLIENT)

    async def next(self, piece: bytes) -> None:
        """Read the response to `piece` and append its status, None if there is none."""
        outcome = self._outcome
        outcome.status, outcome.headers, outcome.body = None, [], b""
        try:
            self._begin_request(piece)
            await self._read()
        except (h11.RemoteProtocolError, h11.LocalProtocolError) as error:
            outcome.failure = f"the response is not HTTP: {error}"
            outcome.ended = "cut"
        except ConnectionError as error:
            outcome.failure = f"{type(error).__name__}: {error}"
            outcome.ended = "cut"
        finally:
            outcome.statuses.append(outcome.status)

    def _begin_request(self, piece: bytes) -> None:
        # The parser must see a request first, and know a HEAD, whose response has no body.
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
                if len(outcome.body) > _MAX_BODY:
                    outcome.failure = f"the response has more than {_MAX_BODY} bytes"
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
    """Send `pieces` over a new connection, pausing after each one, and read the responses.

    Args:
        base_url: Address of the daemon.
        pieces: The bytes to send.
        answers: After which pieces a response is read; a number of responses after the last one.
        end: Whether the connection is then kept, half-closed or reset.
        pause: Seconds to wait after each piece.
        seconds: Time limit for connecting, and for the rest.

    Returns:
        The last response, and the statuses of all of them. A failure is part of it, not raised.
    """
    address = urlsplit(base_url)
    first_line = pieces[0].partition(b"\r\n")[0].decode("latin-1")[:100]
    outcome = StepResult(f"raw: {first_line}", ended="open")
    outcome.pieces = b"".join(pieces)
    outcome.shell = f"nc -w 5 {address.hostname} {address.port}"
    started = time.perf_counter()
    try:
        async with time_limit(seconds):
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
    except (OSError, TimeoutError) as error:
        outcome.failure, outcome.ended = f"no connection: {error}", "cut"
        outcome.statuses.append(None)
        return outcome
    try:
        async with time_limit(seconds):
            responses = _ResponseReader(reader, outcome)
            for number, piece in enumerate(pieces):
                last = number == len(pieces) - 1
                # A daemon may answer and close the connection before it has read everything.
                if not writer.transport.is_closing():
                    with suppress(ConnectionError):
                        writer.write(piece)
                        await writer.drain()
                if last and end == "half":
                    await asyncio.sleep(pause)
                    with suppress(OSError):
                        # The daemon may have closed the connection already.
                        writer.write_eof()
                for _ in range(_response_count(answers, last=last)):
                    await responses.next(piece)
                await asyncio.sleep(pause)
    except TimeoutError:
        outcome.failure = f"no response within {seconds:g} s"
    finally:
        outcome.took_ms = round((time.perf_counter() - started) * 1e3, 3)
        if end == "abort":
            with suppress(OSError):
                raw: socket.socket = writer.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        else:
            # Do not wait until unsent bytes are sent: the daemon may never read them.
            writer.close()
        writer.transport.abort()
    return outcome


def _response_count(answers: Literal["each", "last", "none"] | int, *, last: bool) -> int:
    """Return how many responses to read after a piece."""
    if isinstance(answers, int):
        return answers if last else 0
    return int(answers == "each" or (last and answers == "last"))
