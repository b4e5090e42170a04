"""Connects to a daemon that is already running (`url:…`)."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import unquote, urlsplit

import httpx

from memconform.daemons.process import DaemonProcess
from memconform.daemons.resources import Resources
from memconform.daemons.runner import Launch, SdkRunner
from memconform.errors import DaemonError, UsageError
from memconform.redaction import hide


class RunningDaemon:
    """A daemon that the harness did not start."""

    ready_ms: float | None = None
    process: DaemonProcess | None = None

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url

    async def wait_exit(self) -> str:
        """Never returns: the daemon is not our child, so only its answers show that it is gone."""
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never

    def log_tail(self) -> str:
        return ""

    def resources(self) -> Resources | None:
        return None


def _credentials(netloc: str) -> list[str]:
    """The secret parts of `user:password@host`, in every form in which they may appear."""
    userinfo, at, _ = netloc.rpartition("@")
    if not at:
        return []
    plain = unquote(userinfo)
    basic = base64.b64encode(plain.encode()).decode()
    return [basic, userinfo, plain, *userinfo.split(":"), *plain.split(":")]


class UrlRunner(SdkRunner):
    """Serves a daemon that the user started."""

    managed = False

    def __init__(self, url: str) -> None:
        """Raise UsageError `bad_url` unless `url` is http(s)://host[:port]."""
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname)
            # Reading the port validates it.
            usable = usable and parts.port != 0 and url.isascii() and url.isprintable()
        except ValueError:
            usable = False
        if not usable:
            raise UsageError(
                f"url:{url} is not a valid daemon address",
                code="bad_url",
                hint="write url:http://127.0.0.1:PORT",
            )
        for secret in _credentials(parts.netloc):
            hide(secret)
        self.url = url.rstrip("/")
        self.name = re.sub(r"[^a-z0-9]+", "-", f"url-{parts.netloc.rpartition('@')[2]}".lower())

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[RunningDaemon]:
        """Yield the daemon if it is healthy.

        Raises:
            DaemonError: `daemon_unreachable` or `daemon_unhealthy`.
        """
        del launch
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=5) as http:
                answer = await http.get(f"{self.url}/healthz")
        except httpx.HTTPError as error:
            raise DaemonError(
                f"{self.url}/healthz: {type(error).__name__}: {error}",
                code="daemon_unreachable",
                hint="check that the daemon is running and that the address is correct",
            ) from error
        if answer.status_code != 200:
            raise DaemonError(
                f"{self.url}/healthz answered {answer.status_code}",
                code="daemon_unhealthy",
                hint="wait until /healthz answers 200",
                excerpt=answer.text[:500],
            )
        yield RunningDaemon(self.url)
