"""A time limit in a test is generous, or a comment says why a stall cannot fail it."""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT

_LEAST_SECONDS = 60
"""What a healthy step never takes, however busy the machine: CI once took 8 s for an import."""
_REASON = "# short limit: "
"""Of the line, or of the line before it."""
_KEYWORDS = {"timeout", "timeout_s", "deadline_s", "ready_s", "first", "gap", "total", "connect"}
_CALLS = {"timeout": 0, "wait_for": 1, "wait": 0, "join": 0, "settimeout": 0, "time_limit": 0}
"""Functions that take a limit, and its position."""
_NO_LIMITS = {"FloorResult", "_tally", "add_task"}
"""Functions with such a keyword for a number of something."""
_CLOCKS = {"monotonic", "perf_counter", "time"}


def _number(node: ast.expr | None, constants: dict[str, float]) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case ast.Name(id=name):
            return constants.get(name)
    return None


def _text_number(node: ast.expr) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return float(node.value)
        except ValueError:
            return None
    return None


def _named(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _limits_of_call(
    call: ast.Call, constants: dict[str, float]
) -> Iterator[tuple[ast.expr, float | None]]:
    if _named(call.func) in _NO_LIMITS:
        return
    for keyword in call.keywords:
        if keyword.arg in _KEYWORDS:
            yield keyword.value, _number(keyword.value, constants)
    name, arguments = _named(call.func), call.args
    if name in _CALLS and len(arguments) > _CALLS[name]:
        yield arguments[_CALLS[name]], _number(arguments[_CALLS[name]], constants)
    if name == "setattr" and len(arguments) > 1:
        *_, target, value = arguments
        if isinstance(target, ast.Constant) and str(target.value).endswith("_SECONDS"):
            yield value, _number(value, constants)


def _limits(tree: ast.Module) -> Iterator[tuple[ast.expr, float | None]]:
    constants = {
        _named(node.targets[0]): value
        for node in tree.body
        if isinstance(node, ast.Assign) and (value := _number(node.value, {})) is not None
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call():
                yield from _limits_of_call(node, constants)
            case ast.Compare(ops=[ast.Lt() | ast.LtE()], left=left, comparators=[right]):
                names = {_named(part.func) for part in ast.walk(left) if isinstance(part, ast.Call)}
                if names & _CLOCKS:
                    yield right, _number(right, constants)
        items = getattr(node, "elts", getattr(node, "args", None))
        for flag, value in pairwise(items) if isinstance(items, list) else ():
            if isinstance(flag, ast.Constant) and "-timeout" in str(flag.value):
                yield value, _text_number(value)


def short_limits(source: str) -> list[int]:
    """The lines of limits between 0 and _LEAST_SECONDS that have no reason."""
    lines = source.splitlines()
    found = {
        node.lineno
        for node, seconds in _limits(ast.parse(source))
        if seconds is not None and 0 < seconds < _LEAST_SECONDS
    }
    return [
        number
        for number in sorted(found)
        if not any(_REASON in line for line in lines[max(number - 2, 0) : number])
    ]


_SUITES = [CHECKOUT / "eval" / "tests", CHECKOUT / "sdks" / "py" / "tests"]


def test_no_test_has_a_short_limit_without_a_reason() -> None:
    files = [path for suite in _SUITES for path in suite.rglob("*.py") if path != Path(__file__)]
    assert len(files) > 150
    found = [
        f"{path.relative_to(CHECKOUT)}:{line}"
        for path in files
        for line in short_limits(path.read_text())
    ]
    assert not found, f"raise these limits, or say why a stall cannot fail the test ({_REASON!r})"


@pytest.mark.parametrize(
    "line",
    [
        "process.wait(timeout=5)",
        "process.wait(5)",
        "asyncio.timeout(30)",
        "asyncio.wait_for(task, 2.5)",
        "opened(deadline_s=8)",
        "Timeouts(total=60, first=0.6)",
        "LIMIT = 1.5\nclient(first=LIMIT)",
        "run('--llm-timeout', '8')",
        "FLAGS = ('--timeout-first', '0.6')",
        "monkeypatch.setattr(module, '_ORDER_SECONDS', 1)",
        "monkeypatch.setattr('module._ORDER_SECONDS', 1)",
        "assert time.monotonic() - began < 25",
    ],
)
def test_a_short_limit_is_found_unless_it_has_a_reason(line: str) -> None:
    assert short_limits(line) == [line.count("\n") + 1]
    *before, last = line.split("\n")
    assert short_limits("\n".join([*before, f"{last}  {_REASON}silence is endless"])) == []
    assert short_limits("\n".join([*before, f"{_REASON}silence is endless", last])) == []


@pytest.mark.parametrize(
    "line",
    ["process.wait(timeout=60)", "run('--timeout', '90')", "wait(timeout=0)", "', '.join(x)"],
)
def test_a_long_limit_needs_no_reason(line: str) -> None:
    assert short_limits(line) == []
