"""Former names of commands work for one more version, print the new one, and are listed nowhere."""

from pathlib import Path
from pkgutil import resolve_name

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from memconform.cli.commands import Command, walk
from memconform.cli.former_names import FORMER_NAMES, find_former_name
from memconform.cli.main import cli
from memconform.errors import ExitCode, MemconformError
from tests.conftest import CHECKOUT
from tests.run_results import question, write_run
from tests.unit.bench_results import write_bench

_ROOT = click.Context(cli, info_name="memconform", **cli.context_settings)
_PAGES = {context.command_path: context for context, _ in walk(_ROOT)}


def _call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, list(map(str, arguments)), standalone_mode=False)


@pytest.mark.parametrize("name", FORMER_NAMES)
def test_a_former_name_prints_the_new_one_and_is_not_listed(name: str) -> None:
    former = FORMER_NAMES[name]
    assert isinstance(resolve_name(f"memconform.cli.{former.reference}"), Command)
    ended = _call(*name.split(), "--help")
    assert (ended.exit_code, ended.stdout[:6]) == (0, "Usage:")
    assert ended.stderr == f"`memconform {name}` is now `{former.successor}`\n"
    assert f"memconform {name}" not in _PAGES
    *group, word = name.split()
    parent = _PAGES[" ".join(["memconform", *group])]
    if isinstance(parent.command, click.Group):
        assert word not in parent.command.list_commands(parent)
    assert f"memconform {name}" not in (CHECKOUT / "docs" / "CLI.md").read_text(encoding="utf-8")


def test_a_new_name_prints_nothing_of_the_kind() -> None:
    assert _call("report", "--help").stderr == ""
    assert find_former_name(["report", "results/junit"]) is None
    assert find_former_name([]) is None


@pytest.mark.parametrize("name", FORMER_NAMES)
def test_the_successor_of_a_former_name_is_a_command(name: str) -> None:
    program, *words = FORMER_NAMES[name].successor.split()
    if program == "memconform":
        assert words[0] in cli.list_commands(_ROOT)
    else:
        assert (CHECKOUT / program).is_file()


def test_completion_neither_offers_nor_mentions_former_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    completion = ShellComplete(cli, {}, "memconform", "_MEMCONFORM_COMPLETE")
    offered = {item.value for item in completion.get_completions([], "")}
    assert offered == set(cli.list_commands(_ROOT))
    completion.get_completions(["report", "junit"], "--")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", ["junit", "ctrf", "csv", "markdown", "annotations", "badge"])
def test_a_former_format_writes_what_the_new_one_does(form: str, tmp_path: Path) -> None:
    result = write_run(tmp_path / "go.json", "go", [question("q1")])
    former = _call("report", form, result, "-o", "-")
    assert former.return_value == ExitCode.OK
    assert former.stdout == _call("report", result, "--format", form, "-o", "-").stdout != ""


def test_a_schema_is_that_of_the_format() -> None:
    schemas = {form: _call("report", form, "--schema").stdout for form in ("ctrf", "badge")}
    assert '"title": "CtrfReport"' in schemas["ctrf"]
    assert '"title": "Badge"' in schemas["badge"]
    assert '"anyOf"' in _call("report", "--schema").stdout


def test_the_former_export_writes_several_files(tmp_path: Path) -> None:
    result = write_bench(tmp_path / "result.json", {("go", "bm25"): {"q1": ["q1-gold"]}})
    files = [tmp_path / "q.csv", tmp_path / "q.jsonl"]
    flags = [part for file in files for part in ("--export", file)]
    assert _call("report", "export", result, *flags).return_value == ExitCode.OK
    new = tmp_path / "new.csv"
    assert _call("report", result, "--format", "queries", "-o", new).return_value == ExitCode.OK
    assert files[0].read_text() == new.read_text() != ""
    assert files[1].read_text().startswith("{")


def test_the_former_tables_check_a_checkout(tmp_path: Path) -> None:
    ended = _call("report", "tables", "--check", tmp_path)
    assert isinstance(ended.exception, MemconformError)
    assert ended.exception.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("form", "flag", "allowed"),
    [
        ("junit", ("--label", "x"), "--baseline"),
        ("badge", ("--data", "x"), "--label"),
        ("queries", ("--baseline", "old"), "--format"),
    ],
)
def test_a_flag_of_another_format_is_refused(
    form: str, flag: tuple[str, str], allowed: str, tmp_path: Path
) -> None:
    result = write_run(tmp_path / "go.json", "go", [question("q1")])
    ended = _call("report", result, "--format", form, *flag, "-o", tmp_path / "out")
    assert isinstance(ended.exception, click.UsageError)
    assert f"{flag[0]} does not apply to --format {form}" in ended.exception.message
    assert allowed in ended.exception.message.partition("which takes")[2]
    assert flag[0] not in ended.exception.message.partition("which takes")[2]
