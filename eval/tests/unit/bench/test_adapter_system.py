"""Memory systems behind adapters: what is a finding, what is not measured, and what is refused."""

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from click.testing import CliRunner

from memconform.adapters.connection import AdapterConnection
from memconform.adapters.program import AdapterProgram, load_system
from memconform.bench import schedule
from memconform.cli.bench.systems import install_adapters
from memconform.cli.main import cli
from memconform.errors import MemconformError
from tests.adapters import write_boxes, write_mcp, write_program, write_system


@dataclass(frozen=True, slots=True)
class _Ended:
    code: int
    err: str
    report: dict[str, Any]


def _bench(folder: Path, *more: str | Path, users: int = 2) -> _Ended:
    file = folder / "report.json"
    flags = (
        "--suite",
        "file",
        "--data",
        write_boxes(folder, users),
        "--json",
        file,
        "--output",
        folder,
    )
    ended = CliRunner().invoke(cli, ["bench", *map(str, (*flags, *more))], standalone_mode=False)
    if isinstance(error := ended.exception, MemconformError):
        return _Ended(error.exit_code, f"{error.message} {error.hint} {error.excerpt}", {})
    assert ended.exception is None, ended.exception
    return _Ended(ended.return_value, ended.stderr, json.loads(file.read_text()))


@pytest.mark.parametrize(
    ("search", "finding"),
    [
        ("hits = hits[:2]", {"short": 12, "hits": 24}),
        ("hits = [(id, text.upper(), s) for id, text, s in hits]", {"rewritten": 72}),
        ("hits = [(None, text, s) for id, text, s in hits]", {"rewritten": 0, "found": 12}),
        (
            "hits[1:] = [(None, 'a fact', s) for id, text, s in hits[1:]]",
            {"of_no_item": 60, "short": 12},
        ),
        ("hits = hits[::-1] if calls.count(query) > 1 else hits", {"changed": 10}),
        ("hits = hits[1:] if query.startswith('the secret') else hits", {"found": 0}),
    ],
)
def test_what_a_system_does_in_its_own_way_is_a_finding(
    search: str, finding: dict[str, int], tmp_path: Path
) -> None:
    system = write_system(tmp_path / "mine", search=search)
    ended = _bench(tmp_path, "--system", system, "-k", "6")
    assert ended.code == 0, ended.err
    behaviour = ended.report["systems"][0]["behaviour"]
    assert {name: behaviour[name] for name in finding} == finding
    assert ended.report["rows"][0]["not_measured"] == 0


@pytest.mark.parametrize(
    ("search", "code"),
    [
        ("hits = [('made-up', 'text', 1.0)]", "foreign_id"),
        ("hits = None", "adapter_wrong_type"),
        ("hits = ['text']", "adapter_wrong_type"),
        ("hits = [('i0', None, 1.0)]", "adapter_wrong_type"),
        ("hits = [('i0', 'text', float('nan'))]", "adapter_wrong_type"),
        ("hits = [('i0', 'text', 'high')]", "adapter_wrong_type"),
        ("hits = [('i0', 'text', '0.5')]", "adapter_wrong_type"),
        ("raise KeyError('x')", "adapter_search_failed"),
        ("sys.exit()", "adapter_search_failed"),
        ("os._exit(9)", "adapter_died"),
    ],
)
def test_a_search_that_fails_is_not_measured(search: str, code: str, tmp_path: Path) -> None:
    """After the probes, with the first question: it is never a low score."""
    system = write_system(tmp_path / "mine", search=f"if query == 'What is box1 ?': {search}")
    ended = _bench(tmp_path, "--system", system, "--system", "flat-bm25")
    assert code in ended.err
    [row, baseline] = ended.report["rows"]
    assert row["not_measured"] >= 1
    assert baseline["not_measured"] == 0
    assert ended.code == 3


@pytest.mark.parametrize(
    ("store", "code"),
    [
        ("raise ValueError('full')", "adapter_store_failed"),
        ("os._exit(9)", "adapter_died"),
    ],
)
def test_a_system_that_stores_nothing_has_no_score(store: str, code: str, tmp_path: Path) -> None:
    system = write_system(tmp_path / "mine", store=store)
    ended = _bench(tmp_path, "--system", system)
    assert ended.code == 3
    assert ended.report["systems"][0]["incident"]["code"] == code
    assert ended.report["rows"][0]["views"] == {}


def test_scores_that_a_system_does_not_rank_by_are_a_finding(tmp_path: Path) -> None:
    rising = "hits = [(id, text, float(at)) for at, (id, text, s) in enumerate(hits)]"
    ended = _bench(tmp_path, "--system", write_system(tmp_path / "mine", search=rising))
    even = _bench(tmp_path, "--system", write_system(tmp_path / "even"))
    assert (ended.code, even.code) == (0, 0)
    assert [report["rows"][0]["rising_scores"] for report in (ended.report, even.report)] == [12, 0]
    assert ended.report["rows"][0]["views"] == even.report["rows"][0]["views"]
    assert "mine: scores rise in 12 rankings: it ranks by something else, or lower is" in ended.err


def test_a_system_is_told_who_spoke_and_when(tmp_path: Path) -> None:
    """Dates and speakers of LoCoMo reached no system: those that search by time had none."""
    turns = [{"dia_id": "D1:1", "speaker": "Ada", "text": "The kiln is hot."}]
    asked = {"question": "Is it hot?", "answer": "yes", "evidence": ["D1:1"], "category": 4}
    talk = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    data = tmp_path / "locomo.json"
    data.write_text(json.dumps([{"sample_id": "c", "conversation": talk, "qa": [asked]}]))
    told = tmp_path / "told"
    store = f"open({str(told)!r}, 'a').writelines(f'{{i.speaker}} {{i.date}} ' for i in items)"
    system = write_system(tmp_path / "mine", store=store)
    ended = _bench(
        tmp_path, "--system", system, "--suite", "locomo", "--data", data, "--level", "turn"
    )
    assert ended.code == 0, ended.err
    assert told.read_text() == "Ada 2023-05-08T13:56:00Z "


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('python = "four"\n', "python"),
        ('requires = "missing.txt"\n', "missing.txt is not a file"),
        ('requires = "package-lock.json"\n', "package-lock.json is for MCP servers"),
        ('requires = "package-lock.json"\n', "package.json is not a file"),
        (
            '[mcp]\ncommand = ["{packages}/x"]\nstore.tool = "s"\nsearch.tool = "f"\n',
            "only npm has a folder",
        ),
        ('[settings]\nurl = "{upstrem}/v1"\n', "upstrem"),
        ('colour = "red"\n', "unknown key"),
        ('python = "3.11"\ncommand = ["node"]\n', "are for Python modules"),
        ('[settings]\nurl = "{upstream}/v1"\n', "add --upstream scripted"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_named(more: str, said: str, tmp_path: Path) -> None:
    ended = _bench(tmp_path, "--system", write_system(tmp_path / "mine", more=more))
    assert ended.code == 2
    assert said in ended.err
    assert "system.toml" in ended.err


@pytest.mark.parametrize(("uid", "code"), [(0, 3), (1000, 0)])
def test_a_system_that_refuses_root_is_not_measured_as_root(
    uid: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    system = write_system(tmp_path / "mine", more="root = false\n")
    ended = _bench(tmp_path, "--system", system, "--system", "flat-bm25")
    assert ended.code == code, ended.err
    assert [row["measured"] for row in ended.report["rows"]] == [uid > 0, True]
    assert ("mine does not run as root" in ended.err) == (uid == 0)


@pytest.mark.parametrize(("mood", "lost"), [("", 5), ("once", 5), ("lasting", 0)])
def test_what_a_restart_loses_is_a_finding(mood: str, lost: int, tmp_path: Path) -> None:
    """Also of a system that does not start again, whose second user is measured all the same."""
    system = write_system(tmp_path / "mine", more=f'[settings]\nmood = "{mood}"\n')
    ended = _bench(tmp_path, "--system", system)
    assert ended.code == 0, ended.err
    behaviour = ended.report["systems"][0]["behaviour"]
    assert (behaviour["restarted"], behaviour["lost"]) == (5, lost)
    assert (ended.report["rows"][0]["queries"], ended.report["rows"][0]["not_measured"]) == (12, 0)


_OTHERS = "[(ID, i.text, 0.1) for u in USERS if u != user for i in USERS[u][:1]]"


@pytest.mark.parametrize("identifier", ["i.id", "None"])
def test_an_item_of_another_user_is_a_leak(identifier: str, tmp_path: Path) -> None:
    """Without an id, too: its text was then taken for one of the system's own."""
    leak = _OTHERS.replace("ID", identifier).replace("USERS", "users")
    system = write_system(
        tmp_path / "mine", search=f"hits[-1:] = {leak}", more='[settings]\nmood = "lasting"\n'
    )
    ended = _bench(tmp_path, "--system", system, "-k", "6")
    behaviour = ended.report["systems"][0]["behaviour"]
    # The first of the two users is forgotten when the second one's items have been searched for.
    assert (behaviour["leaks"], behaviour["found"]) == (6, 6)
    assert ended.code == 0, ended.err


@pytest.mark.parametrize("identifier", ["i.id", "None"])
def test_a_question_that_meets_another_users_item_is_not_measured(
    identifier: str, tmp_path: Path
) -> None:
    keep = "kept = globals().setdefault('kept', {}); kept.update(users)"
    leak = _OTHERS.replace("ID", identifier).replace("USERS", "kept")
    system = write_system(
        tmp_path / "mine",
        search=f"{keep}; hits[-1:] = {leak} if query[0] == 'W' else hits[-1:]",
        more='[settings]\nmood = "lasting"\n',
    )
    ended = _bench(tmp_path, "--system", system, "-k", "6")
    behaviour = ended.report["systems"][0]["behaviour"]
    assert behaviour["leaks"] == ended.report["rows"][0]["not_measured"] == 6
    assert "foreign_id" in ended.err
    assert ended.code == 3


def test_a_question_is_searched_for_where_no_other_user_is(tmp_path: Path) -> None:
    """A score depended on the users before, so that a resumed bench had another one."""
    alone = "assert query[0] != 'W' or list(users) == [user], list(users)"
    lasting = '[settings]\nmood = "lasting"\n'
    system = write_system(tmp_path / "mine", search=alone, more=lasting)
    assert _bench(tmp_path, "--system", system, users=4).code == 0


def test_a_search_that_finds_nothing_any_more_ends_the_system(tmp_path: Path) -> None:
    system = write_system(tmp_path / "mine", search="hits = hits if len(calls) <= 14 else []")
    ended = _bench(tmp_path, "--system", system, users=1)
    assert (ended.code, ended.report["rows"][0]["views"]) == (3, {})
    assert "a repeated search found nothing" in ended.report["systems"][0]["incident"]["message"]


@pytest.mark.parametrize(
    ("mood", "code"),
    [("unfinished", "adapter_finish_failed"), ("stubborn", "adapter_forget_failed")],
)
def test_a_function_that_fails_is_named(mood: str, code: str, tmp_path: Path) -> None:
    """The second user is forgotten after the questions of the third."""
    system = write_system(tmp_path / "mine", more=f'[settings]\nmood = "{mood}"\n')
    ended = _bench(tmp_path, "--system", system, users=3)
    assert (ended.code, code in ended.err) == (3, True)


def test_hits_that_are_no_items_are_no_score_of_zero(tmp_path: Path) -> None:
    system = write_system(tmp_path / "mine", search="hits = [(None, 'a fact', 1.0)]")
    ended = _bench(tmp_path, "--system", system)
    assert (ended.code, "hits_of_no_item" in ended.err) == (3, True)
    assert ended.report["rows"][0]["views"] == {}


def test_searches_that_overlap_get_their_own_replies(tmp_path: Path) -> None:
    """Two calls read from one socket at once, which ended the program."""
    system = write_system(tmp_path / "mine")
    ended = _bench(tmp_path, "--system", system, "--concurrency", "6")
    assert ended.code == 0, ended.err
    metrics = ended.report["rows"][0]["views"]["all"]["metrics"]
    assert metrics["recall_any@5"]["value"] == 100


def test_a_restart_is_tried_where_the_last_verification_had_nothing_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "_VERIFY_EVERY", 6)
    ended = _bench(tmp_path, "--system", write_system(tmp_path / "mine"))
    behaviour = ended.report["systems"][0]["behaviour"]
    assert (behaviour["repeated"], behaviour["restarted"], behaviour["lost"]) == (20, 5, 5)


def test_what_a_system_lacks_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    """The daemons and systems before it had been measured by then."""
    system = write_system(tmp_path / "mine", more='[settings]\nurl = "{upstream}/v1"\n')
    ended = _bench(tmp_path, "--system", system)
    assert (ended.code, "add --upstream scripted" in ended.err) == (2, True)
    assert not (tmp_path / "runs").exists()


def test_what_no_adapter_can_do_is_refused(tmp_path: Path) -> None:
    """It would have ranked other items than the systems beside it."""
    (tmp_path / "events.json").write_text("{}")
    (tmp_path / "ranges.json").write_text("{}")
    flags = ("--events", tmp_path / "events.json", "--ranges", tmp_path / "ranges.json")
    ended = _bench(tmp_path, "--system", write_system(tmp_path / "mine"), *flags)
    assert (ended.code, "no adapter can do" in ended.err) == (2, True)


def test_a_system_that_nobody_knows_is_named(tmp_path: Path) -> None:
    ended = _bench(tmp_path, "--system", "fais")
    assert ended.code == 2
    assert "did you mean 'faiss'?" in ended.err


def test_a_program_in_another_language_is_measured_as_a_module_is(tmp_path: Path) -> None:
    ended = _bench(tmp_path, "--system", write_program(tmp_path / "mine"))
    assert ended.code == 0, ended.err
    module = _bench(tmp_path, "--system", write_system(tmp_path / "module"))
    assert ended.report["rows"][0]["views"] == module.report["rows"][0]["views"]


@pytest.mark.parametrize(
    ("search", "code"),
    [
        ("print('storing', flush=True)", "adapter_out_of_step"),
        ("reply['number'] -= 1", "adapter_out_of_step"),
        ("del reply['hits']", "adapter_wrong_type"),
        ("reply['hits'][0] = ['i', 'x']", "adapter_wrong_type"),
        ("reply = {**reply, 'error': 'no index'}", "adapter_search_failed"),
        ("sys.exit(7)", "adapter_died"),
    ],
)
def test_a_program_that_does_not_answer_a_search_has_no_score(
    search: str, code: str, tmp_path: Path
) -> None:
    broken = write_program(tmp_path / "mine", search=search)
    ended = _bench(tmp_path, "--system", broken)
    assert ended.code == 3
    why = [*ended.report["rows"][0]["why"], str(ended.report["systems"][0]["incident"])]
    assert any(code in line for line in why), why
    assert ended.report["rows"][0]["views"] == {}


def test_an_mcp_server_is_measured_as_a_module_is(tmp_path: Path) -> None:
    manifest = write_mcp(tmp_path / "mine") / "system.toml"
    ended = _bench(tmp_path, "--system", manifest.rename(manifest.with_name("other.toml")))
    assert ended.code == 0, ended.err
    module = _bench(tmp_path, "--system", write_system(tmp_path / "module"))
    assert ended.report["rows"][0]["views"] == module.report["rows"][0]["views"]
    behaviour = ended.report["systems"][0]["behaviour"]
    counts = [behaviour[name] for name in ("found", "of_no_item", "leaks", "restarted", "lost")]
    assert counts == [12, 0, 0, 5, 0]


@pytest.mark.parametrize(
    ("search", "code", "said"),
    [
        ("result['isError'] = True", "adapter_search_failed", "find: {"),
        ("result['content'][0]['text'] = 'none'", "adapter_search_failed", "is not JSON"),
        ("result['structuredContent'] = {}", "adapter_search_failed", "no list at"),
        ("print('hello', flush=True)", "adapter_search_failed", "stdout is not a message"),
        ("result = None", "adapter_search_failed", "the reply has no result"),
        ("result['content'] = ['text']", "adapter_search_failed", "not a list of texts"),
        ("sys.exit(7)", "adapter_search_failed", "ended with exit code 7"),
        ("best[0] = {**best[0], 'key': 'made-up'}", "foreign_id", "made-up"),
        ("best = [{'key': note['key']} for note in best]", "adapter_wrong_type", ""),
    ],
)
def test_an_mcp_server_that_does_not_answer_a_search_has_no_score(
    search: str, code: str, said: str, tmp_path: Path
) -> None:
    if search.startswith("best"):
        search += "\n        result['structuredContent'] = {'found': {'notes': best}}"
    ended = _bench(tmp_path, "--system", write_mcp(tmp_path / "mine", search=search))
    assert ended.code == 3
    # Each question failed by itself: a server that ended is forgotten like any other.
    [system], [row] = ended.report["systems"], ended.report["rows"]
    assert system["incident"] is None
    assert any(code in line and said in line for line in row["why"]), row["why"]
    assert row["views"] == {}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"{text}"', '"{txt}"', "unknown placeholder {txt}"),
        ('text = "{text}"', 'text = "it"', "no argument of note has {text}"),
        ('"{query}"', '"all"', "no argument of find has {query}"),
        ("[mcp]", 'adapter = "adapter.py"\n[mcp]', "omit them"),
        ("[mcp]", '[settings]\nmood = "good"\n[mcp]', "an MCP server gets none"),
        ('tool = "note"', 'tol = "note"', "tool"),
    ],
)
def test_a_table_of_tools_that_cannot_be_used_is_named(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    system = write_mcp(tmp_path / "mine")
    manifest = system / "system.toml"
    manifest.write_text(manifest.read_text().replace(old, new, 1))
    ended = _bench(tmp_path, "--system", system)
    assert (ended.code, said in ended.err) == (2, True), ended.err


def test_an_mcp_server_may_return_texts_alone_and_has_a_folder_of_its_own(tmp_path: Path) -> None:
    texts = "result['content'] = [{'type': 'text', 'text': note['text']} for note in best]"
    texts += "\n        say({'id': call['id'], 'result': result}) if notes[0].get('folder') else 0"
    system = write_mcp(tmp_path / "mine", search=texts, more='env = "x"\n')
    manifest = system / "system.toml"
    table = manifest.read_text().replace('env = "x"\n', "").replace('hits = "found.notes"\n', "")
    table = table.replace('id = "key"\n', "").replace(
        "[mcp.store]", 'env = { NOTES = "{folder}/mine" }\n[mcp.store]'
    )
    manifest.write_text(table)
    ended = _bench(tmp_path, "--system", system)
    assert ended.code == 0, ended.err
    assert ended.report["rows"][0]["views"]["all"]["metrics"]["recall_any@5"]["value"] == 100
    [log] = tmp_path.glob("runs/*/mine/adapter.log")
    # A request of the server's was declined.
    assert "-32601" in log.read_text()
    assert "/mine" in log.read_text()


def test_a_part_of_an_item_that_another_user_said_as_a_whole_is_no_leak(tmp_path: Path) -> None:
    """A question was lost: `Thanks!` was the text of another user's item."""
    search = "hits += [(None, item.text[-6:], 1.0) for item in ranked[:k]]; hits = hits[::-1][:k]"
    system = write_system(tmp_path / "mine", search=search)
    data = json.loads(write_boxes(tmp_path).read_text())
    data["items"].append({"id": "short", "content": "word0x", "group": "g1"})
    (tmp_path / "more.json").write_text(json.dumps(data))
    flags = ("--data", tmp_path / "more.json", "--index", "shared", "--system", system)
    ended = _bench(tmp_path, *flags, "-k", "20")
    assert ended.code == 0, ended.err
    assert ended.report["systems"][0]["behaviour"]["leaks"] == 0


def test_a_system_that_would_make_up_vectors_is_refused(tmp_path: Path) -> None:
    table = '[upstream.scripted]\nMODELS = "{upstream}/v1"\n'
    ended = _bench(tmp_path, "--system", write_system(tmp_path / "mine", more=table))
    assert (ended.code, "add --upstream scripted" in ended.err) == (2, True)


@pytest.mark.parametrize("when", ["True", "user == 'g1'"])
@pytest.mark.parametrize("index", ["isolated", "shared"])
def test_a_system_that_finds_nothing_for_a_user_has_no_score(
    when: str, index: str, tmp_path: Path
) -> None:
    system = write_system(tmp_path / "mine", search=f"if {when}: hits = []")
    ended = _bench(tmp_path, "--system", system, "--index", index)
    assert (ended.code, "hits_of_no_item" in ended.err) == (3, True)
    assert ended.report["rows"][0]["views"] == {}


def test_items_in_pieces_are_asked_for_until_there_are_enough(tmp_path: Path) -> None:
    """A system that stores an item in three pieces was asked for k of them: a third of k items."""
    pieces = "hits = [(i, text[n::3], s) for i, text, s in hits for n in range(3)][:k]"
    system = write_system(tmp_path / "mine", search=pieces)
    ended = _bench(tmp_path, "--system", system, "--system", "flat-bm25", "-k", "1,4")
    behaviour = ended.report["systems"][0]["behaviour"]
    assert (behaviour["short"], behaviour["of_no_item"]) == (0, 0)
    in_pieces, whole = (row["views"]["all"]["metrics"] for row in ended.report["rows"])
    assert in_pieces["recall_any@4"]["value"] == whole["recall_any@4"]["value"] == 100


def test_what_follows_hits_of_no_item_was_not_asked_for(tmp_path: Path) -> None:
    """Items after k texts of the system's own counted as the first ones."""
    own = "hits = ([(None, 'a fact', 1)] * 2 + hits if query[0] == 'W' else hits)[:k]"
    system = write_system(tmp_path / "mine", search=own)
    ended = _bench(tmp_path, "--system", system, "-k", "2")
    metrics = ended.report["rows"][0]["views"]["all"]["metrics"]
    assert metrics["recall_any@2"]["value"] == 0
    assert ended.report["systems"][0]["behaviour"]["of_no_item"] == 24


@pytest.mark.parametrize("name", ["flat-bm25", "all", "go"])
def test_no_system_is_shown_in_the_row_of_another(name: str, tmp_path: Path) -> None:
    system = write_system(tmp_path / "mine")
    manifest = system / "system.toml"
    manifest.write_text(manifest.read_text().replace('"mine"', f'"{name}"'))
    ended = _bench(tmp_path, "--system", system)
    assert ended.code == 2
    owner = "an SDK" if name == "go" else "a baseline"
    assert f"the name '{name}' is that of {owner}" in ended.err


def test_two_systems_of_one_name_are_refused(tmp_path: Path) -> None:
    systems = [write_system(tmp_path / name) for name in ("one", "two")]
    (systems[1] / "adapter.py").write_text("store = search = start = print\n")
    ended = _bench(tmp_path, *("--system", systems[0], "--system", systems[1]))
    assert (ended.code, "2 systems are called mine" in ended.err) == (2, True)


def test_requirements_without_a_version_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that nobody can measure again was published beside those that anybody can."""
    loose = ["numpy>=2", "left @ git+https://nowhere/left@main", "faiss-cpu", "scipy==1.*"]
    loose.append("torch>=2; python_version == '3.11'")
    pinned = ["httpx[http2]==0.28.1  # as tested", "numpy == 2.1.0 ; python_version > '3'"]
    lines = "\n".join(["-i nowhere", "", *loose, *pinned])
    system = write_system(tmp_path / "mine", more='requires = "requirements.txt"\n')
    (system / "requirements.txt").write_text(lines)
    program = load_system(system)
    assert program.unpinned() == loose
    monkeypatch.setattr(AdapterProgram, "install", AsyncMock(return_value="python"))
    said: list[str] = []
    options = Mock(system=(str(system),), no_skip=False)
    asyncio.run(install_adapters(options, [program], said.append))
    assert said == [f"mine: {', '.join(loose)} without a version: later rows may differ"]


def test_only_measured_rows_are_compared_with_bm25(tmp_path: Path) -> None:
    broken = write_system(tmp_path / "mine", search="if len(calls) > 14: raise OSError('gone')")
    systems = ("--system", broken, "--system", "flat-bm25", "--system", "flat-dense")
    ended = _bench(tmp_path, *systems, "--upstream", "scripted", "--embed-model", "fh256-1")
    assert [pair["first"] for pair in ended.report["with_bm25"]] == ["flat-dense"]


def _two_known(folder: Path, monkeypatch: pytest.MonkeyPatch, more: str) -> dict[str, Path]:
    """Make `mine` and `other` all systems that are known; `more` is in the manifest of `other`."""
    one, other = write_system(folder / "one"), write_system(folder / "other", more=more)
    manifest = other / "system.toml"
    manifest.write_text(manifest.read_text().replace('"mine"', '"other"'))
    known = {"mine": one / "system.toml", "other": manifest}
    for module in ("cli.bench.systems", "adapters.program"):
        monkeypatch.setattr(f"memconform.{module}.known_systems", lambda _: known)
    return known


def test_what_of_all_systems_cannot_be_installed_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = _two_known(tmp_path, monkeypatch, 'python = "3.99"\n')
    ended = _bench(tmp_path, "--system", "all")
    assert ended.code == 0, ended.err
    assert "other skipped" in ended.err
    assert [row["system"] for row in ended.report["rows"]] == ["mine"]
    for flags in (("--no-skip",), ("--system", "other")):
        demanded = _bench(tmp_path, "--system", "all", *flags)
        assert (demanded.code, "not on PATH" in demanded.err) == (3, True)
    del known["mine"]
    assert _bench(tmp_path, "--system", "all").code == 3
    del known["other"]
    assert _bench(tmp_path, "--system", "all").code == 2


def test_a_system_without_its_language_model_is_labelled_and_not_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _two_known(tmp_path, monkeypatch, "lacks_model = true\n")
    ended = _bench(tmp_path, "--system", "all")
    assert "left out of `all`, because they lack a language model: other\n" in ended.err
    assert [row["system"] for row in ended.report["rows"]] == ["mine"]
    named = _bench(tmp_path, "--system", "all", "--system", "other")
    assert "left out" not in named.err
    strategies = {row["system"]: row["strategy"] for row in named.report["rows"]}
    assert strategies == {"mine": "", "other": "model=none"}


def test_a_system_finds_no_settings_in_the_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("KEY=value\n")
    monkeypatch.chdir(tmp_path)
    system = write_system(tmp_path / "mine", store="assert not os.path.exists('.env')")
    assert _bench(tmp_path, "--system", system).code == 0


@pytest.mark.parametrize(
    "search", ["os.fork()", "print('x' * 3_000_000)", r"os.write(1, b'{\"number\": 9}\n' * 99)"]
)
def test_what_an_adapter_does_beside_its_reply_is_no_reply(search: str, tmp_path: Path) -> None:
    ended = _bench(tmp_path, "--system", write_system(tmp_path / "mine", search=search))
    assert ended.code == 0, ended.err
    assert ended.report["rows"][0]["views"]["all"]["metrics"]["recall_any@10"]["value"] == 100


def test_a_search_that_hangs_has_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = AdapterConnection.call

    async def hurried(self: AdapterConnection, verb: str, *arguments: object) -> dict[str, Any]:
        if verb == "search":
            self.timeout = 0.2  # short limit: no search of this adapter ends
        return await call(self, verb, *arguments)

    monkeypatch.setattr(AdapterConnection, "call", hurried)
    hangs = write_system(tmp_path / "mine", search="import time; time.sleep(1000)")
    ended = _bench(tmp_path, "--system", hangs)
    assert ended.code == 3
    incident = ended.report["systems"][0]["incident"]
    assert (incident["code"], "search: no answer" in incident["message"]) == ("adapter_hung", True)
    assert ended.report["rows"][0]["views"] == {}


def test_a_system_that_finds_few_items_by_their_own_words_is_named(tmp_path: Path) -> None:
    poor = write_system(tmp_path / "mine", search="hits = hits[-1:]")
    said = "mine: finds 0 of 12 items by their own words"
    assert said in _bench(tmp_path, "--system", poor).err
    assert said not in _bench(tmp_path, "--system", write_system(tmp_path / "good")).err
