"""The wire formats of two chat APIs: OpenAI's chat completions and Anthropic's messages."""

import json
from collections.abc import Sequence
from typing import Any, Protocol

from memconform.upstream.script import TokenUsage

Body = dict[str, Any]


class BadRequestError(ValueError):
    """The request is not valid for its API."""


class Dialect(Protocol):
    """The wire format of one chat API: bytes for events of a stream, bodies for whole answers."""

    def prompt(self, body: Body) -> tuple[str, list[str]]:
        """The system message and the user messages; raises BadRequestError if there are none."""
        ...

    def opening(self, model: str, usage: TokenUsage) -> bytes: ...
    def delta(self, model: str, text: str) -> bytes: ...
    def closing(self, model: str, usage: TokenUsage, request: Body) -> bytes: ...
    def error(self, message: str) -> bytes: ...
    def bad_json(self) -> bytes: ...
    def whole(self, model: str, text: str, usage: TokenUsage) -> Body: ...
    def problem(self, status: int, message: str, error_code: str = "") -> Body: ...


def _frame(data: Body, event: str = "") -> bytes:
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _text(content: object) -> str:
    """The text of a message's content, which is a string or a list of parts, some of them text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(
            part["text"]
            for part in content
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    raise BadRequestError("content: must be a string or a list of parts")


def _messages(body: Body) -> Sequence[Body]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        raise BadRequestError("messages: must be a list of objects")
    return messages


def _users(messages: Sequence[Body]) -> list[str]:
    users = [_text(m.get("content")) for m in messages if m.get("role") == "user"]
    if not users:
        raise BadRequestError("messages: there is no message with role 'user'")
    return users


class OpenAI:
    """OpenAI's chat completions (https://platform.openai.com/docs/api-reference/chat)."""

    def prompt(self, body: Body) -> tuple[str, list[str]]:
        messages = _messages(body)
        system = [m for m in messages if m.get("role") in ("system", "developer")]
        return "\n".join(_text(m.get("content")) for m in system), _users(messages)

    def _chunk(self, model: str, choices: list[Body], **more: object) -> bytes:
        return _frame(
            {
                "id": "chatcmpl-scripted",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": model,
                "choices": choices,
                **more,
            }
        )

    def _choice(self, delta: Body, finish: str | None = None) -> list[Body]:
        return [{"index": 0, "delta": delta, "finish_reason": finish}]

    def opening(self, model: str, usage: TokenUsage) -> bytes:
        del usage
        return self._chunk(model, self._choice({"role": "assistant", "content": ""}))

    def delta(self, model: str, text: str) -> bytes:
        return self._chunk(model, self._choice({"content": text}))

    def closing(self, model: str, usage: TokenUsage, request: Body) -> bytes:
        end = self._chunk(model, self._choice({}, "stop"))
        if (request.get("stream_options") or {}).get("include_usage"):
            end += self._chunk(model, [], usage=_openai_usage(usage))
        return end + b"data: [DONE]\n\n"

    def error(self, message: str) -> bytes:
        return _frame(self.problem(500, message))

    def bad_json(self) -> bytes:
        return b'data: {"choices": [{"delta": {"content"\n\n'

    def whole(self, model: str, text: str, usage: TokenUsage) -> Body:
        message = {"role": "assistant", "content": text}
        return {
            "id": "chatcmpl-scripted",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": _openai_usage(usage),
        }

    def problem(self, status: int, message: str, error_code: str = "") -> Body:
        kinds = {
            400: "invalid_request_error",
            401: "authentication_error",
            404: "invalid_request_error",
            413: "invalid_request_error",
            429: "rate_limit_error",
        }
        kind = kinds.get(status, "server_error")
        shown = "model_not_found" if status == 404 else error_code or None
        return {"error": {"message": message, "type": kind, "param": None, "code": shown}}


def _openai_usage(usage: TokenUsage) -> Body:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    }


class Anthropic:
    """Anthropic's messages (https://docs.anthropic.com/en/api/messages, and -streaming)."""

    def prompt(self, body: Body) -> tuple[str, list[str]]:
        if not isinstance(body.get("max_tokens"), int):
            raise BadRequestError("max_tokens: must be an integer")
        return _text(body.get("system", "")), _users(_messages(body))

    def _message(self, model: str, content: list[Body], stop: str | None, usage: Body) -> Body:
        return {
            "id": "msg_scripted",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }

    def opening(self, model: str, usage: TokenUsage) -> bytes:
        tokens = {"input_tokens": usage.input, "output_tokens": 0}
        start = {"type": "message_start", "message": self._message(model, [], None, tokens)}
        block = {"type": "text", "text": ""}
        return (
            _frame(start, "message_start")
            + _frame(
                {"type": "content_block_start", "index": 0, "content_block": block},
                "content_block_start",
            )
            + _frame({"type": "ping"}, "ping")
        )

    def delta(self, model: str, text: str) -> bytes:
        del model
        delta = {"type": "text_delta", "text": text}
        return _frame(
            {"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta"
        )

    def closing(self, model: str, usage: TokenUsage, request: Body) -> bytes:
        del model, request
        delta = {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": usage.output},
        }
        return (
            _frame({"type": "content_block_stop", "index": 0}, "content_block_stop")
            + _frame(delta, "message_delta")
            + _frame({"type": "message_stop"}, "message_stop")
        )

    def error(self, message: str) -> bytes:
        return _frame(self.problem(529, message), "error")

    def bad_json(self) -> bytes:
        return b'event: content_block_delta\ndata: {"type": "content_block_delta", "ind\n\n'

    def whole(self, model: str, text: str, usage: TokenUsage) -> Body:
        tokens = {"input_tokens": usage.input, "output_tokens": usage.output}
        return self._message(model, [{"type": "text", "text": text}], "end_turn", tokens)

    def problem(self, status: int, message: str, error_code: str = "") -> Body:
        del error_code  # Anthropic's errors have a type and a message only.
        kinds = {
            400: "invalid_request_error",
            413: "request_too_large",
            429: "rate_limit_error",
            529: "overloaded_error",
        }
        return {
            "type": "error",
            "error": {"type": kinds.get(status, "api_error"), "message": message},
        }
