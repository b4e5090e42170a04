"""`memconform ci`."""

from dataclasses import dataclass
from pathlib import Path

import click

from memconform.cli.commands import DAEMONS, FOLDER, OUTPUT, REFERENCE, SCORING, Command, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import quiet, upstream
from memconform.contract.names import Mode
from memconform.contract.wire import Profile
from memconform.daemons.kinds import UpstreamKind
from memconform.errors import ExitCode

STEPS = ("doctor", "conform", "client", "run", "parity")
LATEST = "latest"
"""The value of `--against-ref` that stands for the tag of the last release."""
_TESTS = "What to test"


@dataclass(frozen=True, slots=True)
class CiOptions:
    """Flags of `ci`, under their own names."""

    sdk: str
    upstream: UpstreamKind
    against: str | None
    against_ref: str | None
    step: tuple[str, ...]
    profile: tuple[str, ...]
    data: str
    scenario: str
    mode: str
    floor: str | None
    output: Path
    quiet: bool


@click.command(
    "ci",
    cls=Command,
    examples=(
        "memconform ci",
        "memconform ci --sdk ./sdk.toml --against-ref latest",
        "memconform ci --step doctor --step conform --profile core",
    ),
    exit_codes={
        ExitCode.OK: "every step passed",
        ExitCode.FAILED: "nonconformant, below the floor, or drift",
        ExitCode.DAEMON: "a daemon did not start, or something could not be measured",
        ExitCode.NOTHING_SELECTED: "no question or case selected",
    },
)
@option(
    "--sdk",
    group=DAEMONS,
    type=REFERENCE,
    default="./sdk.toml",
    metavar="SDK",
    help="SDK to test: a path to an sdk.toml, or any other reference that `run` takes.",
)
@upstream
@option(
    "--against",
    group=DAEMONS,
    type=REFERENCE,
    metavar="SDK",
    help="Another SDK to compare results with, such as a reference daemon, by its name or the path"
    " of its sdk.toml.",
)
@option(
    "--against-ref",
    group=DAEMONS,
    type=REFERENCE,
    metavar="REF",
    help="A tag or commit of the repository of --sdk to compare results with; `latest` is the"
    " newest tag among the ancestors. It is checked out in a temporary folder.",
)
@option(
    "--step",
    group=_TESTS,
    multiple=True,
    type=click.Choice(STEPS),
    show_default="all; client if the sdk.toml has [client], parity with --against or --against-ref",
    help="Do only this. May be given several times.",
)
@option(
    "--profile",
    group=_TESTS,
    multiple=True,
    type=click.Choice([*(profile.value for profile in Profile), "robustness"]),
    show_default="everything that the sdk.toml claims",
    help="Let conform run only cases of this profile. May be given several times.",
)
@option(
    "--data",
    group=_TESTS,
    type=REFERENCE,
    default="smoke",
    metavar="SET",
    help="Question set of run: a path to a .jsonl file, or a shipped name.",
)
@option(
    "--scenario",
    group=_TESTS,
    type=click.Choice(["ask-basic", "ask-augmented", "search-retrieve-only"]),
    default="search-retrieve-only",
    help="How run asks.",
)
@option(
    "--mode",
    group=_TESTS,
    type=click.Choice([mode.value for mode in Mode]),
    default="auto",
    help="Retrieval mode of run.",
)
@option(
    "--floor",
    group=SCORING,
    metavar="RATE",
    show_default="0.90 of all questions",
    help="Minimum pass rate of run, 0 to 1.",
)
@option(
    "--output",
    group=OUTPUT,
    type=FOLDER,
    default="results/ci",
    metavar="DIR",
    help="Folder to write results to, with summary.md, report.html, annotations.txt, badge.json and"
    " junit.xml.",
)
@quiet
def command(**flags: object) -> ExitCode:
    """Do all that a CI job does: doctor, conform, client, run, parity, and their reports.

    A step that fails does not prevent the next ones. The exit code is the gravest of all steps;
    docs/CI.md has the job for GitHub, GitLab and a plain shell.
    """
    options = CiOptions(**flags)  # type: ignore[arg-type] # click has validated every flag
    if options.against is not None and options.against_ref is not None:
        raise click.UsageError("give either --against or --against-ref")
    if "parity" in options.step and options.against is None and options.against_ref is None:
        raise click.UsageError("--step parity needs --against or --against-ref")
    return carry_out("ci.execution:ci", options)
