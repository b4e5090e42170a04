"""What `memconform score` does with answers to LongMemEval or LoCoMo, and `judge metrics`."""

import sys
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from memconform.bench.qa.authors_log import log_rows, official_figures
from memconform.bench.qa.plan import AnswerSelection, Prompts, QaPlan, RubricRun, key_file
from memconform.bench.qa.records import Judgement, QaMetrics
from memconform.bench.qa.report_builder import QaFinished, log_model
from memconform.bench.qa.schedule import read_judgements, score_answers
from memconform.bench.qa.scores import views
from memconform.cli.errata import disputed_answers
from memconform.cli.events import dispatch
from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.judge.command import MetricsOptions
from memconform.cli.judge_session import judge_spec, show_forecasts
from memconform.cli.output_files import json_target, text_target
from memconform.cli.score.command import RUBRICS, QaOptions
from memconform.cli.values import comma_separated
from memconform.datasets.answer_keys import read_answer_key
from memconform.datasets.hypotheses import read_hypotheses, read_label_log
from memconform.datasets.locomo_answers import read_locomo_answers
from memconform.datasets.selection import expect_known
from memconform.datasets.sources import find_data
from memconform.errors import ExitCode, UsageError
from memconform.llm.cache import ReplyCache
from memconform.llm.names import ModelName
from memconform.llm.prices import Prices
from memconform.llm.records import ModelSettings
from memconform.llm.settings import address
from memconform.printing.output import echo
from memconform.reports.progress import RecordProgress
from memconform.reports.qa import (
    error_lines,
    metrics_lines,
    qa_banner,
    show_missing,
    show_qa,
    suspicions,
)
from memconform.scoring.accuracy import qa_scores
from memconform.scoring.judge.forecast import forecast_judging
from memconform.scoring.judge.gate import calibrations
from memconform.scoring.judge.official_prompts import read_official_prompts
from memconform.scoring.judge.records import JudgeSettings
from memconform.scoring.judge.rubric import STRICT, Rubric
from memconform.scoring.judge.rubrics import OWN_RUBRICS
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.judge.session import JudgeSpec, judge_names, open_session
from memconform.storage.folders import RunFolder, find_journal, new_run_id
from memconform.storage.sink import replacing

LOG = "eval-results.jsonl"
"""The official log in the folder of a scoring."""


def run_scoring(options: QaOptions) -> ExitCode:
    """Score stored answers, or print what judging them would take."""
    rubrics = _rubrics(options)
    key = read_answer_key(find_data(options.data), options.suite)
    hypotheses = (
        read_locomo_answers(options.answers, key, options.prediction)
        if options.suite == "locomo"
        else read_hypotheses(options.answers)
    )
    selection = AnswerSelection(
        key=key,
        hypotheses=hypotheses.without_reasoning() if options.strip_reasoning else hypotheses,
        partial=options.partial,
        disputed=disputed_answers(key, options.errata),
    )
    selection.require_answers()
    for rubric in rubrics.values():
        for question in selection.answered:
            rubric.require_scorable(question)
    if options.dry_run:
        _show_forecast(options, rubrics, selection)
        return ExitCode.OK
    return run_to_end(_score(options, rubrics, selection))


async def _score(
    options: QaOptions, rubrics: Mapping[str, Rubric], selection: AnswerSelection
) -> ExitCode:
    cancel_on_signals()
    spec = judge_spec(options)
    names = judge_names(spec.names, options.model_env) if rubrics else []
    async with open_session(names, spec, options.model_env) as session:
        models = [session.model(name) for name in names]
        runs = {
            name: _rubric_run(
                JudgeScorer(models, repeat=spec.repeat, tie=spec.tie, rubric=rubric),
                rubric,
                options.prompts if name == "longmemeval" else "own",
                options.output,
            )
            for name, rubric in rubrics.items()
        }
        plan = QaPlan(
            selection=selection,
            rubrics=runs,
            command=tuple(part.encode("utf-8", "replace").decode() for part in sys.argv),
            resumed=find_journal(options.output, options.resume) if options.resume else None,
        )
        if plan.resumed is not None:
            # Before a folder is made: another scoring's journal is a usage error.
            kept = len(read_judgements(plan.resumed, plan.settings))
            echo(f"  {kept} judgements kept of {plan.resumed.parent.name}", err=True)
        run_id = new_run_id(datetime.now(UTC), "judge", options.suite)
        folder = RunFolder(options.output, run_id)
        total = len(selection.answered) * len(runs)
        with RecordProgress("judging", total, Judgement, quiet=options.quiet) as console:
            finished = await dispatch(score_answers(plan, folder), [console.handle])
    if not isinstance(finished, QaFinished):
        raise TypeError(f"a scoring ended with {finished}")
    _write_log(options, folder, finished, selection, runs)
    report = finished.report
    show_qa(report, quiet=options.quiet)
    for line in qa_banner(report):
        echo(f"{line} -> {finished.result}", err="-" in (options.json_file, options.log))
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json(report)
    return ExitCode(report.exit_code)


def run_metrics(options: MetricsOptions) -> ExitCode:
    """Print the scores of an official log."""
    key = read_answer_key(find_data(options.data), "longmemeval")
    log = read_label_log(options.log)
    expect_known(
        log.labels,
        key.questions,
        f"{options.log} has a question that {key.path} does not have:",
        "give the file that the log was made with",
    )
    disputed = disputed_answers(key, options.errata)
    missing = [name for name in key.questions if name not in log.labels]
    expected = [q for q in key.questions.values() if not options.partial or q.id in log.labels]
    metrics = QaMetrics(
        log=str(options.log.resolve()),
        models=log.models,
        data=key_file(key, disputed),
        missing=missing,
        views={
            view: qa_scores(questions, log.labels, categories=key.categories)
            for view, questions in views(expected, disputed).items()
        },
        official=official_figures(log.labels, key.questions, log.models),
    )
    for line in metrics_lines(metrics):
        echo(line, err=options.json_file == "-")
    show_missing(metrics)
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json(metrics)
    return ExitCode.DAEMON if missing and not options.partial else ExitCode.OK


def _rubrics(options: QaOptions) -> dict[str, Rubric]:
    """The rubrics to apply, by name, in the order in which they are named.

    Raises:
        UsageError: `unknown_rubric`, `bad_option`, and as `read_official_prompts`.
    """
    default = "longmemeval" if options.suite == "longmemeval" else "strict" if options.judge else ""
    names = comma_separated((options.rubric,)) if options.rubric is not None else (default,)
    names = tuple(name.strip() for name in names if name.strip())
    if not names and (options.rubric is not None or options.suite == "longmemeval"):
        raise UsageError(
            "--rubric names no rubric", code="unknown_rubric", hint=f"use {', '.join(RUBRICS)}"
        )
    expect_known(
        names, RUBRICS, "there is no rubric", f"use {', '.join(RUBRICS)}", code="unknown_rubric"
    )
    if "longmemeval" not in names and (options.log is not None or options.prompts == "official"):
        raise UsageError(
            "--log and --prompts official are those of the longmemeval rubric",
            code="bad_option",
            hint="add it: --rubric longmemeval,…",
        )
    if (options.prompts == "official") != (options.script is not None):
        raise UsageError(
            "--prompts official requires --script, and --script requires --prompts official",
            code="bad_option",
            hint="give the authors' src/evaluation/evaluate_qa.py as --script",
        )
    own = dict(OWN_RUBRICS)
    if options.script is not None:
        own["longmemeval"] = read_official_prompts(options.script)
    return {name: own[name] for name in names}


def _rubric_run(scorer: JudgeScorer, rubric: Rubric, prompts: Prompts, output: Path) -> RubricRun:
    known = calibrations(scorer.settings, output) if rubric is STRICT else None
    return RubricRun(scorer, prompts, known)


def _show_forecast(
    options: QaOptions, rubrics: Mapping[str, Rubric], selection: AnswerSelection
) -> None:
    answer_file = selection.answer_file()
    for line in (
        *error_lines(answer_file),
        *suspicions(answer_file, stripped=options.strip_reasoning),
    ):
        echo(line, err=True)
    if not rubrics:
        echo("no judge is named: nothing would be asked")
        return
    spec: JudgeSpec = judge_spec(options)
    names = judge_names(spec.names, options.model_env)
    prices = Prices.load(spec.prices)
    cache = ReplyCache() if spec.policy.cache != "off" else None
    answers = [(q, selection.hypotheses.answers[q.id]) for q in selection.answered]
    kept = _kept(options, rubrics, selection, names, prices)
    rows = [
        row
        for name, rubric in rubrics.items()
        for row in forecast_judging(
            names,
            prices,
            [answer for answer in answers if (name, answer[0].id) not in kept],
            options.model_env,
            repeat=spec.repeat,
            cache=cache,
            role=name,
            rubric=rubric,
        )
    ]
    show_forecasts(rows, prices.as_of)


def _kept(
    options: QaOptions,
    rubrics: Mapping[str, Rubric],
    selection: AnswerSelection,
    names: Sequence[ModelName],
    prices: Prices,
) -> Collection[tuple[str, str]]:
    """What an earlier scoring has judged: rubrics and questions.

    No model is opened, which would take its key.
    """
    if options.resume is None:
        return ()
    spec = judge_spec(options)
    models = [
        ModelSettings.of(name, prices.traits(name), address(name, options.model_env))
        for name in names
    ]
    settings = selection.settings(
        {
            name: JudgeSettings(
                models=models, prompt=rubric.digest(), repeat=spec.repeat, tie=spec.tie
            )
            for name, rubric in rubrics.items()
        }
    )
    return read_judgements(find_journal(options.output, options.resume), settings).keys()


def _write_log(
    options: QaOptions,
    folder: RunFolder,
    finished: QaFinished,
    selection: AnswerSelection,
    runs: Mapping[str, RubricRun],
) -> None:
    """Write the official log to the run's folder, and to --log."""
    if options.suite != "longmemeval" or "longmemeval" not in runs:
        return
    judgements = finished.judgements["longmemeval"]
    model = log_model(runs["longmemeval"])
    rows = list(log_rows(judgements, selection.hypotheses.answers, model))
    with replacing(folder.path / LOG) as sink:
        for row in rows:
            sink.write_json(row, indent=None)
    if options.log is not None:
        with text_target(options.log) as sink:
            for row in rows:
                sink.write_json(row, indent=None)
