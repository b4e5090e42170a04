"""A scripted daemon that is well until it is loaded: it misbehaves when a question comes again.

    python -m tests.fakes.under_load --addr HOST:PORT --fault NAME

`load` searches for each question twice before it sends its requests; the third search is the first
of the load. The faults: `other_ranking` finds less, `loses_document` deletes a document, `dies`
ends the process, `one_at_a_time` answers at most five searches a second, `drops_writes`
acknowledges documents from the third on and stores none of them.
"""

import argparse
import asyncio
import os
import signal
from collections import Counter
from typing import Any

from memconform.bench.raw_http import RawExchange, serve_forever
from tests.fakes.scripted import ScriptedBrain, ScriptedDaemon

_CALM_SEARCHES = 2
_CALM_WRITES = 2
_SEARCH_SECONDS = 0.2


class DaemonUnderLoad(ScriptedDaemon):
    """Answers like its base, with a fault under load."""

    def __init__(self, fault: str) -> None:
        super().__init__("", "", None)
        self._breaks = fault
        self._searches: Counter[str] = Counter()
        self._writes = 0
        self._one = asyncio.Lock()

    async def _search(
        self, brain: ScriptedBrain, body: dict[str, Any], exchange: RawExchange
    ) -> None:
        if "filters" not in body:
            self._searches[body["query"]] += 1
        if self._searches[body["query"]] <= _CALM_SEARCHES or "filters" in body:
            await super()._search(brain, body, exchange)
            return
        if self._breaks == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._breaks == "loses_document":
            brain.documents.popitem()
        if self._breaks == "one_at_a_time":
            async with self._one:
                await asyncio.sleep(_SEARCH_SECONDS)  # short limit: it may take any time
        answer = self._retrieve(brain, body["query"], body)
        if self._breaks == "other_ranking":
            answer["chunks"] = answer["chunks"][:1]
        await exchange.json(answer)

    def _ingest(self, brain: ScriptedBrain, body: dict[str, Any]) -> dict[str, Any]:
        answer = super()._ingest(brain, body)
        if self._breaks == "drops_writes" and body["path"].startswith("load/"):
            self._writes += 1
            if self._writes > _CALM_WRITES:
                del brain.documents[body["path"]]
        return answer


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--addr", required=True)
    parser.add_argument("--fault", default="")
    arguments = parser.parse_args()
    host, _, port = arguments.addr.rpartition(":")
    await serve_forever(DaemonUnderLoad(arguments.fault).answer, host, int(port))


if __name__ == "__main__":
    asyncio.run(_main())
