"""What the coded symbols of blocks and of windows share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from corridor.codec._arrays import Bytes, Field, Rows, rows_of


@dataclass(frozen=True, init=False, repr=False, eq=False)
class CodedRows:
    """Coding vectors and payloads: row i of each array belongs to coded symbol i."""

    #: Coding vectors.
    vectors: Bytes
    #: Payloads.
    payloads: Bytes

    def __init__(self, vectors: Rows, payloads: Rows) -> None:
        of_vectors = rows_of("vectors", vectors, padded=False)
        of_payloads = rows_of("payloads", payloads)
        if len(of_vectors) != len(of_payloads):
            expected = f"{len(of_vectors)}, one for each vector"
            raise ValueError(f"payloads = {len(of_payloads)} rows: expected {expected}")
        object.__setattr__(self, "vectors", of_vectors)
        object.__setattr__(self, "payloads", of_payloads)

    def __len__(self) -> int:
        return len(self.payloads)

    def __getitem__(self, rows: int | slice | NDArray[np.intp] | NDArray[np.bool_]) -> Self:
        """Return a selection: views for an index or slice, a copy for an array."""
        return replace(self, vectors=self.vectors[rows], payloads=self.payloads[rows])

    def __iter__(self) -> Iterator[Self]:
        """Iterate over the coded symbols (views)."""
        return (self[row] for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Whether the arrays are equal."""
        return (
            isinstance(other, type(self))
            and np.array_equal(self.vectors, other.vectors)
            and np.array_equal(self.payloads, other.payloads)
        )

    __hash__ = None  # type: ignore[assignment]

    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the coding vector and the payload of each as ``bytes``."""
        for vector, payload in zip(self.vectors, self.payloads, strict=True):
            yield vector.tobytes(), payload.tobytes()

    def _text(self) -> str:
        """Return a short description, for ``repr``."""
        rows, width = self.payloads.shape
        return f"{type(self).__name__}: {symbols_text(rows, width)}"


def symbols_text(symbols: int, symbol_bytes: int) -> str:
    """Return a description of the number and the size of symbols."""
    return f"{symbols} symbol{'s' * (symbols != 1)} of {symbol_bytes} bytes"


def code_text(symbols: int, symbol_bytes: int, field: Field) -> str:
    """Return a short description of a code."""
    name = {2: "GF(2)", 16: "GF(2^4)", 256: "GF(2^8)"}[field]
    return f"{symbols_text(symbols, symbol_bytes)} over {name}"
