"""`memconform lme` that is interrupted, killed, or called twice at once."""

import json
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.conftest import WAIT_SECONDS
from tests.integration.lme_replay import (
    BULK,
    FAKE,
    NO_FILTER,
    PRICED,
    Call,
    load,
    require_whole_files,
    stable,
    write_sdk,
)
from tests.integration.scripted_llm import Service
from tests.lme_data import write_dataset
from tests.program import PROGRAM
from tests.waiting import wait_until

_MOMENTS = 20
_REPLAY = (*BULK, *PRICED, *NO_FILTER, "--ingest-mode", "replay", "--llm-concurrency", "1")


def _start(environment: dict[str, str], folder: Path, *args: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PROGRAM, "lme", *args],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _prompts(service: Service) -> list[str]:
    answer = httpx.get(f"{service.url}/_control/requests", trust_env=False).json()
    return [json.dumps(call["body"]) for call in answer["requests"] if call["kind"] == "chat"]


def _end(process: subprocess.Popen[str], number: signal.Signals) -> tuple[str, str]:
    """End a command; none of its children is left then."""
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    said = process.communicate(timeout=WAIT_SECONDS)
    wait_until(lambda: not any(_runs(child) for child in children))
    return said


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


@pytest.mark.slow
def test_a_replay_that_is_killed_twenty_times_ends_like_one_that_is_not(
    memconform: Call, service: Service, environment: dict[str, str], workspace: Path
) -> None:
    write_dataset(workspace / "lme.json", sessions=3)
    sdk = write_sdk(workspace)
    command = ("run", *_REPLAY, "--sdk", sdk, "--output", "out")
    started = time.monotonic()
    undisturbed = _start(environment, workspace, *command)
    _, said = undisturbed.communicate(timeout=WAIT_SECONDS)
    assert undisturbed.returncode == 0, said
    took = time.monotonic() - started
    [brain] = (workspace / "cache" / "brains").iterdir()
    expected, facts = load(workspace / "out"), brain.read_bytes()
    manifest = load(workspace / "out", "manifest-scripted.json")
    prompts = _prompts(service)
    assert len(set(prompts)) == len(prompts)
    (workspace / "out").rename(workspace / "undisturbed")
    shutil.rmtree(workspace / "cache")
    service.script()
    before, killed = len(_prompts(service)), 0
    for moment in range(_MOMENTS):
        asked = _prompts(service)[before:]
        process = _start(environment, workspace, *command)
        try:
            process.wait(took * (moment + 0.5) / _MOMENTS)
        except subprocess.TimeoutExpired:
            killed += 1
        _end(process, signal.SIGKILL) if process.poll() is None else process.communicate()
        again = set(_prompts(service)[before + len(asked) :]) & set(asked)
        # At most the one whose reply had not come yet.
        assert again <= set(asked[-1:])
        for path in (workspace / "out").glob("*.json"):
            json.loads(path.read_text())
    # A start that finds everything in the cache has a shorter life than the first.
    assert killed >= _MOMENTS // 4
    last = memconform("lme", *command)
    assert last.code == 0, last.err
    _require_brain(brain, facts)
    for name in ("documents", "chunks", "version"):
        assert load(workspace / "out", "manifest-scripted.json")[name] == manifest[name]
    assert stable(load(workspace / "out"), calls=False) == stable(expected, calls=False)
    assert set(_prompts(service)[before:]) == set(prompts)


def _require_brain(brain: Path, facts: bytes) -> None:
    """The brain is the undisturbed one, and has no document twice."""
    assert brain.read_bytes() == facts
    paths = [json.loads(line).get("path") for line in facts.splitlines()[1:-1]]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize(
    ("stage", "number"),
    [
        ("start", signal.SIGINT),
        ("extraction", signal.SIGTERM),
        # It ended in `IndexError: tuple index out of range`, as a bug of memconform.
        ("filling", signal.SIGINT),
        ("asking", signal.SIGINT),
        ("reading", signal.SIGTERM),
    ],
)
def test_an_interrupt_leaves_no_process_and_no_half_file(
    memconform: Call,
    service: Service,
    environment: dict[str, str],
    workspace: Path,
    stage: str,
    number: signal.Signals,
) -> None:
    write_dataset(workspace / "lme.json", questions=2, sessions=2)
    note = workspace / "asked.txt"
    fault = {"asking": "hangs", "filling": "stays_pending"}.get(stage, "")
    sdk = write_sdk(workspace, fault=fault, on="kayak's", note=note)
    contains = {"extraction": "errand 1-1", "reading": "kayak's hull?"}.get(stage)
    if contains is not None:
        service.script({"kind": "chat", "contains": contains, "reply": {"fault": "hang"}})
    command = ("run", *_REPLAY, "--sdk", sdk, "--output", "out")
    process = _start(environment, workspace, *command)
    reached: dict[str, Callable[[], bool]] = {
        "start": lambda: (
            (workspace / "out" / "logs").exists() or (workspace / "out" / "ledger.sqlite").exists()
        ),
        "filling": (workspace / "out" / "journals" / "scripted").exists,
        "asking": lambda: note.exists() and "kayak's" in note.read_text(),
    }
    stuck: Callable[[], bool] = lambda: any(str(contains) in p for p in _prompts(service))  # noqa: E731
    try:
        wait_until(reached.get(stage, stuck))
        _, said = _end(process, number)
    finally:
        process.kill()
    assert process.returncode == 130, said
    printed = shlex.join(["memconform", "lme", *map(str, command)])
    assert f"to continue: {printed}\n" in said
    require_whole_files(workspace / "out")
    if stage in ("asking", "reading"):
        result = load(workspace / "out")
        assert (result["overall_score"], result["exit_code"]) == (None, 130)
        assert result["incident"]["code"] == "interrupted"
    service.script()
    if stage in ("asking", "filling"):
        return
    again = memconform("lme", *command)
    assert again.code == 0, again.err
    assert load(workspace / "out")["measured"] == 2


def test_sigterm_while_the_dataset_is_read_exits_with_130(
    environment: dict[str, str], workspace: Path
) -> None:
    """It once killed the harness, unlike Ctrl-C."""
    rows_file = workspace / "lme.json"
    write_dataset(rows_file, questions=1)
    [row] = json.loads(rows_file.read_text())
    rows_file.write_text(
        json.dumps([{**row, "question_id": f"q{number:05}"} for number in range(20_000)])
    )
    process = _start(environment, workspace, "run", *BULK, *FAKE, "--sdk", "py", "--output", "out")
    try:
        opened: Callable[[], bool] = lambda: any(  # noqa: E731
            file.path == str(rows_file) for file in psutil.Process(process.pid).open_files()
        )
        wait_until(opened)
        _, said = _end(process, signal.SIGTERM)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert not (workspace / "out").exists()


def test_two_replays_into_one_folder_do_not_mix(
    memconform: Call, service: Service, environment: dict[str, str], workspace: Path
) -> None:
    write_dataset(workspace / "lme.json", questions=1, sessions=2)
    service.script({"kind": "chat", "contains": "errand 0-1", "reply": {"fault": "hang"}})
    command = ("run", *_REPLAY, "--sdk", write_sdk(workspace), "--output", "out")
    process = _start(environment, workspace, *command)
    try:
        wait_until(lambda: any("errand 0-1" in prompt for prompt in _prompts(service)))
        second = memconform("lme", *command)
        assert second.code == 2
        assert second.err.startswith("output_in_use: ")
    finally:
        _end(process, signal.SIGKILL)
    service.script()
    assert memconform("lme", *command).code == 0


def _whole(folder: Path) -> dict[str, Any]:
    names = ("result-one.json", "result-two.json", "parity.json", "extract.json", "manifest.json")
    return {name: stable(load(folder, name)) for name in names}


def test_two_undisturbed_replays_agree_but_for_times(
    memconform: Call, workspace: Path, environment: dict[str, str]
) -> None:
    write_dataset(workspace / "lme.json", questions=5)
    sdks = [write_sdk(workspace, name) for name in ("one", "two")]
    flags = ("--sample-size", "4", "--seed", "7", "--ingest-mode", "replay", *NO_FILTER)
    runs = []
    for name in ("a", "b"):
        environment["MEMCONFORM_CACHE"] = str(workspace / f"cache-{name}")
        command = ("lme", "tri", *BULK, *FAKE, *flags, "--sdk", sdks[0], "--sdk", sdks[1])
        ended = memconform(*command, "--output", name)
        assert ended.code == 0, ended.err
        runs.append(_whole(workspace / name))
    assert runs[0] == runs[1]
    assert runs[0]["parity.json"]["verdict"] == "identical"


def test_a_damaged_journal_is_refused_and_can_be_deleted(
    memconform: Call, workspace: Path, environment: dict[str, str]
) -> None:
    """The journal after one that was deleted once had the name of one that was left."""
    environment["MEMCONFORM_CACHE"] = str(workspace / "cache")
    write_dataset(workspace / "lme.json")
    command = ("lme", "run", *BULK, *FAKE, *NO_FILTER, "--output", "out")
    dying = write_sdk(workspace, fault="dies_once", on="choir", note=workspace / "asked.txt")
    assert memconform(*command, "--sdk", dying).code == 3
    assert memconform(*command, "--sdk", dying).code == 0
    folder = workspace / "out" / "journals" / "scripted"
    [*earlier, journal] = sorted(folder.iterdir())
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], b"garbage\n", *lines[1:]]))
    refused = memconform(*command, "--sdk", dying)
    assert refused.code == 2
    assert f"journal_unreadable: out/journals/scripted/{journal.name}" in refused.err
    # A damaged one that is the first of several is deleted.
    journal.rename(folder / "001.jsonl")
    (folder / "002.jsonl").write_bytes(lines[0])
    for path in earlier:
        if path.name not in ("001.jsonl", "002.jsonl"):
            path.unlink()
    (folder / "001.jsonl").unlink()
    ended = memconform(*command, "--sdk", dying)
    assert ended.code == 0, ended.err
    assert load(workspace / "out")["measured"] == 3
