"""The sliding window on numpy arrays."""

import numpy as np
import pytest
from corridor.codec import (
    Bytes,
    Field,
    WindowCoded,
    WindowDecoder,
    WindowEncoder,
    WindowOutcome,
    expand_repair_keys,
    expand_seeds,
    vector_bytes,
)
from hypothesis import given, settings
from hypothesis import strategies as st

fields: st.SearchStrategy[Field] = st.sampled_from((2, 16, 256))


def symbols_of(size: int, width: int, seed: int) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, (size, width), dtype=np.uint8)


@settings(max_examples=60, deadline=None)
@given(fields, st.integers(1, 40), st.integers(1, 60), st.integers(0, 2**64 - 200), st.data())
def test_a_stream_with_losses_arrives_whole_and_in_order(
    field: Field, size: int, width: int, first: int, data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    stream = symbols_of(100, width, 1)
    encoder = WindowEncoder(size, width, field, first)
    decoder = WindowDecoder(size, width, field, first)
    sent = 0
    for seed in range(5000):
        room = size - (encoder.end - encoder.base)
        some = stream[sent : sent + min(room, 5)]
        ids = encoder.push(some) + np.arange(len(some), dtype=np.uint64)
        sent += len(some)
        kept = rng.random(len(some)) < 0.7
        decoder.add_source(ids[kept], some[kept])
        coded = encoder.encode(2, seed)
        decoder.add(coded[rng.random(2) < 0.7])
        delivered = decoder.in_order_end
        count = delivered - decoder.base
        begin = decoder.base - first
        assert np.array_equal(decoder.symbols(decoder.base, count), stream[begin : begin + count])
        assert decoder.advance_to(delivered) == 0
        encoder.advance_to(delivered)
        if delivered == first + len(stream):
            break
    assert decoder.in_order_end == first + len(stream)


@settings(max_examples=40, deadline=None)
@given(fields, st.integers(1, 30), st.integers(1, 40), st.integers(0, 2**32))
def test_a_relay_is_as_good_as_the_sender(field: Field, size: int, width: int, seed: int) -> None:
    stream = symbols_of(size, width, seed)
    encoder = WindowEncoder(size, width, field)
    encoder.push(stream)
    relay = WindowDecoder(size, width, field, seed=seed)
    relay.add(encoder.encode(size + 30, seed))
    assert relay.rank == size
    decoder = WindowDecoder(size, width, field)
    outcomes = decoder.add(relay.recode(size + 30))
    assert decoder.deficit == 0
    assert int((outcomes == WindowOutcome.INNOVATIVE).sum()) == size
    assert np.array_equal(decoder.symbols(), stream)
    assert decoder.poll().tolist() == list(range(size))
    assert decoder.poll().size == 0


def test_encoding_over_gf2_is_the_xor_of_the_chosen() -> None:
    stream = symbols_of(20, 30, 3)
    encoder = WindowEncoder(32, 30, 2, first=1000)
    encoder.push(stream)
    coded = encoder.encode(8, 5, first=1004, count=13)
    chosen = np.unpackbits(coded.vectors, axis=1, bitorder="little")[:, :13].astype(bool)
    expected = [np.bitwise_xor.reduce(stream[4:17][row], axis=0) for row in chosen]
    assert np.array_equal(coded.payloads, np.array(expected))
    assert (coded.first, coded.count, len(coded[2:5])) == (1004, 13, 3)
    assert coded[2:5].payloads.base is coded.payloads


def test_what_is_known_in_part_is_given_out() -> None:
    stream = symbols_of(6, 9, 4)
    encoder = WindowEncoder(8, 9)
    encoder.push(stream)
    decoder = WindowDecoder(8, 9)
    kept = np.array([0, 2, 4])
    assert decoder.add_source(kept, stream[kept]).tolist() == [WindowOutcome.INNOVATIVE] * 3
    decoder.add(encoder.encode(1, 1, first=0, count=3))
    assert decoder.decoded().tolist() == [True, True, True, False, True]
    assert (decoder.in_order_end, decoder.seen_end, decoder.rank, decoder.deficit) == (3, 3, 4, 1)
    assert np.array_equal(decoder.symbols(0, 3), stream[:3])
    assert not decoder.symbols()[3].any()
    assert decoder.poll().tolist() == [0, 1, 2, 4]
    # Symbol 3 is given up.
    assert decoder.advance_to(4) == 1
    assert (decoder.base, decoder.end) == (4, 5)
    late = decoder.add_source(np.array([3, 4, 12]), stream[:3])
    assert late.tolist() == [WindowOutcome.STALE, WindowOutcome.DEPENDENT, WindowOutcome.AHEAD]


def test_results_are_written_where_they_are_wanted() -> None:
    stream = symbols_of(4, 32, 2)
    encoder = WindowEncoder(4, 32)
    encoder.push(stream)
    out = np.full((6, 32), 0xEE, dtype=np.uint8)
    coded = encoder.encode(5, 1, out=out[:5])
    assert coded.payloads.base is out
    assert np.array_equal(out[:5], encoder.encode(5, 1).payloads)
    assert (out[5:] == 0xEE).all()
    decoder = WindowDecoder(4, 32)
    decoder.add(coded)
    place = np.empty((4, 32), dtype=np.uint8)
    assert decoder.symbols(out=place) is place
    assert np.array_equal(place, stream)
    recoded = decoder.recode(5, out=out[1:])
    assert recoded.payloads.base is out


def test_seeds_and_keys_stand_for_vectors() -> None:
    vectors = expand_seeds(20, np.array([7, 8, 7]), 16)
    assert vectors.shape == (3, vector_bytes(20, 16))
    assert np.array_equal(vectors[0], vectors[2])
    assert not np.array_equal(vectors[0], vectors[1])
    assert expand_repair_keys(20, np.array([3]), 15, 2).tolist() == [[0xFF, 0xFF, 0x0F]]
    # RFC 8681 over GF(2^8) with full density has no zeros.
    assert expand_repair_keys(200, np.arange(50)).all()


ROWS = symbols_of(4, 8, 5)


def full() -> WindowEncoder:
    encoder = WindowEncoder(4, 8)
    encoder.push(ROWS)
    return encoder


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: WindowEncoder(4, 8, 3), "field = 3: expected"),  # type: ignore[arg-type]
        (lambda: WindowEncoder(0, 8), "window_size = 0: expected 1 to 1024"),
        (lambda: WindowEncoder(4, 8, first=-1), "first = -1: expected 0 to"),
        (lambda: full().push(ROWS[:1]), "symbols = 1 rows: expected at most 0"),
        (lambda: WindowEncoder(4, 8).push(ROWS[:, :4]), "symbols = an array with gaps"),
        (lambda: WindowEncoder(4, 8).encode(1, 1), "count = 0: expected 1 to 1024"),
        (lambda: full().encode(1, 1, first=2, count=3), "the window has 0..4"),
        (lambda: full().encode(1, 1, count=-1), "count = -1: expected 0 to 1024"),
        (lambda: full().combine(ROWS), "vectors = rows of 8 bytes: expected 4"),
        (lambda: full().push([b"1"]), "symbols = 1 rows: expected at most 0"),
        (lambda: full().symbol(4), r"symbol_id = 4: expected one in 0\.\.4, the window"),
        (lambda: WindowEncoder(4, 8).push(b"123456789"), "symbols = 9 bytes: expected 1 to 8"),
        (lambda: WindowDecoder(4, 70_000), "symbol_bytes = 70000: expected 1 to 65535"),
        (lambda: WindowDecoder(4, 8).add(WindowCoded(ROWS, ROWS, 0, 5)), "count = 5: expected 1"),
        (lambda: WindowDecoder(4, 8).recode(-1), "rows = -1: expected 0 or more"),
        (lambda: WindowDecoder(4, 8).add_source(np.array([-1]), ROWS[:1]), "ids = "),
        (lambda: WindowDecoder(4, 8).add_source(np.array([0.5]), ROWS[:1]), "ids = array of fl"),
        (lambda: WindowDecoder(4, 8).add_source(np.array([1]), ROWS), "ids = 1 rows: expected 4"),
        (lambda: WindowDecoder(4, 8).recode(1), "the window has 0..0"),
        (lambda: WindowDecoder(4, 8).advance_to(-1), "to = -1"),
        (lambda: expand_seeds(3, np.array([2**32])), "seeds = 4294967296: expected numbers from 0"),
        (lambda: expand_repair_keys(3, np.array([1]), 16), "density = 16: expected 0 to 15"),
        (
            lambda: expand_repair_keys(3, np.array([1]), 15, 16),  # type: ignore[arg-type]
            "field = 16: expected 2 or 256, which RFC 8681 has",
        ),
    ],
)
def test_misuse_is_told(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call()


def test_nothing_to_recode_is_told() -> None:
    decoder = WindowDecoder(8, 8)
    decoder.add(full().encode(1, 1))
    with pytest.raises(ValueError, match="run = nothing to combine"):
        decoder.recode(2, first=0, count=2)
