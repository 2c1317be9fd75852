"""The installed extension module."""

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import corridor
from corridor import _native


def test_the_extension_is_for_every_python_from_3_11_on() -> None:
    name = Path(str(_native.__file__)).name
    assert name.endswith(".abi3.so")
    assert any(name.endswith(suffix) for suffix in EXTENSION_SUFFIXES)


def test_the_package_says_what_it_was_built_from() -> None:
    assert len(corridor.CODE_VERSION) >= 16
    assert corridor.COMMIT == _native.COMMIT


def test_types_are_shipped() -> None:
    folder = Path(str(corridor.__file__)).parent
    assert (folder / "py.typed").is_file()
    assert (folder / "_native.pyi").is_file()
