"""Has the shards of a command done by a cluster, and joins their results."""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.merge.command import MergeOptions
from memconform.cli.merge.execution import merge
from memconform.cli.plan.execution import WORK
from memconform.cluster.bundle import make_bundle
from memconform.cluster.executor import ClusterAddress, ShardExecutor, ShardFolders
from memconform.cluster.task import ShardTask
from memconform.daemons.discovery import known_sdks, working_folder
from memconform.datasets.sharding import Shard, deal
from memconform.datasets.sources import find_data, known_sources
from memconform.errors import DaemonError, ExitCode, UsageError
from memconform.printing.escaping import Lines
from memconform.printing.logs import configure_logs
from memconform.printing.output import echo
from memconform.storage.sink import replacing

_OF_THE_WHOLE = {
    *("--executor", "--shards", "--output", "--json", "--html", "--markdown", "--export"),
    *("--junit", "--write-known", "--answers", "--quiet"),
}
"""Flags of the whole, which no shard has."""
_ALONE = {
    "--resume": "the same command with the same --output continues",
    "--shard": "--executor does all shards; --shards says how many",
    "--port": "workers of one machine would need the same one",
    "--keep": "the daemons of a worker end with it",
    "--dry-run": "it asks nothing",
}
"""Flags that do not go together with --executor, and why."""
_PER_WORKER = 4
"""Shards for each worker by default: a lost one costs little, and the last ends soon after all."""
_OF_A_CLUSTER = 16
"""Shards by default where the workers are not known before."""
_BUDGET = "--max-cost-usd"
_MEASURED = (ExitCode.OK, ExitCode.FAILED, ExitCode.DAEMON, ExitCode.BUDGET, ExitCode.INCONCLUSIVE)
"""How a command ends that has a result."""


@dataclass(frozen=True, slots=True)
class SpreadOptions:
    """A command line whose work is spread."""

    reference: str
    """What the command calls without a cluster."""
    options: Any
    """Its options."""
    context: click.Context = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Part:
    """A word of the command line: a flag with its value, or a word by itself."""

    flag: str
    """As the help names it; empty for a word by itself."""
    words: tuple[str, ...]
    """As they were given."""
    value: str | None


def spread(given: SpreadOptions) -> ExitCode:
    """Do the shards on a cluster, and join them.

    Raises:
        MemconformError: if the command cannot be divided or joined, or the cluster fails; what was
            measured is in the folder, from which the same command continues.
    """
    options = given.options
    configure_logs(options.log_level)
    address = ClusterAddress.parse(options.executor)
    parts = list(_parts(given.context))
    for part in parts:
        if (why := _ALONE.get(part.flag)) is not None:
            raise UsageError(
                f"{part.flag} does not go together with --executor: {why}",
                code="bad_option",
                hint=f"omit {part.flag}",
            )
    if not address.is_local:
        _require_free(options)
    shards = _shards(given, address)
    folder = _folder(given)
    work = _Work(given, address, parts, folder, shards)
    work.claim()
    run_to_end(work.carry_out())
    return work.join()


@dataclass(frozen=True, slots=True)
class _Work:
    given: SpreadOptions
    address: ClusterAddress
    parts: Sequence[_Part]
    folder: Path
    shards: Sequence[Shard]

    @property
    def _folders(self) -> ShardFolders:
        return ShardFolders(self.folder, len(self.shards))

    @property
    def _plan(self) -> Path:
        return self.folder / "shards" / "plan.json"

    def claim(self) -> None:
        """Note what the folder has shards of.

        Raises:
            UsageError: if it has those of another command line (`resume_mismatch`).
        """
        words = [
            word for part in self.parts if part.flag not in _OF_THE_WHOLE for word in part.words
        ]
        mine = {"command": [*_verb(self.given.context), *words], "shards": len(self.shards)}
        if self._plan.is_file() and json.loads(self._plan.read_text()) != mine:
            raise UsageError(
                f"{self._plan.parent} has shards of another command",
                code="resume_mismatch",
                hint="give another --output, or the same command and --shards as before; delete the"
                " folder to begin anew",
            )
        self._plan.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self._plan) as target:
            target.write_json(mine)

    async def carry_out(self) -> ExitCode:
        """Have the shards done."""
        cancel_on_signals()
        command, inputs = self._command()
        bundle = make_bundle(inputs) if not self.address.is_local else None
        here = str(working_folder()) if self.address.is_local else None
        flag = not self.given.reference.startswith(("lme.", "conform."))

        def make_task(shard: Shard, key: str) -> ShardTask:
            return ShardTask(command, str(shard), key, continues_by_flag=flag, folder=here)

        executor = ShardExecutor(
            self.address,
            self._folders,
            make_task,
            bundle,
            originals={name: str(path.absolute()) for name, path in inputs.items()},
            report=lambda line: echo(Lines(f"  {line}"), err=True),
        )
        try:
            await executor.run(self.shards)
        except BaseException:
            echo(f"  to continue: the same command with --output {self.folder}", err=True)
            raise
        return ExitCode.OK

    def _command(self) -> tuple[tuple[str, ...], dict[str, Path]]:
        """The command of each shard, and the files that it names there by `{inputs}`."""
        words, inputs = list(_verb(self.given.context)), dict[str, Path]()
        for part in self.parts:
            if part.flag in _OF_THE_WHOLE:
                continue
            value = part.value
            if part.flag == _BUDGET and value is not None:
                # Together no more than was allowed.
                words += [_BUDGET, str(float(value) / len(self.shards))]
            elif value is not None and not self.address.is_local and (path := _input(part)):
                name = f"{len(inputs)}/{path.name}"
                source = path.parent if path.name in {"sdk.toml", "system.toml"} else path
                inputs[name] = source
                shipped = f"{{inputs}}/{name}" + ("" if source == path else f"/{path.name}")
                words += [*([part.flag] if part.flag else []), shipped]
            else:
                words += part.words
        return (*words, "--quiet"), inputs

    def join(self) -> ExitCode:
        """Join what the shards have measured, and drop the shards.

        Raises:
            DaemonError: for a shard without a result (`shard_failed`).
            MemconformError: as `merge`.
        """
        folders = self._folders
        for shard in self.shards:
            code = folders.exit_code(shard)
            if code not in _MEASURED:
                raise DaemonError(
                    f"shard {shard} ended with exit code {code}, and has no result",
                    code="shard_failed",
                    hint=f"its files are in {folders.path(shard)}; delete it to have it done again",
                    excerpt=folders.log(shard),
                )
        options = self.given.options
        code = merge(
            MergeOptions(
                parts=tuple(str(folders.path(shard)) for shard in self.shards),
                partial=False,
                output=self.folder,
                json_file=getattr(options, "json_file", None),
                quiet=options.quiet,
            )
        )
        shutil.rmtree(self._plan.parent)
        return code


def _verb(context: click.Context) -> list[str]:
    return context.command_path.split()[1:]


def _folder(given: SpreadOptions) -> Path:
    """The results folder, which has the shards meanwhile."""
    output: Path | None = given.options.output
    # As `lme` does without --output.
    return output or Path("results") / f"lme-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


def _shards(given: SpreadOptions, address: ClusterAddress) -> list[Shard]:
    """Raises UsageError `too_many_shards`, and as the command does of its data."""
    options = given.options
    work = WORK[given.reference](options, options.shards or 1)
    most = len(work.counts)
    wanted = options.shards or (
        _PER_WORKER * address.workers if address.is_local else _OF_A_CLUSTER
    )
    if options.shards is None:
        # By haystack, if that is enough; what `--shards` names may divide one.
        wanted = min(wanted, most)
    deal(work.counts, wanted, work.unit)
    return [Shard(number, wanted) for number in range(1, wanted + 1)]


def _parts(context: click.Context) -> Iterator[_Part]:
    """The words of the command line behind the verb."""
    options = {
        name: param
        for param in context.command.params
        if isinstance(param, click.Option)
        for name in (*param.opts, *param.secondary_opts)
    }
    words = iter(sys.argv[1 + len(_verb(context)) :])
    for word in words:
        name, equals, value = word.partition("=")
        if name not in options and word[:2] in options and not word.startswith("--"):
            name, equals, value = word[:2], "=", word[2:]
        param = options.get(name)
        if param is None:
            yield _Part("", (word,), word)
        elif param.is_flag or param.count:
            yield _Part(param.opts[0], (word,), None)
        elif equals:
            yield _Part(param.opts[0], (word,), value)
        else:
            following = next(words, "")
            yield _Part(param.opts[0], (word, following), following)


def _input(part: _Part) -> Path | None:
    """The file or folder that a word names; None for any other word."""
    value = part.value or ""
    if part.flag == "--sdk" and value in (known := known_sdks(working_folder())):
        return known[value]
    if part.flag == "--data" and not Path(value).exists():
        return find_data(value) if value in known_sources() else None
    path = Path(value)
    if not value or not path.exists():
        return None
    return path / "sdk.toml" if part.flag == "--sdk" and path.is_dir() else path


def _require_free(options: Any) -> None:  # noqa: ANN401 - options of any command
    """Refuse what calls models that cost money: each worker would have a budget of its own.

    Raises:
        UsageError: `paid_on_cluster`.
    """
    named: Mapping[str, object] = {
        "--judge": getattr(options, "judge", None),
        "--reader": getattr(options, "reader", None),
        "--extract-model": getattr(options, "extract_model", None)
        if getattr(options, "ingest_mode", "bulk") in ("replay", "agentic")
        else None,
    }
    for flag, value in named.items():
        models = [value] if isinstance(value, str) else list(value or ())  # type: ignore[call-overload]
        if any(model and model != "fake" for model in models):
            raise UsageError(
                f"{flag} names a model that may cost money, and workers of a cluster share no"
                " budget and no cache of replies",
                code="paid_on_cluster",
                hint="measure what is retrieved on the cluster, and score the result here; or use"
                " dask:local",
            )
