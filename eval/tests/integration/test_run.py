"""`memconform run` against the real Python daemon."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import jsonschema
import pytest

from memconform.reports.machine import RunReport
from memconform.runs.results import RunResult
from tests.conftest import CALL_SECONDS, CHECKOUT, Ended

Call = Callable[..., Ended]

_PY = CHECKOUT / "sdks" / "py" / "sdk.toml"
_SEEDED = ("--sdk", str(_PY), "--dataset", "smoke", "--scorer", "exact", "--seed-reference-brain")


@pytest.mark.parametrize("scenario", ["search-retrieve-only", "ask-basic", "ask-augmented"])
@pytest.mark.parametrize("mode", ["auto", "bm25", "semantic", "hybrid"])
def test_every_scenario_in_every_claimed_mode(memconform: Call, scenario: str, mode: str) -> None:
    ended = memconform("run", *_SEEDED, "--scenario", scenario, "--mode", mode)
    assert ended.code == 0, ended.err
    result = RunResult.model_validate(ended.result)
    assert (result.passed, result.total) == (20, 20)
    served = {question.trace["effectiveMode"] for question in result.questions if question.trace}
    assert served == {"bm25" if mode == "auto" else mode}
    for question in result.questions:
        assert len(question.ranking) == 5
        assert question.timings is not None
        if scenario == "search-retrieve-only":
            assert question.timings.first_delta is None
            assert not question.citations
        else:
            first_event, first_delta = question.timings.first_event, question.timings.first_delta
            assert first_event is not None
            assert first_delta is not None
            assert question.timings.first_byte <= first_event <= first_delta
            assert first_delta <= question.timings.done
            assert len(question.citations) == 1


def test_a_run_of_one_sdk_imports_no_numeric_or_vendor_package(
    installed: Call, environment: dict[str, str]
) -> None:
    environment["PYTHONPROFILEIMPORTTIME"] = "1"
    imports = installed("run", *_SEEDED, "--scenario", "search-retrieve-only").err
    loaded = set(re.findall(r"^import time: .*\| +([a-z0-9_]+)$", imports, re.MULTILINE))
    assert "httpx" in loaded
    assert not loaded & {"numpy", "scipy", "openai", "anthropic"}


def test_the_last_line_and_the_files(memconform: Call) -> None:
    ended = memconform("run", *_SEEDED, "--scenario", "search-retrieve-only", "--mode", "bm25")
    result = ended.result
    day = result["started_at"][:10]
    line = f"py: 20/20 pass_rate=1.0000 mean_score=1.0000 -> results/{day}/py.json\n"
    assert ended.out == line
    record = ended.folder / "results" / "runs" / result["run_id"]
    assert (ended.folder / "results" / day / "py.json").read_bytes() == (
        record / "result.json"
    ).read_bytes()
    assert {path.name for path in record.iterdir()} == {
        "result.json",
        "manifest.json",
        "journal.jsonl",
        "daemon.log",
    }
    stages = [
        json.loads(line)["stage"] for line in (record / "journal.jsonl").read_text().splitlines()
    ]
    attempts = [stage for stage in stages if stage != "proved"]
    assert attempts == ["header", *["retrieval", "answer", "judgement"] * 20, "footer"]
    assert stages[-2:] == ["proved", "footer"]
    assert result["seeded"] | {"took_ms": 0} == {
        "documents": 20,
        "chunks": 20,
        "vectors": 20,
        "took_ms": 0,
        "leased": True,
        "proof": {
            "documents": 20,
            "of": 20,
            "without_words": 0,
            "modes": ["bm25"],
            "share": None,
            "confidence": None,
            "failed": 0,
            "promised": True,
            "after_ms": None,
        },
    }
    assert result["verification"]["verifications"] == stages.count("proved")
    assert result["verification"]["reproof"] is True
    assert result["daemon"]["rss_peak_bytes"] > 2**20
    assert len(result["daemon"]["build_hash"]) == 64


def test_a_second_run_of_the_day_replaces_the_copy_and_keeps_the_record(memconform: Call) -> None:
    for _ in range(2):
        ended = memconform("run", *_SEEDED, "--scenario", "search-retrieve-only", "--limit", "2")
    records = list((ended.folder / "results" / "runs").iterdir())
    [copy] = (ended.folder / "results").glob("20*/py.json")
    assert len(records) == 2
    assert json.loads(copy.read_text())["run_id"] == max(record.name for record in records)


def test_json_is_alone_on_standard_output_and_matches_its_schema(installed: Call) -> None:
    schema = json.loads(installed("run", "--schema").out)
    ended = installed("run", *_SEEDED, "--scenario", "ask-basic", "--json", "-")
    report = json.loads(ended.out)
    jsonschema.validate(report, schema)
    assert RunReport.model_validate(report).runs[0].passed == 20
    assert "py: 20/20" in ended.err
    broken = report | {"runs": [report["runs"][0] | {"passed": "many"}]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)


def test_two_sdks_in_one_command(memconform: Call, scripted: Callable[..., Path]) -> None:
    ended = memconform(
        *("run", *_SEEDED, "--sdk", scripted(), "--scenario", "search-retrieve-only"),
        *("--mode", "bm25", "--json", "report.json"),
    )
    assert ended.code == 0, ended.err
    *banners, agreement, parity = ended.out.splitlines()
    assert [line.partition(":")[0] for line in banners] == ["py", "scripted"]
    assert agreement.startswith("py, scripted: rankings equal ")
    assert parity.startswith("py, scripted: inconclusive on 20 questions of ")
    report = json.loads((ended.folder / "report.json").read_text())
    [pair] = report["parity"]["pairs"]
    assert pair["rankings"]["equal"] < pair["contrast"]["compared"] == 20
    assert [run["sdk"] for run in report["runs"]] == ["py", "scripted"]


def test_runner_py_is_the_same_command(workspace: Path, environment: dict[str, str]) -> None:
    runner = str(CHECKOUT / "eval" / "runner.py")
    command = [sys.executable, runner, *_SEEDED, "--quiet"]
    ended = subprocess.run(
        [*command, "--scenario", "search-retrieve-only", "--mode", "bm25"],
        cwd=workspace,
        env=environment,
        capture_output=True,
        text=True,
        timeout=CALL_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("py: 20/20 ")
    assert ended.stderr == ""


def test_a_corpus_is_ingested_from_a_folder(memconform: Call, dataset: Path) -> None:
    corpus = dataset.parent / "corpus"
    (corpus / "deep").mkdir(parents=True)
    for n in range(12):
        (corpus / "deep" / f"{n}.md").write_text(f"The secret of box{n} is word{n}x")
    (corpus / ".hidden").write_text("x")
    (corpus / "_private.md").write_text("x")
    ended = memconform(
        *("run", "--sdk", _PY, "--dataset", dataset, "--scorer", "exact"),
        *("--corpus", corpus, "--scenario", "ask-basic", "--mode", "bm25"),
    )
    assert ended.code == 0, ended.err
    assert ended.result["seeded"]["documents"] == 12
    assert ended.result["questions"][0]["citations"][0]["path"] == "deep/0.md"


def test_repeats_are_attempts_of_one_question(memconform: Call) -> None:
    ended = memconform(
        *("run", *_SEEDED, "--scenario", "search-retrieve-only", "--repeat", "3", "--limit", "4")
    )
    result = ended.result
    assert (result["total"], result["unstable"]) == (4, 0)
    assert all(len(question["attempts"]) == 3 for question in result["questions"])


def test_questions_that_a_search_cannot_answer_are_not_counted(
    memconform: Call, dataset: Path
) -> None:
    with dataset.open("a") as file:
        file.write('{"id": "none", "question": "Where is the moon box?", "abstain": true}\n')
    common = ("run", "--sdk", _PY, "--dataset", dataset, "--scorer", "exact")
    ended = memconform(*common, "--scenario", "search-retrieve-only", "--seed-reference-brain")
    assert ended.result["counts"]["not_applicable"] == 1
    assert (ended.result["passed"], ended.result["total"]) == (12, 12)


def test_selected_questions_are_asked_of_the_whole_corpus(memconform: Call) -> None:
    ended = memconform(
        *("run", *_SEEDED, "--scenario", "ask-basic", "--ids", "smoke-03,smoke-05", "--quiet")
    )
    assert [question["id"] for question in ended.result["questions"]] == ["smoke-03", "smoke-05"]
    assert ended.result["seeded"]["documents"] == 20
    assert ended.err == ""


def test_the_plain_command_gives_a_score(sdk: str, memconform: Call) -> None:
    """The offline reader answers 19 of 100 in mode auto: below the floor, and measured."""
    ended = memconform("run", "--sdk", sdk, "--scorer", "exact")
    assert ended.code == 1, ended.err
    assert ended.out.startswith(f"{sdk}: 19/100 pass_rate=0.1900 mean_score=0.1900 -> results/")
    settings = ended.result["provenance"]["settings"]
    assert (settings["dataset"], settings["scorer"], settings["brain"]) == ("lme", "exact", None)
    assert settings["seeding"].startswith("corpus:")


def test_the_plain_command_leaves_a_running_daemon_as_it_is(
    workspace: Path, dataset: Path, memconform: Call
) -> None:
    command = [sys.executable, "-m", "tests.fakes.scripted", "--addr", "127.0.0.1:0"]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=workspace)
    try:
        port = daemon.stdout.readline().rpartition(":")[2].strip() if daemon.stdout else ""
        url = f"http://127.0.0.1:{port}"
        flags = ("--sdk", f"url:{url}", "--dataset", dataset, "--scorer", "exact")
        ended = memconform("run", *flags)
        assert (ended.code, "has no brain 'eval'" in ended.err) == (2, True), ended.err
        assert httpx.get(f"{url}/v1/brains/eval").status_code == 404
        # A flag still takes effect.
        assert memconform("run", *flags, "--seed-reference-brain").code == 0
    finally:
        daemon.terminate()
        daemon.communicate()
