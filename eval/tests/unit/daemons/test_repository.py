"""What `init` sees of a repository, and that the sdk.toml that it writes is always valid."""

import json
import string
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memconform.conformance.known_failures import load_known
from memconform.daemons.build import build_key
from memconform.daemons.ecosystems import DETECTORS
from memconform.daemons.manifest import Manifest, load_manifest
from memconform.daemons.manifest_draft import KNOWN_FAILURES, draft_manifest, toml_string
from memconform.daemons.repository import Daemon, find_daemon, sdk_name

_GO = {
    "go.mod": "module example.org/me/recall/v2\n\ngo 1.24\n",
    "go.sum": "",
    "cmd/recalld/main.go": 'package main\n\nfunc main() { flag.String("addr", "", "") }\n',
    "cmd/import/main.go": "package main\n\nfunc main() {}\n",
    "internal/store/store.go": "package store\n",
}
_NODE = {
    "package.json": '{"name": "@me/recall", "bin": {"recall": "./dist/cli.js"},'
    ' "scripts": {"build": "tsc"}, "devDependencies": {"typescript": "^5"}}',
    "package-lock.json": "{}",
    "tsconfig.json": "{}",
    "src/cli.ts": 'const options = {\n  port: { type: "string" },\n  host: { type: "string" } };\n',
}
_PYTHON = {
    "pyproject.toml": '[project]\nname = "Recall"\ndependencies = ["httpx"]\n'
    '[project.scripts]\nrecalld = "recall.cli:main"\n',
    "src/recall/cli.py": 'parser.add_argument("--listen")\nparser.add_argument("--data-dir")\n',
}
_RUST = {
    "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n',
    "Cargo.lock": "",
    "crates/server/Cargo.toml": '[package]\nname = "recall-server"\n',
    "crates/server/src/main.rs": 'fn main() { Cli::Serve { }; let _ = "--addr"; }\n',
    "crates/core/Cargo.toml": '[package]\nname = "recall-core"\n',
    "crates/core/src/lib.rs": "",
}
_MAVEN = {
    "pom.xml": "<project><parent><artifactId>parent</artifactId><version>9</version></parent>"
    "<artifactId>recall</artifactId><version>1.2</version>"
    "<dependencies><dependency><artifactId>jetty</artifactId></dependency></dependencies></project>",
    "mvnw": "",
    "src/main/java/App.java": 'class App { String a = "--port"; }',
}
_GRADLE = {
    "settings.gradle.kts": 'rootProject.name = "recall"\n',
    "build.gradle.kts": "plugins {\n  kotlin\n  application\n}\n",
    "gradlew": "",
    "src/main/kotlin/App.kt": "fun main() {}\n",
}
_DOTNET = {
    "Recall.sln": "",
    "src/Recall.Server/Recall.Server.csproj": '<Project Sdk="Microsoft.NET.Sdk.Web" />',
    "src/Recall.Server/Program.cs": "",
    "src/Recall.Tests/Recall.Tests.csproj": "<Project><IsTestProject>true</IsTestProject>"
    "<OutputType>Exe</OutputType></Project>",
}
_EXPECTED: Mapping[str, tuple[dict[str, str], str, str, list[str], list[str]]] = {
    "go": (
        _GO,
        "recall",
        "go",
        ["go", "build", "-o", "{build_dir}/recalld", "./cmd/recalld"],
        ["{build_dir}/recalld", "--addr", "{addr}", "--root", "{state_dir}"],
    ),
    "node": (
        _NODE,
        "recall",
        "typescript",
        ["sh", "-c", "npm ci && npm run build"],
        [
            *("node", "dist/cli.js", "--host", "{host}", "--port", "{port}"),
            *("--root", "{state_dir}"),
        ],
    ),
    "python": (
        _PYTHON,
        "recall",
        "python",
        [
            *("sh", "-c", '"$0" -m venv "$1" && "$1/bin/pip" install --quiet .'),
            *("{python}", "{build_dir}/venv"),
        ],
        [
            *("{build_dir}/venv/bin/recalld", "--listen", "{addr}"),
            *("--data-dir", "{state_dir}"),
        ],
    ),
    "rust": (
        _RUST,
        "recall-server",
        "rust",
        [
            *("cargo", "build", "--release", "--bin", "recall-server"),
            *("--target-dir", "{build_dir}"),
        ],
        [
            *("{build_dir}/release/recall-server", "serve", "--addr", "{addr}"),
            *("--root", "{state_dir}"),
        ],
    ),
    "maven": (
        _MAVEN,
        "recall",
        "java",
        ["./mvnw", "--batch-mode", "--quiet", "-DskipTests", "package"],
        ["java", "-jar", "target/recall-1.2.jar", "--port", "{port}", "--root", "{state_dir}"],
    ),
    "gradle": (
        _GRADLE,
        "recall",
        "kotlin",
        ["./gradlew", "--quiet", "installDist"],
        [
            *("build/install/recall/bin/recall", "serve", "--addr", "{addr}"),
            *("--root", "{state_dir}"),
        ],
    ),
    "dotnet": (
        _DOTNET,
        "recall",
        "csharp",
        [
            *("dotnet", "publish", "src/Recall.Server/Recall.Server.csproj"),
            *("--configuration", "Release", "--output", "{build_dir}"),
        ],
        [
            *("dotnet", "{build_dir}/Recall.Server.dll", "serve", "--addr", "{addr}"),
            *("--root", "{state_dir}"),
        ],
    ),
}


def _made(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def _found(folder: Path, files: Mapping[str, str]) -> Daemon:
    daemon = find_daemon(_made(folder, files), DETECTORS)
    assert daemon is not None
    return daemon


def _manifest(folder: Path, daemon: Daemon) -> Manifest:
    (folder / "sdk.toml").write_text(draft_manifest(daemon), encoding="utf-8")
    return load_manifest(folder / "sdk.toml")


@pytest.mark.parametrize("kind", _EXPECTED)
def test_a_repository_of_each_toolchain_becomes_a_manifest(tmp_path: Path, kind: str) -> None:
    files, name, language, command, argv = _EXPECTED[kind]
    manifest = _manifest(tmp_path, _found(tmp_path, files))
    assert (manifest.name, manifest.language) == (name, language)
    assert manifest.build is not None
    assert manifest.build.command == command
    assert manifest.serve.argv == argv
    # A glob that matched nothing would be an error.
    assert build_key(manifest.model_copy(update={"requires": []}), tmp_path)


def test_the_program_whose_name_says_that_it_serves_is_chosen_and_the_others_named(
    tmp_path: Path,
) -> None:
    daemon = _found(tmp_path, _GO)
    assert daemon.program.name == "recalld"
    assert daemon.others == ("cmd/import/main.go",)
    assert "# Not chosen: cmd/import/main.go\n" in draft_manifest(daemon)


def test_of_two_toolchains_one_is_chosen_and_the_other_named(tmp_path: Path) -> None:
    daemon = _found(tmp_path, _GO | {"package.json": '{"devDependencies": {"prettier": "3"}}'})
    assert daemon.project.ecosystem == "Go"
    assert "package.json (Node)" in daemon.others


def test_a_toolchain_without_a_program_gives_way_to_one_with(tmp_path: Path) -> None:
    library = {"go.mod": "module x\n", "lib.go": "package lib\n"}
    daemon = _found(tmp_path, library | _PYTHON)
    assert daemon.project.ecosystem == "Python"
    assert daemon.others == ("go.mod (Go)",)


def test_a_python_module_without_dependencies_needs_no_build(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\nname = "recall"\n',
        "src/recall/__main__.py": 'add("--addr")\nadd("--root")\nsub("serve")\n',
    }
    manifest = _manifest(tmp_path, _found(tmp_path, files))
    assert manifest.build is None
    assert manifest.env.set == {"PYTHONPATH": "src"}
    assert manifest.serve.argv == [
        *("{python}", "-m", "recall", "serve", "--addr", "{addr}", "--root", "{state_dir}"),
    ]
    assert "check:" not in (tmp_path / "sdk.toml").read_text()


@pytest.mark.parametrize(
    ("lock", "package", "command"),
    [
        ("pnpm-lock.yaml", "{}", "pnpm install --frozen-lockfile"),
        ("yarn.lock", "{}", "yarn install --frozen-lockfile"),
        ("", "{}", "npm install"),
        ("package-lock.json", '{"packageManager": "bun@1.2.0"}', "bun install"),
    ],
)
def test_the_package_manager_is_that_of_the_lock_file_or_the_declared_one(
    tmp_path: Path, lock: str, package: str, command: str
) -> None:
    declared = package[1:-1] and f", {package[1:-1]}"
    text = f'{{"name": "r", "main": "r.js", "dependencies": {{"a": "1"}}{declared}}}'
    files = {"package.json": text, "r.js": ""} | ({lock: ""} if lock else {})
    build = _found(tmp_path, files).program.build
    assert build is not None
    assert build.command == ("sh", "-c", command)


def test_what_no_file_shows_is_marked_on_its_line(tmp_path: Path) -> None:
    daemon = _found(tmp_path, {"memory.py": 'if __name__ == "__main__":\n    main()\n'})
    [line] = [line for line in draft_manifest(daemon).splitlines() if "check:" in line]
    assert line.startswith('argv = ["{python}", "memory.py", "serve", "--addr", "{addr}"')
    assert "--addr {addr}; or {host} and {port}" in line


def test_files_that_go_embeds_are_named_as_missing_among_the_inputs(tmp_path: Path) -> None:
    files = _GO | {"internal/store/store.go": "package store\n\n//go:embed schema.sql\n"}
    text = draft_manifest(_found(tmp_path, files))
    [inputs] = [line for line in text.splitlines() if line.startswith("inputs")]
    assert "//go:embed" in inputs


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README.md": "memory"},
        {"go.mod": "module x\n", "lib.go": "package lib\n"},
        {"package.json": "not JSON"},
        {"package.json": "[]"},
        {"pyproject.toml": "= invalid"},
        {"Cargo.toml": "[lib]\n"},
        {"a.csproj": "<Project />"},
        {"node_modules/x/package.json": "{}", "vendor/x/main.go": "package main\nfunc main() {}"},
    ],
)
def test_a_folder_without_a_program_is_not_recognized(
    tmp_path: Path, files: dict[str, str]
) -> None:
    assert find_daemon(_made(tmp_path, files), DETECTORS) is None


def test_links_out_of_the_repository_are_not_followed(tmp_path: Path) -> None:
    _made(tmp_path / "outside", _GO)
    repository = _made(tmp_path / "repository", {"go.mod": "module x\n"})
    (repository / "cmd").symlink_to(tmp_path / "outside" / "cmd")
    assert find_daemon(repository, DETECTORS) is None


_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
_HOSTILE = _NAMES | st.sampled_from(
    [
        "{build_dir}",
        "{x}",
        '"',
        "\\",
        "'''",
        "a\nb = 1",
        "$(touch pwned)",
        "../x",
        "-rf",
        "all",
        "\x7f",
    ]
)


@given(name=_HOSTILE, program=_HOSTILE, path=_HOSTILE)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_repository_is_called_its_manifest_is_valid(
    tmp_path_factory: pytest.TempPathFactory, name: str, program: str, path: str
) -> None:
    folder = tmp_path_factory.mktemp("repository")
    package: dict[str, Any] = {"name": name, "bin": {program: "cli.js", "other": path}}
    _made(folder, {"package.json": json.dumps(package), "cli.js": ""})
    daemon = find_daemon(folder, DETECTORS)
    assert daemon is not None
    manifest = _manifest(folder, daemon)
    assert manifest.serve.argv[0] == "node"
    # What starts is a file of the repository, by a name that no shell and no option takes apart.
    assert set(manifest.serve.argv[1]) <= set(string.ascii_letters + string.digits + "._@+-/")
    assert not manifest.serve.argv[1].startswith(("-", "/"))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_string_is_read_back_as_it_was(text: str) -> None:
    assert tomllib.loads(f"a = {toml_string(text)}") == {"a": text}


@given(st.lists(st.text(), min_size=1, max_size=3))
def test_a_name_of_an_sdk_is_valid_whatever_it_is_made_of(candidates: list[str]) -> None:
    name = sdk_name(*candidates)
    assert name != "all"
    Manifest.model_validate(
        {
            "name": name,
            "language": "x",
            "serve": {"argv": ["x"]},
            "capabilities": {"profiles": ["core"], "modes": ["bm25"]},
        }
    )


def test_the_list_of_known_failures_is_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "known-failures.yaml"
    path.write_text(KNOWN_FAILURES, encoding="utf-8")
    assert load_known(path) == []
