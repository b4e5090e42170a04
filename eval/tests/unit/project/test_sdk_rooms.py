"""The reference daemons have the same rooms, and the table of sdks/README.md shows them."""

import re
from pathlib import Path

import pytest

SDKS = Path(__file__).parents[4] / "sdks"

ENTRY_POINTS = {"main", "cli", "__main__"}
TEST_HELPERS = {"servicetest", "vectortest", "testing"}

Columns = dict[str, list[str]]
"""The paths of each column of the table, by the root that they are relative to."""


def columns_of(readme: str) -> Columns:
    section = readme.partition("## Where is what, in each daemon\n")[2].partition("\n## ")[0]
    header, _, *rows = [line for line in section.splitlines() if line.startswith("|")]
    cells = [re.findall(r"`([^`]+)`", cell) for cell in header.strip("|").split("|")[1:]]
    columns: Columns = {root: [] for [root] in cells}
    for row in rows:
        _, *paths = row.strip("|").split("|")
        for root, cell in zip(columns, paths, strict=True):
            columns[root] += re.findall(r"`([^`]+)`", cell)
    return columns


def rooms_of(root: Path) -> set[str]:
    """The folders and modules directly in `root`, without tests."""
    return {
        path.name
        for path in root.iterdir()
        if path.name not in {"__init__.py", "__pycache__"} and not path.name.endswith(".test.ts")
    }


def missing_paths(sdks: Path, columns: Columns) -> list[str]:
    return [
        f"{root}/{path}"
        for root, paths in columns.items()
        for path in paths
        if not (sdks / root / path).exists()
    ]


def undocumented_rooms(sdks: Path, columns: Columns) -> list[str]:
    return [
        f"{root}/{room}"
        for root, paths in columns.items()
        for room in sorted(rooms_of(sdks / root) - {path.partition("/")[0] for path in paths})
    ]


COLUMNS = columns_of((SDKS / "README.md").read_text(encoding="utf-8"))


def test_the_table_has_a_column_for_each_daemon() -> None:
    assert [*COLUMNS] == ["go/internal", "ts/src", "py/src/memoryd"]
    assert min(map(len, COLUMNS.values())) >= 40


def test_every_path_of_the_table_exists() -> None:
    assert missing_paths(SDKS, COLUMNS) == []


def test_every_room_is_in_the_table() -> None:
    assert undocumented_rooms(SDKS, COLUMNS) == []


def test_the_daemons_have_the_same_rooms() -> None:
    go, ts, py = (
        {room.partition(".")[0] for room in rooms_of(SDKS / root)} - ENTRY_POINTS - TEST_HELPERS
        for root in COLUMNS
    )
    assert go == ts == py


@pytest.fixture
def small(tmp_path: Path) -> Columns:
    for path in ("go/internal/feed/feed.go", "ts/src/feed.ts", "ts/src/feed.test.ts"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    return columns_of(
        "## Where is what, in each daemon\n\n| concept | `go/internal` | `ts/src` |\n"
        "| --- | --- | --- |\n| feed | `feed/feed.go` | `feed.ts` |\n\n## Next\n\n| `a` |\n"
    )


def test_an_unknown_folder_and_a_missing_file_are_reported(tmp_path: Path, small: Columns) -> None:
    assert undocumented_rooms(tmp_path, small) == missing_paths(tmp_path, small) == []
    (tmp_path / "go" / "internal" / "attic").mkdir()
    (tmp_path / "ts" / "src" / "extra.ts").touch()
    (tmp_path / "ts" / "src" / "feed.ts").unlink()
    assert undocumented_rooms(tmp_path, small) == ["go/internal/attic", "ts/src/extra.ts"]
    assert missing_paths(tmp_path, small) == ["ts/src/feed.ts"]
