"""`memconform conform`."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import click

from memconform.cli.commands import OUTPUT, PathType, option
from memconform.cli.lazy import LazyGroup, carry_out, require_extra
from memconform.cli.options import (
    case_env,
    html,
    json_file,
    keep,
    log_level,
    markdown,
    output,
    quiet,
    schema,
    sdks,
    writable,
)
from memconform.cli.shard_options import executor, shard
from memconform.conformance.names import CASES, ROBUSTNESS
from memconform.contract.names import Profile
from memconform.errors import ExitCode

CASES_GROUP = "Which cases"

cases_folder = option(
    "--cases",
    group=CASES_GROUP,
    type=PathType(file_okay=False, exists=True),
    default=CASES,
    show_default="the shipped cases",
    metavar="DIR",
    help="Folder of case files.",
)


@dataclass(frozen=True, slots=True)
class ConformOptions:
    """Flags of `conform`, under their own names."""

    sdk: tuple[str, ...]
    no_skip: bool
    env: tuple[str, ...]
    keep: bool
    profile: tuple[str, ...]
    case: tuple[str, ...]
    shard: str | None
    executor: str | None
    shards: int | None
    cases: Path
    known: tuple[Path, ...]
    write_known: str | None
    junit: str | None
    json_file: str | None
    html: bool
    markdown: str | None
    daemons: int
    trace: bool
    stop_at_first: bool
    output: Path
    verbose: bool
    quiet: bool
    log_level: str


class _Tools(LazyGroup):
    commands_by_name: ClassVar = {
        "explain": (
            "conform.cases:explain",
            (
                "Explain a case: its file and line, its rules, what it sends, what passes and what"
                " fails."
            ),
        ),
        "findings": (
            "conform.cases:show_findings_of",
            "Show the checks that did not pass in a run, page by page, or those of some causes.",
        ),
        "lint": (
            "conform.cases:lint",
            "Check the case files themselves, and that every rule has a case.",
        ),
        "list": ("conform.cases:list_cases", "List all cases with their rules."),
        "replay": ("conform.cases:replay", "Repeat the case of a check against its SDK."),
    }


LIMITS = "Limits"


def new_file(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Reject a target that exists: it may be a list with reasons that somebody wrote."""
    if value is not None and (value == "-" or Path(value).exists()):
        raise click.BadParameter(f"{value!r} exists already; name a new file")
    return writable(ctx, param, value)


@click.group(
    "conform",
    cls=_Tools,
    invoke_without_command=True,
    examples=(
        "memconform conform --sdk all",
        "memconform conform --sdk mine --profile documents -x",
        "memconform conform explain doc-rename",
    ),
    exit_codes={
        ExitCode.OK: "conformant",
        ExitCode.FAILED: "a check failed",
        ExitCode.DAEMON: "a daemon did not start, or a case could not be tested",
        ExitCode.NOTHING_SELECTED: "no case selected, or no check passed",
    },
)
@sdks(required=False)
@case_env
@keep
@option(
    "--profile",
    group=CASES_GROUP,
    multiple=True,
    type=click.Choice([*(p.value for p in Profile), ROBUSTNESS]),
    help=f"Run only cases of this profile; {ROBUSTNESS} covers those that belong to none. May be"
    " given several times.",
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
@executor(LIMITS)
@cases_folder
@option(
    "--known",
    group=CASES_GROUP,
    multiple=True,
    type=PathType(),
    metavar="FILE",
    help="List of checks and causes that are known to fail, in addition to those of each sdk.toml;"
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
    "daemons",
    group=LIMITS,
    type=click.IntRange(1, 64),
    default=8,
    metavar="N",
    help="Number of daemons to run at once.",
)
@output
@option(
    "--trace",
    group=OUTPUT,
    is_flag=True,
    help="Save the exchanges of every case, not only of failing ones.",
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
    """Check daemons against the contract, case by case.

    The contract is sdks/CONTRACT.md. Failures are listed by cause, each with an example: its case,
    what came, and a curl command for a daemon that you run. `conform findings` lists every check,
    and `conform replay` starts the daemon again and repeats a case.
    """
    if ctx.invoked_subcommand is not None:
        return None
    options = ConformOptions(**flags)  # type: ignore[arg-type] # click has validated every flag
    if not options.sdk:
        raise click.UsageError("--sdk is missing: it names the daemons to check", ctx)
    if options.html:
        require_extra("report")
    return carry_out("conform.execution:run_conform", options)
