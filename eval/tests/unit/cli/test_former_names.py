"""Former names of commands work for one more version, print the new one, and are listed nowhere."""

import ast
import re
from pathlib import Path
from pkgutil import resolve_name

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from memconform.cli.commands import Command, walk
from memconform.cli.former_names import FORMER_NAMES, find_former_name
from memconform.cli.main import cli
from memconform.errors import ExitCode, MemconformError
from tests.conftest import CHECKOUT
from tests.run_results import question, write_run
from tests.unit.bench_results import write_bench
from tests.unit.lme_results import question as lme_question
from tests.unit.lme_results import write_lme

_ROOT = click.Context(cli, info_name="memconform", **cli.context_settings)
_PAGES = {context.command_path: context for context, _ in walk(_ROOT)}


def _call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, list(map(str, arguments)), standalone_mode=False)


@pytest.mark.parametrize("name", FORMER_NAMES)
def test_a_former_name_prints_the_new_one_and_is_not_listed(name: str) -> None:
    former = FORMER_NAMES[name]
    assert isinstance(resolve_name(f"memconform.cli.{former.reference}"), Command)
    ended = _call(*name.split(), "--help")
    assert (ended.exit_code, ended.stdout[:6]) == (0, "Usage:")
    assert ended.stderr == f"`memconform {name}` is now `{former.successor}`\n"
    assert f"memconform {name}" not in _PAGES
    *group, word = name.split()
    parent = _PAGES[" ".join(["memconform", *group])]
    if isinstance(parent.command, click.Group):
        assert word not in parent.command.list_commands(parent)
    assert f"memconform {name}" not in (CHECKOUT / "docs" / "CLI.md").read_text(encoding="utf-8")


def test_a_new_name_prints_nothing_of_the_kind() -> None:
    assert _call("report", "--help").stderr == ""
    assert find_former_name(["report", "results/junit"]) is None
    assert find_former_name([]) is None


@pytest.mark.parametrize("name", FORMER_NAMES)
def test_the_successor_of_a_former_name_is_a_command(name: str) -> None:
    program, *words = FORMER_NAMES[name].successor.split()
    if program == "memconform":
        assert words[0] in cli.list_commands(_ROOT)
    else:
        assert (CHECKOUT / program).is_file()


def test_completion_neither_offers_nor_mentions_former_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    completion = ShellComplete(cli, {}, "memconform", "_MEMCONFORM_COMPLETE")
    offered = {item.value for item in completion.get_completions([], "")}
    assert offered == set(cli.list_commands(_ROOT))
    completion.get_completions(["report", "junit"], "--")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", ["junit", "ctrf", "csv", "markdown", "annotations", "badge"])
def test_a_former_format_writes_what_the_new_one_does(form: str, tmp_path: Path) -> None:
    result = write_run(tmp_path / "go.json", "go", [question("q1")])
    former = _call("report", form, result, "-o", "-")
    assert former.return_value == ExitCode.OK
    assert former.stdout == _call("report", result, "--format", form, "-o", "-").stdout != ""


def test_a_schema_is_that_of_the_format() -> None:
    schemas = {form: _call("report", form, "--schema").stdout for form in ("ctrf", "badge")}
    assert '"title": "CtrfReport"' in schemas["ctrf"]
    assert '"title": "Badge"' in schemas["badge"]
    assert '"anyOf"' in _call("report", "--schema").stdout


def test_the_former_export_writes_several_files(tmp_path: Path) -> None:
    result = write_bench(tmp_path / "result.json", {("go", "bm25"): {"q1": ["q1-gold"]}})
    files = [tmp_path / "q.csv", tmp_path / "q.jsonl"]
    flags = [part for file in files for part in ("--export", file)]
    assert _call("report", "export", result, *flags).return_value == ExitCode.OK
    new = tmp_path / "new.csv"
    assert _call("report", result, "--format", "queries", "-o", new).return_value == ExitCode.OK
    assert files[0].read_text() == new.read_text() != ""
    assert files[1].read_text().startswith("{")


@pytest.mark.parametrize(
    ("form", "flag", "allowed"),
    [
        ("junit", ("--label", "x"), "--baseline"),
        ("badge", ("--data", "x"), "--label"),
        ("queries", ("--baseline", "old"), "--format"),
    ],
)
def test_a_flag_of_another_format_is_refused(
    form: str, flag: tuple[str, str], allowed: str, tmp_path: Path
) -> None:
    result = write_run(tmp_path / "go.json", "go", [question("q1")])
    ended = _call("report", result, "--format", form, *flag, "-o", tmp_path / "out")
    assert isinstance(ended.exception, click.UsageError)
    assert f"{flag[0]} does not apply to --format {form}" in ended.exception.message
    assert allowed in ended.exception.message.partition("which takes")[2]
    assert flag[0] not in ended.exception.message.partition("which takes")[2]


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"question_id": "q1", "hypothesis": "A heron."}\n')
    return path


@pytest.fixture
def carried_out(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, object]]:
    """The implementations that commands call, and the options that they hand over."""
    calls: list[tuple[str, object]] = []

    def call(reference: str, options: object, *, extra: str | None = None) -> ExitCode:
        del extra
        calls.append((reference, options))
        return ExitCode.OK

    monkeypatch.setattr("memconform.cli.score.command.carry_out", call)
    monkeypatch.setattr("memconform.cli.diff.command.carry_out", call)
    monkeypatch.setattr("memconform.cli.former_commands.carry_out", call)
    return calls


@pytest.mark.parametrize(
    ("former", "new"),
    [
        ("rescore RUN --dataset d --floor 0.5", "score RUN --data d --floor 0.5"),
        ("answer BENCH#go --reader fake", "score BENCH#go --reader fake"),
        (
            "judge longmemeval --hypotheses FILE --data d --rubric lenient --log -",
            "score FILE --data d --rubric lenient --log -",
        ),
        (
            "judge locomo --hypotheses FILE --data d --prediction p --judge fake",
            "score FILE --rubric locomo --data d --prediction p --judge fake",
        ),
        (
            "judge locomo --hypotheses FILE --data d --rubric lenient",
            "score FILE --rubric locomo,lenient --data d",
        ),
        (
            "wmb score FILE --official --profile script",
            "score FILE --rubric wmb --official --profile script",
        ),
    ],
)
def test_a_former_name_does_what_score_does(
    former: str, new: str, tmp_path: Path, answers: Path, carried_out: list[tuple[str, object]]
) -> None:
    files = {
        "RUN": write_run(tmp_path / "go.json", "go", [question("q1")]),
        "BENCH": write_bench(tmp_path / "bench.json", {("go", "bm25"): {"q1": ["q1-gold"]}}),
        "FILE": answers,
    }
    for line in (former, new):
        for name, path in files.items():
            line = line.replace(name, str(path))  # noqa: PLW2901 - a line with paths
        ended = _call(*line.split())
        assert ended.exception is None, ended.exception
    assert carried_out[0] == carried_out[1]
    assert len(carried_out) == 2


@pytest.mark.parametrize(
    ("arguments", "flag", "kind", "allowed"),
    [
        ("RUN", "--reader fake", "a run", "--floor"),
        ("RUN", "--resume r", "a run", "--scorer"),
        ("BENCH", "--floor 1", "a bench", "--arms"),
        ("FILE --rubric longmemeval", "--prediction p", "answers to LongMemEval", "--log"),
        ("FILE --rubric locomo", "--log -", "answers to LoCoMo", "--prediction"),
        ("FILE --rubric wmb", "--partial", "answers to WMB-100K", "--official"),
    ],
)
def test_a_flag_of_another_kind_of_result_is_refused(
    arguments: str, flag: str, kind: str, allowed: str, tmp_path: Path, answers: Path
) -> None:
    write_run(tmp_path / "RUN", "go", [question("q1")])
    write_bench(tmp_path / "BENCH", {("go", "bm25"): {"q1": ["q1-gold"]}})
    answers.rename(tmp_path / "FILE")
    ended = _call(
        "score",
        f"{tmp_path}/{arguments.split(maxsplit=1)[0]}",
        *arguments.split()[1:],
        *flag.split(),
    )
    assert isinstance(ended.exception, click.UsageError)
    message, _, listed = ended.exception.message.partition("which takes")
    assert message.startswith(f"{flag.split(maxsplit=1)[0]} does not apply to {kind}")
    assert allowed in listed.split(", ")
    assert flag.split(maxsplit=1)[0] not in listed.split(", ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("FILE",), "a file of answers needs --rubric longmemeval, locomo or wmb"),
        (("FILE", "--rubric", "longmemeval"), "answers to LongMemEval need --data"),
        (("FILE", "--rubric", "wmb,strict"), "--rubric wmb is used alone"),
        (("BENCH",), "a bench needs --reader"),
        (("FILE", "BENCH"), "is not a bench, and is scored alone"),
        (("nothing",), "no result 'nothing'"),
    ],
)
def test_score_says_what_it_lacks(
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    answers: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_bench(tmp_path / "BENCH", {("go", "bm25"): {"q1": ["q1-gold"]}})
    answers.rename(tmp_path / "FILE")
    ended = _call("score", *arguments)
    assert isinstance(ended.exception, click.UsageError | MemconformError)
    assert message in ended.exception.message
    assert ended.exception.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("former", "new"),
    [
        ("trend FOLDER --sdk go", "diff FOLDER --sdk go"),
        (
            "lme review --before OLD --after NEW --across-rubrics --fail-on inconclusive",
            "diff OLD NEW --across-rubrics --fail-on inconclusive",
        ),
    ],
)
def test_a_former_name_does_what_diff_does(
    former: str, new: str, tmp_path: Path, carried_out: list[tuple[str, object]]
) -> None:
    files = {
        "FOLDER": tmp_path,
        "OLD": write_lme(tmp_path / "old" / "result-go.json", [lme_question("q1")]),
        "NEW": write_lme(tmp_path / "new" / "result-go.json", [lme_question("q1")]),
    }
    for line in (former, new):
        ended = _call(*(files.get(word, word) for word in line.split()))
        assert ended.exception is None, ended.exception
    assert carried_out[0] == carried_out[1]


def test_diff_shows_what_it_is_given(
    tmp_path: Path, carried_out: list[tuple[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    runs = [write_run(tmp_path / f"{sdk}.json", sdk, [question("q1")]) for sdk in ("go", "py")]
    replay = write_lme(tmp_path / "replay" / "result-go.json", [lme_question("q1")])
    pairs = {
        (*runs,): "diff.execution:run",
        (runs[0], replay): "diff.execution:run",
        (replay, replay.parent): "diff.replays:run",
        (*runs, replay): "diff.trend:run",
        (tmp_path, tmp_path): "diff.trend:run",
        (): "diff.trend:run",
    }
    for results in pairs:
        assert _call("diff", *results).exception is None
    assert [reference for reference, _ in carried_out] == list(pairs.values())


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        ("--sdk go", "two results"),
        ("--overrides", "two results"),
    ],
)
def test_a_flag_of_another_comparison_is_refused(flags: str, kind: str, tmp_path: Path) -> None:
    runs = [write_run(tmp_path / f"{sdk}.json", sdk, [question("q1")]) for sdk in ("go", "py")]
    for results, name in ((runs, kind), ([tmp_path], "more than two results")):
        ended = _call("diff", *results, *flags.split())
        if flags == "--sdk go" and name != kind:
            assert ended.return_value == ExitCode.OK
            continue
        assert isinstance(ended.exception, click.UsageError)
        assert f"{flags.split(maxsplit=1)[0]} does not apply to {name}" in ended.exception.message


def test_a_review_takes_the_conditions_of_diff(tmp_path: Path) -> None:
    """`diff` compared results of the replay with them before `lme review` was a form of it."""
    old, new = (
        write_lme(
            tmp_path / name / "result-go.json",
            [lme_question(f"q{n}", "correct" if n else status) for n in range(6)],
            sdk=sdk,
        )
        for name, sdk, status in (("old", "go", "correct"), ("new", "py", "incorrect"))
    )
    assert _call("diff", old, new).return_value == ExitCode.OK
    assert _call("diff", old, new, "--fail-on", "regression").return_value == ExitCode.FAILED
    assert _call("diff", new, old, "--fail-on", "regression").return_value == ExitCode.OK
    undecided = _call("diff", old, new, "--fail-on", "latency:100")
    assert undecided.return_value == ExitCode.INCONCLUSIVE
    assert "latency ratio is undecided" in undecided.output
    refused = _call("diff", old, new, "--fail-on", "slow").exception
    assert isinstance(refused, MemconformError)
    assert refused.code == "bad_fail_on"


def test_a_single_result_is_no_trend(tmp_path: Path) -> None:
    """A forgotten second result ended with 0, as if nothing had changed."""
    run = write_run(tmp_path / "go.json", "go", [question("q1")])
    refused = _call("diff", run).exception
    assert isinstance(refused, MemconformError)
    assert (refused.code, refused.exit_code) == ("one_run", ExitCode.USAGE)


def test_a_trend_skips_nothing_that_is_named(tmp_path: Path) -> None:
    """A file that is not a result of answers was left out without a word."""
    runs = [write_run(tmp_path / f"{sdk}.json", sdk, [question("q1")]) for sdk in ("go", "py")]
    other = tmp_path / "other.json"
    other.write_text('{"schema_version": "memconform/conform-report@1"}')
    refused = _call("diff", *runs, other).exception
    assert isinstance(refused, MemconformError)
    assert refused.code == "result_unreadable"
    folder = _call("diff", tmp_path)
    assert folder.return_value == ExitCode.OK


def test_a_trend_takes_subjects_and_rows(tmp_path: Path) -> None:
    """`RESULT#SUBJECT` of three results was an unknown run."""
    run = write_run(tmp_path / "go.json", "go", [question("q1")])
    rows = {("go", "bm25"): {"q1": ["q1-gold"]}, ("py", "bm25"): {"q1": ["q1-gold"]}}
    bench = write_bench(tmp_path / "bench.json", rows)
    ended = _call("diff", f"{run}#go", f"{bench}#go", f"{bench}#go/bm25")
    assert ended.return_value == ExitCode.OK, ended.exception
    assert ended.stdout.count("go bm25") == 1
    assert "py bm25" not in ended.stdout
    unknown = _call("diff", run, f"{run}#go", f"{bench}#ts").exception
    assert isinstance(unknown, MemconformError)
    assert unknown.code == "unknown_row"


def test_diff_shows_the_folder_of_output(tmp_path: Path) -> None:
    """`diff --output DIR` read `results`."""
    write_run(tmp_path / "go.json", "go", [question("q1")])
    assert _call("diff", "--output", tmp_path).return_value == ExitCode.OK


def test_two_broken_files_are_not_called_a_replay(tmp_path: Path) -> None:
    broken = [tmp_path / f"{name}.json" for name in ("old", "new")]
    for file in broken:
        file.write_text("{")
    refused = _call("diff", *broken).exception
    assert isinstance(refused, MemconformError)
    assert "is not the result of a run" in refused.message


def test_no_message_of_the_package_names_a_former_command() -> None:
    """The advice for a retrieval log of several rows was `memconform report export`."""
    former = re.compile(rf"memconform\s+({'|'.join(FORMER_NAMES)})\b")
    package = CHECKOUT / "eval" / "memconform"
    texts = [
        (path, node.value)
        for path in package.rglob("*.py")
        if path.name not in ("former_names.py", "former_commands.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert len(texts) > 1_000
    assert [(path.name, found[0]) for path, text in texts if (found := former.search(text))] == []
    assert former.search("memconform report" + " export RESULT#SYSTEM/STRATEGY") is not None
