"""The environment is read by few modules, and no client of httpx reads it by itself."""

import ast
import re
from collections.abc import Iterator

import pytest

from environment_reference import PAGE, rendered
from tests.conftest import CHECKOUT

_PACKAGE = CHECKOUT / "eval" / "memconform"

_READERS = {
    # Hand it on to what reads and validates settings.
    "cli/main.py",
    *("cli/judge_options.py", "cli/lme/execution.py", "cli/doctor/execution.py", "llm/session.py"),
    *("runs/machine.py", "network_transport.py", "datasets/download.py"),
    "cli/spread/execution.py",
    # Our own variables, each in the module that owns what it names.
    *("user_cache.py", "datasets/sources.py", "cli/values.py"),
    *("llm/prices.py", "llm/budget.py", "llm/budget_client.py"),
    # What children get.
    *("daemons/environment.py", "daemons/guard.py", "cluster/task.py"),
    "conformance/mutation/mutant_runner.py",
    # Children that read what they were given.
    *("upstream/serve.py", "conformance/mutation/proxy.py"),
    *("adapters/mcp_bridge.py", "adapters/contract_daemon.py"),
    "conformance/mutation/source_patch/sitecustomize.py",
    # Colours and widths, as rich decides them.
    *("printing/output.py", "printing/console.py", "printing/log_format.py", "reports/console.py"),
}
_CLIENTS = {"Client", "AsyncClient", "HTTPTransport", "AsyncHTTPTransport"}
_CLIENTS |= {"DefaultHttpxClient", "DefaultAsyncHttpxClient", "create_ssl_context"}
_FUNCTIONS = {"get", "post", "put", "patch", "delete", "head", "options", "request", "stream"}
_OPTIONS = {"http_options"}
"""Functions whose result, passed as keywords, has `trust_env=False`."""


def environment_reads(source: str) -> list[int]:
    """The lines that name the environment of the process."""
    if "environ" not in source and "getenv" not in source:
        return []
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (
            (isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv"))
            and isinstance(node.value, ast.Name)
            and node.value.id == "os"
        )
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "os"
            and {alias.name for alias in node.names} & {"environ", "environb", "getenv"}
        )
    ]


def trusting_clients(source: str) -> list[int]:
    """The lines that make a client of httpx which may read the environment."""
    if not any(name in source for name in _CLIENTS | {"httpx"}):
        return []
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and _makes_client(node.func) and not _is_told(node)
    ]


def _makes_client(function: ast.expr) -> bool:
    match function:
        case ast.Attribute(value=ast.Name(id="httpx" | "httpx2"), attr=name):
            return name in _CLIENTS | _FUNCTIONS
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name in _CLIENTS - {"Client"}
    return False


def _is_told(call: ast.Call) -> bool:
    for keyword in call.keywords:
        match keyword:
            case ast.keyword(arg="trust_env", value=ast.Constant(value=False)):
                return True
            case ast.keyword(arg=None, value=ast.Call(func=ast.Name(id=name))):
                if name in _OPTIONS:
                    return True
    return False


def _sources() -> Iterator[tuple[str, str]]:
    for path in sorted(_PACKAGE.rglob("*.py")):
        yield path.relative_to(_PACKAGE).as_posix(), path.read_text(encoding="utf-8")


def test_only_named_modules_read_the_environment() -> None:
    readers = {name for name, source in _sources() if environment_reads(source)}
    assert readers == _READERS


def test_every_client_is_told_not_to_read_the_environment() -> None:
    found = [f"{name}:{line}" for name, source in _sources() for line in trusting_clients(source)]
    assert not found, "pass trust_env=False; ShellTransport follows the shell's proxy"


def test_uvicorn_is_told_what_it_would_read() -> None:
    """WEB_CONCURRENCY=many was a ValueError of `view` and `upstream`."""
    calls = [
        node
        for _, source in _sources()
        if "uvicorn.Config" in source
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "uvicorn.Config"
    ]
    told = [{keyword.arg for keyword in call.keywords} for call in calls]
    assert len(told) == 3
    assert all(names >= {"workers", "forwarded_allow_ips"} for names in told)


@pytest.mark.parametrize(
    "source",
    ["import os\nos.environ['A']", "import os\nos.getenv('A')", "\nfrom os import environ"],
)
def test_a_read_is_found(source: str) -> None:
    assert environment_reads(source) == [2]


@pytest.mark.parametrize(
    "source",
    [
        "httpx.Client()",
        "httpx.AsyncClient(timeout=5)",  # short limit: source to be read
        "httpx.Client(trust_env=True)",
        "httpx.get('http://x')",
        "httpx.HTTPTransport()",
        "httpx.create_ssl_context()",
        "openai.DefaultAsyncHttpxClient(timeout=5, **options)",  # short limit: source to be read
        "AsyncClient()",
    ],
)
def test_a_client_that_may_read_the_environment_is_found(source: str) -> None:
    assert trusting_clients(source) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "httpx.AsyncClient(trust_env=False)",
        "httpx.Timeout(5)",
        "openai.DefaultAsyncHttpxClient(**http_options(where))",
        "mapping.get('a')",
    ],
)
def test_other_calls_are_not(source: str) -> None:
    assert trusting_clients(source) == []


def test_the_page_of_the_environment_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == rendered(), "renew it: .venv/bin/python scripts/environment_reference.py"


def test_every_variable_of_the_table_is_tried() -> None:
    from tests.environment_rows import environment_page  # noqa: PLC0415 - beside the script that reads it

    idle = [v.names for group in environment_page().group for v in group.variable if not v.row]
    assert not idle


def test_every_variable_that_the_help_names_is_in_the_page() -> None:
    """Four were missing, although the README says that it lists all."""
    named = re.findall(r"\b(?:JB|MEMCONFORM)_[A-Z_]+\b", (CHECKOUT / "docs" / "CLI.md").read_text())
    page = PAGE.read_text(encoding="utf-8")
    assert not {name for name in named if f"`{name}`" not in page}
