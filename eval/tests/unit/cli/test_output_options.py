"""Options of one name have one meaning in every command."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from memconform.cli.commands import FOLDER, Option, walk
from memconform.cli.main import cli

_ROOT = click.Context(cli, info_name="memconform", **cli.context_settings)


def _options(name: str) -> Iterator[tuple[str, Option]]:
    """Each option of that name, with the path of its command; older names do not count."""
    for context, _ in walk(_ROOT):
        for param in context.command.params:
            if isinstance(param, Option) and name in set(param.opts) - set(param.aliases):
                yield context.command_path, param


def test_output_is_a_folder_of_results_everywhere() -> None:
    found = dict(_options("--output"))
    assert {"memconform run", "memconform fuzz", "memconform lme run"} <= found.keys()
    for path, option in found.items():
        assert option.metavar == "DIR", path
        assert isinstance(option.type, click.Path), path
        help_text = str(option.help)
        assert help_text.startswith(("Folder to write results to", "Folder of results,")), path
        shown = option.show_default
        default = shown if isinstance(shown, str) else str(option.default)
        assert default.startswith("results"), path
        assert "-o" not in option.opts, path


_NAMES_A_PATH = re.compile(r"FILE|DIR|PATH|RESULT|RUN\b")
_NAMES_NO_PATH = {"arguments", "case", "check", "names", "question", "verb"}
"""Arguments that name a part of a file, a source or a command."""


def test_an_empty_path_is_refused_everywhere() -> None:
    """`--output ""`, from a variable that was not set, wrote into the current folder."""
    found = set()
    for context, command in walk(_ROOT):
        for param in command.params:
            is_argument = isinstance(param, click.Argument) and param.name not in _NAMES_NO_PATH
            named = isinstance(param.type, click.Path) or _NAMES_A_PATH.search(str(param.metavar))
            if not (is_argument or named):
                continue
            several = isinstance(param, click.Option) and param.multiple
            empty = ("",) if several or param.nargs != 1 else ""
            with pytest.raises(click.BadParameter) as refused:
                param.handle_parse_result(context, {str(param.name): empty}, [])
            assert param.get_error_hint(context) in refused.value.format_message()
            found.add((context.command_path.removeprefix("memconform "), param.opts[0]))
    assert {
        *(("run", "--output"), ("run", "--json"), ("run", "--corpus"), ("bench", "--export")),
        *(("lme tri", "--output"), ("lme run", "--brain-cache"), ("lme run", "--sample-ids-file")),
        *(
            ("report", "results"),
            ("datasets info", "path"),
            ("parity show", "first"),
            ("conform findings", "run"),
            ("datasets lint", "dataset"),
            ("run", "--resume"),
            ("datasets fetch", "--to"),
        ),
    } <= found


def test_a_folder_to_write_to_is_not_below_a_file(tmp_path: Path) -> None:
    """`--output FILE/results` ended in 70, after the dataset was read."""
    for context, _ in walk(_ROOT):
        for param in context.command.params:
            if isinstance(param.type, click.Path) and not param.type.file_okay:
                assert param.type is FOLDER or param.type.exists, (context.command_path, param.name)
    (tmp_path / "file").touch()
    for below in ("file", "file/a", "file/a/b"):
        with pytest.raises(click.BadParameter, match="file"):
            FOLDER.convert(str(tmp_path / below), None, None)
    assert FOLDER.convert(str(tmp_path / "a/b"), None, None) == tmp_path / "a/b"


def test_a_file_to_write_is_output_file_everywhere() -> None:
    found = dict(_options("--output-file"))
    assert found.keys() == dict(_options("-o")).keys()
    assert {"memconform datasets convert", "memconform datasets expand"} <= found.keys()
    for path, option in found.items():
        assert (option.metavar, option.required) == ("FILE", True), path
        # Where results are looked up in a folder, --output names that.
        is_folder = path in dict(_options("--output"))
        assert option.aliases == (() if is_folder else ("--output",)), path


def test_json_is_a_file_or_standard_output_everywhere() -> None:
    texts = {(option.metavar, option.help) for _, option in _options("--json")}
    assert texts == {("FILE", "Also write the report to FILE as JSON; - is standard output.")}


def test_env_and_keep_are_the_same_flags_everywhere() -> None:
    assert {path for path, _ in _options("--keep")} == {
        "memconform conform",
        "memconform doctor",
        "memconform fuzz",
    }
    assert {"memconform run", "memconform conform replay"} <= dict(_options("--env")).keys()
    for path, option in _options("--env"):
        assert option.metavar == "NAME=VALUE", path
        assert option.multiple, path


@pytest.mark.parametrize(("one", "other"), [("a", "a"), ("a", "./a"), ("a", "b/../a")])
def test_two_options_never_write_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: str, other: str
) -> None:
    """`--json F --markdown F` ended with 0, and F had no JSON."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b").mkdir()
    ended = CliRunner().invoke(cli, ["diff", "x", "y", "--json", one, "--markdown", other])
    assert ended.exit_code == 2
    assert "--json writes" in ended.output
    for devices in (("-", "a"), ("/dev/null", "/dev/null")):
        ended = CliRunner().invoke(
            cli, ["diff", "x", "y", "--json", devices[0], "--markdown", devices[1]]
        )
        assert "writes" not in ended.output


@pytest.mark.parametrize(
    "command",
    [["run", "--sdk", ""], ["lme", "run", "--reader", ""], ["score", "x", "--reader", ""]],
)
def test_an_empty_name_of_an_sdk_or_a_model_is_refused(command: list[str]) -> None:
    """An empty reader was the default one, which is paid for."""
    ended = CliRunner().invoke(cli, command)
    assert (ended.exit_code, "it is empty" in ended.output) == (2, True)
