"""What `memconform wmb run` does."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from memconform.bench.events import BenchFinished
from memconform.bench.records import BenchReport
from memconform.bench.schedule import execute_bench
from memconform.bench.system import BASELINES, System
from memconform.bench.wmb.adapter import TemplateSystem, require_adapter
from memconform.bench.wmb.answers_file import ANSWERS, write_answers
from memconform.bench.wmb.records import WmbRun
from memconform.bench.wmb.stored_answers import run_record_of
from memconform.cli.bench.options import BenchOptions
from memconform.cli.bench.plan import plan_bench
from memconform.cli.events import dispatch
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.output_files import json_target
from memconform.cli.sdks import ALL
from memconform.cli.wmb.command import WmbRunOptions
from memconform.datasets.sources import find_data
from memconform.datasets.wmb import read_wmb_key
from memconform.datasets.wmb_names import Part
from memconform.errors import ExitCode, UsageError
from memconform.printing.logs import configure_logs
from memconform.printing.output import echo
from memconform.printing.plurals import plural
from memconform.reports.bench import BenchConsole
from memconform.reports.wmb import run_banner, show_run
from memconform.storage.folders import RunFolder
from memconform.storage.sink import copy_written


def run(options: WmbRunOptions) -> ExitCode:
    """Put the questions to a system, and write its answers.

    Raises:
        MemconformError: if it cannot start.
    """
    configure_logs(options.log_level)
    if sum(given is not None for given in (options.sdk, options.adapter, options.system)) != 1:
        raise UsageError(
            "wmb run measures one system",
            code="no_system",
            hint="give either --sdk, --adapter or --system",
        )
    for flag, given in (("--sdk", options.sdk), ("--system", options.system)):
        if given == ALL:
            raise UsageError(
                f"wmb run measures one system, and {flag} all selects several",
                code="bad_option",
                hint="run it once for each",
            )
    if options.system in BASELINES:
        raise UsageError(
            f"{options.system} is a baseline, which ranks ids and returns no memories",
            code="bad_option",
            hint="give a system behind an adapter, as docs/SYSTEMS.md explains",
        )
    if options.adapter is not None and options.embed_model is not None:
        raise UsageError(
            "--embed-model is for --sdk and --system: an adapter chooses its own model",
            code="bad_option",
            hint="omit it",
        )
    if options.adapter is not None and options.part not in (None, "B"):
        raise UsageError(
            "adapters support Part B only: the benchmark gives them conversations",
            code="bad_option",
            hint="use --part B; Part A is optional, and reported apart",
        )
    if options.adapter is not None and options.index == "isolated":
        raise UsageError(
            "an adapter has a user for each conversation, and so an index for each category",
            code="bad_option",
            hint="omit --index; its figures compare with those of --sdk by --index category",
        )
    return run_to_end(_run(options))


async def _run(options: WmbRunOptions) -> ExitCode:
    cancel_on_signals()
    key = read_wmb_key(find_data(options.data))

    def adapters(folder: Path) -> Sequence[System]:
        if options.adapter is None:
            return ()
        name = options.adapter.stem
        return (TemplateSystem(options.adapter, folder / name, timeout=options.timeout),)

    if options.adapter is not None:
        require_adapter(options.adapter)
    bench = await plan_bench(
        bench_options(options),
        lambda line: echo(f"  {line}", err=True),
        wants_memories=True,
        adapters=adapters,
    )
    if options.resume is not None:
        kept = plural(len(bench.resume_state.queries), "measurement", spec=",")
        echo(f"  {kept} kept from the interrupted run", err=True)
    with BenchConsole(bench.plan, quiet=options.quiet) as console:
        events = execute_bench(bench.plan, bench.folder, bench.resume_state)
        finished = await dispatch(events, [console.handle])
    if not isinstance(finished, BenchFinished):
        raise asyncio.CancelledError
    written = await asyncio.to_thread(
        write_answers,
        bench.folder.path / ANSWERS,
        finished.report,
        finished.result,
        searches=sorted(bench.plan.planner.query_ids),
        questions=list(key.questions),
        parts=_part(options),
        index="category" if options.adapter is not None else options.index or "isolated",
    )
    return _finish(options, bench.folder, written, finished.report)


def _finish(options: WmbRunOptions, folder: RunFolder, run: WmbRun, bench: BenchReport) -> ExitCode:
    answers = folder.path / ANSWERS
    if options.answers is not None:
        copy = Path(options.answers)
        for source, target in ((answers, copy), (run_record_of(answers), run_record_of(copy))):
            copy_written(source, target)
        answers = copy
    show_run(run, bench, quiet=options.quiet)
    echo(f"{run_banner(run)} -> {answers}", err=options.json_file == "-")
    if options.json_file is not None:
        with json_target(options.json_file) as report:
            report.write_json(run)
    return ExitCode(run.exit_code)


def _part(options: WmbRunOptions) -> Part:
    # A domain of Part A is one item, which only a daemon cuts into chunks.
    return options.part or ("both" if options.sdk is not None else "B")


def bench_options(options: WmbRunOptions) -> BenchOptions:
    """The bench that asks these questions; what it does not name is as `bench` has it."""
    return BenchOptions(
        suite="wmb",
        data=options.data,
        part=_part(options),
        sdk=() if options.sdk is None else (options.sdk,),
        system=() if options.system is None else (options.system,),
        embed_model=options.embed_model,
        no_skip=True,
        modes=options.mode,
        ks=str(options.top_k),
        index=options.index if options.adapter is None and options.index else "isolated",
        errata="none",
        limit=options.limit,
        sample=options.sample,
        ids=options.ids,
        category=options.category,
        seed=options.seed,
        shard=options.shard,
        upstream=options.upstream,
        env=options.env,
        timeout=options.timeout,
        resume=options.resume,
        header=options.header,
        output=options.output,
        quiet=options.quiet,
        log_level=options.log_level,
    )
