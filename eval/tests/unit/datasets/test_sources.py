import gzip
import hashlib
import re
from pathlib import Path

import pytest

from memconform.datasets.sources import (
    SOURCES_VARIABLE,
    load_sources,
    pinned_folder,
    select_source,
)
from memconform.errors import UsageError
from memconform.printing.errors import render_error

_GOOD = """
[a]
about = "a set"
home = "https://example.org"
licence = "CC0"
format = "locomo"
folder = "a"
url = "https://example.org/v1/"

[[a.files]]
name = "a.json"
bytes = 1
sha256 = "SHA256"
""".replace("SHA256", "0" * 64)


def _written(folder: Path, content: str) -> Path:
    path = folder / "sources.toml"
    path.write_text(content)
    return path


def test_shipped_sources_are_pinned_to_a_revision(tmp_path: Path) -> None:
    sources = load_sources(None)
    assert {"locomo", "longmemeval_oracle", "longmemeval_s_cleaned", "wmb100k"} <= set(sources)
    for source in sources.values():
        assert re.fullmatch("[0-9a-f]{40}", source.revision or "")
        # Where files lie is for the user to say.
        assert source.url is not None
        # Of the pinned revision: what a branch holds may change.
        assert f"/{source.revision}/" in source.url
    assert sources["locomo"].place(tmp_path) == tmp_path / "locomo" / "locomo10.json"
    assert sources["wmb100k"].place(tmp_path) == tmp_path / "wmb100k"
    assert sources["wmb100k"].size == 32_725_515


def test_a_good_file_is_read(tmp_path: Path) -> None:
    [(name, source)] = load_sources(_written(tmp_path, _GOOD)).items()
    assert (name, source.files[0].size) == ("a", 1)


def test_a_folder_is_pinned_if_every_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {"one.txt": b"first", "sub/two.txt": b"second"}
    files = "".join(
        f'[[a.files]]\nname = "{name}"\nbytes = {len(content)}\n'
        f'sha256 = "{hashlib.sha256(content).hexdigest()}"\n'
        for name, content in contents.items()
    )
    head = _GOOD.partition("[[")[0].replace("locomo", "wmb")
    monkeypatch.setenv(SOURCES_VARIABLE, str(_written(tmp_path, head + files)))
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    for name, content in contents.items():
        assert pinned_folder(folder) is None
        (folder / name).write_bytes(content)
    assert pinned_folder(folder) == "a"
    (folder / "one.txt").unlink()
    (folder / "one.txt.gz").write_bytes(gzip.compress(b"first"))
    assert pinned_folder(folder) == "a"
    (folder / "sub" / "two.txt").write_bytes(b"SECOND")
    assert pinned_folder(folder) is None
    (folder / "sub" / "two.txt").write_bytes(b"second")
    (folder / "one.txt.gz").write_bytes(b"not gzip")
    assert pinned_folder(folder) is None


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[a]", "[A]", "[A] "),
        ("[a]", "[a", "at line 2"),
        ('licence = "CC0"\n', "", "[a] licence: missing"),
        ("licence", "license", "[a] license: unknown key; did you mean 'licence'?"),
        ("bytes", "byte", "[a] files.0.byte: unknown key; did you mean 'bytes'?"),
        ("bytes = 1", "bytes = 0", "[a] files.0.bytes: "),
        ("bytes = 1", 'bytes = "1"', "[a] files.0.bytes: "),
        ("0" * 64, "0" * 63, "[a] files.0.sha256: "),
        ('"a.json"', '"/a.json"', "[a] files.0.name: "),
        ('"a.json"', '"../a.json"', "[a] files.0.name: "),
        ('"a.json"', '"b/../a.json"', "[a] files.0.name: "),
        ('"a.json"', '".a.json.part"', "[a] files.0.name: "),
        ('"a.json"', '"a.json\\n"', "[a] files.0.name: "),
        ('folder = "a"', 'folder = ".."', "[a] folder: "),
        ('folder = "a"', 'folder = ""', "[a] folder: "),
        ("https://example.org/v1/", "https://example.org/v1", "[a] url: "),
        ("https://example.org/v1/", "file:///v1/", "[a] url: "),
        ('"locomo"', '"lokomo"', "[a] format: no 'lokomo'; did you mean 'locomo'?"),
        ("[[a.files]]", "[[a.file]]", "[a] files: missing"),
    ],
)
def test_a_bad_entry_is_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = _written(tmp_path, _GOOD.replace(old, new))
    with pytest.raises(UsageError) as caught:
        load_sources(path)
    text = render_error(caught.value)
    assert f"{path} is not a valid sources.toml" in text
    assert says in text


def test_two_files_of_one_place_are_refused(tmp_path: Path) -> None:
    path = _written(tmp_path, _GOOD + _GOOD.replace("[a]", "[b]").replace("a.files", "b.files"))
    with pytest.raises(UsageError) as caught:
        load_sources(path)
    assert caught.value.excerpt == "[b] files.0.name: a/a.json also belongs to a"


def test_several_files_of_a_format_of_one_are_refused(tmp_path: Path) -> None:
    more = _GOOD[_GOOD.index("[[") :].replace("a.json", "b.json")
    with pytest.raises(UsageError) as caught:
        load_sources(_written(tmp_path, _GOOD + more))
    assert caught.value.excerpt == "[a] files: locomo takes a single file"


def test_a_file_that_is_missing_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml: No such file"):
        load_sources(tmp_path / "none.toml")
    path = tmp_path / "sources.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(UsageError) as caught:
        load_sources(path)
    assert caught.value.excerpt == "not UTF-8 at byte 0"


def test_sources_are_chosen_once_and_in_the_order_given() -> None:
    sources = load_sources(None)
    assert list(select_source(sources, ("wmb100k", "locomo", "wmb100k"))) == ["wmb100k", "locomo"]
    with pytest.raises(UsageError, match="no source 'locmo'") as caught:
        select_source(sources, ("locmo",))
    assert caught.value.hint == "did you mean 'locomo'?"
