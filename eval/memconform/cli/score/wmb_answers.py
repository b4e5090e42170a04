"""What `memconform score` does with answers to WMB-100K."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from memconform.bench.wmb.plan import WmbPlan
from memconform.bench.wmb.records import WmbVerdict
from memconform.bench.wmb.report_builder import WmbFinished
from memconform.bench.wmb.schedule import read_wmb_verdicts, score_wmb
from memconform.bench.wmb.stored_answers import StoredAnswers, read_stored_answers
from memconform.cli.errata import omitted_answers
from memconform.cli.events import dispatch
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.judge_session import judge_spec, show_forecasts
from memconform.cli.output_files import json_target
from memconform.cli.score.command import WmbScoreOptions
from memconform.datasets.sources import find_data
from memconform.datasets.wmb import WmbKey, read_wmb_key
from memconform.datasets.wmb_names import FALSE_MEMORY
from memconform.errors import ExitCode, UsageError
from memconform.llm.cache import ReplyCache
from memconform.llm.names import ModelName
from memconform.llm.prices import Prices
from memconform.llm.session import Model
from memconform.printing.output import echo
from memconform.reports.progress import RecordProgress
from memconform.reports.wmb import score_banner, show_score
from memconform.scoring.judge.forecast import forecast_judging
from memconform.scoring.judge.rubric import Rubric
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.judge.session import judge_names, open_session
from memconform.scoring.judge.wmb import WmbRubric, read_wmb_prompt
from memconform.scoring.wmb import PROFILES, Profile
from memconform.storage.folders import RunFolder, find_journal, new_run_id

QUICK = ("openai:gpt-4o-mini",)
OFFICIAL = (*QUICK, "anthropic:claude-haiku-4-5-20251001", "gemini:gemini-2.0-flash")
"""The judges of the benchmark's two modes, as its score.py names them."""


def run_score(options: WmbScoreOptions) -> ExitCode:
    """Score stored answers, or print what judging them would take."""
    rubric = _rubric(options)
    names = _judges(options)
    key = read_wmb_key(find_data(options.data))
    answers = read_stored_answers(options.answers, key.questions)
    answers.require_answers(key)
    answered = {row.question for row in answers.rows}
    for question in key.questions.values():
        if question.id in answered and question.category != FALSE_MEMORY:
            rubric.require_scorable(question)
    if options.dry_run:
        _show_forecast(options, rubric, names, _plan(options, rubric, names, (key, answers)))
        return ExitCode.OK
    return run_to_end(_score(options, rubric, names, (key, answers)))


async def _score(
    options: WmbScoreOptions,
    rubric: Rubric,
    names: Sequence[ModelName],
    data: tuple[WmbKey, StoredAnswers],
) -> ExitCode:
    cancel_on_signals()
    spec = replace(judge_spec(options), names=tuple(map(str, names)))
    async with open_session(names, spec, options.model_env) as session:
        models = [session.model(name) for name in names]
        plan = _plan(options, rubric, names, data, models)
        if plan.resumed is not None:
            # Before a folder is made: another scoring's journal is a usage error.
            kept = len(read_wmb_verdicts(plan.resumed, plan.settings))
            echo(f"  {kept} verdicts kept of {plan.resumed.parent.name}", err=True)
        folder = RunFolder(options.output, new_run_id(datetime.now(UTC), "score", "wmb"))
        total = len(plan.shown_digests())
        with RecordProgress("judging", total, WmbVerdict, quiet=options.quiet) as console:
            finished = await dispatch(score_wmb(plan, folder), [console.handle])
    if not isinstance(finished, WmbFinished):
        raise TypeError(f"a scoring ended with {finished}")
    report = finished.report
    show_score(report, quiet=options.quiet)
    for line in score_banner(report):
        echo(f"{line} -> {finished.result}", err=options.json_file == "-")
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json(report)
    return ExitCode(report.exit_code)


def _plan(
    options: WmbScoreOptions,
    rubric: Rubric,
    names: Sequence[ModelName],
    data: tuple[WmbKey, StoredAnswers],
    models: Sequence[Model] = (),
) -> WmbPlan:
    spec = judge_spec(options)
    key, answers = data
    profiles: tuple[Profile, ...] = PROFILES if options.profile == "both" else (options.profile,)
    return WmbPlan(
        key=key,
        answers=answers,
        scorer=JudgeScorer(models, repeat=spec.repeat, tie=spec.tie, rubric=rubric),
        prompts=options.prompts,
        label=_label(options, names),
        profiles=profiles,
        errata=omitted_answers(key, options.errata),
        command=tuple(part.encode("utf-8", "replace").decode() for part in sys.argv),
        resumed=find_journal(options.output, options.resume) if options.resume else None,
    )


def _judges(options: WmbScoreOptions) -> list[ModelName]:
    """The judges to ask.

    Raises:
        UsageError: `bad_option` for --official with --judge; as `judge_names`.
    """
    if options.official and options.judge:
        raise UsageError(
            "--official and --judge exclude each other",
            code="bad_option",
            hint="the official panel is fixed; name another one with --judge alone",
        )
    return judge_names(
        options.judge or (OFFICIAL if options.official else QUICK), options.model_env
    )


def _label(options: WmbScoreOptions, names: Sequence[ModelName]) -> str:
    """Who judged: another panel than the benchmark's own is never called by their names."""
    official = "official" if options.prompts == "official" else "official judges, own prompt"
    mode = official if options.official else "other judges" if options.judge else "quick"
    agree = f", {len(names) // 2 + 1} of {len(names)}" if len(names) > 1 else ""
    return f"{mode}: {', '.join(map(str, names))}{agree}"


def _rubric(options: WmbScoreOptions) -> Rubric:
    if (options.prompts == "official") != (options.script is not None):
        raise UsageError(
            "--prompts official requires --script, and --script requires --prompts official",
            code="bad_option",
            hint="give the authors' scripts/score.py as --script",
        )
    return WmbRubric() if options.script is None else read_wmb_prompt(options.script)


def _show_forecast(
    options: WmbScoreOptions, rubric: Rubric, names: Sequence[ModelName], plan: WmbPlan
) -> None:
    spec = judge_spec(options)
    prices = Prices.load(spec.prices)
    rows = forecast_judging(
        names,
        prices,
        plan.texts(set()),
        options.model_env,
        repeat=spec.repeat,
        cache=ReplyCache() if spec.policy.cache != "off" else None,
        role="wmb",
        rubric=rubric,
    )
    show_forecasts(rows, prices.as_of)
