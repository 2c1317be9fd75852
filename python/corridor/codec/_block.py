"""Block coding: encoder, recoder and decoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corridor import _native
from corridor._integer import WORD_MAX, integer
from corridor.codec._arrays import (
    SYMBOL_BYTES_MAX,
    Bytes,
    Field,
    Numbers,
    Rows,
    buffer_of,
    check_field,
    check_sizes,
    draw_vectors,
    new_or_given,
    rows_of,
    vector_bytes,
    whole,
)
from corridor.codec._coded import CodedRows, code_text


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Coded(CodedRows):
    """Coded symbols: row i of each array belongs to coded symbol i.

    Parameters
    ----------
    vectors
        Coding vectors: an array with one row per vector, or a list of ``bytes`` of equal length.
    payloads
        Payloads, one per vector: an array with one row per payload, or a list of ``bytes``.
    count
        Number of source symbols the vectors cover, counted from the first of the block.

    Raises
    ------
    ValueError
        For arrays of the wrong dtype, or with different numbers of rows.

    Examples
    --------
    A sender transmits each symbol's vector and payload, from which the receiver rebuilds ``Coded``:

    >>> coded = Encoder([b"to be", b"or not", b"to be!"]).encode(4, seed=1)
    >>> frames = list(coded.pairs())
    >>> [(len(vector), len(payload)) for vector, payload in frames]
    [(3, 6), (3, 6), (3, 6), (3, 6)]
    >>> vectors, payloads = zip(*frames)
    >>> Coded(vectors, payloads, 3) == coded
    True
    """

    #: Number of source symbols the vectors cover, counted from the first of the block.
    count: int

    def __init__(self, vectors: Rows, payloads: Rows, count: int) -> None:
        super().__init__(vectors, payloads)
        object.__setattr__(self, "count", integer("count", count, 0))

    def __eq__(self, other: object) -> bool:
        """Whether vectors, payloads and count are equal."""
        return isinstance(other, Coded) and self.count == other.count and super().__eq__(other)

    __hash__ = None

    def __repr__(self) -> str:
        return f"<{self._text()} over {self.count} source symbols>"


class Encoder:
    """Encoder of a block: holds its source symbols and forms linear combinations of them.

    Parameters
    ----------
    block
        1 to 1024 source symbols of 1 to 65535 bytes: a ``uint8`` array with one row per symbol; a
        list of ``bytes``, each padded with zeros to the longest; or, with ``symbol_bytes``, one
        buffer, which is split into symbols, the last padded with zeros.
    field
        2, 16 or 256.
    symbol_bytes
        Symbol size in bytes; ``None`` for the size of the longest symbol.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> encoder = Encoder(b"to be or not to be", symbol_bytes=5)
    >>> encoder
    <Encoder: 4 symbols of 5 bytes over GF(2^8)>
    >>> decoder = Decoder(4, 5)
    >>> decoder.add(encoder.encode(4, seed=1)).tolist()
    [True, True, True, True]
    >>> decoder.to_bytes(18)
    b'to be or not to be'
    """

    def __init__(self, block: Rows, field: Field = 256, symbol_bytes: int | None = None) -> None:
        rows = _block_of(block, symbol_bytes)
        self.block_size, self.symbol_bytes = check_sizes("rows of block", *rows.shape)
        self.field: Field = check_field(field)
        self._inner = _native.BlockEncoder(field, self.block_size, self.symbol_bytes)
        self._inner.push(rows)

    def __repr__(self) -> str:
        return f"<Encoder: {code_text(self.block_size, self.symbol_bytes, self.field)}>"

    def __getstate__(self) -> dict[str, Any]:
        return {"block": self.symbols(), "field": self.field}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Encoder.__init__(self, state["block"], state["field"])

    def symbol(self, index: int) -> bytes:
        """Return source symbol ``index``, 0 to ``block_size`` - 1.

        Raises
        ------
        ValueError
            For an index out of its range.
        """
        symbol = self._inner.symbol(integer("index", index, 0, self.block_size - 1))
        return (symbol or b"").ljust(self.symbol_bytes, b"\0")

    def symbols(self) -> Bytes:
        """Return the block as an array with one row per source symbol."""
        return rows_of("block", [self.symbol(index) for index in range(self.block_size)])

    def encode(self, rows: int, seed: int, out: Bytes | None = None) -> Coded:
        """Make coded symbols with coding vectors drawn from a seed.

        Parameters
        ----------
        rows
            Number of coded symbols, from 0.
        seed
            0 to 2^64 - 1.
        out
            Array to write the payloads to, of shape (``rows``, ``symbol_bytes``); ``None`` for a
            new one.

        Raises
        ------
        ValueError
            For an argument out of its range.
        """
        return self.combine(draw_vectors(self.block_size, rows, seed, self.field), out)

    def combine(self, vectors: Rows, out: Bytes | None = None) -> Coded:
        """Make the coded symbols of the given coding vectors over the whole block.

        Parameters
        ----------
        vectors
            Coding vectors of `vector_bytes` each: an array with one row per vector, or a list of
            ``bytes``.
        out
            Array to write the payloads to, of shape (vectors, ``symbol_bytes``); ``None`` for a new
            one.

        Raises
        ------
        ValueError
            For an argument of the wrong shape.

        Examples
        --------
        >>> encoder = Encoder(np.array([[1, 2], [4, 8]], dtype=np.uint8))
        >>> encoder.combine(bytes([1, 1])).payloads.tolist()
        [[5, 10]]
        """
        width = vector_bytes(self.block_size, self.field)
        vectors = rows_of("vectors", vectors, width, padded=False)
        payloads = new_or_given("out", out, (len(vectors), self.symbol_bytes))
        self._inner.encode(vectors, self.block_size, payloads)
        return Coded(vectors, payloads, self.block_size)


class Recoder:
    """Recoder of a block: forms new combinations of received coded symbols without decoding.

    Parameters
    ----------
    block_size
        Number of source symbols in the block, 1 to 1024.
    symbol_bytes
        Symbol size in bytes, 1 to 65535.
    field
        2, 16 or 256.
    seed
        Seed of the recoding coefficients, 0 to 2^64 - 1.

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
    >>> recoder
    <Recoder: 3 symbols of 4 bytes over GF(2^8), rank 2>
    >>> int(Decoder(3, 4).add(recoder.recode(4)).sum())
    2
    """

    def __init__(
        self, block_size: int, symbol_bytes: int, field: Field = 256, seed: int = 0
    ) -> None:
        self.block_size, self.symbol_bytes = check_sizes("block_size", block_size, symbol_bytes)
        self.field: Field = check_field(field)
        seed = integer("seed", seed, 0, WORD_MAX)
        self._inner = _native.Recoder(field, self.block_size, self.symbol_bytes, seed)

    def __repr__(self) -> str:
        code = code_text(self.block_size, self.symbol_bytes, self.field)
        return f"<Recoder: {code}, rank {self.rank}>"

    def __getstate__(self) -> dict[str, Any]:
        return _held(self) | {"keystream": self._inner.keystream()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Recoder.__init__(self, state["block_size"], state["symbol_bytes"], state["field"])
        self._inner.seek_keystream(*state["keystream"])
        _hold(self, state)

    @property
    def rank(self) -> int:
        """Rank: the number of innovative symbols held."""
        return self._inner.rank

    def add(self, coded: Coded) -> NDArray[np.bool_]:
        """Add coded symbols, and return for each whether it was innovative.

        Raises
        ------
        ValueError
            For arrays of the wrong shape.
        """
        return _add(self, coded)

    def reseed(self, seed: int) -> None:
        """Reseed recoding, so that a copy no longer draws the same combinations as the original.

        Parameters
        ----------
        seed
            0 to 2^64 - 1.

        Raises
        ------
        ValueError
            For a seed out of its range.
        """
        self._inner.reseed(integer("seed", seed, 0, WORD_MAX))

    def recode(self, rows: int, out: Bytes | None = None) -> Coded:
        """Recode: make random linear combinations of all symbols held.

        Parameters
        ----------
        rows
            Number of coded symbols, from 0.
        out
            Array to write the payloads to, of shape (``rows``, ``symbol_bytes``); ``None`` for a
            new one.

        Raises
        ------
        ValueError
            When nothing is held, or for an ``out`` of the wrong shape.
        """
        rows = integer("rows", rows, 0)
        if self.rank == 0:
            raise ValueError("rank = 0: expected 1 or more, symbols to combine")
        count = self._inner.known_count
        vectors = np.empty((rows, vector_bytes(count, self.field)), dtype=np.uint8)
        payloads = new_or_given("out", out, (rows, self.symbol_bytes))
        self._inner.recode(vectors, payloads)
        return Coded(vectors, payloads, count)


class Decoder:
    """Progressive decoder of a block: eliminates each symbol as it arrives.

    Parameters
    ----------
    block_size
        Number of source symbols in the block, 1 to 1024.
    symbol_bytes
        Symbol size in bytes, 1 to 65535.
    field
        2, 16 or 256.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> decoder = Decoder(3, 6)
    >>> decoder.add_source([0, 2], [b"to be", b"to be!"]).tolist()
    [True, True]
    >>> decoder
    <Decoder: 3 symbols of 6 bytes over GF(2^8), rank 2, 2 decoded>
    >>> decoder.symbol(2), decoder.symbol(1)
    (b'to be!', None)
    >>> decoder.add(Encoder([b"to be", b"or not", b"to be!"]).encode(1, seed=1)).tolist()
    [True]
    >>> decoder.symbol(1)
    b'or not'
    """

    def __init__(self, block_size: int, symbol_bytes: int, field: Field = 256) -> None:
        self.block_size, self.symbol_bytes = check_sizes("block_size", block_size, symbol_bytes)
        self.field: Field = check_field(field)
        self._inner = _native.BlockDecoder(field, self.block_size, self.symbol_bytes)

    def __repr__(self) -> str:
        code = code_text(self.block_size, self.symbol_bytes, self.field)
        return f"<Decoder: {code}, rank {self.rank}, {self._inner.decoded_count} decoded>"

    def __getstate__(self) -> dict[str, Any]:
        return _held(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        Decoder.__init__(self, state["block_size"], state["symbol_bytes"], state["field"])
        _hold(self, state)

    @property
    def rank(self) -> int:
        """Rank: the number of innovative symbols received."""
        return self._inner.rank

    @property
    def is_complete(self) -> bool:
        """Whether all source symbols are decoded."""
        return self._inner.is_complete

    def add(self, coded: Coded) -> NDArray[np.bool_]:
        """Add coded symbols, and return for each whether it was innovative.

        Raises
        ------
        ValueError
            For arrays of the wrong shape.
        """
        return _add(self, coded)

    def add_source(self, indices: Numbers, symbols: Rows) -> NDArray[np.bool_]:
        """Add uncoded source symbols, and return for each whether it was innovative.

        Parameters
        ----------
        indices
            Index in the block of each symbol, 0 to ``block_size`` - 1; or a single index.
        symbols
            The symbols, one per index: an array with rows of ``symbol_bytes``, or a list of
            ``bytes``; or a single symbol as ``bytes``. Shorter ones are padded with zeros.

        Raises
        ------
        ValueError
            For an argument out of its range.

        Examples
        --------
        >>> decoder = Decoder(2, 3)
        >>> decoder.add_source(1, b"one").tolist()
        [True]
        >>> decoder.decoded().tolist()
        [False, True]
        """
        places = whole("indices", indices, 64)
        for place in places[places >= self.block_size]:
            integer("indices", int(place), 0, self.block_size - 1)
        rows = rows_of("symbols", symbols, self.symbol_bytes)
        innovative = np.zeros(len(rows), dtype=np.bool_)
        self._inner.add_source(places.astype(np.uint64), rows, innovative)
        return innovative

    def decoded(self) -> NDArray[np.bool_]:
        """Return for each source symbol whether it is decoded."""
        return self._symbols(None)[1]

    def symbol(self, index: int) -> bytes | None:
        """Return a source symbol, or ``None`` if it is not decoded yet.

        Parameters
        ----------
        index
            Index in the block, 0 to ``block_size`` - 1.

        Raises
        ------
        ValueError
            For an index out of its range.
        """
        symbol = self._inner.symbol(integer("index", index, 0, self.block_size - 1))
        return None if symbol is None else symbol.ljust(self.symbol_bytes, b"\0")

    def to_bytes(self, length: int | None = None) -> bytes:
        """Return the whole block as one ``bytes``.

        Parameters
        ----------
        length
            Number of bytes, counted from the start; ``None`` for all, including padding at the end.

        Raises
        ------
        ValueError
            When the block is not complete, or for a length beyond its end.
        """
        if not self.is_complete:
            raise ValueError(f"rank = {self.rank}: expected {self.block_size}, a complete block")
        most = self.block_size * self.symbol_bytes
        length = most if length is None else integer("length", length, 0, most)
        return self.symbols().tobytes()[:length]

    def symbols(self, out: Bytes | None = None) -> Bytes:
        """Return the block as an array; rows of symbols not decoded yet are zeros.

        Parameters
        ----------
        out
            Array to write the symbols to, of shape (``block_size``, ``symbol_bytes``); ``None`` for
            a new one.

        Raises
        ------
        ValueError
            For an ``out`` of the wrong shape.
        """
        return self._symbols(out)[0]

    def _symbols(self, out: Bytes | None) -> tuple[Bytes, NDArray[np.bool_]]:
        block = new_or_given("out", out, (self.block_size, self.symbol_bytes))
        decoded = np.zeros(self.block_size, dtype=np.bool_)
        self._inner.symbols(block, decoded)
        return block, decoded


def _block_of(block: Rows, symbol_bytes: int | None) -> Bytes:
    """Return a block's source symbols: the rows given, or a buffer split into symbols."""
    view = buffer_of(block)
    if view is None or view.ndim != 1:
        return rows_of("block", block, symbol_bytes)
    whole_block = rows_of("block", block)[0]
    if symbol_bytes is None:
        given = f"{whole_block.size} bytes"
        raise ValueError(f"block = {given}: expected `symbol_bytes` to cut them by, or rows")
    width = integer("symbol_bytes", symbol_bytes, 1, SYMBOL_BYTES_MAX)
    padded = np.zeros(-(-whole_block.size // width) * width, dtype=np.uint8)
    padded[: whole_block.size] = whole_block
    return padded.reshape(-1, width)


def _add(coder: Recoder | Decoder, coded: Coded) -> NDArray[np.bool_]:
    """Add coded symbols to a recoder or decoder."""
    integer("count", coded.count, 1, coder.block_size)
    width = vector_bytes(coded.count, coder.field)
    rows_of("vectors", coded.vectors, width)
    integer("bytes of payloads", coded.payloads.shape[1], 1, coder.symbol_bytes)
    innovative = np.zeros(len(coded), dtype=np.bool_)
    coder._inner.add_coded(coded.vectors, coded.count, coded.payloads, innovative)
    return innovative


def _held(coder: Recoder | Decoder) -> dict[str, Any]:
    """Return the parameters and the state of a recoder or decoder."""
    vectors, payloads = coder._inner.held()
    return {
        "block_size": coder.block_size,
        "symbol_bytes": coder.symbol_bytes,
        "field": coder.field,
        "count": coder._inner.known_count,
        "vectors": vectors,
        "payloads": payloads,
    }


def _hold(coder: Recoder | Decoder, state: dict[str, Any]) -> None:
    """Restore a saved state into a new recoder or decoder."""
    if state["count"]:
        # An all-zero symbol is never innovative; it only tells how many source symbols are known.
        nothing = np.zeros((1, vector_bytes(state["count"], coder.field)), dtype=np.uint8)
        _add(coder, Coded(nothing, b"\0", state["count"]))
        _add(coder, Coded(state["vectors"], state["payloads"], state["count"]))
