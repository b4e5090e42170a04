"""A run that was divided is, once merged, the run of one machine."""

import asyncio
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memconform.datasets.selection import Selection, select
from memconform.datasets.sharding import Shard
from memconform.errors import UsageError
from memconform.ingest.records import IndexVerified
from memconform.reports.overview.headline import statements
from memconform.reports.overview.overview import Overview
from memconform.results.loaded_runs import read_run
from memconform.results.parts import find_parts, join_parts
from memconform.runs.journal import Journal, read_attempts
from memconform.runs.merged_run import RunPart, merge_runs
from memconform.runs.plan import Floor, Plan
from memconform.runs.result_builder import ResultBuilder, RunOutline
from memconform.runs.schedule import execute
from memconform.storage.folders import RunFolder
from tests.adversarial.inprocess import (
    HOPELESS,
    QUESTIONS,
    FaultyRun,
    InProcessRunner,
    plan_of,
    write_dataset,
)
from tests.fakes.hostile import Fault
from tests.merged_results import comparable

_RUN = FaultyRun((), "search-retrieve-only", 1)


def _plan(folder: Path, shard: Shard | None = None) -> Plan:
    """A plan with a floor that all questions together miss, and some of the shards hold."""
    plan = plan_of(_RUN, folder / "boxes.jsonl", folder)
    selected = select(plan.selected.dataset, Selection(shard=shard))
    asked = plan.settings.model_copy(
        update={"questions": selected.size, "shard": selected.shard, "dataset": "boxes"}
    )
    return replace(plan, settings=asked, selected=selected, floors=(Floor(0.88), Floor(0.9, "x")))


def _execute(plan: Plan, faults: Sequence[Fault] = ()) -> Path:
    """The folder of a run."""

    async def run() -> Path:
        [result] = [
            event.result
            async for event in execute(plan, InProcessRunner(faults))
            if hasattr(event, "result")
        ]
        assert isinstance(result, Path)
        return result.parent

    return asyncio.run(run())


def _resumed(plan: Plan, kept: int) -> Path:
    """A run that was killed after some questions, and continued."""
    whole = _execute(replace(plan, output=plan.output / "before"))
    started = datetime.now(UTC)
    killed = RunFolder(plan.output / "killed", "killed")
    builder = ResultBuilder(RunOutline.of(plan, "hostile", "killed", started))
    builder.write_manifest(killed)
    journal = Journal(killed.journal, builder.journal_header())
    for attempt in list(read_attempts(whole / "journal.jsonl"))[:kept]:
        journal.copy_attempt(attempt)
    journal.write_statement(IndexVerified(attempts=journal.written))
    journal.close({})
    return _execute(replace(plan, resumed=killed.journal))


def _merge(parts: Sequence[Path], output: Path, *, partial: bool = False) -> Path:
    [found] = find_parts([str(part) for part in parts], output).values()
    own = [part for part in found if isinstance(part, RunPart)]
    shard = join_parts(own, partial=partial)
    return merge_runs(own, shard, output, calibrated=output, command=("merge",)).result.parent


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of all questions, in a folder with their dataset."""
    folder = tmp_path_factory.mktemp("whole")
    write_dataset(folder)
    return _execute(replace(_plan(folder), output=folder / "results"))


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_merged_run_is_the_run_of_one_machine(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    shutil.copy(whole.parents[2] / "boxes.jsonl", folder)
    of = data.draw(st.sampled_from((1, 2, 3, 7)), label="shards")
    parts = []
    for number in range(1, of + 1):
        plan = _plan(folder, Shard(number, of))
        kept = data.draw(st.none() | st.integers(0, plan.selected.size), label="kept")
        parts.append(_execute(plan) if kept is None else _resumed(plan, kept))
    parts = data.draw(st.permutations(parts), label="order")
    if of > 1:
        first = data.draw(st.integers(1, of - 1), label="merged first")
        parts = [_merge(parts[:first], folder / "stage", partial=True), *parts[first:]]
    merged = _merge(parts, folder / "merged")
    expected = comparable(whole / "result.json").replace(str(whole.parents[2]), "")
    assert comparable(merged / "result.json").replace(str(folder), "") == expected
    result = json.loads((merged / "result.json").read_text())
    assert sum(len(part["shards"]) for part in result["provenance"]["parts"]) == of
    # The verdict is that of all questions, which miss a floor that no shard decides.
    assert (result["passed"], result["total"]) == (QUESTIONS - len(HOPELESS), QUESTIONS)
    assert result["exit_code"] != 0
    # Whatever reads results reads this one, and the journal has each attempt at its row.
    assert len(list(read_run(merged / "result.json").questions())) == QUESTIONS
    rows = {attempt.row: attempt.question_id for attempt in read_attempts(merged / "journal.jsonl")}
    assert rows == {row: f"q{row}" for row in range(QUESTIONS)}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Runs of three shards of the same questions."""
    folder = tmp_path_factory.mktemp("shards")
    write_dataset(folder)
    return [_execute(_plan(folder, Shard(number, 3))) for number in (1, 2, 3)]


def test_a_shard_decides_no_floor(shards: Sequence[Path]) -> None:
    for part in shards:
        result = json.loads((part / "result.json").read_text())
        assert (result["exit_code"], result["floors"]) == (0, [])
        assert "no floor is decided before `memconform merge`" in result["reasons"][0]


def test_parts_that_do_not_fit_are_refused_by_name(
    shards: Sequence[Path], whole: Path, tmp_path: Path
) -> None:
    one, two, three = shards
    for parts, code, named in (
        ((one, three), "shard_missing", "2/3"),
        ((one, two, two.parent.parent / "copy", three), "shard_twice", "shard 2 of 3"),
        ((one, two, whole), "not_a_shard", whole.name),
    ):
        given_parts = list(parts)
        if code == "shard_twice":
            given_parts[2] = tmp_path / "copy"
            shutil.copytree(two, tmp_path / "copy")
        with pytest.raises(UsageError) as caught:
            _merge(given_parts, tmp_path / "merged")
        assert caught.value.code == code
        assert named in caught.value.message
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize(
    ("file", "change", "named"),
    [
        ("journal.jsonl", ('"top_k":5', '"top_k":7'), "top_k was 5, is 7"),
        ("journal.jsonl", ('"build_hash":null', '"build_hash":"b"'), "build_hash was None, is b"),
        ("journal.jsonl", ('"dataset_sha256":"', '"dataset_sha256":"f'), "dataset"),
        ("manifest.json", ('"0.88"', '"0.5"'), "floors was 0.88"),
        ("result.json", ('"version": "', '"version": "9'), "version"),
    ],
)
def test_parts_of_other_work_are_refused(
    shards: Sequence[Path], tmp_path: Path, file: str, change: tuple[str, str], named: str
) -> None:
    other = tmp_path / "other"
    shutil.copytree(shards[2], other)
    text = (other / file).read_text()
    assert change[0] in text
    (other / file).write_text(text.replace(*change, 1))
    with pytest.raises(UsageError) as caught:
        _merge([*shards[:2], other], tmp_path / "merged")
    assert caught.value.code == "unlike_parts"
    assert str(other) in caught.value.message
    assert named in caught.value.message


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("manifest.json", None),
        ("journal.jsonl", None),
        ("result.json", "{}"),
        ("result.json", None),
    ],
)
def test_a_damaged_part_is_refused(
    shards: Sequence[Path], tmp_path: Path, file: str, content: str | None
) -> None:
    other = tmp_path / "other"
    shutil.copytree(shards[2], other)
    if content is None:
        (other / file).unlink()
    else:
        (other / file).write_text(content)
    with pytest.raises(UsageError) as caught:
        _merge([*shards[:2], other / "result.json"], tmp_path / "merged")
    assert str(other) in f"{caught.value.message} {caught.value.hint}"


def test_a_result_that_lost_a_question_is_refused(shards: Sequence[Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(shards[2], other)
    lines = (other / "result.json").read_text().splitlines(keepends=True)
    first = lines.index(' "questions": [\n') + 1
    (other / "result.json").write_text("".join([*lines[:first], *lines[first + 1 :]]))
    with pytest.raises(UsageError) as caught:
        _merge([*shards[:2], other], tmp_path / "merged")
    assert caught.value.code == "result_unreadable"
    assert list((tmp_path / "merged" / "runs").iterdir()) == []


def test_a_question_of_another_shard_is_refused(shards: Sequence[Path], tmp_path: Path) -> None:
    """The one whose place it took was not measured, and counted as passed."""
    other = tmp_path / "other"
    shutil.copytree(shards[2], other)
    texts = [(part / "result.json").read_text().splitlines(keepends=True) for part in shards]
    first = texts[0].index(' "questions": [\n') + 1
    texts[2][first] = texts[0][first]
    (other / "result.json").write_text("".join(texts[2]))
    with pytest.raises(UsageError) as caught:
        _merge([*shards[:2], other], tmp_path / "merged")
    assert caught.value.code == "result_unreadable"
    assert "is there twice" in caught.value.excerpt


def test_the_copy_of_a_result_is_the_result(shards: Sequence[Path], tmp_path: Path) -> None:
    """`run` prints the path of the copy, which has no journal beside it."""
    copies = [next(part.parents[1].glob("2*/hostile.json")) for part in shards]
    merged = _merge(copies, tmp_path / "merged")
    assert json.loads((merged / "result.json").read_text())["total"] == QUESTIONS


def test_a_report_says_that_a_shard_is_one(shards: Sequence[Path]) -> None:
    with Overview.load([str(shards[1] / "result.json")], [], shards[1]) as overview:
        overview.read_questions(lambda *_: None)
        texts = [each.text for each in statements(overview)]
    assert any("is shard 2 of 3 alone, which decides no floor" in text for text in texts)


def test_an_incident_of_a_shard_leaves_the_whole_without_a_rate(
    shards: Sequence[Path], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(shards[2], other)
    result: dict[str, Any] = json.loads((other / "result.json").read_text())
    incident = {"code": "daemon_died", "message": "it died", "hint": "", "excerpt": ""}
    text = (other / "result.json").read_text()
    assert result["incident"] is None
    text = text.replace(
        '"incident": null', f'"incident": {json.dumps(incident | {"exit_code": 3})}'
    )
    (other / "result.json").write_text(text)
    merged = json.loads((_merge([*shards[:2], other], tmp_path / "m") / "result.json").read_text())
    assert (merged["pass_rate"], merged["exit_code"]) == (None, 3)
    assert merged["incident"]["message"] == "shard 3 of 3: it died"


def test_the_gravest_incident_is_that_of_the_whole(shards: Sequence[Path], tmp_path: Path) -> None:
    parts = []
    for number, (part, code) in enumerate(zip(shards, (3, 130, 6), strict=True)):
        other = tmp_path / str(number)
        shutil.copytree(part, other)
        incident = {
            "code": f"c{code}",
            "message": "m",
            "hint": "",
            "excerpt": "",
            "exit_code": code,
        }
        text = (other / "result.json").read_text()
        text = text.replace('"incident": null', f'"incident": {json.dumps(incident)}')
        (other / "result.json").write_text(text)
        parts.append(other)
    merged = json.loads((_merge(parts, tmp_path / "m") / "result.json").read_text())
    assert (merged["exit_code"], merged["incident"]["code"]) == (130, "c130")


def test_a_part_that_was_resumed_is_left_out(tmp_path: Path) -> None:
    write_dataset(tmp_path)
    output = tmp_path / "results"
    first = _execute(replace(_plan(tmp_path, Shard(1, 2)), output=output))
    again = replace(_plan(tmp_path, Shard(1, 2)), output=output, resumed=first / "journal.jsonl")
    _execute(again)
    _execute(replace(_plan(tmp_path, Shard(2, 2)), output=output))
    merged = _merge([output], tmp_path / "merged")
    assert json.loads((merged / "result.json").read_text())["total"] == QUESTIONS
