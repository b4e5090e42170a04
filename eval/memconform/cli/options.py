"""Options that several commands share; `values` parses them, and `--help` does not import it."""

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar, get_args

import click

from memconform.cli.commands import (
    DAEMONS,
    FOLDER,
    ON_STDOUT,
    OUTPUT,
    REFERENCE,
    SCORING,
    PathType,
    log_level_option,
    option,
)
from memconform.daemons.kinds import UpstreamKind
from memconform.printing.escaping import Lines
from memconform.printing.output import echo

_Command = TypeVar("_Command", bound=Callable[..., Any])

output = option(
    "--output",
    group=OUTPUT,
    type=FOLDER,
    default="results",
    metavar="DIR",
    help="Folder to write results to.",
)

results = option(
    "--output",
    group=OUTPUT,
    type=PathType(),
    default="results",
    metavar="DIR",
    help="Folder of results, in which run ids are looked up.",
)


def sdks(*, required: bool) -> Callable[[_Command], _Command]:
    """Return a decorator that adds --sdk and --no-skip to a command."""

    def decorated(command: _Command) -> _Command:
        no_skip = option(
            "--no-skip",
            group=DAEMONS,
            is_flag=True,
            help="Fail if an SDK of `--sdk all` cannot run here; by default it is skipped with a"
            " notice.",
        )
        sdk = option(
            "--sdk",
            group=DAEMONS,
            multiple=True,
            required=required,
            type=REFERENCE,
            metavar="SDK",
            help="SDK to test: a known name, a path to an sdk.toml, package.module:Class, or"
            " url:http://127.0.0.1:PORT[,dialect=NAME] for a running daemon; `all` selects every"
            " known SDK that can run here. May be given several times.",
        )
        return sdk(no_skip(command))

    return decorated


SYSTEM = "system:"
"""Begins the reference of a memory system among those of SDKs."""

system = option(
    "--system",
    group=DAEMONS,
    multiple=True,
    type=REFERENCE,
    metavar="NAME|PATH",
    help="Memory system behind an adapter, by its name or the path of a system.toml"
    " (docs/SYSTEMS.md). May be given several times.",
)


def subjects(sdks: Iterable[str], systems: Iterable[str]) -> tuple[str, ...]:
    """The references of what `--sdk` and `--system` name, in this order."""
    return (*sdks, *(f"{SYSTEM}{name}" for name in systems))


def floors(*, unless_given: str, group: str = SCORING) -> Callable[[_Command], _Command]:
    """Return a decorator that adds --floor; `unless_given` describes the default floors."""
    return option(
        "--floor",
        group=group,
        multiple=True,
        metavar="RATE",
        show_default=unless_given,
        help="Minimum pass rate, 0 to 1; tag:NAME=RATE sets one for the questions with a tag. May"
        " be given several times.",
    )


def scorer(*, unless_given: str, group: str = SCORING) -> Callable[[_Command], _Command]:
    """Return a decorator that adds --scorer; `unless_given` describes the default scorer."""
    return option(
        "--scorer",
        group=group,
        type=click.Choice(["exact", "judge"]),
        show_default=unless_given,
        help="`exact` looks for the expected strings; `judge` asks language models (--judge).",
    )


upstream = option(
    "--upstream",
    group=DAEMONS,
    type=click.Choice(get_args(UpstreamKind)),
    default="own",
    help="What answers the daemon's model calls: `own` is its offline fakes, `scripted` a server"
    " that memconform starts, `real` the services that your shell's variables name.",
)

env = option(
    "--env",
    group=DAEMONS,
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a daemon variable; takes precedence over all others and is recorded in the result."
    " May be given several times.",
)

case_env = option(
    "--env",
    group=DAEMONS,
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a daemon variable; takes precedence over all others but those that a case sets"
    " itself, and is recorded in the result. May be given several times.",
)
"""`--env` of the commands that run cases."""

keep = option(
    "--keep",
    group=DAEMONS,
    is_flag=True,
    help="Leave daemons running after the result until Ctrl-C; their addresses and the process to"
    " stop are printed.",
)

header = option(
    "--header",
    group=DAEMONS,
    multiple=True,
    metavar="NAME:VALUE",
    help="Send this header with every request; its value is masked in output, if it is"
    " short only after its name (see docs/RESULTS.md#secrets)."
    " MEMCONFORM_AUTH_TOKEN sets a bearer token. May be given several times.",
)

quiet = option("--quiet", group=OUTPUT, is_flag=True, help="Show no progress and no tables.")


def log_level(command: _Command) -> _Command:
    """Add --log-level to a command that uses its value too."""
    decorated: list[click.Parameter] = command.__dict__.setdefault("__click_params__", [])
    decorated.append(log_level_option())
    return command


def strip_reasoning(group: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds --strip-reasoning to a group of options."""
    return option(
        "--strip-reasoning",
        group=group,
        is_flag=True,
        help="Score answers without their blocks of reasoning, such as <think>…</think>.",
    )


def schema(
    *models: str, of: str = "--json", by: tuple[str, Sequence[str]] | None = None
) -> Callable[[_Command], _Command]:
    """Return a decorator that adds --schema, for models given as `module:Model`.

    Args:
        of: the flag whose output follows them.
        by: an eager parameter that selects one of them, and its value for each.
    """

    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
        if not value:
            return
        chosen = models
        if by is not None and (selected := ctx.params.get(by[0])) in by[1]:
            chosen = (models[by[1].index(selected)],)
        resolved = [resolve_name(f"memconform.{model}") for model in chosen]
        adapter = resolve_name("pydantic:TypeAdapter")(reduce(or_, resolved))
        echo(Lines(json.dumps(adapter.json_schema(), indent=2)))
        ctx.exit()

    return option(
        "--schema",
        group=OUTPUT,
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=show,
        help=f"Print the JSON Schema of {of} and exit.",
    )


_WRITTEN = "memconform.written"
"""Key of a context's `meta`: which option writes a file."""


def writable(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Reject an unwritable target before anything runs; click's callback of an option."""
    if value is None:
        return value
    if value == "-":
        if ON_STDOUT in ctx.meta:
            raise click.BadParameter(f"{ctx.meta[ON_STDOUT]} writes to standard output already")
        ctx.meta[ON_STDOUT] = param.opts[0]
        return value
    folder = Path(value).parent
    if not value or not folder.is_dir() or not os.access(folder, os.W_OK) or Path(value).is_dir():
        raise click.BadParameter(f"{value!r} cannot be written")
    if not Path(value).exists() or Path(value).is_file():
        # The second would silently replace what the first has written.
        written = ctx.meta.setdefault(_WRITTEN, {})
        first = written.setdefault(Path(value).resolve(), param.opts[0])
        if first != param.opts[0]:
            raise click.BadParameter(f"{first} writes {value!r} already")
    return value


def writable_file(context: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """As `writable`, for a file beside which others are written: not standard output."""
    if value == "-":
        raise click.BadParameter("name a file; this is not written to standard output")
    return writable(context, param, value)


def split_export(text: str) -> tuple[str | None, str]:
    """Split `[FORMAT=]FILE`; an `=` behind a dot or a slash belongs to the file."""
    name, equals, file = text.partition("=")
    if equals and "/" not in name and "." not in name:
        return name, file
    return None, text


def writable_exports(
    context: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """Reject an unwritable FILE of `[FORMAT=]FILE`; click's callback of an option."""
    for value in values:
        writable(context, param, split_export(value)[1])
    return values


json_file = option(
    "--json",
    "json_file",
    group=OUTPUT,
    metavar="FILE",
    callback=writable,
    help="Also write the report to FILE as JSON; - is standard output.",
)

html = option(
    "--html",
    group=OUTPUT,
    is_flag=True,
    help="Also write report.html beside the result (memconform report).",
)

output_file = option(
    "-o",
    "--output-file",
    "output",
    group=OUTPUT,
    aliases=("--output",),
    required=True,
    metavar="FILE",
    callback=writable,
    help="File to write; - is standard output.",
)

markdown = option(
    "--markdown",
    group=OUTPUT,
    metavar="FILE",
    callback=writable,
    help="Also write the tables to FILE as Markdown.",
)


class Finite(click.FloatRange):
    """Range of finite numbers; click's own ranges accept NaN."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


SECONDS = Finite(min=0, min_open=True)

_UNITS = {"s": 1, "m": 60, "h": 3_600}


def duration(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    """Read a duration such as `90s` or `10m`, in seconds; click's callback of an option."""
    if value is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6})([smh]?)", value)
    if match is None or int(match[1]) == 0:
        raise click.BadParameter(f"{value!r} is not a duration such as 90s, 10m or 1h")
    return float(int(match[1]) * _UNITS[match[2] or "s"])


def rank_by(group: str) -> Callable[[_Command], _Command]:
    """`--rank-by` of `run`, `bench` and `lme`, under a heading of their help."""
    return option(
        "--rank-by",
        group=group,
        type=click.Choice(["score", "position"]),
        show_default="what the SDK's dialect declares, or score",
        help="With position, a ranking whose scores rise is reported as a violation and ranked by"
        " position, instead of not counting.",
    )


def data(
    group: str,
    about: str,
    *,
    field: str = "data",
    metavar: str = "PATH|NAME",
    **attrs: Any,  # noqa: ANN401 - click's signature
) -> Callable[[_Command], _Command]:
    """`--data`: a file of questions or a benchmark; `field` is the parameter's name."""
    return option(
        *("--data", field),
        group=group,
        aliases=("--dataset",),
        metavar=metavar,
        type=REFERENCE,
        help=about,
        **attrs,
    )


def mode(
    group: str,
    about: str,
    *,
    field: str = "mode",
    aliases: Sequence[str] = (),
    **attrs: Any,  # noqa: ANN401 - click's signature
) -> Callable[[_Command], _Command]:
    """`--mode`: how a daemon retrieves."""
    return option(*("--mode", field), group=group, aliases=aliases, help=about, **attrs)


def top_k(
    group: str,
    about: str,
    *names: str,
    field: str = "top_k",
    aliases: Sequence[str] = (),
    **attrs: Any,  # noqa: ANN401 - click's signature
) -> Callable[[_Command], _Command]:
    """`--top-k`: how many items a search returns."""
    attrs = {"type": click.IntRange(1, 1_000), "metavar": "K"} | attrs
    return option(*("--top-k", *names, field), group=group, aliases=aliases, help=about, **attrs)


def embed_model(
    group: str, about: str = "With --upstream scripted, one of memconform's embedding models"
) -> Callable[[_Command], _Command]:
    """`--embed-model`: what makes the vectors."""
    names = "fh256-1, all-MiniLM-L6-v2, bge-small-en-v1.5"
    return option("--embed-model", group=group, metavar="NAME", help=f"{about}: {names}.")


def limit(group: str, questions: str) -> Callable[[_Command], _Command]:
    """`--limit`: a part of the questions, always the same."""
    return option(
        "--limit",
        group=group,
        type=click.IntRange(min=1),
        metavar="N",
        help=f"Ask N {questions}, evenly spaced.",
    )


def resume(group: str, about: str) -> Callable[[_Command], _Command]:
    """`--resume`: an interrupted call of the same command, by its id or folder."""
    return option("--resume", group=group, type=REFERENCE, metavar="RUN", help=about)


def reader(
    group: str,
    about: str,
    *,
    aliases: Sequence[str] = (),
    **attrs: Any,  # noqa: ANN401 - click's signature
) -> Callable[[_Command], _Command]:
    """`--reader`: the model that answers from what was retrieved."""
    return option(
        "--reader",
        group=group,
        aliases=aliases,
        type=REFERENCE,
        metavar="MODEL",
        help=about,
        **attrs,
    )
