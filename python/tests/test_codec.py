"""Coding on numpy arrays."""

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
        (lambda: Encoder(BLOCK[0]), r"block = array of uint8, \(8,\)"),
        (lambda: Encoder(BLOCK[:, ::2]), "block = an array with gaps"),
        (lambda: Encoder(BLOCK[:0]), "0 symbols"),
        (lambda: Encoder(BLOCK).combine(BLOCK), "vectors = rows of 8 bytes: expected 4"),
        (lambda: Encoder(BLOCK).encode(2, 1, BLOCK), r"out = array of shape \(4, 8\): expected"),
        (lambda: Decoder(0, 8), "0 symbols: not in 1..=1024"),
        (lambda: Decoder(4, 70_000), "up to 70000 bytes: not in"),
        (lambda: Decoder(4, 8).add_source(np.array([4]), BLOCK[:1]), "index 4: not in"),
        (lambda: Decoder(4, 8).add_source(np.array([-1]), BLOCK[:1]), "indices = "),
        (lambda: Decoder(4, 8).add_source(np.array([1]), BLOCK), "indices = 1 rows: expected 4"),
        (lambda: Decoder(4, 8).add(Coded(BLOCK, BLOCK, 5)), "5 symbols: not in"),
        (lambda: Recoder(4, 8).recode(1), "rank = 0: expected 1 or more"),
        (lambda: draw_vectors(0, 1, 1), "count = 0: expected 1 to 1024"),
    ],
)
def test_misuse_is_told(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call()


def test_an_array_that_cannot_be_written_is_refused() -> None:
    out = np.empty((4, 8), dtype=np.uint8)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out = a read-only array"):
        Encoder(BLOCK).encode(4, 1, out)
