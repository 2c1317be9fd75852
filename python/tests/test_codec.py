"""Coding on numpy arrays."""

import array

import numpy as np
import pytest
from corridor.codec import Coded, Decoder, Encoder, Field, Recoder, draw_vectors, vector_bytes
from hypothesis import given, settings
from hypothesis import strategies as st

fields: st.SearchStrategy[Field] = st.sampled_from((2, 16, 256))


def block_of(size: int, width: int, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return np.random.default_rng(seed).integers(0, 256, (size, width), dtype=np.uint8)


@settings(max_examples=60, deadline=None)
@given(fields, st.integers(1, 40), st.integers(1, 80), st.integers(0, 2**32))
def test_what_is_encoded_and_recoded_is_decoded(
    field: Field, size: int, width: int, seed: int
) -> None:
    block = block_of(size, width, seed)
    recoder = Recoder(size, width, field, seed)
    recoder.add(Encoder(block, field).encode(size + 30, seed))
    assert recoder.rank == size
    decoder = Decoder(size, width, field)
    innovative = decoder.add(recoder.recode(size + 30))
    assert decoder.is_complete
    assert int(innovative.sum()) == decoder.rank == size
    assert np.array_equal(decoder.symbols(), block)


@given(st.integers(1, 12), st.integers(1, 20), st.integers(0, 2**32))
def test_encoding_over_gf2_is_the_xor_of_the_chosen(size: int, width: int, seed: int) -> None:
    block = block_of(size, width, seed)
    coded = Encoder(block, 2).encode(8, seed)
    chosen = np.unpackbits(coded.vectors, axis=1, bitorder="little")[:, :size].astype(bool)
    expected = [np.bitwise_xor.reduce(block[row], axis=0) for row in chosen]
    assert np.array_equal(coded.payloads, np.array(expected))


def test_lost_source_symbols_are_repaired() -> None:
    block = block_of(10, 100, 1)
    decoder = Decoder(10, 100)
    kept = np.array([0, 1, 2, 4, 5, 6, 8, 9])
    assert decoder.add_source(kept, np.ascontiguousarray(block[kept])).all()
    assert decoder.decoded().tolist() == [i in kept for i in range(10)]
    assert not decoder.symbols()[3].any()
    decoder.add(Encoder(block).encode(2, seed=9))
    assert np.array_equal(decoder.symbols(), block)


def test_results_are_written_where_they_are_wanted() -> None:
    block = block_of(4, 32, 2)
    out = np.full((6, 32), 0xEE, dtype=np.uint8)
    coded = Encoder(block).encode(3, seed=1, out=out[:3])
    assert coded.payloads.base is out
    assert np.array_equal(out[:3], Encoder(block).encode(3, seed=1).payloads)
    assert (out[3:] == 0xEE).all()
    decoder = Decoder(4, 32)
    decoder.add(Encoder(block).encode(6, seed=2))
    place = np.empty((4, 32), dtype=np.uint8)
    assert decoder.symbols(place) is place
    assert np.array_equal(place, block)


def test_a_vector_of_zeros_makes_a_symbol_of_zeros() -> None:
    out = np.full((1, 8), 0xEE, dtype=np.uint8)
    Encoder(block_of(2, 8, 3)).combine(np.zeros((1, 2), dtype=np.uint8), out)
    assert not out.any()


def test_equal_seeds_give_equal_vectors() -> None:
    assert np.array_equal(draw_vectors(20, 5, 7, 16), draw_vectors(20, 5, 7, 16))
    assert draw_vectors(20, 5, 7, 16).shape == (5, vector_bytes(20, 16))
    assert not np.array_equal(draw_vectors(20, 5, 7), draw_vectors(20, 5, 8))


def test_a_slice_of_coded_symbols_is_a_view() -> None:
    coded = Encoder(block_of(4, 8, 4)).encode(6, seed=1)
    assert coded[2:5].payloads.base is coded.payloads
    assert len(coded[2:5]) == 3


BLOCK = block_of(4, 8, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Encoder(BLOCK, 3), "field = 3: expected 2, 16 or 256"),  # type: ignore[arg-type]
        (lambda: Encoder(BLOCK.astype(np.int16)), "block = array of int16"),
        (lambda: Encoder(BLOCK[0]), "block = 8 bytes: expected `symbol_bytes`"),
        (lambda: Encoder(BLOCK[:, ::2]), "block = an array with gaps"),
        (lambda: Encoder(BLOCK[:0]), "rows of block = 0: expected 1 to 1024"),
        (lambda: Encoder([]), "rows of block = 0: expected 1 to 1024"),
        (lambda: Encoder([b"a", b""]), r"block\[1\] = 0 bytes: expected 1 to 1"),
        (lambda: Encoder([b"a", "b"]), r"block\[1\] = str: expected bytes, an array"),  # type: ignore[list-item]
        (lambda: Encoder([b"abc"], symbol_bytes=2), r"block\[0\] = 3 bytes: expected 1 to 2"),
        (lambda: Encoder(b"abc", symbol_bytes=0), "symbol_bytes = 0: expected 1 to 65535"),
        (lambda: Encoder(7), "block = int: expected bytes, an array"),  # type: ignore[arg-type]
        (lambda: Encoder(BLOCK).combine(BLOCK), "vectors = rows of 8 bytes: expected 4"),
        (lambda: Encoder(BLOCK).combine(b"abc"), "vectors = 3 bytes: expected 4"),
        (lambda: Encoder(BLOCK).encode(2, 1, BLOCK), r"out = array of shape \(4, 8\): expected"),
        (lambda: Encoder(BLOCK).encode(-1, 1), "rows = -1: expected 0 or more"),
        (lambda: Encoder(BLOCK).encode(1, 2**64), r"seed = 18446744073709551616: expected 0 to"),
        (lambda: Encoder(BLOCK).symbol(4), "index = 4: expected 0 to 3"),
        (lambda: Decoder(0, 8), "block_size = 0: expected 1 to 1024"),
        (lambda: Decoder(4, 70_000), "symbol_bytes = 70000: expected 1 to 65535"),
        (lambda: Decoder(2.5, 8), r"block_size = 2\.5: expected a whole number"),  # type: ignore[arg-type]
        (lambda: Decoder(4, 8).add_source(4, BLOCK[:1]), "indices = 4: expected 0 to 3"),
        (lambda: Decoder(4, 8).add_source(-1, BLOCK[:1]), "indices = -1: expected numbers from 0"),
        (lambda: Decoder(4, 8).add_source([1], BLOCK), "indices = 1 rows: expected 4"),
        (lambda: Decoder(4, 8).add_source([1], b"123456789"), "symbols = 9 bytes: expected 1 to 8"),
        (lambda: Decoder(4, 8).add(Coded(BLOCK, BLOCK, 5)), "count = 5: expected 1 to 4"),
        (lambda: Decoder(4, 8).add(Coded(BLOCK, BLOCK, 4)), "vectors = rows of 8 bytes: expected"),
        (lambda: Decoder(8, 4).add(Coded(BLOCK, BLOCK, 8)), "bytes of payloads = 8: expected 1 to"),
        (lambda: Coded(BLOCK, BLOCK[:2], 8), "payloads = 2 rows: expected 4, one for each"),
        (lambda: Coded([b"a", b"bc"], BLOCK[:2], 2), r"vectors\[0\] = 1 bytes: expected 2"),
        (lambda: Decoder(4, 8).symbol(4), "index = 4: expected 0 to 3"),
        (lambda: Decoder(4, 8).to_bytes(), "rank = 0: expected 4, a complete block"),
        (lambda: Recoder(4, 8).recode(1), "rank = 0: expected 1 or more"),
        (lambda: draw_vectors(0, 1, 1), "count = 0: expected 1 to 1024"),
    ],
)
def test_misuse_is_told(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call()


def test_buffers_of_all_kinds_are_symbols() -> None:
    block = BLOCK
    expected = Encoder(block).encode(3, seed=1)
    data = block.tobytes()
    rows = [data[place : place + 8] for place in range(0, 32, 8)]
    for encoder in (
        Encoder(rows),
        Encoder([bytearray(row) for row in rows]),
        Encoder([memoryview(row) for row in rows]),
        Encoder(memoryview(data).cast("B", (4, 8))),
        Encoder(list(block)),
        Encoder(data, symbol_bytes=8),
        Encoder(bytearray(data), symbol_bytes=8),
        Encoder(array.array("B", data), symbol_bytes=8),
        Encoder(block.ravel(), symbol_bytes=8),
    ):
        assert encoder.encode(3, seed=1) == expected
        assert [encoder.symbol(place) for place in range(4)] == rows
    assert Encoder(rows).combine([bytes(v) for v in expected.vectors]) == expected
    vectors, payloads = zip(*expected.pairs(), strict=True)
    assert Coded(vectors, payloads, 4) == expected
    assert [each == expected[place] for place, each in enumerate(expected)] == [True] * 3


def test_shorter_symbols_are_padded_with_zeros() -> None:
    encoder = Encoder([b"to", b"or not"])
    assert np.array_equal(encoder.symbols(), Encoder(b"to\0\0\0\0or not", symbol_bytes=6).symbols())
    decoder = Decoder(2, 6)
    decoder.add_source(0, b"to")
    assert decoder.symbol(0) == b"to\0\0\0\0"
    decoder.add(encoder.encode(1, seed=1))
    assert decoder.to_bytes() == b"to\0\0\0\0or not"
    assert decoder.to_bytes(8) == b"to\0\0\0\0or"


def test_arrays_are_used_in_place() -> None:
    coded = Encoder(BLOCK).encode(3, seed=1)
    same = Coded(coded.vectors, coded.payloads, 4)
    assert same.vectors is coded.vectors
    assert same.payloads is coded.payloads


def test_an_array_that_cannot_be_written_is_refused() -> None:
    out = np.empty((4, 8), dtype=np.uint8)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out = a read-only array"):
        Encoder(BLOCK).encode(4, 1, out)
