"""Starts the installed program by fork, so that its modules are imported once and not a call.

A script of its own, `python forkserver.py PROGRAM CHANNEL`, whose other end is `tests.program`.
CHANNEL is a socket's descriptor; on it come, for each call, its streams and what it is to be. Each
call is a process with streams, environment, working folder, signals and exit code of its own, that
runs the installed script from its first line and ends as an interpreter does. What it cannot be
given is what an interpreter reads as it starts: its PYTHON variables and the locale.
"""

import gc
import importlib
import json
import os
import pkgutil
import resource
import runpy
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

LENGTH = struct.Struct("!Q")
"""Before a call's JSON stands how long it is."""
STATUS = struct.Struct("!i")
"""A process id, then an exit code (of a signal, minus its number), as `subprocess` has them."""
STREAMS = 2


def _receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    head, streams, _, _ = socket.recv_fds(channel, LENGTH.size, STREAMS)
    if not head:
        return None
    [length] = LENGTH.unpack(head)
    body = bytearray()
    while len(body) < length:
        body += channel.recv(length - len(body))
    call: dict[str, Any] = json.loads(body)
    return call, streams


def _become(call: dict[str, Any], streams: list[int], coerced: dict[str, str]) -> None:
    """Make this process what a shell would have started."""
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream, number)
    os.closerange(STREAMS + 1, max(streams) + 1)
    os.chdir(call["folder"])
    if (memory := call["memory"]) is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    os.environ.clear()
    os.environ.update(coerced | call["environment"])
    time.tzset()
    sys.argv = call["argv"]


def _wait(pid: int) -> int:
    """The exit code of a child that is left to be reaped: until then its id is no other's."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _serve(channel: socket.socket) -> bool:
    """Fork for each call until the channel ends; true in the child, which is to run it."""
    # Where the locale is C the interpreter chooses another, and tells its children by a variable.
    coerced = {k: v for k, v in os.environ.items() if k == "LC_CTYPE"}
    while (received := _receive(channel)) is not None:
        call, streams = received
        pid = os.fork()
        if pid == 0:
            channel.close()
            _become(call, streams, coerced)
            return True
        for stream in streams:
            os.close(stream)
        channel.sendall(STATUS.pack(pid))
        channel.sendall(STATUS.pack(_wait(pid)))
        # Whoever called may kill it until the answer is there.
        channel.recv(1)
        os.waitpid(pid, 0)
    return False


def _import_program() -> None:
    cli = importlib.import_module("memconform.cli")
    # All of it: what a verb does is imported when it is called.
    for module in pkgutil.walk_packages(cli.__path__, "memconform.cli."):
        importlib.import_module(module.name)
    # A child inherits one thread, and what another held stays held.
    assert threading.active_count() == 1
    gc.freeze()


if __name__ == "__main__":
    _program, _channel = sys.argv[1:]
    sys.path[0] = str(Path(_program).parent)
    _import_program()
    if _serve(socket.socket(fileno=int(_channel))):
        runpy.run_path(_program, run_name="__main__")
