"""Runs `memconform load`."""

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

from memconform.cli.events import dispatch
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.load.command import DEFAULT_RATE, LoadOptions
from memconform.cli.output_files import json_target
from memconform.cli.sdks import ALL, OF_ONE_SDK, build_sdks
from memconform.cli.values import configure_runner, daemon_variables, request_headers
from memconform.client.timings import Timeouts
from memconform.contract.wire import Mode, Profile
from memconform.daemons.availability import SkippedSdk
from memconform.daemons.sdk_runner import SdkRunner
from memconform.datasets.registry import corpus_of, open_dataset
from memconform.datasets.selection import Selection, select
from memconform.errors import ExitCode, UsageError, gravest
from memconform.ingest.documents import CorpusFolder, ReferenceAnswers
from memconform.load.events import LoadFinished
from memconform.load.plan import LoadPlan, Step
from memconform.load.records import Operation
from memconform.load.schedule import execute_load
from memconform.printing.errors import render_error
from memconform.printing.escaping import Lines
from memconform.printing.logs import configure_logs
from memconform.printing.output import echo
from memconform.reports.load import LoadConsole, load_banner, show_load
from memconform.storage.folders import RunFolder, new_run_id


def load(options: LoadOptions) -> ExitCode:
    """Load the SDKs of a command line.

    Raises:
        MemconformError: if none can be loaded.
    """
    configure_logs(options.log_level)
    return run_to_end(_load(options))


async def _load(options: LoadOptions) -> ExitCode:
    cancel_on_signals()
    plan = plan_load(options)
    present, skipped = await build_sdks(options.sdk, no_skip=options.no_skip, quiet=options.quiet)
    runners, unclaimed = _configured(options, plan, [runner for runner, _ in present])
    skipped += unclaimed
    of = runners[0].name if len(runners) == 1 else f"{len(runners)}-sdks"
    folder = RunFolder(plan.output, new_run_id(datetime.now(UTC), of, "load"))
    records = [sdk.record() for sdk in skipped]
    with LoadConsole(plan, [runner.name for runner in runners], quiet=options.quiet) as console:
        last = await dispatch(execute_load(plan, runners, folder, records), [console.handle])
    if not isinstance(last, LoadFinished):
        raise asyncio.CancelledError
    code = gravest([ExitCode(last.report.exit_code), *(sdk.exit_code for sdk in skipped)])
    for sdk in skipped:
        echo(Lines(f"{sdk.sdk} skipped: {render_error(sdk.error)}"), err=True)
    if not options.quiet:
        show_load(last.report)
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json(last.report)
    echo(f"{load_banner(last.report)} -> {last.result}", err=options.json_file == "-")
    return code


def plan_load(options: LoadOptions) -> LoadPlan:
    """Plan what each SDK gets.

    Raises:
        UsageError: if the dataset or the corpus cannot be used.
        NothingSelectedError: if the dataset has no question.
    """
    dataset = open_dataset(options.dataset)
    selected = select(dataset, Selection((), (), options.limit, None))
    folder = options.corpus or corpus_of(dataset)
    rates = options.rate or (() if options.closed else (DEFAULT_RATE,))
    return LoadPlan(
        steps=(
            *(Step(rate=rate) for rate in rates),
            *(Step(workers=workers) for workers in options.closed),
        ),
        duration_s=options.duration,
        seed=options.seed,
        mix={cast("Operation", name): share for name, share in options.mix},
        questions=tuple(selected),
        dataset=dataset.name,
        dataset_sha256=dataset.sha256,
        corpus=ReferenceAnswers(dataset) if folder is None else CorpusFolder(folder),
        mode=Mode(options.mode),
        top_k=options.top_k,
        slow_readers=options.slow_readers,
        in_flight_limit=options.max_in_flight,
        lateness_limit_ms=options.max_lateness,
        timeouts=Timeouts(
            total=options.timeout, first=options.timeout, gap=options.timeout, connect=5.0
        ),
        upstream=options.upstream,
        headers=request_headers(options.header),
        output=options.output,
        most_p99_ms=options.max_p99,
        command=tuple(part.encode("utf-8", "replace").decode() for part in sys.argv),
    )


def _configured(
    options: LoadOptions, plan: LoadPlan, runners: Sequence[SdkRunner]
) -> tuple[list[SdkRunner], list[SkippedSdk]]:
    """Configure the SDKs; of `--sdk all`, those that claim too little are skipped.

    Raises:
        UsageError: if an SDK that was named, or each of them, claims too little.
    """
    variables = daemon_variables(options.env)
    usable: list[SdkRunner] = []
    skipped: list[SkippedSdk] = []
    for runner in runners:
        try:
            configure_runner(runner, options.upstream, variables)
            _require_claims(runner, plan)
        except UsageError as error:
            if ALL not in options.sdk or options.no_skip or error.code not in OF_ONE_SDK:
                raise
            skipped.append(SkippedSdk(runner.name, error))
            continue
        usable.append(runner)
    if not usable:
        raise skipped[0].error
    return usable, skipped


def _require_claims(runner: SdkRunner, plan: LoadPlan) -> None:
    """Raise UsageError unless an SDK claims what the plan asks of it."""
    runner.require_claimed(plan.mode)
    runner.use_modes([plan.mode])
    if ("ask" in plan.mix or plan.slow_readers) and Profile.ASK not in runner.profiles:
        raise UsageError(
            f"{runner.name} does not claim the profile ask, which the load needs",
            code="profile_not_claimed",
            hint="leave ask out of --mix, and --slow-readers",
        )
