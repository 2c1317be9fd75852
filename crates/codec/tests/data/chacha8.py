"""ChaCha8, which expands seeds: RFC 8439 section 2.3 with 8 rounds and, as in the original cipher,
a 64-bit counter and nonce. Nothing of the project's own code is used.
"""

import struct


def keystream(key, length):
    """Return the first `length` bytes of the keystream of a 32-byte key; counter and nonce 0."""

    def rotate(word, bits):
        return ((word << bits) | (word >> (32 - bits))) & 0xFFFFFFFF

    def quarter_round(state, a, b, c, d):
        for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[x] = (state[x] + state[y]) & 0xFFFFFFFF
            state[z] = rotate(state[z] ^ state[x], bits)

    stream = b""
    counter = 0
    while len(stream) < length:
        initial = list(struct.unpack("<4I", b"expand 32-byte k")) + list(struct.unpack("<8I", key))
        initial += [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
        state = initial.copy()
        for _ in range(4):
            for column in range(4):
                quarter_round(state, column, column + 4, column + 8, column + 12)
            for start in range(4):
                columns = [(start + step) % 4 + 4 * step for step in range(4)]
                quarter_round(state, *columns)
        words = [(word + first) & 0xFFFFFFFF for word, first in zip(state, initial)]
        stream += struct.pack("<16I", *words)
        counter += 1
    return stream[:length]


# Coefficients in a byte.
PER_BYTE = {"gf2": 8, "gf16": 2, "gf256": 1}


def pack(name, coefficients):
    """Return the bytes of a coding vector: the first coefficient in the lowest bits."""
    bits = 8 // PER_BYTE[name]
    packed = bytearray(-(-len(coefficients) // PER_BYTE[name]))
    for i, coefficient in enumerate(coefficients):
        packed[i // PER_BYTE[name]] |= int(coefficient) << (i % PER_BYTE[name] * bits)
    return bytes(packed)


def expand(name, seed, count):
    """Return the coding vector that a seed stands for."""
    length = -(-count // PER_BYTE[name])
    stream = keystream(struct.pack("<I", seed) + bytes(28), 64 * (length + 3))
    step = -(-length // 4) * 4
    for start in range(0, len(stream) - length, step):
        vector = bytearray(stream[start : start + length])
        if count % PER_BYTE[name]:
            vector[-1] &= (1 << count % PER_BYTE[name] * 8 // PER_BYTE[name]) - 1
        if any(vector):
            return bytes(vector)
    raise AssertionError("64 draws of zero")
