"""Runs `memconform fuzz`."""

import asyncio
import secrets
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

from memconform.cli.fuzz.command import FuzzOptions
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.kept_daemons import KeptDaemon, wait_until_interrupted
from memconform.cli.output_files import json_target
from memconform.cli.sdks import build_sdks
from memconform.cli.values import daemon_variables
from memconform.client.recorder import keep_bodies
from memconform.contract.wire import CONTRACT_VERSION
from memconform.daemons.availability import SkippedSdk
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import DaemonError, ExitCode, UsageError, gravest
from memconform.fuzzing import session
from memconform.fuzzing.case_file import case_file, curl_lines
from memconform.fuzzing.configuration_probe import probe
from memconform.fuzzing.corpus import Corpus
from memconform.fuzzing.counterexample_search import Disagreement
from memconform.fuzzing.failures import BrainLostError, FuzzTarget
from memconform.fuzzing.judges import Judge, OracleJudge, PeerJudge
from memconform.fuzzing.results import FoundDisagreement, FuzzReport
from memconform.printing.errors import render_error
from memconform.printing.escaping import Lines
from memconform.printing.logs import configure_logs
from memconform.printing.output import echo
from memconform.reports.fuzzing import (
    fuzz_banner,
    show_disagreements,
    show_resets,
)
from memconform.reports.progress import StepProgress
from memconform.storage.body_files import BodyFiles
from memconform.storage.provenance import Origin
from memconform.storage.sink import replacing
from memconform.storage.temporary import temporary_folder


def fuzz(options: FuzzOptions) -> ExitCode:
    """Send random requests to the SDKs of a command line."""
    configure_logs(options.log_level)
    return run_to_end(_fuzz_and_keep(options))


async def _fuzz_and_keep(options: FuzzOptions) -> ExitCode:
    """Search for a disagreement; with --keep, the daemons end on a signal only."""
    cancel_on_signals()
    async with AsyncExitStack() as stack:
        code, targets = await _fuzz(options, stack)
        if options.keep:
            await wait_until_interrupted([_kept(sdk, target) for sdk, target in targets.items()])
    return code


def _kept(sdk: str, target: FuzzTarget) -> KeptDaemon:
    async def wait_exit() -> str:
        while not (status := target.exit_status()):  # noqa: ASYNC110 - it is told to no event
            await asyncio.sleep(0.5)
        return status

    return KeptDaemon(sdk, target.address, wait_exit)


async def _fuzz(
    options: FuzzOptions, stack: AsyncExitStack
) -> tuple[ExitCode, Mapping[str, FuzzTarget]]:
    """Search for a disagreement; return also the daemons, which run until `stack` is left."""
    variables = daemon_variables(options.env)
    present, skipped = await build_sdks(options.sdk, no_skip=options.no_skip, quiet=options.quiet)
    runners = [runner for runner, _ in present]
    for runner in runners:
        runner.use_variables(variables)
    if len(runners) < 2 and options.against is None:
        raise UsageError(
            "fuzz compares daemons with each other and needs at least two SDKs",
            code="one_sdk",
            hint="give --sdk twice, or all; or add --against oracle",
        )
    corpus = None if options.corpus is None else Corpus(options.corpus)
    started, clock = datetime.now(UTC), time.perf_counter()
    seed = options.seed if options.seed is not None else secrets.randbelow(2**32)
    profiles = set.intersection(*(set(runner.profiles) for runner in runners))
    stop = threading.Event()
    folder = stack.enter_context(temporary_folder("memconform-"))
    most = None if options.seconds else options.most_examples
    with StepProgress("programs", most, quiet=options.quiet) as console:
        targets = await stack.enter_async_context(session.serve_sdks(runners, folder))
        judge = await asyncio.to_thread(_judge, options, runners, targets)
        search = asyncio.create_task(
            asyncio.to_thread(
                session.find_disagreement,
                targets,
                profiles,
                examples=options.most_examples,
                seed_value=seed,
                tried=console.advance,
                stop=stop,
                judge=judge,
                seconds=options.seconds,
                keep_going=options.keep_going,
                corpus=corpus,
            )
        )
        try:
            outcome = await asyncio.shield(search)
        except BrainLostError as error:
            raise _daemon_error(error, seed) from error
        finally:
            stop.set()
            await asyncio.gather(search, return_exceptions=True)
    found, bodies = outcome.disagreements, BodyFiles(options.output)
    records = [await asyncio.to_thread(_write_case, options.output, bodies, item) for item in found]
    code = ExitCode.FAILED if found or outcome.resets else ExitCode.OK
    code = gravest([code, *(sdk.exit_code for sdk in skipped)])
    report = FuzzReport(
        sdks=[runner.name for runner in runners],
        started_at=started,
        **dict(Origin.of(sys.argv)),
        contract=CONTRACT_VERSION,
        seed=seed,
        examples=outcome.examples,
        requests=outcome.requests,
        took_s=round(time.perf_counter() - clock, 3),
        against="oracle" if options.against is not None else None,
        ignored=list(options.ignore),
        disagreement=next(iter(records), None),
        disagreements=records,
        corpus_added=0 if corpus is None else corpus.added,
        connection_resets=outcome.resets,
        exit_code=int(code),
    )
    _show(options, report, skipped)
    return code, targets


def _judge(
    options: FuzzOptions, runners: Sequence[SdkRunner], targets: Mapping[str, FuzzTarget]
) -> Judge:
    if options.against is None:
        return PeerJudge(options.ignore)
    providers = {runner.name: probe(runner, targets[runner.name]) for runner in runners}
    return OracleJudge(providers, options.ignore)


def _daemon_error(error: BrainLostError, seed: int) -> DaemonError:
    """The error of a search that cannot go on, by what happened to the daemon."""
    again = f"--seed {seed} sends the same requests"
    if error.kind == "process ended":
        return DaemonError(str(error), code="daemon_died", hint=f"see its log; {again}")
    if error.kind == "connection reset":
        return DaemonError(
            str(error),
            code="connection_reset",
            hint=f"look for a handler that ends without a response; {again}",
        )
    hint = f"check it with memconform doctor; {again}"
    return DaemonError(str(error), code="daemon_lost", hint=hint)


def _write_case(folder: Path, bodies: BodyFiles, found: Disagreement) -> FoundDisagreement:
    """Write a disagreement as a case file, and return its record."""
    case, text = case_file(found)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{case}.yaml"
    with replacing(file) as target:
        target.write_text(text)
    with keep_bodies(bodies.keep_from_here):
        curl = curl_lines(found.program)
    return FoundDisagreement(
        file=str(file),
        case=case,
        rule=found.difference.rule,
        pointer=found.difference.pointer,
        values=found.difference.values,
        requests=len(found.program.calls),
        found_after=found.found_after,
        compared=list(found.answers),
        curl=curl,
        steady=found.steady,
    )


def _show(options: FuzzOptions, report: FuzzReport, skipped: Sequence[SkippedSdk]) -> None:
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json(report)
    for sdk in skipped:
        echo(Lines(f"{sdk.sdk} skipped: {render_error(sdk.error)}"), err=True)
    show_disagreements(report, options.sdk)
    show_resets(report)
    echo(fuzz_banner(report), err=options.json_file == "-")
