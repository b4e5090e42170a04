"""What `disk` steps do with the files of a state folder."""

from pathlib import Path

import pytest

from memconform.conformance import disk
from memconform.conformance.session import transcript


def test_a_hard_link_is_another_name_of_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("heron")
    disk.create_hard_link(tmp_path, "new/folder/b", "a")
    assert (tmp_path / "new/folder/b").samefile(tmp_path / "a")
    with pytest.raises(disk.NoSuchFileError, match="no file c"):
        disk.create_hard_link(tmp_path, "d", "c")


def test_a_folder_is_removed_with_all_that_is_in_it(tmp_path: Path) -> None:
    disk.write_file(tmp_path, "a/b/c", b"heron")
    disk.write_file(tmp_path, "b", b"heron")
    disk.remove_folder(tmp_path, "a")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    with pytest.raises(disk.NoSuchFileError, match="no folder b"):
        disk.remove_folder(tmp_path, "b")


def test_a_replay_shows_what_a_step_wrote_and_never_missing(tmp_path: Path) -> None:
    """`replay` printed `(missing)` where a step had written a file."""
    written = transcript(disk.write_file(tmp_path, "a/b", b"A kettle sings.")).decode()
    assert written.split("\n")[0] == "# disk: write a/b"
    assert "A kettle sings." in written
    assert "A kettle sings." in transcript(disk.read_file(tmp_path, "a/b")).decode()
    removed = transcript(disk.remove_files(tmp_path, "a/b")).decode()
    assert "missing" not in written + removed
