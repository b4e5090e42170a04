"""The core knows nothing of HTTP: only the API imports its models and Starlette."""

import ast
from pathlib import Path

_SOURCES = Path(__file__).parents[1] / "src" / "memoryd"

_OUTSIDE = {"api", "daemon", "cli.py", "__main__.py"}

_HTTP = ("memoryd.api", "starlette", "uvicorn", "pydantic")
"""`pydantic_core`, a JSON parser, is not among them."""


def _http_imports(source: str) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return [name for name in names if any(name == m or name.startswith(f"{m}.") for m in _HTTP)]


def test_the_core_imports_nothing_of_http() -> None:
    core = [
        path
        for path in sorted(_SOURCES.rglob("*.py"))
        if path.relative_to(_SOURCES).parts[0] not in _OUTSIDE
    ]
    assert len(core) > 40
    imports = {path.name: found for path in core if (found := _http_imports(path.read_text()))}
    assert imports == {}


def test_an_import_of_a_model_is_noticed() -> None:
    assert _http_imports("from memoryd.api.bodies import Ask\nimport starlette.requests\n") == [
        "memoryd.api.bodies",
        "starlette.requests",
    ]
    assert _http_imports("from pydantic_core import from_json\nfrom memoryd.feed import Feed") == []
