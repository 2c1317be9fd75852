"""Random linear network coding of numpy arrays and ``bytes``.

A block is a number of source symbols that are coded together; a window slides over a stream of
source symbols that are numbered from some id on.

- `Encoder`, `Recoder`, `Decoder`: a block.
- `WindowEncoder`, `WindowDecoder` (which also recodes): a sliding window, for streams that cannot
  wait for a block. Repairs cover any run of symbols that both sides still hold.

**What goes in.** Symbols are an array of ``uint8`` with a row for each, a list of ``bytes`` or of
other buffers, or one buffer. Arrays are read in place: between numpy and the coder nothing is
copied or converted. Buffers that are shorter than a symbol are padded with zeros, so symbols of
different lengths have to say in themselves how long they are. The coder keeps what it needs later:
an encoder its source symbols, a recoder and a decoder what was innovative.

**What comes out.** Many symbols are an array (``symbols``, ``Coded.payloads``), written to ``out``
where it is given. What is sent or delivered one by one is ``bytes``: ``symbol`` is one symbol,
``Decoder.to_bytes`` the whole block, ``Coded.pairs`` vector and payload of each coded symbol.

**Coding vectors** are rows of ``uint8`` too. Over GF(2) coefficient i is bit ``i % 8`` (least
significant first) of byte ``i // 8``; over GF(2^4) the low half of byte ``i // 2`` if i is even,
else the high half; over GF(2^8) byte i.

**Copies.** All coders can be copied (`copy.deepcopy`), pickled, and sent to other processes, in the
middle of decoding too: an encoder with its symbols, a recoder and a decoder with what they hold.
The copy does from then on what the original would do, and draws the same combinations when it
recodes; after ``reseed`` it draws others. Pickles are for the same version of the package, and, as
all pickles, only from those who are trusted.

Examples
--------
>>> import numpy as np
>>> block = np.arange(12, dtype=np.uint8).reshape(3, 4)
>>> encoder = Encoder(block)
>>> coded = encoder.encode(5, seed=1)
>>> decoder = Decoder(3, 4)
>>> decoder.add(coded).tolist()
[True, True, True, False, False]
>>> bool((decoder.symbols() == block).all())
True

The same with ``bytes``, in pieces of 7:

>>> text = b"Instead of repeating lost frames one by one"
>>> encoder = Encoder(text, symbol_bytes=7)
>>> encoder
<Encoder: 7 symbols of 7 bytes over GF(2^8)>
>>> decoder = Decoder(7, 7)
>>> for vector, payload in encoder.encode(7, seed=1).pairs():
...     _ = decoder.add(Coded(vector, payload, 7))
>>> decoder.to_bytes(len(text)) == text
True

One repair makes up for a lost symbol of a stream, whichever it was:

>>> sender, receiver = WindowEncoder(64, 4), WindowDecoder(64, 4)
>>> sender.push([b"zero", b"one.", b"two."])
0
>>> receiver.add_source([0, 2], [b"zero", b"two."]).tolist()
[1, 1]
>>> receiver.add(sender.encode(1, seed=1)).tolist()
[1]
>>> receiver.in_order_end, receiver.symbol(1)
(3, b'one.')

A decoder goes on elsewhere, from where it is:

>>> import pickle
>>> decoder = Decoder(3, 4)
>>> decoder.add(coded[:2]).tolist()
[True, True]
>>> elsewhere = pickle.loads(pickle.dumps(decoder))
>>> elsewhere.add(coded[2]).tolist()
[True]
>>> elsewhere.is_complete, decoder.is_complete
(True, False)

Processes get them in the same way. As a file, this decodes four blocks on two processors::

    from multiprocessing import get_context

    import numpy as np
    from corridor.codec import Coded, Decoder, Encoder


    def decode(decoder: Decoder, coded: Coded) -> Decoder:
        decoder.add(coded)
        return decoder


    if __name__ == "__main__":
        blocks = np.random.default_rng(1).integers(0, 256, (4, 100, 1000), dtype=np.uint8)
        work = [(Decoder(100, 1000), Encoder(block).encode(103, seed=1)) for block in blocks]
        with get_context("spawn").Pool(2) as pool:
            decoders = pool.starmap(decode, work)
        print([decoder.is_complete for decoder in decoders])
"""

from corridor.codec._arrays import (
    Bytes,
    Field,
    Numbers,
    Rows,
    draw_vectors,
    expand_repair_keys,
    expand_seeds,
    vector_bytes,
)
from corridor.codec._block import Coded, Decoder, Encoder, Recoder
from corridor.codec._window import WindowCoded, WindowDecoder, WindowEncoder, WindowOutcome

__all__ = [
    "Bytes",
    "Coded",
    "Decoder",
    "Encoder",
    "Field",
    "Numbers",
    "Recoder",
    "Rows",
    "WindowCoded",
    "WindowDecoder",
    "WindowEncoder",
    "WindowOutcome",
    "draw_vectors",
    "expand_repair_keys",
    "expand_seeds",
    "vector_bytes",
]
