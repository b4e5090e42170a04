"""`search-retrieve-only`: retrieval without a reader, scored on the text that came back."""

from memconform.client.client import ContractClient
from memconform.datasets.model import Question
from memconform.scenarios.outcome import Outcome, Retrieval
from memconform.scenarios.retrieving import retrieve, retrieved_text
from memconform.scoring.scorer import TextKind


class SearchRetrieveOnly:
    name = "search-retrieve-only"
    text_kind: TextKind = "retrieval"

    dated = True

    async def put(self, client: ContractClient, question: Question, settings: Retrieval) -> Outcome:
        answer, timings = await retrieve(client, question, settings, dated=self.dated)
        return Outcome(
            text=retrieved_text(answer.chunks),
            chunks=tuple(answer.chunks),
            trace=answer.trace,
            timings=timings,
        )
