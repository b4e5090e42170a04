"""Every command in a text that the program prints exists, with the flags that it has there."""

import ast
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

import click
import pytest

import memconform
from memconform.cli.main import cli
from memconform.printing.commands import (
    resume_command,
    resume_folder_command,
    suggested_command,
)

_ROOT = Path(memconform.__file__).parent

_VALUE = "VALUE"
"""Stands for what is known only when the text is printed."""


class _Texts(ast.NodeVisitor):
    """The texts of a module that are no docstrings, and the arguments of `suggested_command`."""

    def __init__(self) -> None:
        self.texts: list[tuple[int, str]] = []
        self.calls: list[tuple[int, list[str]]] = []

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.texts.append((node.lineno, node.value))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        parts = (str(p.value) if isinstance(p, ast.Constant) else _VALUE for p in node.values)
        self.texts.append((node.lineno, "".join(parts)))
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "suggested_command":
            words = [a.value if isinstance(a, ast.Constant) else _VALUE for a in node.args]
            self.calls.append((node.lineno, [str(word) for word in words]))
        else:
            self.generic_visit(node)


def _commands_in(text: str) -> Iterator[list[str]]:
    """The words of each command in a text.

    Where the name is the subject of a sentence, a word follows that is no command, nor like one.
    """
    verbs = cli.list_commands(click.Context(cli))
    # An example may go over several lines.
    joined = re.sub(r"\\\n\s*", " ", text)
    for quoted, words in re.findall(r"(`?)\bmemconform ([a-z][^`\n;,()]*)", joined):
        command = words.rstrip(" .:").split()
        if quoted or get_close_matches(command[0], verbs, cutoff=0.8):
            yield command


def _printed() -> Iterator[tuple[str, list[str]]]:
    """Each command with its place."""
    for path in sorted(_ROOT.rglob("*.py")):
        texts = _Texts()
        texts.visit(ast.parse(path.read_text(encoding="utf-8")))
        found = [(line, words) for line, text in texts.texts for words in _commands_in(text)]
        found += [(line, words) for line, words in texts.calls if words[:1] not in ([], [_VALUE])]
        for line, words in found:
            yield f"{path.relative_to(_ROOT).as_posix()}:{line}: {' '.join(words)}", words


def _fault(words: Sequence[str]) -> str:
    """Why a command cannot be called; empty if it can."""
    command: click.Command = cli
    rest = list(words)
    verbs = cli.list_commands(click.Context(cli))
    if rest[0] == "plan" and (divided := [n for n, w in enumerate(rest) if n and w in verbs]):
        # Behind its own flags comes the command that it divides.
        return _fault(rest[: divided[0]]) or _fault(rest[divided[0] :])
    while isinstance(command, click.Group):
        context = click.Context(command)
        known = command.list_commands(context)
        # Of one in between, such as `conform` or `parity`, a text may give arguments alone.
        if not rest or (rest[0] not in known and command is not cli):
            break
        found = command.get_command(context, rest.pop(0)) if rest[0] in known else None
        if found is None:
            return f"no command {words[0]!r}"
        command = found
    flags = {"--help", "--", "-"}
    inner = [command]
    if isinstance(command, click.Group) and "compare" in command.commands:
        inner.append(command.commands["compare"])
    for parameter in (parameter for each in inner for parameter in each.params):
        flags |= {*parameter.opts, *parameter.secondary_opts}
    unknown = (
        w for w in rest if w.startswith("-") and w != "-" and w.partition("=")[0] not in flags
    )
    return "".join(f"no flag {word}" for word in unknown)


def test_printed_commands_exist_with_their_flags() -> None:
    assert {name: fault for name, words in _printed() if (fault := _fault(words))} == {}


def test_commands_are_found_where_they_are_printed() -> None:
    names = [name for name, _ in _printed()]
    for expected in (
        "cli/conform/execution.py",
        "cli/conform/cases.py",
        "datasets/sources.py",
        "reports/parity.py",
        "scoring/judge/tally.py",
    ):
        assert any(name.startswith(f"{expected}:") for name in names), expected


@pytest.mark.parametrize(
    "text",
    [
        "try `memconform nothing`, or not",
        "try memconform conforn --sdk mine",
        "every check: memconform conform findings RUN --resume X; or not",
        "use memconform lme tri --nope",
    ],
)
def test_a_command_that_does_not_exist_is_noticed(text: str) -> None:
    [command] = _commands_in(text)
    assert _fault(command)


def test_a_sentence_is_no_command() -> None:
    assert list(_commands_in("a daemon that memconform does not start")) == []


def test_a_command_is_quoted_for_a_shell() -> None:
    line = suggested_command("parity", "show", "a b", Path("my results") / "r.json")
    assert line == "memconform parity show 'a b' 'my results/r.json'"


@pytest.mark.parametrize("flags", [[], ["--resume", "OLD"], ["--resume=OLD"]])
def test_the_command_that_continues_a_run_is_the_one_that_began_it(flags: list[str]) -> None:
    began = ["/bin/memconform", "bench", *flags, "--output", "out"]
    assert resume_command(began, "NEW") == "memconform bench --output out --resume NEW"


@pytest.mark.parametrize(
    ("flags", "given"),
    [
        ("", " --output 'my results'"),
        (" --output out", ""),
        (" --output=out", ""),
    ],
)
def test_the_command_that_continues_a_folder_names_it(flags: str, given: str) -> None:
    began = ["/bin/memconform", "lme", "run", "--header", "a: b", *flags.split()]
    expected = f"memconform lme run --header 'a: b'{flags}{given}"
    assert resume_folder_command(began, Path("my results")) == expected
