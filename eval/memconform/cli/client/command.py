"""`memconform client`."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import click

from memconform.cli.commands import DAEMONS, OUTPUT, REFERENCE, PathType, option
from memconform.cli.conform.command import CASES_GROUP, LIMITS, new_file
from memconform.cli.lazy import LazyGroup, carry_out, require_extra
from memconform.cli.options import (
    html,
    json_file,
    log_level,
    markdown,
    output,
    quiet,
    schema,
    writable,
)
from memconform.cli.shard_options import shard
from memconform.errors import ExitCode


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Flags of `client`, under their own names."""

    sdk: tuple[str, ...]
    case: tuple[str, ...]
    shard: str | None
    known: tuple[Path, ...]
    write_known: str | None
    junit: str | None
    json_file: str | None
    html: bool
    markdown: str | None
    drivers: int
    trace: bool
    stop_at_first: bool
    output: Path
    verbose: bool
    quiet: bool
    log_level: str


class _Tools(LazyGroup):
    commands_by_name: ClassVar = {
        "explain": (
            "client.cases:explain",
            (
                "Explain a case: its file and line, its rules, what is called and sent, and what"
                " must come."
            ),
        ),
        "list": ("client.cases:list_cases", "List all cases with their rules."),
        "replay": (
            "client.cases:replay",
            (
                "Serve the responses of one case to a client, and show what came and what was"
                " expected."
            ),
        ),
    }


@click.group(
    "client",
    cls=_Tools,
    invoke_without_command=True,
    examples=(
        "memconform client --sdk all",
        "memconform client --sdk mine --case 'client-retry*'",
        "memconform client replay 'client-cut[after-delta,chunked]' --sdk mine",
    ),
    exit_codes={
        ExitCode.OK: "the client keeps the contract",
        ExitCode.FAILED: "a check failed",
        ExitCode.DAEMON: "a driver did not start, or a case could not be tested",
        ExitCode.NOTHING_SELECTED: "no case selected, or no check passed",
    },
)
@option(
    "--sdk",
    group=DAEMONS,
    multiple=True,
    type=REFERENCE,
    metavar="SDK",
    help="SDK whose client is tested: a known name, or a path to an sdk.toml with [client]; `all`"
    " selects every known SDK that has one and can run here. May be given several times.",
)
@option(
    "--case",
    group=CASES_GROUP,
    multiple=True,
    metavar="GLOB",
    help="Run only cases whose id matches GLOB. A check id (case#slot) selects its whole case."
    " May be given several times.",
)
@shard(CASES_GROUP, "cases")
@option(
    "--known",
    group=CASES_GROUP,
    multiple=True,
    type=PathType(),
    metavar="FILE",
    help="List of checks and causes that are known to fail, in addition to that of each sdk.toml;"
    " docs/CONFORMANCE.md has the format. May be given several times.",
)
@option(
    "-x",
    "stop_at_first",
    group=LIMITS,
    is_flag=True,
    help="Start no further case after the first failing check.",
)
@option(
    "-j",
    "drivers",
    group=LIMITS,
    type=click.IntRange(1, 64),
    default=3,
    metavar="N",
    help="Number of drivers of an SDK to run at once.",
)
@output
@option(
    "--trace",
    group=OUTPUT,
    is_flag=True,
    help="Save what was sent and reported in every case, not only in failing ones.",
)
@option(
    "-v",
    "--verbose",
    group=OUTPUT,
    is_flag=True,
    help="Show every check, including those that pass, instead of a list of causes.",
)
@option(
    "--write-known",
    group=OUTPUT,
    callback=new_file,
    metavar="FILE",
    help="Write the causes of all failures that no list covers yet to a new FILE, as a list for"
    " --known.",
)
@json_file
@html
@schema("conformance.results:ConformReport")
@option(
    "--junit",
    group=OUTPUT,
    callback=writable,
    metavar="FILE",
    help="Also write the report to FILE as JUnit XML; - is standard output.",
)
@markdown
@quiet
@log_level
@click.pass_context
def command(ctx: click.Context, /, **flags: object) -> ExitCode | None:
    """Check the clients of SDKs against the contract, with a daemon that a script plays.

    A driver, a small program that sdk.toml names in [client], calls the client and reports what it
    yields; sdks/DRIVER.md describes it in a page. Failures are listed by cause, each with an
    example. `client replay` repeats one case, and `conform findings` lists every check of a run.
    """
    if ctx.invoked_subcommand is not None:
        return None
    options = ClientOptions(**flags)  # type: ignore[arg-type] # click has validated every flag
    if not options.sdk:
        raise click.UsageError("--sdk is missing: it names the SDKs whose clients to check", ctx)
    if options.html:
        require_extra("report")
    return carry_out("client.execution:run_client", options)
