"""Runs `memconform client`."""

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import UTC, datetime

from memconform.cli.client.command import ClientOptions
from memconform.cli.conform.execution import write_reports
from memconform.cli.conform.selection import ChosenCases, matching_cases, sharded_cases
from memconform.cli.events import dispatch
from memconform.cli.html_report import REPORT, write_html_report
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.sdks import ALL, every_sdk, require_distinct_names
from memconform.conformance.clients.catalog import ClientVariant, client_catalog
from memconform.conformance.clients.driver import Driver, Hello, running_driver
from memconform.conformance.clients.suite import conform_client
from memconform.conformance.findings import findings
from memconform.conformance.known_failures import (
    KnownFailure,
    load_known,
    require_unexpired,
    stale_causes,
)
from memconform.conformance.results import (
    FAILING,
    RED,
    ConformReport,
    SdkResult,
    has_result,
    verdict,
)
from memconform.conformance.session import REPORT as SUITE_REPORT
from memconform.conformance.session import drop_logs, save_wire
from memconform.conformance.suite import CaseFinished, Event, SdkFinished
from memconform.contract.wire import CONTRACT_VERSION
from memconform.daemons.availability import SkippedSdk
from memconform.daemons.client_program import ClientProgram
from memconform.daemons.discovery import working_folder
from memconform.errors import DaemonError, ExitCode, NothingSelectedError, UsageError
from memconform.printing.commands import suggested_command
from memconform.printing.errors import render_error
from memconform.printing.escaping import Lines
from memconform.printing.logs import configure_logs
from memconform.printing.output import echo
from memconform.reports.conformance import ConformanceConsole, conform_banner, show_findings
from memconform.storage.body_files import BodyFiles
from memconform.storage.folders import RunFolder, new_run_id
from memconform.storage.provenance import Origin


def run_client(options: ClientOptions) -> ExitCode:
    """Check the clients of a command line against the contract."""
    configure_logs(options.log_level)
    return run_to_end(_check(options))


def _chosen(options: ClientOptions) -> ChosenCases[ClientVariant]:
    """The cases of a command line.

    Raises:
        MemconformError: for cases that do not exist, or more shards than cases.
    """
    cases = client_catalog()
    selected = matching_cases(cases, options.case, "memconform client list")
    own, shard = sharded_cases(selected, options.shard)
    complete = len(selected) == len(cases)
    label = "" if complete else f"cases {', '.join(options.case)}"
    return ChosenCases(cases, selected, own, shard, complete and not options.stop_at_first, label)


async def build_clients(
    references: Sequence[str], *, quiet: bool
) -> tuple[list[ClientProgram], list[SkippedSdk]]:
    """Build the clients of `--sdk`; those of `all` that cannot run here are skipped.

    Raises:
        MemconformError: if a client that was named cannot run here, or none can.
    """
    folder = working_folder()
    is_named = ALL not in references
    programs, skipped = [], []
    for reference in references if is_named else every_sdk(list(references), folder):
        try:
            program = ClientProgram(reference, folder)
            await program.build(lambda line: None if quiet else echo(f"  {line}", err=True))
            programs.append(program)
        except (UsageError, DaemonError) as error:
            if is_named or error.code != "no_client":
                skipped.append(SkippedSdk(reference, error, is_named=is_named))
    if is_named and skipped:
        raise skipped[0].error
    require_distinct_names(programs)
    if not programs:
        raise NothingSelectedError(
            "no known SDK has a client", code="nothing_selected", hint="see sdks/DRIVER.md"
        )
    return programs, skipped


def start_driver(
    program: ClientProgram, run: RunFolder
) -> AbstractAsyncContextManager[tuple[Driver, Hello]]:
    """Start a driver of a client, whose log is in the run's folder."""
    logs = run.path / "drivers"
    logs.mkdir(parents=True, exist_ok=True)
    # Several drivers run at once, and an excerpt must be of one.
    log = logs / f"{program.name}-{len(list(logs.iterdir()))}.log"
    log.touch()
    return running_driver(
        program.name,
        program.argv(),
        env=program.environment(),
        cwd=program.folder,
        log=log,
    )


async def _check(options: ClientOptions) -> ExitCode:
    cancel_on_signals()
    chosen = _chosen(options)
    programs, skipped = await build_clients(options.sdk, quiet=options.quiet)
    started = datetime.now(UTC)
    known = _known(options, programs)
    names = [program.name for program in programs]
    run = RunFolder(options.output, new_run_id(started, "-".join(names), "client"))
    results: dict[str, SdkResult] = {}

    def collect(event: Event) -> None:
        if isinstance(event, SdkFinished):
            results[event.result.sdk] = event.result

    console = ConformanceConsole(len(chosen.own), names, quiet=options.quiet)
    with console:
        await dispatch(_run(options, chosen, programs, known, run), [console.handle, collect])
    complete = chosen.complete and chosen.shard is None
    sdks = []
    for name in names:
        stale = stale_causes(results[name], known, complete=complete)
        sdks.append(results[name].model_copy(update={"stale_known": stale}))
    code = verdict(sdks, (sdk.exit_code for sdk in skipped), chosen.shard)
    report = ConformReport(
        run=run.path.name,
        suite="client",
        started_at=started,
        finished_at=datetime.now(UTC),
        **dict(Origin.of(sys.argv)),
        contract=CONTRACT_VERSION,
        sdk_references={program.name: program.reference for program in programs},
        exit_code=int(code),
        skipped=[sdk.record() for sdk in skipped],
        sharded=chosen.sharded(known, {p.name: p.build_hash() for p in programs}),
        sdks=sdks,
    )
    write_reports(options, run, report, chosen.label)
    if options.html:
        write_html_report([run.path / SUITE_REPORT], run.path / REPORT)
    if code == 0:
        drop_logs(run)
    _show(options, chosen, report, run)
    for missing in skipped:
        echo(Lines(f"{missing.sdk} skipped: {render_error(missing.error)}"), err=True)
    echo(f"-> {run.path}", err=True)
    return code


async def _run(
    options: ClientOptions,
    chosen: ChosenCases[ClientVariant],
    programs: Sequence[ClientProgram],
    known: Sequence[KnownFailure],
    run: RunFolder,
) -> AsyncGenerator[Event, None]:
    """Check one client after the other, because their timing is part of what is checked."""
    bodies = BodyFiles(run.path)
    for program in programs:
        events = conform_client(
            program.name,
            lambda program=program: start_driver(program, run),  # type: ignore[misc]
            chosen.own,
            known=known,
            drivers=options.drivers,
            stop=lambda case: options.stop_at_first and has_result(case, FAILING),
        )
        async with aclosing(events):
            async for event in events:
                if isinstance(event, CaseFinished) and (
                    options.trace or event.run.result.result in RED
                ):
                    save_wire(run.path, event.sdk, event.run, bodies)
                yield event


def _known(options: ClientOptions, programs: Sequence[ClientProgram]) -> list[KnownFailure]:
    """The known failures of --known and of each client's own list.

    Raises:
        UsageError: if a list cannot be read, an entry has expired, or one matches no check.
    """
    known = [entry for path in options.known for entry in load_known(path)]
    for program in programs:
        own = load_known(program.known) if program.known is not None else []
        known += [entry.model_copy(update={"sdk": program.name}) for entry in own]
    checks = [check for entry in client_catalog() for check in entry.check_ids()]
    require_unexpired(known, checks, datetime.now(UTC).date())
    return known


def _show(
    options: ClientOptions,
    chosen: ChosenCases[ClientVariant],
    report: ConformReport,
    run: RunFolder,
) -> None:
    for sdk in report.sdks:
        reference = report.sdk_references[sdk.sdk]
        replay = suggested_command("client", "replay", "--sdk", reference)
        if not options.quiet:
            show_findings(sdk, verbose=options.verbose, replay=replay)
    if not options.verbose and any(findings(sdk) for sdk in report.sdks):
        echo(f"every check: {suggested_command('conform', 'findings', run.path)}", err=True)
    for sdk in report.sdks:
        on_stderr = "-" in (options.json_file, options.junit, options.markdown)
        echo(conform_banner(sdk, chosen.label), err=on_stderr)
