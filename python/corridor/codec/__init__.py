"""Random linear network coding of numpy arrays.

A block is an array of ``uint8`` with a row for each source symbol; a window slides over a stream
of source symbols that are numbered from some id on. Arrays are read and written in
place: between numpy and the coder nothing is copied or converted. The coder itself keeps what it
needs later: an encoder its source symbols, a recoder and a decoder what was innovative.

- `Encoder`, `Recoder`, `Decoder`: a block.
- `WindowEncoder`, `WindowDecoder` (which also recodes): a sliding window, for streams that cannot
  wait for a block. Repairs cover any run of symbols that both sides still hold.

Coding vectors are arrays of ``uint8`` with a row for each coded symbol. Over GF(2) coefficient i
is bit ``i % 8`` (least significant first) of byte ``i // 8``; over GF(2^4) the low half of byte
``i // 2`` if i is even, else the high half; over GF(2^8) byte i.

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

One repair makes up for a lost symbol of a stream, whichever it was:

>>> sender, receiver = WindowEncoder(64, 4), WindowDecoder(64, 4)
>>> _ = sender.push(block)
>>> receiver.add_source(np.array([0, 2]), block[[0, 2]]).tolist()
[1, 1]
>>> receiver.add(sender.encode(1, seed=1)).tolist()
[1]
>>> receiver.in_order_end, receiver.symbols(1, 1).tolist()
(3, [[4, 5, 6, 7]])
"""

from corridor.codec._arrays import (
    Bytes,
    Field,
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
    "Recoder",
    "WindowCoded",
    "WindowDecoder",
    "WindowEncoder",
    "WindowOutcome",
    "draw_vectors",
    "expand_repair_keys",
    "expand_seeds",
    "vector_bytes",
]
