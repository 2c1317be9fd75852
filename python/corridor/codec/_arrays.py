"""Arrays of bytes, buffers, and coding vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, SupportsIndex, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from corridor import _native
from corridor._integer import WORD_MAX, integer

if TYPE_CHECKING:
    from typing_extensions import Buffer
else:
    # Any object with the buffer protocol; Python names this type from 3.12 on.
    Buffer = bytes | bytearray | memoryview

#: Symbols: a two-dimensional array, one symbol as a flat buffer, or a list of such buffers.
Rows: TypeAlias = NDArray[np.generic] | Buffer | Sequence[NDArray[np.generic] | Buffer]
#: Integers: an array, a list, or a single one.
Numbers: TypeAlias = NDArray[np.integer] | Sequence[int] | int
#: Order of the finite field of the coefficients.
Field = Literal[2, 16, 256]
Bytes = NDArray[np.uint8]

#: Largest number of symbols in a block or a window.
SYMBOLS_MAX = 1024
#: Largest symbol size, bytes: a length fits in 16 bits.
SYMBOL_BYTES_MAX = 65_535


def check_field(field: Field) -> Field:
    """Check the order of a field."""
    if field not in (2, 16, 256):
        raise ValueError(f"field = {field!r}: expected 2, 16 or 256")
    return field


def check_sizes(
    symbols_name: str, symbols: SupportsIndex, symbol_bytes: SupportsIndex
) -> tuple[int, int]:
    """Check a coder's number of symbols and its symbol size."""
    return (
        integer(symbols_name, symbols, 1, SYMBOLS_MAX),
        integer("symbol_bytes", symbol_bytes, 1, SYMBOL_BYTES_MAX),
    )


def rows_of(name: str, given: Rows, width: int | None = None, *, padded: bool = True) -> Bytes:
    """Return symbols as an array with one row per symbol.

    A two-dimensional array is used in place and never converted, since that would copy it. Of other
    input, each buffer is one symbol; shorter ones are padded with zeros to the longest.
    """
    if isinstance(given, np.ndarray) and given.ndim != 1:
        return _checked(name, given, width)
    view = buffer_of(given)
    if view is not None and view.ndim == 2:
        return _checked(name, np.asarray(view), width)
    if view is None and isinstance(given, Sequence) and not isinstance(given, str):
        symbols = [_flat(f"{name}[{place}]", each) for place, each in enumerate(given)]
        one = ""
    else:
        symbols, one = [_flat(name, given)], name
    wide = max(map(len, symbols), default=width or 0) if width is None else width
    for place, symbol in enumerate(symbols):
        fits = 0 < len(symbol) <= wide if padded else len(symbol) == wide
        if not fits:
            expected = f"1 to {wide or SYMBOL_BYTES_MAX}" if padded else f"{wide}"
            which = one or f"{name}[{place}]"
            raise ValueError(f"{which} = {len(symbol)} bytes: expected {expected}")
    if len(symbols) == 1 and len(symbols[0]) == wide:
        return symbols[0].reshape(1, wide)
    rows = np.zeros((len(symbols), wide), dtype=np.uint8)
    for row, symbol in zip(rows, symbols, strict=True):
        row[: len(symbol)] = symbol
    return rows


def _checked(name: str, array: NDArray[np.generic], width: int | None) -> Bytes:
    """Check an array with one row per symbol."""
    if array.dtype != np.uint8 or array.ndim != 2:
        given = f"{array.dtype}, {array.shape}"
        raise ValueError(f"{name} = array of {given}: expected uint8, two dimensions")
    if not array.flags.c_contiguous:
        raise ValueError(
            f"{name} = an array with gaps: expected a C-contiguous one (numpy.ascontiguousarray)"
        )
    if width is not None and array.shape[1] != width:
        raise ValueError(f"{name} = rows of {array.shape[1]} bytes: expected {width}")
    return cast(Bytes, array)


def buffer_of(given: object) -> memoryview | None:
    """Return a view of an object with the buffer protocol, or ``None`` for any other."""
    try:
        return memoryview(cast(Buffer, given))
    except TypeError:
        return None


def _flat(name: str, given: object) -> Bytes:
    """Return a flat buffer of bytes as an array."""
    view = buffer_of(given)
    if view is None:
        expected = "bytes, an array of uint8, or a list of such"
        raise ValueError(f"{name} = {type(given).__name__}: expected {expected}")
    if view.ndim != 1 or view.itemsize != 1 or not view.c_contiguous:
        what = f"buffer of format {view.format!r}, {view.ndim} dimensions"
        raise ValueError(f"{name} = {what}: expected bytes, or an array of uint8 without gaps")
    return np.asarray(view.cast("B"))


def new_or_given(name: str, out: Bytes | None, shape: tuple[int, int]) -> Bytes:
    """Return the array to write to: the caller's, once checked, or a new one."""
    if out is None:
        return np.empty(shape, dtype=np.uint8)
    if not isinstance(out, np.ndarray):
        raise ValueError(f"{name} = {type(out).__name__}: expected an array of uint8")
    if _checked(name, out, None).shape != shape:
        raise ValueError(f"{name} = array of shape {out.shape}: expected {shape}")
    if not out.flags.writeable:
        raise ValueError(f"{name} = a read-only array: expected one that can be written")
    return out


def vector_bytes(count: int, field: Field = 256) -> int:
    """Size in bytes of a coding vector for ``count`` source symbols.

    Parameters
    ----------
    count
        Number of source symbols, from 0.
    field
        2, 16 or 256.

    Raises
    ------
    ValueError
        For any other field, or a negative count.

    Examples
    --------
    >>> [vector_bytes(150, field) for field in (2, 16, 256)]
    [19, 75, 150]
    """
    return _native.vector_bytes(check_field(field), integer("count", count, 0))


def draw_vectors(count: int, rows: int, seed: int, field: Field = 256) -> Bytes:
    """Draw coding vectors uniformly from all nonzero ones.

    Parameters
    ----------
    count
        Number of source symbols each vector covers, 1 to 1024.
    rows
        Number of vectors, from 0.
    seed
        Equal seeds give equal vectors on every machine; 0 to 2^64 - 1.
    field
        2, 16 or 256.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> draw_vectors(9, 4, seed=3, field=2).shape
    (4, 2)
    """
    return _native.draw_vectors(
        check_field(field),
        integer("count", count, 1, SYMBOLS_MAX),
        integer("rows", rows, 0),
        integer("seed", seed, 0, WORD_MAX),
    )


def expand_seeds(count: int, seeds: Numbers, field: Field = 256) -> Bytes:
    """Expand seeds, as sent in place of coding vectors, into those vectors.

    Parameters
    ----------
    count
        Number of source symbols each vector covers, 1 to 1024.
    seeds
        Each from 0 to 2^32 - 1. Equal seeds give equal, nonzero vectors on every machine.
    field
        2, 16 or 256.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> expand_seeds(3, [0, 1]).shape
    (2, 3)
    """
    count = integer("count", count, 1, SYMBOLS_MAX)
    small = whole("seeds", seeds, 32).astype(np.uint32)
    return _native.expand_seeds(check_field(field), count, small)


def expand_repair_keys(
    count: int, keys: Numbers, density: int = 15, field: Literal[2, 256] = 256
) -> Bytes:
    """Return the coding vectors of repair keys, as generated in RFC 8681 (section 3.6).

    Parameters
    ----------
    count
        Number of source symbols each vector covers, 1 to 1024.
    keys
        Each from 0 to 2^16 - 1.
    density
        Density threshold, 0 to 15: a coefficient is nonzero with probability (density + 1) / 16.
    field
        2 or 256.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> expand_repair_keys(5, 1).tolist()
    [[37, 225, 177, 176, 21]]
    """
    if field not in (2, 256):
        raise ValueError(f"field = {field!r}: expected 2 or 256, which RFC 8681 has")
    return _native.expand_repair_keys(
        field,
        integer("count", count, 1, SYMBOLS_MAX),
        whole("keys", keys, 16).astype(np.uint16),
        integer("density", density, 0, 15),
    )


def whole(name: str, numbers: Numbers, bits: int) -> NDArray[np.integer]:
    """Return non-negative integers of up to ``bits`` bits as an array; a scalar has length one."""
    array = np.atleast_1d(np.asarray(numbers))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        given = f"{array.dtype}, {array.shape}"
        raise ValueError(f"{name} = array of {given}: expected whole numbers, one dimension")
    if array.size and (int(array.min()) < 0 or int(array.max()) >> bits):
        wrong = next(int(each) for each in array if each < 0 or int(each) >> bits)
        raise ValueError(f"{name} = {wrong}: expected numbers from 0 to 2^{bits} - 1")
    return array
