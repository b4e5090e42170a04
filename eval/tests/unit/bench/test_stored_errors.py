"""What `bench --answers` stores as the answer of a daemon's own reader."""

from typing import Any, cast

import pytest

from memconform.bench import schedule
from memconform.bench.strategy import Strategy
from memconform.bench.system import AnsweringIndex, OwnAnswer, SearchResult
from memconform.bench.tasks import Task
from memconform.datasets.question import Question
from memconform.records import Failure

_TASK = Task("h", Question(id="q", question="Where is the boat?", answers=("Brel",)), {}, {}, 3)


class _Index:
    def __init__(self, text: str) -> None:
        self.text = text

    async def answer(self, *_: object) -> OwnAnswer:
        return OwnAnswer(self.text, ("s1",))


async def _stored(text: str) -> dict[str, Any]:
    index = cast("AnsweringIndex", _Index(text))
    found = SearchResult(())
    return dict(await schedule._answer(index, cast("Strategy", None), _TASK, found))


@pytest.mark.parametrize(
    "text", ["502 Bad Gateway", "Error: 429 slow down", '{"error": {"message": "no"}}']
)
async def test_the_error_message_of_a_reader_is_not_stored_as_its_answer(text: str) -> None:
    """Only `answer` refused it: other programs that read the results scored it as an answer."""
    assert await _stored(text) == {"answer_error": Failure(code="error_text", message=text)}


async def test_an_answer_is_stored() -> None:
    assert await _stored("In Brel.") == {"answer": "In Brel.", "answer_ranking": ["s1"]}
