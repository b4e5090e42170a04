"""What each scenario sends of its settings."""

import json
from contextlib import nullcontext
from typing import Any

import pytest

from memconform.bench import null_server
from memconform.bench.raw_http import RawExchange, RawRequest, serving
from memconform.client.client import ContractClient
from memconform.client.failures import DaemonFailedError
from memconform.contract.core import Filters, Trace
from memconform.contract.wire import Mode
from memconform.datasets.question import Question
from memconform.measuring.requirements import require_requested_mode
from memconform.measuring.scenario import RetrievalSettings
from memconform.measuring.scenarios import SCENARIOS
from tests.fakes.degenerate import Degeneracy, DegenerateRunner

_QUESTION = Question("q", "What?", question_date="2024-05-01")


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_settings_reach_the_daemon(scenario: str) -> None:
    sent = []

    async def answer(request: RawRequest, exchange: RawExchange) -> None:
        sent.append(json.loads(request.body))
        await null_server.answer(request, exchange)

    settings = RetrievalSettings(
        "b", Mode.BM25, 5, candidate_k=7, filters=Filters(session_ids=["s1"])
    )
    async with (
        serving(answer, "127.0.0.1", 0) as port,
        ContractClient(f"http://127.0.0.1:{port}") as client,
    ):
        await SCENARIOS[scenario].put(client, _QUESTION, settings)
        await SCENARIOS[scenario].put(client, _QUESTION, RetrievalSettings("b", Mode.BM25, 5))
    full, bare = sent
    dated = SCENARIOS[scenario].dated
    assert (full["filters"], full["candidateK"]) == ({"sessionIds": ["s1"]}, 7)
    assert bare.get("questionDate") == ("2024-05-01" if dated else None)
    assert not {"filters", "candidateK", "rerankTopN"} & bare.keys()


@pytest.mark.parametrize("scenario", ["ask-basic", "ask-augmented"])
@pytest.mark.parametrize(
    "text",
    ["Error: 429 Too Many Requests", "502 Bad Gateway", "upstream request failed with status 503"],
)
async def test_the_error_message_of_a_reader_is_no_wrong_answer(scenario: str, text: str) -> None:
    """It was stored as an answer, judged, and counted as incorrect."""

    async def answer(request: RawRequest, exchange: RawExchange) -> None:
        del request
        await exchange.begin_stream()
        for name, data in (
            ("retrieve", {"chunks": [], "topK": 5, "mode": "bm25", "trace": _TRACE}),
            ("answer_delta", {"text": text}),
            ("done", {"ok": True}),
        ):
            await exchange.piece(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
        await exchange.end_stream()

    settings = RetrievalSettings("b", Mode.BM25, 5)
    async with (
        serving(answer, "127.0.0.1", 0) as port,
        ContractClient(f"http://127.0.0.1:{port}") as client,
    ):
        with pytest.raises(DaemonFailedError) as caught:
            await SCENARIOS[scenario].put(client, _QUESTION, settings)
        assert caught.value.code == "error_text"
        # A reference that names it makes it an answer.
        known = Question("q", "What did the proxy say?", answers=(text,))
        assert (await SCENARIOS[scenario].put(client, known, settings)).text == text


_TRACE = {
    "requestedMode": "bm25", "effectiveMode": "bm25", "embedderUsed": False, "reranked": False,
    "fellBackToBm25": False, "candidateK": 50, "searchMs": 1.0,
}  # fmt: skip

_MODES = (Mode.AUTO, Mode.BM25)


@pytest.mark.parametrize(
    ("claimed", "served", "is_refuted"),
    [
        (_MODES, Mode.BM25, False),
        (_MODES, Mode.SEMANTIC, True),
        ((*_MODES, Mode.SEMANTIC), Mode.SEMANTIC, False),
        # The contract has auto mean hybrid wherever hybrid is available, and bm25 with fh256-1.
        ((*_MODES, Mode.SEMANTIC, Mode.HYBRID), Mode.HYBRID, False),
        ((*_MODES, Mode.SEMANTIC, Mode.HYBRID), Mode.BM25, False),
        ((*_MODES, Mode.SEMANTIC, Mode.HYBRID), Mode.SEMANTIC, True),
        (None, Mode.SEMANTIC, False),
        (_MODES, None, False),
    ],
)
def test_auto_is_served_in_a_mode_that_the_sdk_claims(
    claimed: tuple[Mode, ...] | None, served: Mode | None, *, is_refuted: bool
) -> None:
    """Half of a run's answers came from a mode that the SDK does not have, and it passed."""
    runner = DegenerateRunner(Degeneracy("nothing"))
    runner.modes = claimed  # type: ignore[assignment] # None is a runner's value too
    values: dict[str, Any] = {"effective_mode": served}
    trace = Trace.model_construct(None, **values)
    settings = RetrievalSettings("b", Mode.AUTO, 5, auto_modes=runner.auto_modes)
    with pytest.raises(DaemonFailedError) if is_refuted else nullcontext() as caught:
        require_requested_mode(settings, trace)
    assert caught is None or caught.value.code == "mode_not_served"
    require_requested_mode(RetrievalSettings("b", Mode.AUTO, 5, allow_fallback=True), trace)
