"""`search-retrieve-only`: retrieval without a reader, scored on the retrieved text."""

from collections.abc import Iterable

from memconform.client.client import ContractClient
from memconform.client.timings import Timings
from memconform.contract.core import Chunk, SearchRequest, SearchResponse
from memconform.datasets.question import Question, TextKind
from memconform.measuring.requirements import require_requested_mode
from memconform.measuring.scenario import RetrievalSettings, ScenarioResponse


class SearchRetrieveOnly:
    """Searches for the question with its date."""

    name = "search-retrieve-only"
    text_kind: TextKind = "retrieval"
    dated = True

    async def put(
        self, client: ContractClient, question: Question, settings: RetrievalSettings
    ) -> ScenarioResponse:
        """Search, without asking the reader; raises CallError as `Scenario.put` does."""
        answer, timings = await retrieve(client, question, settings, dated=self.dated)
        return ScenarioResponse(
            text=retrieved_text(answer.chunks),
            kind=self.text_kind,
            chunks=tuple(answer.chunks),
            trace=answer.trace,
            timings=timings,
            null_chunks=answer.was_null,
        )


async def retrieve(
    client: ContractClient, question: Question, settings: RetrievalSettings, *, dated: bool
) -> tuple[SearchResponse, Timings]:
    """Search for a question, with its date if `dated`.

    Raises:
        CallError: if the search failed, or another mode was served than requested.
    """
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
    """The text on which a retrieval is scored: its chunks, separated by blank lines."""
    return "\n\n".join(chunk.text or chunk.summary or "" for chunk in chunks)
