"""Batches of operations on documents, committed atomically."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from memoryd.api.bodies import BatchOps, Op
from memoryd.api.decode import parse, validate
from memoryd.api.requests import DECODED_LIMIT, body_of, brain_of, require_at_most, run_cancellable
from memoryd.api.respond import json_response
from memoryd.brain.draft import Draft
from memoryd.files.path import canonical
from memoryd.problem import Problem, invalid, problem_prefix
from memoryd.wire.base64 import decode_base64

_OPS_LIMIT = 1_024


@dataclass(frozen=True, slots=True)
class _Operation:
    carry_out: Callable[[Draft], None]
    size: int = 0
    """Bytes of content."""


async def batch_ops(request: Request) -> Response:
    raw = await body_of(request)
    brain = await brain_of(request)

    def commit() -> int:
        body = parse(BatchOps, raw)
        operations = [_parse_operation(index, op) for index, op in enumerate(body.ops)]
        if len(operations) > _OPS_LIMIT:
            raise Problem("payload_too_large", f"ops: has more than {_OPS_LIMIT} items")
        require_at_most(DECODED_LIMIT, sum(operation.size for operation in operations))

        def stage(draft: Draft) -> None:
            for index, operation in enumerate(operations):
                with problem_prefix(f"ops[{index}]"):
                    operation.carry_out(draft)

        brain.change(stage, body.reason)
        return len(operations)

    return json_response({"committed": await run_cancellable(request, commit)})


def _parse_operation(index: int, raw: dict[str, Any]) -> _Operation:
    with problem_prefix(f"ops[{index}]"):
        return _operation(validate(Op, raw))


def _operation(op: Op) -> _Operation:
    path = canonical(op.path)
    match op.type:
        case "delete":
            return _Operation(partial(Draft.delete, path=path))
        case "rename":
            to = canonical(_required_text(op.to, "to"), "to")
            return _Operation(partial(Draft.rename, path=path, to=to))
        case "write" | "append":
            content = decode_base64(
                _required_text(op.content_base64, "content_base64"), "content_base64"
            )
            apply = Draft.write if op.type == "write" else Draft.append
            return _Operation(partial(apply, path=path, content=content), len(content))


def _required_text(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise invalid(f"{key}: must be a string")
    return value
