"""Runs the upstream until it is told to stop."""

import os
import socket
from collections.abc import Callable

import uvicorn

from memconform.upstream.script import Script
from memconform.upstream.server import ScriptedUpstream

_GRACE_SECONDS = 1
"""Answers that hang on purpose get no more at the end."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._tell()


def listen(host: str, port: int) -> tuple[socket.socket, str]:
    """A bound socket and the address under which it is reached; raises OSError."""
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


def serve(listener: socket.socket, script: Script, started: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; `started` is called once requests are served."""
    config = uvicorn.Config(
        ScriptedUpstream(script, os.environ.get("MEMCONFORM_RUN_ID")).app(),
        # A connection that is cut on purpose is reported as a crash of the application.
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    _Server(config, started).run(sockets=[listener])
