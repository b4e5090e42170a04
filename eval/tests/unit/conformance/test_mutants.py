"""The table of mutants, the derived mutants, and how a score is computed. No daemon runs."""

import ast
import importlib.util
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

from memconform.conformance.catalog import CaseVariant, catalog
from memconform.conformance.mutation.derived import derived_mutants
from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.mutation.mutant_progress import MutantProgress, detecting_check
from memconform.conformance.mutation.mutant_runner import MutantRunner, mutant_of, patched_copy
from memconform.conformance.mutation.mutant_table import (
    check_mutants,
    mutants,
    mutants_of_table,
    read_table,
    unscored_mutants,
)
from memconform.conformance.mutation.mutation import Edit, Mutation, SourceEdit, apply_edits
from memconform.conformance.mutation.results import (
    FalseAlarm,
    Fate,
    MutantResult,
    by_profile,
    mutation_exit_code,
)
from memconform.conformance.mutation.score import (
    applicable_cases,
    is_applicable,
    quick_groups,
)
from memconform.conformance.results import CaseResult, Check, Result
from memconform.conformance.rules import rules
from memconform.contract.schemas import ROUTES
from memconform.contract.wire import Profile
from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.url_runner import UrlRunner
from memconform.errors import DaemonError, ExitCode, UsageError
from tests.negative.faulty import Faulty

CHECKOUT = Path(__file__).parents[4]
SOURCES = {
    "py": CHECKOUT / "sdks" / "py" / "src",
    "go": CHECKOUT / "sdks" / "go",
    "ts": CHECKOUT / "sdks" / "ts",
}

ALL = (*mutants(), *unscored_mutants())
FROM_SOURCE = [mutant for mutant in (*ALL, *check_mutants()) if mutant.mutation.source]


def test_every_rule_has_a_mutant() -> None:
    of_daemons = {rule for rule in rules() if not rule.startswith("client.")}
    assert {mutant.rule for mutant in ALL} == of_daemons


def test_every_profile_has_mutants_and_the_total_is_in_the_hundreds() -> None:
    count = Counter(mutant.profile_name for mutant in mutants())
    assert set(count) == {*(profile.value for profile in Profile), "robustness"}
    assert sum(count.values()) >= 120
    assert min(Counter(mutant.profile_name for mutant in ALL).values()) >= 20


def test_source_mutations_match_once_and_compile() -> None:
    faults = [
        f"{mutant.id} ({sdk}): {fault}"
        for mutant in FROM_SOURCE
        for sdk, edits in mutant.mutation.source.items()
        for fault in _patch_faults(sdk, edits)
    ]
    assert faults == []


def test_planted_faults_match_once_and_compile() -> None:
    """A line that had moved was found only where daemons run."""
    planted = Faulty.__subclasses__()
    assert len(planted) >= 4
    faults = [
        f"{each.__name__}: {fault}"
        for each in planted
        for fault in _patch_faults("py", [each.edit()])
    ]
    assert faults == []


def _patch_faults(sdk: str, edits: Sequence[SourceEdit]) -> Iterator[str]:
    texts: dict[str, str] = {}
    for edit in edits:
        text = texts.get(edit.file) or _source(SOURCES[sdk] / edit.file)
        texts[edit.file] = text.replace(edit.find, edit.put)
        if (count := text.count(edit.find)) != 1:
            yield f"{edit.file} has {count} times: {edit.find}"
        elif texts[edit.file] == text:
            yield f"{edit.file} stays as it is: {edit.put}"
    for file, text in texts.items() if sdk == "py" else ():
        try:
            module = ast.parse(text)
        except SyntaxError as error:
            yield f"{file}: {error}"
        else:
            yield from _import_faults(module)


@cache
def _source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _import_faults(module: ast.Module) -> Iterator[str]:
    """A mutant that cannot import is an internal error, and would be killed by any check."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("memoryd"):
            package = importlib.import_module(node.module or "")
            for name in node.names:
                full = f"{node.module}.{name.name}"
                if not hasattr(package, name.name) and importlib.util.find_spec(full) is None:
                    yield f"{node.module} has no {name.name}"


@pytest.mark.parametrize(
    ("find", "put", "fault"),
    [
        ("no such text", "x", "colours.py has 0 times: no such text"),
        ("red", "blue", "colours.py has 2 times: red"),
        ("first", "first", "colours.py stays as it is: first"),
        ("first", "=", "colours.py: invalid syntax"),
        ("first = red", "from memoryd.text import gone", "memoryd.text has no gone"),
        ("first", "other", ""),
    ],
)
def test_a_patch_that_does_not_apply_or_compile_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, find: str, put: str, fault: str
) -> None:
    (tmp_path / "colours.py").write_text("first = red\nsecond = red\n")
    monkeypatch.setitem(SOURCES, "py", tmp_path)
    faults = list(_patch_faults("py", [SourceEdit(file="colours.py", find=find, put=put)]))
    assert [text.partition(" (")[0] for text in faults] == [fault] * bool(fault)


def test_a_mutant_that_imports_what_is_gone_is_noticed() -> None:
    assert list(_import_faults(ast.parse("from memoryd import frontmatter"))) == []
    gone = ast.parse("def f():\n    from memoryd.text import frontmatter")
    assert list(_import_faults(gone)) == ["memoryd.text has no frontmatter"]


def test_each_reference_sdk_has_mutants_of_its_source() -> None:
    count = Counter(sdk for mutant in FROM_SOURCE for sdk in mutant.mutation.source)
    assert set(count) == set(SOURCES)
    assert min(count.values()) >= 20


def test_each_mutant_breaks_something() -> None:
    nothing = Mutation().model_fields_set | {"when"}
    for mutant in ALL:
        assert mutant.mutation.model_fields_set - nothing, mutant.id


def test_every_key_of_every_answer_is_broken() -> None:
    ids = {mutant.id for mutant in derived_mutants()}
    for route in ROUTES:
        for name, info in (route.answer.model_fields if route.answer else {}).items():
            key = info.alias or name
            assert {f"{route.name}-{key}-{how}" for how in ("missing", "retyped", "renamed")} <= ids


def test_null_does_not_break_an_optional_key() -> None:
    ids = {mutant.id for mutant in derived_mutants()}
    assert "brain-documents-null" in ids
    assert "brain-description-null" not in ids


@pytest.mark.parametrize(
    ("edit", "becomes"),
    [
        (Edit(at="/a", op="rename", set="b"), {"b": 1, "c": ["x"]}),
        (Edit(at="/a", op="retype"), {"a": "1", "c": ["x"]}),
        (Edit(at="/c", op="retype"), {"a": 1, "c": {"value": ["x"]}}),
        (Edit(at="/c/*", op="retype"), {"a": 1, "c": [{"value": "x"}]}),
        (Edit(at="/d", op="retype"), {"a": 1, "c": ["x"]}),
        (Edit(at="/d", op="rename", set="e"), {"a": 1, "c": ["x"]}),
        (Edit(at="/a", set=None), {"a": None, "c": ["x"]}),
    ],
)
def test_an_edit_changes_only_existing_keys(edit: Edit, becomes: object) -> None:
    assert apply_edits({"a": 1, "c": ["x"]}, [edit]) == becomes


def _mutant(level: str = "must") -> Mutant:
    return next(mutant for mutant in mutants() if mutant.level == level)


def _case(*results: Result) -> CaseResult:
    checks = [
        Check(id=f"x#{n}", result=result, level="must", rules=["wire.json"])
        for n, result in enumerate(results)
    ]
    return CaseResult(case="x", title="x", checks=checks)


@pytest.mark.parametrize(
    ("level", "result", "detected"),
    [
        ("must", Result.FAIL, True),
        ("must", Result.WARN, False),
        ("must", Result.UNTESTABLE, False),
        ("must", Result.ERROR, False),
        ("should", Result.WARN, True),
        ("should", Result.PASS, False),
    ],
)
def test_only_a_failing_check_kills(level: str, result: Result, detected: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert (detecting_check(_mutant(level), _case(Result.PASS, result)) is not None) is detected


def test_a_check_mutant_is_detected_by_its_own_check_only() -> None:
    mutant = next(m for m in check_mutants() if m.check == "health#says")
    checks = [
        Check(id=id_, result=Result.FAIL, level="must", rules=["wire.json"])
        for id_ in ("health#other", "health#says")
    ]
    assert detecting_check(mutant, CaseResult(case="health", title="x", checks=checks[:1])) is None
    check = detecting_check(mutant, CaseResult(case="health", title="x", checks=checks))
    assert check is not None
    assert check.id == "health#says"
    assert [entry.id for entry in catalog() if mutant.concerns(entry)] == ["health"]


def test_an_unknown_check_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text('- {check: "health#no-such", when: {target: x}}\n')
    with pytest.raises(UsageError, match="mutant health#no-such: no case has this check"):
        read_table(tmp_path)


def _result(fate: Fate, level: Literal["must", "should"] = "must") -> MutantResult:
    return MutantResult(
        id="m", rule="wire.json", level=level, profile="core", breaks="x", fate=fate, cases=1,
        took_s=0,
    )  # fmt: skip


def test_a_surviving_mutant_of_a_should_does_not_fail_the_run() -> None:
    assert (
        mutation_exit_code([_result(Fate.SURVIVED, "should"), _result(Fate.KILLED)], [])
        is ExitCode.OK
    )
    assert mutation_exit_code([_result(Fate.SURVIVED)], []) is ExitCode.FAILED


def test_an_untestable_mutant_does_not_count_as_killed() -> None:
    results = [_result(Fate.UNTESTABLE), _result(Fate.KILLED)]
    assert mutation_exit_code(results, []) is ExitCode.DAEMON
    assert mutation_exit_code([_result(Fate.UNTESTABLE, "should")], []) is ExitCode.DAEMON
    assert by_profile(results)["core"].killed == 1


def test_a_false_alarm_fails_the_score() -> None:
    alarm = FalseAlarm(check="x#y", result="fail", got=[])
    assert mutation_exit_code([_result(Fate.KILLED)], [alarm]) is ExitCode.FAILED


def test_a_lost_unmodified_daemon_is_not_a_low_score() -> None:
    lost = FalseAlarm(check="x#y", result="untestable", got=["it did not start"])
    assert mutation_exit_code([_result(Fate.SURVIVED)], [lost]) is ExitCode.DAEMON
    assert MutantProgress(_mutant()).result().fate is Fate.UNTESTABLE


def test_quick_groups_begin_with_one_variant_of_each_case() -> None:
    citing = [entry for entry in catalog() if "core.brain.id" in entry.case.rules]
    first = quick_groups(citing)[0]
    bases = [entry.base for entry in first]
    assert len(set(bases[: len(set(bases))])) == len(set(bases))
    assert not any(entry.is_disruptive for group in quick_groups(catalog()) for entry in group)


def test_quick_groups_contain_every_quick_case() -> None:
    quick = [e for e in catalog() if not (e.is_disruptive or e.case.concurrent)]
    grouped: list[CaseVariant] = [entry for group in quick_groups(catalog()) for entry in group]
    assert sorted(e.id for e in grouped) == sorted(e.id for e in quick)


def _runner(name: str) -> ManifestRunner:
    folder = CHECKOUT / "sdks" / name
    return ManifestRunner(load_manifest(folder / "sdk.toml"), folder)


def test_a_source_mutant_applies_to_the_sdks_that_it_patches() -> None:
    by_sdk = {sdk: next(m for m in FROM_SOURCE if [*m.mutation.source] == [sdk]) for sdk in SOURCES}
    for sdk, mutant in by_sdk.items():
        for name in SOURCES:
            assert is_applicable(mutant, _runner(name), catalog()) is (name == sdk)
    # The unmodified daemon must not pass for a mutant.
    with pytest.raises(UsageError, match="this mutation is of the source of go"):
        mutant_of(_runner("ts"), by_sdk["go"].mutation)


PATCHED = "package main\n\nfunc main() { println(1) }\n"


def _sdk(folder: Path) -> ManifestRunner:
    (folder / "cmd").mkdir(parents=True)
    (folder / "cmd" / "main.go").write_text(PATCHED)
    (folder / "other.txt").write_text("not an input")
    (folder / "sdk.toml").write_text(
        'name = "mine"\nlanguage = "go"\n[build]\ncommand = ["true"]\ninputs = ["cmd/*.go"]\n'
        '[serve]\nargv = ["x"]\n[capabilities]\nprofiles = ["core"]\nmodes = ["bm25"]\n'
    )
    return ManifestRunner(load_manifest(folder / "sdk.toml"), folder)


def test_a_copy_of_the_inputs_is_patched_and_the_sources_are_not(tmp_path: Path) -> None:
    runner = _sdk(tmp_path / "sdk")
    edits = [SourceEdit(file="cmd/main.go", find="1", put="2")]
    copy = patched_copy(runner.manifest, runner.folder, edits, tmp_path / "builds")
    assert [path.name for path in copy.rglob("*") if path.is_file()] == ["main.go"]
    assert (copy / "cmd" / "main.go").read_text() == PATCHED.replace("1", "2")
    assert (runner.folder / "cmd" / "main.go").read_text() == PATCHED
    assert patched_copy(runner.manifest, runner.folder, edits, tmp_path / "builds") == copy


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (SourceEdit(file="cmd/main.go", find="main", put="x"), "has 2 times"),
        (SourceEdit(file="cmd/main.go", find="nothing", put="x"), "has 0 times"),
        (SourceEdit(file="other.txt", find="not", put="x"), "not an input"),
        (SourceEdit(file="../sdk/cmd/main.go", find="1", put="2"), "not an input"),
    ],
)
def test_a_patch_that_does_not_apply_is_refused(edit: SourceEdit, why: str, tmp_path: Path) -> None:
    runner = _sdk(tmp_path / "sdk")
    with pytest.raises(DaemonError, match=why):
        patched_copy(runner.manifest, runner.folder, [edit], tmp_path / "builds")
    assert not (tmp_path / "builds" / "source").exists()


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("- {rule: wire.json, breaks: x}", "mutant \\?: id: must be a string"),
        ("- {id: x, rule: no.such, breaks: x}", "CONTRACT.md has no rule 'no.such'"),
        ("- {id: x, rule: wire.json}", "mutant x: breaks: must be a string"),
        ("{id: x}", "must be a list of mutants"),
        ("[x]", "must be a list of mutants"),
        ("- {id: x, rule: wire.json, breaks: x, sauce: []}", "sauce"),
        ("- &x {id: x, rule: wire.json, breaks: x, body: x}\n- *x", "two mutants have the id x"),
    ],
)
def test_an_invalid_table_is_refused(table: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(table)
    with pytest.raises(UsageError, match=why):
        mutants_of_table(tmp_path / "t.yaml")


def test_a_table_outside_the_package_is_a_file_or_a_folder(tmp_path: Path) -> None:
    edit = "{{file: a, find: '${{b}}', put: c}}"
    row = f"- {{{{id: {{0}}, rule: wire.json, breaks: x, source: {{{{go: [{edit}]}}}}}}}}"
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(row.format(name))
    (tmp_path / "c.yaml").write_text('- {check: "health#says", when: {target: x}, body: x}')
    assert [mutant.id for mutant in mutants_of_table(tmp_path / "b.yaml")] == ["b"]
    general = mutants_of_table(tmp_path)
    assert [mutant.id for mutant in general] == ["a", "b"]
    assert general[0].mutation.source["go"][0].find == "${b}"
    assert [m.check for m in mutants_of_table(tmp_path, for_checks=True)] == ["health#says"]


def test_a_running_daemon_gets_only_mutants_of_exchanges() -> None:
    url = UrlRunner("http://127.0.0.1:1")
    entries = applicable_cases(catalog(), url)
    applicable = [mutant for mutant in mutants() if is_applicable(mutant, url, entries)]
    assert applicable
    assert all(mutant.mutation.is_of_exchanges for mutant in applicable)
    with pytest.raises(UsageError, match="a daemon that the harness starts"):
        mutant_of(url, FROM_SOURCE[0].mutation)


def test_a_mutant_has_the_build_hash_of_the_unmodified_daemon() -> None:
    good = _runner("py")
    edit = SourceEdit(file="a/b.py", find="x", put="y")
    patched = MutantRunner(good, Mutation(source={"py": [edit]}))
    assert patched.build_hash() == good.build_hash()
    assert MutantRunner(good, Mutation()).build_hash() == good.build_hash()


def test_ids_are_plain_ascii() -> None:
    assert all(
        re.fullmatch(r"[A-Za-z0-9_.,*\[\]-]+", mutant.id)
        for mutant in (*mutants(), *check_mutants())
    )
