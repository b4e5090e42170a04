"""What `memconform datasets expand` does."""

import asyncio
from pathlib import Path

from memconform.cli.datasets.expand import ExpandOptions
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.judge_session import call_policy, show_forecasts
from memconform.cli.output_files import json_target
from memconform.contract.wire import JsonValue
from memconform.datasets.benchmarks import Benchmark, open_benchmark
from memconform.errors import ExitCode, UsageError
from memconform.llm.budget import read_budget
from memconform.llm.cache import ReplyCache, cache_key
from memconform.llm.names import ModelName
from memconform.llm.prices import Prices
from memconform.llm.settings import address
from memconform.longmemeval.generation import Calls, file_rows, format_options, generate
from memconform.longmemeval.prompts import parse_expansion
from memconform.longmemeval.records import ExpansionReport
from memconform.printing.output import echo
from memconform.printing.plurals import plural
from memconform.reports.progress import StepProgress
from memconform.scoring.judge.forecast import Forecast
from memconform.scoring.judge.session import JudgeSpec, open_session
from memconform.storage.sink import replacing

_SHOWN = 5
"""Failures that are printed; the report has all."""


def expand(options: ExpandOptions) -> ExitCode:
    """Generate a file, or print what that would cost.

    Raises:
        UsageError: for a model, a benchmark or flags that cannot be used.
        HaltingError: if no further call makes sense; replies so far are in the cache.
    """
    name = ModelName.parse(options.model, options.model_env)
    if name.provider == "fake":
        raise UsageError(
            "--model fake only quotes sentences; it cannot generate keys, events or ranges",
            code="bad_option",
            hint="name a model, such as ollama:llama3.1:8b for one on this machine",
        )
    if not options.cache:
        raise UsageError(
            "with --no-cache, a retry after a failure would pay for every call again",
            code="cache_flags",
            hint="omit it: equal calls are made once, and a failed one is not cached",
        )
    calls = Calls(_benchmark(options), options.kind)
    if options.dry_run:
        _forecast(options, calls, name)
        return ExitCode.OK
    return run_to_end(_expand(options, calls, name))


def _benchmark(options: ExpandOptions) -> Benchmark:
    detected = open_benchmark(options.path, options.name, {})
    chosen = format_options(options.kind, dict(detected.format.options))
    return open_benchmark(options.path, detected.format.name, chosen)


def _forecast(options: ExpandOptions, calls: Calls, name: ModelName) -> None:
    prices, cache = Prices.load(options.prices), ReplyCache()
    traits, where = prices.traits(name), address(name, options.model_env)
    row = Forecast(options.kind, str(name))
    for call in calls:
        entry = cache.read(cache_key(name, where, traits, call.request, 0))
        row.add(call.request, traits, cached=entry is not None and _is_valid(options, entry.text))
    show_forecasts([row], prices.as_of)


def _is_valid(options: ExpandOptions, text: str) -> bool:
    try:
        parse_expansion(options.kind, text)
    except ValueError:
        return False
    return True


async def _expand(options: ExpandOptions, calls: Calls, name: ModelName) -> ExitCode:
    cancel_on_signals()
    spec = JudgeSpec(
        budget_usd=read_budget(options.max_cost_usd, options.model_env),
        prices=options.prices,
        policy=call_policy(options),
    )
    async with open_session([name], spec, options.model_env) as session:
        model = session.model(name)
        with StepProgress("generating", quiet=options.quiet) as step:
            expansion = await generate(calls, model, options.llm_concurrency, step.advance)
    report = expansion.report(calls, model)
    rows = file_rows(calls, expansion.values)
    await asyncio.to_thread(_write, Path(options.output), rows or expansion.values, report)
    _show(report, options)
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json(report, indent=2)
    return ExitCode.DAEMON if report.failures else ExitCode.OK


def _write(
    path: Path,
    content: list[dict[str, JsonValue]] | dict[str, JsonValue],
    report: ExpansionReport,
) -> None:
    """Write the report first: no file is without one."""
    with replacing(path.with_name(f"{path.name}.report.json")) as target:
        target.write_json(report)
    with replacing(path) as target:
        if isinstance(content, dict):
            target.write_json(dict(sorted(content.items())), indent=0)
            return
        target.write_text("[\n")
        for number, row in enumerate(content, start=1):
            target.write_json(row, indent=None, end=",\n" if number < len(content) else "\n")
        target.write_text("]\n")


def _show(report: ExpansionReport, options: ExpandOptions) -> None:
    err = options.json_file == "-"
    echo(
        f"{plural(report.names, 'entry', spec=',')} of {report.kind} by {report.model}:"
        f" {report.empty:,} empty, {len(report.failures):,} failed (null);"
        f" {report.cached:,} cached, ${report.cost_usd:.4f} -> {options.output}",
        err=err,
    )
    for failure in report.failures[:_SHOWN]:
        echo(f"  {failure.name}: {failure.code}: {failure.message}", err=True)
