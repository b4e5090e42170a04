"""`memconform mutate`."""

import sys
import time
import zlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

import click

from memconform.cli.commands import DAEMONS, Command, PathType, option
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.options import json_file, log_level, quiet, schema
from memconform.cli.output_files import json_target
from memconform.conformance.catalog import catalog
from memconform.conformance.clients.broken_clients import broken_clients, score_clients
from memconform.conformance.clients.catalog import client_catalog
from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.mutation.mutant_runner import mutant_of
from memconform.conformance.mutation.mutant_table import check_mutants, mutants, mutants_of_table
from memconform.conformance.mutation.mutation import Mutation
from memconform.conformance.mutation.results import (
    FalseAlarm,
    Fate,
    MutantResult,
    MutationReport,
    by_profile,
    mutation_exit_code,
)
from memconform.conformance.mutation.score import (
    Event,
    MutantFinished,
    ScoringFinished,
    applicable_cases,
    is_applicable,
    score,
)
from memconform.conformance.names import ROBUSTNESS
from memconform.contract.wire import CONTRACT_VERSION, Profile
from memconform.daemons.client_program import ClientProgram
from memconform.daemons.discovery import find_runner, working_folder
from memconform.errors import ExitCode, NothingSelectedError, nearest
from memconform.printing.escaping import Lines
from memconform.printing.logs import configure_logs
from memconform.printing.output import echo
from memconform.reports.mutation import (
    MutationConsole,
    mutation_banner,
    mutation_table,
    show_survivors,
)
from memconform.storage.provenance import Origin
from memconform.storage.temporary import temporary_folder


@dataclass(frozen=True, slots=True)
class MutateOptions:
    """Flags of `mutate`, under their own names."""

    sdk: tuple[str, ...]
    profile: tuple[str, ...]
    mutant: tuple[str, ...]
    sample: int | None
    checks: bool
    clients: bool
    table: Path | None
    json_file: str | None
    daemons: int
    list_only: bool
    quiet: bool
    log_level: str


_MUTANTS = "Which mutants"


@click.command(
    "mutate",
    cls=Command,
    examples=(
        "memconform mutate",
        "memconform mutate --profile core --sample 20",
        "memconform mutate --sdk mine --list",
    ),
    exit_codes={
        ExitCode.OK: "every mutant of a MUST is killed, and the unmodified daemon passes",
        ExitCode.FAILED: "a mutant of a MUST survived, or the unmodified daemon failed a check",
        ExitCode.DAEMON: "a daemon did not start, or a mutant could not be tested",
        ExitCode.NOTHING_SELECTED: "no mutant selected",
    },
)
@option(
    "--sdk",
    group=DAEMONS,
    aliases=("--against",),
    multiple=True,
    default=("py",),
    metavar="SDK",
    help="SDK to break, one that passes `conform`: a known name, a path to an sdk.toml, or"
    " url:http://…. A mutant of the source applies to the SDKs that it has a patch for.",
)
@option(
    "--profile",
    group=_MUTANTS,
    multiple=True,
    type=click.Choice([*(p.value for p in Profile), ROBUSTNESS]),
    help=f"Test only mutants of this profile; {ROBUSTNESS} covers those that belong to none. May be"
    " given several times.",
)
@option(
    "--mutant",
    group=_MUTANTS,
    multiple=True,
    metavar="GLOB",
    help="Test only mutants whose id matches. May be given several times.",
)
@option(
    "--sample",
    group=_MUTANTS,
    type=click.IntRange(min=1),
    metavar="N",
    help="Test N of the selected mutants, the same ones each time.",
)
@option(
    "--checks",
    group=_MUTANTS,
    is_flag=True,
    help="Test the mutants that one particular check must detect; they are not part of the score.",
)
@option(
    "--clients",
    group=_MUTANTS,
    is_flag=True,
    help="Break the client of sdks/py instead of a daemon, and test which of them the cases of"
    " `memconform client` detect.",
)
@option(
    "--table",
    group=_MUTANTS,
    type=PathType(exists=True),
    metavar="PATH",
    help="Test the mutants of this file, or of all *.yaml of this folder, instead of the table"
    " that ships.",
)
@option(
    "--list",
    "list_only",
    group=_MUTANTS,
    is_flag=True,
    help="List the selected mutants and exit.",
)
@option(
    "-j",
    "daemons",
    group="Limits",
    type=click.IntRange(1, 64),
    default=8,
    metavar="N",
    help="Number of daemons to run at once.",
)
@json_file
@schema("conformance.mutation.results:MutationReport")
@quiet
@log_level
def command(**flags: object) -> ExitCode:
    """Break a correct daemon, one thing at a time, and measure which defects the cases detect."""
    options = MutateOptions(**flags)  # type: ignore[arg-type] # click has validated every flag
    if len(options.sdk) > 1:
        raise click.UsageError("--sdk takes one daemon here, not several")
    if options.clients and options.sdk != ("py",):
        raise click.UsageError("--clients breaks the client of sdks/py; omit --sdk")
    if options.list_only and options.json_file is not None:
        raise click.UsageError("--list and --json exclude each other")
    configure_logs(options.log_level)
    return run_to_end(_mutate(options))


async def _mutate(options: MutateOptions) -> ExitCode:
    cancel_on_signals()
    if options.clients:
        return await _mutate_clients(options)
    folder = working_folder()
    runner = find_runner(options.sdk[0], folder)
    mutant_of(runner, Mutation())
    selected = select_mutants(_candidates(options), options)
    entries = applicable_cases(catalog(), runner)
    applicable = [mutant for mutant in selected if is_applicable(mutant, runner, entries)]
    inapplicable = len(selected) - len(applicable)
    if options.sample is not None:
        applicable = sample_mutants(applicable, options.sample)
    if not applicable:
        raise NothingSelectedError(
            f"none of the selected mutants applies to {runner.name}", code="nothing_selected"
        )
    if options.list_only:
        return _list(applicable)
    await runner.build(lambda line: None if options.quiet else echo(f"  {line}", err=True))
    with temporary_folder("memconform-") as state:
        events = score(
            lambda: find_runner(options.sdk[0], folder),
            applicable,
            entries,
            folder=state,
            daemons=options.daemons,
        )
        report = await _report(
            options, runner.name, applicable, len(entries), events, inapplicable=inapplicable
        )
    return _show(options, report)


async def _mutate_clients(options: MutateOptions) -> ExitCode:
    """Break the Python client, and run the cases of clients."""
    selected = select_mutants(broken_clients(), options)
    if options.sample is not None:
        selected = sample_mutants(selected, options.sample)
    if options.list_only:
        return _list(selected)
    program = ClientProgram("py", working_folder())
    await program.build(lambda line: None if options.quiet else echo(f"  {line}", err=True))
    entries = client_catalog()
    with temporary_folder("memconform-") as state:
        events = score_clients(
            program, selected, entries, folder=state, jobs=min(options.daemons, _MOST_DRIVERS)
        )
        report = await _report(options, program.name, selected, len(entries), events)
    return _show(options, report)


_MOST_DRIVERS = 4
"""More at a time would make this machine keep no pause of a case."""


def _list(selected: Sequence[Mutant]) -> ExitCode:
    for mutant in selected:
        echo(f"{mutant.id:<48} {mutant.rule:<28} {mutant.breaks}")
    return ExitCode.OK


def _show(options: MutateOptions, report: MutationReport) -> ExitCode:
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json(report)
    show_survivors(report)
    if not options.quiet:
        echo(Lines(mutation_table(report.by_profile)), err=options.json_file == "-")
    echo(mutation_banner(report), err=True)
    return ExitCode(report.exit_code)


def _candidates(options: MutateOptions) -> tuple[Mutant, ...]:
    if options.table is not None:
        return mutants_of_table(options.table, for_checks=options.checks)
    return check_mutants() if options.checks else mutants()


async def _report(
    options: MutateOptions,
    name: str,
    selected: Sequence[Mutant],
    cases: int,
    events: AsyncGenerator[Event, None],
    *,
    inapplicable: int = 0,
) -> MutationReport:
    """Show the events of a score as they come, and make a report of them."""
    started, clock = datetime.now(UTC), time.perf_counter()
    alarms: tuple[FalseAlarm, ...] = ()
    tried = 0
    results: dict[str, MutantResult] = {}
    with MutationConsole(len(selected), quiet=options.quiet) as console:
        async with aclosing(events):
            async for event in events:
                console.handle(event)
                match event:
                    case ScoringFinished():
                        alarms, tried = event.alarms, event.cases
                    case MutantFinished(result=result):
                        results[result.id] = result
    ordered = [results[mutant.id] for mutant in selected]
    killed = sum(result.fate is Fate.KILLED for result in ordered)
    return MutationReport(
        sdk=name,
        started_at=started,
        **dict(Origin.of(sys.argv)),
        contract=CONTRACT_VERSION,
        took_s=round(time.perf_counter() - clock, 3),
        cases=cases,
        cases_tried=tried,
        left_out=inapplicable,
        killed=killed,
        total=len(ordered),
        survivors=[result.id for result in ordered if result.fate is not Fate.KILLED],
        false_alarms=list(alarms),
        by_profile=by_profile(ordered),
        mutants=ordered,
        exit_code=int(mutation_exit_code(ordered, alarms)),
    )


def select_mutants(candidates: Sequence[Mutant], options: MutateOptions) -> list[Mutant]:
    """Select the mutants of the requested profiles whose ids match.

    Raises:
        NothingSelectedError: if a glob matches no mutant, or no mutant is selected.
    """
    selected = [m for m in candidates if not options.profile or m.profile_name in options.profile]
    for glob in options.mutant:
        if not any(_matches(mutant, glob) for mutant in selected):
            raise NothingSelectedError(
                f"--mutant {glob}: no mutant matches",
                code="no_such_mutant",
                hint=nearest(glob, [m.id for m in selected]) or "see memconform mutate --list",
            )
    if options.mutant:
        selected = [m for m in selected if any(_matches(m, glob) for glob in options.mutant)]
    if not selected:
        raise NothingSelectedError("no mutant is selected", code="nothing_selected")
    return selected


def sample_mutants(candidates: Sequence[Mutant], size: int) -> list[Mutant]:
    """Sample by hashes of names, so that an added mutant does not change the whole sample."""
    sample = sorted(candidates, key=lambda mutant: zlib.crc32(mutant.id.encode()))[:size]
    return [mutant for mutant in candidates if mutant in sample]


def _matches(mutant: Mutant, glob: str) -> bool:
    return fnmatchcase(mutant.id, glob.replace("[", "[[]"))
