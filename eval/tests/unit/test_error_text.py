"""Error messages in the place of answers, and answers that only look like one."""

import pytest

from memconform.datasets.model import Question
from memconform.scoring.error_text import error_message, resembles_error

_QUESTION = Question(id="q", question="Where is the boat?", answers=("in berth 20",))


@pytest.mark.parametrize(
    "text",
    [
        "Error: 429 Too Many Requests",
        "Error code: 429 - {'error': {'message': 'Rate limit reached'}}",
        "HTTP/1.1 503 Service Unavailable",
        "HTTP error 500",
        "Connection error.",
        "Request timed out.",
        "All connection attempts failed",
        "429 Client Error: Too Many Requests for url: http://127.0.0.1/v1",
        "Client error '429 Too Many Requests' for url 'http://127.0.0.1/v1'",
        "Server error '500 Internal Server Error' for url 'http://127.0.0.1/v1'",
        "[Errno 111] Connection refused",
        "HTTPConnectionPool(host='127.0.0.1', port=1): Max retries exceeded",
        "API error (502)",
        "request failed: status code 429".removeprefix("request failed: "),
        "  502 Bad Gateway\n",
        'Traceback (most recent call last):\n  File "a.py", line 1',
        "openai.RateLimitError: Error code: 429",
        "APIConnectionError('Connection error.')",
        "java.net.SocketTimeoutException: Read timed out",
        '{"error": {"message": "quota", "code": 429}}',
        '{"answer": "", "error": "timed out"}',
        '{"type": "about:blank", "title": "Too Many Requests", "status": 429}',
        '{"success": false}',
        "<html>\r\n<head><title>502 Bad Gateway</title></head>",
        "<!DOCTYPE html>\n<html><head>\n<title> 504 Gateway Time-out</title>",
    ],
)
def test_an_error_message_is_no_answer(text: str) -> None:
    assert error_message(_QUESTION, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I don't know.",
        "No information available",
        "In berth 429.",
        "429",
        "500 dollars",
        "404 people came",
        "status 500 dollars",
        "Status: 450 members",
        "Connection errors were fixed in May.",
        "Error: I could not find it in my notes.",
        "She got a 404 error when she opened the page.",
        '{"answer": "In berth 20.", "error": null}',
        '{"answer": "In berth 20."}',
        "{not JSON, error}",
        "Exception handling, in Python",
        "Traceback is a module of Python.",
        "<html><head><title>My boat</title></head>",
        '{"error": ' * 200_000,
        "Error " * 200_000,
        "\ud800 429",
    ],
)
def test_an_answer_that_mentions_errors_is_an_answer(text: str) -> None:
    assert error_message(_QUESTION, text) is None


def test_an_error_that_the_question_is_about_is_an_answer() -> None:
    status = Question(id="q", question="What did my site return?", answers=("a 404",))
    assert error_message(status, "404 Not Found") is None
    assert error_message(status, "503 Service Unavailable") == "503 Service Unavailable"
    steps = Question(id="q", question="How many steps?", answers=("5000 steps",))
    assert error_message(steps, "500 Internal Server Error")
    named = Question(id="q", question="What did the TypeError say?", answers=("not iterable",))
    assert error_message(named, "TypeError: 'int' object is not iterable") is None


def test_a_text_that_may_be_an_error_message_is_only_suspected() -> None:
    assert resembles_error("Error: the request timed out")
    assert resembles_error("An error occurred: connection refused")
    assert not resembles_error("The error was in the second line: a comma.")
    assert not resembles_error("Errors in judgment")
