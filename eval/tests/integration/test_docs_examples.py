"""The worked examples of the documents, run as they are written."""

import csv
import hashlib
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Ended
from tests.integration.answer_bench import write_questions
from tests.integration.file_server import file_server
from tests.integration.scripted_llm import Service
from tests.integration.serving import upstream_by_hand
from tests.lme_data import write_dataset

Call = Callable[..., Ended]

_ADDRESS = "http://127.0.0.1:18860"


def _section(document: str, heading: str) -> str:
    text = (CHECKOUT / "docs" / document).read_text(encoding="utf-8")
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    assert section, f"{document} has no section {heading!r}"
    return section


def _files(section: str) -> dict[str, str]:
    """Each block of JSON below a line that is the name of a file."""
    found = re.findall(r"^`([\w.]+)`\n\n```json\n(.+?)^```", section, re.DOTALL | re.MULTILINE)
    return dict(found)


def _commands(section: str) -> list[list[str]]:
    """The words of each line of the shell blocks."""
    blocks = re.findall(r"^```sh\n(.+?)^```", section, re.DOTALL | re.MULTILINE)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    # As in a shell, and unlike in shlex, a comment begins with a word: `replay#py` has none.
    uncommented = (re.sub(r"(^|\s)#.*", "", line) for line in lines)
    return [words for line in uncommented if (words := shlex.split(line))]


def test_the_example_of_commands_that_call_a_model(
    memconform: Call, environment: dict[str, str], workspace: Path
) -> None:
    section = _section("UPSTREAM.md", "The commands that call a model themselves")
    for name, content in _files(section).items():
        (workspace / name).write_text(content)
    serve, export, *commands = _commands(section)
    assert serve == ["memconform", "upstream", "--script", "replies.json"]
    assert export[0] == "export"
    assert [command[:3] for command in commands] == [
        ["memconform", "datasets", "expand"],
        ["memconform", "bench", "--suite"],
        ["memconform", "score", "answers.jsonl"],
    ]
    with upstream_by_hand(environment, "--script", workspace / "replies.json") as url:
        variables = dict(word.split("=", 1) for word in export[1:])
        assert variables["OPENAI_BASE_URL"].startswith(_ADDRESS)
        environment |= {name: text.replace(_ADDRESS, url) for name, text in variables.items()}
        ended = [memconform(*command[1:]) for command in commands]
        assert [each.code for each in ended] == [0, 0, 0], [each.err for each in ended]
        bench = commands[1]
        plain = memconform(*bench[1 : bench.index("--keys")], "-k", "1", "--json", "plain.json")
        assert plain.code == 0, plain.err
    keys = json.loads((workspace / "facts.json").read_text())
    assert f"`{json.dumps(keys)}`" in section
    # `recall_any@1` of the table, with and without the keys.
    assert "100.0 (" in ended[1].err
    report = json.loads((workspace / "plain.json").read_text())
    assert report["rows"][0]["views"]["all"]["metrics"]["recall_any@1"]["value"] == 0
    verdict = ended[2].out.partition(" ->")[0]
    assert f"`{verdict}`" in section
    assert (workspace / "cache").is_dir()


_SOURCES = """
[longmemeval_s_cleaned]
about = "questions in the format of LongMemEval"
home = "https://example.org/set"
licence = "CC0"
format = "longmemeval"
folder = "longmemeval"
url = "{url}"

[[longmemeval_s_cleaned.files]]
name = "longmemeval_s_cleaned.json"
bytes = {size}
sha256 = "{sha256}"
"""


def test_the_way_of_answers_from_a_data_file_to_a_table(
    memconform: Call, environment: dict[str, str], workspace: Path, service: Service
) -> None:
    """Every command of the page about answers, on a small file in the place of the public one."""
    steps = _commands(_section("ANSWERS.md", "From a data file to a table"))
    again = _commands(_section("ANSWERS.md", "What counts"))
    assert [(command[1], "--dry-run" in command) for command in (*steps, *again)] == [
        ("datasets", False),
        ("bench", False),
        ("score", False),
        ("score", True),
        ("score", False),
        ("score", False),
        ("score", False),
    ]
    content = write_questions(workspace / "small.json").read_bytes()
    run = ""
    with file_server() as server:
        server.content = content
        digest = hashlib.sha256(content).hexdigest()
        text = _SOURCES.format(url=server.url, size=len(content), sha256=digest)
        (workspace / "sources.toml").write_text(text)
        environment |= {"MEMCONFORM_SOURCES": "sources.toml", "MEMCONFORM_DATA": "data"}
        environment |= {"NO_PROXY": "127.0.0.1"}
        for command in (*steps, *again):
            calls = service.calls
            # The errata of the public file name no question of the small one.
            errata = () if command[1] == "datasets" else ("--errata", "none")
            words = (run if word == "RUN" else word for word in command[1:])
            ended = memconform(*words, *errata)
            assert ended.code == 0, (command, ended.err)
            if command[1] == "bench":
                [run] = re.findall(r"-> results/runs/([^/]+)/", ended.out)
            is_paid = "gpt-4o-2024-08-06" in command and "--dry-run" not in command
            assert (service.calls > calls) == (is_paid or "lenient,strict" in command), command
            if "--reader" in command and "--dry-run" not in command:
                assert "oracle: 100.0 (70.1 to 100.0) of 9" in ended.out
    assert "lenient: " in ended.out
    assert "strict: " in ended.out


def test_the_commands_of_the_replay(
    memconform: Call, environment: dict[str, str], workspace: Path
) -> None:
    """Every command of the page, on a small file in the place of the public one and one SDK."""
    page = (CHECKOUT / "docs" / "REPLAY.md").read_text(encoding="utf-8")
    # What reads results of jeffs-brain's runner needs a checkout of it.
    commands = [command for command in _commands(page) if "$JEFFS_BRAIN" not in " ".join(command)]
    assert [command[command.index("memconform") + 1 :][:2] for command in commands] == [
        ["datasets", "fetch"],
        ["lme", "tri"],
        ["lme", "run"],
        ["diff", "replay#py"],
        *[["lme", "arbitrate"]] * 3,
    ]
    write_dataset(workspace / "small.json", questions=50)
    content = (workspace / "small.json").read_bytes()
    cheap = ("--ingest-mode", "bulk", "--retrieval-mode", "bm25", "--upstream", "own")
    with file_server() as server:
        server.content = content
        digest = hashlib.sha256(content).hexdigest()
        text = _SOURCES.format(url=server.url, size=len(content), sha256=digest)
        (workspace / "sources.toml").write_text(text)
        environment |= {"MEMCONFORM_SOURCES": "sources.toml", "MEMCONFORM_DATA": "data"}
        environment |= {"NO_PROXY": "127.0.0.1", "MEMCONFORM_CACHE": str(workspace / "cache")}
        # The page sets it for its first command; no other command may call a model either.
        environment["JB_LLM_PROVIDER"] = "fake"
        for command in commands:
            name, *words = command[command.index("memconform") :]
            assert command[: command.index(name)] in ([], ["JB_LLM_PROVIDER=fake"])
            more = {"tri": (*cheap, "--sdk", "py"), "run": cheap}.get(words[1], ())
            if "--import" in words:
                _judge_all(workspace / "answers.csv")
            ended = memconform(*words, *more)
            assert ended.code == 0, (command, ended.err)
            if words[1] == "tri":
                assert re.search(r"^py: .+ of 50 \(recall_all@20 100\.0 ", ended.out)
                assert ended.out.endswith("-> replay\n")
    assert (workspace / "review.md").is_file()
    assert len((workspace / "replay" / "overrides.jsonl").read_text().splitlines()) == 20
    _require_described_files(page, workspace / "replay")


def _judge_all(path: Path) -> None:
    """Fill in the column of verdicts."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(row | {"verdict": "correct"} for row in rows)


def _require_described_files(page: str, folder: Path) -> None:
    """The table of files names what the folder has; parity.json needs a second SDK."""
    table = page.partition("## The folder\n")[2].partition("\n## ")[0]
    described = set(re.findall(r"^\| `([^`]+)` ", table, re.MULTILINE))
    described = {name.replace("<sdk>", "py").partition("/")[0] for name in described}
    there = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert there - {"overrides.jsonl"} == described - {"parity.json"}


def test_files_and_commands_of_an_example_are_found() -> None:
    text = "`a.json`\n\n```json\n{}\n```\n\n```sh\nmemconform run \\\n  --sdk a#go   # all\n```\n"
    assert _files(text) == {"a.json": "{}\n"}
    assert _commands(text) == [["memconform", "run", "--sdk", "a#go"]]


@pytest.mark.capability("documents")
def test_the_complete_sdk_toml_runs_as_it_stands(
    memconform: Call, environment: dict[str, str], workspace: Path
) -> None:
    """Only the daemon is ours: a memory.py that starts the Python one."""
    # With the user's cache, a second run of this test found the build of the first.
    environment["XDG_CACHE_HOME"] = str(workspace / "cache")
    text = (CHECKOUT / "sdks" / "README.md").read_text(encoding="utf-8")
    block = re.search(r"sdk\.toml: begin -->\n```toml\n(.+?)^```", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    (workspace / "sdk.toml").write_text(block[1])
    source = str(CHECKOUT / "sdks" / "py" / "src")
    (workspace / "memory.py").write_text(
        f"import runpy, sys\nsys.path.insert(0, {source!r})\n"
        "runpy.run_module('memoryd', run_name='__main__', alter_sys=True)\n"
    )
    doctor = memconform("doctor", "--sdk", "sdk.toml", "--upstream", "scripted")
    assert doctor.code == 0, doctor.out
    assert "ok   search hybrid-rerank" in doctor.out
    # A build is announced, and ends with its duration, where nobody watches a terminal.
    lines = [line for line in doctor.err.splitlines() if "mine" in line]
    assert lines[0] == "  building mine (once, until its sources change)"
    assert re.fullmatch(r"  built mine in \d+ s", lines[-1])
    assert re.search(r"^ok   build +built mine in \d+ s$", doctor.out, re.MULTILINE)
    (workspace / "memory.py").write_text((workspace / "memory.py").read_text() + "# changed\n")
    cases = ("--case", "ask-usage", "--case", "rank-rerank", "--case", "upstream-chat-ollama")
    conform = memconform("conform", "--sdk", "sdk.toml", *cases, "--json", "-")
    assert conform.code == 0, conform.err
    assert "built mine in " in conform.err
    [sdk] = json.loads(conform.out)["sdks"]
    results = {case["case"]: case["checks"][0]["result"] for case in sdk["cases"]}
    assert results == {
        "ask-usage": "pass",
        "rank-rerank": "pass",
        "upstream-chat-ollama": "not_applicable",
    }
