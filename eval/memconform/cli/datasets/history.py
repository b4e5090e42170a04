"""`memconform datasets compile-history`."""

from pathlib import Path

import click

from memconform.cli.commands import Command, PathType, option
from memconform.cli.options import output_file
from memconform.cli.output_files import json_target
from memconform.datasets.files import PACKED
from memconform.datasets.haystacks import DroppedEntry
from memconform.errors import ExitCode, NothingSelectedError
from memconform.printing.output import echo
from memconform.printing.plurals import plural

_PATH = PathType(exists=True, dir_okay=False)


_SOURCES = "Sources"
_SHAPE = "Shape"


@click.command(
    "compile-history",
    cls=Command,
    examples=(
        (
            "memconform datasets compile-history --evidence longmemeval_oracle.json \\\n"
            "    --filler longmemeval_s.json --min-filler 100 --max-filler 100 -o long.json"
        ),
    ),
    exit_codes={
        ExitCode.USAGE: "usage, an invalid file, or too few filler sessions",
        ExitCode.NOTHING_SELECTED: "no question has evidence",
    },
)
@option(
    "--evidence",
    group=_SOURCES,
    type=_PATH,
    required=True,
    metavar="FILE",
    help="LongMemEval file whose answering sessions are used, or the released 2_questions.",
)
@option(
    "--filler",
    "fillers",
    group=_SOURCES,
    type=_PATH,
    multiple=True,
    metavar="FILE",
    help="LongMemEval file whose other sessions are used as filler, or the released 5_filler_sess"
    " or 6_session_cache. May be given several times.",
)
@option(
    "--sessions",
    group=_SOURCES,
    type=_PATH,
    metavar="FILE",
    help="With 2_questions: its 6_session_cache.",
)
@option(
    "--attributes",
    group=_SOURCES,
    type=_PATH,
    metavar="FILE",
    help="With 2_questions: its 1_attr_bg, so that sessions about the attribute of a question are"
    " not its filler.",
)
@option(
    "--min-filler",
    group=_SHAPE,
    type=click.IntRange(0),
    required=True,
    metavar="N",
    help="Minimum number of filler sessions in a haystack.",
)
@option(
    "--max-filler",
    group=_SHAPE,
    type=click.IntRange(0),
    required=True,
    metavar="N",
    help="Maximum number of filler sessions in a haystack.",
)
@option(
    "--max-chars",
    group=_SHAPE,
    type=click.IntRange(1),
    metavar="N",
    help="Drop filler sessions until a haystack has at most N characters, even below --min-filler.",
)
@option(
    "--seed",
    group=_SHAPE,
    type=int,
    default=0,
    metavar="N",
    help="Seed of the draw: the same seed gives the same file.",
)
@output_file
def compile_command(
    *,
    evidence: Path,
    fillers: tuple[Path, ...],
    sessions: Path | None,
    attributes: Path | None,
    min_filler: int,
    max_filler: int,
    max_chars: int | None,
    seed: int,
    output: str,
) -> None:
    """Write a LongMemEval file with haystacks of any length."""
    from memconform.longmemeval.history import (  # noqa: PLC0415 - of this command alone
        FillerPool,
        Shape,
        compiled,
    )
    from memconform.longmemeval.history_sources import Sources, cases  # noqa: PLC0415 - same

    if min_filler > max_filler:
        raise click.UsageError("--min-filler is more than --max-filler")
    target_path = Path(output)
    if target_path.suffix in PACKED:
        raise click.UsageError(f"--output-file: cannot write packed files ({target_path.suffix})")
    inputs = [path for path in (evidence, *fillers, sessions, attributes) if path is not None]
    if target_path.exists() and any(target_path.samefile(path) for path in inputs):
        raise click.UsageError("--output-file would replace an input file")
    sources = Sources(evidence, fillers, sessions, attributes)
    shape = Shape(min_filler, max_filler, max_chars, seed)
    questions = fillers_drawn = fillers_dropped = 0
    dropped: list[DroppedEntry] = []
    with FillerPool() as pool, json_target(output) as target:
        for case in cases(sources, pool):
            if isinstance(case, DroppedEntry):
                dropped.append(case)
                continue
            history = compiled(case, pool, shape)
            target.write_text(",\n" if questions else "[\n")
            target.write_json(history.row, indent=None, end="")
            questions += 1
            fillers_drawn += history.fillers
            fillers_dropped += history.left_out
        if not questions:
            raise NothingSelectedError(
                f"{evidence}: no question has evidence",
                code="nothing_selected",
                hint=dropped[0].why if dropped else "the file is empty",
            )
        target.write_text("\n]\n")
    sessions_drawn = plural(fillers_drawn, "filler session")
    echo(f"{plural(questions, 'question')}, {sessions_drawn}", err=True)
    if fillers_dropped:
        echo(f"{plural(fillers_dropped, 'filler session')} dropped to fit --max-chars", err=True)
    for entry in dropped:
        echo(f"{entry.id}: {entry.why}", err=True)
    if output != "-":
        echo(f"-> {output}")
