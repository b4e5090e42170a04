"""`memconform doctor`."""

from dataclasses import dataclass

import click

from memconform.cli.commands import DAEMONS, REFERENCE, Command, option
from memconform.cli.judge_options import judge_header
from memconform.cli.lazy import carry_out
from memconform.cli.options import env, header, keep, log_level, quiet, upstream
from memconform.daemons.kinds import UpstreamKind
from memconform.errors import ExitCode

MODELS = "Model services"


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """Flags of `doctor`, under their own names."""

    sdk: str | None
    system: tuple[str, ...]
    models: bool
    judge_header: tuple[str, ...]
    upstream: UpstreamKind
    header: tuple[str, ...]
    env: tuple[str, ...]
    keep: bool
    quiet: bool
    log_level: str


@click.command(
    "doctor",
    cls=Command,
    examples=(
        "memconform doctor",
        "memconform doctor --sdk path/to/sdk.toml",
        "memconform doctor --models",
    ),
    exit_codes={
        ExitCode.USAGE: "usage, or this machine cannot run something",
        ExitCode.FAILED: "the daemon does not do what it claims",
        ExitCode.DAEMON: "it did not start, or died; or a model service cannot be reached",
    },
)
@option(
    "--sdk",
    group=DAEMONS,
    metavar="SDK",
    help="SDK to test, instead of this machine: a known name, a path to an sdk.toml,"
    " package.module:Class, or url:http://127.0.0.1:PORT[,dialect=NAME] for a running daemon.",
)
@option(
    "--system",
    group=DAEMONS,
    type=REFERENCE,
    multiple=True,
    metavar="NAME|PATH",
    help="Memory system behind an adapter to test, by its name or the path of a system.toml. May be"
    " given several times.",
)
@option(
    "--models",
    group=MODELS,
    is_flag=True,
    help="Check the model services whose variables are set: print address, proxy, certificates,"
    " timeout and the key's variable, and ask each for its list of models, which costs nothing.",
)
@judge_header(MODELS)
@upstream
@env
@keep
@header
@quiet
@log_level
def command(**flags: object) -> ExitCode:
    """Check this machine; with --sdk or --system, try that from build to stop.

    Without either, each line is something that a run may need; a FAIL would break one. With one,
    a failing step is shown with its cause; later steps are tried where it makes sense. With
    --models, only the services of judges and readers are checked, before the SDK if there is one.
    """
    options = DoctorOptions(**flags)  # type: ignore[arg-type] # click has validated every flag
    return carry_out("doctor.execution:doctor", options)
