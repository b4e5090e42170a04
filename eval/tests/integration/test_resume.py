"""`run --resume`: no question asked twice, none lost."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import STRUCK, Ended, proven_attempts

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_RESOURCES = ("ready_ms", "rss_peak_bytes", "cpu_seconds")
_COMMON = ("--scorer", "exact", "--scenario", "search-retrieve-only", "--mode", "bm25")


def _runs(folder: Path) -> list[Path]:
    return sorted((folder / "results" / "runs").iterdir())


def _counting(scripted: Scripted, fault: str, asked: Path) -> Path:
    """A daemon that records each search, which reveals questions asked twice."""
    sdk = scripted(fault)
    text = sdk.read_text().replace('"--addr"', f'"--note", "{asked}", "--addr"')
    sdk.write_text(text)
    return sdk


@pytest.mark.parametrize("repeat", [1, 3])
def test_resumes_a_run_whose_daemon_died(
    memconform: Call, scripted: Scripted, dataset: Path, repeat: int
) -> None:
    asked = dataset.parent / "asked.txt"
    sdk = _counting(scripted, "dies_once", asked)
    call = ("run", "--sdk", sdk, "--dataset", dataset, *_COMMON, "--seed-reference-brain")
    first = memconform(*call, "--repeat", str(repeat))
    assert first.code == 3
    proven = proven_attempts(first.folder)
    assert first.result["counts"]["correct"] == proven // repeat <= STRUCK
    [died] = _runs(first.folder)
    before = (died / "journal.jsonl").read_bytes()
    asked.unlink()
    # Without repetitions, every question asked is one that was not proven.
    again = memconform(*call, "--repeat", str(repeat), "--resume", died.name, "--no-reverify")
    result = json.loads((_runs(first.folder)[-1] / "result.json").read_text())
    assert again.code == 0, again.err
    assert (result["passed"], result["total"]) == (12, 12)
    assert result["provenance"]["resumed_from"] == died.name
    assert [question["id"] for question in result["questions"]] == [f"q{n}" for n in range(12)]
    assert (died / "journal.jsonl").read_bytes() == before
    questions = [line for line in asked.read_text().splitlines() if line.endswith("?")]
    # Not counted: the warm-up, and a proof of each of the two claimed modes.
    for uncounted in (proven // repeat, 0, 0):
        questions.remove(f"What is the secret word of box{uncounted}?")
    # Exactly the attempts that no proof followed are repeated.
    assert len(questions) == 12 * repeat - proven


def test_resuming_with_proofs_asks_unproven_questions_again(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    """Resuming a run with --no-reverify once declared its attempts proven."""
    call = ("run", "--sdk", scripted(), "--dataset", dataset, *_COMMON, "--seed-reference-brain")
    first = memconform(*call, "--no-reverify")
    [trusting] = _runs(first.folder)
    assert first.result["verification"]["reproof"] is False
    again = memconform(*call, "--resume", trusting.name)
    assert again.code == 0, again.err
    journal = (_runs(first.folder)[-1] / "journal.jsonl").read_text().splitlines()
    stages = [json.loads(line)["stage"] for line in journal]
    # Nothing was adopted: the first statement follows a question that was asked.
    assert stages[1] == "retrieval"
    kept = memconform(*call, "--resume", trusting.name, "--no-reverify")
    assert kept.code == 0
    last = max(_runs(first.folder), key=lambda run: run.stat().st_mtime)
    proofs = [json.loads(x) for x in (last / "journal.jsonl").read_text().splitlines()]
    assert next(x["attempts"] for x in proofs if x["stage"] == "proved") == 12


@pytest.mark.capability("resume")
def test_a_truncated_journal_loses_only_its_last_line(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    call = ("run", "--sdk", scripted(), "--dataset", dataset, *_COMMON, "--seed-reference-brain")
    whole = memconform(*call)
    [run] = _runs(whole.folder)
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    judgements = [n for n, line in enumerate(lines) if json.loads(line)["stage"] == "judgement"]
    before = whole.result
    # As if killed while writing the judgement of the fifth question.
    (run / "journal.jsonl").write_bytes(b"".join(lines[: judgements[4]]) + lines[judgements[4]][:9])
    again = memconform(*call, "--resume", str(run))
    assert again.code == 0, again.err
    resumed = json.loads((_runs(whole.folder)[-1] / "result.json").read_text())
    assert resumed["passed"] == 12
    # The resources of the second daemon are not those of the run.
    assert all(before["daemon"][name] > 0 for name in _RESOURCES)
    assert {resumed["daemon"][name] for name in _RESOURCES} == {None}


def test_resume_rejects_other_settings(memconform: Call, scripted: Scripted, dataset: Path) -> None:
    call = ("run", "--sdk", scripted(), "--dataset", dataset, *_COMMON, "--seed-reference-brain")
    [run] = _runs(memconform(*call).folder)
    for other, named in (
        (("--top-k", "6"), "top_k was 5, is 6"),
        (("--limit", "3"), "questions was 12, is 3"),
        (("--mode", "auto"), "mode was bm25, is auto"),
        (("--repeat", "2"), "repeat was 1, is 2"),
    ):
        refused = memconform(*call, *other, "--resume", run.name)
        assert refused.code == 2
        assert "was made with other settings" in refused.err
        assert named in refused.err
    for same in (("--concurrency", "3"), ("--timeout", "90"), ("--floor", "0.5")):
        assert memconform(*call, *same, "--resume", run.name).code == 0
    scripted("crlf")
    assert memconform(*call, "--resume", run.name).code == 2
    dataset.write_text(dataset.read_text() + "\n")
    assert memconform(*call, "--resume", run.name).code == 2


def test_resume_rejects_another_build(memconform: Call, scripted: Scripted, dataset: Path) -> None:
    """The hash of an SDK without a build was once of its manifest alone."""
    script = dataset.parent / "serve.sh"
    script.write_text('exec "$@"\n')
    sdk = scripted()
    sdk.write_text(sdk.read_text().replace('["{python}"', '["sh", "serve.sh", "{python}"'))
    call = ("run", "--sdk", sdk, "--dataset", dataset, *_COMMON, "--seed-reference-brain")
    [run] = _runs(memconform(*call).folder)
    assert memconform(*call, "--resume", run.name).code == 0
    script.write_text('true; exec "$@"\n')
    refused = memconform(*call, "--resume", run.name)
    assert refused.code == 2
    assert "was made with other settings" in refused.err


def test_a_run_that_lacked_a_tool_goes_on_once_it_is_there(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    """The tool is part of the build's digest: what had measured nothing counted as other settings,
    and a shard of a worker without the tool, if that worker had been slow, as lost.
    """
    sdk, tool = scripted(), dataset.parent / "mytool"
    sdk.write_text(f"requires = [{json.dumps(str(tool))}]\n" + sdk.read_text())
    call = ("run", "--sdk", sdk, "--dataset", dataset, *_COMMON, "--seed-reference-brain")
    lacking = memconform(*call)
    assert (lacking.code, "toolchain_missing" in lacking.err) == (3, True)
    [run] = _runs(lacking.folder)
    tool.symlink_to("/bin/true")
    again = memconform(*call, "--resume", run.name)
    assert again.code == 0, again.err
    # Now that it has measured something, another build of it is refused.
    tool.unlink()
    refused = memconform(*call, "--resume", _runs(lacking.folder)[-1].name)
    assert (refused.code, "build_hash" in refused.err) == (2, True)


def test_rejects_an_invalid_journal(memconform: Call, scripted: Scripted, dataset: Path) -> None:
    call = ("run", "--sdk", scripted(), "--dataset", dataset, *_COMMON, "--seed-reference-brain")
    [run] = _runs(memconform(*call).folder)
    missing = memconform(*call, "--resume", run.name[:-1])
    assert missing.code == 2
    assert f"did you mean '{run.name}'?" in missing.err
    lines = (run / "journal.jsonl").read_text().splitlines(keepends=True)
    (run / "journal.jsonl").write_text("".join([*lines[:3], "garbage\n", *lines[3:]]))
    broken = memconform(*call, "--resume", run.name)
    assert broken.code == 2
    assert "line 4 is not a record" in broken.err
