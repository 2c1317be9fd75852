#!/usr/bin/env python3
"""Makes end_tags.txt, known answers of the tags from end to end, from an independent reference.

X25519 is that of RFC 7748, HKDF that of RFC 5869, BLAKE3 that of its specification, each written
here from these. Nothing of the project's own code is used, and nothing but Python's library.

    python3 end_tags.py > end_tags.txt
"""

import hashlib
import hmac
import struct

P = 2**255 - 19
IV = struct.unpack("<8I", bytes.fromhex(
    "67e6096a85ae67bb72f36e3c3af54fa57f520e518c68059babd9831f19cde05b"))
ORDER = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
CHUNK_START, CHUNK_END, PARENT, ROOT, KEYED_HASH = 1, 2, 4, 8, 16


def x25519(private, public):
    """Return what a private and a public key make (RFC 7748, Section 5)."""
    k = bytearray(private)
    k[0] &= 248
    k[31] = k[31] & 127 | 64
    k = int.from_bytes(k, "little")
    x1 = int.from_bytes(public, "little") & (1 << 255) - 1
    x2, z2, x3, z3, swap = 1, 0, x1, 1, 0
    for t in reversed(range(255)):
        bit = k >> t & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = (x2 + z2) % P, (x2 - z2) % P, (x3 + z3) % P, (x3 - z3) % P
        da, cb, aa, bb = d * a % P, c * b % P, a * a % P, b * b % P
        x3, z3 = (da + cb) ** 2 % P, x1 * (da - cb) ** 2 % P
        e = (aa - bb) % P
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


def hkdf(salt, secret, info, length=32):
    """Return the key of RFC 5869 with SHA-256."""
    prk, out, block = hmac.digest(salt, secret, "sha256"), b"", b""
    while len(out) < length:
        block = hmac.digest(prk, block + info + bytes([len(out) // 32 + 1]), "sha256")
        out += block
    return out[:length]


def compress(cv, words, counter, length, flags):
    """Return the 16 words of BLAKE3's compression."""
    m = list(words)
    v = list(cv) + list(IV[:4]) + [counter & 0xFFFFFFFF, counter >> 32, length, flags]

    def rotate(word, by):
        return (word >> by | word << 32 - by) & 0xFFFFFFFF

    def mix(a, b, c, d, x, y):
        v[a] = v[a] + v[b] + x & 0xFFFFFFFF
        v[d] = rotate(v[d] ^ v[a], 16)
        v[c] = v[c] + v[d] & 0xFFFFFFFF
        v[b] = rotate(v[b] ^ v[c], 12)
        v[a] = v[a] + v[b] + y & 0xFFFFFFFF
        v[d] = rotate(v[d] ^ v[a], 8)
        v[c] = v[c] + v[d] & 0xFFFFFFFF
        v[b] = rotate(v[b] ^ v[c], 7)

    for number in range(7):
        for at in range(4):
            mix(at, 4 + at, 8 + at, 12 + at, m[2 * at], m[2 * at + 1])
        for at in range(4):
            mix(at, 4 + (at + 1) % 4, 8 + (at + 2) % 4, 12 + (at + 3) % 4,
                m[8 + 2 * at], m[9 + 2 * at])
        if number < 6:
            m = [m[i] for i in ORDER]
    return [v[i] ^ v[i + 8] for i in range(8)] + [v[i + 8] ^ cv[i] for i in range(8)]


def words_of(block):
    """Return a block of up to 64 bytes as words."""
    return struct.unpack("<16I", block.ljust(64, b"\0"))


def chunk(key, data, number):
    """Return what the last compression of a chunk is made of."""
    cv = key
    blocks = [data[at:at + 64] for at in range(0, len(data), 64)] or [b""]
    for index, block in enumerate(blocks):
        flags = KEYED_HASH | (CHUNK_START if index == 0 else 0)
        if index == len(blocks) - 1:
            return cv, words_of(block), number, len(block), flags | CHUNK_END
        cv = compress(cv, words_of(block), number, 64, flags)[:8]
    return None


def node(key, data, number=0):
    """Return the same of a tree over these bytes, whose first chunk has this number."""
    if len(data) <= 1024:
        return chunk(key, data, number)
    left = 1024
    while 2 * left < len(data):
        left *= 2
    one = compress(*node(key, data[:left], number))[:8]
    other = compress(*node(key, data[left:], number + left // 1024))[:8]
    return key, one + other, 0, 64, KEYED_HASH | PARENT


def blake3(key, data, length):
    """Return the keyed hash, cut."""
    *parts, flags = node(struct.unpack("<8I", key), data)
    return struct.pack("<16I", *compress(*parts, flags | ROOT))[:length]


def key(purpose, sender, receiver, psk):
    """Return the key of what one station says to another, each given by its private key."""
    base = (9).to_bytes(32, "little")
    publics = [x25519(private, base) for private in (sender, receiver)]
    secret = x25519(sender, publics[1]) + (psk or bytes(32))
    return hkdf(b"corridor ends 1", secret, purpose + publics[0] + publics[1])


def filler(seed, length):
    """Return bytes that look like none in particular."""
    return hashlib.shake_128(seed.encode()).digest(length)


def main():
    # The example of BLAKE3's own test vectors with an input of one byte, to begin with.
    known = blake3(b"whats the Elvish word for friend", b"\0", 32).hex()
    assert known == "6d7878dfff2f485635d39013278ae14f1454b8c0a3a2d34bc1ab38228a80c95b", known
    for number, length in enumerate([1, 20, 40, 1000, 1020, 1400, 2100, 5000]):
        sender, receiver = filler(f"sender {number}", 32), filler(f"receiver {number}", 32)
        psk = filler(f"psk {number}", 32) if number % 2 else None
        instance = int.from_bytes(filler(f"instance {number}", 8), "big")
        block, index = 65_530 + 3 * number, 37 * number
        packet = filler(f"packet {number}", length)
        symbol = struct.pack(">H", length) + packet
        context = struct.pack(">QIH", instance, block, index)
        tag = blake3(key(b"symbols", sender, receiver, psk), context + symbol, 8)
        print("symbol", sender.hex(), receiver.hex(), psk.hex() if psk else "-",
              f"{instance:016x}", block, index, symbol.hex(), tag.hex())
        sent = (1 << 50) + 1_000_003 * number
        tag = blake3(key(b"packets", sender, receiver, psk), sent.to_bytes(7, "big") + packet, 8)
        print("packet", sender.hex(), receiver.hex(), psk.hex() if psk else "-", sent,
              packet.hex(), tag.hex())
        challenge, session = filler(f"challenge {number}", 16), filler(f"session {number}", 16)
        said = filler(f"said {number}", 18)
        answer = blake3(key(b"answers", sender, receiver, psk), challenge + session + said, 16)
        print("answer", sender.hex(), receiver.hex(), psk.hex() if psk else "-",
              challenge.hex(), session.hex(), said.hex(), answer.hex())


if __name__ == "__main__":
    main()
