"""Network coding for lossy wireless paths, for research.

- `corridor.models`: closed forms from the papers, vectorised over numpy arrays.
- `corridor.codec`: random linear network coding of numpy arrays and ``bytes``.
- `corridor.plans`: plans as frozen dataclasses, with everything a plan file can express.
- `corridor.sim`: the simulator; frozen dataclasses in, an xarray Dataset out.
- `corridor.results`: opens results of ``corridor sim run --out`` as labelled arrays.
- `corridor.stats`: means, quantiles, distributions and paired differences, with confidence
  intervals.
- `corridor.plot`: plots of results, overlaid with published values.
- `corridor.study`: the papers' experiments, behind the command ``corridor-study``.

Submodules are imported on first use: ``import corridor`` is enough.

Examples
--------
>>> import corridor
>>> float(corridor.models.tcp.mbps(corridor.models.tcp.throughput(0.1, 0.8)).round(4))
0.0213
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from corridor._lazy import lazily
from corridor._native import CODE_VERSION, COMMIT, VERSION

__all__ = [
    "CODE_VERSION",
    "COMMIT",
    "__version__",
    "codec",
    "models",
    "open_results",
    "plans",
    "plot",
    "results",
    "sim",
    "stats",
    "study",
]

#: Version of the package: the same for the whole workspace.
__version__ = VERSION

if TYPE_CHECKING:
    from corridor import codec, models, plans, plot, results, sim, stats, study
    from corridor.results import open_results
else:
    __getattr__ = lazily(
        __name__,
        ("codec", "models", "plans", "plot", "results", "sim", "stats", "study"),
        {"open_results": "results"},
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
