"""Checks of a reply: whether it can be used, and what is asked if it cannot."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from memconform.contract.strict_json import RepeatedKeyError, decode
from memconform.contract.wire import JsonValue
from memconform.datasets.reasoning_blocks import strip_reasoning
from memconform.llm.accounting import Reply
from memconform.llm.cache import CachedReply, ReplyCache
from memconform.llm.chat import REPAIR, ChatRequest, LlmError, Message, Usage
from memconform.printing.logs import Logger
from memconform.redaction import redact

_log = Logger()

_Value = TypeVar("_Value")

_LONG_CHARACTERS = 10_000
"""From this length of a prompt on, the service's own count of tokens is checked."""
_MOST_CHARACTERS_PER_TOKEN = 8
"""English has about 4, and code with much white space less than 8."""
_REPAIRED_CHARS = 2000
"""How much of an invalid reply is shown to the model again."""


REASONING_STRIPPED = "replies hold their reasoning, which is not read"
"""The notice about a model whose service does not separate reasoning from the answer."""
_FENCES = ("```", "~~~")
_INFO = re.compile(r"[\w+.-]*[ \t\r]*")
"""The language after a fence."""
_SEARCHED_CHARACTERS = 20_000
"""How much of an invalid reply is searched for objects."""


class InvalidReplyError(LlmError):
    """A reply is not what was asked for, and neither was the next one."""

    reply = ""
    """The first of the two, as the model sent it."""


def cached_reply(
    cache: ReplyCache, key: str, parse: Callable[[str], _Value]
) -> Reply[_Value] | None:
    """The reply that the cache has under `key`; None if there is none, or `parse` rejects it."""
    entry = cache.read(key)
    return None if entry is None else usable_reply(entry, parse)


def usable_reply(entry: CachedReply, parse: Callable[[str], _Value]) -> Reply[_Value] | None:
    """A cached reply; None if `parse` rejects it.

    A rejected one was written by a version with other checks; it is asked for again.
    """
    try:
        value = parse_text(without_reasoning(entry.text), parse)
    except ValueError as error:
        _log.warning("a cached reply is invalid and is asked for again", error=str(error))
        return None
    return Reply(
        value=value, served_model=entry.served_model, cached=True, usage=Usage(0, 0), cost=0
    )


def without_reasoning(text: str) -> str:
    """A reply without the reasoning that precedes it.

    A block elsewhere stays: it is a part of what is said, such as a fact about these tags.
    """
    rest = strip_reasoning(text)
    return rest if text.rstrip().endswith(rest) else text


def parse_text(text: str, parse: Callable[[str], _Value]) -> _Value:
    """The value of a reply without its reasoning.

    Raises:
        ValueError: as `parse`, and if nothing but reasoning was there.
    """
    if not text.strip():
        raise ValueError("it is reasoning alone, without an answer")
    return parse(text)


def unfence(text: str) -> str:
    """The content of a Markdown fence, where a reply is one fence and nothing else."""
    reply = text.strip()
    for mark in _FENCES:
        content = reply.removeprefix(mark).removesuffix(mark)
        if len(content) == len(reply) - 2 * len(mark) and mark not in content:
            first, _, rest = content.partition("\n")
            return rest if rest and _INFO.fullmatch(first) else content.removeprefix("json")
    return text


def decode_reply(text: str) -> JsonValue:
    """The JSON of a reply, which may stand in one Markdown fence.

    Prose around it stays invalid, although a reader would see which object is meant: a judge that
    quotes an answer's own verdict and rejects it in words would be taken by the quotation.

    Raises:
        ValueError: for anything else than one JSON value; it says whether there is prose around
            it, or more than one.
    """
    content = unfence(text).strip()
    try:
        return decode(content)
    except RepeatedKeyError as error:
        raise ValueError(f"ambiguous: {error}") from error
    except json.JSONDecodeError as error:
        match _count_objects(content[:_SEARCHED_CHARACTERS]):
            case 0:
                raise ValueError(f"not one JSON object: {error}") from error
            case 1:
                raise ValueError("there is prose around the JSON object") from error
            case count:
                raise ValueError(f"ambiguous: it holds {count} JSON objects") from error


def _count_objects(text: str) -> int:
    """JSON objects in a text, without those inside others."""
    count = position = 0
    decoder = json.JSONDecoder()
    while (position := text.find("{", position)) >= 0:
        try:
            _, position = decoder.raw_decode(text, position)
            count += 1
        except (ValueError, RecursionError):
            position += 1
    return count


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
