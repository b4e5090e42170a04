"""Progress on a terminal, and that nothing of it reaches a pipe."""

import io
import re
import sys
from typing import Any

import pytest
from rich.progress import Progress, Task

from memconform.printing.columns import rate
from memconform.printing.console import SafeConsole, standard_error
from memconform.printing.output import SafeStream
from memconform.records import Failure
from memconform.reports import plain_progress
from memconform.reports.digest import failed_lines
from memconform.reports.progress import (
    ProgressReport,
    RecordProgress,
    RowsProgress,
    StepProgress,
    progress_bars,
)
from memconform.runs.highlights import Highlights
from memconform.scoring.statuses import QuestionStatus
from tests.run_results import question
from tests.waiting import wait_until


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Time that passes when it is told to."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def _terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal of 80 columns, and leave standard output."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "40")
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    return stream


def _after(seconds: float, done: int, total: int | None) -> Task:
    """A task that has done a piece of the work every so many seconds."""
    clock = Clock()
    progress = progress_bars(SafeConsole())
    progress.get_time = clock
    progress.add_task("asking", total=total)
    [task] = progress.tasks
    for _ in range(done):
        progress.advance(task.id)
        clock.now += seconds
    return task


@pytest.mark.parametrize(
    ("seconds", "rate_text"), [(0.004, "250/s"), (0.08, "12.5/s"), (20, "3.0/min"), (90, "0.7/min")]
)
def test_the_rate_of_quick_and_slow_work(seconds: float, rate_text: str) -> None:
    """After half a minute without a question, rich forgets the rate, and with it the time left."""
    task = _after(seconds, 4, 20)
    assert rate(task) == rate_text
    assert task.time_remaining == pytest.approx(16 * seconds, abs=1)


def test_there_is_no_rate_before_two_pieces_are_done() -> None:
    assert rate(_after(1, 0, 20)) == ""
    assert rate(_after(1, 1, 20)) == ""


def _lines(progress: Progress, width: int = 80) -> list[str]:
    console = SafeConsole()
    console.width = width
    with console.capture() as captured:
        console.print(progress.get_renderable())
    return captured.get().splitlines()


class Rows(RowsProgress):
    def lines(self, width: int = 80) -> list[str]:
        return _lines(self._progress, width)

    @property
    def tasks(self) -> list[Task]:
        return self._progress.tasks


@pytest.mark.parametrize("name", ["go", "a-memory-daemon-with-a-long-name", "名前" * 20])
def test_all_figures_fit_80_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows([name])
    clock = Clock()
    rows._progress.get_time = clock
    monkeypatch.setattr(rows.tasks[0], "_get_time", clock)
    rows.begin(name, "asking", 123_456)
    for _ in range(12_345):
        rows.advance(name)
        clock.now += 0.1
    [line] = rows.lines()
    assert len(line) <= 80
    assert "  asking " in line
    assert " 12345/123456 " in line
    assert " 10.0/s 0:20:34 3:05:12 left" in line
    assert "━" in line


def test_rows_say_what_is_done_with_each_sdk() -> None:
    rows = Rows(["go", "ts", "python"])
    assert [line.strip() for line in rows.lines()] == [
        *("go      waiting", "ts      waiting", "python  waiting"),
    ]
    rows.begin("go", "asking", 2)
    rows.advance("go")
    rows.advance("go")
    rows.end("go", "0.500")
    rows.begin("ts", "asking", 3)
    rows.advance("ts")
    # A second beginning of the same stage does not lose its count.
    rows.begin("ts", "asking", 3)
    go, ts, python = rows.lines()
    assert go.startswith("go      0.500 ")
    assert " 2/2 " in go
    assert "left" not in go
    assert ts.startswith("ts      asking ")
    assert " 1/3 " in ts
    assert ts.rstrip().endswith("left")
    assert python.split() == ["python", "waiting"]
    rows.begin("python", "filling its brain")
    assert "━" in rows.lines()[2]
    rows.wait("python")
    assert rows.lines()[2].split() == ["python", "waiting"]


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_progress, "INTERVAL_S", 0.01)


def _until_written(stream: io.StringIO, text: str, times: int = 1) -> None:
    """Wait for a line, which others may precede: lines are written while the test goes on."""
    wait_until(lambda: stream.getvalue().count(text) >= times)


@pytest.mark.usefixtures("_impatient")
class TestWhereNothingCanBeOverwritten:
    @pytest.mark.parametrize("variable", ["FORCE_COLOR", "TTY_COMPATIBLE"])
    def test_a_pipe_gets_lines_even_if_it_takes_colours(
        self, variable: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """CI servers set FORCE_COLOR: their logs were full of cursor movements."""
        monkeypatch.setenv(variable, "1")
        stream = io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        with StepProgress("comparing", 10):
            _until_written(stream, "comparing: 0 of 10 after")
        assert not re.search(r"\x1b\[[0-9?]*[A-Zhl]", stream.getvalue())

    def test_a_record_counts_and_another_event_does_not(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stream = io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        with RecordProgress("judging", 3, Failure) as progress:
            progress.handle(Failure(code="timeout", message="late"))
            progress.handle("finished")
            _until_written(stream, "judging: 1 of 3", times=2)
        assert "2 of 3" not in stream.getvalue()

    def test_a_dumb_terminal_gets_lines(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It had neither bars nor lines."""
        terminal = _terminal(monkeypatch)
        monkeypatch.setenv("TERM", "dumb")
        with StepProgress("comparing", 10):
            _until_written(terminal, "comparing: 0 of 10 after")
        assert "\x1b" not in terminal.getvalue()

    def test_what_waits_or_has_ended_is_not_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stream = io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        with Rows(["go", "ts", "py"]) as rows:
            rows.begin("go", "asking", 5)
            rows.end("go", "interrupted")
            rows.begin("ts", "asking", 5)
            _until_written(stream, "ts  asking: 0 of 5 after", times=2)
        since = stream.getvalue().partition("ts  asking")[2]
        assert "go" not in since
        assert "py" not in since


def test_a_line_has_the_rate_and_the_time_left() -> None:
    task = _after(0.5, 20, 1_000)
    state = plain_progress._state(task)
    assert state == "asking: 20 of 1,000 (2.0/s, 0:08:10 left)"


def test_bars_do_not_divert_standard_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`path=$(memconform datasets fetch NAME)` was empty: rich printed it to standard error."""
    terminal = _terminal(monkeypatch)
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    with StepProgress("reading", 10):
        sys.stdout.write("go: 1/1\n")
    assert out.getvalue() == "go: 1/1\n"
    assert "go: 1/1" not in terminal.getvalue()
    assert "\x1b" in terminal.getvalue()


def test_output_on_the_same_terminal_is_above_the_bars(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = _terminal(monkeypatch)
    monkeypatch.setattr("sys.stdout", terminal)
    with ProgressReport():
        sys.stdout.write("go: 1/1\n")
    assert "go: 1/1\n" in terminal.getvalue()


def _printed(console: SafeConsole) -> str:
    text: Any = console.file
    console.print("bold", style="bold")
    console.print("report", style="link file:///tmp/report.html")
    return str(text.getvalue())


def test_no_color_removes_bold_and_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """rich takes colours away and leaves the rest."""
    terminal = _terminal(monkeypatch)
    styled = _printed(standard_error())
    assert "\x1b[1mbold\x1b[0m" in styled
    assert "\x1b]8;" in styled
    terminal.truncate(0)
    terminal.seek(0)
    monkeypatch.setenv("NO_COLOR", "1")
    assert _printed(standard_error()) == "bold\nreport\n"


def test_lines_fold_between_words_and_not_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = _terminal(monkeypatch)
    text = " ".join(["differences"] * 20)
    standard_error().print(text)
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert {word for line in lines for word in line.split()} == {"differences"}
    monkeypatch.setenv("FORCE_COLOR", "1")
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    standard_error().print(text)
    assert pipe.getvalue() == f"{text}\n"


def _stream(written: str) -> str:
    raw = io.BytesIO()
    stream = SafeStream(raw, encoding="utf-8", write_through=True)
    stream.isatty = lambda: True  # type: ignore[method-assign]
    stream.write(written)
    return raw.getvalue().decode()


def test_a_link_to_a_file_reaches_the_terminal() -> None:
    r"""`--html` printed `\x1b]8;id=…` around the path."""
    link = "\x1b]8;id=7;file:///tmp/report.html\x1b\\report\x1b]8;;\x1b\\"
    assert _stream(link) == link


@pytest.mark.parametrize(
    "foreign",
    ["\x1b]8;;https://e.example/\x1b\\", "\x1b]8;;file://host/a\x1b\\", "\x1b]52;c;YQ==\x1b\\"],
)
def test_no_other_command_of_that_kind_does(foreign: str) -> None:
    assert "\x1b" not in _stream(foreign)


def test_of_several_sdks_few_failed_questions_are_shown() -> None:
    highlights = Highlights()
    for number in range(30):
        highlights.add(question(f"q{number}", QuestionStatus.INCORRECT))
    few, all_kept = failed_lines(highlights, 3), failed_lines(highlights)
    assert [line.partition(":")[0] for line in few[:3]] == ["q0", "q1", "q2"]
    assert few[3:] == ["… and 27 more, all in the result file"]
    assert len(all_kept) == 11


def test_one_cause_of_twenty_unmeasured_questions_is_shown_once() -> None:
    """Twenty curl lines showed that the daemon has no language model."""
    highlights = Highlights()
    for number in range(20):
        failure = Failure(
            code="bad_ranking",
            message=f"the score rises from chunk {number} to chunk {number + 1}",
            curl=f"curl {number}",
            hint="measure with --rank-by position",
        )
        unmeasured = question(f"q{number}", QuestionStatus.PROTOCOL_ERROR)
        highlights.add(unmeasured.model_copy(update={"error": failure}))
    highlights.add(question("q20", QuestionStatus.INCORRECT))
    [cause, wrong] = failed_lines(highlights)
    assert cause.startswith("20 questions (q0, q1, q2, …): protocol_error, bad_ranking")
    assert cause.splitlines()[1:] == ["    try: measure with --rank-by position", "    curl 0"]
    assert wrong.startswith("q20: incorrect")


def test_a_judge_that_failed_is_one_cause_with_advice() -> None:
    """It was `judge_error, judge_error: …`, and nothing to try."""
    highlights = Highlights()
    failure = Failure(code="judge_error", message="llm_bad_reply: it has no 'choices'")
    highlights.add(question("q", QuestionStatus.JUDGE_ERROR, error=failure))
    [cause] = failed_lines(highlights)
    assert cause.startswith("q: judge_error: llm_bad_reply: it has no 'choices'\n    try: ")
    assert "memconform score" in cause
