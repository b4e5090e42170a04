"""`search-retrieve-only`: retrieval without a reader, scored on the text that came back."""

from memconform.client.client import ContractClient
from memconform.contract.core import Chunk, SearchRequest
from memconform.datasets.model import Question
from memconform.scenarios.outcome import Outcome, Retrieval, refuse_fallback
from memconform.scoring.scorer import TextKind


class SearchRetrieveOnly:
    name = "search-retrieve-only"
    text_kind: TextKind = "retrieval"

    async def put(self, client: ContractClient, question: Question, settings: Retrieval) -> Outcome:
        request = SearchRequest(
            query=question.question,
            top_k=settings.top_k,
            mode=settings.mode,
            question_date=question.question_date,
            candidate_k=settings.candidate_k or None,
            rerank_top_n=settings.rerank_top_n or None,
        )
        answer, timings = await client.search(settings.brain, request)
        refuse_fallback(settings, answer.trace)
        return Outcome(
            text="\n\n".join(_text(chunk) for chunk in answer.chunks),
            chunks=tuple(answer.chunks),
            trace=answer.trace,
            timings=timings,
        )


def _text(chunk: Chunk) -> str:
    return chunk.text or chunk.summary or ""
