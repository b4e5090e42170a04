"""Runs a correct daemon behind a proxy that breaks one thing.

    python -m memconform.conformance.mutation.proxy
        --addr HOST:PORT --mutation FILE --root DIR -- COMMAND…

COMMAND either serves on port 0 and prints `listening on`, or has `@port@` in its arguments, which
the proxy replaces by a free port. Instead of a COMMAND, `--to ADDRESS` names a running daemon. FILE
holds a mutation as JSON and is read again for each request, so that one daemon serves many
mutants; an empty mutation breaks nothing. Bytes that are not HTTP are passed through.
"""

import argparse
import asyncio
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Literal

import h11

from memconform.conformance.mutation.mutation import Mutation
from memconform.conformance.mutation.proxy_connection import Connection, MutationCounter
from memconform.daemons.ports import bracketed, free_port, is_open, listens, loopback_host


async def _start_child(command: list[str], mutation: Mutation) -> asyncio.subprocess.Process:
    env = {name: v for name, v in os.environ.items() if mutation.child_env.get(name) != ""}
    env |= {name: value for name, value in mutation.child_env.items() if value}
    if mutation.child_arguments is not None:
        pattern, replacement = mutation.child_arguments
        command = [re.sub(pattern, replacement, argument) for argument in command]
    return await asyncio.create_subprocess_exec(  # noqa: TID251 - our guard ends it
        *command, env=env, stdout=asyncio.subprocess.PIPE, stderr=None
    )


_PORT = "@port@"


async def _start(
    command: list[str], mutation: Mutation
) -> tuple[asyncio.subprocess.Process, tuple[str, int] | None]:
    """Start the daemon; return it and its address, None if it exits before it listens."""
    if not any(_PORT in argument for argument in command):
        child = await _start_child(command, mutation)
        return child, await _read_address(child)
    host = loopback_host()
    port = free_port(host)
    child = await _start_child([a.replace(_PORT, str(port)) for a in command], mutation)
    while child.returncode is None:
        # Checks who listens: another process may have taken the free port by now.
        if is_open(host, port) and listens(child.pid, host, port):
            return child, (host, port)
        await asyncio.sleep(0.02)
    return child, None


async def _read_address(child: asyncio.subprocess.Process) -> tuple[str, int] | None:
    """Read the daemon's address from its output; None if it exits before it listens."""
    if child.stdout is None:
        return None
    while line := await child.stdout.readline():
        match = re.match(rb"listening on http://(.*):(\d+)", line)
        if match:
            return match[1].decode().strip("[]"), int(match[2])
        sys.stdout.write(line.decode("utf-8", "replace"))
        sys.stdout.flush()
    return None


async def _wait_for_exit(child: asyncio.subprocess.Process) -> Literal[True]:
    await child.wait()
    return True


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="proxy")
    parser.add_argument("--addr", required=True)
    parser.add_argument("--mutation", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=Path())
    parser.add_argument("--to", default="")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args()


async def _main() -> int:
    options = _options()
    counter = MutationCounter(options.mutation)
    mutation = counter.now()
    if mutation.before_start:
        for path in options.root.glob(mutation.before_start):
            path.unlink()
    child: asyncio.subprocess.Process | None = None
    address: tuple[str, int] | None
    if options.to:
        to_host, _, to_port = options.to.rpartition(":")
        address = (to_host.strip("[]"), int(to_port))
    else:
        child, address = await _start(options.command[1:], mutation)
        if address is None:
            return await child.wait()
    die, stop = asyncio.Event(), asyncio.Event()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, h11.RemoteProtocolError):
            daemon = await asyncio.open_connection(address[0], address[1])
            try:
                await Connection((reader, writer), daemon, counter, die).serve()
            finally:
                daemon[1].transport.abort()
        with suppress(ConnectionError):
            writer.close()

    host, _, port = options.addr.rpartition(":")
    # Without a host, asyncio would listen on all interfaces.
    loopback = host.strip("[]") or loopback_host()
    host = "0.0.0.0" if mutation.everywhere else loopback  # noqa: S104 - the fault
    server = await asyncio.start_server(connected, host, int(port), backlog=512)
    if not mutation.ignore_term:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    else:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    bound = server.sockets[0].getsockname()[1]
    announcement = mutation.announcement.format(host=bracketed(loopback), port=bound)
    sys.stdout.write(f"{announcement}\n")
    sys.stdout.flush()
    ends = [asyncio.ensure_future(event.wait()) for event in (die, stop)]
    if child is not None:
        ends.append(asyncio.ensure_future(_wait_for_exit(child)))
    if mutation.ignore_term:
        # The daemon, in the same process group, obeys the signal; its proxy stays.
        await die.wait()
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if child is None:
        return 0
    if die.is_set():
        child.kill()
        os.kill(os.getpid(), signal.SIGKILL)
    with suppress(ProcessLookupError):
        child.terminate()
    return await child.wait()


if __name__ == "__main__":
    code = asyncio.run(_main())  # noqa: TID251 - a program of its own
    # Handlers of clients that are still connected would keep the interpreter from exiting.
    os._exit(code if code >= 0 else 1)
