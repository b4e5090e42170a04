"""The part that both ask scenarios share."""

from typing import Literal

from memconform.client.client import ContractClient
from memconform.contract.ask import AskRequest
from memconform.scenarios.outcome import Outcome, Retrieval, refuse_fallback


async def ask(
    client: ContractClient,
    question: str,
    settings: Retrieval,
    *,
    reader_mode: Literal["augmented"] | None = None,
    question_date: str | None = None,
) -> Outcome:
    request = AskRequest(
        question=question,
        top_k=settings.top_k,
        mode=settings.mode,
        reader_mode=reader_mode,
        question_date=question_date,
        candidate_k=settings.candidate_k or None,
        rerank_top_n=settings.rerank_top_n or None,
    )
    answered, timings = await client.ask(settings.brain, request)
    retrieve = answered.retrieve
    refuse_fallback(settings, retrieve.trace)
    return Outcome(
        text=answered.text,
        chunks=tuple(retrieve.chunks),
        trace=retrieve.trace,
        timings=timings,
        citations=answered.citations,
    )
