"""`memconform datasets`."""

from dataclasses import asdict
from pathlib import Path

import click

from memconform.cli.commands import REFERENCE, SCORING, Group, PathType, option
from memconform.cli.datasets.benchmarks import convert_command, info_command, list_command
from memconform.cli.datasets.expand import expand_command
from memconform.cli.datasets.fetch import fetch_command, verify_command
from memconform.cli.datasets.history import compile_command
from memconform.cli.options import json_file
from memconform.cli.output_files import json_target
from memconform.datasets.lint import LintReport, lint_questions
from memconform.datasets.registry import corpus_of, open_dataset
from memconform.errors import ExitCode
from memconform.ingest.documents import CorpusFolder, ReferenceAnswers
from memconform.ingest.probe_queries import searchable_text
from memconform.printing.output import echo
from memconform.printing.plurals import listed, plural
from memconform.stats.clustered_pairs import fewest_clusters
from memconform.stats.paired_comparison import ALPHA


@click.group(
    "datasets",
    cls=Group,
    examples=(
        "memconform datasets list",
        "memconform datasets fetch locomo",
        "memconform datasets lint mine.jsonl",
    ),
)
def command() -> None:
    """Lint, inspect, fetch and convert question sets and benchmarks."""


@command.command(
    "lint",
    examples=(
        "memconform datasets lint lme",
        "memconform datasets lint mine.jsonl --max-chance 0.05",
    ),
    exit_codes={ExitCode.USAGE: "usage, faults in the set, or above --max-chance"},
)
@click.argument("dataset", type=REFERENCE)
@option(
    "--corpus",
    group="What to lint",
    type=PathType(),
    metavar="DIR",
    show_default="the set's own corpus, or else its reference answers",
    help="Folder with the documents that the questions are about.",
)
@option(
    "--max-chance",
    group=SCORING,
    type=click.FloatRange(0, 1),
    metavar="RATE",
    help="Fail if 5 randomly drawn documents pass more than this share of the questions.",
)
@json_file
def lint_command(
    dataset: str, corpus: Path | None, max_chance: float | None, json_file: str | None
) -> ExitCode:
    """Report faults of a question set, and how much of it random documents would pass.

    DATASET is a path to a .jsonl file, or a shipped name.
    """
    opened = open_dataset(dataset)
    folder = corpus or corpus_of(opened)
    source = CorpusFolder(folder) if folder else ReferenceAnswers(opened)
    documents = {doc.path: searchable_text(doc) for doc in source.documents()}
    report = lint_questions(opened, documents)
    too_easy = (
        max_chance is not None and report.chance is not None and not report.chance <= max_chance
    )
    if json_file != "-":
        _show(report)
        if too_easy:
            echo(f"random documents pass more than {max_chance:.1%}")
    if json_file is not None:
        with json_target(json_file) as target:
            target.write_json(asdict(report), indent=2)
    return ExitCode.USAGE if report.faults or too_easy else ExitCode.OK


def _show(report: LintReport) -> None:
    echo(f"{plural(report.questions, 'question')}, {plural(report.documents, 'document')}")
    echo(f"tags: {', '.join(f'{name} {count}' for name, count in report.tags.items())}")
    if report.chance is not None and report.highest_chance is not None:
        echo(
            f"5 random documents pass one of {plural(report.retrievable, 'question')} with a"
            f" probability of {report.chance:.2%} on average, {report.highest_chance:.2%} at most"
        )
    if report.without_distractor:
        names = listed(report.without_distractor)
        echo(f"without a distractor, as no other document comes close: {names}")
    elif report.fewest_distractors is not None:
        echo(f"each question has at least {plural(report.fewest_distractors, 'distractor')}")
    if report.clusters is not None:
        fewest = fewest_clusters(ALPHA)
        few = f": parity needs {fewest} to show a difference" if report.clusters < fewest else ""
        echo(f"{plural(report.clusters, 'cluster')}{few}")
    for fault in report.faults:
        echo(f"{fault.question}: {fault.message}")
    echo(plural(len(report.faults), "fault") if report.faults else "no faults")


for _subcommand in (
    list_command,
    info_command,
    convert_command,
    fetch_command,
    verify_command,
    compile_command,
    expand_command,
):
    command.add_command(_subcommand)
