"""Measure how many planted defects `fuzz --against oracle` finds, and after how many programs.

Takes a sample of the mutants that `memconform mutate` has for the rules that programs can break,
starts a Python daemon with each, and fuzzes it without shrinking.

    python scripts/fuzz_strength.py --mutants 60 --examples 100 --shard 1/4 --json 1.json
    python scripts/fuzz_strength.py --merge 1.json 2.json 3.json 4.json
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.mutation.mutant_runner import MutantRunner
from memconform.conformance.mutation.mutant_table import mutants
from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.errors import MemconformError
from memconform.fuzzing.configuration_probe import probe
from memconform.fuzzing.failures import BrainLostError
from memconform.fuzzing.judges import Answers, Finding, OracleJudge
from memconform.fuzzing.programs import Program
from memconform.fuzzing.session import find_disagreement, serve_sdks

_SDK = Path(__file__).parents[1] / "sdks" / "py"
_PREFIXES = ("wire.", "core.", "ask.", "documents.", "events.")
_UNREACHED = (
    "core.health", "core.version", "core.mode.failure", "core.rank.rerank", "core.ingest.embedder",
    "ask.upstream", "ask.flush", "ask.disconnect", "ask.question-date", "ask.reader.prompt",
    "ask.reader.citation", "ask.error", "events.prompt", "events.ping", "events.slow",
)  # fmt: skip
"""Rules on what programs do not meet: services, silence, time, and clients that do not read."""


@dataclass(frozen=True)
class Trial:
    """What became of a mutant."""

    id: str
    rule: str
    found_after: int | None
    """Programs until the first finding, counting its own; None if there was none."""
    blamed: str = ""
    """The rule that was reported."""
    note: str = ""


class _CountingJudge:
    """An oracle that counts the programs until its first finding."""

    distinguishes = True

    def __init__(self, judge: OracleJudge) -> None:
        self._judge = judge
        self.count = 0
        self.found_after: int | None = None
        self.blamed = ""

    def findings(self, program: Program, answers: Answers) -> Iterator[Finding]:
        if self.found_after is None:
            self.count += 1
        for finding in self._judge.findings(program, answers):
            if self.found_after is None:
                self.found_after, self.blamed = self.count, finding.difference.rule
            yield finding


def sample(count: int, seed: int) -> list[Mutant]:
    """Draw mutants of rules that programs can break."""
    reached = [
        mutant
        for mutant in mutants()
        if mutant.rule.startswith(_PREFIXES) and not mutant.rule.startswith(_UNREACHED)
    ]
    return random.Random(seed).sample(reached, min(count, len(reached)))  # noqa: S311 - a sample


async def attempt(mutant: Mutant, examples: int, seed: int, folder: Path) -> Trial:
    """Fuzz a daemon with one defect."""
    runner = MutantRunner(ManifestRunner(load_manifest(_SDK / "sdk.toml"), _SDK), mutant.mutation)
    await runner.build(lambda _: None)
    judge = None
    try:
        async with serve_sdks([runner], folder) as targets:
            providers = await asyncio.to_thread(probe, runner, targets[runner.name])
            judge = _CountingJudge(OracleJudge({runner.name: providers}))
            await asyncio.to_thread(
                find_disagreement,
                targets,
                set(runner.profiles),
                examples=examples,
                seed_value=seed,
                tried=lambda: None,
                stop=threading.Event(),
                judge=judge,
                shrinks=False,
            )
    except (MemconformError, BrainLostError) as error:
        # A daemon that does not even create brains is found before the first program.
        after = judge.found_after if judge is not None else None
        return Trial(mutant.id, mutant.rule, after or 0, note=str(error)[:200])
    return Trial(mutant.id, mutant.rule, judge.found_after, judge.blamed)


def table(trials: Sequence[Trial], examples: int) -> str:
    """Format the trials by section of the contract."""
    sections: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        sections[trial.rule.partition(".")[0]].append(trial)
    lines = [
        f"| rules | mutants | found in 10 programs | in {examples} | median | per 1,000 |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, rows in [*sorted(sections.items()), ("all", list(trials))]:
        found = [row.found_after for row in rows if row.found_after is not None]
        early = sum(after <= 10 for after in found)
        spent = sum(row.found_after if row.found_after is not None else examples for row in rows)
        rate = f"{1000 * len(found) / spent:.0f}" if spent else ""
        middle = f"{median(found):.0f}" if found else ""
        lines.append(f"| {name} | {len(rows)} | {early} | {len(found)} | {middle} | {rate} |")
    return "\n".join(lines)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shard", default="1/1")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--merge", type=Path, nargs="+")
    given = parser.parse_args()
    if given.merge:
        trials = [Trial(**row) for path in given.merge for row in json.loads(path.read_text())]
    else:
        number, _, count = given.shard.partition("/")
        drawn = sample(given.mutants, given.seed)[int(number) - 1 :: int(count)]
        trials = []
        for mutant in drawn:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                trial = asyncio.run(attempt(mutant, given.examples, given.seed, Path(folder)))
            trials.append(trial)
            if given.json:
                given.json.write_text(json.dumps([asdict(t) for t in trials], indent=1) + "\n")
            print(f"{trial.found_after} {mutant.id} {trial.blamed} {trial.note}", file=sys.stderr)
    print(table(trials, given.examples))
    missed = [f"{trial.id} ({trial.rule})" for trial in trials if trial.found_after is None]
    print("\nmissed: " + ", ".join(missed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
