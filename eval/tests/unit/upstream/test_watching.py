"""The upstream's prompts are attributed to a question only if that is certain."""

from contextlib import aclosing
from typing import Any

import httpx

from memconform.upstream.prompt_watch import UpstreamWatch


class _Upstream:
    """An upstream's records, served as its control endpoint does."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.away = False

    def send(self, name: str, kind: str = "chat") -> None:
        number = len(self.requests) + 1
        self.requests.append({"number": number, "kind": kind, "body": {"q": name}})

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.away:
            return httpx.Response(503)
        after = int(request.url.params["after"])
        newer = [request for request in self.requests if request["number"] > after]
        return httpx.Response(200, json={"dropped": 0, "requests": newer})


def _watch(upstream: _Upstream) -> UpstreamWatch:
    return UpstreamWatch("http://127.0.0.1", httpx.MockTransport(upstream))


async def test_each_question_has_its_own_prompts() -> None:
    upstream = _Upstream()
    async with aclosing(_watch(upstream)) as watch:
        assert await watch.prompts() == []
        upstream.send("1", "embeddings")
        upstream.send("1")
        assert await watch.prompts() == [{"q": "1"}]
        assert await watch.prompts() == []
        upstream.send("2")
        upstream.send("2 again")
        assert await watch.prompts() == [{"q": "2"}, {"q": "2 again"}]


async def test_prompts_after_a_missed_read_are_not_attributed_to_the_next_question() -> None:
    upstream = _Upstream()
    async with aclosing(_watch(upstream)) as watch:
        upstream.send("1")
        upstream.away = True
        assert await watch.prompts() is None
        upstream.away = False
        upstream.send("2")
        assert await watch.prompts() is None
        upstream.send("3")
        assert await watch.prompts() == [{"q": "3"}]


async def test_late_prompts_of_an_abandoned_call_are_not_attributed_to_the_next_question() -> None:
    upstream = _Upstream()
    async with aclosing(_watch(upstream)) as watch:
        watch.doubt()
        upstream.send("1, late")
        upstream.send("2")
        assert await watch.prompts() is None
        upstream.send("1, again")
        assert await watch.prompts() is None
        upstream.send("4")
        assert await watch.prompts() == [{"q": "4"}]


async def test_record_with_a_gap_is_not_attributed() -> None:
    upstream = _Upstream()
    async with aclosing(_watch(upstream)) as watch:
        upstream.send("1")
        upstream.send("2")
        del upstream.requests[0]
        assert await watch.prompts() is None
