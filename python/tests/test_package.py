"""The package as a whole: version, submodules, and ``help``."""

import doctest
import importlib
import importlib.metadata
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_type_hints

import corridor
import pytest

#: Public modules.
PUBLIC = [
    "corridor.advise",
    "corridor.codec",
    "corridor.models.base_stations",
    "corridor.models.coding",
    "corridor.models.deficit",
    "corridor.models.relaying",
    "corridor.models.tcp",
    "corridor.models.tcp_nc",
    "corridor.plans",
    "corridor.plot",
    "corridor.results",
    "corridor.sim",
    "corridor.stats",
    "corridor.study",
]


def run(code: str) -> str:
    """Return the output of code in a fresh interpreter."""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return result.stdout.strip()


def test_the_version_is_that_of_the_installed_package() -> None:
    assert corridor.__version__ == importlib.metadata.version("corridor")


def test_the_example_of_the_readme_is_right() -> None:
    readme = Path(__file__).resolve().parents[2] / "README.md"
    failed, tried = doctest.testfile(str(readme), module_relative=False)
    assert tried > 0
    assert failed == 0


def test_importing_the_package_is_enough() -> None:
    code = (
        "import corridor; print(corridor.models.tcp.throughput(0, 1), corridor.sim.Link.__name__)"
    )
    assert run(code) == "50.0 Link"


def test_submodules_wait_until_they_are_asked_for() -> None:
    code = (
        "import sys, corridor\n"
        "heavy = ('scipy', 'xarray', 'matplotlib', 'rich')\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "corridor.models.tcp\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert run(code).splitlines() == ["[]", "[]"]


@pytest.mark.parametrize("package", ["corridor", "corridor.models"])
def test_what_a_package_names_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert set(module.__all__) <= set(dir(module))
    assert all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'radio'"):
        module.radio  # noqa: B018


def signatures(module: str) -> list[tuple[str, Callable[..., Any]]]:
    """Return the public functions, classes and methods of a module, by name."""
    found: list[tuple[str, Callable[..., Any]]] = []
    for name, value in vars(importlib.import_module(module)).items():
        own = getattr(value, "__module__", "").startswith("corridor")
        if name.startswith("_") or not own or not callable(value):
            continue
        found.append((name, value))
        if inspect.isclass(value):
            methods = inspect.getmembers(value, inspect.isfunction)
            found += [(f"{name}.{n}", method) for n, method in methods if not n.startswith("_")]
    return found


@pytest.mark.parametrize("module", PUBLIC)
def test_signatures_are_short_enough_to_be_read(module: str) -> None:
    for name, value in signatures(module):
        try:
            line = f"{name}{inspect.signature(value)}"
        except ValueError:
            continue  # An enumeration.
        # A field has a name, a type and a default.
        settings = 45 * len(fields(value)) if is_dataclass(value) else 0
        assert len(line) <= max(250, settings), line
        assert "numpy." not in line, line


@pytest.mark.parametrize("module", PUBLIC)
def test_types_can_be_resolved(module: str) -> None:
    for name, value in signatures(module):
        # Pure types have no `__init__` of their own.
        if not (
            inspect.isclass(value)
            and (
                issubclass(value, Enum)
                or (issubclass(value, BaseException) and "__init__" not in vars(value))
                or getattr(value, "_is_protocol", False)
            )
        ):
            hints = get_type_hints(value.__init__ if inspect.isclass(value) else value)
            assert "return" in hints, name


@pytest.mark.parametrize("module", PUBLIC)
def test_everything_public_says_what_it_is(module: str) -> None:
    assert all(inspect.getdoc(value) for _, value in signatures(module))


def test_every_module_can_be_imported() -> None:
    names = [each.name for each in pkgutil.walk_packages(corridor.__path__, "corridor.")]
    assert set(PUBLIC) <= set(names)
    for name in names:
        importlib.import_module(name)
