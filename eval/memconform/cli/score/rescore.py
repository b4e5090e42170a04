"""What `memconform score` does with a run."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.judge_session import show_forecast
from memconform.cli.output_files import json_target
from memconform.cli.score.command import RescoreOptions
from memconform.cli.scorers import open_scorer, require_answers, scorer_name
from memconform.datasets.reasoning_blocks import strip_reasoning
from memconform.errors import ExitCode
from memconform.measuring.scenarios import SCENARIOS
from memconform.printing.output import echo
from memconform.reports.console import ConsoleReport
from memconform.reports.machine import write_run_report
from memconform.reports.progress import StepProgress
from memconform.reports.rates import banner
from memconform.reports.run_judges import reasoning_notice
from memconform.runs.events import RunFinished
from memconform.runs.journal import Header
from memconform.runs.plan import read_floors
from memconform.runs.rescore import rescore, stored_answers, stored_floors
from memconform.storage.folders import find_journal
from memconform.storage.journal import read_header


def run(options: RescoreOptions) -> ExitCode:
    """Score the answers of a run again, or print what that would cost."""
    journal = find_journal(options.output, options.result)
    header = read_header(journal, Header)
    options = _with_own_judges(options, header)
    answers = SCENARIOS[header.settings.scenario].text_kind == "answer"
    name = scorer_name(options.scorer, options, answers=answers)
    require_answers(name, answers=answers)
    if options.dry_run:
        if name == "judge":
            stored = stored_answers(journal, options.data)
            if options.strip_reasoning and answers:
                stored = ((question, strip_reasoning(text)) for question, text in stored)
            show_forecast(options, stored, exact=True)
        else:
            echo(f"the {name} scorer calls no model; nothing was asked")
        return ExitCode.OK
    if answers:
        _show_reasoning(options, journal)
    settings = header.settings
    answers_total = settings.questions * settings.repeat
    with StepProgress("scoring", answers_total, quiet=options.quiet) as step:
        end = run_to_end(_rescore(options, journal, name, step.advance))
    ConsoleReport([end.summary.sdk], quiet=options.quiet).handle(end)
    echo(f"{banner(end.summary)} -> {end.copy}", err=options.json_file == "-")
    code = ExitCode(end.summary.exit_code)
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            write_run_report(target, [end.result], code)
    return code


async def _rescore(
    options: RescoreOptions, journal: Path, name: str, progress: Callable[[], None]
) -> RunFinished:
    cancel_on_signals()
    floors = read_floors(options.floor) if options.floor else stored_floors(journal)
    async with open_scorer(name, options, floors, options.output) as scorer:
        return await rescore(
            journal,
            output=options.output,
            dataset=options.data,
            scorer=scorer.scorer,
            judge=scorer.judge,
            calibrations=scorer.calibrations,
            floors=floors,
            command=sys.argv,
            strip_reasoning=options.strip_reasoning,
            progress=progress,
        )


def _show_reasoning(options: RescoreOptions, journal: Path) -> None:
    """Say how many answers have blocks of reasoning."""
    answers = stored_answers(journal, options.data)
    count = sum(strip_reasoning(text) != text for _, text in answers)
    if count:
        echo(reasoning_notice(count, stripped=options.strip_reasoning), err=True)


def _with_own_judges(options: RescoreOptions, header: Header) -> RescoreOptions:
    """The options, with the run's own scorer and judges unless others are named."""
    if options.scorer is None and not options.judge:
        options = replace(options, scorer=header.settings.scorer)
    judge = header.settings.judge
    if options.scorer != "exact" and not options.judge and judge is not None:
        options = replace(
            options,
            judge=tuple(model.model for model in judge.models),
            judge_repeat=options.judge_repeat or judge.repeat,
            tie=options.tie or judge.tie,
        )
    return options
