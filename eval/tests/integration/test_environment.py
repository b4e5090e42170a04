"""Whatever the shell holds, each command works as in a plain one, or exits 2 and says why.

The rows are those of docs/ENVIRONMENT.md. Rows that change nothing are tried together, so that few
calls try them all.
"""

import json
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest

from memconform.cli.commands import walk
from memconform.cli.main import cli
from tests.conftest import CALL_SECONDS, CHECKOUT, Ended, processes_of, shell
from tests.environment_rows import End, Row, blankets, rows
from tests.integration.answer_bench import write_questions
from tests.program import PROGRAM, ForkServer
from tests.unit.wmb_files import RIGHT, questions, write_answers, write_benchmark

_LME = (
    *("--dataset", "lme.json", "--ingest-mode", "bulk", "--retrieval-mode", "bm25"),
    *(
        "--upstream",
        "own",
        "--sample-ids-file",
        "ids.txt",
        "--actor-filter-question-sessions",
        "off",
    ),
    *("--actor", "fake", "--judge", "fake", "--extract-model", "fake"),
)
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "run": (
        *("--sdk", "./sdk.toml", "--dataset", "boxes.jsonl", "--judge", "fake"),
        *("--floor", "0.0"),
    ),
    "bench": ("--suite", "sample", "--system", "flat-bm25", "-k", "1", "--limit", "2"),
    "cache clear": (),
    "cache info": (),
    "cache prune": ("--older-than", "30d"),
    "ci": ("--step", "doctor", "--output", "ci"),
    "client explain": ("client-least",),
    "client list": (),
    "client replay": ("client-least", "--sdk", str(CHECKOUT / "sdks" / "py")),
    "client": ("--sdk", str(CHECKOUT / "sdks" / "py"), "--case", "client-least"),
    "conform explain": ("health-means-served",),
    "conform findings": ("{conform}",),
    "conform lint": (),
    "conform list": (),
    "conform replay": ("results/runs/{conform}", "sdk:health-means-served#found"),
    "conform": ("--sdk", "./sdk.toml", "--case", "health-means-served"),
    "datasets compile-history": (
        *("--evidence", "lme.json", "--min-filler", "0", "--max-filler", "0", "-o", "made.json"),
    ),
    "datasets convert": ("lme.json", "-o", "converted.jsonl"),
    "datasets expand": (
        *("lme.json", "--kind", "session-summ", "--model", "fake", "-o", "keys.json"),
    ),
    "datasets fetch": ("locomo", "--from", "https://services.invalid/", "--to", "fetched"),
    "datasets info": ("lme.json",),
    "datasets lint": ("boxes.jsonl",),
    "datasets list": (),
    "datasets verify": ("--to", "fetched"),
    "diff": ("first.json", "second.json"),
    "doctor": (),
    "fuzz": ("--sdk", "./sdk.toml", "--against", "oracle", "--examples", "1", "--seed", "1"),
    "info": (),
    "init": (),
    "judge calibrate": ("--judge", "fake", "--dry-run"),
    "judge compare": ("first.json", "second.json"),
    "judge metrics": ("retrieval.jsonl", "--data", "lme.json"),
    "lme arbitrate": ("replay/result-sdk.json",),
    "lme run": (*_LME, "--sdk", "./sdk.toml", "--output", "replay2"),
    "lme tri": (*_LME, "--sdk", "./sdk.toml", "--sdk", "./other.toml", "--output", "replay3"),
    "load": ("--sdk", "./sdk.toml", "--data", "boxes.jsonl", "--rate", "5", "--duration", "1s"),
    "merge": ("part", "--output", "merged"),
    "mutate": ("--list",),
    "parity": ("first.json", "second.json"),
    "parity compare": ("first.json", "second.json"),
    "parity show": ("q1", "first.json", "second.json"),
    "plan": ("--shards", "2", "run", "--sdk", "./sdk.toml", "--data", "boxes.jsonl"),
    "report": ("first.json", "-o", "report.html"),
    "score": ("{bench}", "--reader", "fake", "--judge", "fake", "--top-k", "1"),
    "upstream": ("--addr", "127.0.0.1:0"),
    "view": ("first.json",),
    "wmb run": ("--data", "wmb", "--answers", "new.json", "--sdk", "./sdk.toml", "-k", "1"),
}
"""A cheap call of each command; `{run}`, `{bench}`, `{conform}` are runs in the folder."""
_PLAIN_CODES = {
    "datasets expand": 2,  # the fake model cannot generate keys
    "datasets fetch": 2,  # there is no network
    "datasets verify": 4,  # nothing was fetched
    "init": 2,  # the folder has an sdk.toml
    "judge metrics": 2,  # the log has no labels of a judge
}
"""How a command ends in a plain shell, if neither with 0, nor with 1 for what it found."""
_SERVING = ("upstream", "view")
_SOME = ("run", "report", "datasets list")
"""These exercise what nearly all others use: daemons, models, folders, files, tables, charts."""
_BLANKETS = [
    *blankets([row for row in rows() if not row.ends]),
    *(row for row in rows() if row.ends),
]
_BROAD = max((row for row in _BLANKETS if not row.starts), key=lambda row: len(row.names))
"""The one that changes most variables."""
_STARTING = max((row for row in _BLANKETS if row.starts), key=lambda row: len(row.names))
"""It compiles every module anew, which takes seconds."""
_SAMPLED = [*((_BROAD, name) for name in _SOME), (_STARTING, "datasets list")]
_ENDING = [(row, end) for row in rows() for end in row.ends]


_ONE_IN = 32
"""CI calls one command in so many under each blanket, always the same; the others run by night."""


def _marks(row: Row, name: str) -> list[pytest.MarkDecorator]:
    if (row, name) in _SAMPLED:
        return [pytest.mark.capability("environment")]
    number = _BLANKETS.index(row) + list(COMMANDS).index(name)
    often = row is _BROAD or number % _ONE_IN == 0
    return [pytest.mark.exhaustive if often else pytest.mark.slow]


def _calls() -> list[object]:
    """Each command under each blanket, of which CI sees some, and other tests fewer."""
    return [
        pytest.param(row, name, id=f"{name}: {row}"[:150], marks=_marks(row, name))
        for row in _BLANKETS
        for name in COMMANDS
        if name not in {end.command for end in row.ends}
    ]


@dataclass
class Materials:
    """A folder that each call gets a copy of, and how each command ends in a plain shell."""

    folder: Path
    server: ForkServer
    shell: dict[str, str]
    names: dict[str, str] = field(default_factory=dict)
    plain: dict[str, int] = field(default_factory=dict)
    count: int = 0

    def call(self, name: str, row: Row) -> Ended:
        """Call a command in a copy of the folder, in a shell with this row."""
        self.count += 1
        place = self.folder.with_name(f"call-{self.count}")
        shutil.copytree(self.folder, place)
        tmp = self.folder.with_name("tmp")
        # A ledger may have been made there.
        shutil.rmtree(tmp / "gone", ignore_errors=True)
        env = row.applied_to(self.shell, tmp)
        args = [*name.split(), *(part.format(**self.names) for part in COMMANDS[name])]
        try:
            if name in _SERVING:
                return _serve(args, place, env)
            if row.starts:
                ended = subprocess.run(
                    [PROGRAM, *args],
                    cwd=place,
                    env=env,
                    capture_output=True,
                    encoding="utf-8",
                    errors="replace",
                    timeout=CALL_SECONDS,
                    check=False,
                )
            else:
                ended = self.server.run(args, folder=place, environment=env, timeout=CALL_SECONDS)
            return Ended(ended.returncode, ended.stdout, ended.stderr, place)
        finally:
            shutil.rmtree(place)

    def plain_code(self, name: str) -> int:
        if name not in self.plain:
            ended = self.call(name, Row())
            stated = (_PLAIN_CODES[name],) if name in _PLAIN_CODES else (0, 1, 130)
            code = _code(name, ended)
            assert code in stated, (code, ended.err)
            self.plain[name] = code
        return self.plain[name]


def _code(name: str, ended: Ended) -> int:
    """The exit code; that of success for a load that a busy machine kept from measuring."""
    if name == "load" and ended.code == 3:
        [path] = ended.folder.glob("results/runs/*-load-*/result.json")
        [step] = json.loads(path.read_text())["sdks"][0]["steps"]
        return 0 if step["failure"]["code"] in ("harness_overloaded", "machine_busy") else 3
    return ended.code


def _serve(args: list[str], place: Path, env: dict[str, str]) -> Ended:
    """Start a command that serves, wait for its address, and interrupt it."""
    with subprocess.Popen(
        [PROGRAM, *args],
        cwd=place,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=CALL_SECONDS)
    assert "http://" in first, err
    return Ended(process.returncode, first + out, err, place)


@pytest.fixture(scope="module")
def materials(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Materials:
    base = tmp_path_factory.mktemp("environment")
    tmp, folder = base / "tmp", base / "folder"
    for place in (tmp / "with a space", tmp / "empty", tmp / ("long" * 40), folder):
        place.mkdir(parents=True)
    (tmp / "long").symlink_to(tmp / ("long" * 40))
    (tmp / "file").write_text("no folder\n")
    plain = shell(XDG_CACHE_HOME=str(base / "cache"), XDG_DATA_HOME=str(base / "data"))
    made = Materials(folder, fork_server, plain)
    _write_inputs(folder)
    scripted = ("run", "--sdk", "./sdk.toml", "--dataset", "boxes.jsonl", "--scorer", "exact")
    suite = ("--suite", "longmemeval", "--data", "lme.json", "-k", "1", "--limit", "1")
    for args in (
        scripted,
        scripted,
        ("bench", *suite, "--system", "flat-bm25", "--export", "longmemeval=retrieval.jsonl"),
        (
            "conform",
            "--sdk",
            "./sdk.toml",
            "--case",
            "health-means-served",
        ),
        ("lme", "run", *_LME, "--sdk", "./sdk.toml", "--output", "replay"),
        (*scripted, "--shard", "1/1", "--output", "part"),
    ):
        ended = fork_server.run(args, folder=folder, environment=plain, timeout=CALL_SECONDS)
        assert ended.returncode in (0, 1), (args, ended.stderr)
    runs = sorted((folder / "results" / "runs").glob("*-ask-basic-*/result.json"))
    for path, name in zip(runs, ("first.json", "second.json"), strict=True):
        shutil.copy(path, folder / name)
    [bench] = (folder / "results" / "runs").glob("*-bench-*")
    [conform] = (folder / "results" / "runs").glob("*-conform-*")
    made.names = {"run": runs[0].parent.name, "bench": bench.name, "conform": conform.name}
    return made


def _write_inputs(folder: Path) -> None:
    questions_ = [
        {
            "id": f"q{n}",
            "question": f"What is the secret word of box{n}?",
            "expected_substrings": [f"word{n}x"],
            "reference_answer": f"The secret of box{n} is word{n}x",
        }
        for n in range(3)
    ]
    (folder / "boxes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions_))
    argv = ["{python}", "-m", "tests.fakes.scripted", "--addr", "{addr}"]
    for name in ("sdk", "other"):
        (folder / f"{name}.toml").write_text(
            f'name = "{name}"\nlanguage = "python"\n[serve]\nargv = {json.dumps(argv)}\n'
            'port = "announced"\n[ready]\ntimeout_s = 120\n'
            '[capabilities]\nprofiles = ["core", "ask"]\nmodes = ["auto", "bm25"]\n'
        )
    rows_ = json.loads(write_questions(folder / "lme.json").read_text())
    answers = [{"question_id": row["question_id"], "hypothesis": "20"} for row in rows_]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    (folder / "ids.txt").write_text(f"{rows_[1]['question_id']}\n")
    wmb = questions(scored=2, probes=2, analysed=0)
    write_benchmark(folder / "wmb", wmb)
    write_answers(
        folder / "wmb.json",
        [
            {"question_id": row["id"], "memories_returned": [RIGHT], "system_response": RIGHT}
            for row in wmb
        ],
    )


def test_each_command_is_called() -> None:
    root = click.Context(cli, info_name="", **cli.context_settings)
    paths = {context.command_path.strip() for context, command in walk(root)}
    leaves = {path for path in paths if not any(other.startswith(f"{path} ") for other in paths)}
    assert leaves - {""} == COMMANDS.keys() - {"client", "conform", "parity"}


@pytest.mark.parametrize(("row", "name"), _calls())
def test_a_command_works_as_in_a_plain_shell(materials: Materials, row: Row, name: str) -> None:
    expected = materials.plain_code(name)
    ended = materials.call(name, row)
    assert "Traceback" not in ended.out + ended.err
    named = ended.code == 2 and any(
        end.code == 2 and end.says in ended.err for end in row.ends if "{tmp}" not in end.says
    )
    # An interrupt may come before the server handles it.
    stopped = name in _SERVING and ended.code in (0, 130)
    assert _code(name, ended) == expected or named or stopped, ended.err
    assert not processes_of(materials.folder.parent)


@pytest.mark.parametrize(
    ("row", "end"),
    [
        pytest.param(
            row,
            end,
            id=f"{end.command}: {row}"[:150],
            marks=[pytest.mark.exhaustive] if end.command == "doctor" else [],
        )
        for row, end in _ENDING
    ],
)
def test_a_command_names_the_variable(materials: Materials, row: Row, end: End) -> None:
    ended = materials.call(end.command, row)
    assert ended.code == end.code, (ended.out, ended.err)
    tmp = str(materials.folder.with_name("tmp"))
    assert end.says.replace("{tmp}", tmp) in ended.out + ended.err
    assert "Traceback" not in ended.out + ended.err
    assert "secret" not in ended.out + ended.err
