"""Coders that are copied, pickled or sent to other processes continue where they were."""

import copy
import multiprocessing
import pickle
from typing import TypeVar

import numpy as np
import pytest
from corridor.codec import (
    Bytes,
    Coded,
    Decoder,
    Encoder,
    Field,
    Recoder,
    WindowCoded,
    WindowDecoder,
    WindowEncoder,
)

FIELDS: tuple[Field, ...] = (2, 16, 256)
T = TypeVar("T")


def again(coder: T) -> T:
    loaded: T = pickle.loads(pickle.dumps(coder))
    return loaded


def block_of(size: int, width: int, seed: int) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, (size, width), dtype=np.uint8)


@pytest.mark.parametrize("field", FIELDS)
def test_an_encoder_is_pickled_with_its_symbols(field: Field) -> None:
    encoder = Encoder(block_of(20, 33, 1), field)
    assert np.array_equal(again(encoder).symbols(), block_of(20, 33, 1))
    assert again(encoder).encode(5, seed=3) == encoder.encode(5, seed=3)


@pytest.mark.parametrize("field", FIELDS)
def test_a_decoder_is_pickled_in_the_middle_of_decoding(field: Field) -> None:
    block = block_of(30, 40, 2)
    encoder, decoder = Encoder(block, field), Decoder(30, 40, field)
    decoder.add_source([0, 7, 29], block[[0, 7, 29]])
    for step in range(60):
        loaded = again(decoder)
        assert repr(loaded) == repr(decoder)
        assert np.array_equal(loaded.symbols(), decoder.symbols())
        coded = encoder.encode(1, seed=step)
        assert loaded.add(coded).tolist() == decoder.add(coded).tolist()
        decoder = loaded
    assert decoder.is_complete
    assert again(decoder).to_bytes() == block.tobytes()


@pytest.mark.parametrize("field", FIELDS)
def test_a_pickled_recoder_makes_what_the_first_one_makes(field: Field) -> None:
    encoder, recoder = Encoder(block_of(12, 25, 3), field), Recoder(12, 25, field, seed=9)
    for step in range(15):
        recoder.add(encoder.encode(1, seed=step))
        # The keystream continues from its position, which need not be the start of a block.
        recoder.recode(step % 3)
        loaded = again(recoder)
        assert loaded.rank == recoder.rank
        assert loaded.recode(4) == recoder.recode(4)


@pytest.mark.parametrize("field", FIELDS)
def test_coders_of_a_window_are_pickled_in_the_middle_of_a_stream(field: Field) -> None:
    stream = block_of(200, 16, 4)
    first = 2**64 - 1000
    encoder = WindowEncoder(32, 16, field, first)
    decoder = WindowDecoder(32, 16, field, first, seed=5)
    rng = np.random.default_rng(6)
    for step in range(40):
        begin = encoder.push(stream[5 * step : 5 * step + 5])
        kept = np.flatnonzero(rng.random(5) < 0.6)
        decoder.add_source(kept.astype(np.uint64) + np.uint64(begin), stream[5 * step + kept])
        encoder, loaded = again(encoder), again(decoder)
        coded = encoder.encode(3, seed=step)
        assert loaded.add(coded).tolist() == decoder.add(coded).tolist()
        for name in ("base", "end", "in_order_end", "seen_end", "rank", "deficit"):
            assert getattr(loaded, name) == getattr(decoder, name), name
        assert np.array_equal(loaded.symbols(), decoder.symbols())
        assert loaded.recode(3) == decoder.recode(3)
        if step % 2:
            assert loaded.poll().tolist() == decoder.poll().tolist()
        to = max(decoder.in_order_end, encoder.end - 25)
        assert loaded.advance_to(to) == decoder.advance_to(to)
        encoder.advance_to(to)
        decoder = loaded


def test_a_new_window_is_pickled() -> None:
    assert repr(again(WindowDecoder(4, 2, first=7))) == repr(WindowDecoder(4, 2, first=7))
    assert repr(again(WindowEncoder(4, 2, first=7))) == repr(WindowEncoder(4, 2, first=7))


def test_what_was_not_polled_is_polled_from_the_copy() -> None:
    decoder = WindowDecoder(8, 2)
    decoder.add_source([0, 2], [b"to", b"or"])
    assert decoder.poll().tolist() == [0, 2]
    decoder.add_source(1, b"be")
    assert again(decoder).poll().tolist() == [1]
    assert decoder.poll().tolist() == [1]


def test_a_copy_with_another_seed_makes_other_combinations() -> None:
    recoder, relay = Recoder(4, 9), WindowDecoder(4, 9)
    recoder.add(Encoder(block_of(4, 9, 1)).encode(3, seed=1))
    relay.add_source([0, 1, 2], block_of(3, 9, 1))
    for coder in (recoder, relay):
        other = again(coder)
        other.reseed(7)
        assert other.recode(4) != again(coder).recode(4)


def test_a_copy_is_apart_from_its_original() -> None:
    decoder = Decoder(2, 2)
    other = copy.deepcopy(decoder)
    other.add_source(0, b"to")
    assert (decoder.rank, other.rank) == (0, 1)


def test_coded_symbols_are_pickled() -> None:
    coded = Encoder([b"to", b"be"]).encode(3, seed=1)
    assert again(coded) == coded
    run = WindowCoded(coded.vectors, coded.payloads, 5, 2)
    assert again(run) == run
    assert run != WindowCoded(coded.vectors, coded.payloads, 6, 2)
    assert coded != Coded(coded.vectors, coded.payloads[::-1].copy(), 2)
    assert coded != run


def decode(decoder: Decoder, coded: Coded) -> Decoder:
    """Run in another process."""
    decoder.add(coded)
    return decoder


def test_coders_are_sent_to_processes_that_are_spawned() -> None:
    blocks = [block_of(10, 50, seed) for seed in range(3)]
    coded = [Encoder(block).encode(12, seed=1) for block in blocks]
    decoders = [decode(Decoder(10, 50), each[:4]) for each in coded]
    rest = zip(decoders, [each[4:] for each in coded], strict=True)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        whole = pool.starmap(decode, rest)
    assert [each.to_bytes() for each in whole] == [block.tobytes() for block in blocks]
    assert [each.rank for each in decoders] == [4, 4, 4]
