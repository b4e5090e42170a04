"""The scenarios in which the daemon's reader answers: `ask-basic` and `ask-augmented`."""

from typing import Literal

from memconform.client.client import ContractClient
from memconform.client.failures import DaemonFailedError
from memconform.contract.ask import AskRequest
from memconform.datasets.error_text import error_message
from memconform.datasets.question import Question, TextKind
from memconform.measuring.requirements import require_requested_mode
from memconform.measuring.scenario import RetrievalSettings, ScenarioResponse


class AskBasic:
    """Asks the question without its date."""

    name = "ask-basic"
    text_kind: TextKind = "answer"
    dated = False
    _reader_mode: Literal["augmented"] | None = None

    async def put(
        self, client: ContractClient, question: Question, settings: RetrievalSettings
    ) -> ScenarioResponse:
        """Ask the daemon's reader; raises CallError as `Scenario.put` does."""
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
        answer, timings = await client.ask(settings.brain, request)
        if (message := error_message(question, answer.text)) is not None:
            raise DaemonFailedError("error_text", f"the answer is an error message: {message}")
        retrieval = answer.retrieve
        require_requested_mode(settings, retrieval.trace)
        return ScenarioResponse(
            text=answer.text,
            kind=self.text_kind,
            chunks=tuple(retrieval.chunks),
            trace=retrieval.trace,
            timings=timings,
            citations=answer.citations,
            null_chunks=retrieval.was_null,
        )


class AskAugmented(AskBasic):
    """Asks the daemon's augmented reader the question with its date."""

    name = "ask-augmented"
    dated = True
    _reader_mode = "augmented"
