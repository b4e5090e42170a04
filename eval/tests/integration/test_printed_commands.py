"""Every command that real runs print works, in the folder and with the flags of the run."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from memconform.reports.html.views import repeat_command
from memconform.runs.stored_run import read_summary
from tests.conftest import Ended

Call = Callable[..., Ended]

_ASKED = ("--scenario", "search-retrieve-only", "--seed-reference-brain", "--floor", "0.1")


def _manifest(folder: Path, name: str, fault: str = "") -> Path:
    """A scripted daemon that retrieves one chunk less for one question, or has another fault."""
    argv = ["{python}", "-m", "tests.fakes.scripted", "--addr", "{addr}"]
    argv += ["--fault", fault, "--on", "box7?"] if fault else []
    path = folder / f"the {name}" / "sdk.toml"
    path.parent.mkdir()
    path.write_text(
        f'name = "{name}"\nlanguage = "python"\n'
        f'[serve]\nargv = {json.dumps(argv)}\nport = "announced"\n'
        '[capabilities]\nprofiles = ["core", "ask"]\nmodes = ["auto", "bm25"]\n'
    )
    # As a user gives it, from the folder of the call.
    return path.relative_to(folder)


def _printed(ended: Ended) -> list[list[str]]:
    """The words of each command in what a call printed; ellipses and fragments have none."""
    lines = f"{ended.out}\n{ended.err}".splitlines()
    found = [match[1] for line in lines if (match := re.search(r"\bmemconform ([a-z].*)$", line))]
    return [shlex.split(command) for command in found]


@pytest.mark.parametrize(
    "output",
    [
        pytest.param((), id="default", marks=pytest.mark.slow),
        pytest.param(("--output", "my results"), id="output"),
    ],
)
def test_printed_commands_work_where_they_were_printed(
    memconform: Call, workspace: Path, dataset: Path, output: tuple[str, ...]
) -> None:
    folder = workspace / (output[1] if output else "results")
    first, second = _manifest(workspace, "whole"), _manifest(workspace, "less", "drops_first")
    third = _manifest(workspace, "plain", "plain_errors")
    asked = ("--dataset", dataset.name, *_ASKED, *output)
    calls = [memconform("run", "--sdk", first, "--sdk", second, *asked)]
    [whole, less] = (
        path.relative_to(workspace) for path in sorted(folder.glob("runs/*/result.json"))
    )
    # By id as well as by path: both are what `run` printed.
    calls += [memconform("parity", whole, less, *output)]
    calls += [memconform("parity", whole.parent.name, less.parent.name, *output)]
    calls += [memconform("conform", "--sdk", first, "--case", "health-means-served", *output)]
    calls += [memconform("bench", "--suite", "sample", "--system", "flat-bm25", *output)]
    # Of the numbers and seeds that were tried, these disagree where little is to be minimized.
    fuzz = ("fuzz", "--sdk", first, "--sdk", third, "--examples", "3", "--seed", "8")
    calls += [memconform(*fuzz, *output)]
    for path in (whole, less):
        repeated = repeat_command(read_summary(workspace / path))
        calls.append(memconform(*repeated[1:], "--ids", "q7"))
        assert calls[-1].code in (0, 1), calls[-1].err
    assert [call.code for call in calls[:6]] == [0, 0, 0, 1, 0, 1], [call.err for call in calls]
    commands = [command for call in calls for command in _printed(call)]
    verbs = {" ".join(command[:2]) for command in commands}
    assert {"parity show", "conform replay", "conform findings", "conform --sdk"} <= verbs
    ends: dict[tuple[str, ...], Ended] = {}

    def run_each(printed: list[list[str]]) -> None:
        for words in printed:
            command = tuple(words)
            if command not in ends:
                ends[command] = memconform(*command)
            assert ends[command].code not in (2, 70), (command, ends[command].err)

    run_each(commands)
    # What they print is to be run, too.
    for words in commands[:4]:
        run_each(_printed(ends[tuple(words)]))
