"""What a `disk: damage` step does to the files that it matches."""

from pathlib import Path

import pytest

from memconform.conformance.disk import Damage, NoSuchFileError, damage_files

_PAGE = 4096


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "index" / "b.sqlite"
    file.parent.mkdir()
    file.write_bytes(b"".join(bytes([97 + n]) * _PAGE for n in range(4)) + b"Rest 1")
    return file


@pytest.mark.parametrize(
    ("page", "kind", "pages"),
    [
        (0, "zeros", [bytes(_PAGE), b"b" * _PAGE, b"c" * _PAGE, b"d" * _PAGE, b"Rest 1"]),
        (0.5, "letters", [b"a" * _PAGE, b"b" * _PAGE, b"d" * _PAGE, b"d" * _PAGE, b"Rest 1"]),
        (1, "letters", [b"a" * _PAGE, b"b" * _PAGE, b"c" * _PAGE, b"d" * _PAGE, b"Rftu 1"]),
        ("all", "letters", [b"b" * _PAGE, b"c" * _PAGE, b"d" * _PAGE, b"e" * _PAGE, b"Rftu 1"]),
        ("later", "word", [b"a" * _PAGE, b"c" * _PAGE, b"d" * _PAGE, b"e" * _PAGE, b"Rest 1"]),
        ("all", "word", [b"b" * _PAGE, b"c" * _PAGE, b"d" * _PAGE, b"e" * _PAGE, b"Rest 1"]),
        (0.25, "cut", [b"a" * _PAGE]),
    ],
)
def test_only_the_page_is_damaged(
    file: Path, page: float, kind: Damage, pages: list[bytes]
) -> None:
    damage_files(file.parents[1], "index/**/*", page, kind)
    assert file.read_bytes() == b"".join(pages)


def test_a_word_is_changed_and_all_around_it_is_kept(file: Path) -> None:
    page = "a tail of three words: first, second, third, é".encode()
    file.write_bytes(page)
    damage_files(file.parents[1], "index/*", "all", "word")
    assert file.read_bytes() == page.replace(b"first", b"gjstu")


def test_noise_fills_a_page_even_of_an_empty_file(file: Path) -> None:
    file.write_bytes(b"")
    damage_files(file.parents[1], "index/*")
    assert file.read_bytes() == b"\xde\xad\xbe\xef" * 1024


def test_a_pattern_without_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoSuchFileError):
        damage_files(tmp_path, "index/*")
