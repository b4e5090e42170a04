"""Verbs whose modules are imported when they are called: `--help` and a wrong flag are quick."""

import gc
import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pkgutil import resolve_name
from typing import ClassVar

import click

from memconform.cli.grouping import Group
from memconform.errors import ExitCode, missing_extra, nearest

_MODULES = {
    "bench": ("numpy", "rank_bm25", "scipy"),
    "fuzz": ("hypothesis", "hypothesis_jsonschema"),
    "parity": ("numpy",),
}
"""What each extra of pyproject.toml brings that a verb imports."""


class LazyGroup(Group):
    """A group of commands, of which only the one that is called is imported.

    `commands_by_name` is where each is, `module:attribute` below `memconform.cli`, and what the
    group's help says of it, which is the summary of that command.
    """

    commands_by_name: ClassVar[Mapping[str, tuple[str, str]]]

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands_by_name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in self.commands_by_name:
            return None
        reference, _ = self.commands_by_name[cmd_name]
        with _without_garbage_collection():
            command: click.Command = resolve_name(f"memconform.cli.{reference}")
        return command

    def summaries(self, ctx: click.Context) -> dict[str, str]:
        del ctx
        return {name: summary for name, (_, summary) in self.commands_by_name.items()}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands_by_name and not args[0].startswith("-"):
            known = nearest(args[0], self.commands_by_name)
            ctx.fail(f"no command {args[0]!r}. {known}".rstrip())
        return super().resolve_command(ctx, args)


def carry_out(reference: str, options: object, *, extra: str | None = None) -> ExitCode:
    """Import what a verb does, `module:function` below `memconform.cli`, and do it.

    Raises:
        UsageError: where the extra that it needs is not installed.
    """
    with _without_garbage_collection():
        if extra is not None:
            require_extra(extra)
        function = resolve_name(f"memconform.cli.{reference}")
    code: ExitCode = function(options)
    return code


def require_extra(extra: str) -> None:
    """Import what an extra brings; raises UsageError where that is missing, or cannot be."""
    for module in _MODULES[extra]:
        try:
            importlib.import_module(module)
        except ImportError as error:
            told = f"{extra} needs {error.name or module}, which cannot be imported"
            raise missing_extra(extra, told) from error


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Imports leave no garbage; to look for it in all that they make is a tenth of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
