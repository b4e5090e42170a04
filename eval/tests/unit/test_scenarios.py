"""What each scenario sends of its settings."""

import json

import pytest

from memconform.client.client import ContractClient
from memconform.contract.core import Filters
from memconform.contract.wire import Mode
from memconform.datasets.model import Question
from memconform.fakes import null
from memconform.fakes.wire import RawExchange, RawRequest, serving
from memconform.scenarios import SCENARIOS
from memconform.scenarios.scenario import RetrievalSettings

_QUESTION = Question("q", "What?", question_date="2024-05-01")


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_settings_reach_the_daemon(scenario: str) -> None:
    sent = []

    async def answer(request: RawRequest, exchange: RawExchange) -> None:
        sent.append(json.loads(request.body))
        await null.answer(request, exchange)

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
