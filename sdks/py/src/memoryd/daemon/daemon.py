"""The process from start to stop: it listens, announces its address, serves, ends its streams."""

import gc
import ipaddress
import resource
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import uvicorn

from memoryd.api.app import create_app
from memoryd.api.stream import Streams
from memoryd.config import Config
from memoryd.daemon.protocol import deadline_protocol

_GRACE_SECONDS = 2
"""How long open requests may run after a stop; the daemon then exits within 3 s altogether."""


_NEW_OBJECTS = 50_000
"""After how many new objects garbage is looked for. By default after 700: then opening an index of
105,591 documents took 2.9 s of CPU time, because most of its objects were looked at many times, and
2.3 s with this."""


class ListenError(Exception):
    """The daemon cannot listen on its address; the message is for the user."""


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


def run(config: Config, host: str, port: int) -> None:
    """Serve at `host` and `port` until SIGINT or SIGTERM, which exit with status 0.

    Raises:
        ListenError: if the address cannot be listened on.
    """
    try:
        listener = _listen(host, port)
    except OSError as error:
        raise ListenError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _exit_cleanly)
    _allow_open_files()
    gc.set_threshold(_NEW_OBJECTS)
    streams = Streams()
    settings = uvicorn.Config(
        create_app(config, streams=streams, loopback=_is_loopback(listener)),
        http=deadline_protocol(config.request_timeout_s),
        ws="none",
        loop="uvloop",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    _Server(settings, streams).run(sockets=[listener])


def _allow_open_files() -> None:
    """Open as many files as the system allows: the usual 1,024 are the indexes of 200 brains."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems name a limit that they do not grant.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _exit_cleanly(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Exit with status 0 on a requested stop: uvicorn raises the signal again when it ends."""
    raise SystemExit(0)


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
