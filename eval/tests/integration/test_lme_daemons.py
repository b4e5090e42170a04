"""`memconform lme` with daemons that fail: what was not measured never becomes a low score."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.lme_replay import (
    BULK,
    FAKE,
    NO_FILTER,
    Call,
    load,
    verdicts,
    write_sdk,
)
from tests.lme_data import write_dataset

_FLAGS = (*BULK, *FAKE, "--output", "out")


@pytest.fixture(autouse=True)
def _offline(environment: dict[str, str], workspace: Path) -> None:
    environment["MEMCONFORM_CACHE"] = str(workspace / "cache")


def _require_no_score(folder: Path, sdk: str = "scripted") -> None:
    result = load(folder, f"result-{sdk}.json")
    assert result["measured"] < result["questions_run"]
    for name in ("overall_score", "task_avg_score", "abstention_score"):
        assert result[name] is None
    assert result["retrieval"] == {}


@pytest.mark.parametrize(
    ("fault", "code"), [("dies_on_ingest", "daemon_died"), ("miscounts", "index_incomplete")]
)
def test_a_daemon_that_fails_while_it_is_filled_measures_nothing(
    memconform: Call, workspace: Path, fault: str, code: str
) -> None:
    write_dataset(workspace / "lme.json")
    sdk = write_sdk(workspace, fault=fault)
    ended = memconform("lme", "run", *_FLAGS, *NO_FILTER, "--sdk", sdk)
    assert ended.code == 3, ended.err
    assert verdicts(workspace / "out") == [code] * 3
    _require_no_score(workspace / "out")


def test_a_daemon_that_dies_is_asked_again_by_the_same_command(
    memconform: Call, workspace: Path
) -> None:
    write_dataset(workspace / "lme.json", questions=5)
    sdk = write_sdk(workspace, fault="dies_once", on="telescope?", note=workspace / "asked.txt")
    command = ("lme", "run", *_FLAGS, *NO_FILTER, "--sdk", sdk)
    died = memconform(*command)
    assert died.code == 3, died.err
    # No verification of the index followed its answers.
    assert verdicts(workspace / "out") == ["daemon_died"] * 5
    _require_no_score(workspace / "out")
    again = memconform(*command)
    assert again.code == 0, again.err
    assert load(workspace / "out")["measured"] == 5


def test_a_daemon_that_dies_while_it_waits_spoils_no_other(
    memconform: Call, workspace: Path
) -> None:
    write_dataset(workspace / "lme.json")
    note = workspace / "asked.txt"
    first = write_sdk(workspace, "first", "kills_other", on="kayak", note=note)
    waits = write_sdk(workspace, "waits", first=f"echo $$ > {note.with_suffix('.pid')}")
    flags = (*_FLAGS, *NO_FILTER)
    ended = memconform("lme", "tri", *flags, "--sdk", first, "--sdk", waits)
    assert ended.code == 3, ended.err
    assert load(workspace / "out", "result-first.json")["measured"] == 3
    assert load(workspace / "out", "result-first.json")["exit_code"] == 0
    assert verdicts(workspace / "out", "waits") == ["daemon_died"] * 3
    _require_no_score(workspace / "out", "waits")
    parity = load(workspace / "out", "parity.json")
    assert parity["verdict"] not in ("identical", "parity")
    assert parity["pairs"][0]["rankings"]["compared"] == 0
    assert any("waits: 3 of 3 questions not measured" in each for each in parity["reasons"])


def test_a_daemon_that_does_not_start_leaves_the_results_of_another(
    memconform: Call, workspace: Path
) -> None:
    write_dataset(workspace / "lme.json")
    dead, well = write_sdk(workspace, "dead", "exits"), write_sdk(workspace, "well")
    ended = memconform("lme", "tri", *_FLAGS, "--sdk", dead, "--sdk", well)
    assert ended.code == 3, ended.err
    assert load(workspace / "out", "result-well.json")["measured"] == 3
    _require_no_score(workspace / "out", "dead")
    assert load(workspace / "out", "result-dead.json")["incident"]["code"] == "daemon_exited"
    readme = (workspace / "out" / "README.md").read_text().replace("\\", "")
    assert "dead: 3 of daemon_exited" in readme


def test_a_question_whose_scores_rise_is_measured_by_position(
    memconform: Call, workspace: Path
) -> None:
    """Three of six questions were lost on a public daemon, and lme had no flag for them."""
    write_dataset(workspace / "lme.json")
    sdk = write_sdk(workspace, fault="rising_scores", on="What did I plant")
    command = ("lme", "run", *BULK, *FAKE, *NO_FILTER, "--sdk", sdk)
    strict = memconform(*command, "--output", "strict")
    assert verdicts(workspace / "strict")[0] == "bad_ranking"
    assert "--rank-by position" in load(workspace / "strict")["questions"][0]["reason"]
    assert strict.code == 3, strict.err
    ended = memconform(*command, "--output", "out", "--rank-by", "position")
    assert ended.code == 0, ended.err
    result = load(workspace / "out")
    assert (result["measured"], result["rising_scores"]) == (3, 1)
    assert result["settings"]["retrieval"]["rank_by"] == "position"
    note = "scores rise in the rankings of 1 question (core.search.order), ranked by position"
    assert note in ended.err
    assert note in (workspace / "out" / "README.md").read_text().replace("\\", "")


@pytest.mark.parametrize("fault", ["http_500", "foreign_chunk"])
def test_a_search_that_fails_leaves_its_question_unmeasured(
    memconform: Call, workspace: Path, fault: str
) -> None:
    write_dataset(workspace / "lme.json")
    sdk = write_sdk(workspace, fault=fault, on="kayak's")
    ended = memconform("lme", "run", *_FLAGS, *NO_FILTER, "--sdk", sdk)
    assert ended.code == 3, ended.err
    assert [each in ("correct", "incorrect") for each in verdicts(workspace / "out")] == [
        *(True, False, True)
    ]
    _require_no_score(workspace / "out")


@pytest.mark.capability("lme")
def test_two_sdks_that_rank_differently_are_named_with_the_first_place(
    memconform: Call, workspace: Path
) -> None:
    write_dataset(workspace / "lme.json", questions=5)
    alike = [write_sdk(workspace, name) for name in ("first", "second")]
    other = write_sdk(workspace, "other", "drops_first", on="What did I buy for the telescope?")
    sdks = [flag for sdk in (*alike, other) for flag in ("--sdk", sdk)]
    ended = memconform("lme", "tri", *_FLAGS, *NO_FILTER, *sdks)
    assert ended.code in (0, 1), ended.err
    parity = load(workspace / "out", "parity.json")
    by_pair = {(pair["first"], pair["second"]): pair for pair in parity["pairs"]}
    same, differing = by_pair["first", "second"], by_pair["first", "other"]
    assert same["divergences"] == []
    assert same["rankings"]["equal"] == 5
    assert differing["rankings"]["equal"] == 4
    [divergence] = differing["divergences"]
    assert (divergence["question"], divergence["stage"]) == ("q0004", "candidates")
    assert divergence["detail"].startswith("at rank 1 raw/lme/answer_0004.md and ")
    assert parity["verdict"] != "identical"
    readme = (workspace / "out" / "README.md").read_text().replace("\\", "")
    assert "q0004 differs in candidates: at rank 1 raw/lme/answer_0004.md and " in readme


def test_answers_of_a_daemon_that_loses_a_document_are_not_counted(
    memconform: Call, workspace: Path
) -> None:
    write_dataset(workspace / "lme.json")
    sdk = write_sdk(workspace, fault="loses_document", on="choir")
    ended = memconform("lme", "run", *_FLAGS, *NO_FILTER, "--sdk", sdk)
    assert ended.code == 3, ended.err
    assert verdicts(workspace / "out") == ["brain_changed"] * 3
    _require_no_score(workspace / "out")


def test_one_sdk_without_the_session_filter_turns_it_off_for_all(
    memconform: Call, workspace: Path
) -> None:
    write_dataset(workspace / "lme.json")
    honours = write_sdk(workspace, "honours", "filters_sessions")
    ignores = write_sdk(workspace, "ignores")
    ended = memconform("lme", "tri", *_FLAGS, "--sdk", honours, "--sdk", ignores)
    assert ended.code == 0, ended.err
    rule = load(workspace / "out", "parity.json")["session_filter"]
    assert rule.startswith("auto: ignores does not honour it")
    assert rule in (workspace / "out" / "README.md").read_text().replace("\\", "")
    for name in ("honours", "ignores"):
        result = load(workspace / "out", f"result-{name}.json")
        assert result["settings"]["retrieval"]["session_filter"] is False
    forced = (*BULK, *FAKE, "--output", "on", "--actor-filter-question-sessions", "on")
    refused = memconform("lme", "tri", *forced, "--sdk", honours, "--sdk", ignores)
    assert refused.code == 2
    assert "filter_not_honoured: ignores" in refused.err
    # Nothing was paid for before it was known.
    assert not (workspace / "on" / "extract.json").exists()


def test_a_filter_that_is_honoured_once_and_then_ignored_is_no_low_score(
    memconform: Call, workspace: Path
) -> None:
    write_dataset(workspace / "lme.json")
    sdk = write_sdk(workspace, fault="forgets_sessions", on="allotment?")
    ended = memconform("lme", "run", *_FLAGS, "--sdk", sdk)
    assert ended.code == 3, ended.err
    assert load(workspace / "out")["settings"]["retrieval"]["session_filter"] is True
    assert verdicts(workspace / "out")[0] == "filter_ignored"
    assert load(workspace / "out")["measured"] == 2
    _require_no_score(workspace / "out")


def test_a_taken_port_is_an_error_and_no_score(memconform: Call, workspace: Path) -> None:
    write_dataset(workspace / "lme.json")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = ("lme", "run", *_FLAGS, "--sdk", "py", "--port", str(port))
        ended = memconform(*command)
        assert ended.code == 3, ended.err
        assert f"port_taken: port {port}" in ended.err
        assert not (workspace / "out" / "extract.json").exists()
        unfiltered = memconform(*command, *NO_FILTER)
    assert unfiltered.code == 3, unfiltered.err
    assert verdicts(workspace / "out", "py") == ["port_taken"] * 3


def test_a_running_daemon_is_filled_only_with_permission_and_left_running(
    memconform: Call, workspace: Path, environment: dict[str, str]
) -> None:
    write_dataset(workspace / "lme.json")
    argv = [sys.executable, "-m", "tests.fakes.scripted", "--addr", "127.0.0.1:0"]
    daemon = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert daemon.stdout is not None
        url = daemon.stdout.readline().split()[-1]
        command = ("lme", "run", *_FLAGS, *NO_FILTER, "--actor-endpoint", url)
        refused = memconform(*command)
        assert refused.code == 2, refused.err
        full = ("--i-own-this-brain", "--actor-endpoint-style", "full")
        ended = memconform(*command, *full)
        assert ended.code == 0, ended.err
        assert daemon.poll() is None
    finally:
        daemon.kill()
        daemon.communicate()
    [path] = (workspace / "out").glob("result-*.json")
    result = json.loads(path.read_text())
    assert result["settings"]["endpoint_style"] == "full"
    assert result["settings"]["reader"] is None
    assert (result["measured"], result["cost_accounting"]["by_role"].keys()) == (3, {"judge"})
    gone = memconform(*command, "--i-own-this-brain", "--output", "gone")
    assert gone.code == 3, gone.err
    assert (
        json.loads(next((workspace / "gone").glob("result-*.json")).read_text())["overall_score"]
        is None
    )


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (("--expected-sha", "0123456789abcdef"), "other_dataset"),
        (("--sample-ids-file", "ids.txt"), "unknown_question"),
        (("--actor-path-prefix", "nowhere/"), "filters_exclude_all"),
        (("--actor-project", "p"), "filters_exclude_all"),
        (("--actor-endpoint-style", "full", "--ingest-mode", "agentic"), "bad_option"),
        (("--skip-extract",), "no_brain"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_asked(
    memconform: Call, workspace: Path, flags: tuple[str, ...], code: str
) -> None:
    """Filters that exclude every document once gave every SDK a score of abstentions."""
    write_dataset(workspace / "lme.json")
    (workspace / "ids.txt").write_text("q0000\nq9999\n")
    asked = workspace / "asked.txt"
    sdk = write_sdk(workspace, note=asked)
    ended = memconform("lme", "run", *_FLAGS, *NO_FILTER, "--sdk", sdk, *flags)
    assert ended.code == 2, ended.err
    assert ended.err.startswith(f"{code}: ")
    assert not list((workspace / "out").glob("result-*"))
    assert not asked.exists()


def test_gold_that_no_sdk_could_retrieve_is_refused(memconform: Call, workspace: Path) -> None:
    """Every SDK once seemed to miss a session that the dataset does not have."""
    write_dataset(workspace / "lme.json")
    rows = json.loads((workspace / "lme.json").read_text())
    rows[1]["answer_session_ids"] = ["answer_9999"]
    (workspace / "lme.json").write_text(json.dumps(rows))
    ended = memconform("lme", "run", *_FLAGS, *NO_FILTER, "--sdk", write_sdk(workspace))
    assert ended.code == 2
    assert "dataset_invalid: lme.json: q0001" in ended.err
    assert "answer_9999" in ended.err


def test_strange_ids_and_empty_sessions_are_retrieved_like_others(
    memconform: Call, workspace: Path
) -> None:
    write_dataset(workspace / "lme.json")
    rows = json.loads((workspace / "lme.json").read_text())
    strange = ("../up", "a b#c?", "ün☃", "a%20b", "..", "A", "a")
    for number, name in enumerate(strange):
        row = rows[number % 3]
        row["haystack_session_ids"].append(name)
        row["haystack_dates"].append("2023/05/20 (Sat) 10:00")
        turns = [{"role": "user", "content": f"I saw owl number {number}."}] if number else []
        row["haystack_sessions"].append(turns)
    rows[0]["question_id"] = 'q/../ü "x'
    rows[0]["question"] = "Which owl number 3 did I see on the allotment?"
    (workspace / "lme.json").write_text(json.dumps(rows))
    sdk = write_sdk(workspace, fault="filters_sessions")
    ended = memconform("lme", "run", *_FLAGS, "--sdk", sdk)
    assert ended.code == 0, ended.err
    assert load(workspace / "out")["questions"][0]["id"] == 'q/../ü "x'
    sessions = {hit["session"] for hit in load(workspace / "out")["questions"][0]["hits"]}
    assert "a%20b" in sessions
    assert not sessions & {"ün☃", "a b#c?"}


def test_a_daemon_that_dies_while_it_is_verified_spoils_only_what_was_not_verified_yet(
    memconform: Call, workspace: Path
) -> None:
    """Nothing was seen to be missing. Fifty answers had been proven, and were asked again."""
    write_dataset(workspace / "lme.json", questions=51)
    # The last question, and the verification after it.
    rows = json.loads((workspace / "lme.json").read_text())
    rows[-1]["question"] += " (the last one)"
    (workspace / "lme.json").write_text(json.dumps(rows))
    sdk = write_sdk(workspace, fault="dies_when_counted", on="(the last one)")
    ended = memconform("lme", "run", *_FLAGS, *NO_FILTER, "--sdk", sdk)
    assert ended.code == 3, ended.err
    assert load(workspace / "out")["measured"] == 50
    assert verdicts(workspace / "out")[-1] == "daemon_died"
