"""Has the shards of a command done by a cluster, and joins their results."""

import fcntl
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from memconform.cli.interrupts import cancel_on_signals, run_to_end
from memconform.cli.merge.command import MergeOptions
from memconform.cli.merge.execution import merge
from memconform.cli.plan.execution import WORK
from memconform.cli.sdks import ALL
from memconform.cli.values import daemon_variables, request_headers
from memconform.cluster.address import ClusterAddress
from memconform.cluster.bundle import make_bundle
from memconform.cluster.executor import ShardExecutor, ShardFolders
from memconform.cluster.task import ShardTask
from memconform.daemons.discovery import known_sdks, working_folder
from memconform.daemons.environment import BUDGET_SERVER
from memconform.datasets.sharding import Shard, deal
from memconform.datasets.sources import find_data, known_sources
from memconform.errors import DaemonError, ExitCode, UsageError
from memconform.llm.budget import Ledger, read_budget
from memconform.llm.budget_server import BudgetServer
from memconform.printing.escaping import Lines
from memconform.printing.logs import configure_logs
from memconform.printing.output import echo
from memconform.printing.plurals import plural
from memconform.storage.sink import replacing
from memconform.storage.temporary import remove_folder

_WHOLE_FLAGS = {
    *("--executor", "--shards", "--output", "--json", "--quiet", "--require-agreement"),
}
"""Flags of the whole, which no shard has."""
_REFUSED_FLAGS = {
    "--resume": "the same command with the same --output continues",
    "--shard": "--executor does all shards; --shards says how many",
    "--port": "workers of one machine would need the same one",
    "--keep": "the daemons of a worker end with it",
    "--dry-run": "it asks nothing",
    **dict.fromkeys(
        ("--html", "--markdown", "--junit", "--export", "--write-known"),
        "memconform report and conform write it of the joined result",
    ),
}
"""Flags that do not go together with --executor, and why."""
_PER_WORKER = 4
"""Shards for each worker by default: a lost one costs little, and the last ends soon after all."""
_OF_A_CLUSTER = 16
"""Shards by default where the workers are not known before."""
_PLAN = Path("shards", "plan.json")
_BUDGET = "--max-cost-usd"
_MANIFESTS = ("sdk.toml", "system.toml")
_HAS_RESULT = (
    ExitCode.OK,
    ExitCode.FAILED,
    ExitCode.DAEMON,
    ExitCode.BUDGET,
    ExitCode.INCONCLUSIVE,
)
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
class _Word:
    """A word of the command line: a flag with its value, or a word by itself."""

    flag: str
    """As the help names it; empty for a word by itself."""
    words: tuple[str, ...]
    """As they were given."""
    value: str | None
    is_path: bool = False
    """Whether the value may name a file or a folder."""


def spread(given: SpreadOptions) -> ExitCode:
    """Do the shards on a cluster, and join them.

    Raises:
        MemconformError: if the command cannot be divided or joined, or the cluster fails; what was
            measured is in the folder, from which the same command continues.
    """
    options = given.options
    configure_logs(options.log_level)
    address = ClusterAddress.parse(options.executor)
    # Secrets among them are masked in whatever is written from now on.
    request_headers(getattr(options, "header", ()))
    daemon_variables(getattr(options, "env", ()))
    parts = list(_parts(given.context))
    alone = _REFUSED_FLAGS
    if given.reference.startswith("wmb."):
        alone = alone | {"--answers": "answers.json is in the folder of the joined result"}
    for part in parts:
        if (why := alone.get(part.flag)) is not None:
            raise UsageError(
                f"{part.flag} does not go together with --executor: {why}",
                code="bad_option",
                hint=f"omit {part.flag}",
            )
    folder = _folder(given)
    shards = _shards(given, address, folder / _PLAN)
    work = _Work(given, address, parts, folder, shards)
    with work.claimed():
        run_to_end(work.carry_out())
        return work.join()


@dataclass(frozen=True, slots=True)
class _Work:
    given: SpreadOptions
    address: ClusterAddress
    parts: Sequence[_Word]
    folder: Path
    shards: Sequence[Shard]

    @property
    def _folders(self) -> ShardFolders:
        return ShardFolders(self.folder, len(self.shards))

    @property
    def _plan(self) -> Path:
        return self.folder / _PLAN

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Note what the folder has shards of, and keep other processes from it.

        Raises:
            UsageError: if it has those of another command line (`resume_mismatch`), or another
                process uses it (`output_in_use`).
        """
        self._plan.parent.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".shards.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"{self.folder} is in use by another command",
                    code="output_in_use",
                    hint="wait for its end, or give another --output",
                ) from error
            self._claim()
            try:
                yield
            finally:
                Path(lock.name).unlink(missing_ok=True)

    def _claim(self) -> None:
        words = [
            word
            for part in self.parts
            # Whoever has spent the budget continues with a larger one.
            if part.flag not in (*_WHOLE_FLAGS, _BUDGET)
            for word in part.words
        ]
        # Its digest: the words may be secret.
        digest = sha256(repr([*_verb(self.given.context), *words]).encode()).hexdigest()
        mine = {"command_sha256": digest, "shards": len(self.shards)}
        if self._plan.is_file() and json.loads(self._plan.read_text()) != mine:
            raise UsageError(
                f"{self._plan.parent} has shards of another command",
                code="resume_mismatch",
                hint="give another --output, or the same command and --shards as before; delete the"
                " folder to begin anew",
            )
        with replacing(self._plan) as target:
            target.write_json(mine)

    async def carry_out(self) -> None:
        """Have the shards done."""
        cancel_on_signals()
        command, inputs = self._command()
        sources = {name for name in inputs if name.endswith(_MANIFESTS)}
        bundle = make_bundle(inputs, sources) if not self.address.is_local else None
        here = str(working_folder()) if self.address.is_local else None
        flag = _resumes(self.given)

        def make_task(shard: Shard, run: str) -> ShardTask:
            return ShardTask(
                command,
                str(shard),
                run,
                continues_by_flag=flag,
                folder=here,
                calls=BUDGET_SERVER,
            )

        with closing(self._ledger()) as ledger:
            contexts = getattr(self.given.options, "contextualise_cache_dir", None)
            executor = ShardExecutor(
                self.address,
                self._folders,
                make_task,
                bundle,
                server=BudgetServer(ledger, contexts),
                originals={name: str(path.absolute()) for name, path in inputs.items()},
                report=lambda line: echo(Lines(f"  {line}"), err=True),
            )
            try:
                await executor.run(self.shards)
            except BaseException:
                if any(self._folders.path(shard).exists() for shard in self.shards):
                    echo(f"  to continue: the same command with --output {self.folder}", err=True)
                raise

    def _ledger(self) -> Ledger:
        """What all shards spend, also those of an earlier command with this folder."""
        shared = os.environ.get("MEMCONFORM_LEDGER")
        return Ledger(file=None if shared else self._plan.with_name("ledger.sqlite"))

    def _command(self) -> tuple[tuple[str, ...], dict[str, Path]]:
        """The command of each shard, and the files that it names there by `{inputs}`."""
        words, inputs = list(_verb(self.given.context)), dict[str, Path]()
        has_budget = any(_BUDGET in param.opts for param in self.given.context.command.params)
        if has_budget and (budget := read_budget(None, os.environ)) is not None:
            # A variable of this shell, and not of the workers; a flag follows, and wins.
            words += [_BUDGET, str(budget)]
        for part in self.parts:
            if part.flag in _WHOLE_FLAGS:
                continue
            if not self.address.is_local and (path := _input(part)) is not None:
                name = f"{len(inputs)}/{path.name}"
                is_source = path.name in _MANIFESTS
                inputs[name] = path.parent if is_source else path
                if part.flag == "--data" and (corpus := path.with_suffix("")).is_dir():
                    # Which belongs to it, without being named.
                    inputs[f"{name.partition('/')[0]}/{corpus.name}"] = corpus
                shipped = f"{{inputs}}/{name}" + (f"/{path.name}" if is_source else "")
                words += [part.flag, shipped] if part.flag else [shipped]
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
        failed = [shard for shard in self.shards if folders.exit_code(shard) not in _HAS_RESULT]
        if failed:
            shard, *more = failed
            others = f", as {plural(len(more), 'other shard')}" if more else ""
            raise DaemonError(
                f"shard {shard} ended with exit code {folders.exit_code(shard)}, and has no"
                f" result{others}",
                code="shard_failed",
                hint=f"its files are in {folders.path(shard)}; mend what they say: the same command"
                " does it again",
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
                require_agreement=getattr(options, "require_agreement", False),
            )
        )
        if code in (ExitCode.OK, ExitCode.FAILED, ExitCode.INCONCLUSIVE):
            remove_folder(self._plan.parent)
        else:
            echo(f"  to measure the rest: the same command with --output {self.folder}", err=True)
        return code


def _verb(context: click.Context) -> list[str]:
    return context.command_path.split()[1:]


def _folder(given: SpreadOptions) -> Path:
    """The results folder, which has the shards meanwhile."""
    output: Path | None = given.options.output
    # As `lme` does without --output.
    return output or Path("results") / f"lme-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


def _resumes(given: SpreadOptions) -> bool:
    """Whether a shard continues by --resume.

    A replay continues in its folder; conformance, and a run of several SDKs, begin anew.
    """
    if given.reference == "run.execution:run":
        return len(given.options.sdk) == 1 and ALL not in given.options.sdk
    return not given.reference.startswith(("lme.", "conform."))


def _shards(given: SpreadOptions, address: ClusterAddress, plan: Path) -> list[Shard]:
    """Raises UsageError `too_many_shards`, and as the command does of its data."""
    options = given.options
    work = WORK[given.reference](options, options.shards or 1)
    most = len(work.counts)
    with suppress(OSError, ValueError, KeyError):
        # Whatever the number of workers is now.
        begun = int(json.loads(plan.read_text())["shards"])
        if options.shards in (None, begun):
            return [Shard(number, begun) for number in range(1, begun + 1)]
    wanted = options.shards or (
        _PER_WORKER * address.workers if address.is_local else _OF_A_CLUSTER
    )
    if options.shards is None:
        # By haystack, if that is enough; what `--shards` names may divide one.
        wanted = min(wanted, most)
    deal(work.counts, wanted, work.unit)
    return [Shard(number, wanted) for number in range(1, wanted + 1)]


def _parts(context: click.Context) -> Iterator[_Word]:
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
            yield _Word("", (word,), word)
        elif param.is_flag or param.count:
            yield _Word(param.opts[0], (word,), None)
        elif equals:
            yield _Word(param.opts[0], (word,), value, is_path=_takes_path(param))
        else:
            following = next(words, "")
            words_of = (word, following)
            yield _Word(param.opts[0], words_of, following, is_path=_takes_path(param))


def _takes_path(param: click.Option) -> bool:
    """Whether an option takes a path; data, SDKs and systems may also be names."""
    return isinstance(param.type, click.Path) or param.opts[0] in ("--data", "--sdk", "--system")


def _input(part: _Word) -> Path | None:
    """The file or folder that a word names; None for any other word."""
    value = part.value or ""
    # The cache is here; workers need no copy.
    if not part.is_path or not value or part.flag == "--contextualise-cache-dir":
        return None
    if part.flag == "--sdk" and value in (known := known_sdks(working_folder())):
        return known[value]
    if part.flag == "--data" and not Path(value).exists():
        return find_data(value) if value in known_sources() else None
    path = Path(value)
    if path.is_dir() and part.flag in ("--sdk", "--system"):
        path /= f"{part.flag.removeprefix('--')}.toml"
    return path if path.exists() else None
