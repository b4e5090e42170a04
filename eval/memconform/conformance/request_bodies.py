"""Builds request bodies from text, bytes, sizes, and generators inside JSON. Pure."""

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
    """Base of the models of a case file: unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


class Size(Strict):
    """Generated content of `count` bytes: ASCII words, or bytes that are not valid UTF-8.

    The same seed generates the same bytes.
    """

    count: int = Field(ge=0, le=128 * 2**20, alias="bytes")
    seed: int = 0
    utf8: bool = True

    def content(self) -> bytes:
        """Generate the bytes."""
        generator = random.Random(self.seed)  # noqa: S311 - content, not a secret
        if not self.utf8:
            return (b"\xff" + generator.randbytes(max(0, self.count - 1)))[: self.count]
        # One random kilobyte, repeated: the size matters more than the content.
        words = [bytes(generator.choices(_LETTERS, k=_WORD - 1)) for _ in range(128)]
        block = b" ".join(words) + b" "
        return (block * (self.count // len(block) + 1))[: self.count]


class Content(Strict):
    """Bytes, written as exactly one of text, base64 and size."""

    text: str | None = None
    base64: str | None = None
    size: Size | None = None

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if sum(value is not None for value in (self.text, self.base64, self.size)) != 1:
            raise ValueError("exactly one of text, base64 and size is required")
        return self

    def encoded(self) -> bytes:
        """Return the bytes.

        Raises:
            binascii.Error: if the base64 is malformed.
        """
        if self.text is not None:
            return self.text.encode("utf-8", "surrogatepass")
        return self.size.content() if self.size else base64.b64decode(self.base64 or "")


AnyContent = Annotated[str | Content, Field(union_mode="left_to_right")]


def content(source: JsonValue) -> bytes:
    """Return the bytes of a text, or of a mapping with one of text, base64 and size.

    Raises:
        pydantic.ValidationError: if `source` is neither.
    """
    if isinstance(source, str):
        return source.encode("utf-8", "surrogatepass")
    return Content.model_validate(source).encoded()


def build_body(value: JsonValue, variables: dict[str, JsonValue]) -> JsonValue:
    """Fill in the variables of a JSON value and run its generators.

    Raises:
        UnknownVariableError: if a variable is not in `variables`.
    """
    if isinstance(value, dict) and len(value) == 1:
        ((key, argument),) = value.items()
        if key in GENERATORS:
            return GENERATORS[key](argument, variables)
    if isinstance(value, dict):
        return {
            substitute(key, variables): build_body(item, variables) for key, item in value.items()
        }
    if isinstance(value, list):
        return [build_body(item, variables) for item in value]
    return substitute(value, variables)


def _base64(argument: JsonValue, variables: dict[str, JsonValue]) -> str:
    return base64.b64encode(content(build_body(argument, variables))).decode()


def _repeat(argument: JsonValue, variables: dict[str, JsonValue]) -> str:
    options = substitute(argument, variables)
    return f"{options['text'] * options['times']}{options.get('end', '')}"


def _list(argument: JsonValue, variables: dict[str, JsonValue]) -> list[JsonValue]:
    times = substitute(argument["times"], variables)
    return [build_body(argument["item"], {**variables, "index": n}) for n in range(times)]


def _nested(argument: JsonValue, variables: dict[str, JsonValue]) -> JsonValue:
    nested: list[Any] = []
    for _ in range(substitute(argument["levels"], variables)):
        nested = [nested]
    return nested


def _merge(argument: JsonValue, variables: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {key: value for part in build_body(argument, variables) for key, value in part.items()}


def _concat(argument: JsonValue, variables: dict[str, JsonValue]) -> list[JsonValue]:
    return [item for part in build_body(argument, variables) for item in part]


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
"""Generators: an object whose only key is one of these is replaced by the generated value.

- `$base64 content`: the content in base64
- `$repeat {text, times, end?}`: a text, repeated
- `$list {times, item}`: an array whose items may refer to `${index}`
- `$nested {levels}`: arrays inside arrays
- `$merge [objects]`: one object; later keys win
- `$concat [arrays]`: one array
- `$text [texts]`: one text
"""


def as_json(value: JsonValue) -> bytes:
    """Encode a value as compact JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
