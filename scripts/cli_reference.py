"""Writes docs/CLI.md from the program's commands: what `--help` says, on one page."""

import re
from collections.abc import Iterator
from pathlib import Path

import click

from memconform.cli.grouping import Command, walk
from memconform.cli.main import cli

PAGE = Path(__file__).parents[1] / "docs" / "CLI.md"

_HEAD = """\
<!-- Made by scripts/cli_reference.py from eval/memconform/cli; do not edit. -->

# Command line

Every command, as `--help` shows it. [EXIT-CODES.md](EXIT-CODES.md) explains the exit codes.
"""


def rendered() -> str:
    """The text of the page."""
    root = click.Context(cli, info_name="memconform", **cli.context_settings)
    pages = list(walk(root))
    contents = [_entry(context, each) for context, each in pages]
    sections = ["\n".join(_section(context, each)) for context, each in pages]
    return "\n".join([_HEAD, *contents, "", *sections])


def _entry(context: click.Context, command: Command) -> str:
    name = context.command_path
    return f"- [`{name}`](#{name.replace(' ', '-')}): {_text(command.summary)}"


def _section(context: click.Context, command: Command) -> Iterator[str]:
    depth = context.command_path.count(" ")
    yield f"{'#' * max(depth + 1, 2)} {context.command_path}"
    yield f"\n{_text(command.summary)}"
    if command.description:
        yield f"\n{_text(' '.join(command.description.split()))}"
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"\n```\n{usage}\n```"
    for group, options in command.options_by_group(context).items():
        rows = [_row(option, context) for option in options if "--help" not in option.opts]
        if rows:
            yield f"\n**{group}**\n\n| flag | value | default | help |\n| --- | --- | --- | --- |"
            yield from rows
    if command.examples:
        yield "\n```\n" + "\n".join(command.examples) + "\n```"
    codes = " · ".join(f"{int(code)} {what}" for code, what in command.exit_codes.items())
    yield f"\nExit codes: {_text(codes)}\n"


def _row(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    if record is None:
        raise ValueError(f"{option.name} of {context.command_path} is hidden")
    extra = option.get_help_extra(context)
    # The record has the names without aliases, then the value.
    names = re.findall(r"--?[a-z][a-z-]*", record[0].partition(option.make_metavar(context))[0])
    value = "" if option.is_flag else option.make_metavar(context).strip("[]")
    if "range" in extra:
        value += f", {extra['range']}"
    default = "required" if option.required else extra.get("default", "").strip("()")
    text = option.help or ""
    if "envvars" in extra:
        text += f" Environment variable: {', '.join(extra['envvars'])}."
    cells = [
        ", ".join(f"`{name}`" for name in names),
        f"`{_cell(value)}`" if value else "",
        f"`{_cell(default)}`" if _is_literal(option, default) else _text(default),
        _cell(_text(text)),
    ]
    return f"| {' | '.join(cells)} |"


def _is_literal(option: click.Option, default: str) -> bool:
    return bool(default) and not option.required and not isinstance(option.show_default, str)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _text(text: str) -> str:
    """The help's words in Markdown, in which `<` would begin a tag and `*` emphasis."""
    return text.replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(rendered(), encoding="utf-8")
    print(PAGE.name)
