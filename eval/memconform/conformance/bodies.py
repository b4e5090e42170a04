"""Bodies of requests: texts, bytes, generated ones, and generators inside JSON. Pure."""

import base64
import json
import random
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from memconform.conformance.variables import filled

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


def content(given: Any) -> bytes:  # noqa: ANN401 - a YAML value
    """The bytes of a text, or of a mapping with one of text, base64 and size."""
    if isinstance(given, str):
        return given.encode("utf-8", "surrogatepass")
    return Content.model_validate(given).encoded()


GENERATORS = ("$base64", "$repeat", "$list", "$nested", "$merge", "$concat", "$text")


def built(value: Any, variables: dict[str, Any]) -> Any:  # noqa: ANN401 - any YAML value
    """A JSON value with variables filled in and generators run.

    `{$base64: content}` is content in base64; `{$repeat: {text, times}}` a text over and over;
    `{$list: {times, item}}` an array whose items see `${index}`; `{$nested: {levels}}` arrays in
    one another; `{$merge: [objects]}` one object, later keys winning; `{$concat: [arrays]}` one array;
    `{$text: [texts]}` one text.
    """
    if isinstance(value, dict) and len(value) == 1:
        ((key, argument),) = value.items()
        if key == "$list":
            return [
                built(argument["item"], {**variables, "index": n})
                for n in range(filled(argument["times"], variables))
            ]
        if key == "$merge":
            parts = built(argument, variables)
            return {name: each for part in parts for name, each in part.items()}
        if key == "$concat":
            return [each for part in built(argument, variables) for each in part]
        if key == "$text":
            return "".join(str(part) for part in built(argument, variables))
        if key in GENERATORS:
            return _generated(key, built(argument, variables))
    if isinstance(value, dict):
        return {filled(key, variables): built(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [built(each, variables) for each in value]
    return filled(value, variables)


def _generated(key: str, argument: Any) -> Any:  # noqa: ANN401 - any JSON value
    if key == "$base64":
        return base64.b64encode(content(argument)).decode()
    if key == "$repeat":
        return argument["text"] * argument["times"] + argument.get("end", "")
    nested: Any = argument.get("inside", [])
    for _ in range(argument["levels"]):
        nested = [nested]
    return nested


def as_json(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
