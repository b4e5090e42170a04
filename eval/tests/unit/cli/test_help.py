"""The help of every command: a summary, grouped options, examples that parse, exit codes."""

import ast
import re
import shlex
from pathlib import Path
from pkgutil import resolve_name

import click
import pytest
from click.testing import CliRunner

import memconform.cli
from memconform.cli.commands import EXIT_CODES_PAGE, HELP, Command, Group, Option, option, walk
from memconform.cli.lme.plan import _EMPTY_SCOPES
from memconform.cli.lme.values import SCOPES
from memconform.cli.main import cli
from memconform.errors import ExitCode

_WIDTH = 80
_DESCRIPTION_SENTENCES = 3

_READ_BY_EXAMPLES = ("longmemeval_oracle.json", "longmemeval_s.json")
"""Files that have to exist for the examples to parse."""
_FOLDERS_OF_EXAMPLES = ("cases", "results")


_ROOT = click.Context(cli, info_name="memconform", **cli.context_settings)
_CONTEXTS = {context.command_path: context for context, _ in walk(_ROOT)}


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


def test_every_option_belongs_to_a_named_group() -> None:
    faults = []
    for path, context in _CONTEXTS.items():
        command = _command(path)
        for param in command.params:
            if not isinstance(param, click.Option):
                continue
            if not isinstance(param, Option):
                faults.append(f"{path} {param.name}: declare it with `option`")
            elif not param.group or (param.group == HELP and param.name != "version"):
                faults.append(f"{path} {param.name}: has no group of its own")
        faults += [
            f"{path} {'/'.join(entry.opts)}: has no help"
            for group in command.options_by_group(context).values()
            for entry in group
            if not entry.help
        ]
    assert faults == []


def test_the_help_is_a_summary_sections_examples_and_exit_codes() -> None:
    faults = []
    for path, context in _CONTEXTS.items():
        command = _command(path)
        text = command.get_help(context)
        conditions = {
            "the summary is a sentence": command.summary.endswith("."),
            "the summary is one sentence": command.summary.count(". ") == 0,
            "the description is short": (
                command.description.replace("\n", " ").count(". ") < _DESCRIPTION_SENTENCES
            ),
            "every option has a group": "\nOptions:\n" not in text,
            "it has examples": "\nExamples:\n" in text,
            "it has exit codes": f"\nExit codes ({EXIT_CODES_PAGE}):\n" in text,
            "it is not too wide": max(map(len, text.splitlines())) <= _WIDTH,
        }
        faults += [
            f"{path}: it is untrue that {name}" for name, holds in conditions.items() if not holds
        ]
    assert faults == []


@pytest.mark.parametrize("path", ["memconform lme run", "memconform lme tri"])
def test_rank_by_stands_with_the_flags_of_the_search(path: str) -> None:
    groups = _command(path).options_by_group(_CONTEXTS[path])
    [group] = [name for name, options in groups.items() if "rank_by" in [o.name for o in options]]
    assert group == "Retrieval"
    assert "actor_scope" in [option.name for option in groups[group]]


def test_the_help_of_scopes_says_what_becomes_of_every_name() -> None:
    """It said that raw_lme is raw, and nothing of the names that are refused."""
    [option] = [
        each for each in _command("memconform lme run").params if each.name == "actor_scope"
    ]
    assert isinstance(option, click.Option)
    taken, refused = (option.help or "").split("; ")
    assert "raw_lme for raw/lme/" in taken
    assert set(_EMPTY_SCOPES) <= set(re.findall(r"\w+", refused))
    assert set(re.findall(r"\w+", taken)) >= set(SCOPES) - set(_EMPTY_SCOPES)


def test_a_command_has_examples_of_its_own() -> None:
    faults = []
    for path in _CONTEXTS:
        examples = _command(path).examples
        own = path if path != "memconform parity compare" else "memconform parity"
        if not 1 <= len(examples) <= 3:
            faults.append(f"{path}: {len(examples)} examples")
        faults += [f"{path}: {line}" for line in examples if not line.startswith(own)]
    assert faults == []


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


@pytest.mark.usefixtures("_example_folder")
def test_examples_parse() -> None:
    faults = []
    for path in _CONTEXTS:
        for example in _command(path).examples:
            try:
                _parse(example)
            except click.ClickException as error:
                faults.append(f"{example}: {error.format_message()}")
    assert faults == []


@pytest.mark.parametrize(
    "line",
    [
        "memconform run --sdk go --no-such-flag",
        "memconform run --sdk",
        "memconform conform explain",
        "memconform datasets frobnicate",
        "memconform run --sdk go --top-k 0",
    ],
)
def test_detects_an_example_that_does_not_parse(line: str) -> None:
    with pytest.raises(click.UsageError):
        _parse(line)


def test_a_list_of_commands_has_their_summaries() -> None:
    faults = []
    for path in _CONTEXTS:
        parent, _, name = path.rpartition(" ")
        if not parent:
            continue
        group = _CONTEXTS[parent]
        assert isinstance(group.command, Group)
        if group.command.summaries(group).get(name) != _command(path).summary:
            faults.append(path)
    assert faults == []


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
        ("memconform run", "--data", "--dataset"),
        ("memconform score", "--data", "--dataset"),
        ("memconform diff", "--data", "--dataset"),
        ("memconform bench", "--mode", "--modes"),
        ("memconform lme tri", "--data", "--dataset"),
        ("memconform lme run", "--mode", "--retrieval-mode"),
        ("memconform lme run", "--sample", "--sample-size"),
        ("memconform lme run", "--top-k", "--actor-topk"),
        ("memconform lme run", "--candidate-k", "--actor-candidatek"),
        ("memconform lme run", "--rerank-top-n", "--actor-rerank-topn"),
        ("memconform conform findings", "--show", "--limit"),
    ],
)
def test_renamed_options(path: str, name: str, older: str) -> None:
    [renamed] = [param for param in _command(path).params if name in param.opts]
    assert isinstance(renamed, Option)
    assert renamed.aliases == (older,)
    shown = _command(path).get_help(_CONTEXTS[path])
    assert not [alias for alias in older.split("/") if alias in shown]


def test_a_flag_means_the_same_in_every_command() -> None:
    """`-k`, `--modes`, `--retrieval-mode` and `--sample-size` were names of what others had."""
    helps: dict[str, set[str]] = {}
    for path in _CONTEXTS:
        for param in _command(path).params:
            for name in ("--limit", "--resume"):
                if isinstance(param, Option) and name in param.opts and name not in param.aliases:
                    helps.setdefault(name, set()).add(str(param.help).split()[0])
    assert helps["--limit"] == {"Ask"}
    assert helps["--resume"] == {"Resume", "Continue"}


def test_every_lazily_imported_name_exists() -> None:
    """`conform` ended in a traceback: its function had another name, which no type checker sees."""
    named = []
    for path in sorted(Path(memconform.cli.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            prefix = {"carry_out": "memconform.cli.", "schema": "memconform."}.get(node.func.id)
            match node.args:
                case [ast.Constant(value=str(reference)), *_] if prefix:
                    named.append(prefix + reference)
    assert len(named) > 10
    assert all(callable(resolve_name(name)) for name in named)
