"""Fuzzing against the oracle, without a daemon: what is found, named, ignored and kept."""

import itertools
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from memconform.conformance.case import Case
from memconform.contract.wire import Profile
from memconform.errors import UsageError
from memconform.fuzzing import counterexample_search
from memconform.fuzzing.case_file import case_file, curl_lines
from memconform.fuzzing.corpus import Corpus, from_json, read_programs, to_json, write_program
from memconform.fuzzing.counterexample_search import Disagreement, FuzzResult
from memconform.fuzzing.failures import FuzzTarget
from memconform.fuzzing.judges import Finding, OracleJudge
from memconform.fuzzing.normalized_answer import ProgramAnswer
from memconform.fuzzing.programs import BRAIN, Call, Program, document
from memconform.fuzzing.session import find_disagreement
from memconform.oracle.search import Providers
from tests.unit.oracle_daemon import Defect, OracleRunner, answers

_PROFILES = {Profile.CORE, Profile.ASK, Profile.DOCUMENTS, Profile.EVENTS}
_URL = f"/v1/brains/{BRAIN}"
_MODES = ("bm25", "semantic", "hybrid")


def _ingest(*documents: dict[str, Any]) -> Call:
    return Call("ingestBatch", "POST", f"{_URL}/ingest/batch", {"documents": [*documents]})


def _search(query: str = "heron", **more: Any) -> Call:
    return Call("search", "POST", f"{_URL}/search", {"query": query, **more})


_THREE = _ingest(
    document("a.md", b"The heron waits. A heron sings."),
    document("b.md", b"A kettle sings.", metadata={"date": "2025-01-20"}, tags=["red"]),
    document("c/d.md", b"The heron sings.", title="Birds"),
)
_WRITE = Call("writeDocument", "PUT", f"{_URL}/documents?path=a.md", b"x")
_LIST = Call("listDocuments", "GET", f"{_URL}/documents")
_ASK = Call("ask", "POST", f"{_URL}/ask", {"question": "Who waits? heron"})
_BRAIN = Call("brain", "GET", _URL)
_OPS = Call(
    "batchOps", "POST", f"{_URL}/documents/batch-ops",
    {"ops": [{"type": "delete", "path": "b.md"}, {"type": "rename", "path": "a.md", "to": "e.md"}],
     "reason": "tidy"},
)  # fmt: skip


def _findings(program: Program, defect: Defect, ignored: tuple[str, ...] = ()) -> list[Finding]:
    judge = OracleJudge({"sdk": Providers()}, ignored)
    return list(judge.findings(program, {"sdk": answers(program, defect)}))


def _on(route: str, change: Callable[[Any], Any]) -> Defect:
    """A defect that changes the bodies of a route's successes."""

    def defect(call: Call, answer: ProgramAnswer) -> ProgramAnswer:
        if call.route != route or answer.status != 200:
            return answer
        return replace(answer, body=change(json.loads(json.dumps(answer.body))))

    return defect


def _score(body: Any) -> Any:
    body["chunks"][0]["score"] += 1e-6
    return body


def _swap(body: Any) -> Any:
    body["chunks"][:2] = body["chunks"][1::-1]
    return body


def _edit(*path: str | int, value: Any) -> Callable[[Any], Any]:
    def change(body: Any) -> Any:
        inner = body
        for part in path[:-1]:
            inner = inner[part]
        if value is None:
            del inner[path[-1]]
        else:
            inner[path[-1]] = value
        return body

    return change


def _status(route: str, status: int) -> Defect:
    return lambda call, answer: replace(answer, status=status) if call.route == route else answer


_DATED = {"recency": {"now": "2025-01-31", "relevance": 0.5, "weight": 0.5, "decayDays": 7}}

_DEFECTS: list[tuple[Program, Defect, str]] = [
    *[
        (Program((_THREE, _search(mode=mode))), _on("search", _score), f"core.rank.{mode}")
        for mode in _MODES
    ],
    (Program((_THREE, _search(mode="hybrid", tuning=_DATED))), _on("search", _score),
     "core.rank.recency"),
    (Program((_THREE, _search(mode="semantic", tuning={"kernel": "inverse-l2"}))),
     _on("search", _score), "core.rank.kernel"),
    (Program((_THREE, _search(mode="semantic"))), _on("search", _swap), "core.search.order"),
    (Program((_THREE, _search(mode="hybrid", filters={"tags": ["red"]}))),
     _on("search", _edit("chunks", value=[])), "core.filter.keys"),
    (Program((_THREE, _search())), _on("search", _edit("chunks", 0, "text", value="x")),
     "core.search.text"),
    (Program((_THREE, _search())), _on("search", _edit("chunks", 0, "chunkId", value=None)),
     "core.search.shape"),
    (Program((_THREE, _search(mode="hybrid", tuning={"alpha": 0.5}))),
     _on("search", _edit("trace", "tuning", value={})), "core.tuning"),
    (Program((_THREE, _search())), _on("search", _edit("trace", "effectiveMode", value="hybrid")),
     "core.mode.served"),
    (Program((_THREE, _BRAIN)), _on("brain", _edit("documents", value=2)), "core.brain.counts"),
    (Program((_THREE, _LIST)), _on("listDocuments", _edit("items", 0, "size", value=9)),
     "documents.list"),
    (Program((_THREE, _ASK)), _on("ask", _edit(1, 1, "text", value="A ")), "ask.reader.fake"),
    (Program((_THREE, _ASK)), _on("ask", lambda body: body[:-1]), "ask.order"),
    (Program((_THREE, _OPS), listens=True),
     _on("events", _edit(-1, 1, "reason", value=None)), "events.batch"),
    (Program((_THREE, replace(_OPS, body={**_OPS.body, "reason": ""})), listens=True),
     _on("events", _edit(-1, 1, "reason", value=None)), "events.batch"),
    (Program((_THREE, _OPS), listens=True), _on("events", lambda body: body[:-1]),
     "events.change"),
    (Program((_search(" "),)), _status("search", 200), "core.search.refuse"),
    (Program((_search(topK=True),)), _status("search", 200), "wire.types"),
    (Program((_search(filters={"x": 1}),)), _status("search", 200), "wire.unknown-keys"),
    (Program((_ingest(document("a", b""), document("a/b", b"")),)), _status("ingestBatch", 200),
     "core.ingest.conflict"),
    (Program((_LIST,)),
     lambda _, answer: replace(answer, headers=()), "documents.no-store"),
    (Program((_LIST,)), lambda _, answer: replace(answer, media="text/plain"), "wire.json"),
    (Program((_LIST,)), lambda _, a: replace(a, status=None, failure="timeout"), "robust.alive"),
    (Program((_LIST,)), lambda _, a: replace(a, content=b'{"items": [{"path": "a"}]}'),
     "wire.shape"),
    (Program((_ingest(document("a", b""), document("/b", b"")),)),
     lambda _, a: replace(a, content=json.dumps(
         {"status": 400, "title": "x", "detail": "documents[0]", "code": "validation_error"}
     ).encode()), "core.ingest.batch"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "defect", "rule"), _DEFECTS)
def test_a_defect_is_found_and_its_rule_is_named(
    program: Program, defect: Defect, rule: str
) -> None:
    assert not _findings(program, lambda _, answer: answer)
    findings = _findings(program, defect)
    assert findings
    assert findings[0].difference.rule == rule
    assert findings[0].difference.call == len(program.calls) - 1 + program.listens


@pytest.mark.parametrize(("program", "defect", "rule"), _DEFECTS)
def test_a_finding_becomes_a_case_that_cites_the_rule(
    program: Program, defect: Defect, rule: str
) -> None:
    finding = _findings(program, defect)[0]
    disagreement = Disagreement(program, finding.answers, finding.difference, steady=True)
    name, text = case_file(disagreement)
    [raw] = yaml.safe_load(text)
    assert Case.model_validate(raw).rules == [rule]
    assert raw["id"] == name
    assert len(curl_lines(program)) == len(program.calls) + 1


_HOSTILE: tuple[Any, ...] = (
    None, [], {}, "x", 5, [[]], [5], [["retrieve"]], [["retrieve", 5, ""]], {"bytes": ""},
    [["change", [], "", ""]], {"unreadable": "x"}, {"chunks": 5}, {"chunks": [5], "trace": 5},
    {"chunks": [{"chunkId": [], "score": "x"}], "trace": {"tuning": 5}}, {"items": {"path": []}},
    [["retrieve", {"chunks": [None], "trace": None}, 5], ["done", None, None]],
)  # fmt: skip


@pytest.mark.parametrize("body", _HOSTILE, ids=repr)
@pytest.mark.parametrize("last", [_search(), _ASK, _BRAIN, _LIST, _THREE, _OPS])
def test_no_answer_breaks_the_harness(last: Call, body: Any) -> None:
    """An answer that is no stream, to a question, ended the search with an error of the harness."""
    program = Program((_THREE, last), listens=True)
    name = last.route if last is not _THREE else "events"
    findings = _findings(program, _on(name, lambda _: body))
    assert findings
    assert all(finding.difference.rule for finding in findings)
    disagreement = Disagreement(program, findings[0].answers, findings[0].difference, steady=True)
    assert case_file(disagreement)


def test_what_the_contract_leaves_open_is_not_a_finding() -> None:
    def free(call: Call, answer: ProgramAnswer) -> ProgramAnswer:
        if call.route != "search" or not isinstance(answer.body, dict):
            return answer
        body = json.loads(json.dumps(answer.body))
        body["extra"] = 1
        body["trace"] |= {"rerankProvider": "none", "tuning": {}}
        for chunk in body["chunks"]:
            chunk["summary"] = "short"
            chunk.setdefault("metadata", {})
        return replace(answer, body=body, headers=(("cache-control", ("no-store",)),))

    program = Program((_THREE, *(_search(mode=mode) for mode in _MODES)))
    assert not _findings(program, free)


def test_scores_are_compared_to_one_step_of_their_rounding() -> None:
    program = Program((_THREE, _search(mode="bm25")))

    def off_by(amount: float) -> Defect:
        def change(body: Any) -> Any:
            body["chunks"][0]["score"] += amount
            return body

        return _on("search", change)

    assert not _findings(program, off_by(1e-9))
    assert _findings(program, off_by(2e-9))


def test_an_ignored_pointer_is_not_compared() -> None:
    program = Program((_THREE, _search()))
    defect = _on("search", _edit("chunks", 0, "text", value="x"))
    assert _findings(program, defect, ("/body/chunks/*/title", "/body/chunks/*/textual"))
    assert not _findings(program, defect, ("/body/chunks/*/text",))
    assert not _findings(program, defect, ("/body/chunks",))


def test_nothing_is_judged_after_a_change_with_another_outcome() -> None:
    program = Program((_THREE, _WRITE, _LIST, _search()))
    findings = _findings(program, _status("writeDocument", 500))
    assert {finding.difference.call for finding in findings} == {1}


def test_findings_of_one_answer_begin_with_the_most_basic_rule() -> None:
    def defect(call: Call, answer: ProgramAnswer) -> ProgramAnswer:
        if call.route != "search" or not isinstance(answer.body, dict):
            return answer
        return replace(_on("search", _score)(call, answer), media="text/plain")

    found = _findings(Program((_THREE, _search(mode="bm25"))), defect)
    assert [finding.difference.rule for finding in found] == ["wire.json", "core.rank.bm25"]


_FOX = {"chunkId": "x#0", "documentId": "x", "path": "x.md", "score": 0.5, "text": "A fox."}


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
@pytest.mark.parametrize(
    ("query", "rule"), [("heron", "core.filter.keys"), ("?", "core.rank.terms")]
)
def test_an_ignored_filter_is_no_fault_of_the_terms(mode: str, query: str, rule: str) -> None:
    """Nothing is expected in both programs: of one because of its filter, of one for its query."""
    more: dict[str, Any] = {"mode": mode, "filters": {"tags": ["blue"]}}
    ask = {"question": query, "readerMode": "augmented", **more}
    searched = Program((_THREE, _search(query, **more)))
    asked = Program((_THREE, Call("ask", "POST", f"{_URL}/ask", ask)))
    found = _findings(searched, _on("search", _edit("chunks", value=[_FOX])))
    assert found[0].difference.rule == rule
    found = _findings(asked, _on("ask", _edit(0, 1, "chunks", value=[_FOX])))
    assert found[0].difference.rule == rule


def _find(monkeypatch: pytest.MonkeyPatch, defect: Defect, **more: Any) -> FuzzResult:
    monkeypatch.setattr(OracleRunner, "defect", staticmethod(defect))
    monkeypatch.setattr(counterexample_search, "ProgramRunner", OracleRunner)
    options: dict[str, Any] = {"examples": 300, "seed_value": 1} | more
    return find_disagreement(
        {"sdk": options.pop("target", FuzzTarget("http://sdk"))},
        _PROFILES,
        tried=lambda: None,
        stop=threading.Event(),
        judge=OracleJudge({"sdk": Providers()}),
        **options,
    )


def test_a_correct_daemon_agrees_with_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _find(monkeypatch, lambda _, answer: answer, examples=150)
    assert result.disagreements == ()
    assert result.examples == 150


def _two_defects(call: Call, answer: ProgramAnswer) -> ProgramAnswer:
    if call.route == "brain" and answer.status == 200:
        return _on("brain", _edit("pending", value=1))(call, answer)
    if call.route == "listDocuments" and answer.status == 200:
        return replace(answer, headers=())
    return answer


def test_one_sdk_is_fuzzed_and_the_program_is_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _find(monkeypatch, _two_defects)
    [found] = result.disagreements
    assert found.steady
    assert len(found.program.calls) == 1
    assert list(found.answers) == ["oracle", "sdk"]


def test_keep_going_collects_each_kind_once(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _find(monkeypatch, _two_defects, keep_going=True)
    rules = [found.difference.rule for found in result.disagreements]
    assert rules == ["core.brain.counts", "documents.no-store"]
    assert all(len(found.program.calls) == 1 for found in result.disagreements)


def test_a_finding_says_in_which_program_it_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It said only how many requests the minimized program has, however late it was found."""
    run = [0]

    def late(call: Call, answer: ProgramAnswer) -> ProgramAnswer:
        run[0] += call.route == "brain"
        return _two_defects(call, answer) if run[0] > 5 else answer

    [found] = _find(monkeypatch, late).disagreements
    assert 1 < found.found_after <= 300
    [first] = _find(monkeypatch, lambda _, answer: replace(answer, media="x/y")).disagreements
    assert first.found_after == 1


def test_a_daemon_that_died_is_started_again_to_shrink_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The program that found a crash was reported without being shrunk."""
    dead: list[str] = []
    restarts: list[str] = []

    def defect(call: Call, answer: ProgramAnswer) -> ProgramAnswer:
        if call.route == "listDocuments" and answer.status == 200:
            dead.append("exit status 3")
            return ProgramAnswer(None, failure="process ended: exit status 3")
        return answer

    def restart(how: str) -> str:
        restarts.append(how)
        dead.clear()
        return ""

    target = FuzzTarget("http://sdk", lambda: next(iter(dead), ""), restart)
    result = _find(monkeypatch, defect, target=target)
    [found] = result.disagreements
    assert found.difference.values["sdk"] == "process ended: exit status 3"
    assert len(found.program.calls) == 1
    assert found.steady
    assert len(restarts) > 1


def test_time_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    # A busy machine once tried no program in 0.2 s: here each look at the clock takes a second.
    clock = SimpleNamespace(monotonic=itertools.count().__next__)
    monkeypatch.setattr(counterexample_search, "time", clock)
    # short limit: of that clock
    result = _find(monkeypatch, lambda _, answer: answer, examples=10**9, seconds=50)
    assert 0 < result.examples < 50


def test_the_corpus_keeps_what_was_found_and_replays_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    corpus = Corpus(tmp_path)
    found = _find(monkeypatch, _two_defects, corpus=corpus, examples=40).disagreements
    kept = read_programs(tmp_path)
    assert corpus.added >= len(kept) >= 1
    assert found[0].program in kept
    # The defect is found again by the corpus alone, and no program is added for it.
    again = Corpus(tmp_path)
    replayed = _find(monkeypatch, _two_defects, corpus=again, examples=1)
    assert len(replayed.disagreements) == 1
    assert again.added == 0


def test_a_program_survives_its_file(tmp_path: Path) -> None:
    program = Program((_THREE, _WRITE, replace(_search(), defect="body"), Call("kill", "", "")))
    assert from_json(json.loads(json.dumps(to_json(program)))) == program
    path = write_program(tmp_path, program)
    assert write_program(tmp_path, program) == path
    assert read_programs(tmp_path) == [program]


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "x", "calls": []}', '{"calls": []}'])
def test_a_file_that_is_no_program_is_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UsageError, match=r"a\.json: not a program"):
        read_programs(tmp_path)
