"""Replies with one fault again and again: when a model is asked no further."""

import pytest

from memconform.datasets.question import Question
from memconform.errors import ExitCode
from memconform.llm import session
from memconform.llm.chat import (
    HALTING_CODES,
    HaltingError,
    InvalidRepliesError,
)
from memconform.llm.session import Model
from memconform.scoring.judge.longmemeval import parse_yes_no
from memconform.scoring.judge.prompt import parse_reply
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.scorer import DaemonResponse
from tests.unit.model_services import NAMES, RIGHT, completion, in_turn, opened, request_for, served


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause but one that a service asks for."""
    monkeypatch.setattr(session, "_FIRST_BACKOFF_S", 0.0)


async def _ask_many(model: Model, count: int) -> list[BaseException | object]:
    scorer = JudgeScorer([model])
    question = Question(id="q", question="Where?", answers=("Brel",))
    ends: list[BaseException | object] = []
    for number in range(count):
        try:
            answer = DaemonResponse(text=f"in Brel, {number}", kind="answer")
            ends.append(await scorer.score(question, answer))
        except HaltingError as error:
            ends.append(error)
    return ends


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("content", ["", "<think>First, the"])
async def test_a_model_that_spends_its_limit_on_reasoning_stops_after_five(
    content: str, name: str
) -> None:
    """500 questions would have cost 1,000 replies, and told nobody which setting to change."""
    async with served(completion(content, "length")) as service, opened(service, name) as model:
        ends = await _ask_many(model, 9)
        assert [getattr(end, "status", "halted") for end in ends] == [
            *["judge_error"] * 4,
            *["halted"] * 5,
        ]
        assert len(service.requests) == 10
        first, halt = ends[0], ends[4]
        assert "min_output_tokens" in first.reason  # type: ignore[union-attr]
        assert isinstance(halt, InvalidRepliesError)
        assert halt.code in HALTING_CODES
        assert "min_output_tokens" in halt.message
        assert f'[models."{name}"]' in halt.message
        assert halt.exit_code == ExitCode.USAGE
        # What it cost is in the report.
        [vote] = halt.unfinished
        assert vote["cost_usd"] > 0
        total = sum(end.detail["judges"][0]["cost_usd"] for end in ends[:4])  # type: ignore[union-attr]
        total += vote["cost_usd"]
        assert round(total * 1e9) == model.session.ledger.committed


async def test_a_valid_reply_in_between_lets_a_weak_judge_go_on() -> None:
    """A judge that fails three answers of ten has five such in a row once in 600."""
    bad = [completion("no JSON at all")] * 2
    answer = in_turn(completion(RIGHT), *bad * 19, completion(RIGHT), *bad * 19, completion(RIGHT))
    async with served(answer) as service, opened(service) as model:
        ends = await _ask_many(model, 42)
        assert not any(isinstance(end, HaltingError) for end in ends)


async def test_the_same_fault_again_and_again_stops_a_model_that_once_was_valid() -> None:
    answer = in_turn(completion(RIGHT), completion("no JSON at all"))
    async with served(answer) as service, opened(service) as model:
        ends = await _ask_many(model, 30)
        assert sum(isinstance(end, InvalidRepliesError) for end in ends) == 10
        assert len(service.requests) == 41


async def test_refusals_and_other_prompts_stop_nothing() -> None:
    """What a filter stops depends on the questions; another prompt may well be answered."""
    answer = in_turn(completion("no", "content_filter"))
    async with served(answer) as service, opened(service) as model:
        ends = await _ask_many(model, 8)
        assert not any(isinstance(end, HaltingError) for end in ends)
    async with served(completion("yes")) as service, opened(service) as model:
        await _ask_many(model, 6)
        with pytest.raises(InvalidRepliesError):
            await model.ask(request_for(), parse_reply)
        request = request_for()
        other = type(request)(
            messages=request.messages, prompt_version="other", max_output_tokens=8
        )
        assert (await model.ask(other, parse_yes_no)).value.verdict == "correct"
