"""`memconform bench --errata`, the installed program."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import Ended

Call = Callable[..., Ended]


def _row(report: dict[str, Any], system: str) -> dict[str, Any]:
    [row] = [row for row in report["rows"] if row["system"] == system]
    loaded: dict[str, Any] = row
    return loaded


def _boxes(workspace: Path) -> Path:
    items = [{"id": f"i{n}", "content": f"The secret of box{n} is word{n}x"} for n in range(6)]
    questions = [{"query": f"What is in box{n}?", "gold": [f"i{n}"]} for n in range(6)]
    path = workspace / "boxes.json"
    path.write_text(json.dumps({"name": "boxes", "items": items, "questions": questions}))
    return path


def _bench(memconform: Call, data: Path, *more: str | Path) -> tuple[Ended, dict[str, Any]]:
    file = data.with_name("report.json")
    file.unlink(missing_ok=True)
    ended = memconform("bench", "--suite", "file", "--data", data, "--json", file, *more)
    return ended, json.loads(file.read_text()) if file.exists() else {}


def test_wrong_gold_is_corrected_and_what_it_rewards_is_pointed_out(
    memconform: Call, workspace: Path
) -> None:
    # The oracle finds the raw gold, such as i3; by the errata, i4 answers the query.
    corrected: dict[str, dict[str, Any]] = {
        f"#{n}": {"reason": "wrong citation", "gold": [f"i{(n + 1) % 6}"]} for n in range(5)
    }
    (workspace / "errata.json").write_text(json.dumps(corrected))
    flags = ("--system", "oracle", "--errata", workspace / "errata.json")
    ended, report = _bench(memconform, _boxes(workspace), *flags)
    assert ended.code == 0, ended.err
    row, errata = _row(report, "oracle"), report["errata"]
    assert row["views"]["all"]["metrics"]["recall_any@5"]["value"] == 100
    undisputed = row["views"]["undisputed"]
    assert undisputed["queries"] == 6
    assert undisputed["metrics"]["recall_any@5"]["value"] < 100
    assert (errata["disputed"], errata["corrected"], errata["shipped"]) == (0, 5, False)
    scopes = {each["scope"] for each in row["above_ceilings"]}
    assert {"all", "corrected gold"} <= scopes
    [note] = [line for line in ended.err.splitlines() if "above the ceiling" in line]
    assert note.startswith("oracle: above the ceiling of wrong gold: all")
    assert "by 5 corrected queries" in note
    # A single query is no scope.
    (workspace / "errata.json").write_text(json.dumps({"#3": corrected["#3"]}))
    ended, report = _bench(memconform, _boxes(workspace), *flags)
    assert report["errata"]["ceilings"] == []
    assert "above the ceiling" not in ended.err
    (workspace / "errata.json").write_text(json.dumps(corrected))
    # A system that finds nothing is below every ceiling.
    flags = ("--system", "null", "--errata", workspace / "errata.json")
    ended, report = _bench(memconform, _boxes(workspace), *flags)
    assert _row(report, "null")["above_ceilings"] == []
    assert "above the ceiling" not in ended.err
    corrected["#3"]["gold"] = ["i99"]
    (workspace / "errata.json").write_text(json.dumps(corrected))
    ended, _ = _bench(memconform, _boxes(workspace), *flags)
    assert (ended.code, "#3: " in ended.err, "no item 'i99'" in ended.err) == (2, True, True)


def test_errata_that_ship_are_applied_to_the_public_file_only(
    memconform: Call, workspace: Path, environment: dict[str, str]
) -> None:
    turns = [
        {"dia_id": f"D1:{number}", "speaker": "Ada", "text": f"The kiln is number {number}."}
        for number in range(1, 16)
    ]
    asked = {"question": "Which is it?", "answer": "12", "evidence": ["D1:12"], "category": 2}
    talk = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    # The errata correct conv-26#1 to D1:14, and dispute conv-26#2.
    conversation = {"sample_id": "conv-26", "conversation": talk, "qa": [asked] * 3}
    content = json.dumps([conversation])
    (workspace / "talk.json").write_text(content)
    flags: tuple[str, ...] = ("bench", "--suite", "locomo", "--data", "talk.json")
    flags += ("--level", "turn", "--system", "oracle", "--json", "report.json")

    def views(*more: str) -> tuple[Ended, dict[str, Any]]:
        ended = memconform(*flags, *more)
        assert ended.code == 0, ended.err
        report = json.loads((workspace / "report.json").read_text())
        return ended, _row(report, "oracle")["views"]

    ended, raw = views()
    assert "--errata locomo applies them" in ended.err
    assert raw.keys() == {"all"}
    _, named = views("--errata", "locomo")
    assert named["undisputed"]["queries"] == 2
    assert named["undisputed"]["metrics"]["recall_any@5"]["value"] == 50
    (workspace / "sources.toml").write_text(
        '[locomo]\nabout = "a"\nhome = "h"\nlicence = "l"\nformat = "locomo"\nfolder = "f"\n'
        f'[[locomo.files]]\nname = "talk.json"\nbytes = {len(content)}\n'
        f'sha256 = "{hashlib.sha256(content.encode()).hexdigest()}"\n'
    )
    environment["MEMCONFORM_SOURCES"] = str(workspace / "sources.toml")
    assert views()[1].keys() == {"all", "undisputed"}
    ended, raw = views("--errata", "none")
    assert raw.keys() == {"all"}
    assert "errata" not in ended.err
