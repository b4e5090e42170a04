"""Runs `memconform view`."""

import secrets
import socket
from contextlib import suppress
from pathlib import Path

import uvicorn

from memconform.cli.view.command import ViewOptions
from memconform.daemons.ports import Address, bracketed, loopback_host
from memconform.errors import ExitCode, UsageError
from memconform.printing.output import echo
from memconform.reports.html.document import write_html
from memconform.reports.live.app import create_app
from memconform.reports.overview.overview import Overview
from memconform.reports.overview.sources import find_sources
from memconform.storage.sink import Sink

_SHUTDOWN_SECONDS = 2


def view(options: ViewOptions) -> ExitCode:
    """Serve until Ctrl-C.

    Raises:
        UsageError: if the port is taken (`port_taken`), or a named result does not exist
            (`unknown_run`).
    """
    references = options.results or (str(options.output),)
    for reference in options.results:
        _require_result(reference, options.output)
    host = loopback_host()
    listening = _listen(host, options.port)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(32)

    def report() -> bytes:
        pieces: list[bytes] = []
        with Overview.load(references, options.baseline, options.output, quiet=True) as overview:
            write_html(Sink(pieces.append), overview)
        return b"".join(pieces)

    hosts = frozenset((f"{bracketed(host)}:{port}", f"localhost:{port}"))
    app = create_app(options.output, report, token=token, hosts=hosts)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        # Otherwise uvicorn reads WEB_CONCURRENCY and FORWARDED_ALLOW_IPS.
        workers=1,
        forwarded_allow_ips=[],
    )
    echo(f"{Address(host, port).url}/{token}/")
    echo("Ctrl-C stops it", err=True)
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])
    return ExitCode.OK


def _require_result(reference: str, output: Path) -> None:
    """Raise UsageError if a reference is to no result, or to a file that no report shows.

    A folder may be empty: runs in it are followed.
    """
    if not Path(reference).is_dir() and not (output / "runs" / reference).is_dir():
        find_sources([reference], output)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(
            f"port {port} of {host} cannot be used: {error.strerror}",
            code="port_taken",
            hint="omit --port to take a free one",
        ) from error
    return listening
