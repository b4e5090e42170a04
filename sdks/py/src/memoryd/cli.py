"""`memory serve`: the daemon's command line."""

import argparse
import os
import socket
import sys
from pathlib import Path

import uvicorn

from memoryd.app import create_app
from memoryd.config import Config
from memoryd.providers import ConfigError

_GRACE_SECONDS = 3
"""Given to open requests at shutdown; with what follows it stays inside the contract's 5 s."""


class _Server(uvicorn.Server):
    """Says where it listens, once it does."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            host, port = sockets[0].getsockname()[:2]
            where = f"[{host}]" if ":" in host else host
            sys.stdout.write(f"listening on http://{where}:{port}\n")
            sys.stdout.flush()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="memory")
    serve = parser.add_subparsers(dest="command", required=True).add_parser(
        "serve", help="answer questions over HTTP"
    )
    serve.add_argument("--addr", default="127.0.0.1:18850", metavar="HOST:PORT", type=_address)
    serve.add_argument("--root", type=Path, help="state folder; default $JB_HOME")
    options = parser.parse_args(argv)
    home = options.root or os.environ.get("JB_HOME")
    if not home:
        parser.error("where is the state folder? give --root or JB_HOME")
    try:
        config = Config.from_env(Path(home), os.environ)
    except ConfigError as error:
        parser.error(str(error))
    host, port = options.addr
    try:
        listener = _listen(host, port)
    except OSError as error:
        sys.stderr.write(f"memory: cannot listen on {host}:{port}: {error.strerror}\n")
        return 1
    settings = uvicorn.Config(
        create_app(config),
        http="httptools",
        loop="uvloop",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    _Server(settings).run(sockets=[listener])
    return 0


def _address(value: str) -> tuple[str, int]:
    host, colon, port = value.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{value!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


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
