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
    "WindowDecoder",
    "WindowEncoder",
    "draw_vectors",
    "expand_repair_keys",
    "expand_seeds",
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
def expand_seeds(field_order: int, count: int, seeds: NDArray[np.uint32]) -> NDArray[np.uint8]: ...
def expand_repair_keys(
    field_order: int, count: int, keys: NDArray[np.uint16], density: int
) -> NDArray[np.uint8]: ...

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

@final
class WindowEncoder:
    def __new__(
        cls, field_order: int, window_size: int, symbol_bytes: int, first: int
    ) -> WindowEncoder: ...
    def push(self, symbols: NDArray[np.uint8]) -> None: ...
    def encode(
        self, first: int, count: int, vectors: NDArray[np.uint8], out: NDArray[np.uint8]
    ) -> None: ...
    def advance_to(self, to: int) -> None: ...
    @property
    def base(self) -> int: ...
    @property
    def end(self) -> int: ...

@final
class WindowDecoder:
    def __new__(
        cls, field_order: int, window_size: int, symbol_bytes: int, first: int, seed: int
    ) -> WindowDecoder: ...
    def add_source(
        self,
        ids: NDArray[np.uint64],
        symbols: NDArray[np.uint8],
        outcomes: NDArray[np.uint8],
    ) -> None: ...
    def add_coded(
        self,
        first: int,
        count: int,
        vectors: NDArray[np.uint8],
        payloads: NDArray[np.uint8],
        outcomes: NDArray[np.uint8],
    ) -> None: ...
    def recode(
        self, first: int, count: int, vectors: NDArray[np.uint8], payloads: NDArray[np.uint8]
    ) -> None: ...
    def symbols(self, first: int, out: NDArray[np.uint8], decoded: NDArray[np.bool_]) -> None: ...
    def decoded(self, first: int, decoded: NDArray[np.bool_]) -> None: ...
    def poll_decoded(self) -> NDArray[np.uint64]: ...
    def advance_to(self, to: int) -> int: ...
    @property
    def base(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def in_order_end(self) -> int: ...
    @property
    def seen_end(self) -> int: ...
    @property
    def rank(self) -> int: ...
    @property
    def deficit(self) -> int: ...

def plan_points(text: str, directory: str, replications: int | None) -> tuple[int, int]: ...
def run_plan(
    text: str,
    directory: str,
    replications: int | None,
    jobs: int,
    progress: Callable[[int, int], object] | None,
) -> tuple[list[tuple[str, str, str, str]], list[dict[str, Any]], NDArray[np.float64]]: ...
