"""Checks of the model services that the environment names, for `doctor`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from memconform.errors import MemconformError
from memconform.llm.chat import ModelUnusableError, ServiceDownError
from memconform.llm.clients import http_client
from memconform.llm.http_hooks import EVENT_HOOKS, track_transmission
from memconform.llm.names import PROVIDERS, ModelName
from memconform.llm.settings import (
    Endpoint,
    endpoint,
    is_configured,
    models_address,
    service_settings,
)
from memconform.llm.unreachable import path_failure, proxy_refusal

_REACH_S = 5.0
"""Time allowed for the list of models, which services answer in less than one second."""
_REFUSED = (401, 403)
_SHOWN = 80
_ANY_MODEL = "MODEL"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCheck:
    """One service: its settings on one line, and what is wrong with them or with it."""

    provider: str
    detail: str = ""
    """Address, proxy, certificates, timeout and the name of the key's variable; no secret."""
    error: MemconformError | None = None
    """A UsageError (exit 2) names the variable of a bad setting."""


async def model_checks(env: Mapping[str, str], *, reach: bool = True) -> list[ModelCheck]:
    """Check every service whose variables are set, and the scripted one.

    Args:
        env: the environment, or that of `model_environment`.
        reach: whether each service is asked for its list of models, which costs nothing.
    """
    configured = [provider for provider in PROVIDERS if is_configured(provider, env)]
    checks = [await _check(provider, env, reach=reach) for provider in configured]
    detail = "served by memconform itself on loopback; direct; no key"
    return [*checks, ModelCheck(provider="fake", detail=detail)]


async def _check(provider: str, env: Mapping[str, str], *, reach: bool) -> ModelCheck:
    try:
        where = endpoint(ModelName(provider, _ANY_MODEL), env)
    except MemconformError as error:
        return ModelCheck(provider=provider, error=error)
    detail = service_settings(provider, where).line()
    if not reach:
        return ModelCheck(provider=provider, detail=detail)
    try:
        answer = await _reach(provider, where)
    except MemconformError as error:
        return ModelCheck(provider=provider, detail=detail, error=error)
    return ModelCheck(provider=provider, detail=f"{detail}; {answer}")


async def _reach(provider: str, where: Endpoint) -> str:
    """Ask for the list of models, by the HTTP client that calls go through.

    Raises:
        LlmError: if the service does not answer as one.
    """
    import openai  # noqa: PLC0415 - takes 0.3 s

    address, headers = models_address(where)
    http = http_client(
        openai.DefaultAsyncHttpxClient, where, timeout=_REACH_S, event_hooks=EVENT_HOOKS
    )
    with track_transmission() as transmission:
        try:
            # A body without an end would fill the memory.
            async with http, http.stream("GET", address, headers=headers) as response:
                start = b""
                async for part in response.aiter_bytes():
                    start += part
                    if len(start) > _SHOWN:
                        break
                status, complete = response.status_code, len(start) <= _SHOWN
        except Exception as error:
            # Of httpx or httpx2, whichever the library uses.
            detail = f"{type(error).__name__}: {error}".rstrip(": ")
            raise path_failure(where, error, transmission) or ServiceDownError(
                f"{where} cannot be reached: {detail}",
                code="llm_unreachable",
                hint=f"check {where.variable or 'the network'}",
            ) from error
    text = start.decode(errors="replace").strip()
    if status == 407:
        raise proxy_refusal(where, str(status))
    if status in _REFUSED or 300 <= status < 400:
        hint = f"check {where.key_variable or where.variable}"
        if status < 400:
            hint = "redirects are not followed: give the address that it leads to"
        raise ModelUnusableError(
            f"{where} answered {status}: {text[:_SHOWN]}", code="llm_unusable", hint=hint
        )
    if status >= 500:
        raise ServiceDownError(
            f"{where} answered {status}: {text[:_SHOWN]}", code="llm_down", hint="try again later"
        )
    if status < 300 and not _is_json(text, complete=complete):
        raise ModelUnusableError(
            f"{where} answered text instead of JSON: {' '.join(text.split())[:_SHOWN]!r}",
            code="llm_unusable",
            hint=f"there is no model service: check {where.variable}; many addresses end in /v1",
        )
    return f"answers {status} for {provider}'s list of models" if status >= 300 else "reached"


def _is_json(text: str, *, complete: bool) -> bool:
    if not complete:
        return text[:1] in ("{", "[")
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
