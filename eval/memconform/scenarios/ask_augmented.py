"""`ask-augmented`: the question with its date, to the daemon's augmented reader."""

from memconform.client.client import ContractClient
from memconform.datasets.model import Question
from memconform.scenarios.asking import ask
from memconform.scenarios.outcome import Outcome, Retrieval
from memconform.scoring.scorer import TextKind


class AskAugmented:
    name = "ask-augmented"
    text_kind: TextKind = "answer"
    dated = True

    async def put(self, client: ContractClient, question: Question, settings: Retrieval) -> Outcome:
        return await ask(
            client,
            question.question,
            settings,
            reader_mode="augmented",
            question_date=question.question_date,
        )
