"""`memconform client list | explain | replay`."""

import click

from memconform.cli.client.execution import build_clients, start_driver
from memconform.cli.commands import DAEMONS, REFERENCE, Command, option
from memconform.cli.conform.cases import relative_path
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.options import json_file
from memconform.cli.output_files import json_target
from memconform.conformance.case_files import case_line
from memconform.conformance.clients.case_runner import run_client_case, skip_reason
from memconform.conformance.clients.catalog import CASES, PREFIX, ClientVariant, client_catalog
from memconform.conformance.clients.explanation import explain_client_case
from memconform.conformance.results import exit_code_of
from memconform.errors import ExitCode, UsageError, nearest
from memconform.printing.escaping import Lines
from memconform.printing.output import echo
from memconform.printing.plurals import plural
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
    entries = client_catalog()
    if json_file is not None:
        with json_target(json_file) as target:
            target.write_json({"cases": [_case_info(entry) for entry in entries]})
        return ExitCode.OK
    for entry in entries:
        echo(f"{entry.id:<58} {entry.case.level:<7} {', '.join(entry.case.rules)}")
    cases = len({entry.base for entry in entries})
    checks = sum(len(entry.check_ids()) for entry in entries)
    variants = f"{plural(cases, 'case')} in {plural(len(entries), 'variant', spec=',')}"
    echo(f"{variants}, {plural(checks, 'check', spec=',')}", err=True)
    return ExitCode.OK


def _case_info(entry: ClientVariant) -> dict[str, object]:
    return {
        "id": entry.id,
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
    for entry in _find(case):
        line = case_line(entry.file, entry.base, CASES)
        echo(Lines(explain_client_case(entry, f"{relative_path(CASES / entry.file)}:{line}")))
    return ExitCode.OK


def _find(name: str) -> list[ClientVariant]:
    """Find a case by its id, by that of a variant, or by that of a check as findings show it."""
    sdk, colon, rest = name.partition(":")
    case_id = (rest if colon and not sdk.startswith(PREFIX) else name).partition("#")[0]
    exact = [entry for entry in client_catalog() if entry.id == case_id]
    matches = exact or [entry for entry in client_catalog() if entry.base == case_id][:1]
    if not matches:
        raise UsageError(
            f"case {case_id!r} does not exist",
            code="no_such_case",
            hint=nearest(case_id, {e.base for e in client_catalog()}) or "memconform client list",
        )
    return matches


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
    [entry] = _find(case)
    return run_to_end(_replay(entry, sdk))


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
