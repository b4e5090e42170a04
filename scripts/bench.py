"""Measure the project's performance, each figure in alternation with its reference.

    python scripts/bench.py [SECTION …]      sections: harness, start, faults, calls

Times are medians over alternating rounds. A missed limit is marked, and the script exits with 1.
"""

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

import httpx
import psutil

from memconform.bench.null_server import null_server
from memconform.contract.wire import Mode
from memconform.daemons.discovery import find_runner
from memconform.datasets.registry import open_dataset
from memconform.datasets.selection import Selection, select
from memconform.printing.logs import configure_logs
from memconform.runs.plan import Floor, Plan, Settings
from memconform.runs.schedule import execute
from memconform.scoring.exact import ExactScorer
from reporting import missed, report

_CHECKOUT = Path(__file__).resolve().parents[1]
_QUESTIONS = 1_000
_ROUNDS = 5


async def calls(folder: Path) -> None:
    """Count the calls of functions that a question takes, by those of a bare httpx loop.

    A count is the same on a busy machine, where the ratio of times once was 2.53 instead of 1.9."""
    with null_server() as url:
        for scenario, limit in _CALL_RATIOS.items():
            bare = await _calls(partial(_bare_loop, url, scenario, _COUNTED))
            startup, whole = [
                await _calls(partial(_run, url, scenario, _questions(folder, count), folder))
                for count in (1, _COUNTED + 1)
            ]
            ratio = (whole - startup) / bare
            report(f"{scenario}: calls by those of the bare loop", ratio, "x", limit=limit)


async def _calls(work: Callable[[], Awaitable[None]]) -> int:
    """Count the calls of Python functions and of built-in ones, in all threads that work starts."""
    counts: Counter[int] = Counter()

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        if event in {"call", "c_call"}:
            counts[threading.get_ident()] += 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        await work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return counts.total()


async def harness(folder: Path) -> None:
    """Measure what the harness adds to a question, against a bare httpx loop and a null server."""
    print(f"harness, null server, {_QUESTIONS} questions, {_ROUNDS} alternating rounds")
    with null_server() as url:
        for scenario in ("search-retrieve-only", "ask-basic"):
            overhead = await overhead_of(url, scenario, folder)
            report(f"{scenario}: CPU added per question", overhead.cpu_ms, "ms", limit=1.0)
            report(f"{scenario}: wall time added per question", overhead.wall_ms, "ms", limit=1.3)
            ratio_limit = _RATIOS[scenario]
            report(f"{scenario}: ratio to the bare loop", overhead.ratio, "x", limit=ratio_limit)


_RATIOS = {"search-retrieve-only": 1.9, "ask-basic": 2.4}
"""Limits of the time of a question in the harness, divided by that in a bare httpx loop.

Above 1.66 to 1.79 and 2.12 to 2.24, which runs of one version gave; calls are held closer below.

The goals were 1.4 and 1.6. By profile, an ask spends the excess on: proofs of the index between
questions 4.5 %, the shape of the answer 4 %, duplicate keys 4 %, the journal 3.5 %, the result
3.5 %, the records 2 %. Each of these keeps a failure from becoming a score or a finding."""
_CALL_RATIOS = {"search-retrieve-only": 1.6, "ask-basic": 2.1}
"""A quarter above 1.30 and 1.69, as measured: an ask had once doubled in cost unnoticed."""
_COUNTED = 100


@dataclass(frozen=True, slots=True)
class Overhead:
    """Overhead of the harness per question; medians over the rounds."""

    wall_ms: float
    cpu_ms: float
    ratio: float
    """Wall time, including the server's, divided by that of a bare httpx loop."""


async def overhead_of(url: str, scenario: str, folder: Path) -> Overhead:
    """Alternate runs and bare loops against a server that answers at once."""
    sizes = {count: _questions(folder, count) for count in (1, _QUESTIONS + 1)}
    walls, cpus, ratios = [], [], []
    for _ in range(_ROUNDS):
        bare = await _timed(lambda: _bare_loop(url, scenario, _QUESTIONS))
        # Subtracting a run of one question leaves the cost of the questions.
        startup = await _timed(lambda: _run(url, scenario, sizes[1], folder))
        whole = await _timed(lambda: _run(url, scenario, sizes[_QUESTIONS + 1], folder))
        net = [w - s for w, s in zip(whole, startup, strict=True)]
        walls.append((net[0] - bare[0]) / _QUESTIONS * 1e3)
        cpus.append((net[1] - bare[1]) / _QUESTIONS * 1e3)
        ratios.append(net[0] / bare[0])
    return Overhead(*map(statistics.median, (walls, cpus, ratios)))


async def _timed(work: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return time.perf_counter() - wall, time.process_time() - cpu


async def _bare_loop(url: str, scenario: str, questions: int) -> None:
    route, key = ("search", "query") if scenario.startswith("search") else ("ask", "question")
    async with httpx.AsyncClient(trust_env=False) as http:
        for number in range(questions):
            body = {key: f"What is the answer to number {number}?", "topK": 5, "mode": "bm25"}
            answer = await http.post(f"{url}/v1/brains/eval/{route}", json=body)
            answer.raise_for_status()


async def _run(url: str, scenario: str, questions: Path, folder: Path) -> None:
    selected = select(open_dataset(str(questions)), Selection())
    settings = Settings(
        dataset=selected.dataset.name,
        dataset_sha256=selected.dataset.sha256,
        questions=selected.size,
        scenario=scenario,
        mode=Mode.BM25,
        brain="eval",
    )
    plan = Plan(
        settings=settings,
        selected=selected,
        output=folder,
        floors=(Floor(0.9),),
        scorer=ExactScorer(),
    )
    async with aclosing(execute(plan, find_runner(f"url:{url}", folder))) as events:
        async for _ in events:
            pass


def _questions(folder: Path, count: int) -> Path:
    path = folder / f"questions-{count}.jsonl"
    rows = (
        {
            "id": f"q{number}",
            "question": f"What is the answer to number {number}?",
            "expected_substrings": ["forty-two"],
        }
        for number in range(count)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


async def start(folder: Path) -> None:
    """Measure the time to first output, of `--help` and of `make demo`."""
    del folder  # that of every section
    print("start")
    bare = [_seconds([sys.executable, "-c", "pass"]) for _ in range(10)]
    program = str(Path(sys.executable).with_name("memconform"))
    help_times = [_seconds([program, "--help"]) for _ in range(10)]
    report("memconform --help", statistics.median(help_times), "s", limit=0.2)
    ratio = statistics.median(help_times) / statistics.median(bare)
    print(f"  {'memconform --help, ratio to an empty Python program':<58} {ratio:>9.2f}")
    for name, (ratio, limit) in _start_ratios().items():
        report(f"{name}: CPU to start, by the bare libraries", ratio, "x", limit=limit)
    demo = _seconds(["make", "--no-print-directory", "-C", str(_CHECKOUT), "demo"])
    report("make demo, after set-up", demo, "s", limit=12)


def _start_ratios() -> dict[str, tuple[float, float]]:
    """The CPU time of starts by that of importing the libraries of a run, with its limits."""
    codes = {"": "import httpx, httpx_sse, pydantic, click, psutil", "--help": _HELP}
    codes |= {name: _START.format(name) for name in _START_RATIOS if name != "--help"}
    seconds: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(15):
        for name, code in codes.items():
            seconds[name].append(_cpu_seconds(code))
    bare = statistics.median(seconds[""])
    return {
        name: (statistics.median(seconds[name]) / bare, limit)
        for name, limit in _START_RATIOS.items()
    }


_HELP = "import sys; sys.argv = ['', '--help']; from memconform.cli.start import main; main()"
_START = (
    "import gc; gc.disable(); import memconform.cli.start, memconform.cli.main,"
    " memconform.cli.{} as verb; gc.freeze()"
)
"""As the program does it (cli/lazy.py)."""
_START_RATIOS = {
    "--help": 0.5,
    "run.execution": 2.0,
    "conform.execution": 1.9,
    "doctor.execution": 1.9,
    "bench.execution": 2.2,
    "score.answers": 2.4,
    "lme.execution": 2.7,
    "fuzz.execution": 2.8,
}
"""A tenth above what was measured: 0.38, 1.8, 1.7, 1.7, 2.0, 2.2, 2.4, 2.6."""


def _cpu_seconds(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


async def faults(folder: Path) -> None:
    """Measure how soon the death of a daemon is noticed while a question is waiting."""
    print("faults, a daemon killed during a hanging question")
    times = [await asyncio.to_thread(_seconds_to_notice, folder / f"f{n}") for n in range(5)]
    report("daemon killed: until the run has ended", statistics.median(times), "s", limit=1.0)


def _seconds_to_notice(folder: Path) -> float:
    folder.mkdir()
    argv = ["{python}", "-m", "tests.fakes.scripted", "--addr", "{addr}"]
    argv += ["--fault", "hangs", "--on", "number 1?"]
    (folder / "sdk.toml").write_text(
        f'name = "hangs"\nlanguage = "python"\n[serve]\nargv = {json.dumps(argv)}\n'
        'port = "announced"\n[capabilities]\nprofiles = ["core"]\nmodes = ["bm25"]\n'
    )
    rows = (
        {"id": f"q{n}", "question": f"What is number {n}?", "expected_substrings": ["x"]}
        | {"reference_answer": f"It is number {n}."}
        for n in range(3)
    )
    (folder / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    program = str(Path(sys.executable).with_name("memconform"))
    command = [program, "run", "--sdk", "sdk.toml", "--data", "set.jsonl", "--scorer", "exact"]
    command += ["--scenario", "search-retrieve-only", "--mode", "bm25", "--seed-reference-brain"]
    run = subprocess.Popen(
        [*command, "--quiet"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        journal = None
        while journal is None or '"judgement"' not in journal.read_text():
            time.sleep(0.02)
            journal = next(folder.glob("results/runs/*/journal.jsonl"), None)
        time.sleep(0.3)
        daemons = [
            process
            for process in psutil.Process(run.pid).children(recursive=True)
            if "tests.fakes.scripted" in process.cmdline()
            and "guard.py" not in " ".join(process.cmdline())
        ]
        started = time.perf_counter()
        daemons[0].kill()
        run.wait(timeout=20)
        return time.perf_counter() - started
    finally:
        run.kill()
        run.wait()


async def main() -> int:
    sections = {
        "harness": harness,
        "start": start,
        "faults": faults,
        "calls": calls,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("section", nargs="*", help=", ".join(sections))
    selected = parser.parse_args().section or list(sections)
    if unknown := set(selected) - sections.keys():
        parser.error(f"no section {unknown.pop()!r}")
    configure_logs("warning")
    with tempfile.TemporaryDirectory() as folder:
        for name in selected:
            await sections[name](Path(folder))
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
