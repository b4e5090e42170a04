"""`memconform parity`."""

from pathlib import Path

import click

from memconform.cli.lazy import require_extra
from memconform.cli.options import Finite, json_file, output, schema, writable
from memconform.cli.targets import json_target, text_target
from memconform.errors import ExitCode, gravest
from memconform.parity.comparison import Method, compare_runs
from memconform.parity.loaded_runs import load_runs, question_of
from memconform.parity.paired_comparison import ALPHA, MARGIN
from memconform.parity.records import ParityReport, ParityVerdict
from memconform.printing.output import echo
from memconform.reports.parity import parity_banner, parity_markdown, show_parity, show_question


class _ComparesUnlessNamed(click.Group):
    """A group whose first argument may be a result in place of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["compare", *args]
        return super().parse_args(ctx, args)


@click.group("parity", cls=_ComparesUnlessNamed)
def command() -> None:
    """Prove or refute that runs agree: parity RESULT RESULT…, or show one question of two.

    RESULT is a result file, a run's folder, or a run id.
    """


@command.command("compare", context_settings={"show_default": True})
@click.argument("results", nargs=-1, required=True, metavar="RESULT...")
@click.option(
    "--margin",
    type=Finite(1e-6, 1, max_open=True),
    default=MARGIN,
    help="Pass rates that differ by less are called equal.",
)
@click.option(
    "--alpha",
    type=Finite(1e-6, 0.5, max_open=True),
    default=ALPHA,
    help="How often runs that do not differ may be told to drift.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of resampling.")
@click.option(
    "--resamples", type=click.IntRange(100, 1_000_000), default=10_000, help="Of the bootstrap."
)
@click.option(
    "--strict", is_flag=True, help="Exit 5 where a pair is inconclusive, or not wholly measured."
)
@output
@json_file
@click.option(
    "--markdown", metavar="FILE", callback=writable, help="Write it to FILE as Markdown too."
)
@click.option("--quiet", is_flag=True, help="No table.")
@schema("parity.records:ParityReport")
def compare_command(  # noqa: PLR0917 - one parameter a flag
    results: tuple[str, ...],
    margin: float,
    alpha: float,
    seed: int,
    resamples: int,
    strict: bool,  # noqa: FBT001 - click's signature
    output: Path,
    json_file: str | None,
    markdown: str | None,
    quiet: bool,  # noqa: FBT001 - click's signature
) -> ExitCode:
    """Compare runs of the same questions, pair by pair.

    A pair is identical, at parity, drifts apart, or is inconclusive; whatever it is, the stage is
    told at which the runs first part.

    \b
    Exit codes: 0 ok, 1 drift, 2 usage, or runs that asked different things,
    3 an incident ended one of the runs, 4 a pair has no question that both were measured on,
    5 inconclusive (--strict).
    """
    require_extra("parity")
    report = compare_runs(load_runs(results, output), Method(margin, alpha, seed, resamples))
    code = gravest([ExitCode(report.exit_code), *([_strictness(report)] if strict else [])])
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


def _strictness(report: ParityReport) -> ExitCode:
    unsettled = report.reasons or any(
        pair.contrast.verdict is ParityVerdict.INCONCLUSIVE for pair in report.pairs
    )
    return ExitCode.INCONCLUSIVE if unsettled else ExitCode.OK


@command.command("show")
@click.argument("question")
@click.argument("first")
@click.argument("second")
@output
def show_command(question: str, first: str, second: str, output: Path) -> ExitCode:
    """One question as two runs answered it, side by side."""
    one, other = load_runs((first, second), output)
    pair = question_of(one, question), question_of(other, question)
    show_question(one, other, pair)
    return ExitCode.OK
