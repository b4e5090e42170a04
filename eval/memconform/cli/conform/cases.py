"""`memconform conform list | explain | lint | replay`."""

import json
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

import click

from memconform.cli.commands import OUTPUT, REFERENCE, Command, option
from memconform.cli.conform.command import cases_folder
from memconform.cli.conform.selection import find_case, show_cases
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.options import case_env, json_file, results
from memconform.cli.values import daemon_variables
from memconform.client.recorder import keep_bodies
from memconform.conformance.applicability import skip_reason
from memconform.conformance.case_files import case_line
from memconform.conformance.case_runner import CaseRun, check_ids, run_case
from memconform.conformance.case_schema import case_schema
from memconform.conformance.catalog import CaseVariant, brain_id, catalog
from memconform.conformance.clients.catalog import client_catalog
from memconform.conformance.coverage import uncovered_rules
from memconform.conformance.explanation import explain_case
from memconform.conformance.findings import SHOWN, causes_of
from memconform.conformance.fixture import Fixture, UntestableError
from memconform.conformance.names import CASES, ROBUSTNESS
from memconform.conformance.results import exit_code_of
from memconform.conformance.session import find_run, read_report, transcript
from memconform.daemons.discovery import find_runner, working_folder
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import ExitCode, UsageError, gravest
from memconform.printing.commands import suggested_command
from memconform.printing.console import SafeConsole
from memconform.printing.escaping import Lines
from memconform.printing.output import echo
from memconform.printing.plurals import plural
from memconform.redaction import redact, redact_bytes
from memconform.reports.conformance import show_case, show_checks
from memconform.storage.body_files import BodyFiles
from memconform.storage.temporary import temporary_folder

_WHICH = "Which checks"
_PAGE = 20
"""Checks of a page: about 150 lines, and a foreign daemon may fail thousands."""


@click.command(
    "list",
    cls=Command,
    examples=("memconform conform list", "memconform conform list --json cases.json"),
)
@json_file
def list_cases(json_file: str | None) -> ExitCode:
    """List all cases with their rules.

    With --json also their titles, tags and checks.
    """
    return show_cases([(entry, _facts(entry)) for entry in catalog()], json_file)


def _facts(entry: CaseVariant) -> dict[str, object]:
    case = entry.case
    return {
        "title": case.title,
        "level": case.level,
        "profile": entry.profile.value if entry.profile else ROBUSTNESS,
        "rules": case.rules,
        "modes": [mode.value for mode in case.modes],
        "tags": case.tags,
        "file": entry.file,
        "checks": check_ids(entry),
    }


@click.command("explain", cls=Command, examples=("memconform conform explain doc-rename",))
@click.argument("case")
def explain(case: str) -> ExitCode:
    """Explain a case: its file and line, its rules, what it sends, what passes and what fails.

    CASE is the id of a case, or of one of its checks.
    """
    entry = find_case(case, catalog(), _LISTING)
    location = f"{relative_path(CASES / entry.file)}:{case_line(entry.file, entry.base, CASES)}"
    echo(Lines(explain_case(entry, location)))
    return ExitCode.OK


_LISTING = "memconform conform list"


def relative_path(path: Path) -> Path:
    """Shorten a path below the working directory, so that an editor can open it from there."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


@click.command(
    "lint",
    cls=Command,
    examples=("memconform conform lint", "memconform conform lint --cases cases"),
    exit_codes={
        ExitCode.FAILED: "a rule of the contract has no case",
        ExitCode.USAGE: "usage, or an invalid case file",
    },
)
@cases_folder
@option(
    "--schema",
    group=OUTPUT,
    is_flag=True,
    help="Print the JSON Schema of a case file and exit.",
)
def lint(cases: Path, *, schema: bool) -> ExitCode:
    """Check the case files themselves, and that every rule has a case.

    Checks the YAML, the schema, variables and matchers, up to the first invalid case. Prints each
    rule without a case; rules are counted for the shipped cases only.
    """
    if schema:
        echo(Lines(json.dumps(case_schema(), indent=2)))
        return ExitCode.OK
    entries = catalog(cases)
    uncited = uncovered_rules([*entries, *client_catalog()]) if cases == CASES else []
    for rule in uncited:
        echo(f"{rule}: no case cites it")
    count = plural(len({entry.base for entry in entries}), "case")
    rules = plural(len(uncited), "rule")
    echo(f"{count} in {plural(len(entries), 'variant', spec=',')}, {rules} without a case")
    return ExitCode.FAILED if uncited else ExitCode.OK


@click.command(
    "replay",
    cls=Command,
    examples=("memconform conform replay results/runs/RUN doc-rename#moved",),
    exit_codes={
        ExitCode.FAILED: "a check failed",
        ExitCode.DAEMON: "a daemon did not start, or the case could not be tested",
    },
)
@click.argument("run", type=REFERENCE)
@click.argument("check")
@case_env
@results
def replay(run: str, check: str, env: tuple[str, ...], output: Path) -> ExitCode:
    """Repeat the case of a check against its SDK.

    RUN is the id of a conform run, or its folder. CHECK is `sdk:case#slot`, or `case#slot` for all
    SDKs of the run. Every request and response is shown; give the --env of the run again.
    """
    variables = daemon_variables(env)
    folder = find_run(output, run)
    report = read_report(folder)
    sdk, colon, name = check.partition(":")
    if not colon:
        sdk, name = "", check
    entry = find_case(name, catalog(), _LISTING)
    references = [ref for known, ref in report.sdk_references.items() if sdk in ("", known)]
    if not references:
        raise UsageError(
            f"run {report.run} has no results of {sdk}",
            code="no_such_sdk",
            hint=f"it has results of {', '.join(report.sdk_references)}",
        )
    # The folder of the run stays what the run made it.
    bodies = Path(tempfile.mkdtemp(prefix="memconform-replay-"))
    try:
        with keep_bodies(BodyFiles(bodies).keep_from_here):
            return run_to_end(_replay(entry, references, variables))
    finally:
        with suppress(OSError):
            bodies.rmdir()  # Unless commands that were shown read files in it.


@click.command(
    "findings",
    cls=Command,
    examples=(
        "memconform conform findings results/runs/RUN",
        "memconform conform findings RUN --cause '*: missing key *'",
        "memconform conform findings RUN --rule 'documents.*' --page 2",
    ),
    exit_codes={ExitCode.NOTHING_SELECTED: "no check matches"},
)
@click.argument("run", type=REFERENCE)
@option(
    "--cause",
    group=_WHICH,
    multiple=True,
    metavar="GLOB",
    help="Show only checks with a cause that matches GLOB. May be given several times.",
)
@option(
    "--rule",
    group=_WHICH,
    multiple=True,
    metavar="GLOB",
    help="Show only checks of a rule that matches GLOB. May be given several times.",
)
@option(
    "--case",
    group=_WHICH,
    multiple=True,
    metavar="GLOB",
    help="Show only checks whose case, variant or id matches GLOB. May be given several times.",
)
@option(
    "--show",
    "limit",
    group=OUTPUT,
    aliases=("--limit",),
    type=click.IntRange(min=1),
    default=_PAGE,
    show_default=True,
    metavar="N",
    help="Show N checks.",
)
@option(
    "--page",
    group=OUTPUT,
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Show the Nth page of --show checks.",
)
@option("--all", "whole", group=OUTPUT, is_flag=True, help="Show all of them.")
@results
def show_findings_of(
    *,
    run: str,
    cause: tuple[str, ...],
    rule: tuple[str, ...],
    case: tuple[str, ...],
    limit: int,
    page: int,
    whole: bool,
    output: Path,
) -> ExitCode:
    """Show the checks that did not pass in a run, page by page, or those of some causes.

    RUN is the id of a conform run, or its folder. Each check is shown with its rule, what was
    expected and what came. Commands work in the current folder; in the run's conform.json, in the
    run's folder.
    """
    folder = find_run(output, run)
    report = read_report(folder)
    found = [
        (sdk, check)
        for sdk in report.sdks
        for sdk_case in sdk.cases
        for check in sdk_case.checks
        if check.result in SHOWN
        and (not cause or _any_matches(cause, [own.cause for own in causes_of(check)]))
        and (not rule or _any_matches(rule, check.rules))
        and (not case or _any_matches(case, [sdk_case.case, _base(check.id), check.id]))
    ]
    first = 0 if whole else (page - 1) * limit
    last = len(found) if whole else min(first + limit, len(found))
    for sdk in report.sdks:
        replay = suggested_command("conform", "replay", folder)
        if report.suite == "client":
            reference = report.sdk_references[sdk.sdk]
            replay = suggested_command("client", "replay", "--sdk", reference)
        checks = [check for owner, check in found[first:last] if owner is sdk]
        # The findings are what was asked for, so that `| less` and `> file` take them.
        show_checks(SafeConsole(), sdk, checks, replay=replay)
    if not found and (cause or rule or case):
        echo("no check that did not pass matches", err=True)
        return ExitCode.NOTHING_SELECTED
    echo(_extent(len(found), 1 if whole else -(-len(found) // limit), page), err=True)
    return ExitCode.OK


def _extent(total: int, pages: int, page: int) -> str:
    """Format how many checks there are, and how to see those that are not on this page."""
    line = f"{plural(total, 'check', spec=',')} did not pass"
    if pages <= 1 and page == 1:
        return line
    place = f"{line}; page {page} of {pages}"
    return f"{place}; --page {page + 1} shows the next, --all shows all" if page < pages else place


def _base(check: str) -> str:
    """The case of a check without its variant."""
    return check.partition("#")[0].partition("[")[0]


def _any_matches(globs: tuple[str, ...], values: Iterable[str]) -> bool:
    return any(fnmatchcase(value, glob.replace("[", "[[]")) for value in values for glob in globs)


async def _replay(entry: CaseVariant, references: list[str], variables: dict[str, str]) -> ExitCode:
    cancel_on_signals()
    codes: list[ExitCode] = []
    for reference in references:
        runner = find_runner(reference, working_folder())
        runner.use_variables(variables)
        reason = skip_reason(entry, runner)
        if reason is not None:
            raise UsageError(f"{runner.name}: {reason}", code="not_applicable", hint="see sdk.toml")
        await runner.build(lambda line: echo(f"  {line}", err=True))
        case_run = await _run_once(entry, runner)
        for exchange in case_run.exchanges:
            text = redact_bytes(transcript(exchange)).decode("utf-8", "backslashreplace")
            echo(Lines(text))
        show_case(runner.name, case_run.result)
        codes.append(exit_code_of(case_run.result.checks))
    return gravest(codes)


async def _run_once(entry: CaseVariant, runner: SdkRunner) -> CaseRun:
    with temporary_folder("memconform-") as folder:
        async with Fixture(runner, entry.case.daemon, folder, f"replay-{runner.name}") as fixture:
            try:
                await fixture.prepare()
            except UntestableError as error:
                raise UsageError(redact(str(error)), code="untestable") from error
            return await run_case(entry, fixture, brain_id(entry))
