"""Every command takes the common flags, and standard output has one writer."""

import copy
import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from memconform.cli.commands import ON_STDOUT, Command, Option, walk
from memconform.cli.main import cli
from memconform.cli.options import json_file, markdown, quiet
from memconform.errors import ResultsError
from memconform.printing.console import SafeConsole
from memconform.printing.output import echo
from memconform.storage.sink import replacing

_ROOT = click.Context(cli, info_name="memconform", **cli.context_settings)

_SHOWS = "prints what was asked for, without progress"
_SERVES = "serves until Ctrl-C, and prints its address"
_NOT_QUIET = {
    "cache clear": _SHOWS,
    "cache info": _SHOWS,
    "cache prune": _SHOWS,
    "client explain": _SHOWS,
    "client list": _SHOWS,
    "client replay": _SHOWS,
    "conform explain": _SHOWS,
    "conform findings": _SHOWS,
    "conform lint": _SHOWS,
    "conform list": _SHOWS,
    "conform replay": _SHOWS,
    "datasets compile-history": _SHOWS,
    "datasets convert": _SHOWS,
    "datasets info": _SHOWS,
    "datasets lint": _SHOWS,
    "datasets list": _SHOWS,
    "info": _SHOWS,
    "init": "prints what it saw and wrote, without progress",
    "judge metrics": _SHOWS,
    "parity show": _SHOWS,
    "plan": _SHOWS,
    "report": _SHOWS,
    "upstream": _SERVES,
    "view": _SERVES,
}
"""Commands without --quiet, with the reason."""


def _commands() -> dict[str, set[str]]:
    """Each command that does something itself, with the names of its options."""
    return {
        context.command_path.removeprefix("memconform "): {
            name for param in context.command.params for name in param.opts
        }
        for context, command in walk(_ROOT)
        if not isinstance(command, click.Group) or command.invoke_without_command
    }


def test_every_command_takes_a_log_level() -> None:
    assert [name for name, options in _commands().items() if "--log-level" not in options] == []


def test_every_command_that_shows_progress_or_tables_takes_quiet() -> None:
    """`conform` had no --quiet (issue 36)."""
    commands = _commands()
    loud = {name for name, options in commands.items() if "--quiet" not in options}
    assert loud == set(_NOT_QUIET)


def test_every_report_can_be_printed_and_every_result_goes_to_a_folder() -> None:
    commands = _commands()
    assert len([name for name, options in commands.items() if "--json" in options]) >= 18
    for context, command in walk(_ROOT):
        for param in command.params:
            takes_file = isinstance(param, Option) and param.callback is not None
            if takes_file and "--json" in param.opts:
                assert param.metavar == "FILE", context.command_path
                assert "- is standard output" in str(param.help), context.command_path


@click.command(cls=Command)
@json_file
@markdown
@quiet
def _verb(json_file: str | None, markdown: str | None, *, quiet: bool) -> None:
    from memconform.cli.output_files import json_target, text_target  # noqa: PLC0415 - as commands do

    echo("for people")
    SafeConsole().print("a table")
    if json_file is not None:
        with json_target(json_file) as target:
            target.write_json({"quiet": quiet})
    if markdown is not None:
        with text_target(markdown) as target:
            target.write_text("text\n")
    echo("the end")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("flag", ["--json", "--markdown"])
def test_a_report_on_standard_output_is_alone_there(flag: str, folder: Path) -> None:
    """Each command decided for itself, and some printed their banner between the lines."""
    ended = CliRunner().invoke(_verb, [flag, "-"])
    assert ended.exit_code == 0
    expected = '{\n "quiet": false\n}\n' if flag == "--json" else "text\n"
    assert ended.stdout == expected
    assert ended.stderr.split("\n") == ["for people", "a table", "the end", ""]
    assert list(folder.iterdir()) == []
    # Standard output is free again for the next command of the same process.
    assert CliRunner().invoke(_verb, []).stdout == "for people\na table\nthe end\n"


def test_two_reports_on_standard_output_are_refused() -> None:
    ended = CliRunner().invoke(_verb, ["--json", "-", "--markdown", "-"])
    assert ended.exit_code == 2
    assert "--json writes to standard output already" in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("info",),
        ("conform", "list"),
        ("datasets", "lint", "smoke"),
    ],
)
def test_commands_without_a_daemon_print_json_alone(
    arguments: tuple[str, ...], folder: Path
) -> None:
    ended = CliRunner().invoke(cli, [*arguments, "--json", "-"])
    assert ended.exit_code == 0, ended.output
    assert isinstance(json.loads(ended.stdout), dict | list)
    assert list(folder.iterdir()) == []


def test_no_file_is_ever_named_dash(folder: Path) -> None:
    """`conform --markdown -` and `--junit -` wrote one (issue 36)."""
    with pytest.raises(ResultsError, match="no file name"), replacing(Path("-")):
        pass
    assert list(folder.iterdir()) == []


_FORECASTING = sorted(
    name for name, flags in _commands().items() if {"--dry-run", "--json"} <= flags
)


def test_several_commands_forecast() -> None:
    assert len(_FORECASTING) > 3


@pytest.mark.parametrize("name", _FORECASTING)
def test_a_forecast_has_no_report_to_print(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`run --dry-run --json -` printed nothing that a program could read, and ended well."""
    context, command = _found(name)
    context.params = {"dry_run": True, "json_file": "-"}
    monkeypatch.setitem(context.meta, ON_STDOUT, "--json")
    with pytest.raises(click.UsageError, match="--dry-run asks nothing, so --json has no report"):
        command.invoke(context)


@pytest.mark.parametrize("name", _FORECASTING)
def test_a_forecast_says_that_the_file_of_the_report_is_not_written(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    context, command = _found(name)
    command.callback = lambda **_: None
    context.params = {"dry_run": True, "json_file": "report.json"}
    command.invoke(context)
    assert "report.json is not written" in capsys.readouterr().err


def _found(name: str) -> tuple[click.Context, Command]:
    return next(
        (context, copy.copy(command))
        for context, command in walk(_ROOT)
        if context.command_path == f"memconform {name}"
    )
