"""Comparing answers and writing disagreements as cases, without a daemon."""

import contextlib
import itertools
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings

from memconform.cli.fuzz.execution import _write_case
from memconform.conformance.case import Expectation
from memconform.conformance.expectations import evaluate
from memconform.conformance.step_result import Event, StepResult
from memconform.conformance.variables import substitute
from memconform.contract.schemas import ROUTES
from memconform.contract.wire import Profile
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.fuzzing import counterexample_search
from memconform.fuzzing.case_file import case_file
from memconform.fuzzing.comparison import AnswerDifference, compare_answers, group_by_answer
from memconform.fuzzing.counterexample_search import Disagreement
from memconform.fuzzing.failures import BrainLostError, FuzzTarget
from memconform.fuzzing.judges import PeerJudge
from memconform.fuzzing.normalized_answer import ProgramAnswer, normalize
from memconform.fuzzing.pools import TEXTS
from memconform.fuzzing.programs import BRAIN, Call, Program
from memconform.fuzzing.session import find_disagreement, serve_sdks
from memconform.fuzzing.strategies import chains, programs
from memconform.oracle.daemon import OracleDaemon
from memconform.oracle.search import Providers
from memconform.storage.body_files import BodyFiles

_PROFILES = {Profile.CORE, Profile.ASK, Profile.DOCUMENTS, Profile.EVENTS}


def _json(body: Any, status: int = 200) -> ProgramAnswer:
    return ProgramAnswer(status, "application/json", body=body)


@pytest.mark.parametrize(
    ("one", "two", "pointer"),
    [
        (_json({"a": 1}), _json({"a": 1}), None),
        (_json({"a": 1}), _json({"a": 1.0}), None),
        (_json({"score": 0.5}), _json({"score": 0.500000001}), None),
        (_json({"score": 0.5}), _json({"score": 0.50000001}), "/body/score"),
        (_json({"a": 0.1}), _json({"a": 0.1 + 1e-12}), "/body/a"),
        (_json({"a": 5e-324}), _json({"a": 0}), "/body/a"),
        (_json({"a": 2**53}), _json({"a": 2**53 + 1}), "/body/a"),
        (_json({"a": -0.0}), _json({"a": 0}), None),
        (_json({"a": 1}), _json({"a": True}), "/body/a"),
        (_json({"a": 1}), _json({"a": "1"}), "/body/a"),
        (_json({"a": 1}), _json({}), "/body/a"),
        (_json({}), _json({"a": 1}), "/body/a"),
        (_json([1, 2]), _json([1]), "/body/1"),
        (_json([1, 2]), _json([2, 1]), "/body/0"),
        (_json({"a": {}}), _json({"a": []}), "/body/a"),
        (_json({"a/b": {"~": 1}}), _json({"a/b": {"~": 2}}), "/body/a~1b/~0"),
        (_json({}), _json({}, 201), "/status"),
        (_json({}), ProgramAnswer(200, "text/plain", body={}), "/media"),
        (_json({}), ProgramAnswer(None, failure="timeout"), "/failure"),
        (ProgramAnswer(None, failure="timeout"), ProgramAnswer(None, failure="timeout"), None),
        (ProgramAnswer(None, failure="timeout"), ProgramAnswer(None, failure="broken"), "/failure"),
    ],
)
def test_a_difference_points_to_the_first_differing_value(
    one: ProgramAnswer, two: ProgramAnswer, pointer: str | None
) -> None:
    difference = compare_answers({"a": [_json({}), one], "b": [_json({}), two]})
    assert (difference and difference.pointer) == pointer
    assert difference is None or difference.call == 1


def test_a_difference_has_the_values_of_all_sdks_that_have_one() -> None:
    answers = {"a": [_json({"k": 1})], "b": [_json({"k": 1})], "c": [_json({})]}
    difference = compare_answers(answers)
    assert difference == AnswerDifference(0, "/body/k", {"a": 1, "b": 1})
    assert group_by_answer(answers, 0) == [["a", "b"], ["c"]]


def _normalized(
    media: str, content: str | bytes, *, method: str = "GET", **headers: str
) -> ProgramAnswer:
    content = content.encode() if isinstance(content, str) else content
    request = httpx.Request(method, "http://127.0.0.1/")
    response = httpx.Response(200, headers={"content-type": media, **headers}, request=request)
    return normalize(response, content, "mc-fuzz-1")


def test_times_and_the_brain_id_are_not_compared() -> None:
    body = {
        "brainId": "mc-fuzz-1", "tookMs": 3, "trace": {"searchMs": 1, "mode": "x"},
        "items": [{"mtime": "2025", "path": "mc-fuzz-1.md"}], "title": None,
    }  # fmt: skip
    assert _normalized("application/json", json.dumps(body)).body == {
        "brainId": "{brainId}",
        "trace": {"mode": "x"},
        "items": [{"path": "mc-fuzz-1.md"}],
    }


def test_human_readable_text_is_compared_by_presence_only() -> None:
    problem = {"status": 400, "code": "validation_error", "title": "Bad", "detail": "path: no"}
    assert _normalized("application/problem+json", json.dumps(problem)).body == {
        "status": 400,
        "code": "validation_error",
        "keys": ["code", "detail", "status", "title"],
    }


def test_allow_is_compared_as_a_set_without_head() -> None:
    one = _normalized("application/json", "{}", allow="GET, HEAD, POST")
    two = _normalized("application/json", "{}", allow="post,get")
    assert one.headers == two.headers == (("allow", ("get", "post")),)


def test_stream_events_are_compared_without_pings_and_times() -> None:
    change = 'event: change\nid: 7\ndata: {"kind": "created", "path": "a", "when": "x"}\n\n'
    content = f"event: ready\ndata: ok\n\nevent: ping\ndata: ok\n\n{change}"
    events = _normalized("text/event-stream", content.replace("\n", "\r\n")).value()["body"]
    other = _normalized("text/event-stream", content.replace('"x"', '"y"')).value()["body"]
    assert [name for name, *_ in events] == ["ready", "change"]
    assert compare_answers({"a": [_json(events)], "b": [_json(other)]}) is None


def test_the_media_type_of_a_head_response_is_not_compared() -> None:
    assert _normalized("text/plain", "", method="HEAD") == _normalized("", "", method="HEAD")
    assert _normalized("text/plain", "") != _normalized("", "")


async def test_concurrent_sessions_do_not_stop_each_others_daemons(
    tmp_path: Path,
) -> None:
    runner = _FakeRunner()
    for session_folder in ("one", "two"):
        async with serve_sdks([runner], tmp_path / session_folder) as targets:
            assert targets == {"launched": FuzzTarget("http://127.0.0.1:1")}
    assert len(set(runner.run_ids)) == 2


class _FakeRunner(SdkRunner):
    name = "launched"

    def __init__(self) -> None:
        self.run_ids: list[str] = []

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[Any]:
        self.run_ids.append(launch.run_id)
        yield SimpleNamespace(base_url="http://127.0.0.1:1", process=None)


def test_bytes_are_compared_exactly() -> None:
    assert _normalized("application/octet-stream", b"\xff{}").body == {"bytes": "ff7b7d"}
    assert _normalized("application/json", "{").body == {"unreadable": "{"}


_SEARCH = Call("search", "POST", f"/v1/brains/{BRAIN}/search", {"query": "heron"})
_READ = Call("readDocument", "GET", f"/v1/brains/{BRAIN}/documents/read?path=a")
_STAT = Call("statDocument", "GET", f"/v1/brains/{BRAIN}/documents/stat?path=a")
_ASK = Call("ask", "POST", f"/v1/brains/{BRAIN}/ask", {"question": "heron"})


def _stream(*events: list[Any]) -> ProgramAnswer:
    return ProgramAnswer(200, "text/event-stream", body=[*events])


_NO_STORE = (("cache-control", ("no-store",)),)
_NOT_FOUND = {"status": 404, "code": "not_found", "keys": []}

_DIFFERENT_ANSWERS: list[tuple[Call, ProgramAnswer, ProgramAnswer]] = [
    (_SEARCH, _json({"chunks": [{"score": 0.5}]}), _json({"chunks": []})),
    (_SEARCH, _json({}), ProgramAnswer(400, "application/problem+json", body={"code": "x"})),
    (_STAT, ProgramAnswer(404, "application/problem+json", body=_NOT_FOUND), _json({"path": "a"})),
    (_SEARCH, ProgramAnswer(None, failure="ReadError"), _json({})),
    (_READ, ProgramAnswer(200, "application/octet-stream", body={"bytes": "61"}),
     ProgramAnswer(200, "application/octet-stream", body={"bytes": "62"})),
    (_READ, ProgramAnswer(200, "application/octet-stream", _NO_STORE, {"bytes": "61"}),
     ProgramAnswer(200, "application/octet-stream", (), {"bytes": "61"})),
    (_READ, ProgramAnswer(200, "application/octet-stream", (), {"bytes": "61"}),
     ProgramAnswer(200, "application/octet-stream", _NO_STORE, {"bytes": "61"})),
    (_ASK, _stream(["done", {"ok": True}]), _stream(["done", {"ok": False}])),
    (_ASK, _stream(["retrieve", {}], ["done", {"ok": True}]), _stream(["done", {"ok": True}])),
    (_SEARCH, _json({"bytes": 3, "path": "a"}), _json({"bytes": 4, "path": "a"})),
    (_SEARCH, _json({"a": 1}), ProgramAnswer(200, "text/plain", body={"a": 1})),
    (_SEARCH, _json({"chunks": [1, 2]}), _json({"chunks": [1]})),
    (_SEARCH, _json({"a/b": 1}), _json({"a/b": 2})),
    (_SEARCH, _json({"*": 1}), _json({"*": 2})),
    (_SEARCH, _json({"brainId": BRAIN}), _json({"brainId": "another"})),
    (_SEARCH, _json({"score": 0.5}), _json({"score": 0.51})),
    (_SEARCH, _json({"metadata": {"a": 1e-10}}), _json({"metadata": {"a": 2e-10}})),
    (_READ,
     ProgramAnswer(405, "application/problem+json", (("allow", ("get", "put")),), _NOT_FOUND),
     ProgramAnswer(405, "application/problem+json", (("allow", ("get",)),), _NOT_FOUND)),
]  # fmt: skip


def _expected(call: Call, one: ProgramAnswer, two: ProgramAnswer) -> dict[str, Any]:
    """Return the checks of the case that is written if `one` is the majority answer."""
    answers = {"a": [one], "b": [one], "c": [two]}
    difference = compare_answers(answers)
    assert difference is not None
    _, text = case_file(Disagreement(Program((call,)), answers, difference, steady=True))
    [case] = yaml.safe_load(text)
    expected: dict[str, Any] = case["steps"][-1]["expect"]
    return expected


def test_a_body_of_two_disagreements_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []
    monkeypatch.setattr(
        "memconform.storage.body_files.write_whole", lambda path, _: written.append(path)
    )
    call = replace(_SEARCH, body={"query": "long " * 2_000})
    answers = {"a": [_json({"a": 1})], "b": [_json({"a": 1})], "c": [_json({"a": 2})]}
    difference = compare_answers(answers)
    assert difference is not None
    found = Disagreement(Program((call,)), answers, difference, steady=True)
    bodies = BodyFiles(tmp_path)
    first, second = (_write_case(tmp_path, bodies, found) for _ in range(2))
    assert first.curl == second.curl
    assert [str(path) in first.curl[-1] for path in written] == [True]


def _outcome(answer: ProgramAnswer) -> StepResult:
    """Return the result that a step would have if this were the response."""
    headers = [(name, ", ".join(words)) for name, words in answer.headers]
    headers += [("content-type", answer.media)] if answer.media else []
    if isinstance(answer.body, list):
        events = [
            Event(name, json.dumps(data), str(number), 0.0)
            for number, (name, data, *_) in enumerate(answer.body)
        ]
        return StepResult("x", answer.status, headers, events=events, ended="end")
    problem = {"title": "x", "detail": "x"} if (answer.status or 0) >= 400 else {}
    is_bytes = isinstance(answer.body, dict) and answer.body.keys() == {"bytes"}
    body = (
        bytes.fromhex(answer.body["bytes"])
        if is_bytes
        else json.dumps((answer.body or {}) | problem).replace(BRAIN, "mc-x").encode()
    )
    if answer.status is None:
        return StepResult("x", ended="cut", failure="ReadError")
    return StepResult("x", answer.status, headers, body=body, ended="end")


@pytest.mark.parametrize(("call", "one", "two"), _DIFFERENT_ANSWERS)
def test_a_case_holds_for_the_majority_answer_only(
    call: Call, one: ProgramAnswer, two: ProgramAnswer
) -> None:
    for most, other in ((one, two), (two, one)):
        for raw in _expected(call, most, other).values():
            expectation = Expectation.model_validate(substitute(raw, {"brain": "mc-x"}))
            assert evaluate(expectation, _outcome(most), {}).holds, raw
            assert not evaluate(expectation, _outcome(other), {}).holds, raw


_CALLED = sorted(
    route.name for route in ROUTES
    if route.profile in _PROFILES
    and route.path.startswith("/v1/brains/{brainId}")
    and route.name != "events"
)  # fmt: skip
"""`events` is read beside a program."""


def test_every_route_is_called_validly_and_invalidly() -> None:
    called: set[tuple[str, bool]] = set()
    wanted = {(name, invalid) for name in _CALLED for invalid in (False, True)}

    @seed(1)
    @settings(
        max_examples=3_000,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(_PROFILES))
    def collect(program: Program) -> None:
        called.update((call.route, bool(call.defect)) for call in program.calls)
        if wanted <= called:
            # Only an error stops Hypothesis before the last example, and drawing one takes time.
            raise StopIteration

    with contextlib.suppress(StopIteration):
        collect()
    assert sorted(wanted - called) == []


@given(chains())
@settings(max_examples=200, database=None, suppress_health_check=list(HealthCheck))
def test_every_op_of_a_chain_succeeds(chain: tuple[dict[str, Any], dict[str, Any]]) -> None:
    documents, ops = chain
    daemon = OracleDaemon(Providers())
    daemon.create("b")
    for route, body in (("ingest/batch", documents), ("documents/batch-ops", ops)):
        prediction = daemon.predict("POST", f"/v1/brains/b/{route}", body, {})
        assert prediction is not None
        option = prediction.option_for(200)
        assert option.status == 200
        option.apply()


def _is_alone(filters: Any, key: str, value: object) -> bool:
    return isinstance(filters, dict) and filters == {key: value}


_WANTED: dict[str, Callable[[Call], bool]] = {
    "alpha 0": lambda call: (call.body.get("tuning") or {}).get("alpha") == 0,
    "minus zero": lambda call: str(call.body.get("candidateK")) == "-0.0",
    "empty project": lambda call: _is_alone(call.body.get("filters"), "project", ""),
    "no paths": lambda call: _is_alone(call.body.get("filters"), "paths", []),
    "empty reason": lambda call: call.body.get("reason") == "",
    "empty title": lambda call: call.body.get("title") == "",
    "wide title": lambda call: len(call.body.get("title") or "") > 255,
    "many paths": lambda call: len((call.body.get("filters") or {}).get("paths") or ()) > 1_000,
    "long question": lambda call: len(call.body.get("question", "").split()) > 256,
    "long text": lambda call: any(
        len(item["contentBase64"]) > 85_000 for item in call.body.get("documents") or ()
    ),
    "round trip": lambda call: _moves_twice(call.body.get("ops") or []),
}


def _moves_twice(ops: list[Any]) -> bool:
    moves = [op for op in ops if isinstance(op, dict) and op.get("type") == "rename"]
    return any(one.get("to") == two.get("path") for one, two in itertools.pairwise(moves))


def test_falsy_and_long_values_and_moved_attributes_are_generated() -> None:
    """An outside author's planted defects of these kinds once passed `fuzz`."""
    missing = set(_WANTED)

    @seed(1)
    @settings(
        # It ends once all were found. Hypothesis also draws constants of all modules of ours
        # that are imported, so that more modules let the rarest come later.
        max_examples=20_000,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(_PROFILES))
    def collect(program: Program) -> None:
        bodies = [call for call in program.calls if isinstance(call.body, dict) and not call.defect]
        missing.difference_update(
            name for name in set(missing) if any(_WANTED[name](call) for call in bodies)
        )
        if not missing:
            raise StopIteration

    with contextlib.suppress(StopIteration):
        collect()
    assert sorted(missing) == []


def test_a_third_of_the_searches_are_hybrid() -> None:
    """A search without a mode was hybrid, until `auto` became bm25 with the feature hash."""
    served: list[str] = []

    @seed(1)
    @settings(max_examples=100, database=None, suppress_health_check=list(HealthCheck))
    @given(programs(_PROFILES))
    def collect(program: Program) -> None:
        served.extend(
            Providers().mode(call.body.get("mode") or "auto", ())
            for call in program.calls
            if call.route in ("search", "ask") and isinstance(call.body, dict) and not call.defect
        )

    collect()
    assert {"bm25", "semantic"} <= set(served)
    assert served.count("hybrid") > len(served) / 3


@given(TEXTS)
@settings(database=None, suppress_health_check=list(HealthCheck))
def test_texts_contain_no_syntax_of_cases(text: str) -> None:
    assert "$" not in text


@given(programs({Profile.CORE}))
@settings(max_examples=50, database=None, suppress_health_check=list(HealthCheck))
def test_unclaimed_profiles_are_not_called(program: Program) -> None:
    assert not program.listens
    assert {call.route for call in program.calls} <= {
        "search",
        "brain",
        "createBrain",
        "deleteBrain",
        "ingestFile",
        "ingestBatch",
    }


class _LosesOneBrain:
    """A runner that fails once and works when it is called again."""

    def __init__(self, target: FuzzTarget) -> None:
        self._left = 3 if target.address == "http://bad" else -1
        self.resets: dict[str, int] = {}

    def run(self, program: Program) -> list[ProgramAnswer]:
        self._left -= 1
        if self._left == 0:
            raise BrainLostError("POST /v1/brains", "timeout")
        return [_json({}) for _ in program.calls]

    def close(self) -> None:
        pass


def test_a_daemon_that_is_lost_once_is_not_an_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counterexample_search, "ProgramRunner", _LosesOneBrain)
    with pytest.raises(BrainLostError):
        find_disagreement(
            {name: FuzzTarget(f"http://{name}") for name in ("good", "bad")},
            {Profile.CORE},
            examples=50,
            seed_value=1,
            tried=lambda: None,
            stop=threading.Event(),
        )


class _DisagreesOnSearch:
    """A runner that answers a search by its name; all else like every other."""

    def __init__(self, target: FuzzTarget) -> None:
        self._name = target.address
        self.resets: dict[str, int] = {}

    def run(self, program: Program) -> list[ProgramAnswer]:
        return [_json(self._name if call.route == "search" else {}) for call in program.calls]

    def close(self) -> None:
        pass


def test_calls_that_hypothesis_leaves_in_a_program_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counterexample_search, "ProgramRunner", _DisagreesOnSearch)
    targets = {name: FuzzTarget(f"http://{name}") for name in ("one", "two")}
    state = counterexample_search.Search(targets, PeerJudge(), lambda: None, threading.Event())
    calls = [Call(name, "GET", "/") for name in ("brain", "search", "brain", "brains", "search")]
    with contextlib.suppress(counterexample_search.DisagreementError):
        state.run_example(Program(tuple(calls)))

    state.drop_calls()
    state.finish_shrinking()
    state.close()

    assert [call.route for call in state.found[0].program.calls] == ["search"]


def test_calls_are_dropped_before_a_program_counts_as_shrunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[str] = []

    def recorded(name: str) -> Callable[[counterexample_search.Search], None]:
        method = getattr(counterexample_search.Search, name)

        def call(state: counterexample_search.Search) -> None:
            steps.append(name)
            method(state)

        return call

    monkeypatch.setattr(counterexample_search, "ProgramRunner", _DisagreesOnSearch)
    for name in ("drop_calls", "finish_shrinking"):
        monkeypatch.setattr(counterexample_search.Search, name, recorded(name))
    found = find_disagreement(
        {name: FuzzTarget(f"http://{name}") for name in ("one", "two")},
        {Profile.CORE},
        examples=50,
        seed_value=1,
        tried=lambda: None,
        stop=threading.Event(),
    )
    assert found.disagreement is not None
    assert steps == ["drop_calls", "finish_shrinking"]
