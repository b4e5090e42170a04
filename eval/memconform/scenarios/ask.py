"""The scenarios that have the daemon's reader answer: `ask-basic` and `ask-augmented`."""

from typing import Literal

from memconform.client.client import ContractClient
from memconform.contract.ask import AskRequest
from memconform.datasets.model import Question
from memconform.scenarios.scenario import (
    RetrievalSettings,
    ScenarioResponse,
    require_requested_mode,
)
from memconform.scoring.scorer import TextKind


class AskBasic:
    """The question alone."""

    name = "ask-basic"
    text_kind: TextKind = "answer"
    dated = False
    _reader_mode: Literal["augmented"] | None = None

    async def put(
        self, client: ContractClient, question: Question, settings: RetrievalSettings
    ) -> ScenarioResponse:
        request = AskRequest(
            question=question.question,
            top_k=settings.top_k,
            mode=settings.mode,
            reader_mode=self._reader_mode,
            question_date=question.question_date if self.dated else None,
            candidate_k=settings.candidate_k or None,
            rerank_top_n=settings.rerank_top_n or None,
            filters=settings.filters,
        )
        answered, timings = await client.ask(settings.brain, request)
        retrieve = answered.retrieve
        require_requested_mode(settings, retrieve.trace)
        return ScenarioResponse(
            text=answered.text,
            kind=self.text_kind,
            chunks=tuple(retrieve.chunks),
            trace=retrieve.trace,
            timings=timings,
            citations=answered.citations,
        )


class AskAugmented(AskBasic):
    """The question with its date, to the daemon's augmented reader."""

    name = "ask-augmented"
    dated = True
    _reader_mode = "augmented"
