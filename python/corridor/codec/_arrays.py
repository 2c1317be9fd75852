"""Arrays of bytes, and coding vectors."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from corridor import _native

#: Number of elements of the field that coefficients are taken from.
Field = Literal[2, 16, 256]
Bytes = NDArray[np.uint8]


def rows_of(name: str, array: Bytes, width: int | None = None) -> Bytes:
    """Check an array of rows; nothing is converted, for that would be a copy."""
    if not isinstance(array, np.ndarray) or array.dtype != np.uint8 or array.ndim != 2:
        given = f"{getattr(array, 'dtype', type(array).__name__)}, {np.shape(array)}"
        raise ValueError(f"{name} = array of {given}: expected uint8, two dimensions")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} = an array with gaps: expected a C-contiguous one")
    if width is not None and array.shape[1] != width:
        raise ValueError(f"{name} = rows of {array.shape[1]} bytes: expected {width}")
    return array


def new_or_given(name: str, out: Bytes | None, shape: tuple[int, int]) -> Bytes:
    """Return the array to write to: that of the caller, checked, or else a new one."""
    if out is None:
        return np.empty(shape, dtype=np.uint8)
    if rows_of(name, out).shape != shape:
        raise ValueError(f"{name} = array of shape {out.shape}: expected {shape}")
    if not out.flags.writeable:
        raise ValueError(f"{name} = a read-only array: expected one that can be written")
    return out


def vector_bytes(count: int, field: Field = 256) -> int:
    """Bytes of a coding vector over so many source symbols.

    Parameters
    ----------
    count
        Source symbols, from 0.
    field
        2, 16 or 256.

    Raises
    ------
    ValueError
        For a field that is none of these.

    Examples
    --------
    >>> [vector_bytes(150, field) for field in (2, 16, 256)]
    [19, 75, 150]
    """
    return _native.vector_bytes(field, count)


def draw_vectors(count: int, rows: int, seed: int, field: Field = 256) -> Bytes:
    """Draw coding vectors, uniform among those that are not all zero.

    Parameters
    ----------
    count
        Source symbols that each covers, 1 to 1024.
    rows
        How many vectors, from 0.
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
    return _native.draw_vectors(field, count, rows, seed)


def expand_seeds(count: int, seeds: NDArray[np.integer], field: Field = 256) -> Bytes:
    """Return the coding vectors that seeds stand for, as they are sent in place of vectors.

    Parameters
    ----------
    count
        Source symbols that each covers, 1 to 1024.
    seeds
        Each from 0 to 2^32 - 1. Equal seeds give equal vectors on every machine, and none of them
        is all zero.
    field
        2, 16 or 256.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> expand_seeds(3, np.arange(2)).shape
    (2, 3)
    """
    return _native.expand_seeds(field, count, whole("seeds", seeds, 32).astype(np.uint32))


def expand_repair_keys(
    count: int, keys: NDArray[np.integer], density: int = 15, field: Literal[2, 256] = 256
) -> Bytes:
    """Return the coding vectors of repair keys, as RFC 8681 (section 3.6) makes them.

    Parameters
    ----------
    count
        Source symbols that each covers, 1 to 1024.
    keys
        Each from 0 to 2^16 - 1.
    density
        Density threshold: a coefficient is not zero with probability (density + 1) / 16; 0 to 15.
    field
        2 or 256.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> expand_repair_keys(5, np.array([1])).tolist()
    [[37, 225, 177, 176, 21]]
    """
    small = whole("keys", keys, 16).astype(np.uint16)
    if not 0 <= density <= 15:
        raise ValueError(f"density = {density}: expected 0 to 15")
    return _native.expand_repair_keys(field, count, small, density)


def whole(name: str, numbers: NDArray[np.integer], bits: int) -> NDArray[np.integer]:
    """Check a list of whole numbers from 0 that fit so many bits."""
    array = np.asarray(numbers)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        given = f"{array.dtype}, {array.shape}"
        raise ValueError(f"{name} = array of {given}: expected whole numbers, one dimension")
    if array.size and (int(array.min()) < 0 or int(array.max()) >> bits):
        raise ValueError(f"{name} = {numbers}: expected numbers from 0 to 2^{bits} - 1")
    return array
