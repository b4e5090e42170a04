"""A brain, and changes to it that happen only if they are acknowledged."""

from collections.abc import Callable
from dataclasses import replace

from memconform.oracle.predictions import Option, Prediction, rejected
from memconform.oracle.store import Documents, RejectedError


class Brain:
    """A brain's description and documents."""

    def __init__(self, description: str | None = None) -> None:
        self.description = description
        self.documents = Documents()


def empty(rule: str) -> Option:
    """Success without a body."""
    return Option(204, rule, media=None, body=b"")


def changed(brain: Brain, change: Callable[[Documents], None], done: Option) -> Prediction:
    """Try a change on a copy; the brain gets it when the response is `done`."""
    copy = brain.documents.copy()
    try:
        change(copy)
    except RejectedError as error:
        return rejected([error.rejection])

    def commit() -> None:
        brain.documents = copy

    return Prediction((replace(done, apply=commit),))
