"""Waits until a started daemon is healthy, and provably the one that was started."""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass

import httpx
from pydantic import ValidationError

from memconform.contract.core import Health, Version
from memconform.daemons.manifest import Ready
from memconform.daemons.ports import (
    LOOPBACK,
    Address,
    listener_name,
    listens,
    loopback_addresses,
)
from memconform.daemons.process import OUTPUT_BYTES, DaemonProcess
from memconform.daemons.sdk_runner import Launch
from memconform.errors import DaemonError

_POLL_SECONDS = 0.02
_ANNOUNCEMENT_BYTES = 512
"""Longer than any announcement, so that one split across two reads is found."""
_ANNOUNCED = re.compile(rb"listening on https?://(\S*):(\d{1,5})/?\s")
_LARGEST_PORT = 65_535
_BODY_CHARACTERS = 200
"""Characters shown of an answer that is not healthy: enough for the detail of a problem."""


@dataclass(slots=True)
class _Readiness:
    """What is known about a daemon that is not ready yet."""

    text: str = "no 'listening on http://host:port' line was printed"


async def await_ready(
    process: DaemonProcess, launch: Launch, port: int, *, name: str, ready: Ready
) -> Address:
    """Wait until the daemon is healthy and provably ours; returns its address.

    Args:
        process: that was started.
        launch: with which it was started.
        port: on which it serves; 0 if it announces one.
        name: of the SDK, for messages.
        ready: path and timeout.

    Raises:
        DaemonError: `daemon_exited`, `daemon_not_ready`, `daemon_not_ours` or
            `daemon_not_loopback`.
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
) -> Address:
    """Wait for the announced port and a healthy answer; returns the address.

    `state` is updated with every attempt.
    """
    announcement = _Announcement(process)
    while not port and announcement.port is None:
        is_behind = announcement.read()
        # Do not sleep while more is pending, or a chatty daemon stays ahead.
        await asyncio.sleep(0 if is_behind else _POLL_SECONDS)
    # Without TLS there is nothing to verify, and loading the certificates takes 25 ms.
    async with httpx.AsyncClient(
        trust_env=False,
        timeout=2,
        verify=False,  # noqa: S501 - as above
    ) as http:
        hosts = await _hosts(announcement, launch, port, process, name=name)
        while True:
            if announcement.port is None:
                announcement.read()
                hosts = await _hosts(announcement, launch, port, process, name=name)
            for host in hosts:
                address = Address(host, port or announcement.port or 0)
                text = f"no answer of {address.url}{path}"
                try:
                    answer = await http.get(f"{address.url}{path}")
                    body = " ".join(answer.text.split())[:_BODY_CHARACTERS]
                    text = f"last answer of {path}: {answer.status_code} {body}".rstrip()
                    if answer.status_code == 200 and not _denies_health(answer):
                        if host != hosts[0] and not listens(process.pid, host, address.port):
                            continue
                        await _require_own_process(http, process, launch, address, name=name)
                        return address
                except httpx.HTTPError as error:
                    text = f"{text}: {type(error).__name__} {error}"
                if host == hosts[0]:
                    state.text = text
            await asyncio.sleep(_POLL_SECONDS)


class _Announcement:
    """Looks for `listening on http://host:port` in the output of a process."""

    def __init__(self, process: DaemonProcess) -> None:
        self._process = process
        self._position, self._window = 0, b""
        self.host = ""
        self.port: int | None = None

    def read(self) -> bool:
        """Read new output, until the announcement is found; returns whether more is pending."""
        if self.port is not None:
            return False
        new = self._process.output(self._position)
        self._position += len(new)
        self._window = self._window[-_ANNOUNCEMENT_BYTES:] + new
        match = _ANNOUNCED.search(self._window)
        if match and 0 < int(match[2]) <= _LARGEST_PORT:
            self.host, self.port = match[1].decode("utf-8", "replace"), int(match[2])
        return len(new) >= OUTPUT_BYTES


async def _hosts(
    announcement: _Announcement, launch: Launch, port: int, process: DaemonProcess, *, name: str
) -> list[str]:
    """Where to expect the daemon: at the announced host, else at the one that it was given.

    A daemon that is given its `port` may announce another one, such as that of a proxy. If it
    announces none, it may have its own idea of `localhost`, which Node takes for ::1.

    Raises:
        DaemonError: `daemon_not_loopback` if the host of an announced port is not a loopback host.
    """
    given = launch.reachable_host
    is_its_own = announcement.port is not None and port in (0, announcement.port)
    if not is_its_own or not announcement.host:
        others = [host for host in LOOPBACK if given in LOOPBACK and host != given]
        return [given, *others]
    hosts = await asyncio.to_thread(loopback_addresses, announcement.host)
    if hosts or port:
        return hosts or [given]
    raise DaemonError(
        f"{name} announced http://{announcement.host}:{announcement.port}, and"
        f" {announcement.host} is not the address or the name of a loopback interface",
        code="daemon_not_loopback",
        hint="have it listen on {host} or {addr} of [serve] argv, and announce the address on which"
        " it listens; a daemon on another machine is measured with --sdk url:ADDRESS",
        excerpt=process.tail(),
    )


async def _require_own_process(
    http: httpx.AsyncClient, process: DaemonProcess, launch: Launch, address: Address, *, name: str
) -> None:
    """Raise DaemonError `daemon_not_ours` if the healthy answer came from another process."""
    if listens(process.pid, address.host, address.port):
        return
    with suppress(httpx.HTTPError, ValidationError):
        version = Version.model_validate_json((await http.get(f"{address.url}/version")).content)
        if version.run_id == launch.run_id:
            return
    raise DaemonError(
        f"port {address.port} is served by {listener_name(address.port)}, not by the {name} daemon",
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
