"""The wire formats of two chat APIs: OpenAI's chat completions and Anthropic's messages."""

import json
from collections.abc import Sequence
from typing import Any, Protocol

from memconform.upstream.schema_filler import WantedSchema, find_schema
from memconform.upstream.script import TokenUsage

Body = dict[str, Any]


class BadRequestError(ValueError):
    """The request is not valid for its API."""


class Dialect(Protocol):
    """The wire format of one chat API: bytes for events of a stream, bodies for whole answers."""

    def prompt(self, body: Body) -> tuple[str, list[str]]:
        """The system message and the user messages; raises BadRequestError if there are none."""
        ...

    def wanted_schema(self, body: Body) -> WantedSchema | None:
        """The schema that the reply must have, in a tool that must be called or as its text.

        Raises:
            BadRequestError: if it is missing, no object, or of a tool that is to be streamed.
        """
        ...

    def opening(self, model: str, usage: TokenUsage) -> bytes: ...
    def delta(self, model: str, text: str) -> bytes: ...
    def closing(self, model: str, usage: TokenUsage, request: Body) -> bytes: ...
    def error(self, message: str) -> bytes: ...
    def bad_json(self) -> bytes: ...
    def whole(self, model: str, text: str, usage: TokenUsage, tool: str = "") -> Body:
        """A whole answer; with `tool`, a call of it whose arguments are `text`."""
        ...

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


def _object(body: Body, key: str) -> Body:
    """The JSON object at a key, empty if missing; raises BadRequestError for any other value."""
    value = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequestError(f"{key}: must be a JSON object")
    return value


def _tools(body: Body) -> list[Body]:
    """The tools of a request that demands a call."""
    if body.get("stream") is True:
        raise BadRequestError("stream: the call of a tool is not streamed here")
    tools = body.get("tools")
    return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []


def _forced(tools: Sequence[Body], name: object, key: str) -> WantedSchema | None:
    """The tool that must be called: the one of that name, otherwise the first."""
    for tool in tools:
        if name in (None, tool.get("name")):
            return _wanted(tool.get(key), str(tool.get("name", "")))
    raise BadRequestError("tool_choice: no such tool is in `tools`")


def _wanted(schema: object, tool: str = "") -> WantedSchema:
    if not isinstance(schema, dict):
        raise BadRequestError("the reply's schema: must be a JSON object")
    return WantedSchema(schema, tool)


class OpenAI:
    """OpenAI's chat completions (https://platform.openai.com/docs/api-reference/chat)."""

    def prompt(self, body: Body) -> tuple[str, list[str]]:
        messages = _messages(body)
        system = [m for m in messages if m.get("role") in ("system", "developer")]
        return "\n".join(_text(m.get("content")) for m in system), _users(messages)

    def wanted_schema(self, body: Body) -> WantedSchema | None:
        wanted = _object(body, "response_format")
        if wanted.get("type") == "json_schema":
            return _wanted(_object(wanted, "json_schema").get("schema"))
        choice = body.get("tool_choice")
        is_named = isinstance(choice, dict) and choice.get("type") == "function"
        if is_named or choice == "required":
            function = _object(choice, "function") if isinstance(choice, dict) else {}
            tools = [_object(tool, "function") for tool in _tools(body)]
            return _forced(tools, function.get("name"), "parameters")
        if wanted.get("type") == "json_object":
            for message in reversed(_messages(body)):
                if (schema := find_schema(_text(message.get("content")))) is not None:
                    return WantedSchema(schema)
        return None

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

    def whole(self, model: str, text: str, usage: TokenUsage, tool: str = "") -> Body:
        message: Body = {"role": "assistant", "content": text}
        if tool:
            function = {"name": tool, "arguments": text}
            calls = [{"id": "call_scripted", "type": "function", "function": function}]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        return {
            "id": "chatcmpl-scripted",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [
                {"index": 0, "message": message, "finish_reason": "tool_calls" if tool else "stop"}
            ],
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

    def wanted_schema(self, body: Body) -> WantedSchema | None:
        choice = body.get("tool_choice")
        if not isinstance(choice, dict) or choice.get("type") not in ("tool", "any"):
            return None
        return _forced(_tools(body), choice.get("name"), "input_schema")

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

    def whole(self, model: str, text: str, usage: TokenUsage, tool: str = "") -> Body:
        tokens = {"input_tokens": usage.input, "output_tokens": usage.output}
        if not tool:
            return self._message(model, [{"type": "text", "text": text}], "end_turn", tokens)
        block = {"type": "tool_use", "id": "toolu_scripted", "name": tool}
        return self._message(model, [block | {"input": json.loads(text)}], "tool_use", tokens)

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
