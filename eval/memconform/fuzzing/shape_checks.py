"""Checks what is not compared: the shapes of responses, times, and the names in `detail`. Pure."""

from collections.abc import Sequence

from pydantic import BaseModel, ValidationError

from memconform.conformance.matchers import is_rfc3339
from memconform.contract.ask import EVENTS
from memconform.contract.documents import Listing, Stat
from memconform.contract.events import PLAIN_EVENTS, Change
from memconform.contract.problem import Problem
from memconform.fuzzing.normalized_answer import ProgramAnswer, events
from memconform.fuzzing.programs import route
from memconform.validation_faults import first_fault


def response_fault(name: str, answer: ProgramAnswer, detail: Sequence[str]) -> str:
    """Return what is wrong with a response whose status is permitted; empty if nothing is.

    Args:
        name: The route.
        answer: The response.
        detail: Texts of which the problem's `detail` must contain one; empty if it is free.
    """
    if answer.status is None or not answer.content:
        return ""
    if answer.status >= 400:
        return _problem_fault(answer.content, detail)
    target = route(name)
    if target.stream:
        return event_fault(answer.content)
    return "" if target.answer is None else _fault(target.answer, answer.content)


def event_fault(content: bytes) -> str:
    """Return what is wrong with the data of a stream's events; empty if nothing is."""
    models: dict[str, type[BaseModel]] = {**EVENTS, "change": Change}
    for name, data, _ in events(content, decoded=False):
        if name in PLAIN_EVENTS:
            continue
        model = models.get(name)
        if model is None or not isinstance(data, str):
            return f"event {name}: not in the contract"
        if fault := _fault(model, data.encode()):
            return f"event {name}: {fault}"
    return ""


def _fault(model: type[BaseModel], content: bytes) -> str:
    try:
        value = model.model_validate_json(content)
    except ValidationError as error:
        return first_fault(error)
    times = {
        "when": [value.when] if isinstance(value, Change) else [],
        "mtime": [item.mtime for item in _items(value)],
    }
    for key, texts in times.items():
        for text in texts:
            if not is_rfc3339(text):
                return f"{key}: {text!r} is not an RFC 3339 date-time"
    return ""


def _items(value: BaseModel) -> Sequence[Stat]:
    if isinstance(value, Listing):
        return value.items
    return [value] if isinstance(value, Stat) else []


def _problem_fault(content: bytes, detail: Sequence[str]) -> str:
    try:
        problem = Problem.model_validate_json(content)
    except ValidationError as error:
        return first_fault(error)
    if detail and not any(name in problem.detail for name in detail):
        return f"detail: does not name {detail[0]}"
    return ""
