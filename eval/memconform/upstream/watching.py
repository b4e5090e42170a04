"""What a daemon sends to the scripted upstream while a question is answered."""

from types import TracebackType
from typing import Any, Self

import httpx

_CHAT = "chat"


class UpstreamWatch:
    """Reads the upstream's record from where it was read last; for one question at a time."""

    def __init__(self, base_url: str) -> None:
        self._http = httpx.AsyncClient(base_url=base_url, trust_env=False, timeout=10)
        self._seen = 0
        self._sure = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    def doubt(self) -> None:
        """A call was given up: what it still sends would look like the next one's."""
        self._sure = False

    async def prompts(self) -> list[dict[str, Any]] | None:
        """The bodies of chat requests since the last call; None where the upstream does not tell.

        It does not where it has died, or has forgotten what came; nor after `doubt`.
        """
        sure, self._sure = self._sure, True
        try:
            answer = await self._http.get("/_control/requests", params={"after": self._seen})
            record = answer.raise_for_status().json()
        except (httpx.HTTPError, ValueError):
            return None
        requests: list[dict[str, Any]] = record["requests"]
        if not requests:
            return [] if sure else None
        complete = sure and requests[0]["number"] == self._seen + 1
        self._seen = requests[-1]["number"]
        return [r["body"] for r in requests if r["kind"] == _CHAT] if complete else None
