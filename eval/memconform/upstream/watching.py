"""What a daemon sends to the scripted upstream while a question is answered."""

from typing import Any

import httpx

_CHAT = "chat"


class UpstreamWatch:
    """Reads the upstream's record from where it was read last; for one question at a time.

    Use inside `contextlib.aclosing`.
    """

    def __init__(self, base_url: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._http = httpx.AsyncClient(
            base_url=base_url, trust_env=False, timeout=10, transport=transport
        )
        self._seen = 0
        self._unsure = 0
        """So many answers to come are not to be trusted."""

    async def aclose(self) -> None:
        await self._http.aclose()

    def doubt(self) -> None:
        """A call was given up: what it still sends would look like that of the next two."""
        self._unsure = 2

    async def prompts(self) -> list[dict[str, Any]] | None:
        """The bodies of chat requests since the last call; None where it is unknown whose they are.

        That is after a `doubt` or an answer that was missed, and where the upstream has died or has
        forgotten what came.
        """
        try:
            answer = await self._http.get("/_control/requests", params={"after": self._seen})
            requests: list[dict[str, Any]] = answer.raise_for_status().json()["requests"]
        except (httpx.HTTPError, ValueError):
            self._unsure = max(self._unsure, 1)
            return None
        unsure, self._unsure = self._unsure, max(0, self._unsure - 1)
        complete = not requests or requests[0]["number"] == self._seen + 1
        self._seen = requests[-1]["number"] if requests else self._seen
        if unsure or not complete:
            return None
        return [request["body"] for request in requests if request["kind"] == _CHAT]
