"""`memconform answer` on the public files through the vendors' clients, over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest

from memconform.bench.answering.arms import CONTROLS
from tests.integration.answer_bench import NAMES, Call
from tests.integration.scripted_llm import Service
from tests.integration.test_benchmark_data import LOCOMO, LONGMEMEVAL, real

_FIGURES = ("views", "with_gold", "without_gold", "kept", "f1", "statuses", "failures", "cut")


def _answers(
    memconform: Call, run: str, reader: str, judge: str, arms: str
) -> tuple[dict[str, Any], dict[tuple[str, str], Any]]:
    """The figures of each arm, and each answer with its passages and its verdict."""
    ended = memconform(
        *("score", run, "--reader", reader, "--judge", judge, "--top-k", "3", "--arms", arms),
        *("--context-tokens", "128000", "--json", "answers.json", "--quiet"),
    )
    assert ended.code == 0, ended.err
    report = json.loads((ended.folder / "answers.json").read_text())
    result = ended.folder / "results" / "runs" / report["run_id"] / "result.json"
    rows = json.loads(result.read_text())["questions"]
    return (
        {arm["name"]: {key: arm[key] for key in _FIGURES} for arm in report["arms"]},
        {
            (row["arm"], row["question"]): (row["answer"], row["shown"], row["status"])
            for row in rows
        },
    )


@real
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("suite", "limit"),
    [
        ("longmemeval", ("--limit", "20")),
        # Takes more than a minute.
        pytest.param("locomo", (), id="locomo-whole", marks=pytest.mark.slow),
    ],
)
def test_the_public_files_get_equal_figures_from_each_vendors_client(
    memconform: Call, workspace: Path, service: Service, suite: str, limit: tuple[str, ...]
) -> None:
    """Twenty questions of LongMemEval, or all 199 of one conversation of LoCoMo, without the arm
    whose prompts take longest.

    The scripted service reads and judges by the same rules as `fake`, so that a prompt that a
    client changes, a reply that it loses or a format that it reads differently changes a figure.
    """
    if suite == "longmemeval":
        flags = limit
        data = LONGMEMEVAL / "longmemeval_oracle.json"
        arms = ",".join(CONTROLS)
    else:
        flags, data = ("--level", "session", *limit), workspace / "one.json"
        arms = ",".join(name for name in CONTROLS if name != "full-context")
        data.write_text(json.dumps(json.loads(LOCOMO.read_text())[:1]))
    given = ("--suite", suite, "--data", data, *flags, "--system", "flat-bm25", "-k", "3")
    ended = memconform("bench", *given, "--json", "bench.json", "--quiet")
    assert ended.code == 0, ended.err
    run = json.loads((ended.folder / "bench.json").read_text())["run_id"]
    figures, answers = _answers(memconform, run, "fake", "fake", arms)
    assert list(figures) == ["flat-bm25", *arms.split(",")]
    assert service.calls == 0
    right = [arm["views"]["all"]["overall"]["correct"] for arm in figures.values()]
    # Equal figures of readers that all fail, or all pass, would show nothing.
    assert 0 < min(right) < max(right) < len(answers) / len(figures)
    asked = 0
    for name, other in zip(NAMES, reversed(NAMES), strict=True):
        same_figures, same_answers = _answers(memconform, run, name, other, arms)
        assert same_answers == answers
        assert same_figures == figures
        assert service.calls > asked
        asked = service.calls
