"""Checks of a reply: whether it can be used, and what is asked if it cannot."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from memconform.llm.accounting import Reply
from memconform.llm.cache import ReplyCache
from memconform.llm.chat import REPAIR, ChatRequest, LlmError, Message, Usage
from memconform.printing.logs import Logger
from memconform.redaction import redact

_log = Logger()

_Value = TypeVar("_Value")

_LONG_CHARACTERS = 10_000
"""Of a prompt for which the service's own count of tokens is checked."""
_MOST_CHARACTERS_PER_TOKEN = 8
"""English has about 4, and code with much white space less than 8."""
_REPAIRED_CHARS = 2000
"""Of an invalid reply, shown to the model again."""


class InvalidReplyError(LlmError):
    """A reply is not what was asked for, and neither was the next one."""

    reply = ""
    """The first of the two, as the model sent it."""


def cached_reply(
    cache: ReplyCache, key: str, parse: Callable[[str], _Value]
) -> Reply[_Value] | None:
    """The reply that the cache has under `key`; None if there is none, or `parse` rejects it.

    A rejected one was written by a version with other checks; it is asked for again.
    """
    entry = cache.read(key)
    if entry is None:
        return None
    try:
        value = parse(entry.text)
    except ValueError as error:
        _log.warning("a cached reply is invalid and is asked for again", error=str(error))
        return None
    return Reply(
        value=value, served_model=entry.served_model, cached=True, usage=Usage(0, 0), cost=0
    )


def cut_fault(request: ChatRequest, usage: Usage | None) -> str:
    """Why a service cannot have read all of a request; empty if it may have.

    Some cut a prompt that exceeds the context window without a word, Ollama for one, and answer
    from what is left.
    """
    size = sum(len(message.content) for message in request.messages)
    if usage is None or size < _LONG_CHARACTERS or usage.input * _MOST_CHARACTERS_PER_TOKEN >= size:
        return ""
    return (
        f"the service counted {usage.input:,} tokens of a prompt of {size:,} characters, and cut it"
    )


def repair_request(request: ChatRequest, text: str, fault: str) -> ChatRequest:
    """The request that sends an invalid reply back, with what is wrong with it."""
    return replace(
        request,
        messages=(
            *request.messages,
            Message("assistant", redact(text)[:_REPAIRED_CHARS]),
            Message(
                "user",
                f"{REPAIR}{fault[:200]}. Reply again, with {request.reply_form}, and nothing else.",
            ),
        ),
    )
