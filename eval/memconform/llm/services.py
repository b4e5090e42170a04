"""Checks of the model services that the environment names, for `doctor`."""

from collections.abc import Mapping
from dataclasses import dataclass

from memconform.errors import MemconformError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCheck:
    """One service: its settings on one line, and what is wrong with them or with it."""

    provider: str
    detail: str = ""
    """Address, proxy, certificates, timeouts and the name of the key's variable; no secret."""
    error: MemconformError | None = None
    """A UsageError (exit 2) names the variable of a bad setting."""


async def model_checks(
    env: Mapping[str, str], headers: Mapping[str, str] | None = None, *, reach: bool = True
) -> list[ModelCheck]:
    """Check every service whose variables are set, and the scripted one.

    Args:
        env: the environment.
        headers: of --judge-header.
        reach: whether each service is asked for its list of models, which costs nothing.
    """
    raise NotImplementedError
