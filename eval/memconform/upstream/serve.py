"""Runs the upstream until a signal stops it."""

import os
import socket
from collections.abc import Callable

import uvicorn

from memconform.upstream.script import Script
from memconform.upstream.server import ScriptedUpstream

_GRACE_SECONDS = 1
"""Time limit of a graceful shutdown: answers that hang on purpose get no more."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()


def listen(host: str, port: int) -> tuple[socket.socket, str]:
    """Bind a socket; return it and its URL. Raises OSError if the address cannot be bound."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    bound = listener.getsockname()[1]
    return listener, f"http://{f'[{host}]' if ':' in host else host}:{bound}"


def serve(listener: socket.socket, script: Script, on_started: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; call `on_started` once requests are accepted."""
    config = uvicorn.Config(
        ScriptedUpstream(script, os.environ.get("MEMCONFORM_RUN_ID")).app(),
        # Otherwise uvicorn logs a connection cut on purpose as a crash of the application.
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        # Otherwise uvicorn reads WEB_CONCURRENCY and FORWARDED_ALLOW_IPS.
        workers=1,
        forwarded_allow_ips=[],
    )
    _Server(config, on_started).run(sockets=[listener])
