"""The bodies of the vendors' responses as completions."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from memconform.llm.chat import (
    Completion,
    LlmError,
    ModelUnusableError,
    RequestRejectedError,
    TransientError,
    Usage,
)
from memconform.llm.failures import ServiceError, error_object, failure_of
from memconform.llm.names import ModelName

_MAX_TOKENS = 10_000_000
"""No call takes so many; a larger count is no count."""
_SHOWN = 300
"""Characters of a service's text."""
_LENGTH = ("length", "max_tokens", "model_length")
"""Why a completion ended that reached its limit of tokens."""
_LIMIT_SPENT = re.compile(
    r"max_tokens or model output limit (?:was|has been) reached", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Response:
    """A response of a model service, with a successful status."""

    name: ModelName
    limit: int
    """Output tokens that the request allowed."""
    url: str
    headers: Mapping[str, str]
    content: bytes

    @classmethod
    def of(cls, name: ModelName, limit: int, response: Any) -> "Response":  # noqa: ANN401 - of httpx
        return cls(name, limit, str(response.url), response.headers, response.content)

    def body(self, *, known: bool) -> Mapping[str, Any]:
        """The JSON object that it has.

        Args:
            known: whether the address served this model before.

        Raises:
            ModelUnusableError: for a page, a list or other text at an address that never served
                the model.
            LlmError: for an error object, by its own code.
            TransientError: for the same at an address that is known.
            ValueError: for JSON that was cut off.
        """
        try:
            # By the bytes: JSON is UTF-8, whatever a header says of the text.
            body = json.loads(self.content)
        except ValueError:
            if self.content.strip() and self.content.lstrip()[:1] not in b'{["':
                raise self._no_service(known=known) from None
            raise
        if (error := error_object(body)) is not None:
            raise self._failure(error, body)
        if not isinstance(body, dict):
            raise self._no_service(known=known)
        return body

    def _failure(self, error: object, body: object) -> LlmError:
        failure = failure_of(self.name, ServiceError.of_object(error, body, self.headers))
        usage = body.get("usage") if isinstance(body, Mapping) else None
        choices = body.get("choices") if isinstance(body, Mapping) else None
        # It failed on the way: what was made until then may be charged.
        failure.reported = openai_usage(usage)
        if isinstance(failure, TransientError) and (usage or choices):
            failure.billable = True
        return failure

    def _no_service(self, *, known: bool) -> LlmError:
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        text = self.content.decode("utf-8", "replace")
        what = "a page" if text.lstrip().startswith("<") else "text"
        shown = " ".join(text.split())[:80]
        address = f"{parts.scheme}://{host}{parts.path}"
        message = f"{address} answered {what} instead of a JSON object: {shown!r}"
        if known:
            return TransientError(f"{self.name}: {message}", code="llm_bad_reply")
        return ModelUnusableError(
            f"there is no model service for {self.name}: {message}",
            code="llm_unusable",
            hint="check the address that the provider's variable holds; many end in /v1",
        )


def length_fault(name: ModelName, limit: int, reason: str, text: str) -> str:
    """What is wrong with a completion that reached its limit."""
    had = "" if text.strip() else " before any answer, as reasoning takes tokens too"
    return (
        f"it was cut at {limit:,} output tokens ({reason}){had}: set min_output_tokens of"
        f' [models."{name}"] to more in the file of --prices or MEMCONFORM_PRICES'
    )


def cut_by_rejection(name: ModelName, limit: int, error: RequestRejectedError) -> Completion:
    """The completion of a request that is refused after the model spent its limit on reasoning.

    OpenAI answers 400 then, and may charge for it. Raises the error if it is about anything else.
    """
    if not _LIMIT_SPENT.search(error.details):
        raise error
    fault = length_fault(name, limit, "a refusal", "")
    return Completion(text="", usage=None, served_model="", rejection=fault)


def openai_completion(response: Response, body: Mapping[str, Any]) -> Completion:
    """The completion of a chat completion's body.

    Raises:
        TypeError, LookupError, AttributeError: for another shape than the API's.
    """
    usage, served = openai_usage(body.get("usage")), _served(body)
    choices = body["choices"]
    if choices is None or choices == []:
        return Completion(text="", usage=usage, served_model=served, rejection="it has no choice")
    if not isinstance(choices, list):
        raise TypeError(f"choices are of type {type(choices).__name__}")
    choice = choices[0]
    message, reason = choice.get("message"), choice.get("finish_reason")
    text = "" if message is None else _content(message.get("content"))
    rejection = ""
    if message is not None and message.get("refusal"):
        rejection = f"the model refused: {str(message['refusal'])[:_SHOWN]}"
    elif reason in _LENGTH:
        rejection = length_fault(response.name, response.limit, reason, text)
    elif reason not in ("stop", None):
        rejection = f"it ended by {reason!r}"
    elif not text.strip():
        rejection = "it is empty"
    return Completion(text=text, usage=usage, served_model=served, rejection=rejection)


def anthropic_completion(response: Response, body: Mapping[str, Any]) -> Completion:
    """The completion of a message's body.

    Raises:
        TypeError, LookupError, AttributeError: for another shape than the API's.
    """
    text = _content(body["content"])
    reason = body.get("stop_reason")
    rejection = ""
    if reason in _LENGTH:
        rejection = length_fault(response.name, response.limit, reason, text)
    elif reason not in ("end_turn", "stop_sequence", None):
        rejection = f"it ended by {reason!r}"
    elif not text.strip():
        rejection = "it is empty"
    return Completion(
        text=text,
        usage=_usage(body.get("usage"), "input_tokens", "output_tokens"),
        served_model=_served(body),
        rejection=rejection,
    )


def _content(content: object) -> str:
    """The text of a message; some services send it in parts, with reasoning in parts of its own."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise TypeError(f"text is of type {type(content).__name__}")
    texts = [part["text"] for part in content if part["type"] == "text"]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a part of the text is none")
    return "".join(texts)


def _served(body: Mapping[str, Any]) -> str:
    name = body.get("model")
    return name[:_SHOWN] if isinstance(name, str) else ""


def openai_usage(usage: object) -> Usage | None:
    """The tokens that a chat completion reports; None if it reports none."""
    counted = _usage(usage, "prompt_tokens", "completion_tokens")
    total = usage.get("total_tokens") if isinstance(usage, Mapping) else None
    if counted is None or not _is_count(total):
        return counted
    # Some gateways count reasoning in the total alone, and charge for it.
    return Usage(counted.input, max(counted.output, total - counted.input))


def _usage(usage: object, input_key: str, output_key: str) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    counts = [usage.get(key) for key in (input_key, output_key)]
    return Usage(*counts) if all(map(_is_count, counts)) else None  # type: ignore[arg-type] # checked


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 < value <= _MAX_TOKENS
