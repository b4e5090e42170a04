"""`memconform view`: the report and running runs in a browser, for nobody but its user."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from memconform.scoring.statuses import QuestionStatus
from tests.conftest import WAIT_SECONDS, Ended, shell
from tests.program import PROGRAM
from tests.run_results import question, write_run


class View:
    """A running `memconform view`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.url = process.stdout.readline().strip()
        self.client = httpx.Client(base_url=self.url, timeout=WAIT_SECONDS, trust_env=False)

    @property
    def root(self) -> str:
        return re.sub(r"(http://[^/]+)/.*", r"\1", self.url)

    def states(self) -> Iterator[dict[str, Any]]:
        with self.client.stream("GET", "events") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            for line in response.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    def stop(self, run: str, **headers: str) -> httpx.Response:
        return self.client.post(f"runs/{run}/stop", headers={"origin": self.root} | headers)


@contextmanager
def _serving(folder: Path, environment: dict[str, str]) -> Iterator[View]:
    process = subprocess.Popen(
        [PROGRAM, "view"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    shown = View(process)
    try:
        yield shown
    finally:
        shown.client.close()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == 0


@pytest.fixture
def view(workspace: Path, environment: dict[str, str]) -> Iterator[View]:
    with _serving(workspace, environment) as shown:
        yield shown


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    """One for all tests that change nothing: each start imports the program."""
    with _serving(tmp_path_factory.mktemp("view"), shell()) as shown:
        yield shown


def test_the_address_is_loopback_with_a_token(shared: View) -> None:
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{43}/", shared.url)
    page = shared.client.get("")
    assert page.status_code == 200
    assert "connect-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:1"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["", "report.html", "events"])
def test_requests_of_other_pages_are_refused(
    shared: View, headers: dict[str, str], path: str
) -> None:
    assert shared.client.get(path, headers=headers).status_code == 403


@pytest.mark.parametrize("path", ["/", "/x/", "/x/report.html", "/x/events", "//", "/report.html"])
def test_nothing_is_served_without_the_token(shared: View, path: str) -> None:
    assert httpx.get(shared.root + path, trust_env=False).status_code == 403


def test_a_request_that_changes_something_needs_an_origin(shared: View) -> None:
    assert shared.client.post("runs/x/stop").status_code == 403
    assert shared.stop("x").status_code == 409
    assert shared.stop("x", origin="http://evil.example").status_code == 403


@pytest.mark.capability("view")
def test_the_report_shows_what_is_there_at_each_visit(view: View, workspace: Path) -> None:
    empty = view.client.get("report.html")
    assert empty.status_code == 409
    assert "unknown_run" in empty.text
    rows = [question("q1"), question("q2", QuestionStatus.INCORRECT)]
    write_run(workspace / "results" / "runs" / "run-go" / "result.json", "go", rows)
    page = view.client.get("report.html")
    assert page.status_code == 200
    assert "go passes 1 of 2 questions" in page.text


def _many(workspace: Path) -> Path:
    path = workspace / "many.jsonl"
    rows = (
        {
            "id": f"m{n}",
            "question": f"What colour is thing number {n}?",
            "expected_substrings": [f"colour{n}x" if n % 5 else "nothing has it"],
            "reference_answer": f"Thing number {n} is colour{n}x.",
        }
        for n in range(3_000)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_run_is_followed_and_stopped_as_by_ctrl_c(
    view: View, workspace: Path, environment: dict[str, str], cache: Path
) -> None:
    del cache
    ask = ("--scenario", "search-retrieve-only", "--mode", "bm25", "--scorer", "exact", "--quiet")
    process = subprocess.Popen(
        [PROGRAM, "run", "--sdk", "py", "--dataset", _many(workspace), *ask],
        cwd=workspace,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + WAIT_SECONDS
    for state in view.states():
        assert time.monotonic() < deadline
        runs = state["runs"]
        if runs and runs[0]["done"] > 20 and runs[0]["failures"]:
            break
    [run] = runs
    assert (run["sdk"], run["total"], run["alive"]) == ("py", 3_000, True)
    assert run["title"] == "many, search-retrieve-only, bm25"
    assert sum(run["statuses"].values()) == run["done"]
    assert run["rate"] > 0
    assert run["left_s"] > 0
    assert run["failures"][0]["status"] == "incorrect"
    assert view.stop(run["id"]).status_code == 202
    _, err = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 130
    assert "--resume" in err
    for state in view.states():
        assert time.monotonic() < deadline
        if not state["runs"]:
            assert state["finished"] == 1
            break
    assert view.stop(run["id"]).status_code == 409


def test_a_run_whose_process_is_gone_is_no_run_in_progress(view: View, workspace: Path) -> None:
    folder = workspace / "results" / "runs" / "gone"
    folder.mkdir(parents=True)
    settings = {"dataset": "d", "scenario": "s", "mode": "m", "questions": 4, "repeat": 1}
    (folder / "manifest.json").write_text(json.dumps({"sdk": "go", "settings": settings}))
    line = {"stage": "judgement", "row": 0, "attempt": 0, "id": "q", "verdict": "timeout"}
    line |= {"score": None, "error": None}
    (folder / "journal.jsonl").write_text(
        f'[1]\n{{"stage": "judgement"}}\n{json.dumps(line)}\n{{"stage": "judg'
    )
    state = next(view.states())
    [run] = state["runs"]
    assert (run["alive"], run["done"], run["statuses"]) == (False, 1, {"timeout": 1})
    assert view.stop("gone").status_code == 409


@pytest.mark.parametrize("name", ["..", "%2e%2e", "a/b", "x" * 300])
def test_no_other_process_can_be_stopped(shared: View, name: str) -> None:
    assert shared.stop(name).status_code in (404, 405, 409)


def test_an_unknown_result_ends_the_command_at_once(memconform: Callable[..., Ended]) -> None:
    ended = memconform("view", "nothing")
    assert ended.code == 2
    assert "no result 'nothing'" in ended.err


def test_a_port_that_is_taken_is_named(memconform: Callable[..., Ended], view: View) -> None:
    port = view.root.rpartition(":")[2]
    ended = memconform("view", "--port", port)
    assert ended.code == 2
    assert f"port {port} of 127.0.0.1 cannot be used" in ended.err
