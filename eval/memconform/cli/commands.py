"""Commands whose help has grouped options, examples and exit codes.

Libraries group options too, which takes 20 lines here. Of CPU time, `memconform --help` takes 59 ms
(0.40 of the bare libraries); cloup 4.0 would add 30 (0.6, where 0.5 is the limit), and a first help
by rich-click 1.9 takes 60 more than click's. click-option-group 0.5 adds 3 ms, but has no section
for examples.
"""

import copy
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from memconform.errors import ExitCode
from memconform.printing.logs import LEVELS, configure_logs
from memconform.printing.output import echo, reserved_stdout

_Command = TypeVar("_Command", bound=Callable[..., Any])

DAEMONS = "Which daemons"
SCORING = "Pass or fail"
OUTPUT = "Output"
HELP = "Help"
"""Groups that several commands share."""

ON_STDOUT = "memconform.on_stdout"
"""Key of a context's `meta`: the option that writes to standard output."""

EXIT_CODES_PAGE = "docs/EXIT-CODES.md"

_COMMON_CODES = {
    ExitCode.OK: "ok",
    ExitCode.USAGE: "usage",
    ExitCode.INTERNAL: "internal error",
    ExitCode.INTERRUPTED: "interrupted",
}
"""Exit codes of every command."""


class Option(click.Option):
    """An option that belongs to a group of its command's help.

    `aliases` are older names of the option, which still work but are not listed in the help. A flag
    with two names has aliases of the same form: `--old/--no-old`.
    """

    def __init__(
        self,
        param_decls: Sequence[str] | None = None,
        *,
        group: str = HELP,
        aliases: Sequence[str] = (),
        **attrs: Any,  # noqa: ANN401 - click's signature
    ) -> None:
        super().__init__([*(param_decls or ()), *aliases], **attrs)
        self.group = group
        self.aliases = tuple(aliases)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return click.Option.get_help_record(self._without_aliases(), ctx)

    def get_error_hint(self, ctx: click.Context | None) -> str:
        # click 8.1 declares that the context is never None.
        return click.Option.get_error_hint(self._without_aliases(), ctx)

    def _without_aliases(self) -> "Option":
        shown = copy.copy(self)
        older = {name for alias in self.aliases for name in alias.split("/")}
        shown.opts = [name for name in self.opts if name not in older]
        shown.secondary_opts = [name for name in self.secondary_opts if name not in older]
        return shown


def option(
    *names: str,
    group: str,
    aliases: Sequence[str] = (),
    **attrs: Any,  # noqa: ANN401 - click's signature
) -> Callable[[_Command], _Command]:
    """Declare an option of a group, otherwise as `click.option` does."""
    return click.option(*names, cls=Option, group=group, aliases=aliases, **attrs)


def _use_log_level(_: click.Context, __: click.Parameter, value: str) -> str:
    configure_logs(value)
    return value


def log_level_option(**attrs: Any) -> Option:  # noqa: ANN401 - click's signature
    """`--log-level`, which every command has."""
    return Option(
        ["--log-level"],
        group=OUTPUT,
        type=click.Choice(LEVELS),
        default="warning",
        callback=_use_log_level,
        help="Minimum level of log lines on standard error.",
        **attrs,
    )


def reject_other_flags(context: click.Context, kind: str, names: Collection[str]) -> None:
    """Raise click.UsageError for a flag that was given and does not apply to a kind of input.

    Args:
        context: that of the command, whose parameters have values.
        kind: what the flags were given with, for the message.
        names: the parameters that apply; those whose value no command reads always do.
    """
    others = [
        param
        for param in context.command.params
        if param.expose_value and param.name not in names and param.name is not None
    ]
    for param in others:
        if context.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE:
            applicable = [
                each.opts[0]
                for each in context.command.params
                if isinstance(each, click.Option) and each not in others and not each.hidden
            ]
            raise click.UsageError(
                f"{param.opts[0]} does not apply to {kind}, which takes {', '.join(applicable)}",
                context,
            )


class _NotEmpty(click.ParamType[Any]):
    """Refuses the value of a variable that was not set."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401 - as above
        if value == "":
            self.fail("it is empty", param, ctx)
        return super().convert(value, param, ctx)


class PathType(_NotEmpty, click.Path):
    """A path that is not empty: an empty one would be the current folder."""

    def __init__(self, **attrs: Any) -> None:  # noqa: ANN401 - click's signature
        super().__init__(path_type=Path, **attrs)


class _Reference(_NotEmpty, click.types.StringParamType):
    """Text that names a file, a folder or a result, and is not empty either."""


REFERENCE = _Reference()


class _Folder(PathType):
    """A folder that exists, or that can be made: no folder above it is a file."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        folder: Path = super().convert(value, param, ctx)
        for above in folder.parents:
            if above.is_file():
                self.fail(f"Directory {str(folder)!r} is below {str(above)!r}, a file.", param, ctx)
        return folder


FOLDER = _Folder(file_okay=False)
"""Type of an option that names a folder to write to."""


class Command(click.Command):
    """A command with grouped options, `examples`, and `exit_codes` besides the common ones."""

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - click's signature
        examples: Sequence[str] = (),
        exit_codes: Mapping[ExitCode, str] | None = None,
        **attrs: Any,  # noqa: ANN401 - click's signature
    ) -> None:
        super().__init__(*args, **attrs)
        self.context_settings.setdefault("show_default", True)
        if not isinstance(self, click.Group) and all(p.name != "log_level" for p in self.params):
            self.params.append(log_level_option(expose_value=False))
        self.examples = tuple(examples)
        codes = _COMMON_CODES | dict(exit_codes or {})
        self.exit_codes = {code: codes[code] for code in sorted(codes)}

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Carry the command out; if an option writes to standard output, nothing else does.

        Raises:
            click.UsageError: for --dry-run beside an option that writes its report to standard
                output: a forecast has none, and a program would read nothing.
        """
        if ctx.params.get("dry_run"):
            if option := ctx.meta.get(ON_STDOUT):
                message = f"--dry-run asks nothing, so {option} has no report to print: omit it"
                raise click.UsageError(message, ctx)
            if file := ctx.params.get("json_file"):
                echo(f"{file} is not written: --dry-run asks nothing", err=True)
        with reserved_stdout() if ON_STDOUT in ctx.meta else nullcontext():
            return super().invoke(ctx)

    @property
    def summary(self) -> str:
        """First paragraph of the help, on one line."""
        return " ".join(inspect.cleandoc(self.help or "").partition("\n\n")[0].split())

    @property
    def description(self) -> str:
        """Help without its summary."""
        return inspect.cleandoc(self.help or "").partition("\n\n")[2]

    def options_by_group(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return the visible options by group, in the order of their declaration."""
        groups: dict[str, list[click.Option]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and not param.hidden:
                group = param.group if isinstance(param, Option) else HELP
                groups.setdefault(group, []).append(param)
        return groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)
        for group, options in self.options_by_group(ctx).items():
            records = [record for param in options if (record := param.get_help_record(ctx))]
            with formatter.section(group):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        if self.examples:
            with formatter.section("Examples"):
                indent = " " * formatter.current_indent
                for example in self.examples:
                    formatter.write(textwrap.indent(example, indent) + "\n")
        with formatter.section(f"Exit codes ({EXIT_CODES_PAGE})"):
            formatter.write_dl([(str(int(code)), text) for code, text in self.exit_codes.items()])


class Group(Command, click.Group):
    """A group of commands, listed with their summaries."""

    command_class = Command

    def summaries(self, ctx: click.Context) -> dict[str, str]:
        """Return the summary of each command."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        return {n: child.summary for n, child in commands.items() if isinstance(child, Command)}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries(ctx).items()))


def walk(context: click.Context) -> Iterator[tuple[click.Context, Command]]:
    """Yield a command and all its subcommands, each after its group; imports them.

    Raises:
        TypeError: if one of them is not a `Command`.
    """
    command = context.command
    if not isinstance(command, Command):
        raise TypeError(f"{context.command_path} needs cls=Command")
    yield context, command
    if isinstance(command, Group):
        for name in command.list_commands(context):
            if child := command.get_command(context, name):
                settings = child.context_settings
                yield from walk(click.Context(child, context, info_name=name, **settings))
