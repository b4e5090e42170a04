"""The store, many operations as one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from memoryd.models import BatchOps, Op, decoded, parse, validated
from memoryd.paths import canonical
from memoryd.problems import Problem, invalid, named
from memoryd.requests import DECODED_LIMIT, body_of, brain_of, refuse_over, unless_gone
from memoryd.responses import json_response
from memoryd.staged import Staged

_OPS_LIMIT = 1_024


@dataclass(frozen=True, slots=True)
class _Operation:
    carry_out: Callable[[Staged], None]
    size: int = 0
    """Bytes of content that it carries."""


async def batch_ops(request: Request) -> Response:
    raw = await body_of(request)
    brain = await brain_of(request)

    def commit() -> int:
        body = parse(BatchOps, raw)
        operations = [_checked(index, op) for index, op in enumerate(body.ops)]
        if len(operations) > _OPS_LIMIT:
            raise Problem("payload_too_large", f"ops: more than {_OPS_LIMIT}")
        refuse_over(DECODED_LIMIT, sum(operation.size for operation in operations))

        def stage(staged: Staged) -> None:
            for index, operation in enumerate(operations):
                with named(f"ops[{index}]"):
                    operation.carry_out(staged)

        brain.change(stage, body.reason)
        return len(operations)

    return json_response({"committed": await unless_gone(request, commit)})


def _checked(index: int, raw: dict[str, Any]) -> _Operation:
    with named(f"ops[{index}]"):
        return _operation(validated(Op, raw))


def _operation(op: Op) -> _Operation:
    path = canonical(op.path)
    match op.type:
        case "delete":
            return _Operation(partial(Staged.delete, path=path))
        case "rename":
            to = canonical(_wanted(op.to, "to"), "to")
            return _Operation(partial(Staged.rename, path=path, to=to))
        case "write" | "append":
            content = decoded(_wanted(op.content_base64, "content_base64"), "content_base64")
            how = Staged.write if op.type == "write" else Staged.append
            return _Operation(partial(how, path=path, content=content), len(content))


def _wanted(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise invalid(f"{key}: is missing, or no string")
    return value
