"""Text of daemons and files on terminals and in CI logs: shown, never obeyed."""

import ast
import io
import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

import memconform
from memconform import redaction
from memconform.errors import UsageError
from memconform.printing.console import SafeConsole, styled
from memconform.printing.errors import render_error
from memconform.printing.escaping import (
    Lines,
    escape_line,
    escape_lines,
    escape_markdown,
    indent,
    printable,
)
from memconform.printing.output import SafeStream, echo, write_json_output

_SHOWN = {
    "\x1b]52;c;ZXZpbA==\x07": "\\x1b]52;c;ZXZpbA==\\x07",
    "\x1b]8;;http://e/\x1b\\x": "\\x1b]8;;http://e/\\x1b\\x",
    "\x9b31m": "\\x9b31m",
    "over\rwritten\x08": "over\\rwritten\\x08",
    "a\u202eb\u2066c\u2069d\u200ee\u061cf": "a\\u202eb\\u2066c\\u2069d\\u200ee\\u061cf",
    "zero\u200bwidth\ufeff \u2028\u2029": "zero\\u200bwidth\\ufeff \\u2028\\u2029",
    "tag\U000e0041 filler\u3164": "tag\\U000e0041 filler\\u3164",
    "lone\udc80": "lone\\udc80",
    "two\nlines\tand a tab": "two\\nlines\\tand a tab",
    "::error file=a::b": ":\\x3aerror file=a::b",
    " \u00a0::set-output name=a::b": " \u00a0:\\x3aset-output name=a::b",
    "a ##vso[task.setvariable]b": "a ##vso\\x5btask.setvariable]b",
    "##[error]a ###[b": "##\\x5berror]a ###\\x5bb",
    "##TeamCity[x]": "##TeamCity\\x5bx]",
    "caf\u00e9 \u3000 \u2713 [red]a[/] C:\\x Foo::bar": (
        "caf\u00e9 \u3000 \u2713 [red]a[/] C:\\x Foo::bar"
    ),
}

_HOSTILE = st.lists(
    st.one_of(
        st.sampled_from([*_SHOWN, "\n", "\r\n", ":", "#", "[", "vso", " ", "\x1b", "\u0085"]),
        st.text(max_size=8),
    ),
    max_size=12,
).map("".join)


def _obeyed(text: str) -> list[str]:
    """What of a stream's text a terminal or a CI server would act on."""
    matches = re.findall(r"##(?:vso|teamcity)?\[", text, re.IGNORECASE)
    matches += [line for line in re.split(r"[\n\r]", text) if line.lstrip().startswith("::")]
    steering = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    matches += [c for c in text if unicodedata.category(c) in steering and c not in "\n\t"]
    return matches


@pytest.mark.parametrize(("foreign", "shown"), _SHOWN.items())
def test_control_characters_and_ci_commands_are_shown_escaped(foreign: str, shown: str) -> None:
    assert escape_line(foreign) == shown
    assert _obeyed(escape_line(foreign)) == []


@given(_HOSTILE)
def test_no_text_controls_a_terminal_or_ci(text: str) -> None:
    for escape in (escape_line, escape_lines):
        once = escape(text)
        assert _obeyed(once) == []
        assert escape(once) == once
    assert "\n" not in escape_line(text)
    assert escape_lines(text).count("\n") == text.count("\n")


def test_a_field_of_one_line_cannot_begin_another() -> None:
    assert printable("q1\nq2: correct") == "q1\\nq2: correct"
    assert printable(Lines("tail\r\n\t::error::x\n##[group]")) == (
        "tail\n\t:\\x3aerror::x\n##\\x5bgroup]"
    )


def test_lines_of_an_excerpt_stay_lines_behind_their_margin() -> None:
    error = UsageError("broke\n::error", code="bad", hint="a\x1bb", excerpt="one\n::two\x1b[0m\n")
    assert render_error(error) == (
        "bad: broke\\n::error\n  | one\n  | :\\x3atwo\\x1b[0m\n  try: a\\x1bb"
    )


def test_a_secret_of_two_lines_is_masked_before_a_margin_breaks_it() -> None:
    redaction.hide("-----BEGIN\nabcdefgh")
    assert indent("key -----BEGIN\nabcdefgh", "  | ") == "  | key (hidden)"


@given(_HOSTILE)
def test_nothing_that_rich_prints_carries_foreign_control(text: str) -> None:
    console = SafeConsole()
    console.file = io.StringIO()
    table = Table(title=text, caption=text)
    table.add_column(text, overflow="fold", max_width=7)
    table.add_row(text)
    for printed in (text, Text(text), table, styled([(text, "red")])):
        console.print(printed, style="bold")
    written = console.file.getvalue()
    controls = [c for c in written if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\n"]
    assert controls == []


def test_markup_of_foreign_text_is_text() -> None:
    console = SafeConsole()
    console.file = io.StringIO()
    table = Table(box=None, show_header=False)
    table.add_row("[red]a[/red]")
    console.print("[link=http://e]x[/link] :bomb:")
    console.print(table)
    assert console.file.getvalue().split() == ["[link=http://e]x[/link]", ":bomb:", "[red]a[/red]"]


def test_styles_of_ours_survive_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    raw = io.BytesIO()
    console = SafeConsole()
    console.file = SafeStream(raw, encoding="utf-8", write_through=True)
    console.print("a\x1b[31mb", style="green")
    assert raw.getvalue() == b"\x1b[32ma\\x1b[31mb\x1b[0m\n"


@given(st.lists(_HOSTILE, max_size=6))
@example([" ", "\t:", ":error::x"])
@example(["a\n", ":", "", ":x"])
@example(["#", "#v", "so", "[x]"])
def test_a_ci_command_written_in_pieces_is_disarmed(pieces: list[str]) -> None:
    """A line's begin is known by the stream alone: rich wraps, pads and writes in pieces."""
    raw = io.BytesIO()
    stream = SafeStream(raw, encoding="utf-8", errors="backslashreplace", write_through=True)
    for piece in pieces:
        assert stream.write(piece) == len(piece)
    assert _obeyed(raw.getvalue().decode()) == []


def test_a_folded_cell_does_not_start_a_ci_command() -> None:
    """`xxxx::error` folds into a line that begins with the command."""
    raw = io.BytesIO()
    console = SafeConsole()
    console.file = SafeStream(raw, encoding="utf-8", write_through=True)
    table = Table(box=None, show_header=False, padding=0)
    table.add_column(overflow="fold", max_width=9)
    table.add_row("xxxx xxxx::error::x")
    console.print(table)
    assert _obeyed(raw.getvalue().decode()) == []


@given(
    st.recursive(st.text() | _HOSTILE, lambda values: st.lists(values) | st.tuples(values, values))
)
def test_json_on_standard_output_keeps_its_values_and_controls_nothing(value: object) -> None:
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stdout", out)
        write_json_output(json.dumps(value, ensure_ascii=False, indent=1) + "\n")
    assert json.loads(out.getvalue()) == json.loads(json.dumps(value))
    assert _obeyed(out.getvalue()) == []
    assert out.getvalue().isascii()


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("<img src=x onerror=a>", "\\<img src=x onerror=a\\>"),
        ("[a](http://e) &#x202e;", "\\[a\\]\\(http\\://e\\) \\&\\#x202e;"),
        ("`a` | b\n# c\x1b", "\\`a\\` \\| b \\# c\\\\x1b"),
        ("@team mail a@b", "&#64;team mail a@b"),
    ],
)
def test_markdown_shows_foreign_text_as_it_is(foreign: str, shown: str) -> None:
    assert escape_markdown(foreign) == shown.replace("\\(", "(").replace("\\)", ")")


def test_echo_masks_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    redaction.hide("s3cret-value")
    echo("a s3cret-value\n", err=True)
    assert capsys.readouterr().err == "a (hidden)\\n\n"


_ROOT = Path(memconform.__file__).parent

_OWN_PROCESSES = {
    *("upstream/__main__.py", "daemons/guard.py", "bench/raw_http.py"),
    *(f"conformance/mutation/{name}.py" for name in ("proxy", "proxy_connection")),
    "conformance/mutation/source_patch/sitecustomize.py",
}
"""What they write is read by the harness through a pipe."""

_BANNED_CALLS = {
    *("print", "click.echo", "click.secho", "click.echo_via_pager", "click.style", "Console"),
    *("sys.stdout.buffer.write", "sys.stderr.buffer.write", "sys.stderr.write"),
    *("Text", "Text.from_markup", "Text.from_ansi", "TextColumn", "console.out", "os.write"),
}
_ALLOWED = {
    (
        "cli/standard_streams.py",
        "sys.stdout.write",
    ): "a line end, to learn why it is full",
    ("reports/console.py", "Text"): "a constant",
    ("conformance/clients/driver.py", "os.write"): "commands to a child process",
    ("cli/start.py", "os.write"): "one word, before what prints is imported",
    ("adapters/mcp_bridge.py", "sys.stdout.write"): "replies to its parent process",
    ("adapters/contract_daemon.py", "sys.stderr.write"): "the log of a daemon, which is redacted",
}


def _calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def test_all_output_goes_through_printing() -> None:
    past = []
    for path in sorted(_ROOT.rglob("*.py")):
        name = path.relative_to(_ROOT).as_posix()
        if name.startswith("printing/") or name in _OWN_PROCESSES:
            continue
        banned = _BANNED_CALLS | {"sys.stdout.write"}
        past += [
            f"{name}: {call}"
            for call in _calls(path)
            if call in banned and (name, call) not in _ALLOWED
        ]
    assert past == []
