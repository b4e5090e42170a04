"""Reads which prompts a daemon sent to the scripted upstream while it answered a question."""

from typing import Any

import httpx

from memconform.tls import tls_context

_CHAT = "chat"
_COUNTS_SECONDS = 5


async def read_counts(
    base_url: str, transport: httpx.AsyncBaseTransport | None = None
) -> dict[str, int | str] | None:
    """Read how many requests have reached the upstream; None if it does not say."""
    try:
        async with httpx.AsyncClient(
            base_url=base_url,
            trust_env=False,
            timeout=_COUNTS_SECONDS,
            verify=tls_context(base_url),
            transport=transport,
        ) as http:
            answer = await http.get("/_control/counts")
            counts: dict[str, int | str] = answer.raise_for_status().json()
    except (httpx.HTTPError, ValueError):
        return None
    return counts


class UpstreamWatch:
    """Reads the upstream's new records after each question; valid for one question at a time.

    Use with `contextlib.aclosing`.
    """

    def __init__(self, base_url: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._http = httpx.AsyncClient(
            base_url=base_url,
            trust_env=False,
            timeout=10,
            verify=tls_context(base_url),
            transport=transport,
        )
        self._last_number = 0
        self._doubtful = 0
        """How many of the next results cannot be attributed to their question."""

    async def aclose(self) -> None:
        await self._http.aclose()

    def doubt(self) -> None:
        """Report an abandoned call: its late requests could be attributed to the next two."""
        self._doubtful = 2

    async def prompts(self) -> list[dict[str, Any]] | None:
        """The bodies of chat requests since the last call; None if their origin is uncertain.

        It is uncertain after `doubt` or a failed read, and if the upstream has died or dropped
        records.
        """
        try:
            answer = await self._http.get("/_control/requests", params={"after": self._last_number})
            requests: list[dict[str, Any]] = answer.raise_for_status().json()["requests"]
        except (httpx.HTTPError, ValueError):
            self._doubtful = max(self._doubtful, 1)
            return None
        is_doubtful, self._doubtful = self._doubtful > 0, max(0, self._doubtful - 1)
        complete = not requests or requests[0]["number"] == self._last_number + 1
        self._last_number = requests[-1]["number"] if requests else self._last_number
        if is_doubtful or not complete:
            return None
        return [request["body"] for request in requests if request["kind"] == _CHAT]
