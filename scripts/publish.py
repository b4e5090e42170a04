"""Measures what READMEs show, and writes it where their tables come from.

python scripts/publish.py lme         measure, write results/published/, and the tables
python scripts/publish.py mutation    the same for the mutation score, which takes minutes
python scripts/publish.py             only write the tables anew from results/published/
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from memconform.conformance.mutation.results import Score
from memconform.reports.mutation import mutation_table

_CHECKOUT = Path(__file__).resolve().parents[1]
_PUBLISHED = _CHECKOUT / "results" / "published"
_LME_README = _CHECKOUT / "datasets" / "README.md"
_README = _CHECKOUT / "README.md"
_MUTATION = _PUBLISHED / "mutation.json"
_PROGRAM = Path(sys.executable).with_name("memconform")
_SDKS = ("go", "ts", "py")
_KEPT = ("dataset", "scenario", "mode", "scorer", "total", "passed", "pass_rate")
_MODES = ("bm25", "semantic", "hybrid")


def measure(mode: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as output:
        report = Path(output) / "report.json"
        command = ["run", "--dataset", "lme", "--corpus", "lme", "--mode", mode]
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
    kept = {key: run[key] for key in (*_KEPT, "pass_rate_interval")}
    passed_by_tag: dict[str, list[int]] = {}
    for question in run["questions"]:
        if question["verdict"] != "not_applicable":
            for tag in question["tags"]:
                counts = passed_by_tag.setdefault(tag, [0, 0])
                counts[0] += question["passed"]
                counts[1] += 1
    provenance = run["provenance"]
    return kept | {
        "sdks": agreement["sdks"],
        "rankings_equal": agreement["rankings_equal"],
        "top_k": provenance["settings"]["top_k"],
        "dataset_sha256": provenance["dataset_sha256"],
        "by_tag": passed_by_tag,
    }


def table(results: list[dict[str, Any]]) -> str:
    lines = [
        "| mode | passed | rate | 95 % interval | rankings equal |",
        "| --- | --- | --- | --- | --- |",
    ]
    for result in results:
        low, high = result["pass_rate_interval"]
        lines.append(
            f"| {result['mode']} | {result['passed']} of {result['total']}"
            f" | {result['pass_rate']:.3f} | {low:.3f} to {high:.3f}"
            f" | {', '.join(result['sdks'])}: {result['rankings_equal']} of {result['total']} |"
        )
    return "\n".join(lines) + "\n"


def published() -> list[dict[str, Any]]:
    return [json.loads((_PUBLISHED / f"lme-{mode}.json").read_text()) for mode in _MODES]


def measure_mutation() -> dict[str, Any]:
    """The report without what each of hundreds of mutants came to, but for those that live."""
    with tempfile.TemporaryDirectory() as output:
        report = Path(output) / "report.json"
        subprocess.run([_PROGRAM, "mutate", "--json", report], cwd=_CHECKOUT, check=True)
        measured: dict[str, Any] = json.loads(report.read_text())
    mutants = measured.pop("mutants")
    measured.pop("command")
    return measured | {"living": [mutant for mutant in mutants if mutant["fate"] != "killed"]}


def published_mutation_table() -> str:
    by_profile = json.loads(_MUTATION.read_text())["by_profile"]
    return mutation_table({name: Score(**score) for name, score in by_profile.items()}) + "\n"


def _write_table(file: Path, name: str, text: str) -> None:
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, _, rest = file.read_text().partition(begin)
    _, _, after = rest.partition(end)
    file.write_text(before + begin + text + end + after)


def _publish(file: Path, measured: dict[str, Any]) -> None:
    _PUBLISHED.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(measured, indent=1) + "\n")


def main() -> None:
    if "lme" in sys.argv:
        for mode in _MODES:
            _publish(_PUBLISHED / f"lme-{mode}.json", measure(mode))
    if "mutation" in sys.argv:
        _publish(_MUTATION, measure_mutation())
    _write_table(_LME_README, "lme", table(published()))
    if _MUTATION.is_file():
        _write_table(_README, "mutation", published_mutation_table())


if __name__ == "__main__":
    main()
