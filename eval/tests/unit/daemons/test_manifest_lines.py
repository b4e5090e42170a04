"""On which line a key of an sdk.toml is, and that errors name it."""

from pathlib import Path

import pytest

from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_lines import ManifestLines, key_lines
from memconform.errors import UsageError
from tests.conftest import CHECKOUT

_TEXT = '''\
# a comment = 1
name = "mine"

[serve]
argv = [
  "./serve",   # argv = "not here"
  "name = 'no key'",
]
[env]
set = { A = "1", "B-C" = "2" }
text = """
[ready]
path = "in a string"
"""
seed.via = "http"
[upstream.scripted]
A = "1"
[[dialect.choices]]
cause = "x"
'''


def test_each_key_is_on_the_line_on_which_it_is_first_written() -> None:
    lines = key_lines(_TEXT)
    assert lines["name",] == 2
    assert lines["serve",] == 4
    assert lines["serve", "argv"] == 5
    assert lines["env", "set"] == 10
    assert lines["env", "set", "B-C"] == 10
    assert lines["env", "seed", "via"] == 15
    assert lines["upstream", "scripted"] == 16
    assert lines["upstream", "scripted", "A"] == 17
    assert lines["dialect", "choices", "cause"] == 19
    assert not any("ready" in key or "path" in key for key in lines)


def test_a_missing_key_is_placed_at_its_table_and_an_unknown_one_nowhere() -> None:
    lines = ManifestLines(_TEXT)
    assert lines.place("serve", "argv", "0") == "sdk.toml:5"
    assert lines.place("serve", "url") == "sdk.toml:4"
    assert lines.place("ready", "path") == "sdk.toml"


def test_an_invalid_file_is_read_up_to_its_fault() -> None:
    assert key_lines('a = 1\nb = "\nc = 1\n') == {("a",): 1}
    assert key_lines("") == {}


def test_every_key_of_the_reference_manifests_is_found() -> None:
    for path in (CHECKOUT / "sdks").glob("*/sdk.toml"):
        text = path.read_text(encoding="utf-8")
        lines = key_lines(text)
        for (*_, key), line in lines.items():
            assert key in text.splitlines()[line - 1], (path, key, line)
        assert ("capabilities", "modes") in lines


_GOOD = """\
name = "mine"
language = "cobol"
[serve]
argv = ["./serve", "{addr}"]
[capabilities]
profiles = ["core"]
modes = ["bm25"]
"""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('"bm25"', '"bm26"'), "sdk.toml:7: [capabilities.modes] 0: 'bm26'"),
        (("argv", "argvv"), "sdk.toml:4: [serve] argvv: unknown key"),
        (("argv", "argvv"), "sdk.toml:3: [serve] argv: missing"),
        (('["core"]', '["core"]\nreaders = ["fake"]'), "sdk.toml:7: [capabilities] readers: needs"),
        (('argv = ["./serve", "{addr}"]', "argv = []"), "sdk.toml:4: [serve] argv: must not be"),
    ],
)
def test_a_fault_of_a_manifest_names_its_line(
    tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    path = tmp_path / "sdk.toml"
    path.write_text(_GOOD.replace(*change))
    with pytest.raises(UsageError) as caught:
        load_manifest(path)
    assert says in caught.value.excerpt
