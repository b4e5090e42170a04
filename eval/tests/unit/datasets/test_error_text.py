"""Error messages in the place of answers, and answers that only look like one."""

import pytest

from memconform.datasets.error_text import error_message, resembles_error
from memconform.datasets.question import Question

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
        # Without a status or the name of an exception; each was scored as a wrong answer.
        '{"detail":"Internal Server Error"}',
        '{"detail": [{"loc": ["body"], "msg": "field required"}]}',
        '{"message": "Too Many Requests"}',
        '{"answer": ""}',
        '{"answer": null, "sources": []}',
        "{}",
        "upstream connect error or disconnect/reset before headers. reset reason: closed",
        "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000",
        "Error: connect ECONNREFUSED 127.0.0.1:8000",
        "connect ETIMEDOUT 10.0.0.1:443",
        "Connection refused",
        "connection reset by peer",
        "fetch failed",
        "Error: fetch failed",
        "Error: timed out",
        "Read timed out",
        "The request timed out!",
        "Gateway Timeout",
        "Internal Server Error",
        "Bad Gateway",
        "Service Unavailable",
        "too many requests",
        "TimeoutError",
        "ReadTimeout",
        "Context length exceeded",
        "This model's maximum context length is 8192 tokens. However, you requested 9000.",
        "ollama: model not found",
        'model "llama3" not found, try pulling it first',
        "Failed to generate a response.",
        "I'm sorry, an error occurred while processing your request.",
        "An unexpected error occurred.",
        "Error: overloaded",
        "API error: timed out",
        "ERROR",
        "null",
        "undefined",
        "NaN",
        "[object Object]",
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
        "Not found.",
        "None",
        "Nan",
        "The connection was refused by the bank.",
        "Connection refused by the hotel",
        "They timed out the server.",
        "The model was not found until May.",
        "A model airplane",
        "An error occurred to her in May.",
        "Failed to generate interest",
        "Overloaded with work",
        "Null and void",
        "Timeout was called twice.",
        # What a reader may decline with, or people say.
        "Unable to produce an answer: the dog's name is never mentioned.",
        "Unable to get an answer from the given history.",
        "Unable to generate an answer.",
        "Failed to get a response from the insurer.",
        "An error occurred during the 2019 tax filing, which cost him $300.",
        "Overloaded.",
        "Insufficient storage",
        "Connection lost",
        "Network error.",
        "TypeError",
        "Timeout",
        "Unauthorized",
        '{"message": "In berth 20."}',
        '{"answer": 0}',
        '{"found": false, "why": "no note"}',
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
    log = Question(id="q", question="What did the log say?", answers=("connection refused",))
    assert error_message(log, "Connection refused.") is None
    assert error_message(log, "Fetch failed.") == "Fetch failed."
    assert error_message(log, "ConnectionError: refused") is not None
    paraphrased = Question(id="q", question="Why did it stop?", answers=("it was refused",))
    assert error_message(paraphrased, "Connection refused") is None
    server = Question(id="q", question="Which server did I buy?", answers=("a used one",))
    assert error_message(server, "Internal Server Error") is not None
    js = Question(id="q", question="Which value is printed?", answers=("undefined",))
    assert error_message(js, "undefined") is None
    steps = Question(id="q", question="How many steps?", answers=("5000 steps",))
    assert error_message(steps, "500 Internal Server Error")
    named = Question(id="q", question="What did the TypeError say?", answers=("not iterable",))
    assert error_message(named, "TypeError: 'int' object is not iterable") is None


def test_a_text_that_may_be_an_error_message_is_only_suspected() -> None:
    assert resembles_error("Error: the request timed out")
    assert resembles_error("An error occurred: connection refused")
    assert not resembles_error("The error was in the second line: a comma.")
    assert not resembles_error("Errors in judgment")
