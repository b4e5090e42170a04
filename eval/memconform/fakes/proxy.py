"""A daemon that is a good one behind a proxy which breaks one thing.

    python -m memconform.fakes.proxy --addr HOST:PORT --mutation FILE --root DIR -- COMMAND…

COMMAND serves with port 0 and says `listening on`, or has `@port@` among its arguments for a port
that we choose; or else `--to ADDRESS` says where a daemon runs that is not ours. FILE holds a
mutation as JSON and is read again for each request, so that one daemon serves for many; an empty
one breaks nothing. What is no HTTP passes byte by byte.
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

from memconform.daemons.ports import free_port, is_open, listens
from memconform.fakes.mutation import Mutation
from memconform.fakes.relay import Connection, Counting


async def _start_child(command: list[str], mutation: Mutation) -> asyncio.subprocess.Process:
    env = {name: v for name, v in os.environ.items() if mutation.child_env.get(name) != ""}
    env |= {name: value for name, value in mutation.child_env.items() if value}
    if mutation.child_arguments is not None:
        pattern, replacement = mutation.child_arguments
        command = [re.sub(pattern, replacement, argument) for argument in command]
    return await asyncio.create_subprocess_exec(
        *command, env=env, stdout=asyncio.subprocess.PIPE, stderr=None
    )


_PORT = "@port@"


async def _begun(
    command: list[str], mutation: Mutation
) -> tuple[asyncio.subprocess.Process, tuple[str, int] | None]:
    """The daemon, and where it listens; None where it ends before it does."""
    if not any(_PORT in argument for argument in command):
        child = await _start_child(command, mutation)
        return child, await _address(child)
    port = free_port("127.0.0.1")
    child = await _start_child([a.replace(_PORT, str(port)) for a in command], mutation)
    while child.returncode is None:
        # Its own: a port that was free may be another's by now.
        if is_open("127.0.0.1", port) and listens(child.pid, port):
            return child, ("127.0.0.1", port)
        await asyncio.sleep(0.02)
    return child, None


async def _address(child: asyncio.subprocess.Process) -> tuple[str, int] | None:
    """Where the daemon listens; None where it ends before it does."""
    if child.stdout is None:
        return None
    while line := await child.stdout.readline():
        match = re.match(rb"listening on http://(.*):(\d+)", line)
        if match:
            return match[1].decode().strip("[]"), int(match[2])
        sys.stdout.write(line.decode("utf-8", "replace"))
        sys.stdout.flush()
    return None


async def _gone(child: asyncio.subprocess.Process) -> Literal[True]:
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
    counting = Counting(options.mutation)
    mutation = counting.now()
    if mutation.before_start:
        for path in options.root.glob(mutation.before_start):
            path.unlink()
    child: asyncio.subprocess.Process | None = None
    found: tuple[str, int] | None
    if options.to:
        to_host, _, to_port = options.to.rpartition(":")
        found = (to_host.strip("[]"), int(to_port))
    else:
        child, found = await _begun(options.command[1:], mutation)
        if found is None:
            return await child.wait()
    die, stop = asyncio.Event(), asyncio.Event()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, h11.RemoteProtocolError):
            daemon = await asyncio.open_connection(found[0], found[1])
            try:
                await Connection((reader, writer), daemon, counting, die).serve()
            finally:
                daemon[1].transport.abort()
        with suppress(ConnectionError):
            writer.close()

    host, _, port = options.addr.rpartition(":")
    host = "0.0.0.0" if mutation.everywhere else host  # noqa: S104 - a fault that is to be found
    server = await asyncio.start_server(connected, host, int(port), backlog=512)
    if not mutation.ignore_term:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    else:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    bound = server.sockets[0].getsockname()[1]
    said = mutation.announcement.format(port=bound)
    sys.stdout.write(f"{said}\n")
    sys.stdout.flush()
    ends = [asyncio.ensure_future(event.wait()) for event in (die, stop)]
    if child is not None:
        ends.append(asyncio.ensure_future(_gone(child)))
    if mutation.ignore_term:
        # The daemon, in the same process group, heeds the signal; its proxy stays.
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
    code = asyncio.run(_main())
    # Handlers of clients that are still there would keep the interpreter from its end.
    os._exit(code if code >= 0 else 1)
