"""Commands whose modules are imported on use, so that `--help` and usage errors are fast."""

import gc
import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pkgutil import resolve_name
from typing import Any, ClassVar

import click

from memconform.cli.commands import Group
from memconform.errors import ExitCode, UsageError, limit_error, missing_extra, nearest

_MODULES = {
    "bench": ("rank_bm25",),
    "dask": ("distributed",),
    "fuzz": ("hypothesis", "hypothesis_jsonschema"),
    "load": ("hdrh",),
    "qa": ("nltk", "regex"),
    "report": ("jinja2", "vl_convert"),
}
"""Modules that commands import from each extra of pyproject.toml."""


class LazyGroup(Group):
    """A group that imports only the command that is called.

    `commands_by_name` maps each name to `module:attribute` below `memconform.cli`, and to the
    summary of that command for the group's help.
    """

    commands_by_name: ClassVar[Mapping[str, tuple[str, str]]]

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands_by_name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in self.commands_by_name:
            return None
        return import_command(self.commands_by_name[cmd_name][0])

    def summaries(self, ctx: click.Context) -> dict[str, str]:
        del ctx
        return {name: summary for name, (_, summary) in self.commands_by_name.items()}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands_by_name and not args[0].startswith("-"):
            suggestion = nearest(args[0], self.commands_by_name)
            ctx.fail(f"no command {args[0]!r}. {suggestion}".rstrip())
        return super().resolve_command(ctx, args)


def import_command(reference: str) -> click.Command:
    """Import a command, `module:attribute` below `memconform.cli`."""
    with _without_garbage_collection():
        command: click.Command = resolve_name(f"memconform.cli.{reference}")
    return command


_captured: ContextVar[list[tuple[str, Any]] | None] = ContextVar("captured", default=None)


@contextmanager
def captured() -> Iterator[list[tuple[str, Any]]]:
    """Have `carry_out` do nothing: what it is called with goes to the list, as long as this lasts.

    So another command learns what a command line asks for.
    """
    calls: list[tuple[str, Any]] = []
    token = _captured.set(calls)
    try:
        yield calls
    finally:
        _captured.reset(token)


def carry_out(reference: str, options: object, *, extra: str | None = None) -> ExitCode:
    """Import a command's implementation, `module:function` below `memconform.cli`, and call it.

    Raises:
        UsageError: if its extra is not installed (code `extra_missing`).
    """
    if (calls := _captured.get()) is not None:
        calls.append((reference, options))
        return ExitCode.OK
    if getattr(options, "executor", None) is not None:
        with _without_garbage_collection():
            require_extra("dask")
            spread = resolve_name("memconform.cli.spread.execution:SpreadOptions")
        options = spread(reference, options, click.get_current_context())
        reference = "spread.execution:spread"
    elif hasattr(options, "executor") and getattr(options, "shards", None) is not None:
        raise UsageError(
            "--shards is for --executor",
            code="bad_option",
            hint="--shard I/N does one of N shards; memconform plan --shards N shows them all",
        )
    with _without_garbage_collection():
        if extra is not None:
            require_extra(extra)
        function = resolve_name(f"memconform.cli.{reference}")
    code: ExitCode = function(options)
    return code


def require_extra(extra: str) -> None:
    """Import the modules of an extra.

    Raises:
        UsageError: if one is missing or cannot be imported (code `extra_missing`).
    """
    for module in _MODULES[extra]:
        try:
            importlib.import_module(module)
        except ImportError as error:
            if limit := limit_error(error):
                raise limit from error
            message = f"{extra} needs {error.name or module}, which cannot be imported"
            raise missing_extra(extra, message) from error


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Disable garbage collection: imports leave none, and searching takes a tenth of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
