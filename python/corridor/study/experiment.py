"""Experiments on disk: finding and reading them."""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from corridor.study.claims import Claim

#: Names the folder of the experiments, where it is not here or above.
VARIABLE = "CORRIDOR_EXPERIMENTS"


class ExperimentError(Exception):
    """An experiment that cannot be read, or that there is not."""


@dataclass(frozen=True)
class Experiment:
    """A folder, read."""

    #: Name of the folder: paper and figure.
    name: str
    #: One line for people.
    title: str
    #: Which of our functions makes it, as ``kim.table1``.
    runner: str
    #: Its parameters.
    parameters: Mapping[str, Any]
    #: Files of plans, by what they are for.
    plans: Mapping[str, Path]
    #: What was published.
    claims: tuple[Claim, ...]

    def plan(self, use: str) -> Path:
        """Return the file of the plan for this use.

        Raises
        ------
        ExperimentError
            Where the experiment names none.
        """
        if use not in self.plans:
            known = ", ".join(self.plans) or "none"
            raise ExperimentError(f"{self.name}: plan = {use!r}: expected one of {known}")
        return self.plans[use]


def experiments_folder(given: Path | None = None) -> Path:
    """Return the folder of the experiments: as given, as the environment says, or the nearest.

    Raises
    ------
    ExperimentError
        Where there is none.
    """
    named = given or (Path(os.environ[VARIABLE]) if VARIABLE in os.environ else None)
    if named is not None:
        if not named.is_dir():
            raise ExperimentError(f"experiments = {named}: expected a folder")
        return named
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "experiments").is_dir():
            return folder / "experiments"
    raise ExperimentError(
        f"experiments = nothing: expected a folder `experiments` here or above, "
        f"--experiments DIR, or {VARIABLE}"
    )


def find(folder: Path, pattern: str = "*") -> list[Experiment]:
    """Return the experiments whose name begins with, or matches, a pattern, by name.

    Raises
    ------
    ExperimentError
        Where there is none, or one cannot be read.
    """
    folders = sorted(f for f in folder.iterdir() if (f / "experiment.toml").is_file())
    chosen = [f for f in folders if f.name.startswith(pattern) or fnmatch(f.name, pattern)]
    if not chosen:
        names = ", ".join(f.name for f in folders) or "none"
        raise ExperimentError(f"pattern = {pattern}: expected the beginning of one of {names}")
    return [read(f) for f in chosen]


def read(folder: Path) -> Experiment:
    """Read an experiment.

    Raises
    ------
    ExperimentError
        For a file that is missing, or not what it should be.
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
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExperimentError(f"{folder.name}: {error!r}") from error
