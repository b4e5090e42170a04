"""How each toolchain says what it builds: Go, Rust, Java, .NET, Node and Python.

Each detector returns None if its files are missing, and a project without programs if they show
none, so that a repository with both can be described by the other one.
"""

import configparser
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from memconform.daemons.project_files import ProjectFiles, is_plain, table
from memconform.daemons.repository import BuildSteps, Detector, Program, Project


def go(files: ProjectFiles) -> Project | None:
    """`go.mod`, and the folders with a `func main` of `package main`."""
    if not files.has("go.mod"):
        return None
    module = re.search(r"^module\s+\"?([^\s\"]+)", files.text("go.mod"), re.MULTILINE)
    path = re.sub(r"/v\d+$", "", module[1]) if module else ""
    name = path.rpartition("/")[2]
    inputs = (*_present(files, "go.mod", "go.sum"), *files.globs(".go"))
    programs: dict[str, Program] = {}
    sources = {path: files.text(path) for path in files.named(".go")}
    embeds = any(re.search(r"^//go:embed\b", text, re.MULTILINE) for text in sources.values())
    missing = "add the files that //go:embed names" if embeds else ""
    for source, text in sources.items():
        is_main = re.search(r"^package main\b", text, re.MULTILINE) and "func main()" in text
        folder = PurePosixPath(source).parent.as_posix()
        if not is_main or source.endswith("_test.go") or folder in programs:
            continue
        own = name if folder == "." else PurePosixPath(folder).name
        own = own if is_plain(own) else "daemon"
        package = "." if folder == "." else f"./{folder}"
        build = ("go", "build", "-o", f"{{build_dir}}/{own}", package)
        steps = BuildSteps(build, inputs, inputs_check=missing)
        programs[folder] = Program(own, source, (f"{{build_dir}}/{own}",), steps)
    return Project("Go", "go", "go.mod", name, ("go",), tuple(programs.values()))


def rust(files: ProjectFiles) -> Project | None:
    """`Cargo.toml`, and those of the members of a workspace."""
    if not files.has("Cargo.toml"):
        return None
    programs: list[Program] = []
    lock = _present(files, "Cargo.lock")
    crates = files.named("/Cargo.toml")
    for manifest in ("Cargo.toml", *crates):
        content = files.toml(manifest)
        root = PurePosixPath(manifest).parent.as_posix()
        prefix = "" if root == "." else f"{root}/"
        package = table(content, "package").get("name")
        bins: list[object] = [each.get("name") for each in _tables(content.get("bin"))]
        if not bins and package and files.has(f"{prefix}src/main.rs"):
            bins = [package]
        bins += [
            PurePosixPath(path).stem
            for path in files.named(".rs")
            if PurePosixPath(path).parent.as_posix() == f"{prefix}src/bin"
        ]
        for name in dict.fromkeys(each for each in bins if isinstance(each, str)):
            if not is_plain(name) or "/" in name:
                continue
            build = (
                *("cargo", "build", "--release", "--bin", name),
                *("--target-dir", "{build_dir}"),
            )
            start = (f"{{build_dir}}/release/{name}",)
            inputs = ("Cargo.toml", *crates, *lock, *files.globs(".rs"))
            steps = BuildSteps(build, inputs)
            programs.append(Program(name, f"[[bin]] {name} of {manifest}", start, steps))
    own = _text(table(files.toml("Cargo.toml"), "package").get("name"))
    return Project("Rust", "rust", "Cargo.toml", own, ("cargo",), tuple(programs))


def java(files: ProjectFiles) -> Project | None:
    """`pom.xml`, or `build.gradle` and `build.gradle.kts`."""
    if files.has("pom.xml"):
        return _maven(files)
    script = next(iter(_present(files, "build.gradle.kts", "build.gradle")), None)
    return None if script is None else _gradle(files, script)


def _maven(files: ProjectFiles) -> Project:
    # The artifact's own name and version, not those of its parent, dependencies or plugins.
    text = re.sub(
        r"<(parent|dependencies|dependencyManagement|profiles|plugins)>.*?</\1>|<!--.*?-->",
        "",
        files.text("pom.xml"),
        flags=re.DOTALL,
    )
    name, version, final = (
        _first(rf"<{tag}>\s*([^<>\s]+)\s*</{tag}>", text)
        for tag in ("artifactId", "version", "finalName")
    )
    jar = final if is_plain(final) else f"{name}-{version}"
    wrapper = files.has("mvnw")
    command = ("./mvnw" if wrapper else "mvn", "--batch-mode", "--quiet", "-DskipTests", "package")
    check = "" if is_plain(jar) and name and version else f"the name of the jar, not {jar}.jar"
    programs: tuple[Program, ...] = ()
    if is_plain(name):
        jar = jar if is_plain(jar) else name
        inputs = ("pom.xml", *files.globs(".java"), *files.globs(".kt"))
        build = BuildSteps(command, inputs, "builds in place; run it again if target/ was removed")
        start = ("java", "-jar", f"target/{jar}.jar")
        programs = (Program(name, "its artifact", start, build, check=check),)
    requires = ["java"] if wrapper else ["java", "mvn"]
    return Project("Java", "java", "pom.xml", name, tuple(requires), programs)


def _gradle(files: ProjectFiles, script: str) -> Project:
    settings = files.text("settings.gradle.kts") or files.text("settings.gradle")
    name = (
        _first(r"rootProject\.name\s*=\s*[\"']([^\"']+)", settings) or files.folder.resolve().name
    )
    text = files.text(script)
    wrapper = files.has("gradlew")
    tool = "./gradlew" if wrapper else "gradle"
    place = "builds in place; run it again if build/ was removed"
    inputs = (script, *files.globs(".java"), *files.globs(".kt"))
    programs: tuple[Program, ...] = ()
    if is_plain(name) and re.search(r"\bapplication\b", text):
        build = BuildSteps((tool, "--quiet", "installDist"), inputs, place)
        installed = f"build/install/{name}/bin/{name}"
        programs = (Program(name, "its application", (installed,), build),)
    elif is_plain(name):
        version = _first(r"^version\s*=\s*[\"']([^\"']+)", text)
        jar = f"{name}-{version}" if is_plain(version) else name
        boot = "org.springframework.boot" in text
        build = BuildSteps((tool, "--quiet", "bootJar" if boot else "jar"), inputs, place)
        start = ("java", "-jar", f"build/libs/{jar}.jar")
        check = "" if is_plain(version) else f"the name of the jar, {jar}.jar"
        programs = (Program(name, "its jar", start, build, check=check),)
    requires = ["java"] if wrapper else ["java", "gradle"]
    language = "kotlin" if files.named(".kt") else "java"
    return Project("Java", language, script, name, tuple(requires), programs)


def dotnet(files: ProjectFiles) -> Project | None:
    """Projects `*.csproj` that make a program; a solution `*.sln` only names them."""
    projects = files.named(".csproj")
    evidence = next(iter([*files.named(".sln"), *projects]), None)
    if evidence is None:
        return None
    programs = []
    for path in projects:
        text = files.text(path)
        name = _first(r"<AssemblyName>\s*([^<\s]+)\s*<", text) or PurePosixPath(path).stem
        is_program = re.search(r"<OutputType>\s*Exe\s*<|Microsoft\.NET\.Sdk\.(?:Web|Worker)", text)
        if not is_program or "<IsTestProject>true" in text or not is_plain(name):
            continue
        folder = PurePosixPath(path).parent.as_posix()
        prefix = "" if folder == "." else f"{folder}/"
        sources = files.globs(".cs", below=prefix)
        build = BuildSteps(
            ("dotnet", "publish", path, "--configuration", "Release", "--output", "{build_dir}"),
            (path, *sources),
        )
        start = ("dotnet", f"{{build_dir}}/{name}.dll")
        programs.append(Program(name, path, start, build))
    name = PurePosixPath(evidence).stem
    return Project(".NET", "csharp", evidence, name, ("dotnet",), tuple(programs))


_LOCKS = {
    "pnpm-lock.yaml": ("pnpm", ("pnpm", "install", "--frozen-lockfile")),
    "yarn.lock": ("yarn", ("yarn", "install", "--frozen-lockfile")),
    "bun.lock": ("bun", ("bun", "install", "--frozen-lockfile")),
    "bun.lockb": ("bun", ("bun", "install", "--frozen-lockfile")),
    "package-lock.json": ("npm", ("npm", "ci")),
}
"""By its lock file: a package manager, and how it installs what the lock file names."""


def node(files: ProjectFiles) -> Project | None:
    """`package.json`: `bin`, `scripts.start` or `main`; the package manager by its lock file."""
    if not files.has("package.json"):
        return None
    package = files.json("package.json")
    scripts, name = table(package, "scripts"), _text(package.get("name")).rpartition("/")[2]
    typescript = files.has("tsconfig.json") or "typescript" in table(package, "devDependencies")
    declared = _text(package.get("packageManager")).partition("@")[0]
    lock = next((lock for lock in _LOCKS if files.has(lock)), "")
    manager, install = _LOCKS.get(lock, ("npm", ("npm", "install")))
    if declared in ("npm", "pnpm", "yarn", "bun") and declared != manager:
        manager, install = declared, (declared, "install")
    steps = [" ".join(install)] if _depends(package) else []
    steps += [f"{manager} run build"] if "build" in scripts else []
    place = "builds in place; run it again if its outputs were removed"
    inputs = (
        *_present(files, "package.json", lock, "tsconfig.json"),
        *(glob for suffix in (".ts", ".js", ".mjs") for glob in files.globs(suffix)),
    )
    build = BuildSteps(("sh", "-c", " && ".join(steps)), inputs, place) if steps else None
    programs = [
        Program(own, key, ("node", path), build)
        for own, key, path in _node_programs(package, name)
        if is_plain(path)
    ]
    language = "typescript" if typescript else "javascript"
    requires = ("node",) if build is None else ("node", manager)
    return Project("Node", language, "package.json", name, requires, tuple(programs))


def _node_programs(package: dict[str, object], name: str) -> Iterator[tuple[str, str, str]]:
    """Name, key and file of each program of a package, best first."""
    declared = package.get("bin")
    bins = {name: declared} if isinstance(declared, str) else table(declared)
    for own, path in bins.items():
        if isinstance(path, str):
            yield own, f"bin.{own}", path.removeprefix("./")
    if bins:
        return
    start = re.fullmatch(r"node ([^\s-]\S*)", _text(table(package, "scripts").get("start")))
    if start is not None:
        yield name, "scripts.start", start[1].removeprefix("./")
    elif isinstance(main := package.get("main"), str):
        yield name, "main", main.removeprefix("./")


def _depends(package: dict[str, object]) -> bool:
    return any(table(package, key) for key in ("dependencies", "devDependencies"))


def python(files: ProjectFiles) -> Project | None:
    """`pyproject.toml` or `setup.cfg`, and modules that can be executed."""
    evidence = next(
        iter(_present(files, "pyproject.toml", "setup.cfg", "setup.py", "requirements.txt")), None
    )
    executable = list(_python_modules(files))
    if evidence is None and not executable:
        return None
    content, setup = files.toml("pyproject.toml"), _ini(files.text("setup.cfg"))
    project, poetry = table(content, "project"), table(content, "tool", "poetry")
    name = next(
        (text for each in (project, poetry, setup.get("metadata", {}))
         if (text := _text(each.get("name")))),
        "",
    )  # fmt: skip
    options = setup.get("options", {})
    scripts = {**table(project, "scripts"), **table(poetry, "scripts")}
    entry_points = _text(setup.get("options.entry_points", {}).get("console_scripts"))
    scripts |= dict(re.findall(r"^\s*([\w.-]+)\s*=\s*(\S+)", entry_points, re.MULTILINE))
    requirements = files.has("requirements.txt")
    depends = bool(
        project.get("dependencies") or len(table(poetry, "dependencies")) > 1
        or _text(options.get("install_requires")).strip() or requirements
        # Dependencies that setup.py computes cannot be read.
        or "dependencies" in _texts(project.get("dynamic")) or files.has("setup.py")
    )  # fmt: skip
    installable = bool(project or poetry or setup or files.has("setup.py"))
    build = _python_build(files, installable=installable)
    programs = []
    for own in scripts if installable else ():
        if is_plain(own) and (depends or not executable):
            start = (f"{{build_dir}}/venv/bin/{own}",)
            programs.append(Program(own, f"script {own}", start, build))
    if not programs:
        for source, own, run, root in executable:
            interpreter = "{build_dir}/venv/bin/python" if depends else "{python}"
            env = (("PYTHONPATH", root),) if root != "." else ()
            steps = build if depends else None
            programs.append(Program(own, source, (interpreter, *run), steps, env))
    label = evidence or executable[0][0]
    return Project("Python", "python", label, name, (), tuple(programs))


def _python_build(files: ProjectFiles, *, installable: bool) -> BuildSteps:
    """A virtual environment in the build's folder, with the project or its requirements."""
    what = "." if installable else "-r requirements.txt"
    script = f'"$0" -m venv "$1" && "$1/bin/pip" install --quiet {what}'
    names = ("pyproject.toml", "setup.cfg", "setup.py", "requirements.txt")
    inputs = (*_present(files, *names), *files.globs(".py"))
    return BuildSteps(("sh", "-c", script, "{python}", "{build_dir}/venv"), inputs)


def _python_modules(files: ProjectFiles) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """File, name, arguments of the interpreter and root of each module that can be executed."""
    scripts = []
    for path in files.named(".py"):
        place = PurePosixPath(path)
        if place.name == "__main__.py" and place.parent.name:
            root = "src" if path.startswith("src/") else "."
            module = place.parent.relative_to(root if root == "src" else "")
            yield path, module.name, ("-m", ".".join(module.parts)), root
        elif place.parent.name == "" and place.name not in ("setup.py", "conftest.py"):
            text = files.text(path)
            if re.search(r"^if __name__ == [\"']__main__[\"']", text, re.MULTILINE):
                scripts.append((path, place.stem, (path,), "."))
    yield from scripts


DETECTORS: tuple[Detector, ...] = (go, rust, dotnet, java, node, python)
"""Toolchains whose files are rarely there for anything but the program come first."""


def _present(files: ProjectFiles, *paths: str) -> tuple[str, ...]:
    return tuple(path for path in paths if path and files.has(path))


def _first(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _tables(value: object) -> list[dict[str, object]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _ini(text: str) -> dict[str, dict[str, str]]:
    """The sections of a setup.cfg; empty if it is invalid."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    return {name: dict(parser[name]) for name in parser.sections()}
