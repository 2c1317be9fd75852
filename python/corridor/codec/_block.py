"""The coder of a block."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corridor import _native
from corridor.codec._arrays import Bytes, Field, draw_vectors, new_or_given, rows_of, vector_bytes


@dataclass(frozen=True)
class Coded:
    """Coded symbols: a row of each array for each of them."""

    #: Coding vectors.
    vectors: Bytes
    #: Payloads.
    payloads: Bytes
    #: Source symbols that the vectors cover, from the first one on.
    count: int

    def __len__(self) -> int:
        return len(self.payloads)

    def __getitem__(self, rows: "slice | NDArray[np.intp] | NDArray[np.bool_]") -> "Coded":
        """Return some of them: by a slice (a view), or by numbers or flags (a copy)."""
        return Coded(self.vectors[rows], self.payloads[rows], self.count)


class Encoder:
    """The source symbols of a block, and combinations of them.

    Parameters
    ----------
    block
        Array of ``uint8``, a row for each source symbol: 1 to 1024 rows of 1 to 65535 bytes.
    field
        2, 16 or 256.

    Raises
    ------
    ValueError
        For an argument out of its range.
    """

    def __init__(self, block: Bytes, field: Field = 256) -> None:
        self.block_size, self.symbol_bytes = rows_of("block", block).shape
        self.field: Field = field
        self._inner = _native.BlockEncoder(field, self.block_size, self.symbol_bytes)
        self._inner.push(block)

    def encode(self, rows: int, seed: int, out: Bytes | None = None) -> Coded:
        """Make coded symbols with coding vectors drawn from a seed.

        Parameters
        ----------
        rows
            How many, from 0.
        seed
            0 to 2^64 - 1.
        out
            Where payloads are written, if not to a new array: ``rows`` of ``symbol_bytes``.

        Raises
        ------
        ValueError
            For an argument out of its range.
        """
        return self.combine(draw_vectors(self.block_size, rows, seed, self.field), out)

    def combine(self, vectors: Bytes, out: Bytes | None = None) -> Coded:
        """Make the coded symbols of these coding vectors over the whole block.

        Parameters
        ----------
        vectors
            Coding vectors, rows of `vector_bytes`.
        out
            Where payloads are written, if not to a new array: as many rows of ``symbol_bytes``.

        Raises
        ------
        ValueError
            For an argument of another shape.

        Examples
        --------
        >>> encoder = Encoder(np.array([[1, 2], [4, 8]], dtype=np.uint8))
        >>> encoder.combine(np.array([[1, 1]], dtype=np.uint8)).payloads.tolist()
        [[5, 10]]
        """
        rows_of("vectors", vectors, vector_bytes(self.block_size, self.field))
        payloads = new_or_given("out", out, (len(vectors), self.symbol_bytes))
        self._inner.encode(vectors, self.block_size, payloads)
        return Coded(vectors, payloads, self.block_size)


class Recoder:
    """Coded symbols that were overheard, and fresh combinations of them, without decoding.

    Parameters
    ----------
    block_size
        Source symbols of the block, 1 to 1024.
    symbol_bytes
        Bytes of a symbol, 1 to 65535.
    field
        2, 16 or 256.
    seed
        Seed of the combinations, 0 to 2^64 - 1.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> block = np.arange(12, dtype=np.uint8).reshape(3, 4)
    >>> recoder = Recoder(3, 4, seed=5)
    >>> recoder.add(Encoder(block).encode(2, seed=1)).tolist()
    [True, True]
    >>> Decoder(3, 4).add(recoder.recode(4)).sum()
    np.int64(2)
    """

    def __init__(
        self, block_size: int, symbol_bytes: int, field: Field = 256, seed: int = 0
    ) -> None:
        self.block_size, self.symbol_bytes = block_size, symbol_bytes
        self.field: Field = field
        self._inner = _native.Recoder(field, block_size, symbol_bytes, seed)

    @property
    def rank(self) -> int:
        """Innovative symbols held."""
        return self._inner.rank

    def add(self, coded: Coded) -> NDArray[np.bool_]:
        """Take in coded symbols, and tell for each whether it was innovative.

        Raises
        ------
        ValueError
            For arrays of another shape.
        """
        innovative = np.zeros(len(coded), dtype=np.bool_)
        vectors, payloads = _coded(coded)
        self._inner.add_coded(vectors, coded.count, payloads, innovative)
        return innovative

    def recode(self, rows: int, out: Bytes | None = None) -> Coded:
        """Make random combinations of all that is held.

        Parameters
        ----------
        rows
            How many, from 0.
        out
            Where payloads are written, if not to a new array: ``rows`` of ``symbol_bytes``.

        Raises
        ------
        ValueError
            When nothing is held, or for an ``out`` of another shape.
        """
        count = self._inner.known_count
        vectors = np.empty((rows, vector_bytes(count, self.field)), dtype=np.uint8)
        payloads = new_or_given("out", out, (rows, self.symbol_bytes))
        self._inner.recode(vectors, payloads)
        return Coded(vectors, payloads, count)


class Decoder:
    """A progressive decoder of a block.

    Parameters
    ----------
    block_size
        Source symbols of the block, 1 to 1024.
    symbol_bytes
        Bytes of a symbol, 1 to 65535.
    field
        2, 16 or 256.

    Raises
    ------
    ValueError
        For an argument out of its range.
    """

    def __init__(self, block_size: int, symbol_bytes: int, field: Field = 256) -> None:
        self.block_size, self.symbol_bytes = block_size, symbol_bytes
        self.field: Field = field
        self._inner = _native.BlockDecoder(field, block_size, symbol_bytes)

    @property
    def rank(self) -> int:
        """Innovative symbols received."""
        return self._inner.rank

    @property
    def is_complete(self) -> bool:
        """Whether all source symbols are decoded."""
        return self._inner.is_complete

    def add(self, coded: Coded) -> NDArray[np.bool_]:
        """Take in coded symbols, and tell for each whether it was innovative.

        Raises
        ------
        ValueError
            For arrays of another shape.
        """
        innovative = np.zeros(len(coded), dtype=np.bool_)
        vectors, payloads = _coded(coded)
        self._inner.add_coded(vectors, coded.count, payloads, innovative)
        return innovative

    def add_source(self, indices: NDArray[np.integer], symbols: Bytes) -> NDArray[np.bool_]:
        """Take in source symbols as they are, and tell for each whether it was innovative.

        Parameters
        ----------
        indices
            Their places in the block, each from 0 to ``block_size`` - 1.
        symbols
            As many rows of ``symbol_bytes``.

        Raises
        ------
        ValueError
            For an argument out of its range.

        Examples
        --------
        >>> decoder = Decoder(2, 3)
        >>> decoder.add_source(np.array([1]), np.full((1, 3), 7, dtype=np.uint8)).tolist()
        [True]
        >>> decoder.decoded().tolist()
        [False, True]
        """
        places = np.asarray(indices)
        if places.ndim != 1 or (places.size and int(places.min()) < 0):
            raise ValueError(f"indices = {indices}: expected a list of places from 0")
        innovative = np.zeros(len(symbols), dtype=np.bool_)
        rows_of("symbols", symbols, self.symbol_bytes)
        self._inner.add_source(places.astype(np.uint64), symbols, innovative)
        return innovative

    def decoded(self) -> NDArray[np.bool_]:
        """Tell for each source symbol whether it is decoded."""
        return self._symbols(None)[1]

    def symbols(self, out: Bytes | None = None) -> Bytes:
        """Return the block; symbols that are not decoded yet are zeros.

        Parameters
        ----------
        out
            Where symbols are written, if not to a new array: ``block_size`` rows of
            ``symbol_bytes``.

        Raises
        ------
        ValueError
            For an ``out`` of another shape.
        """
        return self._symbols(out)[0]

    def _symbols(self, out: Bytes | None) -> tuple[Bytes, NDArray[np.bool_]]:
        block = new_or_given("out", out, (self.block_size, self.symbol_bytes))
        decoded = np.zeros(self.block_size, dtype=np.bool_)
        self._inner.symbols(block, decoded)
        return block, decoded


def _coded(coded: Coded) -> tuple[Bytes, Bytes]:
    return rows_of("vectors", coded.vectors), rows_of("payloads", coded.payloads)
