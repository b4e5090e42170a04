"""The installed program: started as a shell does, or forked of a process that has imported it."""

import io
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.forkserver import LENGTH, STATUS, STREAMS

PROGRAM = Path(sys.executable).with_name("memconform")
_SERVER = Path(__file__).with_name("forkserver.py")

_READ_AT_START = ("PYTHON", "LC_", "LANG", "CLOCK_SET_BACK")
"""Variables that an interpreter, or the tests' sitecustomize, reads once as it starts."""


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in environment.items() if k.startswith(_READ_AT_START)}


class ForkServer:
    """Calls of the program, each in a process of its own that is forked and not started.

    Importing the program takes 0.4 s of a core and a fork 0.01 s, and most calls do little else.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._server: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._server is not None:
            process, channel = self._server
            self._server = None
            channel.close()
            process.wait(timeout=60)

    def run(
        self,
        args: Sequence[str | Path],
        *,
        folder: Path,
        environment: Mapping[str, str],
        timeout: float,
        memory: int | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """What `subprocess.run` gives of the installed program, with both streams as text.

        `memory` limits its address space, in bytes.
        """
        differing = _read_at_start(environment).items() ^ _read_at_start(self._environment).items()
        assert not differing, f"an interpreter must start to see {differing}: use `installed`"
        if self._server is None:
            self._server = self._start()
        _, channel = self._server
        argv = [str(PROGRAM), *(str(part) for part in args)]
        call = {
            "argv": argv,
            "folder": str(folder),
            "environment": dict(environment),
            "memory": memory,
        }
        deadline = time.monotonic() + timeout
        try:
            with ExitStack() as stack:
                streams = [stack.enter_context(stream) for stream in _send(channel, call)]
                [pid] = STATUS.unpack(_receive(channel, deadline))
                try:
                    out, err = _read(streams, deadline)
                    [code] = STATUS.unpack(_receive(channel, deadline))
                except BaseException:
                    # Not reaped until we have answered, so that the id is still the call's.
                    os.kill(pid, signal.SIGKILL)
                    raise
            channel.sendall(b".")
        except BaseException as error:
            # In the midst of a call the two ends no longer agree on what comes next.
            self.close()
            if isinstance(error, TimeoutError):
                raise subprocess.TimeoutExpired(argv, timeout) from error
            raise
        return subprocess.CompletedProcess(argv, code, out, err)

    def _start(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        channel, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, _SERVER, PROGRAM, str(theirs.fileno())],
                # Linear algebra would start threads, of which a fork keeps one.
                env=self._environment | {"OPENBLAS_NUM_THREADS": "1"},
                pass_fds=[theirs.fileno()],
            )
        return process, channel


def _send(channel: socket.socket, call: dict[str, Any]) -> list[io.FileIO]:
    """Hand over a call and its ends of two pipes; ours are returned."""
    body = json.dumps(call).encode()
    pipes = [os.pipe() for _ in range(STREAMS)]
    try:
        socket.send_fds(channel, [LENGTH.pack(len(body))], [end for _, end in pipes])
    finally:
        for _, end in pipes:
            os.close(end)
    channel.sendall(body)
    return [io.FileIO(end) for end, _ in pipes]


def _receive(channel: socket.socket, deadline: float) -> bytes:
    channel.settimeout(max(0.001, deadline - time.monotonic()))
    status = channel.recv(STATUS.size)
    assert len(status) == STATUS.size, "the fork server has ended"
    return status


def _read(streams: list[io.FileIO], deadline: float) -> list[str]:
    """Each stream to its end, decoded as `subprocess` does with text=True."""
    data = {stream: bytearray() for stream in streams}
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            if (left := deadline - time.monotonic()) <= 0:
                raise TimeoutError
            for key, _ in selector.select(left):
                stream = next(s for s in streams if s is key.fileobj)
                if part := stream.read(1 << 16):
                    data[stream] += part
                else:
                    selector.unregister(stream)
    return [io.TextIOWrapper(io.BytesIO(text)).read() for text in data.values()]
