"""Connects to a daemon that is already running (`url:…`, or `[serve] url` of an sdk.toml)."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

import httpx

from memconform.contract.dialect import Dialect
from memconform.daemons.dialects import read_dialect
from memconform.daemons.manifest import Manifest, Ready, Seed
from memconform.daemons.process import DaemonProcess
from memconform.daemons.resources import Resources
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.errors import DaemonError, UsageError, nearest
from memconform.redaction import hide
from memconform.tls import tls_context


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
            raise _bad_url(f"url:{url} is not a valid daemon address")
        for secret in _credentials(parts.netloc):
            hide(secret)
        self.url = url.rstrip("/")
        self.name = re.sub(r"[^a-z0-9]+", "-", f"url-{parts.netloc.rpartition('@')[2]}".lower())
        self._ready: Ready | None = None

    @classmethod
    def of_reference(cls, reference: str) -> Self:
        """Read `ADDRESS` or `ADDRESS,dialect=NAME`, what follows `url:` on a command line.

        Raises:
            UsageError: `bad_url`, or `bad_dialect` for a dialect that cannot be used.
        """
        address, comma, setting = reference.partition(",")
        runner = cls(address)
        key, _, value = setting.partition("=")
        if comma and key != "dialect":
            near = nearest(key, ["dialect"])
            raise _bad_url(f"url:{address},{setting}: unknown key {key!r}; {near}".rstrip("; "))
        if comma:
            runner.dialect = read_dialect(value)
            runner.seed = Seed(via=runner.dialect.seed_via)
        return runner

    @classmethod
    def of_manifest(cls, manifest: Manifest, folder: Path) -> Self:
        """The daemon at `[serve] url` of an sdk.toml in `folder`; raises UsageError `bad_url`."""
        runner = cls(manifest.serve.url or "")
        runner.describe(manifest, folder)
        runner._ready = manifest.ready
        return runner

    def _health(self) -> tuple[str, str, int]:
        """Method, path and status of what shows that the daemon is healthy."""
        if self._ready is not None and "path" in self._ready.model_fields_set:
            return "GET", self._ready.path, 200
        dialect = self.dialect or Dialect()
        method, _, path = str(dialect.routes.get("health", "GET /healthz")).partition(" ")
        return method, path, dialect.statuses.get("health", 200)

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator[RunningDaemon]:
        """Yield the daemon if it is healthy.

        Raises:
            DaemonError: `daemon_unreachable` or `daemon_unhealthy`.
        """
        del launch
        method, path, status = self._health()
        try:
            async with httpx.AsyncClient(
                trust_env=False, timeout=5, verify=tls_context(self.url)
            ) as http:
                answer = await http.request(method, f"{self.url}{path}")
        except httpx.HTTPError as error:
            raise DaemonError(
                f"{self.url}{path}: {type(error).__name__}: {error}",
                code="daemon_unreachable",
                hint="check that the daemon is running and that the address is correct",
            ) from error
        if answer.status_code != status:
            raise DaemonError(
                f"{self.url}{path} answered {answer.status_code}",
                code="daemon_unhealthy",
                hint=f"wait until {path} answers {status}, or name the daemon's own route in"
                " [dialect.routes] health",
                excerpt=answer.text[:500],
            )
        yield RunningDaemon(self.url)


def _bad_url(message: str) -> UsageError:
    return UsageError(
        message,
        code="bad_url",
        hint="write url:http://127.0.0.1:PORT, or url:http://127.0.0.1:PORT,dialect=NAME",
    )
