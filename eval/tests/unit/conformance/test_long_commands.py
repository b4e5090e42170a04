"""Commands that repeat a request: never longer than a shell takes, and exact."""

import contextlib
import json
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform import redaction
from memconform.cli.conform import cases
from memconform.client.recorder import LONGEST_INLINE, Exchange, keep_bodies
from memconform.conformance.results import CaseResult, Cause, Check, Result
from memconform.conformance.step_result import StepResult
from memconform.errors import ExitCode
from memconform.reports.conformance import LONGEST_COMMAND
from memconform.storage.body_files import BodyFiles, from_here

# Quoting makes five characters of one quote, and printf four of a byte that no terminal shows.
_PIECES = st.sampled_from([b"x", b"'", b'"', b"\\", b"\n", b"\0", b"\xff", "é".encode(), b"'\xff"])
_SIZES = st.sampled_from([0, 1, LONGEST_INLINE - 1, LONGEST_INLINE, LONGEST_INLINE + 1, 300_000])
_BODIES = st.builds(lambda piece, size: (piece * size)[:size], _PIECES, _SIZES)
_WORDS = st.builds(
    lambda text, size: (text * size)[:size], st.sampled_from(["a", "'", '"', "\\"]), _SIZES
)


def _exchange(body: bytes, target: str = "/x", header: str = "v") -> Exchange:
    request = httpx.Request(
        "POST",
        "http://127.0.0.1:1",
        content=body,
        headers={"X-A": header},
        extensions={"target": target.encode()},
    )
    return Exchange(request)


@given(body=_BODIES, target=_WORDS, header=_WORDS, raw=_BODIES)
def test_no_command_is_longer_than_a_shell_takes_whatever_the_request(
    body: bytes, target: str, header: str, raw: bytes
) -> None:
    exchange = _exchange(body, f"/{target}", header)
    step = StepResult("raw", pieces=raw)
    step.shell = "nc 127.0.0.1 1"
    with keep_bodies(lambda _: f"bodies/{'0' * 64}"):
        kept = [exchange.curl(), step.curl()]
    for command in (*kept, exchange.curl(), step.curl()):
        assert len(command.encode()) <= LONGEST_COMMAND
        assert shlex.split(command)


def test_a_long_body_is_one_file_however_often_it_was_sent(tmp_path: Path) -> None:
    body, other = b'{"a": "' + b"x" * LONGEST_INLINE + b'"}', b"\xff" * (LONGEST_INLINE + 1)
    bodies = BodyFiles(tmp_path)
    with keep_bodies(bodies.keep):
        first, second = (_exchange(body).curl() for _ in range(2))
        third = _exchange(other).curl()
        transcript = _exchange(body).transcript()
    assert first == second
    [data] = [word for word in shlex.split(first) if word.startswith("@")]
    assert (tmp_path / data[1:]).read_bytes() == body
    assert {path.read_bytes() for path in (tmp_path / "bodies").iterdir()} == {body, other}
    assert f"@{data[1:]}" in first
    assert "--data-binary @bodies/" in third
    # The transcript names the file, and does not repeat what is in it.
    assert len(transcript) < LONGEST_INLINE
    assert data[1:].encode() in transcript


def test_a_short_body_stays_in_the_command(tmp_path: Path) -> None:
    with keep_bodies(BodyFiles(tmp_path).keep):
        command = _exchange(b"x" * LONGEST_INLINE).curl()
    assert shlex.split(command)[-2:] == ["--data-raw", "x" * LONGEST_INLINE]
    assert not (tmp_path / "bodies").exists()


def test_without_a_folder_a_command_says_what_it_lacks() -> None:
    assert _exchange(b"x" * 70_000).curl().endswith("--data-binary @FILE-OF-70000-BYTES")


def test_without_a_folder_a_long_question_stays_in_the_command() -> None:
    question = json.dumps({"question": "long " * 2_000}).encode()
    command = _exchange(question).curl()
    assert shlex.split(command)[-2:] == ["--data-raw", question.decode()]


def test_a_file_of_a_secret_is_named_by_what_is_in_it(tmp_path: Path) -> None:
    redaction.hide("a-secret-token")
    bodies = BodyFiles(tmp_path)
    names = [bodies.keep(f"key: {key}".encode()) for key in ("a-secret-token", redaction.MASK)]
    assert names[0] == names[1]
    content = (tmp_path / names[0]).read_bytes()
    assert content == f"key: {redaction.MASK}".encode()
    assert names[0].endswith(sha256(content).hexdigest())


_Received = tuple[str, str | None, bytes]


class _Server(HTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Recorder)
        self.received: list[_Received] = []


class _Recorder(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.received.append((self.path, self.headers.get("X-A"), body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextlib.contextmanager
def _server() -> Iterator[tuple[str, list[_Received]]]:
    with _Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", server.received
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_commands_send_the_same_from_the_result_folder_and_from_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "a folder's results"
    folder.mkdir()
    body, target = b"\xff\0'x\n" * 4_000, "/x?[a]=" + "b" * 20
    header = 'a "quoted" \\ value' * 1_000
    with _server() as (address, received):
        request = httpx.Request(
            "POST",
            address,
            content=body,
            headers={"X-A": header},
            extensions={"target": target.encode()},
        )
        with keep_bodies(BodyFiles(folder).keep):
            command = Exchange(request, open=True).curl()
        for text, where in ((command, folder), (from_here(command, folder), tmp_path)):
            subprocess.run(["/bin/sh", "-c", text], cwd=where, check=True, capture_output=True)
        # A path that is relative to where the command was printed works there, and only there.
        relative = from_here(command, Path(folder.name))
        subprocess.run(["/bin/sh", "-c", relative], cwd=tmp_path, check=True, capture_output=True)
    assert received == [(target, header, body)] * 3


def test_the_commands_of_checks_and_causes_are_for_the_current_folder() -> None:
    command = f"curl http://x/ --data-binary @bodies/{'a' * 64}"
    check = Check(
        id="c#wire", result=Result.FAIL, level="must", rules=[], curl=command,
        causes=[Cause(cause="x", curl=command.replace("curl", "curl -i"))],
    )  # fmt: skip
    case = CaseResult(case="c", title="t", checks=[check])
    [shown] = case.with_commands(lambda text: from_here(text, Path("my results/runs/1"))).checks
    assert shown.curl.endswith(f"@'my results/runs/1/bodies/{'a' * 64}'")
    assert shown.causes[0].curl == shown.curl.replace("curl", "curl -i")


def test_replay_of_a_case_writes_nothing_into_the_run_that_it_repeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its long bodies were written beside those of the earlier run."""
    run, temporary = tmp_path / "run", tmp_path / "temporary"
    run.mkdir()
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    bodies = [b"x" * 10_000]

    async def repeat(*_: object) -> ExitCode:
        for body in bodies:
            print(_exchange(body).curl())  # noqa: T201 - as the command does
        return ExitCode.OK

    report = SimpleNamespace(run="run", sdk_references={"go": "go"})
    for name, value in (
        ("find_run", lambda *_: run),
        ("read_report", lambda _: report),
        ("_replay", repeat),
    ):
        monkeypatch.setattr(cases, name, value)

    def replayed() -> None:
        cases.replay.main(["run", "brain-create"], standalone_mode=False)

    replayed()
    file = Path(shlex.split(capsys.readouterr().out)[-1].removeprefix("@"))
    assert file.read_bytes() == bodies[0]
    assert list(run.iterdir()) == []
    [kept] = temporary.iterdir()
    bodies[0] = b"short"
    replayed()
    assert list(temporary.iterdir()) == [kept]
