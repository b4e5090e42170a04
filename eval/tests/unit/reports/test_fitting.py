"""Tables that fit the terminal, and progress where there is none."""

import io
import re
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.bench.records import BenchReport
from memconform.bench.stored_rows import load_rows
from memconform.printing.console import SafeConsole
from memconform.reports import plain_progress
from memconform.reports.bench import show_bench
from memconform.reports.fitted_table import fitting_table
from memconform.reports.progress import ProgressReport
from tests.unit.bench_results import gold_of, write_bench


def _printed(header: list[str], rows: list[list[str]], width: int) -> tuple[str, list[str]]:
    console = SafeConsole()
    console.width = width
    table, omitted = fitting_table(header, rows, width)
    with console.capture() as captured:
        console.print(table)
    return captured.get(), omitted


_WORDS = st.lists(st.text("abc012.%", min_size=1, max_size=12), min_size=1, max_size=4)


@given(
    width=st.integers(60, 200),
    names=st.lists(st.tuples(_WORDS, _WORDS), min_size=1, max_size=4),
    figure=st.lists(st.integers(1, 24), min_size=7, max_size=7),
)
def test_a_wide_table_loses_whole_columns_and_no_part_of_a_word(
    width: int, names: list[tuple[list[str], list[str]]], figure: list[int]
) -> None:
    """At 80 columns a bench showed `80.0 (58.4 to …`, `n…` and `mr…`."""
    header = ["system", "strategy", *(f"figure {place}" for place in range(2, 9))]
    rows = [
        [" ".join(one), " ".join(other), *(f"{n}.{p}" + "7" * figure[p] for p in range(7))]
        for n, (one, other) in enumerate(names)
    ]
    shown, omitted = _printed(header, rows, width)
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width
    words = {word for line in shown.splitlines() for word in line.split()}
    for row in rows:
        assert {word for name in row[:2] for word in name.split()} <= words
        for column, cell in zip(header[2:], row[2:], strict=True):
            assert (cell in words) == (column not in omitted)
    # The most important columns stay, in the order of the header.
    assert omitted == header[len(header) - len(omitted) :]
    assert len(omitted) < 7


def test_importance_decides_which_columns_stay() -> None:
    header, rows = ["name", "a", "b", "c"], [["x", "1" * 20, "2" * 20, "3" * 20]]
    _, omitted = fitting_table(header, rows, 52, names=1, importance=["c", "b"])
    assert omitted == ["a"]
    _, omitted = fitting_table(header, rows, 30, names=1, importance=["c", "b", "c"])
    assert omitted == ["a", "b"]
    _, omitted = fitting_table(header, rows, 80, names=1)
    assert omitted == []


def _show(report: BenchReport, monkeypatch: pytest.MonkeyPatch, columns: int) -> str:
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    for variable, value in (("COLUMNS", columns), ("LINES", 50), ("TERM", "dumb")):
        monkeypatch.setenv(variable, str(value))
    monkeypatch.setattr("sys.stderr", stream)
    show_bench(report, [], dropped=(), verbose=False, quiet=False)
    return stream.getvalue()


def test_a_bench_at_80_columns_says_what_it_omits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rankings = {f"q{n}": gold_of(f"q{n}") for n in range(12)}
    rows = {("go", f"hybrid fusion=minmax alpha=0.{n}"): rankings for n in (3, 5)}
    path = write_bench(tmp_path / "r.json", rows, ks=[5, 10])
    report = load_rows([str(path)], tmp_path)[0].report
    narrow = _show(report, monkeypatch, 80)
    assert "recall_any@10" in narrow
    assert "…" not in narrow
    # The note is wrapped between words.
    _, _, note = " ".join(narrow.split()).partition("not shown, for lack of room: ")
    columns, _, rest = note.partition("; ")
    assert "recall_all@5" in columns.split(", ")
    assert rest.startswith("--markdown and --json have them")
    wide = _show(report, monkeypatch, 300)
    assert "recall_all@5" in wide
    assert "not shown" not in wide


class _Stream(io.StringIO):
    """Standard error that says when something was written."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal
        self.written = threading.Event()

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str, /) -> int:
        count = super().write(text)
        self.written.set()
        return count


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_progress, "INTERVAL_S", 0.01)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)


class _Report(ProgressReport):
    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(quiet=quiet)
        task = self._progress.add_task("go", total=1234)
        self._progress.advance(task, 56)
        self._progress.update(self._progress.add_task("ts", total=3), completed=3)


@pytest.mark.usefixtures("_impatient")
class TestProgressWithoutTerminal:
    def test_is_reported_line_by_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stream = _Stream(is_terminal=False)
        monkeypatch.setattr("sys.stderr", stream)
        with _Report():
            assert stream.written.wait(60)
        lines = stream.getvalue().splitlines()
        assert re.fullmatch(r"  go: 56 of 1,234 after \d+ s", lines[0])
        assert "ts" not in stream.getvalue()
        assert "\x1b" not in stream.getvalue()

    @pytest.mark.parametrize(("is_terminal", "quiet"), [(False, True), (True, True)])
    def test_quiet_is_silent(
        self, monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool, quiet: bool
    ) -> None:
        stream = _Stream(is_terminal=is_terminal)
        monkeypatch.setattr("sys.stderr", stream)
        with _Report(quiet=quiet):
            # short limit: nothing is waited for.
            assert not stream.written.wait(0.1)
        assert stream.getvalue() == ""

    def test_ends_with_the_report(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stream = _Stream(is_terminal=False)
        monkeypatch.setattr("sys.stderr", stream)
        with _Report():
            assert stream.written.wait(60)
        length = len(stream.getvalue())
        stream.written.clear()
        # short limit: nothing is waited for.
        assert not stream.written.wait(0.1)
        assert len(stream.getvalue()) == length
        assert not [t for t in threading.enumerate() if t.name == "progress"]


def test_a_terminal_has_bars_and_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _Stream(is_terminal=True)
    monkeypatch.setattr("sys.stderr", stream)
    with _Report():
        assert not [t for t in threading.enumerate() if t.name == "progress"]
