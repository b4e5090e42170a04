"""`search-retrieve-only`: retrieval without a reader, scored on the text that came back."""

from collections.abc import Iterable

from memconform.client.client import ContractClient
from memconform.client.timing import Timings
from memconform.contract.core import Chunk, SearchRequest, SearchResponse
from memconform.datasets.model import Question
from memconform.scenarios.scenario import (
    RetrievalSettings,
    ScenarioResponse,
    require_requested_mode,
)
from memconform.scoring.scorer import TextKind


class SearchRetrieveOnly:
    name = "search-retrieve-only"
    text_kind: TextKind = "retrieval"
    dated = True

    async def put(
        self, client: ContractClient, question: Question, settings: RetrievalSettings
    ) -> ScenarioResponse:
        answer, timings = await retrieve(client, question, settings, dated=self.dated)
        return ScenarioResponse(
            text=retrieved_text(answer.chunks),
            kind=self.text_kind,
            chunks=tuple(answer.chunks),
            trace=answer.trace,
            timings=timings,
        )


async def retrieve(
    client: ContractClient, question: Question, settings: RetrievalSettings, *, dated: bool
) -> tuple[SearchResponse, Timings]:
    """Search as a scenario does, with the question's date where `dated`; raises CallError."""
    request = SearchRequest(
        query=question.question,
        top_k=settings.top_k,
        mode=settings.mode,
        question_date=question.question_date if dated else None,
        candidate_k=settings.candidate_k or None,
        rerank_top_n=settings.rerank_top_n or None,
        filters=settings.filters,
    )
    answer, timings = await client.search(settings.brain, request)
    require_requested_mode(settings, answer.trace)
    return answer, timings


def retrieved_text(chunks: Iterable[Chunk]) -> str:
    """What a retrieval is scored on."""
    return "\n\n".join(chunk.text or chunk.summary or "" for chunk in chunks)
