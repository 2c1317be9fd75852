#!/usr/bin/env python3
"""Makes window_known_answers.txt, the window coder's known answers, from a second implementation.

It is written from the RFCs, for being read and not for speed: field arithmetic is that of
polynomials, TinyMT32 that of RFC 8682 section 2.1, coefficients are those of RFC 8681 section 3.6,
and the decoder is Gauss-Jordan elimination on dictionaries from ids to coefficients. ChaCha8,
which expands seeds, is in chacha8.py. Nothing of the project's own code is used.

    python3 window_known_answers.py > window_known_answers.txt
"""

import random

from chacha8 import PER_BYTE, expand, pack

RANDOM = random.Random(8681)
ORDER = {"gf2": 2, "gf16": 16, "gf256": 256}
# Modulus and its degree; over GF(2) there is nothing to reduce.
MODULUS = {"gf2": (0b10, 1), "gf16": (0x13, 4), "gf256": (0x11D, 8)}
SYMBOL_SIZE_MAX = 12


def multiply(name, a, b):
    """Return the product of two elements: multiply the polynomials, divide by the modulus."""
    if name == "gf2":
        return a & b
    modulus, degree = MODULUS[name]
    product = 0
    for shift in range(8):
        if b >> shift & 1:
            product ^= a << shift
    for power in range(15, degree - 1, -1):
        if product >> power & 1:
            product ^= modulus << (power - degree)
    return product


def invert(name, a):
    """Return the inverse, by trying all."""
    return next(b for b in range(1, ORDER[name]) if multiply(name, a, b) == 1)


def multiply_byte(name, coefficient, byte):
    """Return a coefficient times all the elements in a byte of a symbol."""
    if name == "gf2":
        return byte * coefficient
    if name == "gf16":
        low, high = multiply(name, coefficient, byte & 15), multiply(name, coefficient, byte >> 4)
        return low | high << 4
    return multiply(name, coefficient, byte)


class TinyMt32:
    """RFC 8682 section 2.1, with the parameter set that it prescribes."""

    MAT1, MAT2, TMAT = 0x8F7011EE, 0xFC78FF1F, 0x3793FDFF

    def __init__(self, seed):
        self.status = [seed, self.MAT1, self.MAT2, self.TMAT]
        for i in range(1, 8):
            before = self.status[(i - 1) & 3]
            mixed = i + 1812433253 * (before ^ before >> 30)
            self.status[i & 3] ^= mixed & 0xFFFFFFFF
        for _ in range(8):
            self.step()

    def step(self):
        y = self.status[3]
        x = (self.status[0] & 0x7FFFFFFF) ^ self.status[1] ^ self.status[2]
        x ^= x << 1 & 0xFFFFFFFF
        y ^= y >> 1 ^ x
        self.status[0] = self.status[1]
        self.status[1] = self.status[2]
        self.status[2] = x ^ (y << 10 & 0xFFFFFFFF)
        self.status[3] = y
        if y & 1:
            self.status[1] ^= self.MAT1
            self.status[2] ^= self.MAT2

    def next(self):
        self.step()
        t0 = self.status[3]
        t1 = (self.status[0] + (self.status[2] >> 8)) & 0xFFFFFFFF
        t0 ^= t1
        return t0 ^ self.TMAT if t1 & 1 else t0


def expand_key(name, key, threshold, count):
    """Return the coefficients of `generate_coding_coefficients`, RFC 8681 section 3.6."""
    generator = TinyMt32(key)
    coefficients = []
    for _ in range(count):
        if threshold < 15 and generator.next() & 15 > threshold:
            coefficients.append(0)
        elif name == "gf2":
            coefficients.append(1)
        else:
            coefficient = 0
            while coefficient == 0:
                coefficient = generator.next() & 255
            coefficients.append(coefficient)
    return coefficients


def unpack(name, vector, count):
    """Undo chacha8.pack."""
    bits = 8 // PER_BYTE[name]
    each = range(0, count * bits, bits)
    return [vector[bit // 8] >> bit % 8 & (1 << bits) - 1 for bit in each]


class Decoder:
    """Rows in reduced echelon form: {id: coefficient}, payload padded to full length."""

    def __init__(self, name, size, first):
        self.name, self.size, self.base, self.end, self.rows = name, size, first, first, []

    def add(self, coefficients, end, payload):
        """Take in a combination that reaches to before `end`; return what it is worth."""
        if end <= self.base:
            return "stale"
        if end > self.base + self.size:
            return "ahead"
        row = {i: c for i, c in coefficients.items() if c}
        if any(i < self.base for i in row):
            return "stale"
        self.end = max(self.end, end)
        rank = len(self.rows)
        self.rows.append((row, list(payload.ljust(SYMBOL_SIZE_MAX, b"\0"))))
        self.reduce()
        return "innovative" if len(self.rows) > rank else "dependent"

    def reduce(self):
        done = []
        rows = self.rows
        while rows := [row for row in rows if row[0]]:
            place = min(range(len(rows)), key=lambda place: min(rows[place][0]))
            row = rows.pop(place)
            pivot = min(row[0])
            row = self.scaled(row, invert(self.name, row[0][pivot]))
            rows = [self.less(other, row, pivot) for other in rows]
            done = [self.less(other, row, pivot) for other in done] + [row]
        self.rows = done

    def scaled(self, row, factor):
        coefficients = {i: multiply(self.name, factor, c) for i, c in row[0].items()}
        return coefficients, [multiply_byte(self.name, factor, byte) for byte in row[1]]

    def less(self, row, by, pivot):
        """Return a row less the multiple of another one that has the pivot."""
        factor = row[0].get(pivot, 0)
        if factor == 0:
            return row
        coefficients, payload = self.scaled(by, factor)
        sums = {i: row[0].get(i, 0) ^ coefficients.get(i, 0) for i in {*row[0], *coefficients}}
        rest = {i: c for i, c in sums.items() if c}
        return rest, [a ^ b for a, b in zip(row[1], payload)]

    def advance_to(self, to):
        """Let go of what is before an id; return how many of it were not decoded."""
        if to <= self.base:
            return 0
        decoded = sum(1 for i in self.decoded() if i < to)
        missed = to - self.base - decoded
        self.rows = [row for row in self.rows if min(row[0]) >= to]
        self.base, self.end = to, max(self.end, to)
        return missed

    def decoded(self):
        return {min(row[0]): row[1] for row in self.rows if len(row[0]) == 1}

    def state(self):
        """Return base, end, rank, first id that is not decoded, first not seen, missing bitmap."""
        decoded = self.decoded()
        seen = {min(row[0]) for row in self.rows}
        ids = range(self.base, self.end)
        in_order_end = next((i for i in ids if i not in decoded), self.end)
        seen_end = next((i for i in ids if i not in seen), self.end)
        bitmap = pack("gf2", [i not in decoded for i in ids]).hex() or "-"
        return f"{self.base} {self.end} {len(self.rows)} {in_order_end} {seen_end} {bitmap}"


def draw(name, kind, count):
    """Return text and coefficients of a coded symbol over so many symbols."""
    if kind == "seed":
        seed = RANDOM.getrandbits(32)
        return f"seed {seed}", unpack(name, expand(name, seed, count), count)
    if kind == "key":
        key, threshold = RANDOM.getrandbits(16), RANDOM.choice([3, 7, 11, 15])
        return f"key {key} {threshold}", expand_key(name, key, threshold, count)
    density = RANDOM.choice([0.15, 0.5, 1])
    top = ORDER[name] - 1
    each = (RANDOM.randint(1, top) if RANDOM.random() < density else 0 for _ in range(count))
    coefficients = list(each)
    return f"vector {pack(name, coefficients).hex()}", coefficients


def emit_window(name, size, first, kinds, loss, operations):
    """A sender and a receiver, and what the receiver knows after each arrival.

    `window FIELD SIZE FIRST`, then `push BYTES` for each source symbol that the sender takes,
    `let-go ID` when it lets go of symbols, and for each arrival
    `source ID` or `coded FIRST COUNT KIND... PAYLOAD`, and `advance ID MISSED`, the first two
    followed by what they were worth, and all by `Decoder.state`. A payload that is empty is `-`.
    """
    print("window", name, size, first)
    symbols, base, end = {}, first, first
    decoder = Decoder(name, size, first)
    for _ in range(operations):
        if end - base < size and RANDOM.random() < 0.6:
            symbols[end] = RANDOM.randbytes(RANDOM.randint(1, SYMBOL_SIZE_MAX))
            print("push", symbols[end].hex())
            end += 1
            if RANDOM.random() >= loss:
                print("source", end - 1, decoder.add({end - 1: 1}, end, symbols[end - 1]), end=" ")
                print(decoder.state())
        elif end > base and RANDOM.random() < 0.1:
            late = RANDOM.randrange(base, end)
            print("source", late, decoder.add({late: 1}, late + 1, symbols[late]), end=" ")
            print(decoder.state())
        elif end > base:
            start = RANDOM.randrange(base, end) if RANDOM.random() < 0.3 else base
            count = end - start if RANDOM.random() < 0.7 else RANDOM.randint(1, end - start)
            text, coefficients = draw(name, RANDOM.choice(kinds), count)
            used = [len(symbols[start + i]) for i, c in enumerate(coefficients) if c]
            payload = bytearray(max(used, default=0))
            for i, coefficient in enumerate(coefficients):
                for at, byte in enumerate(symbols[start + i][: len(payload)]):
                    payload[at] ^= multiply_byte(name, coefficient, byte)
            print("coded", start, count, text, payload.hex() or "-", end=" ")
            numbered = {start + i: c for i, c in enumerate(coefficients)}
            worth = decoder.add(numbered, start + count, payload) if payload else "-"
            print(worth, decoder.state())
        check(decoder, symbols)
        if RANDOM.random() < 0.2:
            # Mostly what is delivered; now and then something is given up.
            known = decoder.decoded()
            to = next((i for i in range(decoder.base, decoder.end) if i not in known), decoder.end)
            to = min(to + RANDOM.choice([0, 0, 0, 1, 4]), end)
            print("advance", to, decoder.advance_to(to), decoder.state())
            if RANDOM.random() < 0.7:
                base = max(base, min(to, end))
                print("let-go", base)


def check(decoder, symbols):
    """What this decoder decodes is what was sent."""
    for i, payload in decoder.decoded().items():
        assert bytes(payload) == symbols[i].ljust(SYMBOL_SIZE_MAX, b"\0"), i


def emit_keys():
    """`expand-key FIELD KEY THRESHOLD COUNT VECTOR`."""
    for name in ("gf2", "gf256"):
        for key in (0, 1, 2, 0x1234, 0xFFFF):
            for threshold in (0, 7, 14, 15):
                for count in (1, 9, 64):
                    vector = pack(name, expand_key(name, key, threshold, count)).hex()
                    print("expand-key", name, key, threshold, count, vector)


def main():
    """Print all answers."""
    # RFC 8682, figure 2: the first three numbers of seed 1.
    generator = TinyMt32(1)
    assert [generator.next() for _ in range(3)] == [2545341989, 981918433, 3715302833]
    print("# Made by window_known_answers.py; see there for the lines' meaning.")
    emit_keys()
    for name in ORDER:
        kinds = ["vector", "seed"] if name == "gf16" else ["vector", "seed", "key"]
        emit_window(name, 1, 0, kinds, 0.3, 20)
        for kind in kinds:
            emit_window(name, 13, (1 << 32) - 20, [kind], 0.3, 110)
        emit_window(name, 40, 7 << 40, kinds, 0.5, 160)
        emit_window(name, 24, (1 << 64) - 200, kinds, 0.9, 120)


if __name__ == "__main__":
    main()
