"""Measures the published results, and updates the tables that scripts/readme_tables.py writes.

python scripts/publish.py lme           pass rates on lme
python scripts/publish.py mutation      the mutation score, which takes minutes
python scripts/publish.py clients       broken clients, and the public clients of sdks/clients
python scripts/publish.py bench         the real benchmarks, which takes half an hour
python scripts/publish.py bench/NAME    one of them
python scripts/publish.py systems       memory systems behind adapters, which takes an hour
python scripts/publish.py answers       answers by the scripted reader, which takes minutes
python scripts/publish.py answers/NAME  those of one benchmark
python scripts/publish.py replay        50 questions replayed against every SDK, offline
python scripts/publish.py runs          lme on three daemons, one of which differs, for screenshots
python scripts/publish.py public        the public daemons, from a checkout in $JEFFS_BRAIN

Results are written to results/published/. The benchmarks are expected in $MEMCONFORM_DATA; those
that embed need memconform[models], and those of answers memconform[qa]. Hindsight is not measured
as root.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import bench_public
from memconform.bench.records import BenchReport
from memconform.conformance.results import ConformReport, Result
from memconform.reports.html.figures import quality_and_cost
from readme_tables import LME_MODES, PUBLISHED, update

_CHECKOUT = Path(__file__).resolve().parents[1]
_PUBLISHED = _CHECKOUT / PUBLISHED
_PROGRAM = Path(sys.executable).with_name("memconform")
_SDKS = ("go", "ts", "py")
_RUNS = ("go", "ts", "sdks/examples/minimal")
"""SDKs whose answers scripts/screenshots.py shows."""
_PUBLISHED_KEYS = ("dataset", "scenario", "mode", "scorer", "total", "passed", "pass_rate")

_LOCOMO = ("--suite", "locomo", "--data", "@locomo/locomo10.json", "--index", "shared")
_S = ("--suite", "longmemeval", "--data", "@longmemeval/longmemeval_s_cleaned_499.json.xz")
_WMB = ("--suite", "wmb", "--data", "@wmb100k", "--part", "B", "--sdk", "go")
_ALL = ("--sdk", "go", "--sdk", "ts", "--sdk", "py", "--require-agreement")
_MINILM = ("--upstream", "scripted", "--embed-model", "all-MiniLM-L6-v2")
_DATES = (
    *("--sdk", "go", "--mode", "hybrid", "--fusion", "rrf", "-k", "1,5,10"),
    *("--recency", "none,0.05,0.25", "--temporal", "none,0.4"),
    *("--pool-factor", "1", "--pool-floor", "30,50,80"),
)
_BENCHES = {
    "locomo-session": (*_LOCOMO, "--level", "session", *_ALL, "--mode", "bm25"),
    "locomo-turn": (*_LOCOMO, "--level", "turn", *_ALL, "--mode", "bm25,conversation"),
    "locomo-turn-bge": (
        *_LOCOMO,
        "--level",
        "turn",
        *_ALL,
        "--mode",
        "hybrid,conversation",
        *("--upstream", "scripted", "--embed-model", "bge-small-en-v1.5"),
    ),
    "locomo-turn-minilm": (
        *_LOCOMO,
        "--level",
        "turn",
        *_ALL,
        "--mode",
        "semantic,hybrid,conversation",
        *_MINILM,
    ),
    "locomo-session-minilm": (
        *_LOCOMO,
        *("--level", "session", "--sdk", "go"),
        *("--mode", "semantic,hybrid", "--kernel", "inverse-l2"),
        *_MINILM,
    ),
    "longmemeval-s": (*_S, "--sdk", "go", "--system", "flat-bm25", "-k", "1,5,10"),
    "longmemeval-s-turn": (
        *_S,
        *("--level", "turn", "--sdk", "go", "--system", "flat-bm25", "-k", "1,5,10"),
    ),
    "longmemeval-s-shared": (*_S, "--index", "shared", "--sdk", "go"),
    "locomo-turn-minilm-kernels": (
        *_LOCOMO,
        *("--level", "turn", "--sdk", "go"),
        *("--mode", "hybrid", "--kernel", "cosine,inverse-l2"),
        *_MINILM,
    ),
    "longmemeval-s-minilm-dates-update": (
        *(*_S, "--category", "knowledge-update", *_DATES),
        *_MINILM,
    ),
    "longmemeval-s-minilm-dates-temporal": (
        *(*_S, "--category", "temporal-reasoning", *_DATES),
        *_MINILM,
    ),
    "wmb-b": _WMB,
    "wmb-b-category": (*_WMB, "--index", "category"),
}
"""Arguments of the published benches; `@` marks a path below the data folder."""

_ON_S: tuple[str, ...]
_ON_S = ("agentmemory", "chroma", "faiss", "hindsight", "lancedb", "langgraph", "llamaindex")
_ON_S += ("mcp-memory-service", "mcp-memory-service-all", "mempalace", "qdrant")
_SYSTEMS = {
    "locomo-turn": ((*_LOCOMO[:4], "--level", "turn"), ("all",), "all"),
    "locomo-session": ((*_LOCOMO[:4], "--level", "session"), ("all",), "all"),
    # The text of a session on which MemPalace states its own figure; all 499 questions take hours.
    # mem0 joins the lines of a text before it asks for its vector, which alone takes another hour.
    "longmemeval-s": ((*_S, "--session-doc", "user-only", "--sample", "100"), _ON_S, "all"),
    # One index of 105,591 turns: mcp-memory-service had not stored them after 50 minutes, and those
    # that store some tens of turns a second would take hours.
    "wmb-b": (
        _WMB[:6],
        ("chroma", "faiss", "lancedb", "qdrant"),
        "go",
    ),
}
"""Data, systems and SDKs of the benches that measure systems beside SDKs."""
_MODES = {"locomo-turn": "bm25,semantic,hybrid,conversation"}
"""Modes of the SDKs in those benches, if not all but `conversation`, which ranks turns."""
_NO_MODEL = {
    f"locomo-{level}-no-model": (
        *(*_LOCOMO[:4], "--level", level),
        *(part for name in names for part in ("--system", name)),
        *("--sdk", "go", "--no-skip", "--mode", "bm25,semantic"),
    )
    for level, names in (
        # Cognee stores two texts a second, so that 5,882 turns would take an hour; Graphiti fails
        # after some 2,000 (docs/SYSTEMS.md).
        ("turn", ("mem0-infer", "server-memory")),
        ("session", ("mem0-infer", "graphiti", "cognee")),
    )
}
"""Arguments of the benches of systems whose language model the scripted upstream stands in for."""

_LIGHT = (
    "svg { --ink: #1b1f24; --muted: #59636e; --line: #d1d9e0; --series-0: #0b61a4;"
    " background: #fff }"
)
"""The colours of a report's light theme, for charts outside of one."""

_ASKED = ("--sdk", "all", "--no-skip", "-k", "5,10", "--require-agreement")
_ANSWERS = {
    "longmemeval-s": (*_S, "--limit", "50", *_ASKED),
    "locomo": (*_LOCOMO[:4], "--level", "session", "--limit", "500", *_ASKED),
}
"""Arguments of the benches whose rankings are read for the published answers."""
_READ = ("--reader", "fake", "--judge", "fake", "--top-k", "5")


def measure(mode: str) -> dict[str, Any]:
    """Run lme in a mode on all SDKs, and return the figures to publish."""
    with tempfile.TemporaryDirectory() as output:
        report = Path(output) / "report.json"
        command = ["run", "--data", "lme", "--corpus", "lme", "--mode", mode]
        command += [part for sdk in _SDKS for part in ("--sdk", sdk)]
        command += ["--scenario", "search-retrieve-only", "--scorer", "exact", "--quiet"]
        subprocess.run(
            [_PROGRAM, *command, "--floor", "0", "--output", output, "--json", report],
            cwd=_CHECKOUT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        measured = json.loads(report.read_text())
    agreement = measured["agreement"]
    if agreement["rankings_equal"] != agreement["questions"]:
        sys.exit(f"{mode}: the SDKs do not agree: {agreement}")
    run = measured["runs"][0]
    figures = {key: run[key] for key in (*_PUBLISHED_KEYS, "pass_rate_interval")}
    passed_by_tag: dict[str, list[int]] = {}
    for question in run["questions"]:
        if question["verdict"] != "not_applicable":
            for tag in question["tags"]:
                counts = passed_by_tag.setdefault(tag, [0, 0])
                counts[0] += question["passed"]
                counts[1] += 1
    provenance = run["provenance"]
    return figures | {
        "sdks": agreement["sdks"],
        "rankings_equal": agreement["rankings_equal"],
        "top_k": provenance["settings"]["top_k"],
        "dataset_sha256": provenance["dataset_sha256"],
        "by_tag": passed_by_tag,
    }


def measure_mutation(*flags: str) -> dict[str, Any]:
    """Return the mutation report, with only the surviving ones of its hundreds of mutants."""
    with tempfile.TemporaryDirectory() as output:
        report = Path(output) / "report.json"
        subprocess.run([_PROGRAM, "mutate", *flags, "--json", report], cwd=_CHECKOUT, check=True)
        measured: dict[str, Any] = json.loads(report.read_text())
    mutants = measured.pop("mutants")
    measured.pop("command")
    return measured | {"living": [mutant for mutant in mutants if mutant["fate"] != "killed"]}


def measure_clients() -> dict[str, Any]:
    """Return how many broken clients the cases find, and what they find in public clients."""
    broken = measure_mutation("--clients")
    rows = [_client_row(path.parent) for path in sorted(_CHECKOUT.glob("sdks/clients/*/sdk.toml"))]
    return {
        "measured_on": date.today().isoformat(),  # noqa: DTZ011 - the day of whoever publishes
        "broken": {name: broken[name] for name in ("killed", "total", "survivors", "cases")},
        "rows": rows,
    }


def _client_row(folder: Path) -> dict[str, Any]:
    """What `memconform client` counts for the client of one folder."""
    with tempfile.TemporaryDirectory() as output:
        report = Path(output) / "report.json"
        command = (_PROGRAM, "client", "--sdk", folder, "--quiet", "--json", report)
        subprocess.run([*command, "--output", output], cwd=_CHECKOUT, check=False)
        [sdk] = ConformReport.model_validate_json(report.read_bytes()).sdks
    checks = [check for case in sdk.cases for check in case.checks]
    counts = Counter(check.result.value for check in checks)
    applicable = sum(case.result is not Result.NOT_APPLICABLE for case in sdk.cases)
    causes = Counter(cause.cause for check in checks for cause in check.causes)
    return {
        "name": folder.name,
        "driver": sdk.driver,
        "cases": applicable,
        "checks": {name: counts[name] for name in ("pass", "fail", "warn", "untestable")},
        "causes": dict(causes.most_common()),
    }


def measure_bench(name: str) -> dict[str, Any]:
    """Run a bench on the real files, and return its report without paths of this machine."""
    return _shown_bench(_BENCHES[name])


def _shown_bench(arguments: Sequence[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as output:
        measured = _bench(arguments, Path(output))
    measured["command"] = ["memconform", "bench", *(part.rpartition("/")[2] for part in arguments)]
    measured["source"]["path"] = Path(measured["source"]["path"]).name
    return measured


def measure_systems(name: str) -> dict[str, Any]:
    """Run a bench of all systems and SDKs, and return its report without paths of this machine."""
    with tempfile.TemporaryDirectory() as output:
        # The vectors of the items are cached now, so that no system pays for those that follow it.
        _bench((*_SYSTEMS[name][0], "--system", "flat-dense", *_MINILM), Path(output))
    return _shown_bench(_of_systems(name))


def _of_systems(name: str) -> tuple[str, ...]:
    """The arguments of a bench of systems."""
    data, systems, sdk = _SYSTEMS[name]
    named = (part for system in systems for part in ("--system", system))
    modes = _MODES.get(name, "bm25,semantic,hybrid")
    return (*data, *named, "--sdk", sdk, "--no-skip", "--mode", modes, *_MINILM)


def measure_no_model(name: str) -> dict[str, Any]:
    """Run a bench of systems without their language model; what it returns is as above."""
    return _shown_bench((*_NO_MODEL[name], *_MINILM))


def _bench(arguments: Sequence[str], output: Path) -> dict[str, Any]:
    """Run a bench whose results go to `output`, and return its report."""
    data = Path(os.environ.get("MEMCONFORM_DATA") or _CHECKOUT.parent / "shared" / "data")
    flags = [str(data / part.removeprefix("@")) if part[0] == "@" else part for part in arguments]
    report = output / "report.json"
    command: list[str | Path] = [_PROGRAM, "bench", *flags, "--output", output, "--json", report]
    subprocess.run(command, cwd=_CHECKOUT, check=True)
    measured: dict[str, Any] = json.loads(report.read_text())
    return measured


def measure_answers(name: str) -> dict[str, Any]:
    """Have the rankings of a bench read, and return the report: ids and figures, no texts."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder)
        run: str = _bench(_ANSWERS[name], output)["run_id"]
        report = output / "answers.json"
        command: list[str | Path] = [_PROGRAM, "score", run, *_READ]
        command += ["--output", output, "--json", report]
        # Replies of the scripted reader are cached apart from those that somebody paid for.
        cache = {"MEMCONFORM_CACHE": str(output / "cache")}
        subprocess.run(command, cwd=_CHECKOUT, env=os.environ | cache, check=True)
        measured: dict[str, Any] = json.loads(report.read_text())
    if measured["exit_code"] or any(arm["failures"] for arm in measured["arms"]):
        # Messages of failures are the one text of a report that may quote the benchmark.
        sys.exit(f"{name}: not every question was answered")
    bench = ("memconform", "bench", *(part.rpartition("/")[2] for part in _ANSWERS[name]))
    measured["command"] = [*bench, "&&", "memconform", "score", run, *_READ]
    measured["data"]["path"] = Path(measured["data"]["path"]).name
    return measured


def measure_replay() -> dict[str, Any]:
    """Replay 50 questions, and return the results and their comparison: figures, no texts."""
    data = Path(os.environ.get("MEMCONFORM_DATA") or _CHECKOUT.parent / "shared" / "data")
    file = data / _S[3].removeprefix("@")
    arguments = ("lme", "tri", "--data", str(file), "--sample", "50")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder)
        cache = {"MEMCONFORM_CACHE": str(output / "cache"), "JB_LLM_PROVIDER": "fake"}
        command: list[str | Path] = [_PROGRAM, *arguments, "--output", output / "out"]
        subprocess.run(command, cwd=_CHECKOUT, env=os.environ | cache, check=True)
        results = [json.loads((output / f"out/result-{sdk}.json").read_text()) for sdk in _SDKS]
        parity = json.loads((output / "out/parity.json").read_text())
    if parity["verdict"] != "identical":
        sys.exit(f"the SDKs are not identical: {parity['verdict']}")
    shown = ["memconform", *(Path(part).name for part in arguments)]
    for report in (*results, parity):
        report["command"] = shown
    for result in results:
        result["questions"] = []
    return {"results": results, "parity": parity}


def measure_run(sdk: str) -> dict[str, Any]:
    """Ask 40 questions of lme; one of the three daemons is the example that is not conformant."""
    arguments = [*("run", "--sdk", sdk, "--data", "lme", "--limit", "40", "--floor", "0")]
    arguments += ("--scenario", "search-retrieve-only", "--mode", "bm25")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([_PROGRAM, *arguments, "--output", folder], cwd=_CHECKOUT, check=True)
        [result] = Path(folder).glob("runs/*/result.json")
        loaded: dict[str, Any] = json.loads(result.read_text())
    loaded["provenance"]["command"] = ["memconform", *arguments]
    loaded["provenance"]["dataset_path"] = "datasets/lme.jsonl"
    return loaded


def _publish(name: str, measured: dict[str, Any]) -> None:
    file = _PUBLISHED / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(measured, indent=1) + "\n")


def draw_systems(name: str) -> None:
    """Draw the chart of a published bench of systems, as its report has it, for docs/SYSTEMS.md."""
    report = BenchReport.model_validate_json((_PUBLISHED / "systems" / f"{name}.json").read_bytes())
    chart = quality_and_cost(report)
    assert chart is not None  # noqa: S101 - it has many rows with latencies
    head, _, rest = chart.svg.partition(">")
    picture = _CHECKOUT / "docs" / "pictures" / f"systems-{name}.svg"
    picture.write_text(f"{head}><style>{_LIGHT}</style>{rest}\n", encoding="utf-8")


def main() -> None:
    parts = sys.argv[1:]
    measurements: dict[str, Callable[[], dict[str, Any]]] = {}
    if "lme" in parts:
        measurements |= {f"lme-{mode}": partial(measure, mode) for mode in LME_MODES}
    if "mutation" in parts:
        measurements["mutation"] = measure_mutation
    if "clients" in parts:
        measurements["clients"] = measure_clients
    if "public" in parts:
        measurements["public"] = bench_public.measure
    if "replay" in parts:
        measurements["replay"] = measure_replay
    for folder, names, take in (
        ("runs", _RUNS, measure_run),
        ("bench", _BENCHES, measure_bench),
        ("systems", _SYSTEMS, measure_systems),
        ("systems", _NO_MODEL, measure_no_model),
        ("answers", _ANSWERS, measure_answers),
    ):
        for name in names:
            if folder in parts or f"{folder}/{name}" in parts:
                measurements[f"{folder}/{Path(name).name}"] = partial(take, name)
    # Written at the end: a changed file would make the revision of the next result a dirty one.
    measured = {name: take() for name, take in measurements.items()}
    for name, figures in measured.items():
        _publish(name, figures)
        folder, _, bench = name.partition("/")
        if folder == "systems" and bench in _SYSTEMS:
            draw_systems(bench)
    update(_CHECKOUT, check=False)


if __name__ == "__main__":
    main()
