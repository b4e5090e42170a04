"""`memconform conform`."""

from pathlib import Path
from typing import ClassVar

import click

from memconform.cli.conform_options import ConformOptions, cases_folder
from memconform.cli.lazy import LazyGroup, carry_out
from memconform.cli.options import json_file, log_level, output, schema, sdks, writable
from memconform.conformance.names import ROBUSTNESS
from memconform.contract.names import Profile
from memconform.errors import ExitCode


class _Tools(LazyGroup):
    commands_by_name: ClassVar = {
        "explain": ("conform_tools:explain", "Say what CASE is about: its rules, what it sends."),
        "lint": ("conform_tools:lint", "Check the cases themselves, and that no rule lacks one."),
        "list": ("conform_tools:list_cases", "All cases, their rules and their checks."),
        "replay": ("conform_tools:replay", "Put the case of CHECK to its SDK again."),
    }


@click.group(
    "conform",
    cls=_Tools,
    invoke_without_command=True,
    context_settings={"show_default": True},
)
@sdks(required=False)
@click.option(
    "--profile",
    multiple=True,
    type=click.Choice([*(p.value for p in Profile), ROBUSTNESS]),
    help="Only cases of these; robustness is what belongs to no profile.",
)
@click.option(
    "--case", multiple=True, metavar="GLOB", help="Only cases whose id, or id#slot, fits."
)
@cases_folder
@click.option(
    "--known",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Checks that are known to fail: sdks/README.md says how. Beside those of each sdk.toml.",
)
@click.option("--junit", callback=writable, metavar="FILE", help="Write JUnit XML.")
@json_file
@click.option("--markdown", callback=writable, metavar="FILE", help="Write Markdown; for CI.")
@click.option(
    "-j", "daemons", type=click.IntRange(1, 64), default=8, help="So many daemons at once."
)
@click.option("--trace", is_flag=True, help="Keep the wire of all cases, not of red ones only.")
@click.option("-x", "stop_at_first", is_flag=True, help="Begin nothing after the first red check.")
@click.option("-v", "--verbose", is_flag=True, help="Tell every check, passed ones too.")
@output
@schema("conformance.results:ConformReport")
@log_level
@click.pass_context
def command(ctx: click.Context, /, **flags: object) -> ExitCode | None:
    """Hold daemons to sdks/CONTRACT.md, case by case.

    \b
    Exit codes: 0 conformant, 1 not, 2 usage, 3 a daemon did not start, or a case could not be
    tested, 4 nothing selected, 70 internal error, 130 interrupted.
    """
    if ctx.invoked_subcommand is not None:
        return None
    options = ConformOptions(**flags)  # type: ignore[arg-type] # click has checked every flag
    if not options.sdk:
        raise click.UsageError("--sdk says which daemons to hold to the contract", ctx)
    return carry_out("execute_conform:conform", options)
