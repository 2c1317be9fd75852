"""The real-time lab: a scenario in, a Dataset like the simulator's out.

The lab is the command ``corridor lab run``; it needs Linux and the permission to create network
namespaces, and takes as long as its runs do. It can also read the rows of earlier runs.
"""

import json
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

#: Environment variable with the path of the program ``corridor``.
VARIABLE = "CORRIDOR_BIN"
#: Columns that identify points.
_KEYS = ("path", "policy", "congestion", "offered_bps", "e3")
#: Measured quantities, with units.
_COLUMNS = {
    "goodput_bps": "bit/s",
    "delay_p50_s": "s",
    "delay_p95_s": "s",
    "air_bytes_per_byte": "1",
}


class LabError(ValueError):
    """A lab that is unavailable, or that measured nothing."""


def program(given: Path | None = None) -> Path:
    """Return the path of ``corridor``: as given, from the environment, or from the search path.

    Raises
    ------
    LabError
        If there is none.
    """
    named = given or (Path(os.environ[VARIABLE]) if VARIABLE in os.environ else None)
    found = named if named is not None else shutil.which("corridor")
    if found is None or not Path(found).is_file():
        raise LabError(
            f"corridor = {found}: expected the program, on the path, by --corridor FILE, "
            f"or by {VARIABLE}"
        )
    return Path(found).resolve()


def run(
    corridor: Path,
    scenario: str,
    *,
    repeats: int | None = None,
    out: Path | None = None,
    progress: Callable[[int], object] = lambda _done: None,
) -> list[dict[str, Any]]:
    """Run a scenario in real time, and return its rows.

    Parameters
    ----------
    corridor
        Path of the program.
    scenario
        Text of the scenario file.
    repeats
        Repetitions of each run, from 1; None: as in the scenario.
    out
        File to save the rows in; complete after every run.
    progress
        Called with the number of runs made.

    Raises
    ------
    LabError
        If the lab is unavailable, or no run gave a result.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.toml"
        path.write_text(scenario, encoding="utf-8")
        command = [str(corridor), "lab", "run", str(path), "--json"]
        if repeats is not None:
            command += ["--repeats", str(repeats)]
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            command += ["--out", str(out)]
        rows = []
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as said,
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=said, stdin=subprocess.DEVNULL,
                encoding="utf-8",
            ) as process,
        ):  # fmt: skip
            assert process.stdout is not None
            for line in process.stdout:
                rows.append(json.loads(line))
                progress(len(rows))
            code = process.wait()
            said.seek(0)
            words = said.read().strip()
    # Some runs may fail while the others remain useful; what is missing shows in the claims.
    if not rows or code not in (0, 1):
        raise LabError(f"corridor lab run ended with {code}: {words[-1000:]}")
    # Several runs are in progress at once, and finish in any order.
    return sorted(rows, key=lambda row: (row["replication"], row["point"]))


def read(path: Path) -> list[dict[str, Any]]:
    """Read rows saved by ``corridor lab run --out``.

    Raises
    ------
    LabError
        For a file without rows.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    if not rows:
        raise LabError(f"rows = {path}: expected a row of JSON on each line")
    return rows


def dataset(rows: Iterable[Mapping[str, Any]]) -> xr.Dataset:
    """Return rows as a Dataset with the dimensions ``point`` and ``replication``.

    Invalid rows (``valid`` is false) are left out; missing values are NaN.

    Raises
    ------
    LabError
        If no row is valid.

    Examples
    --------
    >>> row = {"path": "plain", "policy": "-", "congestion": "cubic", "offered_bps": 1e6,
    ...        "e3": 0.1, "goodput_bps": 9e5, "delay_p50_s": None, "valid": True}
    >>> results = dataset([row, row | {"goodput_bps": 8e5}, row | {"valid": False}])
    >>> results["goodput_bps"].values
    array([[900000., 800000.]])
    """
    points: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["valid"]:
            points.setdefault(tuple(row[key] for key in _KEYS), []).append(row)
    if not points:
        raise LabError("rows = none that can be trusted: expected a calmer machine")
    most = max(len(each) for each in points.values())
    data = {}
    for name, unit in _COLUMNS.items():
        values = np.full((len(points), most), math.nan)
        for place, each in enumerate(points.values()):
            for replication, row in enumerate(each):
                value = row.get(name)
                values[place, replication] = math.nan if value is None else value
        data[name] = (("point", "replication"), values, {"units": unit})
    coords = {key: ("point", [point[i] for point in points]) for i, key in enumerate(_KEYS)}
    return xr.Dataset(data, coords)
