"""docs/TROUBLESHOOTING.md documents every error code of memconform once, and no other.

Codes are read from the syntax trees of the package. A call emits a code if it has a keyword
`code`, or if it calls a class or function that has a parameter `code`. What a syntax tree cannot
tell stands in one of the tables below, with the reason; anything else that cannot be determined
fails the test.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[4]
_PACKAGE = "memconform"
_DOCUMENT = _ROOT / "docs" / "TROUBLESHOOTING.md"
_HEADER = ["code", "What it means", "What to do"]

_PATTERNS = {"http_{response.status_code}": "http_NNN"}
"""F-strings that make codes, and how the document writes them."""

_FORWARDED: Mapping[tuple[str, str], tuple[str, ...]] = {
    # The only unmeasured status that a scorer may give (scoring/scorer.py); others are of runs.
    ("runs/stages.py", "status.value"): ("judge_error",),
    # All others pass on the code of an error, a Failure or an Incident that was made elsewhere.
    ("bench/answering/schedule.py", "failure.code"): (),
    ("bench/answering/records.py", "failure.code"): (),
    ("bench/answering/report_builder.py", "error.code"): (),
    ("bench/schedule.py", "error.code"): (),
    # What child.py replies, which imports nothing of the package.
    ("adapters/connection.py", "reply.get('error')"): (
        *("adapter_finish_failed", "adapter_forget_failed", "adapter_load_failed"),
        *("adapter_search_failed", "adapter_start_failed"),
        *("adapter_store_failed", "adapter_wrong_type"),
    ),
    # What the server, whose errors are budget.py's, replies to a shard.
    ("llm/budget_server.py", "error.code"): (),
    ("llm/budget_client.py", "refusal['code']"): (),
    # JSON-RPC's, to a server.
    ("adapters/mcp_bridge.py", "-32601"): (),
    ("bench/adapter_index.py", "error.code"): (),
    ("bench/wmb/answers_file.py", "system.incident.code"): (),
    ("bench/wmb/answers_file.py", "record.error.code"): (),
    ("bench/wmb/report_builder.py", "each.code"): (),
    ("bench/wmb/report_builder.py", "failure.code"): (),
    ("client/client.py", "error.code"): ("not_in_dialect",),
    ("daemons/limits.py", "error.code"): (),
    ("daemons/limits.py", "lack.code"): (),
    # The table of error numbers.
    ("errors.py", "_LIMITS[number]"): (
        *("disk_full", "out_of_memory", "too_many_files", "too_many_processes"),
    ),
    ("load/schedule.py", "error.code"): (),
    ("load/step_runner.py", "error.code"): (),
    ("longmemeval/generation.py", "error.code"): (),
    ("ingest/monitor.py", "error.code"): (),
    ("ingest/query_verification.py", "doubt.code"): (),
    ("ingest/query_verification.py", "error.code"): (),
    ("llm/providers.py", "error.code"): (),
    ("ingest/verification.py", "error.code"): (),
    ("records.py", "error.code"): (),
    ("replay/answers.py", "failure.code"): (),
    ("replay/fact_context.py", "error.code"): (),
    ("replay/schedule.py", "error.code"): (),
    ("replay/extraction.py", "error.code"): (),
    ("replay/filter_probe.py", "error.code"): (),
    ("measuring/engine.py", "error.code"): (),
    ("replay/retrieval.py", "error.code"): (),
    ("replay/retrieval.py", "self.halted.code"): (),
    ("replay/tool_loop.py", "error.code"): (),
    ("scoring/engine.py", "error.code"): (),
    ("results/answers.py", "record.code or 'judge_error'"): (),
    ("results/answers.py", "report.incident.code"): (),
    ("results/replays.py", "question.code"): (),
    ("results/wmb_scores.py", "outcome.code"): (),
    ("runs/remedies.py", "call.code"): (),
    ("runs/remedies.py", "getattr(error, 'code', '')"): (),
    ("runs/question_runner.py", "**fields"): (),  # the dict with `error.code`, the next entry
    ("runs/question_runner.py", "error.code"): (),
    (
        "runs/question_runner.py",
        "**self._store_wire(row, attempt, exchanges)",
    ): (),  # `curl` and `wire`, no code
    ("runs/checkpoints.py", "error.code"): (),
    ("runs/checkpoints.py", "failure.code"): (),
    ("runs/doctor.py", "error.code"): (),
    ("runs/results.py", "incident.code"): (),
}
"""File and expression of codes that are no literals → the codes that come from nowhere else."""

_DAEMON_SIDE = {
    # `problem+json` that the fake daemons answer; upstream/chat_apis.py has a `problem`, too.
    "problem",
    # The `problem+json` that a conformance case expects of a daemon.
    "ProblemSpec",
    # The same, which the daemon of a memory system answers.
    "_Problem",
}
"""Callables whose codes a daemon sends to its client (sdks/CONTRACT.md): no errors of ours."""

_DAEMON_SIDE_DICTS = {
    "adapters/contract_daemon.py",  # problem+json of memory systems
    "bench/raw_http.py",  # problem+json of fake daemons
    "conformance/case.py",  # the shorthand of a ProblemSpec, written out
    "conformance/expectations.py",  # the fields that are expected of problem+json
    "oracle/predictions.py",  # problem+json that the contract requires
    "upstream/chat_apis.py",  # OpenAI's error body, which the upstream answers a daemon
}
"""Files in which the key `code` of a dict is part of a body that a daemon or a client reads."""


@dataclass
class Codes:
    """What a package emits: codes and patterns with their places, and what could not be told."""

    places: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    undetermined: dict[tuple[str, str], list[int]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """File and expression → lines."""
    daemon_side: set[str] = field(default_factory=set)
    """Entries of the two tables of what daemons say that were met."""


@dataclass(frozen=True)
class _Signature:
    """Where a callable takes its code."""

    position: int | None
    """Among positional arguments, without `self`; None where it is a keyword alone."""
    optional: bool


@dataclass
class _Module:
    path: str
    tree: ast.Module
    nodes: list[ast.AST] = field(init=False)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    signatures: dict[str, _Signature] = field(default_factory=dict)
    """Signatures of its own classes, functions and methods, and of those that it imports."""
    foreign: set[str] = field(default_factory=set)
    """Names of imported modules and objects of other packages."""

    def __post_init__(self) -> None:
        self.nodes = list(ast.walk(self.tree))
        for node in self.nodes:
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _function_signature(function: _Function, *, bound: bool) -> _Signature | None:
    """The signature of a function with a parameter `code: str`."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args][bound:]
    for index, argument in enumerate(positional):
        if argument.arg == "code" and _is_text(argument):
            return _Signature(index, index >= len(positional) - len(arguments.defaults))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if argument.arg == "code" and _is_text(argument):
            return _Signature(None, default is not None)
    return None


def _is_text(argument: ast.arg) -> bool:
    """Not an exit code."""
    return argument.annotation is None or ast.unparse(argument.annotation).startswith("str")


def _class_signature(node: ast.ClassDef) -> _Signature | None:
    """The signature of a class whose `__init__` or whose fields have a `code`."""
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return _function_signature(statement, bound=True)
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == "code":
            return _Signature(None, optional=statement.value is not None)
    return None


def _define(module: _Module) -> None:
    """Find the module's own callables that take a code, but for inherited ones."""
    for node in module.nodes:
        if isinstance(node, ast.ClassDef):
            signature = _class_signature(node)
        elif isinstance(node, _Function) and not node.name.startswith("__"):
            bound = isinstance(module.parents[node], ast.ClassDef)
            signature = _function_signature(node, bound=bound)
        else:
            continue
        if signature is not None:
            module.signatures[node.name] = signature


def _import(module: _Module, modules: Mapping[str, _Module]) -> None:
    """Take over the signatures of what is imported and of base classes."""
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_PACKAGE):
            source = modules.get(node.module or "")
            for alias in node.names:
                if source is not None and alias.name in source.signatures:
                    name = alias.asname or alias.name
                    module.signatures[name] = source.signatures[alias.name]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module.foreign |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ClassDef) and node.name not in module.signatures:
            for base in map(_last_name, node.bases):
                if base in module.signatures:
                    module.signatures[node.name] = module.signatures[base]


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def collect(sources: Mapping[str, str]) -> Codes:
    """Every code that these modules of the package emit, by path relative to the package."""
    modules = {}
    for path, source in sources.items():
        parts = [_PACKAGE, *Path(path).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = _Module(path, ast.parse(source))
    for module in modules.values():
        _define(module)
    known = -1
    while known != (known := sum(len(module.signatures) for module in modules.values())):
        for module in modules.values():
            _import(module, modules)
    codes = Codes()
    for module in modules.values():
        _Collector(module, codes).run()
    return codes


class _Collector:
    """Reads one module."""

    def __init__(self, module: _Module, codes: Codes) -> None:
        self._module = module
        self._codes = codes

    def run(self) -> None:
        for node in self._module.nodes:
            match node:
                case ast.Call():
                    self._call(node)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._default(node)
                case ast.Dict():
                    self._dict(node)
                case ast.Assign(targets=[ast.Attribute(attr="code")]):
                    self._expression(node.value)
                case ast.Name(ctx=ast.Load()):
                    self._alias(node)

    def _call(self, call: ast.Call) -> None:
        name = self._callee(call)
        if name in _DAEMON_SIDE:
            self._codes.daemon_side.add(name)
            return
        if self._module.path.startswith("cli/") and name in ("_end", "echo"):
            self._printed(call)
        keyword = next((k for k in call.keywords if k.arg == "code"), None)
        signature = self._module.signatures.get(name)
        if keyword is not None:
            self._expression(keyword.value)
        elif signature is not None:
            position = signature.position
            starred = [a for a in call.args if isinstance(a, ast.Starred)]
            unpacked = [k.value for k in call.keywords if k.arg is None]
            if position is not None and position < len(call.args) and not starred:
                self._expression(call.args[position])
            elif starred or unpacked:
                for value in unpacked:
                    self._undetermined(value, f"**{ast.unparse(value)}")
                for value in starred:
                    self._undetermined(value, ast.unparse(value))
            elif not signature.optional:
                self._undetermined(call, ast.unparse(call))

    def _callee(self, call: ast.Call) -> str:
        """The name of what is called; of `super().__init__` that of the base class."""
        function = call.func
        if isinstance(function, ast.Attribute):
            if isinstance(function.value, ast.Name) and function.value.id in self._module.foreign:
                return ""
            if function.attr == "__init__" and ast.unparse(function.value) == "super()":
                for outer in self._module.ancestors(call):
                    if isinstance(outer, ast.ClassDef):
                        return _last_name(outer.bases[0]) if outer.bases else ""
        return _last_name(function)

    def _default(self, function: _Function) -> None:
        arguments = function.args
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults = [*zip(reversed(positional), reversed(arguments.defaults), strict=False)]
        for argument, default in (
            *defaults,
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ):
            if argument.arg == "code" and _is_text(argument) and default is not None:
                self._expression(default)

    def _dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "code":
                if self._module.path in _DAEMON_SIDE_DICTS:
                    self._codes.daemon_side.add(self._module.path)
                else:
                    self._expression(value)

    def _printed(self, call: ast.Call) -> None:
        """Codes at the head of a printed line: all of these have an underscore, unlike `try:`."""
        for node in (node for argument in call.args for node in ast.walk(argument)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for code in re.findall(r"^([a-z]+(?:_[a-z]+)+): ", node.value, re.MULTILINE):
                    self._add(code, node)

    def _alias(self, name: ast.Name) -> None:
        """An error class with a positional code under another name hides what it is called with."""
        signature = self._module.signatures.get(name.id)
        if signature is None or signature.position is None:
            return
        parent = self._module.parents[name]
        passed = isinstance(parent, ast.Call) and name in parent.args
        if passed and isinstance(parent, ast.Call):
            passed = _last_name(parent.func) not in ("isinstance", "suppress")
        if passed or isinstance(parent, ast.Assign | ast.IfExp | ast.Return | ast.keyword):
            self._undetermined(name, name.id)

    def _expression(self, expression: ast.expr) -> None:
        match expression:
            case ast.Constant(value=str(code)):
                self._add(code, expression)
            case ast.JoinedStr():
                text = ast.unparse(expression)[2:-1]
                if text in _PATTERNS:
                    self._add(_PATTERNS[text], expression)
                else:
                    self._undetermined(expression, text)
            case ast.IfExp():
                self._expression(expression.body)
                self._expression(expression.orelse)
            case ast.Name():
                self._name(expression)
            case _:
                self._undetermined(expression, ast.unparse(expression))

    def _name(self, name: ast.Name) -> None:
        """A parameter `code`, whose values the calls say; or a variable, by its assignments."""
        for scope in self._module.ancestors(name):
            if isinstance(scope, _Function):
                arguments = scope.args
                parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                if name.id in [argument.arg for argument in parameters]:
                    if name.id != "code":
                        self._undetermined(name, name.id)
                    return
            if isinstance(scope, _Function | ast.Module):
                values = [*_assigned(scope, name.id)]
                for value in values:
                    self._expression(value)
                if values:
                    return
        self._undetermined(name, name.id)

    def _add(self, code: str, node: ast.expr) -> None:
        if code:  # a row without an error has an empty one
            self._codes.places[code].append(f"{self._module.path}:{node.lineno}")

    def _undetermined(self, node: ast.expr, text: str) -> None:
        self._codes.undetermined[self._module.path, text].append(node.lineno)


def _assigned(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    """What a variable of a scope is set to; of `a, b = 1, 2` the element."""
    for node in ast.walk(scope):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == name:
                yield node.value
            elif isinstance(target, ast.Tuple):
                for index, element in enumerate(target.elts):
                    if isinstance(element, ast.Name) and element.id == name:
                        whole = node.value
                        yield whole.elts[index] if isinstance(whole, ast.Tuple) else whole


def _rows(text: str) -> Iterator[tuple[str, list[str]]]:
    """The heading above each row of a table of codes, and the row's cells."""
    heading, in_table = "", False
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells == _HEADER:
            in_table = True
        elif not cells:
            in_table = False
        elif in_table and set("".join(cells)) != {"-"}:
            yield heading, cells


@pytest.fixture(scope="module")
def emitted() -> Codes:
    package = _ROOT / "eval" / _PACKAGE
    paths = sorted(package.rglob("*.py"))
    return collect({p.relative_to(package).as_posix(): p.read_text("utf-8") for p in paths})


@pytest.fixture(scope="module")
def rows() -> list[tuple[str, list[str]]]:
    return list(_rows(_DOCUMENT.read_text("utf-8")))


@pytest.fixture(scope="module")
def documented(rows: list[tuple[str, list[str]]]) -> list[str]:
    return [cells[0].strip("`") for _, cells in rows]


def _expected(emitted: Codes) -> dict[str, list[str]]:
    forwarded = {code: [path] for (path, _), made in _FORWARDED.items() for code in made}
    return {**forwarded, **emitted.places}


def test_every_code_is_documented(emitted: Codes, documented: list[str]) -> None:
    expected = _expected(emitted)
    assert {code: at for code, at in expected.items() if code not in documented} == {}


def test_every_documented_code_is_emitted(emitted: Codes, documented: list[str]) -> None:
    assert sorted(set(documented) - set(_expected(emitted))) == []


def test_no_code_is_documented_twice(documented: list[str]) -> None:
    assert [code for code, count in Counter(documented).items() if count > 1] == []


def test_every_code_can_be_determined(emitted: Codes) -> None:
    unknown = emitted.undetermined.items()
    assert {place: lines for place, lines in unknown if place not in _FORWARDED} == {}


def test_the_tables_hold_no_obsolete_code(emitted: Codes) -> None:
    assert sorted(set(_FORWARDED) - set(emitted.undetermined)) == []
    assert emitted.daemon_side == _DAEMON_SIDE | _DAEMON_SIDE_DICTS
    assert [code for code in _PATTERNS.values() if code not in emitted.places] == []


def test_every_row_has_code_meaning_and_remedy(rows: list[tuple[str, list[str]]]) -> None:
    for _, cells in rows:
        assert len(cells) == len(_HEADER)
        assert re.fullmatch(r"`[a-z]\w*`", cells[0]), cells[0]
        assert all(cells), cells[0]


def test_codes_are_sorted_in_each_group(rows: list[tuple[str, list[str]]]) -> None:
    groups: dict[str, list[str]] = defaultdict(list)
    for heading, cells in rows:
        groups[heading].append(cells[0].strip("`"))
    assert {name: group for name, group in groups.items() if group != sorted(group)} == {}


_ERRORS = """
class MemconformError(Exception):
    def __init__(self, message: str, *, code: str, hint: str = "") -> None: ...
class UsageError(MemconformError):
    pass
class CallError(Exception):
    def __init__(self, code: str, message: str) -> None: ...
class DaemonFailedError(CallError):
    pass
"""


def _collected(body: str) -> Codes:
    head = "from memconform.errors import DaemonFailedError, UsageError\n"
    return collect({"errors.py": _ERRORS, "cli/synthetic.py": head + body})


@pytest.mark.parametrize(
    "body",
    [
        'raise UsageError("it broke", code="brand_new")',
        'raise DaemonFailedError("brand_new", "it broke")',
        'raise DaemonFailedError(code="brand_new", message="it broke")',
        'class Late(DaemonFailedError): pass\nraise Late("brand_new", "it broke")',
        'def f(code: str, why: str): return UsageError(why, code=code)\nf("brand_new", "x")',
        'def _failed(why: str, *, code: str = "brand_new"): return UsageError(why, code=code)',
        'def f():\n    why, code = "it broke", "brand_new"\n    raise UsageError(why, code=code)',
        '_CODE = "brand_new"\nraise UsageError("it broke", code=_CODE)',
        'why = {"code": "brand_new", "message": "it broke"}',
        'class L(DaemonFailedError):\n    def __init__(self): super().__init__("brand_new", "x")',
        'error.code = "brand_new"',
        '_end(f"{trace}brand_new: it broke\\n  try: again", 70)',
    ],
)
def test_an_undocumented_code_is_reported(body: str, documented: list[str]) -> None:
    codes = _collected(body)
    assert codes.places.keys() - set(documented) == {"brand_new"}
    assert codes.undetermined == {}


@pytest.mark.parametrize(
    ("body", "expression"),
    [
        ('raise UsageError("it broke", code=other.code)', "other.code"),
        ('raise DaemonFailedError(f"status_{n}", "it broke")', "status_{n}"),
        ("raise DaemonFailedError(*given)", "*given"),
        ("raise UsageError(**given)", "**given"),
        ("def f(name: str): raise UsageError('it broke', code=name)", "name"),
        ("failed = DaemonFailedError", "DaemonFailedError"),
        ('raise UsageError("it broke")', "UsageError('it broke')"),
    ],
)
def test_a_code_that_cannot_be_determined_is_reported(body: str, expression: str) -> None:
    assert list(_collected(body).undetermined) == [("cli/synthetic.py", expression)]


def test_errors_of_other_packages_have_no_code() -> None:
    codes = _collected('import click\nraise click.UsageError("--sdk is missing")')
    assert (codes.places, codes.undetermined) == ({}, {})
