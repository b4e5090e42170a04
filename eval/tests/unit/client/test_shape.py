"""The shape of an answer does not depend on what it says."""

import httpx

from memconform.client.recorder import Exchange
from memconform.client.response_shape import shape


def _exchange(
    body: str, content_type: str = "application/json", *more: tuple[str, str]
) -> Exchange:
    exchange = Exchange(httpx.Request("POST", "http://127.0.0.1/v1/brains/b/search"))
    exchange.status_line = "HTTP/1.1 200 OK"
    exchange.response_headers = [("Content-Type", content_type), ("Date", "now"), *more]
    exchange.body += body.encode()
    return exchange


def test_content_does_not_affect_the_shape() -> None:
    one = shape(_exchange('{"chunks": [{"score": 1, "metadata": {"a": 1}}]}'))
    other = shape(
        _exchange('{"chunks": [{"score": 0.5, "metadata": {}}, {"score": 2, "metadata": {}}]}')
    )
    assert one == other
    assert one is not None
    assert "$.chunks[].score: number" in one


def test_keys_types_headers_and_status_affect_the_shape() -> None:
    good = shape(_exchange('{"a": 1}'))
    for other in (
        _exchange('{"b": 1}'),
        _exchange('{"a": "1"}'),
        _exchange('{"a": null}'),
        _exchange('{"a": true}'),
        _exchange('{"a": 1}', "application/problem+json"),
        _exchange('{"a": 1}', "application/json", ("X-Extra", "1")),
    ):
        assert shape(other) != good


def _stream(*events: tuple[str, str]) -> Exchange:
    body = "".join(f"event: {name}\ndata: {data}\n\n" for name, data in events)
    return _exchange(body, "text/event-stream")


def test_order_of_events_affects_the_shape_and_their_number_does_not() -> None:
    retrieve, delta, done = ("retrieve", "{}"), ("answer_delta", '{"text": "a"}'), ("done", "{}")
    one, more = shape(_stream(retrieve, delta, done)), shape(_stream(retrieve, delta, delta, done))
    assert one == more
    assert shape(_stream(delta, retrieve, done)) != one


def test_incomplete_answer_has_no_shape() -> None:
    cut = _exchange('{"a": 1}')
    cut.truncated = True
    assert shape(cut) is None
    assert shape(_exchange("no JSON")) is None
