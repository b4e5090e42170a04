"""docs/EXIT-CODES.md has every exit code, and those that the help of each command names."""

import click

from memconform.cli.commands import walk
from memconform.cli.main import cli
from memconform.errors import ExitCode, gravest
from tests.conftest import CHECKOUT

_EXIT_CODES = (CHECKOUT / "docs" / "EXIT-CODES.md").read_text(encoding="utf-8")
_COLUMNS = tuple(ExitCode(number) for number in range(7))
_GROUPS = (
    "memconform",
    *(f"memconform {name}" for name in ("cache", "datasets", "judge", "lme", "wmb")),
)
_EVERYWHERE = ("usage", "ok")
"""What the page says once for all commands."""


def _table(heading: str) -> list[list[str]]:
    """The rows of the table below a heading, without its head."""
    section = _EXIT_CODES.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_exit_code_is_explained() -> None:
    explained = {row[0]: row[1] for row in _table("What a code means")}
    assert explained == {str(int(code)): f"`{code.name}`" for code in ExitCode}


def test_the_precedence_is_that_of_the_program() -> None:
    listed = _EXIT_CODES.partition("the first of this list wins:\n")[2].partition(".")[0]
    codes = [ExitCode(int(number)) for number in listed.split(", ")]
    assert set(codes) == set(ExitCode)
    assert [gravest(codes[i:]) for i in range(len(codes))] == codes


def test_the_page_has_the_codes_of_each_command() -> None:
    rows = {
        name.strip(" `"): row[1:]
        for row in _table("Which command returns which")
        for name in row[0].split(",")
    }
    root = click.Context(cli, info_name="memconform", **cli.context_settings)
    commands = {
        context.command_path.removeprefix("memconform "): command
        for context, command in walk(root)
        # These do nothing without one of their commands.
        if context.command_path not in _GROUPS
    }
    assert set(rows) == set(commands)
    for name, command in commands.items():
        for code, cell in zip(_COLUMNS, rows[name], strict=True):
            said = command.exit_codes.get(code, "")
            assert bool(cell) or said in ("", *_EVERYWHERE), f"{name}: {code.name} is {said}"
            assert not cell or code in command.exit_codes, f"{name} --help lacks {code.name}"
        beyond = set(command.exit_codes) - {*_COLUMNS, ExitCode.INTERNAL, ExitCode.INTERRUPTED}
        assert not beyond
