"""Commands of the last version whose flags their successors do not take as they were."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from memconform.cli import options as given
from memconform.cli.commands import OUTPUT, REFERENCE, SCORING, Command, PathType, option
from memconform.cli.diff import command as diff
from memconform.cli.judge_options import WHAT, call_options, errata, panel_options
from memconform.cli.judge_options import partial as answers_partial
from memconform.cli.lazy import carry_out
from memconform.cli.options import (
    json_file,
    markdown,
    output,
    quiet,
    schema,
    strip_reasoning,
    writable_exports,
)
from memconform.cli.options import results as results_folder
from memconform.cli.report.command import ExportOptions
from memconform.cli.score import command as score
from memconform.errors import ExitCode


@click.command("report export", cls=Command)
@click.argument("results", type=REFERENCE, nargs=-1, required=True, metavar="RESULT...")
@option(
    "--export",
    group=OUTPUT,
    multiple=True,
    required=True,
    metavar="[FORMAT=]FILE",
    callback=writable_exports,
    help="FILE.csv or FILE.jsonl: every query; `longmemeval=FILE`: a retrieval log of one row. May"
    " be given several times.",
)
@option(
    "--data",
    group=OUTPUT,
    type=PathType(),
    metavar="FILE",
    show_default="where it was when it was measured",
    help="For a retrieval log: the benchmark's file.",
)
@results_folder
def export_command(
    results: tuple[str, ...], export: tuple[str, ...], data: Path | None, output: Path
) -> ExitCode:
    """Write the queries of stored bench results to files."""
    options = ExportOptions(results, export, data, output)
    return carry_out("export:export", options)


_HYPOTHESES = option(
    "--hypotheses",
    "answers",
    group=WHAT,
    type=PathType(),
    metavar="FILE",
    required=True,
    help='Stored answers, {"question_id": …, "hypothesis": …} a line.',
)
_BENCHMARK = given.data(
    WHAT, "The questions: the benchmark's file, or the name of a fetched source.", required=True
)


@click.command("judge longmemeval", cls=Command)
@_HYPOTHESES
@_BENCHMARK
@strip_reasoning(WHAT)
@answers_partial
@errata
@score.rubric
@score.prompts
@score.script
@score.resume
@panel_options
@call_options
@output
@score.log
@json_file
@schema("bench.qa.records:QaReport")
@quiet
def longmemeval_command(**flags: object) -> ExitCode:
    """Score stored answers to LongMemEval by its rubric for each type of question."""
    options = score.QaOptions(suite="longmemeval", **flags)  # type: ignore[arg-type] # click has checked every flag
    return carry_out("score.benchmark_answers:run_scoring", options)


@click.command("judge locomo", cls=Command)
@_HYPOTHESES
@_BENCHMARK
@score.prediction
@strip_reasoning(WHAT)
@answers_partial
@errata
@score.rubric
@score.resume
@panel_options
@call_options
@output
@json_file
@schema("bench.qa.records:QaReport")
@quiet
def locomo_command(**flags: object) -> ExitCode:
    """Score stored answers to LoCoMo by its official F1, BLEU-1, and judges if any are named."""
    options = score.QaOptions(suite="locomo", **flags)  # type: ignore[arg-type] # click has checked every flag
    return carry_out("score.benchmark_answers:run_scoring", options, extra="qa")


@click.command("wmb score", cls=Command)
@click.argument("answers", type=PathType())
@given.data(
    WHAT,
    "The folder that holds datasets/ and documents/, or the name of the fetched source.",
    metavar="DIR|NAME",
    default="wmb100k",
)
@score.profile
@errata
@score.official
@partial(panel_options, judge="gpt-4o-mini")
@score.prompts
@score.script
@score.resume
@call_options
@output
@json_file
@schema("bench.wmb.records:WmbScore")
@quiet
def wmb_score_command(**flags: object) -> ExitCode:
    """Score the answers of `wmb run`, or anybody's in the benchmark's format."""
    options = score.WmbScoreOptions(**flags)  # type: ignore[arg-type] # click has checked every flag
    return carry_out("score.wmb_answers:run_score", options)


@click.command("trend", cls=Command)
@click.argument(
    "folder",
    type=PathType(exists=True, file_okay=False),
    default="results",
)
@diff.sdk
@diff.dataset
def trend_command(folder: Path, sdk: tuple[str, ...], dataset: tuple[str, ...]) -> ExitCode:
    """Show how results changed over dates and versions."""
    options = diff.TrendOptions((str(folder),), sdk, dataset, Path("results"))
    return carry_out("diff.trend:run", options)


@click.command("lme review", cls=Command)
@option(
    "--before", "first", group=SCORING, required=True, metavar="RESULT", help="The earlier result."
)
@option(
    "--after", "second", group=SCORING, required=True, metavar="RESULT", help="The later result."
)
@diff.overrides
@diff.across_rubrics
@option(
    "--fail-on",
    group=SCORING,
    type=click.Choice([diff.INCONCLUSIVE]),
    help="Exit 5 if the comparison decides nothing.",
)
@json_file
@markdown
@schema("replay.review_records:LmeReview")
@diff.quiet
def review_command(fail_on: str | None, **flags: Any) -> ExitCode:  # noqa: ANN401 - one value a flag
    """Compare two results of the replay question by question: regressions, fixes, categories."""
    conditions = () if fail_on is None else (fail_on,)
    options = diff.ReviewOptions(fail_on=conditions, seed=0, **flags)
    return carry_out("diff.replays:run", options)
