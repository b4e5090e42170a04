"""Links of the documents lead somewhere, and the documented sdk.toml has every key."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args
from urllib.parse import unquote

import pytest
from pydantic import BaseModel

from memconform.contract.dialect import Dialect
from memconform.daemons.manifest import Manifest, load_manifest
from memconform.datasets.sources import find_data, known_sources
from memconform.errors import UsageError

_CHECKOUT = Path(__file__).parents[4]
_SDK_AUTHORS = _CHECKOUT / "docs" / "SDK-AUTHORS.md"

_FENCE = re.compile(r"^ *(`{3,}|~{3,}).*?(?:^ *\1[`~]* *$|\Z)", re.MULTILINE | re.DOTALL)
_CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: +#+)? *$", re.MULTILINE)
_LINK = re.compile(r"\]\(\s*<?([^()\s>]+)|^ {0,3}\[[^\]]+\]: +<?([^\s>]+)", re.MULTILINE)
_EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def _blanked(match: re.Match[str]) -> str:
    """As many lines, with nothing on them."""
    return "\n" * match[0].count("\n")


@cache
def _anchors(document: Path) -> frozenset[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    counts: dict[str, int] = {}
    anchors = set()
    text = _FENCE.sub(_blanked, document.read_text(encoding="utf-8"))
    for heading in _HEADING.findall(text):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        count = counts[anchor] = counts.get(anchor, -1) + 1
        anchors.add(f"{anchor}-{count}" if count else anchor)
    return frozenset(anchors)


def dead_links(document: Path) -> list[str]:
    """`line: target` for each relative link without a file, or without a heading there."""
    text = _FENCE.sub(_blanked, document.read_text(encoding="utf-8"))
    text = _CODE_SPAN.sub(_blanked, text)
    lines = []
    for match in _LINK.finditer(text):
        link = match[1] or match[2]
        if _EXTERNAL.match(link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = document.parent / path if path else document
        headings = _anchors(target) if target.is_file() and target.suffix == ".md" else frozenset()
        if not target.exists() or (anchor and anchor not in headings):
            lines.append(f"{text.count(chr(10), 0, match.start()) + 1}: {link}")
    return lines


def _documents() -> list[Path]:
    git = shutil.which("git")
    assert git is not None
    listed = subprocess.run(
        [git, "ls-files", "-z", "*.md"], cwd=_CHECKOUT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    documents = {_CHECKOUT / name for name in listed if name}
    # One that was removed is listed until that is committed, a new one only afterwards.
    return sorted({d for d in documents if d.exists()} | {*(_CHECKOUT / "docs").glob("*.md")})


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    documents = _documents()
    assert _SDK_AUTHORS in documents
    dead = [f"{d.relative_to(_CHECKOUT)}:{link}" for d in documents for link in dead_links(d)]
    assert dead == []


def _misnamed_links(text: str) -> list[str]:
    """Links whose text is the name of another document than the one they lead to."""
    links = re.finditer(r"\[([\w-]+\.md)\]\(([^)#\s]+)", text)
    return [link[0] for link in links if Path(link[2]).name != link[1]]


def test_a_link_with_the_name_of_a_document_leads_there() -> None:
    for document in [_CHECKOUT / "README.md", *(_CHECKOUT / "docs").glob("*.md")]:
        assert _misnamed_links(document.read_text(encoding="utf-8")) == [], document
    assert _misnamed_links("[A.md](docs/A.md#x) [RESULTS.md](EXIT-CODES.md)") != []


def _unknown_datasets(text: str) -> list[str]:
    """Names that a command downloads, and that no source has."""
    named = re.findall(r"datasets fetch ([a-z][a-z0-9_]*)", text)
    return [name for name in named if name not in known_sources()]


def test_documented_downloads_are_of_known_datasets() -> None:
    """The page about answers downloaded a dataset that does not exist."""
    texts = [document.read_text(encoding="utf-8") for document in _documents()]
    assert [name for text in texts for name in _unknown_datasets(text)] == []
    assert _unknown_datasets("memconform datasets fetch longmemeval_s") == ["longmemeval_s"]
    with pytest.raises(UsageError, match="is no source") as caught:
        find_data("longmemeval_s")
    assert caught.value.hint == "did you mean 'longmemeval_s_cleaned'?"


def test_the_runs_of_the_page_about_dialects_need_no_key_and_name_their_questions() -> None:
    text = (_CHECKOUT / "docs" / "DIALECTS.md").read_text(encoding="utf-8").replace("\\\n", " ")
    runs = re.findall(r"^ *memconform run .*", text, re.MULTILINE)
    assert len(runs) == 4
    for run in runs:
        assert "--scorer exact" in run or "--scenario search-retrieve-only" in run
        assert "--data smoke" in run or '--data "$JEFFS_BRAIN/' in run


def test_dead_links_and_anchors_are_reported(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text(
        "# Other\n\n## Twice\n\n## Twice\n\n```\n## No heading\n```\n"
    )
    (tmp_path / "data.json").write_text("{}")
    document = tmp_path / "document.md"
    document.write_text(
        """# Its own heading: `code` & [a link](other.md)

[a file](other.md), [its second](other.md#twice-1), [a folder](../), [data](data.json),
[own](#its-own-heading-code--a-link), [elsewhere](https://example.org/missing#heading)
[no file](missing.md) and `[no link](missing.md)`
[no heading, over two
lines](other.md#no-heading)
[no third](other.md#twice-2) [not its own](#other), [`code`](gone/) [no anchors](data.json#a)

```toml
a = "[no link](missing.md)"
```

[reference]: gone.md
"""
    )
    assert dead_links(document) == [
        "5: missing.md",
        "7: other.md#no-heading",
        "8: other.md#twice-2",
        "8: #other",
        "8: gone/",
        "8: data.json#a",
        "14: gone.md",
    ]


Key = tuple[str, ...]
"""A key of sdk.toml, preceded by its tables."""


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _known(model: type[BaseModel], tables: Key = ()) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        key = (*tables, field.alias or name)
        yield key
        for table in _models(field.annotation):
            # A dialect has a page of its own.
            if table is not Dialect:
                yield from _known(table, key)


def _given(value: object, tables: Key = ()) -> Iterator[Key]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*tables, name)
            yield from _given(inner, (*tables, name))
    elif isinstance(value, list):
        for item in value:
            yield from _given(item, tables)


def _sdk_toml() -> str:
    """The block that has every key."""
    text = _SDK_AUTHORS.read_text(encoding="utf-8")
    block = re.search(r"<!-- sdk\.toml: begin -->\n```toml\n(.+?)```", text, re.DOTALL)
    assert block is not None
    return block[1]


def _manifests() -> list[str]:
    """Every block that is a whole sdk.toml."""
    text = _SDK_AUTHORS.read_text(encoding="utf-8")
    blocks: list[str] = re.findall(r"^```toml\n(.+?)^```", text, re.DOTALL | re.MULTILINE)
    return [block for block in blocks if "[serve]" in block]


@pytest.mark.parametrize("block", _manifests())
def test_a_documented_manifest_is_valid(block: str) -> None:
    assert Manifest.model_validate(tomllib.loads(block)).name == "mine"


def test_the_documented_manifest_has_every_key() -> None:
    block = _sdk_toml()
    assert block in _manifests()
    # A daemon either has a command or runs already.
    every = set(_known(Manifest)) - {("serve", "url")}
    assert every - set(_given(tomllib.loads(block))) == set()
    without = block.replace("timeout_s = 900", "")
    assert every - set(_given(tomllib.loads(without))) == {("build", "timeout_s")}


def test_the_table_of_keys_has_every_key_and_no_other() -> None:
    text = _SDK_AUTHORS.read_text(encoding="utf-8")
    section = text.partition("### Every key\n")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    keys = list(_known(Manifest))
    parents = {key[:-1] for key in keys}
    # A table that has rows of its own needs none; a list of tables is a key all the same.
    leaves = [key for key in keys if len(key) > 1 or key not in parents]
    names = [f"[{'.'.join(key[:-1])}] {key[-1]}" if key[1:] else key[0] for key in leaves]
    assert sorted(rows) == sorted(names)


def test_the_complete_manifest_of_the_sdks_page_is_valid_and_explained(tmp_path: Path) -> None:
    text = (_CHECKOUT / "sdks" / "README.md").read_text(encoding="utf-8")
    block = re.search(r"sdk\.toml: begin -->\n```toml\n(.+?)^```\n", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    path = tmp_path / "sdk.toml"
    path.write_text(block[1])
    manifest = load_manifest(path)
    assert manifest.upstream is not None
    assert manifest.upstream.scripted
    table = text[block.end() :].partition("\n\nA daemon that answers")[0]
    unexplained = {key[-1] for key in _given(tomllib.loads(block[1])) if key[-1] not in table}
    # Variables of the contract; the row of their table explains them together.
    assert {name for name in unexplained if not name.isupper()} == set()


def test_the_map_of_rooms_is_the_one_that_is_enforced() -> None:
    project = tomllib.loads((_CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    [contract] = project["tool"]["importlinter"]["contracts"]
    package = _CHECKOUT / "eval" / "memconform"
    floors = [set(layer.split(" | ")) for layer in contract["layers"]]
    text = (_CHECKOUT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("## Rooms")[2].partition("##")[0]
    documented: list[set[str]] = []
    for floor, rooms in re.findall(r"^\| (\d*) ?\| (`[^|]*`) \|", table, re.MULTILINE):
        if floor:
            documented.append(set())
            assert int(floor) == len(floors) + 1 - len(documented)
        documented[-1].update(re.findall(r"`(\w+)`", rooms))
    assert documented == floors
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", text)
    assert named
    assert [path for path in named if not (package / path).is_file()] == []


def test_the_map_names_objects_that_exist() -> None:
    package = _CHECKOUT / "eval" / "memconform"
    text = (_CHECKOUT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    places = re.findall(r"`([\w/]+\.py)` `(\w+(?:\.\w+)*)`", text)
    assert ("scoring/exact.py", "ExactScorer.score") in places
    missing = [
        f"{path}: {name}"
        for path, names in places
        for name in names.split(".")
        if not re.search(rf"\b(?:def|class) {name}\b", (package / path).read_text("utf-8"))
    ]
    assert missing == []
