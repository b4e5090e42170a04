"""Waits until a started daemon is healthy, and provably the one that was started."""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass

import httpx
from pydantic import ValidationError

from memconform.contract.core import Health, Version
from memconform.daemons.manifest import Ready
from memconform.daemons.ports import listener_name, listens
from memconform.daemons.process import OUTPUT_BYTES, DaemonProcess
from memconform.daemons.runner import Launch
from memconform.errors import DaemonError

_POLL_SECONDS = 0.02
_ANNOUNCEMENT_BYTES = 512
"""Longer than any announcement, so that one split across two reads is found."""
_ANNOUNCED = re.compile(rb"listening on https?://\S*:(\d{1,5})/?\s")
_BODY_CHARACTERS = 200
"""Characters shown of an answer that is not healthy: enough for the detail of a problem."""


@dataclass(slots=True)
class _Readiness:
    """What is known about a daemon that is not ready yet."""

    text: str = "no 'listening on http://host:port' line was printed"


async def await_ready(
    process: DaemonProcess, launch: Launch, port: int, *, name: str, ready: Ready
) -> int:
    """Wait until the daemon is healthy and provably ours; returns its port.

    Args:
        process: that was started.
        launch: with which it was started.
        port: on which it serves; 0 if it announces one.
        name: of the SDK, for messages.
        ready: path and timeout.

    Raises:
        DaemonError: `daemon_exited`, `daemon_not_ready` or `daemon_not_ours`.
    """
    exiting = asyncio.ensure_future(process.wait())
    state = _Readiness()
    polling = asyncio.ensure_future(_poll(process, launch, port, state, name=name, path=ready.path))
    try:
        await asyncio.wait(
            {exiting, polling}, timeout=ready.timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        if polling.done():
            return polling.result()
        if exiting.done():
            reason, code = f"ended before it was ready: {exiting.result()}", "daemon_exited"
        else:
            reason = f"did not become healthy within {ready.timeout_s:g} s: {state.text}"
            code = "daemon_not_ready"
        raise DaemonError(
            f"{name} {reason}",
            code=code,
            hint=f"its full output is in {process.log}",
            excerpt=process.tail(),
        )
    finally:
        exiting.cancel()
        polling.cancel()
        await asyncio.gather(exiting, polling, return_exceptions=True)


async def _poll(
    process: DaemonProcess, launch: Launch, port: int, state: _Readiness, *, name: str, path: str
) -> int:
    """Wait for the announced port and a healthy answer; returns the port.

    `state` is updated with every attempt.
    """
    position, window = 0, b""
    while not port:
        new = process.output(position)
        position += len(new)
        window = window[-_ANNOUNCEMENT_BYTES:] + new
        port = _announced_port(window)
        if not port:
            # Do not sleep while more is pending, or a chatty daemon stays ahead.
            await asyncio.sleep(0 if len(new) >= OUTPUT_BYTES else _POLL_SECONDS)
    base_url = f"http://{bracketed(launch.reachable_host)}:{port}"
    state.text = f"no answer of {base_url}{path}"
    # Without TLS there is nothing to verify, and loading the certificates takes 25 ms.
    async with httpx.AsyncClient(
        base_url=base_url,
        trust_env=False,
        timeout=2,
        verify=False,  # noqa: S501 - as above
    ) as http:
        while True:
            try:
                answer = await http.get(path)
                body = " ".join(answer.text.split())[:_BODY_CHARACTERS]
                state.text = f"last answer of {path}: {answer.status_code} {body}".rstrip()
                if answer.status_code == 200 and not _denies_health(answer):
                    await _require_own_process(http, process, launch, port, name=name)
                    return port
            except httpx.HTTPError as error:
                state.text = f"no answer of {base_url}{path}: {type(error).__name__} {error}"
            await asyncio.sleep(_POLL_SECONDS)


async def _require_own_process(
    http: httpx.AsyncClient, process: DaemonProcess, launch: Launch, port: int, *, name: str
) -> None:
    """Raise DaemonError `daemon_not_ours` if the healthy answer came from another process."""
    if listens(process.pid, port):
        return
    with suppress(httpx.HTTPError, ValidationError):
        version = Version.model_validate_json((await http.get("/version")).content)
        if version.run_id == launch.run_id:
            return
    raise DaemonError(
        f"port {port} is served by {listener_name(port)}, not by the {name} daemon",
        code="daemon_not_ours",
        hint="choose another --port, or 0 for any free one",
        excerpt=process.tail(),
    )


def _denies_health(answer: httpx.Response) -> bool:
    """Whether the body says `ok: false`; a custom readiness path may answer anything else."""
    try:
        return Health.model_validate_json(answer.content).ok is False
    except ValidationError:
        return False


def _announced_port(output: bytes) -> int:
    """The port that the daemon announced; 0 if it has announced no valid port yet."""
    match = _ANNOUNCED.search(output)
    port = int(match[1]) if match else 0
    return port if port <= 65535 else 0


def bracketed(host: str) -> str:
    """A host as it stands in an address: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host
