from collections.abc import Callable
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CODE_VERSION",
    "COMMIT",
    "ERASURE_RATIO_MAX",
    "BlockDecoder",
    "BlockEncoder",
    "Recoder",
    "draw_vectors",
    "optimum",
    "plan_points",
    "playncool",
    "run_plan",
    "vector_bytes",
]

CODE_VERSION: Final[str]
COMMIT: Final[str]
ERASURE_RATIO_MAX: Final[float]

def playncool(
    block_size: NDArray[np.float64],
    e1: NDArray[np.float64],
    e2: NDArray[np.float64],
    e3: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
def optimum(
    block_size: NDArray[np.float64],
    e1: NDArray[np.float64],
    e2: NDArray[np.float64],
    e3: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def vector_bytes(field_order: int, count: int) -> int: ...
def draw_vectors(field_order: int, count: int, rows: int, seed: int) -> NDArray[np.uint8]: ...

@final
class BlockEncoder:
    def __new__(cls, field_order: int, block_size: int, symbol_bytes: int) -> BlockEncoder: ...
    def push(self, symbols: NDArray[np.uint8]) -> None: ...
    def encode(self, vectors: NDArray[np.uint8], count: int, out: NDArray[np.uint8]) -> None: ...
    @property
    def count(self) -> int: ...

@final
class Recoder:
    def __new__(
        cls, field_order: int, block_size: int, symbol_bytes: int, seed: int
    ) -> Recoder: ...
    def add_coded(
        self,
        vectors: NDArray[np.uint8],
        count: int,
        payloads: NDArray[np.uint8],
        innovative: NDArray[np.bool_],
    ) -> None: ...
    def recode(self, vectors: NDArray[np.uint8], payloads: NDArray[np.uint8]) -> None: ...
    @property
    def rank(self) -> int: ...
    @property
    def known_count(self) -> int: ...

@final
class BlockDecoder:
    def __new__(cls, field_order: int, block_size: int, symbol_bytes: int) -> BlockDecoder: ...
    def add_source(
        self,
        indices: NDArray[np.uint64],
        symbols: NDArray[np.uint8],
        innovative: NDArray[np.bool_],
    ) -> None: ...
    def add_coded(
        self,
        vectors: NDArray[np.uint8],
        count: int,
        payloads: NDArray[np.uint8],
        innovative: NDArray[np.bool_],
    ) -> None: ...
    def symbols(self, out: NDArray[np.uint8], decoded: NDArray[np.bool_]) -> None: ...
    @property
    def rank(self) -> int: ...
    @property
    def is_complete(self) -> bool: ...

def plan_points(text: str, directory: str, replications: int | None) -> tuple[int, int]: ...
def run_plan(
    text: str,
    directory: str,
    replications: int | None,
    jobs: int,
    progress: Callable[[int, int], object] | None,
) -> tuple[list[tuple[str, str, str, str]], list[dict[str, Any]], NDArray[np.float64]]: ...
