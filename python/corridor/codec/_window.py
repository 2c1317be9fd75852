"""Sliding-window coding: encoder, and decoder that also recodes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corridor import _native
from corridor._integer import WORD_MAX, integer
from corridor.codec._arrays import (
    SYMBOLS_MAX,
    Bytes,
    Field,
    Numbers,
    Rows,
    check_field,
    check_sizes,
    draw_vectors,
    new_or_given,
    rows_of,
    vector_bytes,
    whole,
)
from corridor.codec._coded import CodedRows, code_text


class WindowOutcome(IntEnum):
    """Effect of a received symbol on a `WindowDecoder`."""

    #: Linearly dependent on what was already held; dropped.
    DEPENDENT = 0
    #: Innovative: it raised the rank by one.
    INNOVATIVE = 1
    #: Covers a symbol before the window; dropped.
    STALE = 2
    #: Would make the window longer than ``window_size``; dropped. Call `advance_to` first.
    AHEAD = 3


@dataclass(frozen=True, init=False, repr=False, eq=False)
class WindowCoded(CodedRows):
    """Coded symbols over one run of source symbols: row i of each array belongs to coded symbol i.

    Parameters
    ----------
    vectors
        Coding vectors: an array with one row per vector, or a list of ``bytes`` of equal length;
        coefficient i belongs to the source symbol with id ``first + i``.
    payloads
        Payloads, one per vector: an array with one row per payload, or a list of ``bytes``.
    first
        Id of the first source symbol the vectors cover, 0 to 2^64 - 1.
    count
        Number of source symbols the vectors cover.

    Raises
    ------
    ValueError
        For arrays of the wrong dtype, or with different numbers of rows.
    """

    #: Id of the first source symbol the vectors cover.
    first: int
    #: Number of source symbols the vectors cover.
    count: int

    def __init__(self, vectors: Rows, payloads: Rows, first: int, count: int) -> None:
        super().__init__(vectors, payloads)
        object.__setattr__(self, "first", integer("first", first, 0, WORD_MAX))
        object.__setattr__(self, "count", integer("count", count, 0))

    def __eq__(self, other: object) -> bool:
        """Whether vectors, payloads and run are equal."""
        return (
            isinstance(other, WindowCoded)
            and (self.first, self.count) == (other.first, other.count)
            and super().__eq__(other)
        )

    __hash__ = None

    def __repr__(self) -> str:
        return f"<{self._text()} over source symbols {self.first}..{self.first + self.count}>"


class WindowEncoder:
    """Encoder of a stream: holds the source symbols in the window and combines them.

    Parameters
    ----------
    window_size
        Largest number of source symbols held, 1 to 1024.
    symbol_bytes
        Symbol size in bytes, 1 to 65535.
    field
        2, 16 or 256.
    first
        Id of the first symbol, 0 to 2^64 - 1; later symbols are numbered consecutively.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> encoder = WindowEncoder(4, 2, first=10)
    >>> encoder.push(np.array([[1, 2], [4, 8]], dtype=np.uint8))
    10
    >>> encoder.push(b"ab")
    12
    >>> encoder
    <WindowEncoder: 4 symbols of 2 bytes over GF(2^8), window 10..13>
    >>> encoder.combine(bytes([1, 1]), count=2).payloads.tolist()
    [[5, 10]]
    >>> encoder.advance_to(11)
    >>> encoder.base, encoder.end
    (11, 13)
    """

    def __init__(
        self, window_size: int, symbol_bytes: int, field: Field = 256, first: int = 0
    ) -> None:
        self.window_size, self.symbol_bytes = check_sizes("window_size", window_size, symbol_bytes)
        self.field: Field = check_field(field)
        first = integer("first", first, 0, WORD_MAX)
        self._inner = _native.WindowEncoder(field, self.window_size, self.symbol_bytes, first)

    def __repr__(self) -> str:
        code = code_text(self.window_size, self.symbol_bytes, self.field)
        return f"<WindowEncoder: {code}, window {self.base}..{self.end}>"

    def __getstate__(self) -> dict[str, Any]:
        symbols = [self._inner.symbol(symbol_id) or b"" for symbol_id in range(self.base, self.end)]
        return _shape(self) | {"base": self.base, "symbols": symbols}

    def __setstate__(self, state: dict[str, Any]) -> None:
        sizes = state["window_size"], state["symbol_bytes"]
        WindowEncoder.__init__(self, *sizes, state["field"], state["base"])
        self.push(state["symbols"])

    @property
    def base(self) -> int:
        """Id of the first symbol held; equal to `end` if none is."""
        return self._inner.base

    @property
    def end(self) -> int:
        """Id of the next symbol to be pushed."""
        return self._inner.end

    def push(self, symbols: Rows) -> int:
        """Append source symbols, and return the id of the first of them.

        Parameters
        ----------
        symbols
            At most as many as the window has room for: an array with rows of ``symbol_bytes``, or a
            list of ``bytes``; or a single symbol as ``bytes``. Shorter ones are padded with zeros.

        Raises
        ------
        ValueError
            For an array of the wrong shape, or when the window has no room: see `advance_to`.
        """
        first = self.end
        self._inner.push(rows_of("symbols", symbols, self.symbol_bytes))
        return first

    def encode(
        self,
        rows: int,
        seed: int,
        first: int | None = None,
        count: int | None = None,
        out: Bytes | None = None,
    ) -> WindowCoded:
        """Make coded symbols with coding vectors drawn from a seed.

        Parameters
        ----------
        rows
            Number of coded symbols, from 0.
        seed
            0 to 2^64 - 1.
        first, count
            The run of symbols to cover, within the window; by default from the window's first
            symbol, and to its last.
        out
            Array to write the payloads to, of shape (``rows``, ``symbol_bytes``); ``None`` for a
            new one.

        Raises
        ------
        ValueError
            For an argument out of its range.
        """
        first, count = _run(self.base, self.end, first, count)
        return self.combine(draw_vectors(count, rows, seed, self.field), first, count, out)

    def combine(
        self,
        vectors: Rows,
        first: int | None = None,
        count: int | None = None,
        out: Bytes | None = None,
    ) -> WindowCoded:
        """Make the coded symbols of the given coding vectors.

        Parameters
        ----------
        vectors
            Coding vectors, each of ``vector_bytes(count, field)`` bytes: an array with one row per
            vector, or a list of ``bytes``. `expand_seeds` and `expand_repair_keys` compute them
            from the seeds or keys that are sent in their place.
        first, count
            The run of symbols to cover, within the window; by default from the window's first
            symbol, and to its last.
        out
            Array to write the payloads to, of shape (vectors, ``symbol_bytes``); ``None`` for a new
            one.

        Raises
        ------
        ValueError
            For an argument out of its range, or of the wrong shape.
        """
        first, count = _run(self.base, self.end, first, count)
        vectors = rows_of("vectors", vectors, vector_bytes(count, self.field), padded=False)
        payloads = new_or_given("out", out, (len(vectors), self.symbol_bytes))
        self._inner.encode(first, count, vectors, payloads)
        return WindowCoded(vectors, payloads, first, count)

    def advance_to(self, to: int) -> None:
        """Drop all symbols with ids below ``to``; no effect if ``to`` is at or below `base`.

        Raises
        ------
        ValueError
            For an id outside 0 to 2^64 - 1.
        """
        self._inner.advance_to(integer("to", to, 0, WORD_MAX))

    def symbol(self, symbol_id: int) -> bytes:
        """Return a source symbol of the window, with an id from ``base`` to ``end`` - 1.

        Raises
        ------
        ValueError
            For an id outside the window.
        """
        symbol = self._inner.symbol(integer("symbol_id", symbol_id, 0, WORD_MAX))
        if symbol is None:
            raise ValueError(
                f"symbol_id = {symbol_id}: expected one in {self.base}..{self.end}, the window"
            )
        return symbol.ljust(self.symbol_bytes, b"\0")


class WindowDecoder:
    """Progressive decoder, and recoder, of a stream of source symbols.

    The window spans the ids ``base`` to ``end`` - 1: from where `advance_to` last moved it to the
    highest id that any received symbol covers. A relay that does not need the source symbols uses
    the same class, and calls `recode`.

    Parameters
    ----------
    window_size
        Largest number of source symbols held, 1 to 1024.
    symbol_bytes
        Symbol size in bytes, 1 to 65535.
    field
        2, 16 or 256.
    first
        Id of the first symbol, 0 to 2^64 - 1.
    seed
        Seed of the recoding coefficients, 0 to 2^64 - 1.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> encoder = WindowEncoder(8, 2)
    >>> encoder.push([b"to", b"be", b"or"])
    0
    >>> relay, decoder = WindowDecoder(8, 2), WindowDecoder(8, 2)
    >>> relay.add(encoder.encode(3, seed=1)).tolist()
    [1, 1, 1]
    >>> decoder.add(relay.recode(4)).tolist()
    [1, 1, 1, 0]
    >>> decoder.poll().tolist(), decoder.symbol(1)
    ([0, 1, 2], b'be')
    >>> decoder.advance_to(3)
    0
    >>> decoder
    <WindowDecoder: 8 symbols of 2 bytes over GF(2^8), window 3..3, rank 0, deficit 0>
    """

    def __init__(
        self,
        window_size: int,
        symbol_bytes: int,
        field: Field = 256,
        first: int = 0,
        seed: int = 0,
    ) -> None:
        self.window_size, self.symbol_bytes = check_sizes("window_size", window_size, symbol_bytes)
        self.field: Field = check_field(field)
        self._inner = _native.WindowDecoder(
            field,
            self.window_size,
            self.symbol_bytes,
            integer("first", first, 0, WORD_MAX),
            integer("seed", seed, 0, WORD_MAX),
        )

    def __repr__(self) -> str:
        code = code_text(self.window_size, self.symbol_bytes, self.field)
        held = f"rank {self.rank}, deficit {self.deficit}"
        return f"<WindowDecoder: {code}, window {self.base}..{self.end}, {held}>"

    def __getstate__(self) -> dict[str, Any]:
        ids = np.flatnonzero(self.decoded()).astype(np.uint64) + np.uint64(self.base)
        vectors, payloads = self._inner.held()
        return _shape(self) | {
            "base": self.base,
            "end": self.end,
            "ids": ids,
            "symbols": [self._inner.symbol(int(symbol_id)) or b"" for symbol_id in ids],
            "unpolled": self._inner.unpolled(),
            "vectors": vectors,
            "payloads": payloads,
            "keystream": self._inner.keystream(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        sizes, base = (state["window_size"], state["symbol_bytes"]), state["base"]
        WindowDecoder.__init__(self, *sizes, state["field"], base)
        self._inner.seek_keystream(*state["keystream"])
        count = state["end"] - base
        if count == 0:
            return
        # An all-zero symbol is never innovative; it only tells where the window ends.
        nothing = np.zeros((1, vector_bytes(count, self.field)), dtype=np.uint8)
        self.add(WindowCoded(nothing, b"\0", base, count))
        symbols = dict(zip(state["ids"].tolist(), state["symbols"], strict=True))
        unpolled = {symbol_id: symbols.pop(symbol_id) for symbol_id in state["unpolled"].tolist()}
        self.add_source(list(symbols), list(symbols.values()))
        self.poll()
        self.add_source(list(unpolled), list(unpolled.values()))
        self.add(WindowCoded(state["vectors"], state["payloads"], base, count))

    @property
    def base(self) -> int:
        """Id of the first symbol of the window."""
        return self._inner.base

    @property
    def end(self) -> int:
        """One more than the highest id that any received symbol covers."""
        return self._inner.end

    @property
    def in_order_end(self) -> int:
        """Id of the first symbol not decoded: all earlier ones can be delivered in order."""
        return self._inner.in_order_end

    @property
    def seen_end(self) -> int:
        """Id of the first symbol not seen, in the sense of TCP/NC."""
        return self._inner.seen_end

    @property
    def rank(self) -> int:
        """Rank: decoded symbols in the window, plus innovative coded symbols not yet resolved."""
        return self._inner.rank

    @property
    def deficit(self) -> int:
        """Number of innovative symbols still missing to decode the whole window."""
        return self._inner.deficit

    def add(self, coded: WindowCoded) -> NDArray[np.uint8]:
        """Add coded symbols, and return the `WindowOutcome` of each.

        Raises
        ------
        ValueError
            For arrays of the wrong shape, or a run that is empty or longer than the window.
        """
        integer("count", coded.count, 1, self.window_size)
        rows_of("vectors", coded.vectors, vector_bytes(coded.count, self.field))
        integer("bytes of payloads", coded.payloads.shape[1], 1, self.symbol_bytes)
        outcomes = np.zeros(len(coded), dtype=np.uint8)
        self._inner.add_coded(coded.first, coded.count, coded.vectors, coded.payloads, outcomes)
        return outcomes

    def add_source(self, ids: Numbers, symbols: Rows) -> NDArray[np.uint8]:
        """Add uncoded source symbols, and return the `WindowOutcome` of each.

        Parameters
        ----------
        ids
            Id of each symbol; or a single id.
        symbols
            The symbols, one per id: an array with rows of ``symbol_bytes``, or a list of ``bytes``;
            or a single symbol as ``bytes``. Shorter ones are padded with zeros.

        Raises
        ------
        ValueError
            For an argument out of its range, or of the wrong shape.
        """
        rows = rows_of("symbols", symbols, self.symbol_bytes)
        outcomes = np.zeros(len(rows), dtype=np.uint8)
        self._inner.add_source(whole("ids", ids, 64).astype(np.uint64), rows, outcomes)
        return outcomes

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

    def recode(
        self,
        rows: int,
        first: int | None = None,
        count: int | None = None,
        out: Bytes | None = None,
    ) -> WindowCoded:
        """Recode: make random linear combinations of what is held about a run of symbols only.

        Parameters
        ----------
        rows
            Number of coded symbols, from 0.
        first, count
            The run of symbols to cover, within the window; by default from the window's first
            symbol, and to its last.
        out
            Array to write the payloads to, of shape (``rows``, ``symbol_bytes``); ``None`` for a
            new one.

        Raises
        ------
        ValueError
            When nothing held lies within the run, or for an argument out of its range.
        """
        rows = integer("rows", rows, 0)
        first, count = _run(self.base, self.end, first, count)
        vectors = np.empty((rows, vector_bytes(count, self.field)), dtype=np.uint8)
        payloads = new_or_given("out", out, (rows, self.symbol_bytes))
        self._inner.recode(first, count, vectors, payloads)
        return WindowCoded(vectors, payloads, first, count)

    def poll(self) -> NDArray[np.uint64]:
        """Return the ids decoded since the last call, in ascending order."""
        return self._inner.poll_decoded()

    def decoded(self, first: int | None = None, count: int | None = None) -> NDArray[np.bool_]:
        """Return whether each symbol of a run, by default the whole window, is decoded."""
        first, count = _run(self.base, self.end, first, count)
        decoded = np.zeros(count, dtype=np.bool_)
        self._inner.decoded(first, decoded)
        return decoded

    def symbol(self, symbol_id: int) -> bytes | None:
        """Return a source symbol, or ``None`` if it is not decoded or outside the window.

        Raises
        ------
        ValueError
            For an id outside 0 to 2^64 - 1.
        """
        symbol = self._inner.symbol(integer("symbol_id", symbol_id, 0, WORD_MAX))
        return None if symbol is None else symbol.ljust(self.symbol_bytes, b"\0")

    def symbols(
        self, first: int | None = None, count: int | None = None, out: Bytes | None = None
    ) -> Bytes:
        """Return a run of symbols; rows of symbols not decoded are zeros.

        Parameters
        ----------
        first, count
            The run; by default the whole window.
        out
            Array to write the symbols to, of shape (``count``, ``symbol_bytes``); ``None`` for a
            new one.

        Raises
        ------
        ValueError
            For an argument out of its range, or of the wrong shape.
        """
        first, count = _run(self.base, self.end, first, count)
        symbols = new_or_given("out", out, (count, self.symbol_bytes))
        self._inner.symbols(first, symbols, np.zeros(count, dtype=np.bool_))
        return symbols

    def advance_to(self, to: int) -> int:
        """Drop all symbols with ids below ``to``; return how many of them were not decoded.

        Raises
        ------
        ValueError
            For an id outside 0 to 2^64 - 1.
        """
        return self._inner.advance_to(integer("to", to, 0, WORD_MAX))


def _shape(coder: WindowEncoder | WindowDecoder) -> dict[str, Any]:
    """Return the parameters of a coder."""
    return {
        "window_size": coder.window_size,
        "symbol_bytes": coder.symbol_bytes,
        "field": coder.field,
    }


def _run(base: int, end: int, first: int | None, count: int | None) -> tuple[int, int]:
    """Return a run, by default from the start and to the end of the window."""
    first = base if first is None else integer("first", first, 0, WORD_MAX)
    return first, max(end - first, 0) if count is None else integer("count", count, 0, SYMBOLS_MAX)
