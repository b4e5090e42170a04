"""Reads a body or an event of a daemon: its failure, its shape, and what is forgiven."""

import json
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from memconform.contract.ask import StreamError
from memconform.contract.core import Ranked
from memconform.contract.dialect import Dialect
from memconform.contract.dialect_keys import DialectError
from memconform.contract.dialect_objects import loosened
from memconform.contract.reported_failure import failure_in
from memconform.contract.strict_json import require_unique_keys

M = TypeVar("M", bound=BaseModel)


def read_message(content: bytes, model: type[M], dialect: Dialect | None = None) -> M:
    """Read a message of type `model` that reports no failure.

    A daemon was seen to answer `chunks: null` where nothing is found. That violates
    core.search.shape, which conform reports, but leaves no doubt about the ranking: it is read as
    an empty one, and `was_null` says so.

    Raises:
        RepeatedKeyError: if an object has a key twice.
        DialectError: `reported_error` if the message reports a failure, `bad_body` if the dialect
            cannot translate it.
        pydantic.ValidationError: if it does not fit the model.
    """
    if dialect is not None:
        translated = json.dumps(dialect.as_contract(content, model)).encode()
        loose: type[M] = loosened(model)
        return _validated(translated, loose)
    require_unique_keys(content)
    # An event that reports an error is one by its name.
    if model is not StreamError and (failure := failure_in(content, model)) is not None:
        raise DialectError("reported_error", f"the answer reports a failure: {failure}")
    return _validated(content, model)


def _validated(content: bytes, model: type[M]) -> M:
    try:
        return model.model_validate_json(content)
    except ValidationError:
        if not issubclass(model, Ranked):
            raise
        value = _parsed(content)
        if not isinstance(value, dict) or value.get("chunks", "missing") is not None:
            raise
    answer = model.model_validate_json(json.dumps(value | {"chunks": []}))
    return answer.marked_null()


def _parsed(content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
