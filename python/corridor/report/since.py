"""Changes, since a result was recorded, to the code it depends on."""

import ast
import hashlib
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from corridor.study.experiment import Experiment
from corridor.study.readmes import result

#: The crate of `corridor._native`.
NATIVE = "py"
#: Prefix of our other crates as dependencies, before their folder's name.
_CRATE = "corridor-"
#: Modules that only judge, plot or report, and cannot change a result.
ASIDE = ("corridor", "corridor.plot", "corridor._progress", "corridor._lazy", "corridor.study.lab",
         "corridor.study.claims", "corridor.study.experiment")  # fmt: skip
#: Modules that run plans: irrelevant to an experiment without plans.
RUNS = ("corridor.sim", "corridor.study.findings")
#: Keys of an experiment's description that can change its result.
_MOVES = ("runner", "parameters", "plans")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_COMMENT = re.compile(r"^[+-]\s*($|//|#(?!!?\[))")


@dataclass(frozen=True)
class Since:
    """Changes since a result was recorded."""

    #: The recorded commit; empty if nothing was recorded.
    commit: str
    #: Files with changes other than to comments and docstrings, relative to the checkout.
    files: tuple[str, ...] = ()
    #: Why changes are unknown; empty if they are known.
    unknown: str = ""
    #: Why it is not the result of a full run; empty if it is.
    short: str = ""

    @property
    def is_well(self) -> bool:
        """Whether there is the result of a full run, with code unchanged since."""
        return bool(self.commit) and not (self.files or self.unknown or self.short)

    @property
    def short_words(self) -> str:
        """A short form, for tables."""
        if not self.commit:
            return "not recorded"
        if self.short:
            return "no full run"
        if self.unknown:
            return "unknown"
        if not self.files:
            return "unchanged"
        return "1 file changed" if len(self.files) == 1 else f"{len(self.files)} files changed"

    @property
    def words(self) -> str:
        """A one-line description."""
        if not self.commit:
            return "nothing was recorded"
        if self.short:
            return f"no full run: {self.short}"
        if self.unknown:
            return f"cannot be said: {self.unknown}"
        if not self.files:
            return "nothing has changed since"
        more = f", and {len(self.files) - 3} more" if len(self.files) > 3 else ""
        many = "1 file has" if len(self.files) == 1 else f"{len(self.files)} files have"
        return f"{many} changed since: {', '.join(self.files[:3])}{more}"


def since(experiment: Experiment) -> Since:
    """Return the changes since an experiment was recorded, in the checkout it is in.

    Compares files in the work tree, committed or not. Files with changes only to comments or
    docstrings are left out; of the description of the experiment, only its runner, parameters and
    plans count.
    """
    recorded = result(experiment)
    if recorded is None:
        return Since("")
    commit, short = str(recorded["commit"]), _short(experiment, recorded)
    if short:
        return Since(commit, short=short)
    top = experiment.folder.parent.parent
    if not (top / ".git").exists():
        return Since(commit, unknown="this is no checkout with git")
    if _git(top, "cat-file", "-e", f"{commit}^{{commit}}") is None:
        return Since(commit, unknown="the commit is not in this checkout")
    files = [path for path in rests_on(experiment, top) if (top / path).exists()]
    plans = [str(plan.resolve().relative_to(top.resolve())) for plan in experiment.plans.values()]
    # Whitespace is syntax in Python; in Rust the formatter reflows lines.
    rust = [path for path in files if path.startswith("crates/")]
    others = [path for path in (*files, *plans) if path not in rust]
    changed = []
    for options, paths in ((["-w"], rust), ([], others)):
        if paths:
            text = _git(top, "diff", "--no-color", "-U0", *options, commit, "--", *paths)
            changed += _changed(text or "")
    changed = [path for path in changed if not _is_reworded(top, commit, path)]
    untracked = _git(top, "ls-files", "--others", "--exclude-standard", "--", *files) or ""
    changed += untracked.splitlines()
    if _moved(experiment, top, commit):
        changed.append(f"experiments/{experiment.name}/experiment.toml")
    return Since(commit, tuple(dict.fromkeys(changed)))


def _short(experiment: Experiment, recorded: Mapping[str, Any]) -> str:
    """Return what a recorded run lacks compared with the parameters."""
    asked = int(experiment.parameters.get("replications", 0))
    if recorded["quick"]:
        return "a quick one was recorded"
    if recorded["replications"] < asked:
        return f"{recorded['replications']} replications, of {asked}"
    return ""


def rests_on(experiment: Experiment, top: Path) -> list[str]:
    """Return the files and folders of code that a result depends on, relative to the checkout.

    These are the modules that its runner imports, transitively; if one is the extension, also the
    crates it is built from.
    """
    name = f"corridor.study.{experiment.runner.rpartition('.')[0]}"
    aside = {*ASIDE, *(() if experiment.plans else RUNS)}
    seen: dict[str, Path] = {}
    ahead = [name]
    while ahead:
        module = ahead.pop()
        path = _file(top, module)
        if module in seen or module in aside or path is None:
            continue
        seen[module] = path
        ahead += _imports(path.read_text(encoding="utf-8"), module, path.name == "__init__.py")
    files = sorted(str(path.relative_to(top)) for path in seen.values() if path.suffix == ".py")
    if "corridor._native" in seen:
        # A crate's tests cannot change a result: they are not below src.
        files += [f"crates/{crate}/src" for crate in _crates(top)]
    return files


def _crates(top: Path) -> list[str]:
    """Return the crates the extension is built from: its dependencies, transitively."""
    seen: list[str] = []
    ahead = [NATIVE]
    while ahead:
        crate = ahead.pop()
        manifest = top / "crates" / crate / "Cargo.toml"
        if crate in seen or not manifest.is_file():
            continue
        seen.append(crate)
        table = tomllib.loads(manifest.read_text(encoding="utf-8"))
        names = table.get("dependencies", {})
        ahead += [name.removeprefix(_CRATE) for name in names if name.startswith(_CRATE)]
    return sorted(seen)


def _file(top: Path, module: str) -> Path | None:
    place = top / "python" / Path(*module.split("."))
    choices = (place.with_suffix(".py"), place / "__init__.py", place.with_suffix(".pyi"))
    return next((path for path in choices if path.is_file()), None)


@cache
def _imports(text: str, module: str, is_package: bool) -> tuple[str, ...]:
    """Return a module's imports from the package, including names that are not modules."""
    tree = ast.parse(text)
    found: list[str] = []
    for node in (each for statement in tree.body for each in _run(statement)):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module if is_package else module.rpartition(".")[0]
                base = ".".join(filter(None, (package, base)))
            found.append(base)
            found += (f"{base}.{alias.name}" for alias in node.names)
    return tuple(found)


def _run(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the executed parts of a statement, without those for type checkers only."""
    branches: list[ast.stmt] = [statement]
    if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
        branches = statement.orelse
    return (node for branch in branches for node in ast.walk(branch))


def _changed(diff: str) -> list[str]:
    """Return the files of a diff with changes other than to comments and empty lines."""
    files: dict[str, bool] = {}
    name = ""
    for line in diff.splitlines():
        if line.startswith("diff --git "):
            name = line.rpartition(" b/")[2]
            files[name] = False
        elif line.startswith(("+++", "---")):
            continue
        elif line.startswith(("+", "-")) and not _COMMENT.match(line):
            files[name] = True
    return [name for name, is_more in files.items() if is_more]


def _is_reworded(top: Path, commit: str, path: str) -> bool:
    """Return whether a Python file has the same code as in a commit, but for its docstrings."""
    before = _committed(top, commit, path) if path.endswith((".py", ".pyi")) else None
    if before is None:
        return False
    return _code(before) == _code((top / path).read_text(encoding="utf-8"))


@cache
def _committed(top: Path, commit: str, path: str) -> str | None:
    """Return a file as it is in a commit; None if the commit lacks it."""
    return _git(top, "show", f"{commit}:{path}")


@cache
def _code(text: str) -> bytes:
    """Return a digest of the syntax tree of Python code without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return hashlib.sha256(ast.dump(tree).encode()).digest()


def _moved(experiment: Experiment, top: Path, commit: str) -> bool:
    """Return whether the relevant keys of the experiment's description have changed."""
    path = f"experiments/{experiment.name}/experiment.toml"
    before = _committed(top, commit, path)
    if before is None:
        return True
    now = (top / path).read_text(encoding="utf-8")
    return _moves(tomllib.loads(before)) != _moves(tomllib.loads(now))


def _moves(table: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: table.get(key) for key in _MOVES}
    # The lab's plans do not affect recorded results.
    kept["plans"] = {use: name for use, name in (kept["plans"] or {}).items() if use != "lab"}
    return kept


def _git(top: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(top), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout
