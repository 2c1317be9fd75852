"""Experiments on disk: finding and reading them."""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from corridor.study.claims import Claim

#: Environment variable with the folder of the experiments, instead of the nearest.
VARIABLE = "CORRIDOR_EXPERIMENTS"
#: Folder of the installed package; in a checkout it is two levels up.
_PACKAGE = Path(__file__).resolve().parent.parent
_SHIPPED = (_PACKAGE / "experiments", _PACKAGE.parent.parent / "experiments")


class ExperimentError(Exception):
    """An unreadable or missing experiment."""


@dataclass(frozen=True)
class Experiment:
    """An experiment, as read from its folder."""

    #: Name of the folder: paper and figure.
    name: str
    #: Title.
    title: str
    #: Function that runs it, such as ``kim.table1``.
    runner: str
    #: Parameters.
    parameters: Mapping[str, Any]
    #: Plan files, by use.
    plans: Mapping[str, Path]
    #: Published claims.
    claims: tuple[Claim, ...]
    #: Its folder.
    folder: Path = Path()

    def plan(self, use: str) -> Path:
        """Return the path of the plan for this use.

        Raises
        ------
        ExperimentError
            If the experiment has none.
        """
        if use not in self.plans:
            known = ", ".join(self.plans) or "none"
            raise ExperimentError(f"{self.name}: plan = {use!r}: expected one of {known}")
        return self.plans[use]


def experiments_folder(given: Path | None = None) -> Path:
    """Return the folder of the experiments.

    In this order: the one given, the one in the environment (``CORRIDOR_EXPERIMENTS``), the nearest
    `experiments` here or above with experiments in it, or the one installed with the package.

    Raises
    ------
    ExperimentError
        If the named one is not a folder, or has no experiments in it.
    """
    if given is None and VARIABLE in os.environ:
        given = Path(os.environ[VARIABLE])
    if given is not None:
        if not given.is_dir():
            raise ExperimentError(f"experiments = {given}: expected a folder")
        return given
    here = Path.cwd()
    above = (folder / "experiments" for folder in (here, *here.parents))
    for folder in (*above, *_SHIPPED):
        if next(folder.glob("*/experiment.toml"), None) is not None:
            return folder
    raise ExperimentError(
        f"experiments = nothing: expected a folder `experiments` here or above, "
        f"--experiments DIR, or {VARIABLE}"
    )


def errata(folder: Path) -> Path:
    """Return the path of the errata, with the proofs that claims do not hold."""
    shipped = folder / "errata.md"
    return shipped if shipped.is_file() else folder.parent / "docs" / "errata.md"


def find(folder: Path, *patterns: str) -> list[Experiment]:
    """Return experiments whose name starts with, or matches, one of the patterns, sorted by name.

    Without patterns, all of them.

    Raises
    ------
    ExperimentError
        If a pattern matches none, or one cannot be read.
    """
    folders = sorted(f for f in folder.iterdir() if (f / "experiment.toml").is_file())
    chosen = set()
    for pattern in patterns or ("*",):
        found = {f for f in folders if f.name.startswith(pattern) or fnmatch(f.name, pattern)}
        if not found:
            raise _unknown(folder, pattern, [f.name for f in folders])
        chosen |= found
    return [read(f) for f in sorted(chosen)]


def _unknown(folder: Path, pattern: str, names: list[str]) -> ExperimentError:
    if not names:
        return ExperimentError(f"experiments = {folder}: expected folders with experiment.toml")
    near = get_close_matches(pattern, names, 1)
    hint = f"; did you mean {near[0]}?" if near else ";"
    return ExperimentError(
        f"pattern = {pattern}: expected the beginning of a name, or a pattern as *fig1*{hint} "
        f"`corridor-study list` names them"
    )


def read(folder: Path) -> Experiment:
    """Read an experiment.

    Raises
    ------
    ExperimentError
        For a missing or malformed file.
    """
    try:
        table = tomllib.loads((folder / "experiment.toml").read_text(encoding="utf-8"))
        published = json.loads((folder / "published.json").read_text(encoding="utf-8"))
        return Experiment(
            name=folder.name,
            title=table["title"],
            runner=table["runner"],
            parameters=table.get("parameters", {}),
            plans={use: folder / name for use, name in table.get("plans", {}).items()},
            claims=tuple(Claim.of(row) for row in published["claims"]),
            folder=folder,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExperimentError(f"{folder.name}: {error!r}") from error
