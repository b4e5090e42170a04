"""A verb imports what it needs: other verbs and their reports were half of the modules of `run`."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memconform.bench.raw_http import serving
from tests.adversarial.inprocess import write_dataset
from tests.fakes.scripted import ScriptedDaemon

_MAKEFILE = Path(__file__).parents[4] / "Makefile"
_ROOMS = {
    *("cli", "client", "concurrency", "contract", "daemons", "datasets", "errors", "ingest"),
    *("llm", "network"),
    *(
        "printing",
        "records",
        "redaction",
        "reports",
        "runs",
        "measuring",
        "scoring",
        "stats",
        "storage",
    ),
    *("tls", "upstream", "user_cache", "validation_faults"),
}
_UNUSED = {
    *("memconform.reports.html", "memconform.reports.overview", "memconform.reports.parity"),
    *("memconform.cli.judge_session", "memconform.scoring.judge.session", "memconform.llm.session"),
    *("anthropic", "openai", "numpy", "scipy", "jinja2", "vl_convert", "yaml", "sqlite3"),
    *("hypothesis", "nltk", "rank_bm25", "structlog", "xml", "pygments", "difflib"),
    *("memconform.runs.remedies", "memconform.contract.schemas", "certificates"),
}
"""What a plain run does without; `certificates` are those of the system, which are no module."""
_DUMP = (
    "import ssl, sys\n"
    "ssl.SSLContext.load_verify_locations = lambda *a, **k: sys.modules.update(certificates=ssl)\n"
    "from memconform.cli.main import main\n"
    "try: main()\n"
    "finally: print('modules', *sys.modules)"
)
_RUNNING = {"ingest", "llm", "measuring", "runs", "scoring"}
"""Rooms of what asks questions and scores answers."""
_MEASURING = {"bench", "conformance", "fuzzing", "longmemeval", "oracle", "replay", "results"}
"""Rooms of verbs other than `run`."""
_AUTHORS = {
    f"longmemeval.{name}"
    for name in ("generation", "history", "history_sources", "keys", "prompts", "pruning")
}
"""What three commands and four flags need, and nobody else."""
_LIMITS: dict[str, tuple[int, set[str]]] = {
    "cli.main": (16, _RUNNING | _MEASURING | {"client", "contract", "datasets", "reports"}),
    "cli.run.execution": (182, _MEASURING),
    "cli.conform.execution": (149, _RUNNING | _MEASURING - {"conformance"}),
    "cli.fuzz.execution": (175, _RUNNING | {"bench", "replay", "results"}),
    "cli.load.execution": (169, _MEASURING),
    "cli.doctor.execution": (171, _MEASURING | {"reports"}),
    "cli.judge.execution": (178, _MEASURING - {"results"}),
    "cli.score.answers": (240, {"conformance", "fuzzing", "oracle", "replay", "upstream"}),
    "cli.bench.execution": (250, _AUTHORS | {"conformance", "fuzzing", "oracle", "replay"}),
    "cli.datasets.command": (92, _AUTHORS | {"llm"}),
    "cli.lme.execution": (291, {"conformance", "fuzzing", "oracle"}),
    "cli.diff.execution": (125, _MEASURING - {"results"} | {"upstream"}),
    "cli.info.command": (65, _RUNNING | _MEASURING | {"client", "reports"}),
}
"""How many modules of memconform a verb imports at most, a twentieth above today's number, and the
rooms or modules that are not among them. Each module takes a quarter of a millisecond."""
_SCHEMAS = """
import importlib, pkgutil, sys
from pydantic import BaseModel, TypeAdapter
import memconform

def models(base):
    for model in base.__subclasses__():
        yield model
        yield from models(model)

statements, *names = sys.argv[1:]
packages = pkgutil.walk_packages(memconform.__path__, "memconform.")
for name in names or [package.name for package in packages]:
    if not name.endswith("__main__") and "source_patch" not in name:
        importlib.import_module(name)
exec(statements)
ours = {model for model in models(BaseModel) if model.__module__.startswith("memconform.")}
built = {f"{model.__module__}.{model.__name__}" for model in ours if model.__pydantic_complete__}
for name, module in sys.modules.copy().items():
    if name.startswith("memconform"):
        values = vars(module).items()
        built |= {f"{name}.{each}" for each, value in values if isinstance(value, TypeAdapter)}
print(len(ours), *sorted(built))
for model in ours:
    model.model_rebuild()
    assert model.__pydantic_complete__, model
"""


def _unneeded(modules: set[str]) -> set[str]:
    rooms = {name.split(".")[1] for name in modules if name.startswith("memconform.")}
    return (rooms - _ROOMS) | (_UNUSED & modules)


async def _modules_of_a_run(folder: Path, *flags: str) -> set[str]:
    """The modules that the program has imported by the end of a run."""
    dataset = write_dataset(folder)
    async with serving(ScriptedDaemon("", "", None).answer, "127.0.0.1", 0) as port:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _DUMP, "run", "--sdk", f"url:http://127.0.0.1:{port}"),
            *("--dataset", str(dataset), "--seed-reference-brain", "--scorer", "exact"),
            *("--scenario", "search-retrieve-only", "--mode", "bm25", "--floor", "0", *flags),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    last = output.decode().splitlines()[-1].split()
    assert last[0] == "modules"
    return set(last[1:])


async def test_a_plain_run_imports_no_other_verb_and_no_extra(tmp_path: Path) -> None:
    modules = await _modules_of_a_run(tmp_path)
    assert _unneeded(modules) == set()
    assert "memconform.runs.schedule" in modules


def _uncompiled(modules: set[str], listed: str) -> set[str]:
    """The modules that `make setup` does not compile by importing some modules."""
    code = f"import {listed}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = {name for name in modules if name.startswith("memconform")}
    others = modules - ours - set(done.stdout.split())
    return {name for name in others if name.partition(".")[0] not in sys.stdlib_module_names}


async def test_make_setup_compiles_what_a_run_imports(tmp_path: Path) -> None:
    """Where PYTHONDONTWRITEBYTECODE is set, each start would compile it anew."""
    makefile = _MAKEFILE.read_text("utf-8")
    recipe = re.search(r"^COMPILED := ((?:.*\\\n)*.*)$", makefile, re.MULTILINE)
    assert recipe is not None
    listed = recipe[1].replace("\\\n", " ").replace(", numpy.random, anthropic, openai", "")
    modules = await _modules_of_a_run(tmp_path) - {"certificates", "__main__", "__mp_main__"}
    assert _uncompiled(modules, listed) == set()
    assert "httpx" in _uncompiled(modules, "json")
    # Whole, and by each `make setup`, because a pull changes it.
    assert makefile.count("$(COMPILE) -m compileall -q eval/memconform") == 2


async def test_a_report_that_is_asked_for_is_imported(tmp_path: Path) -> None:
    modules = await _modules_of_a_run(tmp_path, "--html")
    assert {"bench", "conformance", "memconform.reports.html", "jinja2"} <= _unneeded(modules)


def _imported(module: str) -> set[str]:
    code = f"import memconform.cli.main, memconform.{module}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name for name in done.stdout.split() if name.startswith("memconform.")}


def _excess(modules: set[str], most: int, unwanted: set[str]) -> list[str]:
    """The modules of unwanted rooms, and the count of all if that is above its limit."""
    rooms = tuple(f"memconform.{name}" for name in unwanted)
    of_rooms = {name for name in modules if name.startswith(tuple(f"{room}." for room in rooms))}
    count = [f"{len(modules)} modules"] if len(modules) > most else []
    return [*sorted(of_rooms | (modules & set(rooms))), *count]


def test_a_verb_imports_no_room_that_it_does_not_need() -> None:
    excess = {verb: _excess(_imported(verb), *limits) for verb, limits in _LIMITS.items()}
    assert excess == {verb: [] for verb in _LIMITS}


def test_an_unwanted_room_and_too_many_modules_are_found() -> None:
    modules = _imported("cli.conform.execution")
    excess = _excess(modules, 20, {"conformance", "contract.wire"})
    assert {"memconform.conformance.case", "memconform.contract.wire"} <= set(excess)
    assert excess[-1] == f"{len(modules)} modules"
    assert not any(name.startswith("memconform.contract.core") for name in excess)


def _built_by_imports(statements: str = "", *modules: str) -> tuple[int, set[str]]:
    """The number of the models of some modules, or of all, and those that are built unused."""
    command = [sys.executable, "-c", _SCHEMAS, statements, *modules]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, *built = done.stdout.split()
    return int(count), set(built)


def test_imports_build_no_schema_and_each_model_can_be_built() -> None:
    """A model whose schema is deferred shows a mistake in its definition on its first use only."""
    count, built = _built_by_imports()
    assert built == set()
    assert count > 250


def test_a_schema_that_an_import_builds_is_found() -> None:
    _, built = _built_by_imports(
        "memconform.records.Failure(code='a', message='b')\n"
        "memconform.errors.ADAPTER = TypeAdapter(int)",
        "memconform.records",
    )
    assert built == {"memconform.records.Failure", "memconform.errors.ADAPTER"}


def test_a_model_that_cannot_be_built_is_found() -> None:
    with pytest.raises(AssertionError, match=r"memconform\.wrong\.Wrong"):
        _built_by_imports(
            "from pydantic import field_validator\n"
            "class Wrong(memconform.records.Record):\n"
            "    __module__ = 'memconform.wrong'\n"
            "    _check = field_validator('absent')(lambda value: value)\n",
            "memconform.records",
        )
