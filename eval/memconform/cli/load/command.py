"""`memconform load`."""

import math
from dataclasses import dataclass
from pathlib import Path

import click

from memconform.cli import options as given
from memconform.cli.commands import SCORING, Command, PathType, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import (
    SECONDS,
    Finite,
    duration,
    env,
    header,
    json_file,
    log_level,
    output,
    quiet,
    schema,
    sdks,
    upstream,
)
from memconform.contract.names import Mode
from memconform.daemons.kinds import UpstreamKind
from memconform.errors import ExitCode


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Flags of `load`, under their own names."""

    sdk: tuple[str, ...]
    no_skip: bool
    upstream: UpstreamKind
    env: tuple[str, ...]
    header: tuple[str, ...]
    rate: tuple[float, ...]
    closed: tuple[int, ...]
    duration: float
    seed: int
    mix: tuple[tuple[str, float], ...]
    slow_readers: int
    max_in_flight: int
    dataset: str
    corpus: Path | None
    mode: str
    top_k: int
    limit: int
    timeout: float
    max_lateness: float
    max_p99: float | None
    output: Path
    json_file: str | None
    quiet: bool
    log_level: str


_LOAD = "What to send"
_VALIDITY = "What counts"
DEFAULT_RATE = 50.0
_MIXED = ("search", "ask", "ingest")
"""Names of `records.Operation`, repeated because its import takes long."""


def _rates(_: click.Context, __: click.Parameter, value: str | None) -> tuple[float, ...]:
    """Read rates such as `50,100,200`, each once and in ascending order."""
    return tuple(sorted({_positive(part) for part in (value or "").split(",") if part}))


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.01 <= number <= 100_000:
        raise click.BadParameter(f"{text!r} is not a number of requests per second")
    return number


def _workers(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Read numbers of workers such as `1,8`, each once and in ascending order."""
    parts = [part for part in (value or "").split(",") if part]
    for part in parts:
        if not part.isascii() or not part.isdigit() or not 1 <= int(part[:9]) <= 1_000:
            raise click.BadParameter(f"{part!r} is not a number of workers from 1 to 1000")
    return tuple(sorted({int(part) for part in parts}))


def _mix(_: click.Context, __: click.Parameter, value: str) -> tuple[tuple[str, float], ...]:
    """Read shares such as `search=0.9,ingest=0.1`, which are scaled to a sum of 1."""
    shares: dict[str, float] = {}
    for part in value.split(","):
        name, equals, text = part.partition("=")
        try:
            share = float(text) if equals else math.nan
        except ValueError:
            share = math.nan
        if name not in _MIXED or name in shares or not 0 < share < math.inf:
            raise click.BadParameter(
                f"{part!r} is not an operation ({', '.join(_MIXED)}) with a share above 0, such as"
                " search=0.9"
            )
        shares[name] = share
    total = sum(shares.values())
    return tuple((name, shares[name] / total) for name in _MIXED if name in shares)


@click.command(
    "load",
    cls=Command,
    examples=(
        "memconform load --sdk go --rate 50,100,200 --duration 30s",
        "memconform load --sdk all --rate 20 --mix search=0.9,ingest=0.1",
        "memconform load --sdk py --closed 1,8 --duration 10s --max-p99 250",
    ),
    exit_codes={
        ExitCode.FAILED: "a measured rate missed --max-p99",
        ExitCode.DAEMON: "a daemon failed, or nothing was measured of it",
        ExitCode.NOTHING_SELECTED: "the dataset has no question",
        ExitCode.INCONCLUSIVE: "a rate has no 99th percentile for --max-p99",
    },
)
@sdks(required=True)
@upstream
@env
@header
@option(
    "--rate",
    group=_LOAD,
    callback=_rates,
    metavar="N,…",
    show_default=f"{DEFAULT_RATE:g} without --closed",
    help="Arrivals per second of an open loop, a step for each rate: requests are sent at the"
    " instants of a Poisson process, whether or not earlier ones were answered.",
)
@option(
    "--closed",
    group=_LOAD,
    callback=_workers,
    metavar="N,…",
    help="Workers of a closed loop, a step for each number: each sends its next request once it"
    " has an answer. Measures throughput, and not what users would wait.",
)
@option(
    "--duration",
    group=_LOAD,
    callback=duration,
    default="30s",
    metavar="DURATION",
    help="Length of each step, such as 30s or 2m.",
)
@option(
    "--mix",
    group=_LOAD,
    callback=_mix,
    default="search=1",
    metavar="OP=SHARE,…",
    help="Shares of `search`, `ask` and `ingest`. Writes go into a brain of their own, each under"
    " a path of its own.",
)
@option(
    "--slow-readers",
    group=_LOAD,
    type=click.IntRange(0, 256),
    default=0,
    metavar="N",
    help="Clients that ask beside the load and read the answers slowly, 2560 bytes a second; their"
    " own latency does not count.",
)
@option(
    "--seed",
    group=_LOAD,
    type=click.IntRange(min=0),
    default=1,
    metavar="N",
    help="Seed of the arrivals, operations and questions: every SDK gets the same ones.",
)
@given.data(
    _LOAD,
    "Question set whose questions are asked: a path to a .jsonl file, or a shipped name.",
    field="dataset",
    metavar="SET",
    default="lme",
)
@option(
    "--corpus",
    group=_LOAD,
    type=PathType(),
    metavar="DIR",
    show_default="the dataset's own corpus, or its reference answers",
    help="Fill the brain from the files in DIR.",
)
@given.mode(
    _LOAD,
    "Retrieval mode, passed to the daemon unchanged.",
    type=click.Choice([mode.value for mode in Mode]),
    default="auto",
)
@given.top_k(_LOAD, "Number of chunks to retrieve for a question.", default=10, metavar="N")
@option(
    "--limit",
    group=_LOAD,
    type=click.IntRange(min=1),
    default=100,
    metavar="N",
    help="Ask N questions, evenly spaced, again and again.",
)
@option(
    "--timeout",
    group=_LOAD,
    type=SECONDS,
    default=30.0,
    metavar="SECONDS",
    help="Time allowed for a request; one that takes longer has failed.",
)
@option(
    "--max-in-flight",
    group=_LOAD,
    type=click.IntRange(1, 10_000),
    default=512,
    metavar="N",
    help="Requests of an open loop that may be open at once; an arrival beyond them is not sent,"
    " and counts as failed.",
)
@option(
    "--max-lateness",
    group=_VALIDITY,
    type=Finite(min=1),
    default=25.0,
    metavar="MS",
    help="A step whose 99th percentile of the harness's own lateness is above this is not measured:"
    " the harness was overloaded, and the daemon is not blamed.",
)
@option(
    "--max-p99",
    group=SCORING,
    type=Finite(min=0, min_open=True),
    metavar="MS",
    help="Fail if the 99th percentile of latency is above this at any measured rate.",
)
@output
@json_file
@schema("load.records:LoadReport")
@quiet
@log_level
def command(**flags: object) -> ExitCode:
    """Send requests at a rate or from workers, and measure latency, errors and saturation.

    Latency counts from the instant at which a request was to be sent, so that a daemon that stalls
    is charged with all who would have waited. Brains are filled and proven first, and verified
    after each step.
    """
    options = LoadOptions(**flags)  # type: ignore[arg-type] # click has validated every flag
    return carry_out("load.execution:load", options, extra="load")
