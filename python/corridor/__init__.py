"""Network coding for lossy wireless paths, for research.

- `corridor.models`: the papers' closed forms, vectorised over numpy arrays.
- `corridor.codec`: random linear network coding of numpy arrays and ``bytes``.
- `corridor.plans`: plans as frozen dataclasses: all that a plan file can say.
- `corridor.sim`: the simulator; frozen dataclasses in, an xarray Dataset out.
- `corridor.results`: what ``corridor sim run --out`` has left, as labelled arrays: `open_results`.
- `corridor.stats`: means, quantiles, distributions and paired differences, with intervals.
- `corridor.plot`: pictures of results with what is published overlaid.
- `corridor.study`: the papers' experiments, behind the command ``corridor-study``.

These are imported when they are first used: ``import corridor`` is enough.

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

#: Version of the package: that of the whole workspace.
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
