"""No test depends on the speed of the machine, in Python, Go or TypeScript.

A test counts, compares two sizes, or waits for an event. A limit in it is generous; it asserts no
time, and it does not sleep to see that nothing happens. Else a comment says why a stall cannot fail
it.
"""

import ast
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.conftest import CHECKOUT

_LEAST_SECONDS = 60
"""What a healthy step never takes, however busy the machine: CI once took 8 s for an import."""
_REASON = " short limit: "
"""After the sign of a comment, on the line or on the line before it."""
_KEYWORDS = {
    "timeout",
    "timeout_s",
    "deadline_s",
    "ready_s",
    "seconds",
    "first",
    "gap",
    "total",
    "connect",
}
_CALLS = {"timeout": 0, "wait_for": 1, "wait": 0, "join": 0, "settimeout": 0, "time_limit": 0}
"""Functions that take a limit, and its position."""
_NO_LIMITS = {"FloorResult", "_tally", "add_task"}
"""Functions with such a keyword for a number of something."""
_CLOCK = re.compile(r"(monotonic|perf_counter|time|process_time|thread_time)(_ns)?")
_SETTING = re.compile(r"-?-[a-z-]*timeout[a-z-]*|[A-Z_]*TIMEOUT[A-Z_]*|timeout_s")
"""A flag, a variable or a key whose value is a limit."""
_TOML = re.compile(r"\b(?:timeout|ready|deadline)\w* ?= ?([0-9.]+)")


def _number(node: ast.expr | None, constants: dict[str, float]) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case ast.Name(id=name):
            return constants.get(name)
    return None


def _text_number(node: ast.expr | None) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return float(node.value)
        except ValueError:
            return None
    return None


def _named(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _is_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and bool(_CLOCK.fullmatch(_named(node.func)))


def _is_duration(node: ast.AST) -> bool:
    """Whether one reading of a clock is subtracted from another."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _is_clock(node.left)


def _limits_of_call(
    call: ast.Call, constants: dict[str, float]
) -> Iterator[tuple[ast.expr, float | None]]:
    name, arguments = _named(call.func), call.args
    if name in _NO_LIMITS:
        return
    for keyword in call.keywords:
        if keyword.arg in _KEYWORDS:
            yield keyword.value, _number(keyword.value, constants)
        elif keyword.arg and _SETTING.fullmatch(keyword.arg):
            yield keyword.value, _text_number(keyword.value)
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
            case ast.BinOp(op=ast.Add(), left=clock, right=right) if _is_clock(clock):
                yield right, _number(right, constants)
            case ast.Dict():
                for key, limit in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and _SETTING.fullmatch(str(key.value)):
                        yield limit, _number(limit, constants) or _text_number(limit)
            case ast.Constant(value=str() as text):
                for toml in _TOML.finditer(text):
                    yield node, float(toml[1])
        items = getattr(node, "elts", getattr(node, "args", None))
        for flag, value in pairwise(items) if isinstance(items, list) else ():
            if isinstance(flag, ast.Constant) and _SETTING.fullmatch(str(flag.value)):
                yield value, _text_number(value)


def _durations(tree: ast.Module) -> Iterator[ast.expr]:
    """Comparisons with a duration, whether or not it has a name."""
    names = {
        _named(node.targets[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and any(map(_is_duration, ast.walk(node.value)))
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(
            _is_duration(part) or (isinstance(part, ast.Name) and part.id in names)
            for part in ast.walk(node)
        ):
            yield node


def _sleeps(tree: ast.Module) -> Iterator[ast.expr]:
    """Sleeps that end by themselves; one of hours is ended by an event."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _named(node.func) == "sleep" and node.args:
            seconds = _number(node.args[0], {})
            if seconds is None or 0 < seconds < _LEAST_SECONDS:
                yield node


def _deadlines(tree: ast.Module) -> Iterator[ast.expr]:
    """What the one profile of Hypothesis sets."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _named(node.func) in {"settings", "register_profile"}:
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "deadline")


def _in_python(source: str) -> set[int]:
    tree = ast.parse(source)
    lines = {
        node.lineno
        for node, seconds in _limits(tree)
        if seconds is not None and 0 < seconds < _LEAST_SECONDS
    }
    return lines | {n.lineno for found in (_durations, _sleeps, _deadlines) for n in found(tree)}


_GO_CLOCK = re.compile(r"time\.Since\(|\.Sub\(|\btime\.Sleep\(|\bruntime\.Gosched\(")
_GO_LIMIT = re.compile(
    r"(Timeout|Deadline|After|AfterFunc|NewTimer|NewTicker|Tick)\b.*"
    r"\btime\.(Nano|Micro|Milli)?[sS]econd\b"
)


def _in_go(source: str) -> set[int]:
    # In a bubble of testing/synctest, the clock moves only while all wait.
    is_virtual = '"testing/synctest"' in source
    return {
        number
        for number, line in enumerate(source.splitlines(), 1)
        if not is_virtual and (_GO_CLOCK.search(line) or _GO_LIMIT.search(line))
    }


_TS_CLOCK = re.compile(r"performance\.now\(|Date\.now\(|hrtime|cpuUsage\(|new Date\(\)")
_TS_LIMIT = re.compile(
    r"(?:\b(?:sleep|AbortSignal\.timeout)\(|\btimeout: |\bsetTimeout\([^()]*,\s*)([0-9][0-9_]*)?"
)
_TS_SETTING = re.compile(r"TIMEOUT: \"([0-9.]+)\"")


def _in_typescript(source: str) -> set[int]:
    lines = set()
    for number, line in enumerate(source.splitlines(), 1):
        milliseconds = [float(x[1] or "1") for x in _TS_LIMIT.finditer(line)]
        milliseconds += [1000 * float(x[1]) for x in _TS_SETTING.finditer(line)]
        if _TS_CLOCK.search(line) or any(0 < x < 1000 * _LEAST_SECONDS for x in milliseconds):
            lines.add(number)
    return lines


_FINDERS: dict[str, tuple[str, Callable[[str], set[int]]]] = {
    ".py": ("#", _in_python),
    ".go": ("//", _in_go),
    ".ts": ("//", _in_typescript),
}


def wall_clock_lines(source: str, language: str) -> list[int]:
    """The lines that depend on the speed of the machine, and have no reason."""
    comment, find = _FINDERS[language]
    lines = source.splitlines()
    return [
        number
        for number in sorted(find(source))
        if not any(comment + _REASON in line for line in lines[max(number - 2, 0) : number])
    ]


def _is_of_tests(path: Path) -> bool:
    match path.suffix:
        case ".py":
            # What a double delays is what it does; no test waits for a time of its own by that.
            return path != Path(__file__) and path.parent.name != "fakes"
        case ".go":
            return path.stem.endswith("test")
        case ".ts":
            return path.name.endswith(".test.ts") or path.parent.name == "testing"
    return False


_SUITES = (
    "eval/tests",
    "sdks/py/tests",
    "sdks/go/client",
    "sdks/go/cmd",
    "sdks/go/internal",
    "sdks/ts/client",
    "sdks/ts/src",
)


@pytest.mark.parametrize("language", _FINDERS)
def test_no_test_depends_on_the_speed_of_the_machine(language: str) -> None:
    files = [
        path
        for suite in _SUITES
        for path in (CHECKOUT / suite).rglob(f"*{language}")
        if _is_of_tests(path)
    ]
    assert len(files) > 30
    found = [
        f"{path.relative_to(CHECKOUT)}:{line}"
        for path in files
        for line in wall_clock_lines(path.read_text(), language)
    ]
    assert not found, f"count, or wait for an event; or say why no stall fails it ({_REASON!r})"


_DEPENDENT = {
    ".py": [
        "process.wait(timeout=5)",
        "process.wait(5)",
        "asyncio.timeout(30)",
        "asyncio.wait_for(task, 2.5)",
        "opened(deadline_s=8)",
        "search(seconds=0.2)",
        "Timeouts(total=60, first=0.6)",
        "LIMIT = 1.5\nclient(first=LIMIT)",
        "run('--llm-timeout', '8')",
        "FLAGS = ('--timeout-first', '0.6')",
        "daemon(JB_REQUEST_TIMEOUT='0.5')",
        "daemon({'JB_REQUEST_TIMEOUT': '0.5'})",
        "configured({'timeout_s': 5})",
        "path.write_text('[ready]\\ntimeout_s = 5')",
        "monkeypatch.setattr(module, '_ORDER_SECONDS', 1)",
        "monkeypatch.setattr('module._ORDER_SECONDS', 1)",
        "end = time.monotonic() + 5",
        "assert time.monotonic() - began < 25",
        "assert time.monotonic() - began < LIMIT",
        "took = (perf_counter() - began) * 1e3\nassert limit > took",
        "took = time.process_time() - began\nassert other < 8 * took",
        "time.sleep(0.5)",
        "await asyncio.sleep(delay)",
        "@settings(max_examples=9, deadline=None)\ndef test(): ...",
    ],
    ".go": [
        "if time.Since(started) > time.Minute {",
        "if time.Now().Sub(started) > limit {",
        "time.Sleep(limit)",
        "case <-time.After(5 * time.Second):",
        "ctx, end := context.WithTimeout(t.Context(), 100*time.Millisecond)",
        "service.Timeout = time.Second",
        "time.AfterFunc(time.Millisecond, cancel)",
    ],
    ".ts": [
        "assert.ok(performance.now() - started < 20_000);",
        "expect(Date.now() - started).toBeLessThan(100);",
        "await sleep(100);",
        "await sleep(delay);",
        "await new Promise((resolve) => setTimeout(resolve, 5));",
        "const signal = AbortSignal.timeout(5000);",
        "test('x', { timeout: 5_000 }, () => {});",
        'await fixture.start({ JB_UPSTREAM_TIMEOUT: "0.8" });',
    ],
}


@pytest.mark.parametrize(
    ("language", "line"),
    [(language, line) for language, lines in _DEPENDENT.items() for line in lines],
)
def test_a_line_that_depends_on_time_is_found_unless_it_has_a_reason(
    language: str, line: str
) -> None:
    number = 1 if "deadline=None" in line else line.count("\n") + 1
    assert wall_clock_lines(line, language) == [number]
    reason = f"{_FINDERS[language][0]}{_REASON}silence is endless"
    before, after = line.split("\n")[: number - 1], line.split("\n")[number - 1 :]
    assert (
        wall_clock_lines("\n".join([*before, f"{after[0]}  {reason}", *after[1:]]), language) == []
    )
    assert wall_clock_lines("\n".join([*before, reason, *after]), language) == []


@pytest.mark.parametrize(
    ("language", "line"),
    [
        (".py", "process.wait(timeout=60)"),
        (".py", "run('--timeout', '90')"),
        (".py", "wait(timeout=0)"),
        (".py", "', '.join(x)"),
        (".py", "await asyncio.sleep(0)"),
        (".py", "time.sleep(3600)"),
        (".py", "end = time.monotonic() + WAIT_SECONDS"),
        (".go", "case <-time.After(time.Minute):"),
        (".go", 'import "testing/synctest"\ntime.Sleep(time.Second)'),
        (".ts", "test('x', { timeout: 60_000 }, () => {});"),
        (".ts", "await setImmediate();"),
    ],
)
def test_a_long_limit_and_a_virtual_clock_need_no_reason(language: str, line: str) -> None:
    assert wall_clock_lines(line, language) == []


def test_no_property_is_held_to_a_time() -> None:
    """A draw of 281 ms on a busy machine was a failure: the profile was of some folders only."""
    assert settings.default is not None
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check


_KEEPS_CONNECTIONS = re.compile(r"AsyncClient\((?![^)]*(?:transport=|limits=))")
_WANTS_ONE = {
    "integration/test_proxy.py": "it looks at the connection that stays idle",
    "unit/conformance/test_kept_daemons_in_process.py": "it makes one request",
    "unit/project/test_environment_reads.py": "source to be read",
}


def test_no_client_of_a_test_keeps_connections() -> None:
    """Its server closed one that was idle just when it was used, on a busy machine."""
    tests = CHECKOUT / "eval" / "tests"
    found = {
        str(path.relative_to(tests))
        for path in tests.rglob("*.py")
        if _KEEPS_CONNECTIONS.search(path.read_text())
    }
    assert found == set(_WANTS_ONE)
