"""Runs `memconform conform`."""

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memconform.cli.conform.command import ConformOptions
from memconform.cli.conform.options import CaseRunOptions
from memconform.cli.conform.selection import (
    ChosenCases,
    matches,
    matching_cases,
    sharded_cases,
)
from memconform.cli.events import dispatch
from memconform.cli.html_report import REPORT, write_html_report
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.kept_daemons import KeptDaemon, wait_until_interrupted
from memconform.cli.output_files import inert_target, json_target, text_target
from memconform.cli.sdks import build_sdks
from memconform.cli.values import daemon_variables
from memconform.conformance.case_runner import check_ids
from memconform.conformance.catalog import CaseVariant, catalog
from memconform.conformance.findings import findings, known_list
from memconform.conformance.kept_daemons import KeptDaemons
from memconform.conformance.known_failures import (
    KnownFailure,
    choice_entry,
    load_known,
    require_unexpired,
    stale_causes,
)
from memconform.conformance.names import CASES, ROBUSTNESS
from memconform.conformance.results import ConformReport, SdkResult, verdict
from memconform.conformance.session import REPORT as SUITE_REPORT
from memconform.conformance.session import (
    Target,
    drop_logs,
    run_session,
    tidy,
    write_suite_report,
)
from memconform.conformance.suite import Event, SdkFinished
from memconform.contract.wire import CONTRACT_VERSION
from memconform.daemons.availability import SkippedSdk
from memconform.daemons.discovery import find_runner, working_folder
from memconform.daemons.limits import require_room
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import ExitCode, UsageError, gravest
from memconform.printing.commands import suggested_command
from memconform.printing.errors import render_error
from memconform.printing.escaping import Lines
from memconform.printing.logs import configure_logs
from memconform.printing.output import echo
from memconform.redaction import is_secret
from memconform.reports.conformance import (
    ConformanceConsole,
    conform_banner,
    conform_notes,
    conformance_markdown,
    show_findings,
)
from memconform.storage.folders import RunFolder, new_run_id
from memconform.storage.provenance import Origin
from memconform.storage.sink import replacing

_CONNECTIONS = 32
"""To a daemon at a time, at most: some cases ask many questions at once."""


def run_conform(options: ConformOptions) -> ExitCode:
    """Check the SDKs of a command line against the contract."""
    configure_logs(options.log_level)
    return run_to_end(_conform(options))


async def _conform(options: ConformOptions) -> ExitCode:
    cancel_on_signals()
    if not options.keep:
        return await _check(options, None)
    async with KeptDaemons() as kept:
        code = await _check(options, kept)
        if daemons := kept.daemons():
            named = [KeptDaemon.of(sdk, daemon) for sdk, daemon in daemons]
            await wait_until_interrupted(named, kept.hints())
        else:
            for line in ("no daemon is left to keep", *kept.hints()):
                echo(Lines(line), err=True)
    for problem in kept.problems:
        echo(Lines(problem), err=True)
    return gravest([code, ExitCode.DAEMON]) if kept.problems else code


def _prepare(runners: Sequence[SdkRunner], variables: dict[str, str], folder: Path) -> None:
    for runner in runners:
        runner.use_variables(variables)
        if runner.managed:
            require_room(folder, _CONNECTIONS)


def chosen_cases(options: ConformOptions) -> ChosenCases[CaseVariant]:
    """The cases of a command line.

    Raises:
        MemconformError: for cases that do not exist, or more shards than cases.
    """
    cases = catalog(options.cases)
    selected = select_cases(cases, options.profile, options.case)
    complete = len(selected) == len(cases)
    own, shard = sharded_cases(selected, options.shard)
    label = describe_selection(options.profile, options.case, options.cases, complete=complete)
    return ChosenCases(cases, selected, own, shard, complete and not options.stop_at_first, label)


@dataclass(frozen=True, slots=True)
class CheckedSdks:
    """What a run has found, before it is stored and shown."""

    run: RunFolder
    report: ConformReport
    variables: Mapping[str, str]
    """Those of --env."""
    skipped: Sequence[SkippedSdk]


async def check_sdks(
    options: ConformOptions, chosen: ChosenCases[CaseVariant], kept: KeptDaemons | None = None
) -> CheckedSdks:
    """Build the SDKs of a command line, run the cases on them, and make a report of it.

    Raises:
        MemconformError: if an SDK cannot be built, a list of known failures is invalid, or the
            run's folder cannot be written.
    """
    variables = daemon_variables(options.env)
    present, skipped = await build_sdks(options.sdk, no_skip=options.no_skip, quiet=options.quiet)
    _prepare([runner for runner, _ in present], variables, options.output)
    targets = [target_of(runner.name, reference, variables) for runner, reference in present]
    started = datetime.now(UTC)
    known = known_failures(options.known, targets, chosen.catalog)
    run = RunFolder(
        options.output, new_run_id(started, "-".join(t.name for t in targets), "conform")
    )
    results: dict[str, SdkResult] = {}
    names = [target.name for target in targets]
    console = ConformanceConsole(len(chosen.own), names, quiet=options.quiet)
    if kept is not None:
        kept.at_end(lambda: tidy(run))
    with console:
        events = run_session(
            targets,
            chosen.own,
            known,
            run,
            daemons=options.daemons,
            stop_at_first=options.stop_at_first,
            trace=options.trace,
            keep=kept,
        )

        def collect(event: Event) -> None:
            if isinstance(event, SdkFinished):
                results[event.result.sdk] = event.result

        await dispatch(events, [console.handle, collect])
    complete = chosen.complete and chosen.shard is None
    sdks = [_with_stale(results[target.name], known, complete=complete) for target in targets]
    code = verdict(sdks, (sdk.exit_code for sdk in skipped), chosen.shard)
    builds = {r.name: r.build_hash() for r, _ in present} if chosen.shard is not None else {}
    report = ConformReport(
        run=run.path.name,
        started_at=started,
        finished_at=datetime.now(UTC),
        **dict(Origin.of(sys.argv)),
        contract=CONTRACT_VERSION,
        sdk_references={target.name: target.reference for target in targets},
        exit_code=int(code),
        skipped=[sdk.record() for sdk in skipped],
        variables={r.name: given for r, _ in present if (given := r.variables())},
        unprofiled_not_run=unprofiled_not_run(chosen.catalog, options.profile, options.case),
        sharded=chosen.sharded(known, builds),
        sdks=sdks,
    )
    return CheckedSdks(run, report, variables, skipped)


async def _check(options: ConformOptions, kept: KeptDaemons | None) -> ExitCode:
    chosen = chosen_cases(options)
    checked = await check_sdks(options, chosen, kept)
    run, report, code = checked.run, checked.report, ExitCode(checked.report.exit_code)
    write_reports(options, run, report, chosen.label)
    sdks = report.from_here(run.path).sdks
    if options.html:
        write_html_report([run.path / SUITE_REPORT], run.path / REPORT)
    if code == 0 and kept is None:
        drop_logs(run)
    elif code == 0 and kept is not None:
        kept.at_end(lambda: drop_logs(run))
    # Without --keep, the daemon of the curl commands has been stopped; `replay`, which knows only
    # the shipped cases, starts it again.
    shipped = options.cases == CASES
    replay = replay_command(run, checked.variables) if shipped else ""
    if not options.quiet:
        for sdk in sdks:
            show_findings(sdk, verbose=options.verbose, replay=replay)
    if not options.verbose and any(findings(sdk) for sdk in sdks):
        echo(f"every check: {suggested_command('conform', 'findings', run.path)}", err=True)
    for missing in checked.skipped:
        echo(Lines(f"{missing.sdk} skipped: {render_error(missing.error)}"), err=True)
    for note in conform_notes(report):
        echo(note, err=True)
    for sdk in sdks:
        on_stderr = "-" in (options.json_file, options.junit, options.markdown)
        echo(conform_banner(sdk, chosen.label), err=on_stderr)
    echo(f"-> {run.path}", err=True)
    return code


def replay_command(run: RunFolder, variables: Mapping[str, str]) -> str:
    """The command that repeats a case, without the check; the shell has the secrets."""
    flags = (
        f'--env {name}="${name}"' if is_secret(name) else f"--env {shlex.quote(f'{name}={value}')}"
        for name, value in variables.items()
    )
    return " ".join(["memconform conform replay", *flags, shlex.quote(str(run.path))])


def describe_selection(
    profiles: Sequence[str], globs: Sequence[str], cases: Path, *, complete: bool
) -> str:
    """Describe which cases are run, as `profile core`; empty for all shipped cases."""
    parts = [f"{'profile' if len(profiles) == 1 else 'profiles'} {', '.join(profiles)}"]
    if not profiles or complete:
        parts.clear()
    if globs and not complete:
        parts.append(f"{'case' if len(globs) == 1 else 'cases'} {', '.join(globs)}")
    if cases != CASES:
        parts.append(f"cases of {cases}")
    return ", ".join(parts)


def select_cases(
    cases: Sequence[CaseVariant], profiles: tuple[str, ...], globs: tuple[str, ...]
) -> list[CaseVariant]:
    """Select the cases of some profiles whose ids match; without arguments, all cases.

    Raises:
        NothingSelectedError: if a glob matches no case, or no case is selected.
    """
    entries = [e for e in cases if not profiles or _profile_name(e) in profiles]
    return matching_cases(entries, globs, "memconform conform list")


def unprofiled_not_run(
    cases: Sequence[CaseVariant], profiles: Sequence[str], globs: Sequence[str]
) -> list[str]:
    """Return the cases that belong to no profile and that a choice of profiles leaves out."""
    if not profiles or ROBUSTNESS in profiles:
        return []
    unprofiled = (entry for entry in cases if entry.profile is None)
    if globs:
        unprofiled = (e for e in unprofiled if any(matches(e, glob) for glob in globs))
    return list(dict.fromkeys(entry.base for entry in unprofiled))


def _profile_name(entry: CaseVariant) -> str:
    return entry.profile.value if entry.profile is not None else ROBUSTNESS


def target_of(name: str, reference: str, variables: Mapping[str, str]) -> Target:
    """An SDK to test, with the variables of --env."""
    folder = working_folder()

    def make_runner() -> SdkRunner:
        runner = find_runner(reference, folder)
        runner.use_variables(variables)
        return runner

    return Target(name, reference, make_runner)


def known_failures(
    lists: Iterable[Path], targets: Iterable[Target], cases: Iterable[CaseVariant]
) -> list[KnownFailure]:
    """Load the known failures of --known and of each SDK's own sdk.toml.

    Raises:
        UsageError: if a list cannot be read, an entry has expired, or one matches no check.
    """
    known = [entry for path in lists for entry in load_known(path)]
    for target in targets:
        known += _known_in_manifest(target)
    checks = [check for entry in cases for check in check_ids(entry)]
    require_unexpired(known, checks, datetime.now(UTC).date())
    return known


def _known_in_manifest(target: Target) -> list[KnownFailure]:
    """Load the known failures that the SDK's own sdk.toml names, restricted to that SDK.

    The choices of its dialect are known too.
    """
    runner = target.make_runner()
    choices = [
        choice_entry(choice.cause, choice.reason, target.name)
        for choice in (runner.dialect.choices if runner.dialect is not None else ())
    ]
    path = runner.known_failures
    if path is None:
        return choices
    if not path.is_file():
        raise UsageError(
            f"{path} is missing", code="known_missing", hint="check [known] file in sdk.toml"
        )
    entries = [entry for entry in load_known(path) if entry.sdk in (None, target.name)]
    return [*choices, *(entry.model_copy(update={"sdk": target.name}) for entry in entries)]


def _with_stale(result: SdkResult, known: Sequence[KnownFailure], *, complete: bool) -> SdkResult:
    """Add the known causes that no longer occur."""
    stale = stale_causes(result, known, complete=complete)
    return result.model_copy(update={"stale_known": stale})


def write_reports(
    options: CaseRunOptions, run: RunFolder, report: ConformReport, selection: str
) -> None:
    """Write the run's record first, so that a report that cannot be written does not lose it."""
    write_suite_report(run, report)
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json(report)
    if options.write_known is not None:
        names = len(report.sdks) > 1
        text = known_list(report.sdks, report.started_at.date(), name_sdks=names)
        with replacing(Path(options.write_known).resolve()) as file:
            file.write_text(text)
    report = report.from_here(run.path)
    if options.junit is not None:
        from memconform.reports.junit import write_conformance  # noqa: PLC0415 - it needs xml

        with inert_target(options.junit) as target:
            write_conformance(target, report)
    if options.markdown is not None:
        with text_target(options.markdown) as target:
            target.write_text(conformance_markdown(report, selection))
