"""Bodies of requests: texts, bytes, generated ones, and generators inside JSON. Pure."""

import base64
import json
import random
from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from memconform.conformance.variables import substitute
from memconform.contract.wire import JsonValue

_LETTERS = b"etaoinshrdlu"
_WORD = 8


class Strict(BaseModel):
    """A part of a case: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Size(Strict):
    """So many bytes, the same for the same seed: words of ASCII, or bytes that are no UTF-8."""

    count: int = Field(ge=0, le=128 * 2**20, alias="bytes")
    seed: int = 0
    utf8: bool = True

    def content(self) -> bytes:
        generator = random.Random(self.seed)  # noqa: S311 - content, not a secret
        if not self.utf8:
            return (b"\xff" + generator.randbytes(max(0, self.count - 1)))[: self.count]
        # One random kilobyte over and over: the content matters less than its size.
        words = [bytes(generator.choices(_LETTERS, k=_WORD - 1)) for _ in range(128)]
        block = b" ".join(words) + b" "
        return (block * (self.count // len(block) + 1))[: self.count]


class Content(Strict):
    """Bytes, as one of text, base64 and size."""

    text: str | None = None
    base64: str | None = None
    size: Size | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(each is not None for each in (self.text, self.base64, self.size)) != 1:
            raise ValueError("one of text, base64 and size is wanted")
        return self

    def encoded(self) -> bytes:
        if self.text is not None:
            return self.text.encode("utf-8", "surrogatepass")
        return self.size.content() if self.size else base64.b64decode(self.base64 or "")


AnyContent = Annotated[str | Content, Field(union_mode="left_to_right")]


def content(given: JsonValue) -> bytes:
    """The bytes of a text, or of a mapping with one of text, base64 and size."""
    if isinstance(given, str):
        return given.encode("utf-8", "surrogatepass")
    return Content.model_validate(given).encoded()


def build_body(value: JsonValue, variables: dict[str, JsonValue]) -> JsonValue:
    """A JSON value with variables filled in and generators run."""
    if isinstance(value, dict) and len(value) == 1:
        ((key, argument),) = value.items()
        if key in GENERATORS:
            return GENERATORS[key](argument, variables)
    if isinstance(value, dict):
        return {
            substitute(key, variables): build_body(each, variables) for key, each in value.items()
        }
    if isinstance(value, list):
        return [build_body(each, variables) for each in value]
    return substitute(value, variables)


def _base64(argument: JsonValue, variables: dict[str, JsonValue]) -> str:
    return base64.b64encode(content(build_body(argument, variables))).decode()


def _repeat(argument: JsonValue, variables: dict[str, JsonValue]) -> str:
    given = substitute(argument, variables)
    return f"{given['text'] * given['times']}{given.get('end', '')}"


def _list(argument: JsonValue, variables: dict[str, JsonValue]) -> list[JsonValue]:
    times = substitute(argument["times"], variables)
    return [build_body(argument["item"], {**variables, "index": n}) for n in range(times)]


def _nested(argument: JsonValue, variables: dict[str, JsonValue]) -> JsonValue:
    nested: list[Any] = []
    for _ in range(substitute(argument["levels"], variables)):
        nested = [nested]
    return nested


def _merge(argument: JsonValue, variables: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {key: each for part in build_body(argument, variables) for key, each in part.items()}


def _concat(argument: JsonValue, variables: dict[str, JsonValue]) -> list[JsonValue]:
    return [each for part in build_body(argument, variables) for each in part]


def _text(argument: JsonValue, variables: dict[str, JsonValue]) -> str:
    return "".join(str(part) for part in build_body(argument, variables))


GENERATORS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "$base64": _base64,
    "$repeat": _repeat,
    "$list": _list,
    "$nested": _nested,
    "$merge": _merge,
    "$concat": _concat,
    "$text": _text,
}
"""What stands for a value in a request's JSON.

`$base64` is content in base64; `$repeat {text, times, end?}` a text over and over; `$list {times,
item}` an array whose items see `${index}`; `$nested {levels}` arrays in one another; `$merge
[objects]` one object, later keys winning; `$concat [arrays]` one array; `$text [texts]` one text.
"""


def as_json(value: JsonValue) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
