"""What `memconform judge calibrate` and `compare` do."""

from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.judge.command import CalibrateOptions, CompareOptions
from memconform.cli.judge_session import call_policy, show_forecasts
from memconform.cli.output_files import json_target
from memconform.datasets.registry import judge_calibration
from memconform.errors import ExitCode
from memconform.llm.budget import read_budget
from memconform.llm.cache import ReplyCache
from memconform.llm.prices import Prices
from memconform.printing.output import echo
from memconform.reports.judges import (
    calibration_banner,
    comparison_banner,
    show_calibration,
    show_comparison,
)
from memconform.reports.progress import StepProgress
from memconform.results.judge_comparison import compare_judgements
from memconform.results.loaded_runs import load_runs
from memconform.scoring.judge.calibration import Calibration, make_folder, save_calibration
from memconform.scoring.judge.calibration_set import calibrate, read_items, repeated_items
from memconform.scoring.judge.forecast import forecast_judging
from memconform.scoring.judge.session import JudgeSpec, judge_names, open_session


def run_calibration(options: CalibrateOptions) -> ExitCode:
    """Calibrate a judge, keep its error rates, and say whether it may decide over a floor."""
    spec = JudgeSpec(
        names=() if options.judge is None else (options.judge,),
        budget_usd=read_budget(options.max_cost_usd, options.model_env),
        prices=options.prices,
        policy=call_policy(options),
    )
    items, sha256 = read_items(options.items or judge_calibration())
    names = judge_names(spec.names, options.model_env)
    if options.dry_run:
        prices = Prices.load(spec.prices)
        cache = ReplyCache() if spec.policy.cache != "off" else None
        answers = [(item.as_question(), item.candidate) for item in items]
        rows = forecast_judging(names, prices, answers, options.model_env, cache=cache)
        sample = [(item.as_question(), item.candidate) for item in repeated_items(items)]
        rows += forecast_judging(
            names,
            prices,
            sample,
            options.model_env,
            cache=cache,
            role="judge again",
            first=1,
        )
        show_forecasts(rows, prices.as_of)
        return ExitCode.OK

    make_folder(options.output)

    async def measure() -> Calibration:
        cancel_on_signals()
        total = len(items) + len(repeated_items(items))
        async with open_session(names, spec, options.model_env) as session:
            with StepProgress("judging", total, quiet=options.quiet) as step:
                model = session.model(names[0])
                return await calibrate(model, items, sha256, progress=step.advance)

    calibration = run_to_end(measure())
    if not options.quiet:
        show_calibration(calibration)
    file = save_calibration(calibration, options.output)
    echo(f"{calibration_banner(calibration)} -> {file}", err=options.json_file == "-")
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json(calibration)
    if calibration.failed:
        return ExitCode.DAEMON
    return ExitCode.FAILED if calibration.weak_groups else ExitCode.OK


def run_comparison(options: CompareOptions) -> ExitCode:
    """Compare two judgements of the same answers."""
    first, second = load_runs((options.first, options.second), options.output)
    comparison = compare_judgements(first, second)
    if not options.quiet:
        show_comparison(comparison)
    echo(comparison_banner(comparison), err=options.json_file == "-")
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json(comparison)
    return ExitCode.OK if comparison.compared else ExitCode.NOTHING_SELECTED
