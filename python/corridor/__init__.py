"""Network coding for lossy wireless paths, for research.

- `corridor.models`: the papers' closed forms, vectorised over numpy arrays.
- `corridor.codec`: random linear network coding of numpy arrays.
- `corridor.sim`: the simulator; frozen dataclasses in, an xarray Dataset out.
- `corridor.plot`: pictures of results with what is published overlaid.
- `corridor.study`: the papers' experiments, behind the command `corridor-study`.
"""

from corridor._native import CODE_VERSION, COMMIT

__all__ = ["CODE_VERSION", "COMMIT"]
