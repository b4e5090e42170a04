"""Every reader of results, with what every verb writes: it works, or says what the file is."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from memconform.cli.main import cli
from memconform.cli.view import execution
from memconform.conformance.results import Result
from memconform.errors import MemconformError
from memconform.scoring.statuses import QuestionStatus
from tests.run_results import question as run_question
from tests.run_results import write_run
from tests.unit.bench_results import write_bench
from tests.unit.lme_results import question as lme_question
from tests.unit.lme_results import write_lme
from tests.unit.load_results import load_report, load_step
from tests.unit.reports.test_report_overview import conform_file, fuzz_report, mutation_report
from tests.unit.scored_answers import (
    write_answer,
    write_judged,
    write_wmb_score,
)

RIGHT, WRONG = QuestionStatus.CORRECT, QuestionStatus.INCORRECT
_STATUSES = {f"q{number}": RIGHT if number < 4 else WRONG for number in range(6)}


def _run(folder: Path) -> list[Path]:
    rows = [run_question(name, status) for name, status in _STATUSES.items()]
    return [write_run(folder / f"{sdk}.json", sdk, rows) for sdk in ("go", "py")]


def _run_report(folder: Path) -> list[Path]:
    loaded = [json.loads(path.read_text()) for path in _run(folder.with_name("runs"))]
    folder.mkdir()
    path = folder / "report.json"
    path.write_text(json.dumps({"schema_version": "memconform/run-report@1", "runs": loaded}))
    return [path, path]


def _bench(folder: Path) -> list[Path]:
    rows = {("go", "bm25"): {name: [f"{name}-gold"] for name in _STATUSES}}
    folder.mkdir()
    return [
        write_bench(folder / f"{run_id}.json", rows, run_id=run_id) for run_id in ("one", "two")
    ]


def _answer(folder: Path) -> list[Path]:
    return [
        write_answer(folder, run_id, {f"{run_id} hybrid": _STATUSES}) for run_id in ("one", "two")
    ]


def _longmemeval(folder: Path) -> list[Path]:
    return [write_judged(folder, run_id, {"strict": _STATUSES}) for run_id in ("one", "two")]


def _locomo(folder: Path) -> list[Path]:
    statuses = {f"conv-{number % 2}#{number}": RIGHT for number in range(6)}
    return [
        write_judged(folder, run_id, {"strict": statuses}, suite="locomo")
        for run_id in ("one", "two")
    ]


def _lme(folder: Path) -> list[Path]:
    rows = [lme_question(n, "correct" if s is RIGHT else "incorrect") for n, s in _STATUSES.items()]
    folder.mkdir()
    return [write_lme(folder / f"result-{sdk}.json", rows, sdk=sdk) for sdk in ("go", "py")]


def _wmb_score(folder: Path) -> list[Path]:
    folder.mkdir()
    return [write_wmb_score(folder, run_id) for run_id in ("one", "two")]


def _conform(folder: Path) -> list[Path]:
    folder.mkdir()
    return [conform_file(folder / "conform.json", {"a": Result.PASS})] * 2


def _document(folder: Path, document: dict[str, object]) -> list[Path]:
    folder.mkdir()
    path = folder / "document.json"
    path.write_text(json.dumps(document))
    return [path, path]


def _parity(folder: Path) -> list[Path]:
    path = folder / "parity.json"
    folder.mkdir()
    runs = map(str, _run(folder.with_name("runs")))
    assert _invoke("parity", *runs, "--json", str(path), "--quiet")[0] == 0
    return [path, path]


def _only_named(schema: str) -> Callable[[Path], list[Path]]:
    """A file that no reader takes, of which only the schema is read."""
    return lambda folder: _document(folder, {"schema_version": f"memconform/{schema}"})


@dataclass(frozen=True)
class Verb:
    """What a verb writes, and which groups of readers take it."""

    write: Callable[[Path], list[Path]]
    """Two results that can be compared, or one twice."""
    compared: bool = False
    shown: bool = False
    exported: bool = False


_SCORED = {"compared": True, "shown": True}

VERBS = {
    "run": Verb(_run, **_SCORED),
    "run --json": Verb(_run_report, shown=True),
    "bench": Verb(_bench, compared=True, shown=True, exported=True),
    "score": Verb(_run, **_SCORED),
    "score --reader": Verb(_answer, **_SCORED),
    "score --rubric longmemeval": Verb(_longmemeval, **_SCORED),
    "score --rubric locomo": Verb(_locomo, **_SCORED),
    "score --rubric wmb": Verb(_wmb_score, **_SCORED),
    "lme run": Verb(_lme, **_SCORED),
    "lme tri": Verb(_lme, **_SCORED),
    "lme run --json": Verb(_only_named("lme-report@1")),
    "wmb run": Verb(_only_named("wmb-run@1")),
    "conform": Verb(_conform, shown=True),
    "client": Verb(_conform, shown=True),
    "mutate": Verb(lambda folder: _document(folder, mutation_report("killed")), shown=True),
    "fuzz": Verb(lambda folder: _document(folder, fuzz_report()), shown=True),
    "load": Verb(
        lambda folder: _document(folder, load_report({"go": [load_step(50)]})), shown=True
    ),
    "parity compare": Verb(_parity, shown=True),
    "diff": Verb(_only_named("diff-report@1")),
    "judge calibrate": Verb(_only_named("calibration@1")),
    "judge compare": Verb(_only_named("judge-comparison@1")),
    "judge metrics": Verb(_only_named("qa-metrics@1")),
    "diff --across-rubrics": Verb(_only_named("lme-review@1")),
    "lme arbitrate": Verb(_only_named("lme-arbitration@1")),
    "datasets expand": Verb(_only_named("expansion@1")),
}
"""By the command, or by the command and the flag of another file that it writes."""

NO_RESULTS = {
    *("conform lint", "datasets benchmark", "datasets info", "info", "upstream"),
    "report",
}
"""Commands with a schema of what is no result: of data, of the installation, and of reports."""

COMPARERS = ("parity compare", "parity show", "diff")
FORMATS = ("html", "junit", "ctrf", "csv", "markdown", "annotations", "badge")
READERS = (
    *(*COMPARERS, "diff of a folder", "view"),
    *(f"report --format {name}" for name in (*FORMATS, "queries")),
)


_ASKED = {"locomo": "conv-0#0", "wmb": "daily_life.S1Situational.0"}
"""By folder, a question that its results have."""


def _leaves(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    if any("--schema" in option.opts for option in command.params):
        yield name, command
    with click.Context(command) as context:
        for part in command.list_commands(context):
            child = command.get_command(context, part)
            assert child is not None
            yield from _leaves(child, f"{name} {part}".strip())


def test_the_table_has_every_verb_and_every_reader() -> None:
    leaves = dict(_leaves(cli))
    writing = {
        name
        for name, command in leaves.items()
        if any("--schema" in option.opts for option in command.params)
    }
    assert writing - NO_RESULTS <= set(VERBS)
    assert {name.partition(" --")[0] for name in VERBS} <= set(leaves)
    [form] = [param for param in leaves["report"].params if "--format" in param.opts]
    assert isinstance(form.type, click.Choice)
    # A retrieval log is of one row, and of LongMemEval alone (`test_export.py`).
    assert set(form.type.choices) == {*FORMATS, "queries", "retrieval-log"}
    assert {re.split(" --| of ", name)[0] for name in READERS} <= set(leaves)


def _invoke(*arguments: str) -> tuple[int, str]:
    """The exit code of a command, and its output with the sentence of its error."""
    ended = CliRunner().invoke(cli, arguments, standalone_mode=False)
    if isinstance(ended.exception, MemconformError):
        return ended.exception.exit_code, f"{ended.exception.message}\n{ended.exception.hint}"
    assert ended.exception is None, ended.exception
    return ended.return_value, ended.output


def _read(
    reader: str, results: list[Path], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str]:
    first, second = map(str, results)
    match reader:
        case "parity show":
            [name] = [name for folder, name in _ASKED.items() if folder in first] or ["q1"]
            return _invoke("parity", "show", name, first, second)
        case "parity compare" | "diff":
            return _invoke(*reader.split(), first, second, "--quiet")
        case "diff of a folder":
            return _invoke("diff", str(results[0].parent))
        case "view":
            # The page is made when it is asked for.
            monkeypatch.setattr(execution, "create_app", lambda _o, report, **_: report())
            monkeypatch.setattr("uvicorn.Server.run", lambda _, sockets: sockets[0].close())
            return _invoke("view", first, second)
        case "report --format queries":
            return _invoke(*reader.split(), first, "-o", str(folder / "queries.csv"))
        case _:
            return _invoke(*reader.split(), first, second, "-o", str(folder / "report"))


@pytest.mark.parametrize("verb", VERBS)
def test_each_reader_takes_what_a_verb_writes_or_says_what_it_is(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = VERBS[verb]
    results = table.write(tmp_path / verb.replace(" ", "-"))
    (tmp_path / "out").mkdir()
    for reader in READERS:
        works = {
            "report --format queries": table.exported,
            **dict.fromkeys((*COMPARERS, "diff of a folder"), table.compared),
        }.get(reader, table.shown)
        if (verb, reader) == ("bench", "parity show"):
            works = False
        code, output = _read(reader, results, tmp_path / "out", monkeypatch)
        if works:
            assert code == 0, (reader, output)
        elif reader == "diff of a folder":
            assert (code, "no matching result" in output) == (4, True), reader
        else:
            assert code == 2, (reader, output)
            assert "was written by `memconform" in output, (reader, output)
