"""The coder of a sliding window."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from corridor import _native
from corridor.codec._arrays import (
    Bytes,
    Field,
    draw_vectors,
    new_or_given,
    rows_of,
    vector_bytes,
    whole,
)


class WindowOutcome(IntEnum):
    """What an arriving symbol was worth to a `WindowDecoder`."""

    #: A combination of what was there before; it was dropped.
    DEPENDENT = 0
    #: It raised the rank by one.
    INNOVATIVE = 1
    #: About a symbol before the window; it was dropped.
    STALE = 2
    #: Beyond the longest window; it was dropped. The window has to be advanced first.
    AHEAD = 3


@dataclass(frozen=True)
class WindowCoded:
    """Coded symbols over one run of source symbols: a row of each array for each of them."""

    #: Coding vectors; coefficient i belongs to id ``first + i``.
    vectors: Bytes
    #: Payloads.
    payloads: Bytes
    #: Id of the first source symbol that the vectors cover.
    first: int
    #: Source symbols that the vectors cover.
    count: int

    def __len__(self) -> int:
        return len(self.payloads)

    def __getitem__(self, rows: "slice | NDArray[np.intp] | NDArray[np.bool_]") -> "WindowCoded":
        """Return some of them: by a slice (a view), or by numbers or flags (a copy)."""
        return WindowCoded(self.vectors[rows], self.payloads[rows], self.first, self.count)


class WindowEncoder:
    """The source symbols of a stream that are not let go of, and combinations of them.

    Parameters
    ----------
    window_size
        Most source symbols held, 1 to 1024.
    symbol_bytes
        Bytes of a symbol, 1 to 65535.
    field
        2, 16 or 256.
    first
        Id of the first symbol, 0 to 2^64 - 1; others count on from it.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> encoder = WindowEncoder(4, 2, first=10)
    >>> encoder.push(np.array([[1, 2], [4, 8]], dtype=np.uint8))
    10
    >>> encoder.combine(np.array([[1, 1]], dtype=np.uint8)).payloads.tolist()
    [[5, 10]]
    >>> encoder.advance_to(11)
    >>> encoder.base, encoder.end
    (11, 12)
    """

    def __init__(
        self, window_size: int, symbol_bytes: int, field: Field = 256, first: int = 0
    ) -> None:
        self.window_size, self.symbol_bytes = window_size, symbol_bytes
        self.field: Field = field
        self._inner = _native.WindowEncoder(
            field, window_size, symbol_bytes, _number("first", first)
        )

    @property
    def base(self) -> int:
        """Id of the first symbol held; that of the next one if none is."""
        return self._inner.base

    @property
    def end(self) -> int:
        """Id that the next symbol gets."""
        return self._inner.end

    def push(self, symbols: Bytes) -> int:
        """Append source symbols, and return the id of the first of them.

        Parameters
        ----------
        symbols
            Rows of ``symbol_bytes``, no more than there is room for in the window.

        Raises
        ------
        ValueError
            For an array of another shape, or when they do not fit: let go of others first.
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
            How many, from 0.
        seed
            0 to 2^64 - 1.
        first, count
            The run of symbols that they cover, in the window; without, from its first symbol on,
            to its last one.
        out
            Where payloads are written, if not to a new array: ``rows`` of ``symbol_bytes``.

        Raises
        ------
        ValueError
            For an argument out of its range.
        """
        first, count = _run(self.base, self.end, first, count)
        return self.combine(draw_vectors(count, rows, seed, self.field), first, count, out)

    def combine(
        self,
        vectors: Bytes,
        first: int | None = None,
        count: int | None = None,
        out: Bytes | None = None,
    ) -> WindowCoded:
        """Make the coded symbols of these coding vectors.

        Parameters
        ----------
        vectors
            Coding vectors, rows of `vector_bytes` of ``count``; `expand_seeds` and
            `expand_repair_keys` make them of what can be sent in their place.
        first, count
            The run of symbols that they cover, in the window; without, from its first symbol on,
            to its last one.
        out
            Where payloads are written, if not to a new array: as many rows of ``symbol_bytes``.

        Raises
        ------
        ValueError
            For an argument out of its range, or of another shape.
        """
        first, count = _run(self.base, self.end, first, count)
        rows_of("vectors", vectors, vector_bytes(count, self.field))
        payloads = new_or_given("out", out, (len(vectors), self.symbol_bytes))
        self._inner.encode(first, count, vectors, payloads)
        return WindowCoded(vectors, payloads, first, count)

    def advance_to(self, to: int) -> None:
        """Let go of all symbols with ids before ``to``; an id behind the window changes nothing."""
        self._inner.advance_to(_number("to", to))


class WindowDecoder:
    """A progressive decoder, and recoder, of a stream of source symbols.

    The window is ``base`` to ``end``: from the first symbol that was not let go of to the last one
    that anything received was about. A relay that does not read the symbols uses the same type, and
    recodes.

    Parameters
    ----------
    window_size
        Most source symbols held, 1 to 1024.
    symbol_bytes
        Bytes of a symbol, 1 to 65535.
    field
        2, 16 or 256.
    first
        Id of the first symbol, 0 to 2^64 - 1.
    seed
        Seed of recoded combinations, 0 to 2^64 - 1.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> encoder = WindowEncoder(8, 2)
    >>> _ = encoder.push(np.array([[1, 2], [4, 8], [6, 6]], dtype=np.uint8))
    >>> relay, decoder = WindowDecoder(8, 2), WindowDecoder(8, 2)
    >>> relay.add(encoder.encode(3, seed=1)).tolist()
    [1, 1, 1]
    >>> decoder.add(relay.recode(4)).tolist()
    [1, 1, 1, 0]
    >>> decoder.poll().tolist(), decoder.advance_to(3)
    ([0, 1, 2], 0)
    """

    def __init__(
        self,
        window_size: int,
        symbol_bytes: int,
        field: Field = 256,
        first: int = 0,
        seed: int = 0,
    ) -> None:
        self.window_size, self.symbol_bytes = window_size, symbol_bytes
        self.field: Field = field
        self._inner = _native.WindowDecoder(
            field, window_size, symbol_bytes, _number("first", first), _number("seed", seed)
        )

    @property
    def base(self) -> int:
        """Id of the first symbol of the window."""
        return self._inner.base

    @property
    def end(self) -> int:
        """One more than the highest id that a symbol received was about."""
        return self._inner.end

    @property
    def in_order_end(self) -> int:
        """Id of the first symbol that is not decoded: what is before can be delivered in order."""
        return self._inner.in_order_end

    @property
    def seen_end(self) -> int:
        """Id of the first symbol that is not seen, in the sense of TCP/NC."""
        return self._inner.seen_end

    @property
    def rank(self) -> int:
        """Symbols decoded, and coded symbols that are not used up."""
        return self._inner.rank

    @property
    def deficit(self) -> int:
        """Innovative symbols that it takes to decode all of the window."""
        return self._inner.deficit

    def add(self, coded: WindowCoded) -> NDArray[np.uint8]:
        """Take in coded symbols, and tell for each what it was worth: a `WindowOutcome`.

        Raises
        ------
        ValueError
            For arrays of another shape, or a run that is empty or longer than the window.
        """
        outcomes = np.zeros(len(coded), dtype=np.uint8)
        vectors, payloads = (
            rows_of("vectors", coded.vectors),
            rows_of("payloads", coded.payloads),
        )
        first = _number("first", coded.first)
        self._inner.add_coded(first, coded.count, vectors, payloads, outcomes)
        return outcomes

    def add_source(self, ids: NDArray[np.integer], symbols: Bytes) -> NDArray[np.uint8]:
        """Take in source symbols as they are, and tell what each was worth: a `WindowOutcome`.

        Parameters
        ----------
        ids
            Their ids.
        symbols
            As many rows of ``symbol_bytes``.

        Raises
        ------
        ValueError
            For an argument out of its range, or of another shape.
        """
        outcomes = np.zeros(len(symbols), dtype=np.uint8)
        rows_of("symbols", symbols, self.symbol_bytes)
        self._inner.add_source(whole("ids", ids, 64).astype(np.uint64), symbols, outcomes)
        return outcomes

    def recode(
        self,
        rows: int,
        first: int | None = None,
        count: int | None = None,
        out: Bytes | None = None,
    ) -> WindowCoded:
        """Make random combinations of what is held about a run of symbols and no others.

        Parameters
        ----------
        rows
            How many, from 0.
        first, count
            The run of symbols that they cover, in the window; without, from its first symbol on,
            to its last one.
        out
            Where payloads are written, if not to a new array: ``rows`` of ``symbol_bytes``.

        Raises
        ------
        ValueError
            When nothing of the kind is held, or for an argument out of its range.
        """
        first, count = _run(self.base, self.end, first, count)
        vectors = np.empty((rows, vector_bytes(count, self.field)), dtype=np.uint8)
        payloads = new_or_given("out", out, (rows, self.symbol_bytes))
        self._inner.recode(first, count, vectors, payloads)
        return WindowCoded(vectors, payloads, first, count)

    def poll(self) -> NDArray[np.uint64]:
        """Return the ids that were decoded since this was last asked, in ascending order."""
        return self._inner.poll_decoded()

    def decoded(self, first: int | None = None, count: int | None = None) -> NDArray[np.bool_]:
        """Tell for each symbol of a run whether it is decoded; without arguments for the window."""
        first, count = _run(self.base, self.end, first, count)
        decoded = np.zeros(count, dtype=np.bool_)
        self._inner.decoded(first, decoded)
        return decoded

    def symbols(
        self, first: int | None = None, count: int | None = None, out: Bytes | None = None
    ) -> Bytes:
        """Return a run of symbols; those that are not decoded are zeros.

        Parameters
        ----------
        first, count
            The run; without, all of the window.
        out
            Where symbols are written, if not to a new array: ``count`` rows of ``symbol_bytes``.

        Raises
        ------
        ValueError
            For an argument out of its range, or of another shape.
        """
        first, count = _run(self.base, self.end, first, count)
        symbols = new_or_given("out", out, (count, self.symbol_bytes))
        self._inner.symbols(first, symbols, np.zeros(count, dtype=np.bool_))
        return symbols

    def advance_to(self, to: int) -> int:
        """Let go of all symbols with ids before ``to``; return how many were not decoded."""
        return self._inner.advance_to(_number("to", to))


def _number(name: str, number: int) -> int:
    if not 0 <= number < 2**64:
        raise ValueError(f"{name} = {number}: expected 0 to 2^64 - 1")
    return int(number)


def _run(base: int, end: int, first: int | None, count: int | None) -> tuple[int, int]:
    """Return a run, which by default begins or ends as the window does."""
    first = base if first is None else _number("first", first)
    count = max(end - first, 0) if count is None else count
    if count < 0:
        raise ValueError(f"count = {count}: expected 0 or more")
    return first, count
