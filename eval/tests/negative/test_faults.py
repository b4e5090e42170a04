"""Every way in which a daemon can fail a question, and the resulting verdict."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import STRUCK, WAIT_SECONDS, Ended, proven_attempts

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_UNPROVEN = "index_not_proven"
# short limit: the silence is endless, and all other questions are answered from memory.
_QUICK = ("--timeout-first", "2", "--timeout-gap", "2")
"""For faults that are endless silence. A stall of the whole machine is no timeout."""


def _run(memconform: Call, sdk: Path | str, dataset: Path, scenario: str, *more: str) -> Ended:
    return memconform(
        *("run", "--sdk", sdk, "--dataset", dataset, "--scorer", "exact"),
        *("--scenario", scenario, "--mode", "bm25", "--seed-reference-brain", *more),
    )


def test_a_failed_question_can_be_repeated_by_its_curl_line(
    memconform: Call, dataset: Path, environment: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "tests.fakes.scripted", "--addr", "127.0.0.1:0"]
    command += ["--fault", "http_500", "--on", f"box{STRUCK}?"]
    daemon = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        url = daemon.stdout.readline().split()[-1] if daemon.stdout else ""
        ended = _run(memconform, f"url:{url}", dataset, "ask-basic", "--brain", "mc-curl")
        repeated = subprocess.run(
            shlex.split(ended.question["error"]["curl"]), capture_output=True, check=True, text=True
        )
    finally:
        daemon.terminate()
        daemon.communicate()
    assert "HTTP/1.1 500" in repeated.stdout
    assert '"detail": "boom"' in repeated.stdout


def test_a_daemon_that_logs_a_megabyte_is_not_held_up_by_it(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    ended = _run(memconform, scripted("noisy"), dataset, "search-retrieve-only")
    assert (ended.code, ended.result["passed"]) == (0, 12)
    [log] = (ended.folder / "results" / "runs").glob("*/daemon.log")
    assert log.stat().st_size > 1_000_000


def test_a_good_daemon_passes_every_question(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    for scenario in ("search-retrieve-only", "ask-basic", "ask-augmented"):
        ended = memconform(
            *("run", "--sdk", scripted(), "--dataset", dataset, "--scorer", "exact"),
            *("--scenario", scenario, "--mode", "bm25", "--seed-reference-brain"),
        )
        assert ended.code == 0, ended.err
        assert ended.out.startswith("scripted: 12/12 pass_rate=1.0000 mean_score=1.0000 -> ")


_BOTH = {
    "http_500": ("daemon_error", "http_500"),
    "html_200": ("protocol_error", None),
    "other_shape": ("protocol_error", None),
    "hangs": ("timeout", "timeout"),
    "mode_not_served": ("daemon_error", "mode_not_served"),
    "too_many_chunks": ("protocol_error", "bad_ranking"),
    "chunk_twice": ("protocol_error", "bad_ranking"),
    "rising_scores": ("protocol_error", "bad_ranking"),
    "nan_score": ("protocol_error", None),
}
_QUICKLY = 3
"""Number of these that every test run searches; all of them are asked."""
_STREAM = {
    "cuts_stream": ("daemon_error", "connection_broken"),
    "silent_after_retrieve": ("timeout", "timeout"),
    "drips_comments": ("timeout", "timeout"),
    "open_after_done": ("protocol_error", "open_after_done"),
    "bad_json_delta": ("protocol_error", "bad_event"),
    "done_twice": ("protocol_error", "event_after_done"),
    "delta_after_done": ("protocol_error", "event_after_done"),
    "delta_before_retrieve": ("protocol_error", "event_order"),
    "delta_after_citation": ("protocol_error", "event_order"),
    "retrieve_twice": ("protocol_error", "event_order"),
    "no_retrieve": ("protocol_error", "event_order"),
    "no_done": ("protocol_error", "stream_ended_early"),
    "ok_after_error": ("protocol_error", "ok_after_error"),
    "error": ("daemon_error", "reader_failed"),
    "failed_without_error": ("protocol_error", "failed_without_error"),
    "empty_error": ("protocol_error", "bad_event"),
    "answer_mismatch": ("protocol_error", "answer_mismatch"),
    "foreign_citation": ("protocol_error", "bad_citation"),
}


@pytest.mark.parametrize(
    ("scenario", "fault", "verdict", "code"),
    [
        # Each of them is asked too.
        *(
            pytest.param(
                *("search-retrieve-only", fault, *end),
                marks=[] if number < _QUICKLY else [pytest.mark.exhaustive],
            )
            for number, (fault, end) in enumerate(_BOTH.items())
        ),
        *(("ask-basic", fault, *end) for fault, end in (_BOTH | _STREAM).items()),
    ],
)
def test_one_failed_question_does_not_affect_the_others(
    memconform: Call,
    scripted: Scripted,
    dataset: Path,
    scenario: str,
    fault: str,
    verdict: str,
    code: str | None,
) -> None:
    limits = _QUICK if verdict == "timeout" else ()
    ended = _run(memconform, scripted(fault), dataset, scenario, *limits)
    assert ended.question["verdict"] == verdict
    assert ended.question["score"] is None
    error = ended.question["error"]
    assert code is None or error["code"] == code
    assert error["curl"] in ended.err
    wire = (ended.folder / "results" / "runs" / ended.result["run_id"] / error["wire"]).read_text()
    assert f"What is the secret word of box{STRUCK}?" in wire
    result = ended.result
    assert result["counts"]["correct"] == 11
    assert result["counts"][verdict] == 1
    assert (result["passed"], result["total"]) == (11, 12)
    assert result["mean_score"] == 1.0
    # 11 of 12 is above the floor, and the twelfth is still reported.
    assert ended.code == result["exit_code"] == 0
    assert f"1 of 12 questions were not measured: 1 {verdict}" in ended.err
    assert "11/12 pass_rate=0.9167..1.0000 mean_score=1.0000 not_measured=1" in ended.out


@pytest.mark.parametrize("fault", ["", "crlf", "cr", "bom", "byte_by_byte", "noise"])
def test_unusual_but_valid_event_streams_are_scored_alike(
    memconform: Call, scripted: Scripted, dataset: Path, fault: str
) -> None:
    """Line ends, a byte order mark, split UTF-8, and characters that only resemble line ends."""
    secret = f"word{STRUCK}x"
    strange = f"{secret} caf\u00e9 \u2028 \u2029 \u0085 \U0001f511 end"
    rows = [json.loads(line) for line in dataset.read_text().splitlines()]
    rows[STRUCK]["reference_answer"] = f"The secret of box{STRUCK} is {strange}"
    rows[STRUCK]["expected_substrings"] = [strange]
    dataset.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = _run(memconform, scripted(fault), dataset, "ask-basic")
    assert ended.question["answer"] == f"The secret of box{STRUCK} is {strange}"
    assert (ended.code, ended.result["passed"]) == (0, 12)


def test_an_endless_answer_ends_at_the_total_limit(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    # short limit: the answer is endless, and all others come from memory.
    ended = _run(memconform, scripted("drips_deltas"), dataset, "ask-basic", "--timeout", "4")
    assert ended.question["verdict"] == "timeout"


@pytest.mark.parametrize("concurrency", ["1", "4"])
def test_a_daemon_that_dies_ends_the_run_and_keeps_what_was_measured(
    memconform: Call, scripted: Scripted, dataset: Path, concurrency: str
) -> None:
    ended = _run(
        *(memconform, scripted("dies"), dataset, "search-retrieve-only"),
        *("--concurrency", concurrency),
    )
    assert ended.code == 3
    assert ended.question["verdict"] == "daemon_error"
    assert ended.question["error"]["code"] == "daemon_died"
    result = ended.result
    assert result["incident"]["code"] == "daemon_died"
    assert "killed by SIGKILL" in result["incident"]["message"]
    assert "dying by SIGKILL" in ended.err
    assert result["counts"]["incorrect"] == 0
    # Attempts since the last verification are discarded, because the index died with the daemon.
    assert proven_attempts(ended.folder) == result["counts"]["correct"] <= 7
    unproven = [q for q in result["questions"] if (q["error"] or {}).get("code") == _UNPROVEN]
    if concurrency == "1":
        assert len(unproven) == 7 - result["counts"]["correct"]
        assert result["counts"]["not_run"] == 4


def test_three_timeouts_in_a_row_end_the_run(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    sdk = scripted("hangs")
    sdk.write_text(sdk.read_text().replace(f"box{STRUCK}?", "What"))
    ended = _run(memconform, sdk, dataset, "search-retrieve-only", "--allow-fallback", *_QUICK)
    assert ended.code == 3
    counts = ended.result["counts"]
    assert (counts["timeout"], counts["not_run"]) == (3, 9)
    assert ended.result["incident"]["code"] == "timeouts_in_a_row"


def test_a_low_score_alone_exits_1(memconform: Call, scripted: Scripted, dataset: Path) -> None:
    dataset.write_text(dataset.read_text().replace('["word3x"]', '["elsewhere"]'))
    dataset.write_text(dataset.read_text().replace('["word4x"]', '["elsewhere"]'))
    ended = _run(memconform, scripted(), dataset, "search-retrieve-only")
    assert ended.code == 1
    assert "pass rate 0.833 is below the floor 0.900" in ended.err
    assert "q3: incorrect" in ended.err


@pytest.mark.capability("faults")
def test_unmeasured_questions_that_decide_the_floor_exit_3(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    ended = _run(
        *(memconform, scripted("http_500"), dataset, "search-retrieve-only"),
        *("--floor", "0.95"),
    )
    assert ended.code == 3
    assert "the unmeasured questions decide" in ended.err


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("not_searchable", "not_searchable"),
        ("miscounts", "index_incomplete"),
        ("truncates", "index_incomplete"),
        ("other_contract", "contract_version"),
    ],
)
def test_an_incomplete_brain_is_never_asked(
    memconform: Call, scripted: Scripted, dataset: Path, fault: str, code: str
) -> None:
    ended = _run(memconform, scripted(fault), dataset, "search-retrieve-only")
    assert ended.code == 3
    assert ended.result["incident"]["code"] == code
    assert ended.result["counts"]["not_run"] == 12
    assert ended.result["mean_score"] is None
    assert ended.result["pass_rate"] is None
    assert f"scripted: {code}; 0 of 12 questions measured" in ended.out


@pytest.mark.parametrize(
    ("fault", "code", "says"),
    [
        ("exits", "daemon_exited", "exit status 7"),
        ("exits_after_noise", "daemon_exited", "exit status 7"),
        (
            "never_healthy",
            "daemon_not_ready",
            "did not become healthy within 6 s: last answer of /healthz: 503 ",
        ),
        (
            "never_listens",
            "daemon_not_ready",
            "within 1 s: no 'listening on http://host:port' line was printed",
        ),
    ],
)
def test_a_daemon_that_does_not_start_says_why(
    memconform: Call, scripted: Scripted, dataset: Path, fault: str, code: str, says: str
) -> None:
    # One must start and answer within the limit, others end before it.
    ready_s = {"never_healthy": 6, "never_listens": 1}.get(fault, WAIT_SECONDS)
    ended = _run(memconform, scripted(fault, ready_s=ready_s), dataset, "search-retrieve-only")
    assert ended.code == 3
    assert ended.result["incident"]["code"] == code
    assert says in ended.err
    if code == "daemon_exited":
        assert "exiting at once" in ended.err
    if fault == "never_healthy":
        assert "warming up for ever" in ended.err


def test_no_secret_leaves_the_harness(
    memconform: Call, scripted: Scripted, dataset: Path, environment: dict[str, str]
) -> None:
    """Canaries: a bearer token, a header, a key that the manifest passes."""
    canaries = ("canary-token", "canary-header", "sk-canary")
    environment["MEMCONFORM_AUTH_TOKEN"] = canaries[0]
    # The daemon echoes everything it was sent, in its answer and in its log.
    sdk = scripted("tells_headers", first="echo $OPENAI_API_KEY >&2")
    sdk.write_text(sdk.read_text() + '[env]\npass = ["OPENAI_API_KEY"]\n')
    ended = _run(
        *(memconform, sdk, dataset, "ask-basic", "--header", f"X-Key: {canaries[1]}"),
        *("--json", "report.json", "--log-level", "debug"),
    )
    error = ended.question["error"]
    assert error["code"] == "http_500"
    assert "(hidden)" in error["body"]
    assert '"Authorization: Bearer $MEMCONFORM_AUTH_TOKEN"' in error["curl"]
    written = [path for path in ended.folder.rglob("*") if path.is_file()]
    assert {"daemon.log", "journal.jsonl", "manifest.json", "report.json"} <= {
        path.name for path in written
    }
    for canary in canaries:
        for path in written:
            assert canary.encode() not in path.read_bytes(), path
        assert canary not in ended.out + ended.err


@pytest.mark.parametrize("header", ["no colon", "bad name: x", ": x", "a: b\nc: d"])
def test_an_invalid_header_is_refused(
    memconform: Call, scripted: Scripted, dataset: Path, header: str
) -> None:
    ended = _run(memconform, scripted(), dataset, "ask-basic", "--header", header)
    assert ended.code == 2
    assert "is not a header" in ended.err
