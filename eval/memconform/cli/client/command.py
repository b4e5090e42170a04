"""`memconform client`."""

from dataclasses import dataclass
from typing import ClassVar

import click

from memconform.cli.commands import DAEMONS, REFERENCE, option
from memconform.cli.conform.options import LIMITS, CaseRunOptions, report_flags, selection_flags
from memconform.cli.lazy import LazyGroup, carry_out, require_extra
from memconform.errors import ExitCode


@dataclass(frozen=True, slots=True)
class ClientOptions(CaseRunOptions):
    """Flags of `client`, under their own names."""

    drivers: int


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
@selection_flags
@option(
    "-j",
    "drivers",
    group=LIMITS,
    type=click.IntRange(1, 64),
    default=3,
    metavar="N",
    help="Number of drivers of an SDK to run at once.",
)
@report_flags
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
