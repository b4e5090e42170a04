from pathlib import Path

import pytest

from memconform.contract.names import Mode
from memconform.daemons.build import build_hash, build_key
from memconform.daemons.discovery import find_runner, known_sdks
from memconform.daemons.manifest import load_manifest
from memconform.errors import UsageError

_GOOD = """
name = "mine"
language = "cobol"
[serve]
argv = ["./serve", "{addr}"]
[capabilities]
profiles = ["core"]
modes = ["bm25"]
"""


def _write(folder: Path, content: str) -> Path:
    path = folder / "sdk.toml"
    path.write_text(content)
    return path


def test_the_smallest_manifest(tmp_path: Path) -> None:
    manifest = load_manifest(_write(tmp_path, _GOOD))
    assert (manifest.name, manifest.seed.via, manifest.ready.path) == ("mine", "http", "/healthz")
    assert manifest.build is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("argv", "argvv"), "[serve] argvv: unknown key; did you mean 'argv'?"),
        (("argv", "argvv"), "[serve] argv: missing"),
        (("[serve]", "[server]"), "server: unknown key; did you mean 'serve'?"),
        (("[serve]", "[env]\npas = []\n[serve]"), "did you mean 'pass'?"),
        (("[serve]", "[build]\ncommand = ['x']\ninput = []\n[serve]"), "did you mean 'inputs'?"),
        (('"bm25"', '"bm26"'), "[capabilities.modes] 0: 'bm26' is not 'auto', "),
        (('"mine"', '"My SDK"'), "name: 'My SDK' is invalid: use a lower-case letter, then"),
        (
            ("[serve]", "[ready]\npath = 'ok'\n[serve]"),
            "path: 'ok' is invalid: begin with /",
        ),
        (
            ("[serve]", "[seed]\nvia = 'disk'\nfolder = 'stores/{brian}'\n[serve]"),
            "unknown placeholder {brian}; did you mean {brain}?",
        ),
        (
            ("[serve]", "[env.set]\nDATA = '{state-dir} {stat_dir}'\n[serve]"),
            "unknown placeholder {stat_dir}; did you mean {state_dir}?",
        ),
        (("argv = [", "argv = ['{address}', "), "placeholder {address}; did you mean {addr}?"),
        (
            ("[serve]", "[build]\ncommand = ['x', '{zzz}']\ninputs = ['*']\n[serve]"),
            "unknown placeholder {zzz}; known are {build_dir} {python}",
        ),
        (('"cobol"', '"cobol'), "line 3"),
        (('name = "mine"', 'name = "mine"\ncontract = "2"'), "contract: '2' is not '1'"),
    ],
)
def test_an_invalid_manifest_is_refused_with_the_fault(
    tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    path = _write(tmp_path, _GOOD.replace(*change))
    with pytest.raises(UsageError) as caught:
        load_manifest(path)
    assert str(path) in caught.value.message
    assert says in caught.value.excerpt


def test_every_reference_sdk_has_a_valid_manifest() -> None:
    sdks = known_sdks(Path(__file__).parent)
    assert "py" in sdks
    for name, path in sdks.items():
        assert load_manifest(path).name == name


def test_a_user_file_adds_sdks(tmp_path: Path) -> None:
    _write(tmp_path, _GOOD)
    (tmp_path / "memconform.toml").write_text('[sdks]\nmine = "sdk.toml"\n')
    assert find_runner("mine", tmp_path).language == "cobol"


@pytest.mark.parametrize("content", ["[sdk]\n", "sdks = 3", "[sdks]\na = 1", "["])
def test_an_invalid_user_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "memconform.toml").write_text(content)
    with pytest.raises(UsageError, match=r"memconform\.toml"):
        known_sdks(tmp_path)


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("pi", "unknown SDK 'pi'"),
        ("nowhere/sdk.toml", "No such file"),
        ("./nowhere", "--sdk ./nowhere: no such folder or sdk.toml"),
        ("url:localhost", "not a valid daemon address"),
        ("url:ftp://x", "not a valid daemon address"),
        ("no.such.module:Thing", "No module named"),
        ("memconform.errors:Nothing", "Nothing"),
        ("memconform.errors:UsageError", "not a subclass of SdkRunner"),
    ],
)
def test_an_unresolvable_reference_is_refused(reference: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        find_runner(reference, Path(__file__).parent)


def test_an_unknown_sdk_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError) as caught:
        find_runner("pyy", Path(__file__).parent)
    assert caught.value.hint == "did you mean 'py'?"


def _passing(folder: Path, entries: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name in ("JB_STORE", "JB_API_KEY", "JB_MODEL"):
        monkeypatch.setenv(name, f"value-of-{name}")
    _write(folder, _GOOD.replace("[serve]", f"[env]\npass = {entries}\n[serve]"))
    runner = find_runner(str(folder / "sdk.toml"), folder)
    runner.use_variables({})
    return dict(runner.variables())


def test_a_passed_variable_is_secret_if_the_manifest_or_its_name_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = '["JB_MODEL", "JB_API_KEY", {name = "JB_STORE", secret = true}]'
    assert _passing(tmp_path, entries, monkeypatch) == {
        "JB_API_KEY": "(hidden)",
        "JB_MODEL": "value-of-JB_MODEL",
        "JB_STORE": "(hidden)",
    }
    entries = '[{name = "JB_API_KEY", secret = false}]'
    assert _passing(tmp_path, entries, monkeypatch) == {"JB_API_KEY": "value-of-JB_API_KEY"}


def test_a_misspelt_key_of_a_passed_variable_is_refused(tmp_path: Path) -> None:
    bad = _GOOD.replace("[serve]", '[env]\npass = [{name = "A", secrets = true}]\n[serve]')
    with pytest.raises(UsageError) as caught:
        load_manifest(_write(tmp_path, bad))
    assert "secrets: unknown key" in caught.value.excerpt


_EMBEDS_AT_START = _GOOD.replace('modes = ["bm25"]', 'modes = ["auto", "bm25"]') + (
    '[seed]\nvia = "documents"\nrestart = "vectors"\n'
    '[upstream]\nmodes = ["semantic", "hybrid"]\nscripted = {URL = "{upstream}"}\n'
)


@pytest.mark.parametrize(
    "modes", [[Mode.BM25], [Mode.AUTO], [Mode.SEMANTIC], [Mode.BM25, Mode.HYBRID]]
)
def test_a_daemon_that_embeds_at_its_start_is_not_restarted_for_keywords(
    tmp_path: Path, modes: list[Mode]
) -> None:
    runner = find_runner(str(_write(tmp_path, _EMBEDS_AT_START)), tmp_path)
    runner.use_upstream("scripted")
    runner.use_modes(modes)
    needs_vectors = modes != [Mode.BM25]
    assert bool(runner.seed.restart) is needs_vectors
    # What waits for the restart is no claim that a run could verify.
    assert (runner.modes == (Mode.BM25,)) is not needs_vectors


def test_a_daemon_that_indexes_at_its_start_is_always_restarted(tmp_path: Path) -> None:
    manifest = _EMBEDS_AT_START.replace('"vectors"', "true")
    runner = find_runner(str(_write(tmp_path, manifest)), tmp_path)
    runner.use_modes([Mode.BM25])
    assert runner.seed.restart is True
    assert runner.modes == (Mode.AUTO, Mode.BM25)


def test_another_word_for_a_restart_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_manifest(_write(tmp_path, _EMBEDS_AT_START.replace('"vectors"', '"vector"')))
    assert "[seed" in caught.value.excerpt
    assert "'vector'" in caught.value.excerpt


def test_what_a_manifest_says_of_the_wire_makes_no_other_build(tmp_path: Path) -> None:
    built = _GOOD.replace("[serve]", '[build]\ncommand = ["make"]\ninputs = ["*.c"]\n[serve]')
    (tmp_path / "a.c").write_text("int a;")
    before = load_manifest(_write(tmp_path, built))
    after = load_manifest(_write(tmp_path, built + '[dialect]\nkeys = "snake"\n'))
    key = build_key(before, tmp_path)
    assert build_key(after, tmp_path) == key
    # A run with another dialect measures something else, and cannot be resumed.
    assert build_hash(before, tmp_path) != build_hash(after, tmp_path)
    other = load_manifest(_write(tmp_path, built.replace("make", "cmake")))
    assert build_key(other, tmp_path) != key
    (tmp_path / "a.c").write_text("int b;")
    assert build_key(before, tmp_path) != key
