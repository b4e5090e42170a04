"""Measures what the reference daemons reach on lme, and writes it where README tables come from.

python scripts/publish.py            measure, write results/published/ and the table
python scripts/publish.py --table    only write the table anew from results/published/
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_CHECKOUT = Path(__file__).resolve().parents[1]
_PUBLISHED = _CHECKOUT / "results" / "published"
_README = _CHECKOUT / "datasets" / "README.md"
_BEGIN, _END = "<!-- lme: begin -->\n", "<!-- lme: end -->"
_SDKS = ("go", "ts", "py")
_KEPT = ("dataset", "scenario", "mode", "scorer", "total", "passed", "pass_rate")
_MODES = ("bm25", "semantic", "hybrid")


def measure(mode: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as output:
        report = Path(output) / "report.json"
        command = ["run", "--dataset", "lme", "--corpus", "lme", "--mode", mode]
        command += [part for sdk in _SDKS for part in ("--sdk", sdk)]
        command += ["--scenario", "search-retrieve-only", "--scorer", "exact", "--quiet"]
        program = Path(sys.executable).with_name("memconform")
        subprocess.run(
            [program, *command, "--floor", "0", "--output", output, "--json", report],
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


def main() -> None:
    if "--table" not in sys.argv:
        _PUBLISHED.mkdir(parents=True, exist_ok=True)
        for mode in _MODES:
            text = json.dumps(measure(mode), indent=1) + "\n"
            (_PUBLISHED / f"lme-{mode}.json").write_text(text)
    before, _, rest = _README.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    _README.write_text(before + _BEGIN + table(published()) + _END + after)


if __name__ == "__main__":
    main()
