"""Validating the body of a request."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from memoryd.problem import invalid

T = TypeVar("T", bound=BaseModel)


def parse(model: type[T], raw: bytes) -> T:
    """Parse and validate a request body.

    Raises:
        Problem: `validation_error` that names the first invalid key.
    """
    try:
        # Parse first: the validator would skip invalid JSON under a key that it ignores.
        loaded = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise invalid(f"the body is not valid JSON: {error}") from None
    return validate(model, loaded)


def validate(model: type[T], raw: Any) -> T:  # noqa: ANN401 - any JSON value
    """Validate what is parsed already; raises as `parse` does."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise invalid(_describe(error)) from None


def _describe(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    location = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]
    )
    return f"{location.removeprefix('.')}: {first['msg']}" if location else first["msg"]
