#!/usr/bin/env python3
"""Makes known_answers.txt, the codec's known answers, from an independent reference.

Field arithmetic and elimination are those of the Python package `galois`; ChaCha8, which expands
seeds, is in chacha8.py. Nothing of the project's own code is used.

    pip install galois && python3 known_answers.py > known_answers.txt
"""

import random

import galois
import numpy as np

from chacha8 import expand, pack

FIELDS = {
    "gf2": galois.GF(2),
    "gf256": galois.GF(2**8, irreducible_poly="x^8 + x^4 + x^3 + x^2 + 1"),
    "gf16": galois.GF(2**4, irreducible_poly="x^4 + x + 1"),
}
RANDOM = random.Random(8406)


def to_field(name, data, size):
    """Return symbols as a matrix over the field, zero padded; a byte's low half goes first."""
    padded = np.array([list(symbol.ljust(size, b"\0")) for symbol in data], dtype=np.uint8)
    if name == "gf2":
        return FIELDS[name](np.unpackbits(padded, axis=1))
    if name == "gf16":
        return FIELDS[name](np.stack([padded & 15, padded >> 4], axis=2).reshape(len(data), -1))
    return FIELDS[name](padded)


def to_bytes(name, row):
    """Undo to_field for one row."""
    row = np.array(row, dtype=np.uint8)
    if name == "gf2":
        return np.packbits(row).tobytes()
    return (row[::2] | row[1::2] << 4 if name == "gf16" else row).tobytes()


def combine(name, coefficients, symbols):
    """Return the coded symbol, as long as the longest symbol combined."""
    used = [len(symbol) for c, symbol in zip(coefficients, symbols) if c]
    size = max(len(symbol) for symbol in symbols)
    row = FIELDS[name](list(coefficients)) @ to_field(name, symbols, size)
    return to_bytes(name, row)[: max(used)]


def random_coefficients(name, count, density):
    """Return coefficients that are not all zero."""
    while True:
        top = FIELDS[name].order - 1
        chosen = [
            RANDOM.randint(1, top) if RANDOM.random() < density else 0 for _ in range(count)
        ]
        if any(chosen):
            return chosen


def emit_products():
    """`multiply A PRODUCTS`: A times each element of GF(2^8), 0 to 255."""
    field = FIELDS["gf256"]
    for a in range(256):
        print("multiply", f"{a:02x}", bytes(np.array(field(a) * field.elements)).hex())


def emit_halves():
    """`halves A PRODUCTS`: A times both elements of GF(2^4) in each byte, 0 to 255."""
    elements = to_field("gf16", [bytes(range(256))], 256)
    for a in range(16):
        print("halves", f"{a:02x}", to_bytes("gf16", (elements * FIELDS["gf16"](a))[0]).hex())


def emit_seeds():
    """`expand FIELD SEED COUNT VECTOR`."""
    for name in FIELDS:
        for seed in (0, 1, 2, 3, 0x12345678, 0xFFFFFFFF):
            for count in (1, 2, 7, 8, 9, 64, 150):
                print("expand", name, seed, count, expand(name, seed, count).hex())


def emit_block(name, count, arrivals, systematic, density):
    """A block, and what a decoder knows after each arrival.

    `block FIELD COUNT`, `symbol BYTES` for each source symbol, then for each arrival
    `source INDEX` or `coded COUNT VECTOR PAYLOAD`, followed by the rank and the bitmap of the
    symbols determined so far.
    """
    field = FIELDS[name]
    symbols = [RANDOM.randbytes(RANDOM.randint(1, 20)) for _ in range(count)]
    print("block", name, count)
    for symbol in symbols:
        print("symbol", symbol.hex())
    received = []
    for _ in range(arrivals):
        if RANDOM.random() < systematic:
            index = RANDOM.randrange(count)
            coefficients = [int(i == index) for i in range(count)]
            text = f"source {index}"
        else:
            covered = RANDOM.randint(1, count)
            coefficients = random_coefficients(name, covered, density)
            payload = combine(name, coefficients, symbols[:covered])
            text = f"coded {covered} {pack(name, coefficients).hex()} {payload.hex()}"
            coefficients = coefficients + [0] * (count - covered)
        received.append(coefficients)
        matrix = field(received)
        reduced = matrix.row_reduce()
        rank = int(np.linalg.matrix_rank(matrix))
        determined = [0] * count
        for row in reduced:
            if np.count_nonzero(row) == 1:
                determined[int(np.flatnonzero(row)[0])] = 1
        print(text, rank, pack("gf2", determined).hex())


def main():
    """Print all answers."""
    print("# Made by known_answers.py; see there for the lines' meaning.")
    emit_products()
    emit_halves()
    emit_seeds()
    for name in FIELDS:
        emit_block(name, 1, 3, 0.5, 1)
        emit_block(name, 5, 9, 0, 0.9)
        emit_block(name, 9, 24, 0.3, 0.3)
        emit_block(name, 16, 26, 0.5, 0.9)
        emit_block(name, 17, 40, 0, 0.15)
        emit_block(name, 70, 100, 0.6, 0.05)


if __name__ == "__main__":
    main()
