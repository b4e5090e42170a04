"""`memconform conform`."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import click

from memconform.cli.commands import PathType, option
from memconform.cli.conform.options import (
    CASES_GROUP,
    LIMITS,
    CaseRunOptions,
    report_flags,
    selection_flags,
)
from memconform.cli.lazy import LazyGroup, carry_out, require_extra
from memconform.cli.options import case_env, keep, sdks
from memconform.cli.shard_options import executor
from memconform.conformance.names import CASES, ROBUSTNESS
from memconform.contract.names import Profile
from memconform.errors import ExitCode

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
class ConformOptions(CaseRunOptions):
    """Flags of `conform`, under their own names."""

    no_skip: bool
    env: tuple[str, ...]
    keep: bool
    profile: tuple[str, ...]
    executor: str | None
    shards: int | None
    cases: Path
    daemons: int


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
@selection_flags
@executor(LIMITS)
@cases_folder
@option(
    "-j",
    "daemons",
    group=LIMITS,
    type=click.IntRange(1, 64),
    default=8,
    metavar="N",
    help="Number of daemons to run at once.",
)
@report_flags
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
