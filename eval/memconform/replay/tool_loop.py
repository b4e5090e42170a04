"""Answers a question by the agent's searches of one daemon."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from memconform.datasets.error_text import error_message
from memconform.datasets.question import Question
from memconform.llm.accounting import CallTotals
from memconform.llm.chat import LlmError
from memconform.measuring.observation import Observation
from memconform.records import Failure
from memconform.replay.agent import Agent
from memconform.replay.agent_prompts import Tool, ToolCall
from memconform.replay.daemon import BrainIndex, Retrieved
from memconform.replay.documents import FACTS, SESSIONS
from memconform.replay.hits import Hit
from memconform.replay.records import ReplayRetrieval
from memconform.replay.retrieval_record import retrieval_record


def agent_prefixes(project: str) -> dict[Tool, str]:
    """The prefix of the documents that each tool searches, by the tool's name."""
    return {"kb_search": SESSIONS, "memory_recall": f"{FACTS}{project}/"}


async def answer_with_tools(
    agent: Agent, index: BrainIndex, question: Question, calls: CallTotals
) -> tuple[ReplayRetrieval, LlmError | None]:
    """The answer and all that was found on the way to it; the error if there is no answer.

    Args:
        agent: makes the searches.
        index: of the daemon that is searched.
        question: what is asked.
        calls: what the agent's calls are added to.

    Raises:
        CallError: if a search failed.
        DaemonError: if nothing can be measured any more.
    """
    searches: list[Retrieved] = []
    prefixes = agent_prefixes(index.placement.project)

    async def search(call: ToolCall) -> Sequence[Hit]:
        found = await index.search(replace(question, question=call.query), prefixes[call.tool])
        searches.append(found)
        return found.hits

    answer = await agent.answer(
        question.question, question.question_date, search, partial(error_message, question), calls
    )
    observed = [each.observed for each in searches]
    retrieved = Retrieved(
        tuple(answer.hits),
        Observation(
            latency_ms=sum(each.latency_ms or 0 for each in observed),
            rises=any(each.rises for each in observed),
            skipped_stage=next(filter(None, (each.skipped_stage for each in observed)), None),
            null_chunks=any(each.null_chunks for each in observed),
            is_short=any(each.is_short for each in observed),
        ),
        answer=answer.answer,
    )
    record = retrieval_record(question.id, retrieved)
    error = answer.failure
    return record.model_copy(
        update={
            "turns": answer.turns,
            "served_model": answer.served_model,
            "reader_ms": answer.reader_ms,
            "error": None if error is None else Failure(code=error.code, message=error.message),
        }
    ), (error if answer.halted else None)
