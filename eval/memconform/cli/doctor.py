"""`memconform doctor`."""

import shutil
import tempfile
from contextlib import aclosing
from pathlib import Path

import click

from memconform.cli.options import (
    cancel_on_signals,
    configure_logs,
    log_level,
    request_headers,
    run_to_end,
    upstream,
)
from memconform.daemons.discovery import find_runner, working_folder
from memconform.daemons.runner import UpstreamKind
from memconform.errors import ExitCode, gravest
from memconform.printing.console import SafeConsole, styled
from memconform.printing.escaping import indent
from memconform.printing.output import echo
from memconform.runs.examination import Step, examine


@click.command("doctor")
@click.option(
    "--sdk",
    required=True,
    metavar="SDK",
    help="A known name, a path to sdk.toml, package.module:Class, or url:http://127.0.0.1:PORT.",
)
@upstream
@click.option("--header", multiple=True, metavar="NAME:VALUE", help="Send it with every request.")
@log_level
def command(sdk: str, upstream: UpstreamKind, header: tuple[str, ...], log_level: str) -> ExitCode:
    """Try an SDK step by step: build, start, ingest, search, ask, stop.

    \b
    Exit codes: 0 ok, 1 it does not do what it claims, 2 usage, 3 it did not start or died.
    """
    configure_logs(log_level)
    headers = request_headers(header)
    return run_to_end(_examine(sdk, upstream, headers))


async def _examine(sdk: str, upstream: UpstreamKind, headers: dict[str, str]) -> ExitCode:
    cancel_on_signals()
    runner = find_runner(sdk, working_folder())
    runner.use_upstream(upstream)
    failures: list[ExitCode] = []
    folder = tempfile.mkdtemp(prefix="memconform-")
    try:
        async with aclosing(examine(runner, Path(folder), headers, upstream)) as steps:
            async for step in steps:
                _show(step)
                if step.error is not None:
                    failures.append(step.error.exit_code)
    finally:
        # What went wrong may be told by the log alone.
        if not failures:
            shutil.rmtree(folder, ignore_errors=True)
    echo(f"{runner.name}: {'well' if not failures else f'{len(failures)} steps failed'}")
    return gravest(failures)


def _show(step: Step) -> None:
    mark = ("ok  ", "green") if step.error is None else ("FAIL", "red")
    SafeConsole().print(styled([mark, (f" {step.name:<20} {step.detail}".rstrip(), "")]))
    if step.error is not None:
        echo(indent(step.error.render(), "     "))
