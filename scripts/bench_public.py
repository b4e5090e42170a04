"""The public daemons in the modes that their users run: a number for each, or the reason.

    JEFFS_BRAIN=CHECKOUT python scripts/bench_public.py [COMMAND …]

JEFFS_BRAIN is a checkout of github.com/jeffs-brain/memory; without one nothing is measured, and a
line says so. COMMAND is a name of the table, such as `bench-shared`. docs/DIALECTS.md has the table
from `scripts/publish.py public`.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reporting import missed, report

_CHECKOUT = Path(__file__).resolve().parents[1]
_PROGRAM = Path(sys.executable).with_name("memconform")
_ADAPTERS = _CHECKOUT / "sdks" / "adapters" / "jeffs-brain"
SDKS = ("go", "ts", "py")
_DATA = Path(os.environ.get("MEMCONFORM_DATA") or _CHECKOUT.parent / "shared" / "data")

_RUN = ("run", "--data", "smoke", "--seed-reference-brain", "--scorer", "exact", "--floor", "0")
_BENCH = (
    *("bench", "--suite", "locomo", "--data", "@locomo/locomo10.json", "--level", "session"),
    *("--limit", "20", "--mode", "bm25,semantic,hybrid", "--upstream", "scripted"),
)
COMMANDS: dict[str, tuple[str, ...]] = {
    "doctor": ("doctor",),
    "run-search": (*_RUN, "--scenario", "search-retrieve-only"),
    "run-lme": ("run", "--data", "lme", "--scenario", "search-retrieve-only", "--floor", "0"),
    "run-hybrid-rerank": (
        *(*_RUN, "--scenario", "search-retrieve-only"),
        *("--mode", "hybrid-rerank", "--upstream", "scripted"),
    ),
    "ask-basic": (*_RUN, "--scenario", "ask-basic", "--upstream", "scripted"),
    "ask-augmented": (*_RUN, "--scenario", "ask-augmented", "--upstream", "scripted"),
    "bench-shared": (*_BENCH, "--index", "shared"),
    "bench-isolated": (*_BENCH, "--index", "isolated"),
    "conform": ("conform", "--profile", "documents"),
}
"""Arguments of each command, before `--sdk`; `@` marks a path below the data folder."""
TOGETHER: dict[str, tuple[str, ...]] = {
    "lme-tri": (
        *("lme", "tri", "--data", "@longmemeval/longmemeval_oracle.json"),
        *("--sample", "6"),
    ),
}
"""Commands that compare all daemons; the same arguments for all of them."""


COMPARED = {
    "parity": ("parity", "RUN…"),
    "report-html": ("report", "RUN…"),
}
"""Commands about the runs of `run-search` and `run-hybrid-rerank`."""


def shown(arguments: tuple[str, ...]) -> str:
    """The command as a user types it, without its `--sdk`."""
    return " ".join(part.rpartition("/")[2] for part in arguments)


_ALL = COMMANDS | TOGETHER | COMPARED


class Matrix:
    """Runs the commands in one folder, and reads what they say."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs: dict[str, list[str]] = {}
        self.rows: dict[str, dict[str, str]] = {}

    def measure(self, names: list[str]) -> None:
        """Run these commands for every daemon; a row each."""
        for name in names:
            if name in COMMANDS:
                self.rows[name] = {sdk: self._cell(name, sdk) for sdk in SDKS}
            elif name in TOGETHER:
                self.rows[name] = self._replay(name)
            elif name == "parity":
                self.rows[name] = self._parity()
            else:
                self.rows[name] = dict.fromkeys(SDKS, self._html())
            print(f"  {name}: {self.rows[name]}", flush=True)

    def _call(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        flags = [
            str(_DATA / part[1:]) if part.startswith("@") else part for part in map(str, arguments)
        ]
        return subprocess.run(
            [_PROGRAM, *flags],
            cwd=self._folder,
            env=os.environ | {"JB_LLM_PROVIDER": "fake"},
            check=False,
            capture_output=True,
            text=True,
        )

    def _cell(self, name: str, sdk: str) -> str:
        file = self._folder / f"{name}-{sdk}.json"
        more = () if name == "doctor" else ("--json", file)
        ended = self._call(*COMMANDS[name], "--sdk", _ADAPTERS / sdk, *more)
        if name == "doctor":
            return "ok" if ended.returncode == 0 else _first_failure(ended)
        if not file.exists():
            return _last_line(ended)
        read: Callable[[Any], str] = {"bench": _bench_cell, "conform": _conform_cell}.get(
            COMMANDS[name][0], self._run_cell
        )
        return read(json.loads(file.read_text()))

    def _run_cell(self, measured: dict[str, Any]) -> str:
        [run] = measured["runs"]
        counted = {
            verdict: count
            for verdict, count in run["counts"].items()
            if count and verdict not in ("correct", "incorrect", "abstained", "not_applicable")
        }
        if incident := run["incident"]:
            return f"not measured: {incident['code']}"
        if counted:
            return f"not measured: {_counted(counted)}"
        if run["scenario"] == "search-retrieve-only" and run["dataset"] == "smoke":
            self._runs.setdefault(run["mode"], []).append(run["run_id"])
        served = ", ".join(run["served_modes"])
        return f"{run['passed']}/{run['total']} ({served})"

    def _replay(self, name: str) -> dict[str, str]:
        sdks = [part for sdk in SDKS for part in ("--sdk", str(_ADAPTERS / sdk))]
        ended = self._call(*TOGETHER[name], *sdks, "--output", "tri")
        cells = {}
        for sdk in SDKS:
            files = list((self._folder / "tri").glob(f"result-*{sdk}.json"))
            if not files:
                cells[sdk] = _last_line(ended)
                continue
            result = json.loads(files[0].read_text())
            score = result["overall_score"]
            cells[sdk] = "not measured" if score is None else f"{100 * score:.1f}"
        return cells

    def _parity(self) -> dict[str, str]:
        runs = self._runs.get("auto", [])
        ended = self._call("parity", *runs, "--json", "parity.json")
        if not (self._folder / "parity.json").exists():
            return dict.fromkeys(SDKS, _last_line(ended))
        verdict = json.loads((self._folder / "parity.json").read_text())["verdict"]
        return dict.fromkeys(SDKS, verdict)

    def _html(self) -> str:
        runs = [run for ids in self._runs.values() for run in ids]
        ended = self._call("report", *runs, "-o", "report.html")
        return "ok" if ended.returncode == 0 else _last_line(ended)


def _bench_cell(measured: dict[str, Any]) -> str:
    parts = []
    for row in measured["rows"]:
        if not row["measured"]:
            parts.append(f"{row['strategy']} not measured: {row['why'][0].partition(':')[0]}")
            continue
        metrics = row["views"]["all"]["metrics"]
        parts.append(f"{row['strategy']} {metrics['recall_any@5']['value']:.1f}")
    return ", ".join(parts)


def _conform_cell(measured: dict[str, Any]) -> str:
    [sdk] = measured["sdks"]
    results = Counter(check["result"] for case in sdk["cases"] for check in case["checks"])
    judged = sum(results[name] for name in ("pass", "warn", "fail", "error"))
    return f"{results['pass'] + results['warn']:,} of {judged:,} checks pass"


def _first_failure(ended: subprocess.CompletedProcess[str]) -> str:
    """The step that failed first, and why."""
    lines = [line.strip() for line in ended.stdout.splitlines()]
    failed = next((number for number, line in enumerate(lines) if line.startswith("FAIL")), None)
    return _last_line(ended) if failed is None else f"{lines[failed]}: {lines[failed + 1]}"


def _counted(verdicts: dict[str, int]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())


def _last_line(ended: subprocess.CompletedProcess[str]) -> str:
    lines = (ended.stdout + ended.stderr).strip().splitlines() or [""]
    return f"exit {ended.returncode}: {lines[-1].strip()}"


def measure(names: list[str] | None = None) -> dict[str, Any]:
    """Run the commands against the three daemons of the checkout."""
    with tempfile.TemporaryDirectory() as folder:
        matrix = Matrix(Path(folder))
        matrix.measure(names or list(_ALL))
    rows = [{"command": shown(_ALL[name]), "cells": row} for name, row in matrix.rows.items()]
    return {"rows": rows}


def main(names: list[str]) -> int:
    if not os.environ.get("JEFFS_BRAIN"):
        print("  JEFFS_BRAIN is not set: the public daemons are not measured")
        return 0
    cells = [cell for row in measure(names)["rows"] for cell in row["cells"].values()]
    unmeasured = sum("not measured" in cell or cell.startswith(("exit ", "FAIL")) for cell in cells)
    report("public daemons: cells without a number", unmeasured, "", limit=0)
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
