"""`memconform client list | explain | replay`."""

import click

from memconform.cli.client.execution import build_clients, start_driver
from memconform.cli.commands import DAEMONS, REFERENCE, Command, option
from memconform.cli.conform.cases import relative_path
from memconform.cli.conform.selection import find_case, show_cases
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.options import json_file
from memconform.cli.sdks import ALL
from memconform.conformance.case_files import case_line
from memconform.conformance.clients.case_runner import run_client_case, skip_reason
from memconform.conformance.clients.catalog import CASES, PREFIX, ClientVariant, client_catalog
from memconform.conformance.clients.explanation import explain_client_case
from memconform.conformance.results import exit_code_of
from memconform.errors import ExitCode, UsageError
from memconform.printing.escaping import Lines
from memconform.printing.output import echo
from memconform.reports.conformance import show_case
from memconform.storage.folders import RunFolder
from memconform.storage.temporary import temporary_folder


@click.command(
    "list",
    cls=Command,
    examples=("memconform client list", "memconform client list --json cases.json"),
)
@json_file
def list_cases(json_file: str | None) -> ExitCode:
    """List all cases with their rules.

    With --json also their titles and checks.
    """
    return show_cases([(entry, _facts(entry)) for entry in client_catalog()], json_file)


def _facts(entry: ClientVariant) -> dict[str, object]:
    return {
        "title": entry.case.title,
        "level": entry.case.level,
        "rules": entry.case.rules,
        "needs": entry.case.needed_claims,
        "file": entry.file,
        "checks": entry.check_ids(),
    }


@click.command("explain", cls=Command, examples=("memconform client explain client-retry-after",))
@click.argument("case")
def explain(case: str) -> ExitCode:
    """Explain a case: its file and line, its rules, what is called and sent, and what must come.

    CASE is the id of a case, or of one of its checks.
    """
    entry = _find(case)
    line = case_line(entry.file, entry.base, CASES)
    echo(Lines(explain_client_case(entry, f"{relative_path(CASES / entry.file)}:{line}")))
    return ExitCode.OK


def _find(name: str) -> ClientVariant:
    """Find a case by its id, by that of a variant, or by that of a check as findings show it."""
    sdk, colon, rest = name.partition(":")
    is_prefixed = colon and not sdk.startswith(PREFIX)
    return find_case(rest if is_prefixed else name, client_catalog(), "memconform client list")


@click.command(
    "replay",
    cls=Command,
    examples=("memconform client replay 'client-cut[after-delta,chunked]' --sdk mine",),
    exit_codes={
        ExitCode.FAILED: "a check failed",
        ExitCode.DAEMON: "a driver did not start, or the case could not be tested",
    },
)
@click.argument("case")
@option(
    "--sdk",
    group=DAEMONS,
    required=True,
    type=REFERENCE,
    metavar="SDK",
    help="SDK whose client is called: a known name, or a path to an sdk.toml with [client].",
)
def replay(case: str, sdk: str) -> ExitCode:
    """Serve the responses of one case to a client, and show what came and what was expected.

    CASE is the id of a case, of one of its variants, or of a check.
    """
    if sdk == ALL:
        raise UsageError("a case is replayed to one client", code="bad_option", hint="name its SDK")
    return run_to_end(_replay(_find(case), sdk))


async def _replay(entry: ClientVariant, sdk: str) -> ExitCode:
    cancel_on_signals()
    [program], _ = await build_clients([sdk], quiet=False)
    with temporary_folder("memconform-") as folder:
        async with start_driver(program, RunFolder(folder, "replay")) as (driver, hello):
            why = skip_reason(entry, hello)
            if why is not None:
                raise UsageError(f"{program.name}: {why}", code="not_applicable")
            run = await run_client_case(entry, driver, hello)
    for step in run.exchanges:
        echo(Lines(f"# {step.label}\n{step.value}"))
    show_case(program.name, run.result)
    return exit_code_of(run.result.checks)
