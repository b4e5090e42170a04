"""The modes of the replay, against real daemons."""

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memconform.daemons.discovery import find_runner
from memconform.daemons.sdk_runner import Launch
from memconform.replay.shared_brain import BrainFile, BrainKey, read_brain
from tests.adapters import write_system
from tests.clients import client_of
from tests.conftest import Ended
from tests.integration.serving import CHECKOUT
from tests.lme_data import write_dataset

_QUICK = ("--upstream", "own", "--retrieval-mode", "bm25", "--quiet")


@pytest.fixture(autouse=True)
def _offline(environment: dict[str, str]) -> None:
    environment["JB_LLM_PROVIDER"] = "fake"


@pytest.fixture
def data(workspace: Path) -> Path:
    write_dataset(workspace / "data.json")
    return workspace / "data.json"


def _result(folder: Path, name: str = "go") -> dict[str, Any]:
    [path] = folder.glob(f"result-{name}.json")
    result: dict[str, Any] = json.loads(path.read_text())
    return result


def test_controls_need_no_daemon_and_bound_what_retrieval_can_give(
    memconform: Callable[..., Ended], data: Path, workspace: Path
) -> None:
    out = workspace / "out"
    modes = ("--benchmark-mode", "oracle,full-context,real-retrieval", "--sdk", "go")
    ended = memconform(
        "lme", "run", "--dataset", data, *modes, "--ingest-mode", "bulk", "--output", out, *_QUICK
    )
    assert ended.code == 0, ended.err
    oracle, full, go = (_result(out, name) for name in ("oracle", "full-context", "go"))
    assert {len(question["hits"]) for question in oracle["questions"]} == {1}
    assert {len(question["hits"]) for question in full["questions"]} == {4}
    assert oracle["overall_score"] == 1.0
    assert go["retrieval"]["recall_all@5"]["value"] == 100.0
    modes_of = [result["settings"]["benchmark_mode"] for result in (oracle, full, go)]
    assert modes_of == ["oracle", "full-context", "real-retrieval"]
    assert not (out / "parity.json").exists()


def test_a_memory_system_is_replayed_like_an_sdk(
    memconform: Callable[..., Ended], data: Path, workspace: Path
) -> None:
    mine = write_system(workspace / "mine")
    out = workspace / "out"
    ended = memconform(
        *("lme", "run", "--dataset", data, "--system", mine, "--ingest-mode", "bulk"),
        *("--output", out, "--upstream", "own", "--benchmark-mode", "real-retrieval"),
    )
    assert ended.code == 0, ended.err
    result = _result(out, "mine")
    assert result["retrieval"]["recall_all@5"]["value"] == 100.0
    assert "documents found by their own words" in ended.err


def test_what_was_retrieved_is_judged_whole_without_a_reader(
    memconform: Callable[..., Ended], data: Path, workspace: Path
) -> None:
    """A judge saw 8,000 characters, and a wrong answer behind more was never measured."""
    entries = json.loads(data.read_text())
    for session in (each for entry in entries for each in entry["haystack_sessions"]):
        session[-1]["content"] += " And so on." * 1_000
    for entry in entries:
        entry["answer"] = "nothing of the kind"
    data.write_text(json.dumps(entries))
    ended = memconform(
        "lme", "run", "--dataset", data, "--benchmark-mode", "oracle,full-context",
        "--no-reader", "--output", workspace / "out", *_QUICK,
    )  # fmt: skip
    assert ended.code == 0, ended.err
    for control in ("oracle", "full-context"):
        result = _result(workspace / "out", control)
        assert min(len(question["answer"]) for question in result["questions"]) > 8_000
        assert result["measured"] == result["questions_run"]


def test_what_a_judge_cannot_see_whole_is_not_wrong(
    memconform: Callable[..., Ended], data: Path, workspace: Path
) -> None:
    """Hits without room were left out in silence, and the question counted as wrong."""
    entries = json.loads(data.read_text())
    for session in (each for entry in entries for each in entry["haystack_sessions"]):
        session[-1]["content"] += " And so on." * 4_000
    entries[0]["answer"] = "nothing of the kind"
    data.write_text(json.dumps(entries))
    ended = memconform(
        "lme", "run", "--dataset", data, "--benchmark-mode", "full-context", "--no-reader",
        "--output", workspace / "out", *_QUICK,
    )  # fmt: skip
    assert ended.code == 3, ended.err
    first, *others = _result(workspace / "out", "full-context")["questions"]
    assert (first["judge_verdict"], first["left_out"] > 0) == ("judge_error", True)
    assert first["reason"].startswith("answer_cut: the judge saw 2 of 4 whole hits")
    assert all(other["judge_verdict"] in ("correct", "judge_error") for other in others)


def test_the_agent_searches_sessions_and_facts(
    memconform: Callable[..., Ended], data: Path, workspace: Path
) -> None:
    out = workspace / "out"
    ended = memconform(
        "lme", "run", "--dataset", data, "--sdk", "go", "--ingest-mode", "agentic",
        "--output", out, *_QUICK,
    )  # fmt: skip
    assert ended.code == 0, ended.err
    result = _result(out)
    kinds = {hit["kind"] for question in result["questions"] for hit in question["hits"]}
    assert kinds == {"session", "fact"}
    # Two searches and an answer for each of three questions.
    assert result["cost_accounting"]["by_role"]["reader"]["calls"] == 9
    assert result["settings"]["ingest_mode"] == "replay"


def test_the_daemons_own_reader_answers(
    memconform: Callable[..., Ended], data: Path, workspace: Path
) -> None:
    out = workspace / "out"
    ended = memconform(
        "lme", "run", "--dataset", data, "--sdk", "go", "--ingest-mode", "bulk",
        "--actor-endpoint-style", "full", "--output", out, *_QUICK,
    )  # fmt: skip
    assert ended.code == 0, ended.err
    result = _result(out)
    assert result["settings"]["reader"] is None
    assert "reader" not in result["cost_accounting"]["by_role"]
    assert all(question["answer"] for question in result["questions"])


async def test_a_brain_that_somebody_else_filled_is_proven_before_it_is_asked(
    memconform: Callable[..., Ended], data: Path, workspace: Path
) -> None:
    brains = workspace / "brains"
    made = memconform(
        "lme", "run", "--dataset", data, "--ingest-mode", "bulk", "--extract-only",
        "--brain-cache", brains, "--output", workspace / "made", "--quiet",
    )  # fmt: skip
    assert made.code == 0, made.err
    [path] = brains.iterdir()
    key = BrainKey.model_validate(json.loads(path.read_text().splitlines()[0])["key"])
    brain = read_brain(path, key)
    assert brain is not None
    launch = Launch(run_id=f"lme-{workspace.name}", folder=workspace / "daemon")
    launch.folder.mkdir()
    async with find_runner("go", CHECKOUT).serve(launch) as daemon:
        flags = (
            "lme", "run", "--dataset", data, "--ingest-mode", "none", "--brain-cache", brains,
            "--actor-endpoint", daemon.base_url, "--retrieval-mode", "bm25", "--quiet",
        )  # fmt: skip
        absent = await asyncio.to_thread(memconform, *flags, "--output", workspace / "absent")
        await _fill(daemon.base_url, brain)
        whole = await asyncio.to_thread(memconform, *flags, "--output", workspace / "whole")
        await _delete_one(daemon.base_url, brain)
        partial = await asyncio.to_thread(memconform, *flags, "--output", workspace / "partial")
        count = await _count(daemon.base_url)
    assert (absent.code, whole.code, partial.code) == (3, 0, 3), whole.err
    assert "seed_failed" in absent.err
    assert "index_incomplete" in partial.err
    assert [q["judge_verdict"] for q in _result(workspace / "whole", "url-*")["questions"]] == [
        "correct"
    ] * 3
    # Nothing was counted, and the brain is as it was.
    assert _result(workspace / "partial", "url-*")["measured"] == 0
    assert count == brain.size - 1


def test_a_daemon_that_memconform_starts_has_no_brain(
    memconform: Callable[..., Ended], data: Path, workspace: Path
) -> None:
    ended = memconform(
        "lme", "run", "--dataset", data, "--sdk", "go", "--ingest-mode", "none",
        "--output", workspace / "out", *_QUICK,
    )  # fmt: skip
    assert ended.code == 2
    assert "no_brain" in ended.err


async def _fill(address: str, brain: BrainFile) -> None:
    async with client_of(address) as client:
        await client.post("/v1/brains", json={"brainId": "eval-lme"})
        documents = [
            {
                "path": document.path,
                "contentType": document.content_type,
                "contentBase64": base64.b64encode(document.content).decode(),
            }
            for document in brain.documents()
        ]
        answer = await client.post(
            "/v1/brains/eval-lme/ingest/batch", json={"documents": documents}
        )
        assert answer.status_code == 200, answer.text


async def _count(address: str) -> object:
    async with client_of(address) as client:
        return (await client.get("/v1/brains/eval-lme")).json()["documents"]


async def _delete_one(address: str, brain: BrainFile) -> None:
    path = next(brain.documents()).path
    async with client_of(address) as client:
        answer = await client.delete("/v1/brains/eval-lme/documents", params={"path": path})
        assert answer.status_code in (200, 204), answer.text


@pytest.mark.capability("lme")
def test_flags_of_jeffs_brain_mean_what_they_say(
    memconform: Callable[..., Ended], data: Path, workspace: Path
) -> None:
    flags = [
        "--actor-scope",
        "memory",
        "--contextualise",
        "--no-reader",
        "--judge-timeout",
        "1m30s",
    ]
    caches = {name: workspace / name for name in ("contextualise", "judge")}
    for name, folder in caches.items():
        flags += [f"--{name}-cache-dir", str(folder)]
    ended = memconform(
        *("lme", "run", "--dataset", data, "--sdk", "py", "--output", workspace / "out", *_QUICK),
        *("--sample-size", "2", "--sampler", "jeffs-brain", "--sdk-port", "py=0", *flags),
    )
    assert ended.code == 2
    assert "--sdk-port py=0 names no port" in ended.err
    ended = memconform(
        *("lme", "run", "--dataset", data, "--sdk", "py", "--output", workspace / "out", *_QUICK),
        *("--sample-size", "2", "--sampler", "jeffs-brain", *flags),
        *("--brain-cache", workspace / "brains"),
    )
    assert ended.code == 0, ended.err
    result = _result(workspace / "out", "py")
    assert result["settings"]["reader"] is None
    assert result["settings"]["retrieval"]["path_prefix"] == "memory/"
    # The order is that of the draw.
    assert [question["id"] for question in result["questions"]] == ["q0001", "q0000"]
    for question in result["questions"]:
        assert {hit["kind"] for hit in question["hits"]} == {"fact"}
        assert question["answer"].startswith("[Session 1, ")
        assert "Context: Said on " in question["answer"]
    for folder in caches.values():
        assert list(folder.rglob("*.json"))
    extracted = json.loads((workspace / "out" / "extract.json").read_text())
    assert extracted["brain"]["without_context"] == {}
    assert list(result["cost_accounting"]["by_role"]) == ["judge"]
    assert "read by nobody" in (workspace / "out" / "README.md").read_text()
