"""What the contract permits a daemon to answer to one request. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from memconform.contract.problem import MEDIA_TYPE, STATUS

JSON: Final = "application/json"
NO_STORE: Final = {"cache-control": frozenset({"no-store"})}


class Anything:
    """Stands for a value that the contract leaves open."""

    def __repr__(self) -> str:
        return "(anything)"


ANYTHING: Final = Anything()


@dataclass(frozen=True, slots=True)
class Omittable:
    """A value that may also be missing; of two equal meanings, such as `{}` and no key."""

    value: Any


@dataclass(frozen=True, slots=True)
class Exactly:
    """An object that must not have other keys."""

    value: Any


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a request must be rejected."""

    status: int
    rule: str
    names: tuple[str, ...] = ()
    """Texts of which `detail` must contain one; empty if it may be anything."""


def invalid(rule: str, *names: str) -> Rejection:
    """A rejection with 400."""
    return Rejection(400, rule, names)


def nothing() -> None:
    """The effect of a request that changes nothing."""


@dataclass(frozen=True, slots=True)
class Option:
    """One permitted response, and what it does to the brain."""

    status: int
    rule: str
    """The rule that requires it."""
    media: str | None = JSON
    """None: not compared."""
    body: Any = ANYTHING
    """JSON with `ANYTHING` and `Omittable`; bytes; for a stream, a list of `[name, data, id]`."""
    headers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Headers that must have at least these words."""
    detail: tuple[str, ...] = ()
    """Texts of which the problem's `detail` must contain one."""
    apply: Callable[[], None] = nothing


@dataclass(frozen=True, slots=True)
class Prediction:
    """All responses that the contract permits, the most likely one first."""

    options: tuple[Option, ...]

    def option_for(self, status: int | None) -> Option:
        """The option with this status; the first one if there is none."""
        return next((o for o in self.options if o.status == status), self.options[0])


_ORDER: Final = {400: 0, 413: 1}

_CODES = {status: code for code, status in STATUS.items()}


def problem(rejection: Rejection, headers: Mapping[str, frozenset[str]] | None = None) -> Option:
    """The response that a rejection requires (wire.problem)."""
    body = {"status": rejection.status, "code": _CODES[rejection.status]}
    return Option(
        rejection.status, rejection.rule, MEDIA_TYPE, body, headers or {}, rejection.names
    )


def rejected(
    rejections: list[Rejection], headers: Mapping[str, frozenset[str]] | None = None
) -> Prediction:
    """Permit the rejection that decides (wire.order); robust.large may decide at any point.

    Args:
        rejections: Everything that is wrong with a request; of the parts of a batch in their order.
        headers: Headers that the response must have.
    """
    first = min(rejections, key=lambda reason: _ORDER.get(reason.status, len(_ORDER)))
    same = [reason for reason in rejections if reason.status == first.status]
    # The first part of a batch must be named, unless what is wrong is outside of all of them.
    names = first.names if all(reason.names for reason in same) else ()
    large = [reason for reason in rejections if reason.rule == "robust.large" != first.rule]
    decisive = [replace(first, names=names), *large]
    return Prediction(tuple(problem(reason, headers) for reason in decisive))
