"""`ask-basic`: the question alone, answered by the daemon's reader."""

from memconform.client.client import ContractClient
from memconform.datasets.model import Question
from memconform.scenarios.asking import ask
from memconform.scenarios.outcome import Outcome, Retrieval
from memconform.scoring.scorer import TextKind


class AskBasic:
    name = "ask-basic"
    text_kind: TextKind = "answer"
    dated = False

    async def put(self, client: ContractClient, question: Question, settings: Retrieval) -> Outcome:
        return await ask(client, question.question, settings)
