"""`memconform datasets compile-history`."""

from pathlib import Path

import click

from memconform.cli.options import writable
from memconform.cli.targets import json_target
from memconform.datasets.files import PACKED
from memconform.datasets.haystacks import Dropped
from memconform.datasets.history import FillerPool, Shape, compiled
from memconform.datasets.history_sources import Sources, cases
from memconform.errors import NothingSelectedError
from memconform.printing.output import echo

_PATH = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("compile-history")
@click.option(
    "--evidence",
    type=_PATH,
    required=True,
    metavar="FILE",
    help="A LongMemEval file, of which the sessions that answer are taken, or 2_questions.",
)
@click.option(
    "--filler",
    "fillers",
    type=_PATH,
    multiple=True,
    metavar="FILE",
    help="A LongMemEval file, of which the other sessions are taken, 5_filler_sess or"
    " 6_session_cache. May be given several times.",
)
@click.option(
    "--sessions", type=_PATH, metavar="FILE", help="With 2_questions: its 6_session_cache."
)
@click.option(
    "--attributes",
    type=_PATH,
    metavar="FILE",
    help="With 2_questions: its 1_attr_bg; sessions about one attribute are no filler of another.",
)
@click.option("--min-filler", type=click.IntRange(0), required=True, help="Least filler sessions.")
@click.option("--max-filler", type=click.IntRange(0), required=True, help="Most filler sessions.")
@click.option(
    "--max-chars",
    type=click.IntRange(1),
    metavar="N",
    help="Leave fillers out until no more than this is said; before --min-filler.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same gives the same.")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    callback=writable,
    help="The file to write; - is standard output.",
)
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
    """Write a LongMemEval file whose haystacks are as long as you like.

    \b
    Exit codes: 0 ok, 2 a file is not as it should be, or there are too few fillers, 4 no question
    has evidence.
    """
    if min_filler > max_filler:
        raise click.UsageError("--min-filler is more than --max-filler")
    target_path = Path(output)
    if target_path.suffix in PACKED:
        raise click.UsageError(f"--output: nothing is packed here, so not as {target_path.suffix}")
    read = [path for path in (evidence, *fillers, sessions, attributes) if path is not None]
    if target_path.exists() and any(target_path.samefile(path) for path in read):
        raise click.UsageError("--output would replace a file that is read")
    sources = Sources(evidence, fillers, sessions, attributes)
    shape = Shape(min_filler, max_filler, max_chars, seed)
    questions = drawn = left_out = 0
    dropped: list[Dropped] = []
    with FillerPool() as pool, json_target(output) as target:
        for each in cases(sources, pool):
            if isinstance(each, Dropped):
                dropped.append(each)
                continue
            history = compiled(each, pool, shape)
            target.write_text(",\n" if questions else "[\n")
            target.write_json(history.row, indent=None, end="")
            questions += 1
            drawn += history.fillers
            left_out += history.left_out
        if not questions:
            raise NothingSelectedError(
                f"{evidence}: no question has evidence",
                code="nothing_selected",
                hint=dropped[0].why if dropped else "the file is empty",
            )
        target.write_text("\n]\n")
    echo(f"{questions} questions, {drawn} filler sessions", err=True)
    if left_out:
        echo(f"{left_out} filler sessions left out for their length", err=True)
    for each in dropped:
        echo(f"{each.id}: {each.why}", err=True)
    if output != "-":
        echo(f"-> {output}")
