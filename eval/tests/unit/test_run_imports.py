"""A plain `run` imports what it needs: other verbs and their reports were half of its modules."""

import asyncio
import subprocess
import sys
from pathlib import Path

from memconform.bench.raw_http import serving
from tests.adversarial.inprocess import write_dataset
from tests.fakes.scripted import ScriptedDaemon

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
    *("upstream", "user_cache", "validation"),
}
_UNUSED = {
    *("memconform.reports.html", "memconform.reports.overview", "memconform.reports.parity"),
    *("memconform.cli.judge_session", "memconform.scoring.judge.session", "memconform.llm.calls"),
    *("anthropic", "openai", "numpy", "scipy", "jinja2", "vl_convert", "yaml", "sqlite3"),
    *("hypothesis", "nltk", "rank_bm25", "structlog"),
}
_DUMP = (
    "import sys\n"
    "from memconform.cli.main import main\n"
    "try: main()\n"
    "finally: print('modules', *sys.modules)"
)


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
    assert "memconform.runs.engine" in modules


async def test_a_report_that_is_asked_for_is_imported(tmp_path: Path) -> None:
    modules = await _modules_of_a_run(tmp_path, "--html")
    assert {"bench", "conformance", "memconform.reports.html", "jinja2"} <= _unneeded(modules)
