"""`memconform load` from the command line: what is counted, and what is not measured.

How fast anything is depends on the machine, and no test here on that: a step may always be one that
the harness was too slow for, which the report then says.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from jsonschema import Draft202012Validator

from memconform.load.arrivals import arrivals
from memconform.load.plan import Step
from tests.conftest import Ended

Call = Callable[..., Ended]

_LOAD = ("--rate", "20", "--duration", "1s", "--mode", "bm25", "--max-lateness", "600000")
"""Whatever its lateness, a step is measured unless the harness uses a whole processor."""


def _sdk(folder: Path, fault: str, name: str = "loaded") -> Path:
    argv = ["{python}", "-m", "tests.fakes.under_load", "--addr", "{addr}"]
    argv += ["--fault", fault] if fault else []
    path = folder / f"{name}.toml"
    path.write_text(
        f'name = "{name}"\nlanguage = "python"\n'
        f'[serve]\nargv = {json.dumps(argv)}\nport = "announced"\n'
        '[capabilities]\nprofiles = ["core", "ask"]\nmodes = ["auto", "bm25"]\n'
    )
    return path


def _report(ended: Ended) -> dict[str, Any]:
    [path] = (ended.folder / "results" / "runs").glob("*-load-*/result.json")
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


def _is_measured(step: dict[str, Any]) -> bool:
    """Whether a step counts; if not, it was the harness or the machine, and has no figures."""
    if step["status"] == "measured":
        assert step["failure"] is None
        return True
    assert step["failure"]["code"] in ("harness_overloaded", "machine_busy")
    assert step["achieved_per_s"] is None
    assert all(each["latency"] is each["service"] is None for each in step["operations"])
    return False


@pytest.mark.capability("load")
def test_two_sdks_get_the_same_requests_and_stand_side_by_side(
    installed: Call, dataset: Path, workspace: Path
) -> None:
    sdks = [_sdk(workspace, "", name) for name in ("one", "two")]
    ended = installed(
        "load", "--sdk", sdks[0], "--sdk", sdks[1], "--data", dataset, *_LOAD, "--closed", "2",
        "--mix", "search=0.7,ask=0.2,ingest=0.1", "--slow-readers", "1", "--json", "-",
    )  # fmt: skip
    report = json.loads(ended.out)
    schema = json.loads(installed("load", "--schema").out)
    Draft202012Validator(schema).validate(report)
    assert _report(ended) == report
    assert [sdk["sdk"] for sdk in report["sdks"]] == ["one", "two"]
    planned = list(arrivals(Step(rate=20), 1, report["mix"], 12, report["seed"]))
    measured = []
    for sdk in report["sdks"]:
        assert (sdk["incident"], sdk["steady_questions"]) == (None, 12)
        assert sdk["seed"]["documents"] == 12
        opened, closed = sdk["steps"]
        assert (opened["rate"], closed["workers"]) == (20, 2)
        assert opened["offered"] == opened["sent"] == len(planned)
        for each in opened["operations"]:
            assert each["sent"] == sum(a.operation == each["operation"] for a in planned)
            assert each["answered"] + sum(each["errors"].values()) == each["sent"]
            if _is_measured(opened):
                histogram = HdrHistogram.decode(each["latency"]["histogram"])
                assert histogram.get_total_count() == each["answered"]
        assert closed["sent"] > 0
        assert all(each["latency"] is None for each in closed["operations"])
        assert opened["daemon"]["rss_peak_bytes"] > 0
        assert opened["slow_readers"]["opened"] > 0
        assert opened["slow_readers"]["errors"] == {}
        measured.append([_is_measured(step) for step in sdk["steps"]])
    assert (ended.code == 0) is all(any(steps) for steps in measured)
    assert ended.code in (0, 3)
    assert "one" in ended.err
    assert "steps measured" in ended.err


def test_failures_are_counted_by_code_and_have_no_latency(
    memconform: Call, scripted: Callable[..., Path], dataset: Path
) -> None:
    """Every ask breaks; a quantile of the searches alone would be a plausible number."""
    ended = memconform(
        "load", "--sdk", scripted("cuts_stream", on="box"), "--data", dataset, *_LOAD,
        "--mix", "search=0.5,ask=0.5", "--quiet",
    )  # fmt: skip
    [step] = _report(ended)["sdks"][0]["steps"]
    search, ask = step["operations"]
    assert (search["errors"], search["answered"]) == ({}, search["sent"])
    assert (ask["answered"], ask["errors"]) == (0, {"connection_broken": ask["sent"]})
    assert ask["sent"] > 0
    if _is_measured(step):
        quantiles = [ask["latency"][q] for q in ("p50_ms", "p99_ms", "max_ms")]
        assert quantiles == [None, None, None]
        assert step["saturated"] is True
        assert any("connection_broken" in reason for reason in step["reasons"])


@pytest.mark.parametrize(
    ("fault", "code", "mix"),
    [
        ("loses_document", "brain_changed", "search=1"),
        ("dies", "daemon_died", "search=1"),
        ("drops_writes", "writes_lost", "search=0.2,ingest=0.8"),
    ],
)
def test_a_daemon_that_breaks_under_load_is_not_measured(
    memconform: Call, dataset: Path, workspace: Path, fault: str, code: str, mix: str
) -> None:
    ended = memconform(
        "load", "--sdk", _sdk(workspace, fault), "--data", dataset, *_LOAD, "--mix", mix,
        "--closed", "1",
    )  # fmt: skip
    assert ended.code == 3, ended.err
    [sdk] = _report(ended)["sdks"]
    [step] = sdk["steps"]
    assert (step["status"], step["saturated"]) == ("not_measured", None)
    assert all(each["latency"] is each["service"] is None for each in step["operations"])
    assert step["failure"]["code"] == sdk["incident"]["code"] == code
    assert sdk["saturation"]["sustained"] is None
    assert code in ended.err


def test_a_daemon_that_answers_one_after_another_is_saturated(
    memconform: Call, dataset: Path, workspace: Path
) -> None:
    """It answers five searches a second at most, of twenty; a slower machine changes nothing."""
    ended = memconform("load", "--sdk", _sdk(workspace, "one_at_a_time"), "--data", dataset, *_LOAD)
    [sdk] = _report(ended)["sdks"]
    [step] = sdk["steps"]
    assert step["answered"] == step["sent"] == step["offered"] > 5
    if _is_measured(step):
        assert ended.code == 0
        assert step["saturated"] is True
        assert step["achieved_per_s"] < 0.95 * step["offered_per_s"]
        assert (sdk["saturation"]["sustained"], sdk["saturation"]["saturated_at"]) == (None, 20)
        assert "saturated at 20/s: achieved" in ended.out
        # The last one waited for all before it, from its own instant on.
        [search] = step["operations"]
        assert search["latency"]["max_ms"] > 1_000 * (step["answered"] * 0.2 - 1) * 0.99


def test_a_search_that_finds_less_under_load_is_no_answer(
    memconform: Call, dataset: Path, workspace: Path
) -> None:
    """A daemon that answers fast and finds nothing is not fast."""
    ended = memconform("load", "--sdk", _sdk(workspace, "other_ranking"), "--data", dataset, *_LOAD)
    assert ended.code == 3
    [step] = _report(ended)["sdks"][0]["steps"]
    assert step["operations"][0]["errors"] == {"other_ranking": step["sent"]}
    assert step["answered"] == 0
    assert step["failure"]["code"] in ("nothing_answered", "harness_overloaded")


def test_a_threshold_of_a_step_too_short_for_it_is_undecided(
    memconform: Call, dataset: Path, workspace: Path
) -> None:
    ended = memconform(
        "load", "--sdk", _sdk(workspace, ""), "--data", dataset, *_LOAD, "--max-p99", "600000"
    )
    [step] = _report(ended)["sdks"][0]["steps"]
    assert ended.code == (5 if _is_measured(step) else 3)


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--rate", "fast"), ("--rate", "0"), ("--closed", "0"), ("--mix", "search"),
     ("--mix", "delete=1"), ("--mix", "search=0"), ("--duration", "soon")],
)  # fmt: skip
def test_an_invalid_flag_is_a_usage_error(memconform: Call, flag: str, value: str) -> None:
    ended = memconform("load", "--sdk", "py", flag, value)
    assert (ended.code, ended.out) == (2, "")
    assert value in ended.err
    assert "Traceback" not in ended.err


def test_an_sdk_that_cannot_answer_is_refused_before_it_starts(
    memconform: Call, dataset: Path, workspace: Path
) -> None:
    path = _sdk(workspace, "")
    path.write_text(path.read_text().replace('"core", "ask"', '"core"'))
    ended = memconform("load", "--sdk", path, "--data", dataset, *_LOAD, "--mix", "ask=1")
    assert ended.code == 2
    assert "does not claim the profile ask" in ended.err
    assert not list(workspace.glob("results/runs/*"))
