"""`memconform lme` on a small dataset with scripted daemons."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import Ended

Call = Callable[..., Ended]

MODEL = "openai:gpt-4o-2024-08-06"
"""A model with a price, whose client is pointed at the scripted upstream."""
BULK = (
    *("--dataset", "lme.json", "--ingest-mode", "bulk", "--retrieval-mode", "bm25"),
    *("--upstream", "own", "--quiet"),
)
FAKE = ("--actor", "fake", "--judge", "fake", "--extract-model", "fake")
PRICED = ("--actor", MODEL, "--judge", MODEL, "--extract-model", MODEL)
NO_FILTER = ("--actor-filter-question-sessions", "off")

_TIMES = {"started_at", "took_s", "retrieval_ms", "reader_ms", "judge_ms", "search_ms"}
_TIMES |= {"latency", "latency_p50_ms", "command", "ingest_ms", "ready_ms", "rss_peak_bytes"}
_TIMES |= {"cpu_seconds", "p", "identical_p50_ms"}
_CALLS = {"cost_accounting", "cached", "cost_usd", "input_tokens", "output_tokens"}


def write_sdk(
    folder: Path,
    name: str = "scripted",
    fault: str = "",
    *,
    on: str = "",
    note: Path | None = None,
    first: str = "",
) -> Path:
    """Write the manifest of a scripted daemon with one fault; `first` runs before it."""
    argv = ["{python}", "-m", "tests.fakes.scripted", "--addr", "{addr}"]
    argv += ["--fault", fault] if fault else []
    argv += ["--on", on] if on else []
    argv += ["--note", str(note)] if note else []
    if first:
        argv = ["sh", "-c", f'{first}; exec "$0" "$@"', *argv]
    path = folder / f"{name}.toml"
    path.write_text(
        f'name = "{name}"\nlanguage = "python"\n'
        f'[serve]\nargv = {json.dumps(argv)}\nport = "announced"\n[ready]\ntimeout_s = 120\n'
        '[capabilities]\nprofiles = ["core", "ask"]\nmodes = ["auto", "bm25"]\n'
    )
    return path


def load(folder: Path, name: str = "result-scripted.json") -> dict[str, Any]:
    """A JSON file of a replay's folder."""
    loaded: dict[str, Any] = json.loads((folder / name).read_text())
    return loaded


def verdicts(folder: Path, sdk: str = "scripted") -> list[str]:
    """What became of each question: its verdict, or why it has none."""
    questions = load(folder, f"result-{sdk}.json")["questions"]
    return [each["code"] or each["judge_verdict"] for each in questions]


def stable(value: Any, *, calls: bool = True) -> Any:
    """The value without times, and without what calls took unless `calls`."""
    dropped = _TIMES if calls else _TIMES | _CALLS
    if isinstance(value, dict):
        return {k: stable(v, calls=calls) for k, v in value.items() if k not in dropped}
    if isinstance(value, list):
        return [stable(each, calls=calls) for each in value]
    return value


def require_whole_files(folder: Path) -> None:
    """Every JSON file parses, and every line of a journal is complete."""
    for path in folder.rglob("*.json"):
        json.loads(path.read_text())
    for path in folder.rglob("journals/*/*.jsonl"):
        data = path.read_bytes()
        assert data.endswith(b"\n"), path
        for line in data.splitlines():
            json.loads(line)
