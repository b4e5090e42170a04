"""The help of every command: a summary, grouped options, examples that parse, exit codes."""

import ast
import shlex
from pathlib import Path
from pkgutil import resolve_name

import click
import pytest
from click.testing import CliRunner

import memconform.cli
from memconform.cli.grouping import EXIT_CODES_PAGE, HELP, Command, Group, Option, option, walk
from memconform.cli.main import cli
from memconform.errors import ExitCode

_WIDTH = 80
_DESCRIPTION_SENTENCES = 3

_READ_BY_EXAMPLES = ("longmemeval_oracle.json", "longmemeval_s.json")
"""Files that have to exist for the examples to parse."""
_FOLDERS_OF_EXAMPLES = ("cases", "results")


_ROOT = click.Context(cli, info_name="memconform", **cli.context_settings)
_CONTEXTS = {context.command_path: context for context, _ in walk(_ROOT)}

every_command = pytest.mark.parametrize("path", _CONTEXTS)


def _command(path: str) -> Command:
    command = _CONTEXTS[path].command
    assert isinstance(command, Command)
    return command


def test_walks_commands_at_each_depth() -> None:
    assert {"memconform", "memconform run", "memconform conform replay"} <= set(_CONTEXTS)


def test_a_command_without_groups_is_refused() -> None:
    group = Group("group", commands=[click.Command("bare")])
    with pytest.raises(TypeError, match="group bare needs cls=Command"):
        list(walk(click.Context(group, info_name="group")))


@every_command
def test_every_option_belongs_to_a_named_group(path: str) -> None:
    command = _command(path)
    for param in command.params:
        if isinstance(param, click.Option):
            assert isinstance(param, Option), f"{path} {param.name}: declare it with `option`"
            assert param.group
            assert param.group != HELP or param.name == "version"
    shown = [
        entry for group in command.options_by_group(_CONTEXTS[path]).values() for entry in group
    ]
    assert [entry.opts for entry in shown if not entry.help] == []


@every_command
def test_the_help_is_a_summary_sections_examples_and_exit_codes(path: str) -> None:
    command = _command(path)
    assert command.summary.endswith(".")
    assert command.summary.count(". ") == 0
    assert command.description.replace("\n", " ").count(". ") < _DESCRIPTION_SENTENCES
    text = command.get_help(_CONTEXTS[path])
    assert "\nOptions:\n" not in text
    assert "\nExamples:\n" in text
    assert f"\nExit codes ({EXIT_CODES_PAGE}):\n" in text
    assert max(map(len, text.splitlines())) <= _WIDTH


@pytest.mark.parametrize("path", ["memconform lme run", "memconform lme tri"])
def test_rank_by_stands_with_the_flags_of_the_search(path: str) -> None:
    groups = _command(path).options_by_group(_CONTEXTS[path])
    [group] = [name for name, options in groups.items() if "rank_by" in [o.name for o in options]]
    assert group == "Retrieval"
    assert "actor_scope" in [option.name for option in groups[group]]


@every_command
def test_a_command_has_examples_of_its_own(path: str) -> None:
    examples = _command(path).examples
    assert 1 <= len(examples) <= 3
    own = path if path != "memconform parity compare" else "memconform parity"
    assert all(example.startswith(own) for example in examples)


@pytest.fixture
def _example_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _READ_BY_EXAMPLES:
        (tmp_path / name).touch()
    for name in _FOLDERS_OF_EXAMPLES:
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)


def _parse(line: str) -> None:
    """Parse a command line as the program does, without running it."""
    program, *args = shlex.split(line.replace("\\\n", " "))
    command: click.Command = cli
    context: click.Context | None = None
    name: str | None = program
    while True:
        context = command.make_context(name, args, parent=context)
        args = [*context._protected_args, *context.args]
        if not isinstance(command, click.Group) or not args:
            return
        name, subcommand, args = command.resolve_command(context, args)
        assert subcommand is not None
        command = subcommand


@every_command
@pytest.mark.usefixtures("_example_folder")
def test_examples_parse(path: str) -> None:
    for example in _command(path).examples:
        _parse(example)


@pytest.mark.parametrize(
    "line",
    [
        "memconform run --sdk go --no-such-flag",
        "memconform run",
        "memconform conform explain",
        "memconform datasets frobnicate",
        "memconform run --sdk go --top-k 0",
    ],
)
def test_detects_an_example_that_does_not_parse(line: str) -> None:
    with pytest.raises(click.UsageError):
        _parse(line)


@every_command
def test_a_list_of_commands_has_their_summaries(path: str) -> None:
    parent, _, name = path.rpartition(" ")
    if parent:
        group = _CONTEXTS[parent]
        assert isinstance(group.command, Group)
        assert group.command.summaries(group)[name] == _command(path).summary


def test_an_older_name_works_and_is_not_shown() -> None:
    seen: list[str] = []

    @click.command(cls=Command)
    @option("--output", group="Output", aliases=["--into"], required=True, help="Where.")
    def command(output: str) -> None:
        seen.append(output)

    runner = CliRunner()
    assert runner.invoke(command, ["--into", "a"]).exit_code == 0
    assert runner.invoke(command, ["--output", "b"]).exit_code == 0
    assert seen == ["a", "b"]
    assert "--into" not in runner.invoke(command, ["--help"]).output
    missing = runner.invoke(command, [])
    assert missing.exit_code == ExitCode.USAGE
    assert "Missing option '--output'" in missing.output


def test_an_older_pair_of_names_works_and_is_not_shown() -> None:
    values: list[bool] = []

    @click.command(cls=Command)
    @option(
        "--new/--no-new", group="Output", aliases=["--old/--no-old"], default=True, help="Which."
    )
    def command(*, new: bool) -> None:
        values.append(new)

    runner = CliRunner()
    for flag in ("--old", "--no-old", "--new", "--no-new"):
        assert runner.invoke(command, [flag]).exit_code == 0
    assert values == [True, False, True, False]
    shown = runner.invoke(command, ["--help"]).output
    assert "--new / --no-new" in shown
    assert "old" not in shown


@pytest.mark.parametrize(
    ("path", "name", "older"),
    [
        ("memconform fuzz", "--output", "--into"),
        ("memconform mutate", "--sdk", "--against"),
        ("memconform run", "--reverify", "--reproof/--no-reproof"),
    ],
)
def test_renamed_options(path: str, name: str, older: str) -> None:
    [renamed] = [param for param in _command(path).params if name in param.opts]
    assert isinstance(renamed, Option)
    assert renamed.aliases == (older,)
    shown = _command(path).get_help(_CONTEXTS[path])
    assert not [alias for alias in older.split("/") if alias in shown]


def test_every_lazily_imported_name_exists() -> None:
    """`conform` ended in a traceback: its function had another name, which no type checker sees."""
    named = []
    for path in sorted(Path(memconform.cli.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            prefix = {"carry_out": "memconform.cli.", "schema": "memconform."}.get(node.func.id)
            match node.args:
                case [ast.Constant(value=str(reference)), *_] if prefix:
                    named.append(prefix + reference)
    assert len(named) > 10
    assert all(callable(resolve_name(name)) for name in named)
