"""Time a small run against that of jeffs-brain's runner, on its own Python daemon.

    JEFFS_BRAIN=path/to/jeffs-brain/memory python scripts/bench_jeffs_brain.py

Both seed the 20 documents of its smoke set into the same build of the daemon and ask its 20
questions, in alternating rounds. Its runner starts the daemon through `uv run`, here without the
time that uv takes. CPU counts the daemons too, and moves less than wall time on a busy machine.
Nothing is measured without JEFFS_BRAIN, a checkout of github.com/jeffs-brain/memory.
"""

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from memconform.daemons.build import build_key, ensure_built
from memconform.daemons.manifest import load_manifest
from reporting import missed, report

_ADAPTER = Path(__file__).resolve().parents[1] / "sdks/adapters/jeffs-brain/py"
_ROUNDS = 7


@dataclass(frozen=True, slots=True)
class Cost:
    """What a program and its daemon took, in seconds."""

    wall: float
    cpu: float


def _cost(command: list[str], folder: Path, environment: dict[str, str]) -> Cost:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)}: {ended.returncode}\n{ended.stdout}{ended.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu)


def _uv_without_its_time(folder: Path, build: Path) -> Path:
    """A folder with a `uv` whose `run PROGRAM` starts the program of a build."""
    programs = folder / "programs"
    programs.mkdir()
    script = programs / "uv"
    script.write_text(f'#!/bin/sh\nshift\nexec "{build}/bin/$@"\n')
    script.chmod(0o755)
    return programs


def main() -> int:
    root = os.environ.get("JEFFS_BRAIN")
    if not root:
        print("jeffs-brain's runner is not measured: JEFFS_BRAIN is not set")
        return 0
    checkout = Path(root).resolve()
    manifest = load_manifest(_ADAPTER / "sdk.toml")
    key = build_key(manifest, _ADAPTER)
    build = asyncio.run(ensure_built(manifest, _ADAPTER, key, lambda line: print(f"  {line}")))
    dataset = checkout / "eval/datasets/smoke.jsonl"
    rows = [json.loads(line) for line in dataset.read_text(encoding="utf-8").splitlines() if line]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = _uv_without_its_time(folder, build)
        shared = [*("--dataset", str(dataset)), *("--scorer", "exact", "--mode", "bm25")]
        shared += ["--scenario", "search-retrieve-only", "--seed-reference-brain"]
        own = [str(Path(sys.executable).with_name("memconform")), "run", "--sdk", str(_ADAPTER)]
        theirs = [sys.executable, "runner.py", "--sdk", "py"]
        environment = dict(os.environ)
        path = {"PATH": f"{programs}:{environment['PATH']}"}
        ours, others = [], []
        for _ in range(_ROUNDS):
            command = [*theirs, *shared, "--output", str(folder / "theirs")]
            others.append(_cost(command, checkout / "eval", environment | path))
            command = [*own, *shared, "--output", str(folder / "ours")]
            ours.append(_cost(command, folder, environment))
    print(f"{len(rows)} questions, {_ROUNDS} alternating rounds, medians")
    for figure in ("wall", "cpu"):
        mine, other = (statistics.median(getattr(c, figure) for c in x) for x in (ours, others))
        print(f"  {figure}: {mine:.2f} s here, {other:.2f} s with jeffs-brain's runner")
        report(f"{len(rows)} questions: {figure} time by jeffs-brain's runner", mine / other, "x",
               limit=_LIMITS[figure])  # fmt: skip
    return 1 if missed() else 0


_LIMITS = {"wall": 1.0, "cpu": 1.2}
"""CPU has what jeffs-brain's runner lacks: proofs of the index, repeated retrievals, a guard."""

if __name__ == "__main__":
    sys.exit(main())
