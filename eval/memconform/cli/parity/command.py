"""`memconform parity`."""

from pathlib import Path

import click

from memconform.cli.commands import OUTPUT, REFERENCE, SCORING, Group, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import Finite, json_file, markdown, schema
from memconform.cli.options import results as results_folder
from memconform.cli.output_files import json_target, text_target
from memconform.cli.result_kinds import METHOD, BenchParityOptions, are_benches, metric, view
from memconform.errors import ExitCode, gravest
from memconform.printing.output import echo
from memconform.reports.parity import parity_banner, parity_markdown, show_parity, show_question
from memconform.reports.progress import StepProgress
from memconform.results.comparison import Method, compare_runs
from memconform.results.loaded_runs import method_lines, question_of
from memconform.results.records import ParityReport
from memconform.results.references import load_pair, load_results
from memconform.stats.paired_comparison import ALPHA, MARGIN, ParityVerdict

_EXIT_CODES = {
    ExitCode.OK: "identical, at parity, or inconclusive without --strict",
    ExitCode.FAILED: "drift",
    ExitCode.USAGE: "usage, or runs that cannot be compared",
    ExitCode.DAEMON: "an incident ended one of the runs",
    ExitCode.NOTHING_SELECTED: "a pair has no question that was measured in both",
    ExitCode.INCONCLUSIVE: "inconclusive with --strict",
}


class _ComparesUnlessNamed(Group):
    """A group that runs `compare` if its first argument is not a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["compare", *args]
        return super().parse_args(ctx, args)


@click.group(
    "parity",
    cls=_ComparesUnlessNamed,
    subcommand_metavar="[compare] RESULT... | show QUESTION FIRST SECOND",
    examples=(
        "memconform parity results/2026-01-31/*.json",
        "memconform parity 'ANSWER-RUN#go*' lme/result-go.json",
        "memconform parity show lme-009 go.json py.json",
    ),
    exit_codes=_EXIT_CODES,
)
def command() -> None:
    """Decide whether results agree, and show where they first differ.

    RESULT is a result file, a run's folder or a run id of `run`, `score` or `lme`;
    `#SUBJECT` behind it selects some of its arms, rubrics or SDKs. A result of `bench` is compared
    row by row; `#SYSTEM/STRATEGY` behind it selects some. docs/PARITY.md explains the verdicts.
    """


@command.command(
    "compare",
    examples=(
        "memconform parity compare go.json py.json ts.json",
        "memconform parity compare go.json py.json --margin 0.01 --strict",
        "memconform parity compare 'MONDAY#go/hybrid*' TUESDAY#go --metric recall_any@5",
    ),
    exit_codes=_EXIT_CODES,
)
@click.argument("results", type=REFERENCE, nargs=-1, required=True, metavar="RESULT...")
@option(
    "--margin",
    group=METHOD,
    type=Finite(1e-6, 1, max_open=True),
    default=MARGIN,
    metavar="RATE",
    help="Largest difference of pass rates that counts as equal.",
)
@option(
    "--alpha",
    group=METHOD,
    type=Finite(1e-6, 0.5, max_open=True),
    default=ALPHA,
    metavar="P",
    help="Significance level: how often runs that do not differ may be reported as drift.",
)
@option(
    "--seed",
    group=METHOD,
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Seed of the bootstrap.",
)
@option(
    "--resamples",
    group=METHOD,
    type=click.IntRange(100, 1_000_000),
    default=10_000,
    metavar="N",
    help="Number of bootstrap resamples.",
)
@option(
    "--strict",
    group=SCORING,
    is_flag=True,
    help="Exit 5 if a pair is inconclusive or not completely measured.",
)
@metric
@view
@results_folder
@json_file
@schema("results.records:ParityReport", "bench.comparison_records:BenchParityReport")
@markdown
@option("--quiet", group=OUTPUT, is_flag=True, help="Show only the summary.")
def compare_command(  # noqa: PLR0917 - one parameter a flag
    results: tuple[str, ...],
    margin: float,
    alpha: float,
    seed: int,
    resamples: int,
    strict: bool,  # noqa: FBT001 - click's signature
    metric: str | None,
    view: str | None,
    output: Path,
    json_file: str | None,
    markdown: str | None,
    quiet: bool,  # noqa: FBT001 - click's signature
) -> ExitCode:
    """Compare results of the same questions, or rows of benches, pair by pair.

    RESULT of score or lme stands for all of its arms, rubrics or SDKs, of a bench for all
    of its rows; RESULT#go, RESULT#go/bm25 or a pattern such as 'RESULT#*/hybrid*' selects some.

    A pair is identical, at parity, drifting or inconclusive. The stage at which its runs first
    differ is shown whatever the verdict.
    """
    if are_benches(results, output, bench_only=(metric, view)):
        rows = (results, output, metric, view)
        options = BenchParityOptions(*rows, margin, alpha, strict, json_file, markdown, quiet)
        return carry_out("diff.benches:parity", options)
    runs = load_results(results, output)
    for line in () if quiet else method_lines(runs):
        echo(f"  {line}", err=True)
    with StepProgress("comparing", runs[0].summary.total, quiet=quiet) as step:
        method = Method(margin, alpha, seed, resamples)
        report = compare_runs(runs, method, on_row=step.advance)
    code = gravest([ExitCode(report.exit_code), *([_strict_code(report)] if strict else [])])
    report = report.model_copy(update={"exit_code": code})
    if not quiet:
        show_parity(report)
    if json_file is not None:
        with json_target(json_file) as target:
            target.write_json(report)
    if markdown is not None:
        with text_target(markdown) as target:
            target.write_text(parity_markdown(report))
    echo(parity_banner(report), err="-" in (json_file, markdown))
    return code


def _strict_code(report: ParityReport) -> ExitCode:
    undecided = report.reasons or any(
        pair.contrast.verdict is ParityVerdict.INCONCLUSIVE for pair in report.pairs
    )
    return ExitCode.INCONCLUSIVE if undecided else ExitCode.OK


@command.command(
    "show",
    examples=("memconform parity show lme-009 go.json py.json",),
)
@click.argument("question")
@click.argument("first", type=REFERENCE)
@click.argument("second", type=REFERENCE)
@results_folder
def show_command(question: str, first: str, second: str, output: Path) -> ExitCode:
    """Show a question as two runs answered it, side by side.

    QUESTION is its id; FIRST and SECOND are result files, run folders or run ids, with `#SUBJECT`
    behind one that has several.
    """
    one, other = load_pair(first, second, output)
    pair = question_of(one, question), question_of(other, question)
    show_question(one, other, pair)
    return ExitCode.OK
