"""Finds out what a daemon is configured with, so that the oracle expects the same."""

import secrets
from typing import Any

import httpx

from memconform.conformance.catalog import BRAIN_PREFIX
from memconform.contract.wire import Mode, Profile
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import DaemonError
from memconform.fuzzing.failures import FuzzTarget
from memconform.fuzzing.programs import document
from memconform.oracle.search import Providers
from memconform.tls import tls_context

_SECONDS = 60.0
_DATE = "2024-01-31"
_OPTIONAL: dict[str, Any] = {
    "kernel": "inverse-l2",
    "recency": {"now": _DATE, "relevance": 0.5, "weight": 0.5, "decayDays": 7},
    "temporal": {"at": _DATE, "toleranceDays": 7, "boost": 0.5},
}
"""Values of the tuning that only SHOULD rules define."""


def probe(runner: SdkRunner, target: FuzzTarget) -> Providers:
    """Ask a daemon which providers and optional rules it has. Blocks.

    Raises:
        DaemonError: `daemon_lost` if it does not answer, or does not create a brain.
    """
    brain = f"{BRAIN_PREFIX}probe-{secrets.token_hex(4)}"
    try:
        address = target.address
        with httpx.Client(
            base_url=address, trust_env=False, timeout=_SECONDS, verify=tls_context(address)
        ) as http:
            created = http.post("/v1/brains", json={"brainId": brain})
            if created.status_code != 201:
                raise DaemonError(
                    f"{runner.name}: POST /v1/brains: {created.status_code}",
                    code="daemon_lost",
                    hint="check it with memconform doctor",
                )
            try:
                return _providers(runner, http, f"/v1/brains/{brain}")
            finally:
                http.delete(f"/v1/brains/{brain}", headers={"X-Confirm-Delete": "yes"})
    except httpx.HTTPError as error:
        raise DaemonError(
            f"{runner.name}: no answer to the first requests: {error}",
            code="daemon_lost",
            hint="check it with memconform doctor",
        ) from error


def _providers(runner: SdkRunner, http: httpx.Client, url: str) -> Providers:
    http.post(f"{url}/ingest/file", json=document("a.md", b"A heron waits."))
    # A daemon that does not serve what it claims must not pass for one that claims nothing.
    embedder = (
        Mode.HYBRID in runner.modes
        if runner.modes is not None
        else _trace(http, url, {}).get("effectiveMode") == "hybrid"
    )
    supported = {
        key: key in (_trace(http, url, {key: value}).get("tuning") or {})
        for key, value in _OPTIONAL.items()
    }
    body = {"query": "heron", "mode": Mode.CONVERSATION}
    # One that claims nothing may offer it; one that claims it must.
    offers = runner.modes is None and http.post(f"{url}/search", json=body).status_code == 200
    supported["conversation"] = offers or Mode.CONVERSATION in (runner.modes or ())
    reader = False
    if Profile.ASK in runner.profiles:
        reader = http.post(f"{url}/ask", json={"question": "heron"}).status_code != 502
    return Providers(embedder=embedder, reader=reader, **supported)


def _trace(http: httpx.Client, url: str, tuning: dict[str, Any]) -> dict[str, Any]:
    """The trace of a hybrid search; empty if the daemon rejects it, or sends another shape."""
    body = {"query": "heron", "mode": "hybrid", "tuning": tuning}
    response = http.post(f"{url}/search", json=body)
    try:
        trace = response.json()["trace"]
    except (ValueError, KeyError, TypeError):
        return {}
    return trace if isinstance(trace, dict) else {}
