"""Listings: folders, hidden names, globs."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.files.glob import compile_glob
from memoryd.files.list import Listing
from memoryd.files.tree import Tree

_PATHS = ("a/b.md", "a/c/d.md", "a.md", "_g/x.md", "a/_h.md", "only/_i.md", "Z.md", "ä.md")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    for path in _PATHS:
        file = tmp_path / "brain" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("zebra")
    (tmp_path / "brain" / "empty" / "deeper").mkdir(parents=True)
    (tmp_path / "brain" / "back\\slash").write_text("zebra")
    return Tree(tmp_path / "brain", tmp_path / "meta")


def _paths(
    tree: Tree,
    folder: str = "",
    *,
    recursive: bool = False,
    hidden: bool = False,
    glob: str | None = None,
) -> list[str]:
    return [item["path"] for item in Listing(folder, recursive, hidden, glob).items(tree)]


def test_a_folder_has_documents_and_folders(tree: Tree) -> None:
    assert _paths(tree) == ["Z.md", "a", "a.md", "only", "ä.md"]
    assert _paths(tree, "a") == ["a/b.md", "a/c"]
    [document, folder] = Listing("a", recursive=False, hidden=False, glob=None).items(tree)
    assert (document["size"], document["is_dir"]) == (5, False)
    assert (folder["size"], folder["is_dir"]) == (0, True)


def test_a_recursive_listing_has_documents_only(tree: Tree) -> None:
    # `x.md` is not hidden, though its folder is.
    assert _paths(tree, recursive=True) == [
        "Z.md",
        "_g/x.md",
        "a.md",
        "a/b.md",
        "a/c/d.md",
        "ä.md",
    ]


def test_hidden_items_are_listed_on_request(tree: Tree) -> None:
    assert _paths(tree, hidden=True) == ["Z.md", "_g", "a", "a.md", "only", "ä.md"]
    assert _paths(tree, "a", hidden=True) == ["a/_h.md", "a/b.md", "a/c"]
    assert sorted(_paths(tree, recursive=True, hidden=True)) == sorted(_PATHS)


@pytest.mark.parametrize("folder", ["nowhere", "a.md", "empty", "a.md/x"])
def test_a_folder_without_documents_has_an_empty_listing(tree: Tree, folder: str) -> None:
    assert _paths(tree, folder) == []
    assert _paths(tree, folder, recursive=True) == []


def test_a_brain_without_its_folder_is_empty(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "gone", tmp_path / "meta")
    assert _paths(tree) == _paths(tree, recursive=True) == []


@pytest.mark.parametrize(
    ("glob", "fitting"),
    [
        ("*", ["Z.md", "a", "a.md", "only", "ä.md"]),
        ("*.md", ["Z.md", "a.md", "ä.md"]),
        ("?.md", ["Z.md", "a.md", "ä.md"]),
        ("a", ["a"]),
        ("a*", ["a", "a.md"]),
        ("?", ["a"]),
        ("**n**y", ["only"]),
        ("*l?", ["only"]),
        ("[a].md", []),
        ("{a,Z}.md", []),
        ("A*", []),
        ("a?md", ["a.md"]),
        (".md", []),
        ("*a*a*", []),
        ("", []),
        ("x" * 251, []),
    ],
)
def test_a_glob_matches_the_whole_base_name(tree: Tree, glob: str, fitting: list[str]) -> None:
    assert _paths(tree, glob=glob) == fitting


def test_globs_match_the_base_name_of_deeper_documents(tree: Tree) -> None:
    assert _paths(tree, recursive=True, glob="?.md") == _paths(tree, recursive=True)
    assert _paths(tree, recursive=True, glob="a/*") == []


@pytest.mark.parametrize(
    ("name", "glob", "fits"),
    [
        ("a\nb", "a?b", True),
        ("a\\b?", "*\\?", False),
        ("x.*y", "x.*y", True),
        ("xzy", "x.*y", False),
        ("abcabc", "*abc", True),
        ("aab", "a*ab", True),
        ("ab", "ab*ab", False),
        ("\U0001f600", "?", True),
    ],
)
def test_globs_match_characters_not_bytes(
    tmp_path: Path, name: str, glob: str, *, fits: bool
) -> None:
    (tmp_path / "brain").mkdir()
    (tmp_path / "brain" / name).write_text("")
    tree = Tree(tmp_path / "brain", tmp_path / "meta")
    assert bool(_paths(tree, glob=glob)) == fits


def test_no_glob_is_slow(tmp_path: Path) -> None:
    (tmp_path / "brain").mkdir()
    (tmp_path / "brain" / ("a" * 250)).write_text("")
    tree = Tree(tmp_path / "brain", tmp_path / "meta")
    # A slow one takes hours.
    for glob in ("*a" * 124 + "*b", "*" * 10**6, "*?" * 10**5, "*aaab" * 50):
        _paths(tree, glob=glob)


def _cpu_seconds(match: Callable[[str], object], size: int) -> float:
    """The least of some rounds of processor time, which others' work does not count in."""
    times = []
    for _ in range(5):
        began = time.process_time()
        for _ in range(100):
            assert not match("a" * size)
        times.append(time.process_time() - began)
    return min(times)


def test_a_glob_takes_linear_time() -> None:
    match = compile_glob("*a*b*")
    # 16 times if it is linear, and 256 times with backtracking.
    # short limit: two sizes are compared, with a factor of four to both sides
    assert _cpu_seconds(match, 16_000) < 64 * _cpu_seconds(match, 1_000)
