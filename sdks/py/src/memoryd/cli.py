"""`memory serve`: the daemon's command line."""

import argparse
import ipaddress
import os
import signal
import socket
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

import uvicorn

from memoryd.app import create_app
from memoryd.config import Config
from memoryd.protocol import deadline_protocol
from memoryd.providers import ConfigError
from memoryd.streams import Streams

_GRACE_SECONDS = 2
"""How long open requests may run after a stop; the daemon then exits within 3 s altogether."""


class _Server(uvicorn.Server):
    """Announces its address when it listens, and ends open streams when it stops."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            host, port = sockets[0].getsockname()[:2]
            where = f"[{host}]" if ":" in host else host
            sys.stdout.write(f"listening on http://{where}:{port}\n")
            sys.stdout.flush()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._streams.end()
        await super().shutdown(sockets)


def main(argv: list[str] | None = None) -> int:
    """Run `memory serve`; returns the exit status. Usage errors exit with status 2."""
    parser = argparse.ArgumentParser(prog="memory", allow_abbrev=False)
    parser.add_argument("command", metavar="serve", type=_command, help="answer over HTTP")
    parser.add_argument("--addr", default="127.0.0.1:18850", metavar="HOST:PORT", type=_address)
    parser.add_argument("--root", type=Path, help="state folder; default $JB_HOME")
    parser.add_argument(
        "--auth-token",
        metavar="TOKEN",
        help="bearer token that requests must send; default $JB_AUTH_TOKEN",
    )
    options, unknown = parser.parse_known_args(argv)
    if unknown:
        # Not repeated: one may be part of a token that contains a space.
        parser.error("unknown arguments; see memory --help")
    home = options.root or os.environ.get("JB_HOME")
    if not home:
        parser.error("no state folder: set --root or JB_HOME")
    try:
        config = Config.from_env(Path(home), os.environ, options.auth_token)
    except ConfigError as error:
        parser.error(str(error))
    host, port = options.addr
    try:
        listener = _listen(host, port)
    except OSError as error:
        sys.stderr.write(f"memory: cannot listen on {host}:{port}: {error.strerror}\n")
        return 1
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _exit_cleanly)
    streams = Streams()
    settings = uvicorn.Config(
        create_app(config, streams, loopback=_is_loopback(listener)),
        http=deadline_protocol(config.request_timeout_s),
        ws="none",
        loop="uvloop",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    _Server(settings, streams).run(sockets=[listener])
    return 0


def _exit_cleanly(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Exit with status 0 on a requested stop: uvicorn raises the signal again when it ends."""
    raise SystemExit(0)


def _command(value: str) -> str:
    if value != "serve":
        raise argparse.ArgumentTypeError("unknown command; the only one is serve")
    return value


def _address(value: str) -> tuple[str, int]:
    host, colon, port = value.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{value!r} must be HOST:PORT")
    return host.strip("[]"), int(port)


def _is_loopback(listener: socket.socket) -> bool:
    address = ipaddress.ip_address(listener.getsockname()[0].partition("%")[0])
    mapped = address.ipv4_mapped if address.version == 6 else None
    return (mapped or address).is_loopback


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener
