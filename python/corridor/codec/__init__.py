"""Random linear network coding of numpy arrays and ``bytes``.

Block coding combines a fixed set of source symbols; a sliding window moves along a stream of
consecutively numbered source symbols.

- `Encoder`, `Recoder`, `Decoder`: a block.
- `WindowEncoder`, `WindowDecoder` (which also recodes): a sliding window, for streams that cannot
  wait for a block to fill. A repair symbol covers any run of consecutive symbols in the window.

**Input.** Symbols are a ``uint8`` array with one row per symbol, a list of ``bytes`` or other
buffers, or a single buffer. The coder reads arrays in place, without copying or converting them
between numpy and the coder. It pads shorter buffers with zeros to the symbol size, so
variable-length symbols must carry their own length. Each coder keeps its own copy of what it needs
later: an encoder its source symbols, a recoder or decoder the innovative symbols it received.

**Output.** Several symbols at once are an array (``symbols``, ``Coded.payloads``), written to
``out`` if given. Single symbols to send or deliver are ``bytes``: ``symbol`` returns one symbol,
``Decoder.to_bytes`` the whole block, and ``Coded.pairs`` the coding vector and payload of each
coded symbol.

**Coding vectors** are rows of ``uint8`` too. Over GF(2), coefficient i is bit ``i % 8`` (least
significant first) of byte ``i // 8``; over GF(2^4), the low half of byte ``i // 2`` if i is even,
else the high half; over GF(2^8), byte i.

**Copies.** All coders can be copied (`copy.deepcopy`), pickled, and sent to other processes, even
in the middle of decoding. The copy carries the complete state: an encoder's source symbols, or the
symbols a recoder or decoder holds. It behaves exactly as the original would and recodes with the
same coefficients, unless ``reseed`` is called. A pickle can only be loaded by the same version of
the package, and, like any pickle, must come from a trusted source.

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

The same with ``bytes``, split into symbols of 7 bytes:

>>> text = b"Instead of repeating lost frames one by one"
>>> encoder = Encoder(text, symbol_bytes=7)
>>> encoder
<Encoder: 7 symbols of 7 bytes over GF(2^8)>
>>> decoder = Decoder(7, 7)
>>> for vector, payload in encoder.encode(7, seed=1).pairs():
...     _ = decoder.add(Coded(vector, payload, 7))
>>> decoder.to_bytes(len(text)) == text
True

One repair symbol recovers any single lost symbol of a stream:

>>> sender, receiver = WindowEncoder(64, 4), WindowDecoder(64, 4)
>>> sender.push([b"zero", b"one.", b"two."])
0
>>> receiver.add_source([0, 2], [b"zero", b"two."]).tolist()
[1, 1]
>>> receiver.add(sender.encode(1, seed=1)).tolist()
[1]
>>> receiver.in_order_end, receiver.symbol(1)
(3, b'one.')

A decoder can be moved elsewhere and continue from its current state:

>>> import pickle
>>> decoder = Decoder(3, 4)
>>> decoder.add(coded[:2]).tolist()
[True, True]
>>> elsewhere = pickle.loads(pickle.dumps(decoder))
>>> elsewhere.add(coded[2]).tolist()
[True]
>>> elsewhere.is_complete, decoder.is_complete
(True, False)

Coders reach worker processes the same way. Saved as a script, this decodes four blocks on two
processors::

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
