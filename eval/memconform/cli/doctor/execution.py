"""Runs `memconform doctor`."""

import os
import tempfile
from contextlib import aclosing, suppress
from pathlib import Path

from memconform.cli.doctor.command import DoctorOptions
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.kept_daemons import KeptDaemon, wait_until_interrupted
from memconform.cli.options import subjects
from memconform.cli.sdks import find_runner
from memconform.cli.values import configure_runner, daemon_variables, request_headers
from memconform.contract.wire import Mode
from memconform.daemons.client_program import ClientProgram, find_client
from memconform.daemons.discovery import working_folder
from memconform.daemons.limits import require_room
from memconform.daemons.sdk_runner import Daemon, SdkRunner
from memconform.errors import ExitCode, gravest
from memconform.llm.services import model_checks
from memconform.llm.settings import model_environment
from memconform.printing.console import SafeConsole, styled
from memconform.printing.errors import render_error
from memconform.printing.escaping import indent
from memconform.printing.logs import configure_logs
from memconform.printing.output import echo
from memconform.printing.plurals import plural
from memconform.runs.doctor import Step, examine
from memconform.runs.doctor_places import places
from memconform.runs.machine import Machine, check_machine
from memconform.runs.remedies import Remedy, toml
from memconform.storage.sink import redact_file
from memconform.storage.temporary import remove_folder, temporary_folder


def doctor(options: DoctorOptions) -> ExitCode:
    """Check the machine, or try an SDK; a failed step does not prevent later ones."""
    configure_logs(options.log_level)
    headers = request_headers(options.header)
    return run_to_end(_check(options, headers))


async def _check(options: DoctorOptions, headers: dict[str, str]) -> ExitCode:
    cancel_on_signals()
    named = subjects([] if options.sdk is None else [options.sdk], options.system)
    if not named and not options.models:
        return await _check_machine(options)
    codes = [await _check_models(options)] if options.models else []
    codes += [await _examine(options, reference, headers) for reference in named]
    return gravest(codes)


async def _check_machine(options: DoctorOptions) -> ExitCode:
    env = model_environment(options.judge_header, os.environ)
    failures, warnings = 0, 0
    checks = check_machine(Machine(env=env), working_folder() / "results")
    async with aclosing(checks) as steps:
        async for step in steps:
            _show(step)
            failures += step.error is not None and step.is_needed
            warnings += step.error is not None and not step.is_needed
    also = f", {plural(warnings, 'warning')}" if warnings else ""
    echo(f"this machine: {_verdict(failures)}{also}")
    return ExitCode.USAGE if failures else ExitCode.OK


async def _check_models(options: DoctorOptions) -> ExitCode:
    checks = await model_checks(model_environment(options.judge_header, os.environ))
    for check in checks:
        _show(Step(f"model {check.provider}", check.detail, check.error))
    failures = [check.error for check in checks if check.error is not None]
    echo(f"models: {plural(len(failures), 'service')} failed" if failures else "models: ok")
    return gravest(error.exit_code for error in failures)


async def _examine(options: DoctorOptions, reference: str, headers: dict[str, str]) -> ExitCode:
    client = find_client(reference, working_folder())
    if client is not None and not client.has_daemon:
        return await _examine_client(options, client)
    code = await _examine_daemon(options, reference, headers)
    return code if client is None else gravest([code, await _examine_client(options, client)])


async def _examine_client(options: DoctorOptions, client: ClientProgram) -> ExitCode:
    """Check the driver of a client, step by step."""
    # Most SDKs have none, and it needs the cases.
    from memconform.runs.doctor_client import examine_client  # noqa: PLC0415 - see above

    failures: list[ExitCode] = []
    with temporary_folder("memconform-") as folder:
        steps = examine_client(
            client, folder, lambda line: None if options.quiet else echo(f"  {line}", err=True)
        )
        async with aclosing(steps):
            async for step in steps:
                if step.error is not None or not options.quiet:
                    _show(step)
                if step.error is not None:
                    failures.append(step.error.exit_code)
    echo(f"{client.name}, client: {_verdict(len(failures))}")
    return gravest(failures)


async def _examine_daemon(
    options: DoctorOptions, reference: str, headers: dict[str, str]
) -> ExitCode:
    runner = find_runner(reference, working_folder())
    configure_runner(runner, options.upstream, daemon_variables(options.env))

    async def keep(daemon: Daemon, brain: str) -> None:
        hints = [f"brain {brain} has the documents of these steps"]
        await wait_until_interrupted([KeptDaemon.of(runner.name, daemon)], hints)

    failures: list[ExitCode] = []
    # A step that is tried again with the lines that may help is one step.
    failed_steps: set[str] = set()
    warnings = untested = 0
    helpful: list[Remedy] = []
    folder = tempfile.mkdtemp(prefix="memconform-")
    try:
        if runner.managed:
            require_room(Path(folder), 1)
        examined = examine(
            runner,
            Path(folder),
            headers,
            options.upstream,
            progress=lambda line: None if options.quiet else echo(f"  {line}", err=True),
            before_end=keep if options.keep else None,
        )
        async with aclosing(examined) as steps:
            async for step in steps:
                if step.error is not None or not options.quiet:
                    _show(step, runner)
                helpful += step.remedies
                untested += bool(step.untested)
                if step.error is not None and not step.is_needed:
                    warnings += 1
                elif step.error is not None:
                    failures.append(step.error.exit_code)
                    failed_steps.add(step.name)
    finally:
        if failures:
            _keep_logs(Path(folder))
        else:
            remove_folder(Path(folder))
    if block := toml(helpful):
        where = "the sdk.toml" if runner.managed else "an sdk.toml with [serve] url"
        for line in ("", f"These lines in {where} would help (docs/DIALECTS.md):", ""):
            echo(line)
        for line in (*block.splitlines(), ""):
            echo(line)
    if runner.modes and Mode.AUTO not in (*runner.modes, *runner.optional_modes):
        echo(f"measure with --mode {runner.modes[0].value}: the sdk.toml does not claim auto")
    also = f", {untested} untested" if untested else ""
    decides = ": conform decides" if runner.has_contract else ""
    also += f", {plural(warnings, 'warning')}{decides}" if warnings else ""
    echo(f"{runner.name}: {_verdict(len(failed_steps))}{also}")
    return gravest(failures)


def _keep_logs(folder: Path) -> None:
    """Remove all but the logs, which may be the only place that shows the cause; mask secrets."""
    for log in folder.rglob("daemon.log"):
        redact_file(log)
    for state in [*folder.glob("state"), *folder.glob("*/state")]:
        remove_folder(state)
    for emptied in [*folder.iterdir(), folder]:
        with suppress(OSError):
            emptied.rmdir()


def _show(step: Step, runner: SdkRunner | None = None) -> None:
    failed = ("FAIL", "red") if step.is_needed else ("warn", "yellow")
    passed = ("skip", "yellow") if step.untested else ("ok  ", "green")
    mark = passed if step.error is None else failed
    detail = step.untested or step.detail
    SafeConsole().print(styled([mark, (f" {step.name:<20} {detail}".rstrip(), "")]))
    if step.error is not None:
        echo(indent(render_error(step.error), "     "))
        for place in () if runner is None else places(step.name, step.error.code, runner):
            echo(f"       change: {place}")
    for remedy in step.remedies:
        echo(f"       {remedy.label}: {remedy.line}")


def _verdict(failed: int) -> str:
    return f"{plural(failed, 'step')} failed" if failed else "ok"
