"""The installed program on a terminal of 80 columns, with and without colours."""

import fcntl
import os
import re
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.cells import cell_len

from memconform.scoring.statuses import QuestionStatus
from tests.conftest import CALL_SECONDS, proven_attempts
from tests.program import PROGRAM
from tests.run_results import question, write_run

COLUMNS = 80
_CURSOR = re.compile(r"\x1b\[(?:\?25[lh]|[0-9]*[AK])")
"""What a display that overwrites itself needs: hide the cursor, move it up, erase a line."""
_STYLE = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\")


@dataclass(frozen=True)
class Shown:
    """What a terminal received, and what went to a pipe instead."""

    code: int
    raw: str
    out: str = ""

    @property
    def lines(self) -> list[str]:
        """Every line, those that were overwritten included, without styles and movements."""
        return re.split(r"[\r\n]+", _CURSOR.sub("\r", _STYLE.sub("", self.raw)))

    @property
    def last(self) -> list[str]:
        """The lines that stay, without those that the display erases."""
        kept: list[str] = []
        for line in _STYLE.sub("", self.raw).split("\n"):
            up = line.count("\x1b[1A")
            del kept[len(kept) - up :]
            kept.append(_CURSOR.sub("", line.rpartition("\x1b[2K")[2]).strip("\r"))
        return kept


Terminal = Callable[..., Shown]


@pytest.fixture
def terminal(workspace: Path, environment: dict[str, str]) -> Terminal:
    """Calls the program with a terminal as its streams; `piped` puts standard output in a pipe."""

    def call(*args: str | Path, piped: bool = False, **variables: str) -> Shown:
        kept = environment | {"TERM": "xterm-256color"} | variables
        for name in {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"} - variables.keys():
            kept.pop(name, None)
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
        out = workspace / "stdout"
        with out.open("wb") as file:
            process = subprocess.Popen(
                [PROGRAM, *args],
                cwd=workspace,
                env=kept,
                stdin=theirs,
                stdout=file if piped else theirs,
                stderr=theirs,
            )
        os.close(theirs)
        raw = b"".join(_read(ours))
        os.close(ours)
        return Shown(process.wait(CALL_SECONDS), raw.decode(), out.read_text())

    return call


def _read(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:
            # Linux reports the end of a terminal so.
            return
        if not data:
            return
        yield data


@pytest.fixture
def sdks(scripted: Callable[..., Path]) -> tuple[str | Path, ...]:
    """The flags for two daemons, of which one has a long name."""
    first = scripted()
    second = first.with_name("second.toml")
    name = "a-memory-daemon-in-some-language"
    second.write_text(first.read_text().replace('"scripted"', f'"{name}"', 1))
    return ("--sdk", first, "--sdk", second)


@pytest.fixture
def run(sdks: tuple[str | Path, ...], dataset: Path) -> tuple[str | Path, ...]:
    flags = ("--scorer", "exact", "--scenario", "search-retrieve-only", "--mode", "bm25")
    return ("run", *sdks, "--dataset", dataset, *flags, "--seed-reference-brain", "--floor", "1")


@pytest.fixture
def results(workspace: Path) -> list[Path]:
    rows = [question(f"q{n}") for n in range(30)]
    failed = [question(f"q{n}", QuestionStatus.INCORRECT, paths=("b.md",)) for n in range(30)]
    return [
        write_run(workspace / "one.json", "go", rows),
        write_run(workspace / "two.json", "a-memory-daemon-in-some-language", failed),
    ]


def _require_narrow(shown: Shown) -> None:
    """Only a command, which is copied, may be wider than the terminal."""
    lines = (line for line in shown.lines if "memconform parity show" not in line)
    wide = [line for line in lines if cell_len(line) > COLUMNS]
    assert wide == []


@pytest.mark.capability("progress")
def test_a_run_of_two_sdks_has_a_row_for_each(terminal: Terminal, run: tuple[str, ...]) -> None:
    shown = terminal(*run)
    assert shown.code == 0
    _require_narrow(shown)
    # What takes less time than the screen needs to be drawn again is not seen.
    states = "waiting|building|starting|seeding|asking"
    assert any(re.match(rf"scripted +(?:{states})", line) for line in shown.lines)
    # The result of the first is there while the second runs.
    together = rf"scripted +1\.000.*\n.*a-memory-daemon… +(?:{states})"
    assert re.search(together, "\n".join(shown.lines))
    assert "\x1b[32m12 correct\x1b[0m" in shown.raw


def test_what_is_needed_stays_on_the_screen(terminal: Terminal, run: tuple[str, ...]) -> None:
    last = "\n".join(terminal(*run).last)
    assert last.count("pass_rate=1.0000") == 2
    assert re.search(r"^ scripted +12 correct", last, re.MULTILINE)
    assert "rankings: scripted" in last
    assert "waiting" not in last
    assert "12/12 " not in last.replace(": 12/12 ", "")


def test_no_color_leaves_no_style(terminal: Terminal, run: tuple[str, ...]) -> None:
    shown = terminal(*run, "--html", NO_COLOR="1")
    assert shown.code == 0
    _require_narrow(shown)
    assert _STYLE.search(shown.raw) is None
    assert "\x1b" not in _CURSOR.sub("", shown.raw)


def test_a_dumb_terminal_gets_plain_text(terminal: Terminal, run: tuple[str, ...]) -> None:
    shown = terminal(*run, piped=True, TERM="dumb")
    assert shown.code == 0
    _require_narrow(shown)
    assert "\x1b" not in shown.raw


def test_standard_output_is_the_same_in_a_pipe(terminal: Terminal, run: tuple[str, ...]) -> None:
    shown = terminal(*run, piped=True)
    banners = [line for line in shown.out.splitlines() if "pass_rate=1.0000" in line]
    assert [line.partition(":")[0] for line in banners] == [
        *("scripted", "a-memory-daemon-in-some-language"),
    ]
    assert "\x1b" not in shown.out
    assert "pass_rate=" not in shown.raw


@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1"}, {"NO_COLOR": "1"}])
def test_a_pipe_has_no_movements_and_whole_lines(
    run: tuple[str, ...], workspace: Path, environment: dict[str, str], variables: dict[str, str]
) -> None:
    ended = subprocess.run(
        [PROGRAM, *run],
        cwd=workspace,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=CALL_SECONDS,
        check=True,
    )
    assert _CURSOR.search(ended.stderr) is None
    assert ("\x1b" in ended.stderr) == ("FORCE_COLOR" in variables)
    assert "\x1b" not in ended.stdout


@pytest.mark.parametrize(
    "verb",
    [
        ("report", "--format", "html", "-o", "report.html"),
        ("report", "--format", "csv", "-o", "report.csv"),
        ("parity", "compare"),
        ("diff",),
        ("diff", "."),
    ],
    ids=lambda verb: "-".join(verb[:2]),
)
def test_reading_results_shows_how_far_it_is(
    verb: tuple[str, ...], terminal: Terminal, results: list[Path]
) -> None:
    """Reading tens of thousands of questions takes ten seconds, in which nothing was shown."""
    named = [] if verb[-1] == "." else [path.name for path in results]
    # Standard output has the verdict in one line, however long.
    shown = terminal(*verb, *named, piped=True, NO_COLOR="1")
    total = r"\d" if verb[-1] == "." else "30"
    assert any(
        re.match(rf"(reading|comparing).* \d+/{total} .*\d:\d\d:\d\d", line) for line in shown.lines
    )
    _require_narrow(shown)
    assert _STYLE.search(shown.raw) is None
    assert not any("reading" in line or line.startswith("comparing") for line in shown.last)


def test_a_resumed_run_counts_what_is_left(
    terminal: Terminal, scripted: Callable[..., Path], dataset: Path
) -> None:
    """It counted to all questions, and estimated the time for those that had been asked before."""
    flags = ("--scorer", "exact", "--scenario", "search-retrieve-only", "--mode", "bm25")
    sdk = scripted("dies_once")
    note = dataset.parent / "asked.txt"
    sdk.write_text(sdk.read_text().replace('"--addr"', f'"--note", "{note}", "--addr"'))
    call = ("run", "--sdk", sdk, "--dataset", dataset, *flags, "--seed-reference-brain")
    assert terminal(*call).code == 3
    left = 12 - proven_attempts(dataset.parent)
    assert 0 < left < 12
    [died] = (dataset.parent / "results" / "runs").iterdir()
    shown = terminal(*call, "--resume", died.name, "--no-reverify")
    assert shown.code == 0
    asking = (re.search(r"asking .* \d+/(\d+) ", line) for line in shown.lines)
    totals = {int(found[1]) for found in asking if found}
    assert totals == {left}


def test_the_path_of_the_report_is_a_link(terminal: Terminal, run: tuple[str, ...]) -> None:
    r"""It was printed with `\x1b]8;` around it, as text."""
    shown = terminal(*run, "--html")
    assert re.search(r"report: .*\x1b\]8;id=\d+;file:///\S+report\.html\x1b\\", shown.raw)
    assert "\\x1b" not in shown.raw
