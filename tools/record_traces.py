"""Records the traces of the simulator from which the site's animations are drawn.

    python tools/record_traces.py target/release/corridor

Runs `corridor sim trace` for each plan in docs/site/traces, and writes the frames of a short
interval as JSON beside it: time, sender, contents, and the outcome at each station. The layout of
captures is in docs/captures.md, that of frames in the wire format of crates/proto.
"""

import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
FOLDER = TOP / "docs" / "site" / "traces"
#: Version of the wire format that is parsed here.
WIRE_VERSION = 8
#: For each plan, by point: its name, the first frame that is kept, and their number.
PARTS = {
    "window": [("frames", 400, 200)],
    "helper": [("frames", None, 24)],
    "relay": [("plain", 200, 12), ("xor", 200, 12)],
}
#: Frames between relays: their heads, and the position of the receiver's id in parts of coded ones.
PLAIN, CODED, PARTS_AT, PART_LEN = 1, 2, 5, 14
FATES = ("lost", "heard", "innovative", "dependent", "late", "refused", "aside", "rejected", "cut")
#: Kinds of chunks; frames of other forms have none.
ENC, ACK, WINDOW, WINDOW_ACK, LINK = 1, 2, 6, 7, 8
CHUNKED, FORM_MASK, FOLLOWED = 0, 0xF, 0x80
#: First byte of an 802.11 data frame, and the number of bytes before its IP header.
DATA_80211, IP_80211 = 0x08, 32
ETHERNET_LEN, HEADER_LEN, TAG_LEN, FORM_SHIFT = 14, 7, 16, 14
#: In the seed of a window's coded symbol: the position of the first id.
FIRST_SHIFT = 12
UNKNOWN_RANK = 0xFFFF


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    program = Path(sys.argv[1]).resolve()
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    for name, points in PARTS.items():
        plan = FOLDER / f"{name}.toml"
        found = {"plan": plan.name, "recorded_by": version.stdout.strip()}
        parts = {}
        for point, (key, first, count) in enumerate(points):
            with tempfile.TemporaryDirectory() as folder:
                capture = Path(folder) / "trace.pcapng"
                command = [program, "sim", "trace", plan, "--only", str(point), "--out", capture]
                subprocess.run(command, check=True)
                frames = [frame for frame in map(parse, packets(capture.read_bytes())) if frame]
            parts[key] = cut(frames, first, count)
        text = json.dumps(found)[:-1]
        for key, frames in parts.items():
            lines = ",\n".join(json.dumps(frame) for frame in frames)
            text += f', "{key}": [\n{lines}\n]'
        path = FOLDER / f"{name}.json"
        path.write_text(text + "}\n", encoding="utf-8")
        print(path.relative_to(TOP))
    return 0


def packets(data: bytes):
    """Yields time in ns and bytes of each packet of a pcapng file."""
    place = 0
    while place + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, place)
        if kind == 6:
            _, high, low, captured = struct.unpack_from("<IIII", data, place + 8)
            yield (high << 32 | low), data[place + 28 : place + 28 + captured]
        place += length


def parse(packet: tuple[int, bytes]) -> dict | None:
    """Returns a frame and its outcome; None if no animation shows it."""
    time_ns, data = packet
    if data[0] == DATA_80211:
        return relayed(time_ns, data)
    ether = data[ETHERNET_LEN:]
    if ether[:4] != b"CorC":
        return None
    (length,) = struct.unpack_from(">H", ether, 5)
    source, target = struct.unpack_from(">HH", ether, 8)
    airtime_ns, reach = struct.unpack_from(">QH", ether, 17)
    fates = {}
    for number in range(reach):
        station, fate, rank = struct.unpack_from(">HBH", ether, 27 + 5 * number)
        fates[station] = {"fate": FATES[fate]} | ({} if rank == UNKNOWN_RANK else {"rank": rank})
    body = body_of(ether[length:])
    if body is None:
        return None
    return {
        "us": round(time_ns / 1000), "air_us": round(airtime_ns / 1000), "from": source, "to": target,
        **body, "at": fates,
    }


def relayed(time_ns: int, data: bytes) -> dict | None:
    """Returns a frame of relays: one packet, or the XOR of two; None for announcements."""
    frame = data[IP_80211:]
    # Stations count from 1 on the air, nodes from 0.
    found = {"us": round(time_ns / 1000), "from": data[15] - 1}
    if frame[0] == PLAIN:
        return found | {"kind": "plain", "to": [data[9] - 1]}
    if frame[0] == CODED:
        places = (PARTS_AT, PARTS_AT + PART_LEN)
        return found | {"kind": "coded", "to": [struct.unpack_from(">H", frame, p)[0] for p in places]}
    return None


def body_of(frame: bytes) -> dict | None:
    if frame[0] >> 4 != WIRE_VERSION:
        raise SystemExit(f"wire version {frame[0] >> 4}: expected {WIRE_VERSION}")
    if frame[0] & FORM_MASK != CHUNKED:
        return None
    found = list(chunks(frame[HEADER_LEN:-TAG_LEN]))
    if all(kind in (ACK, WINDOW_ACK, LINK) for kind, _ in found):
        return {"kind": "ack"}
    kind, body = found[-1]
    # Symbols that carry piggybacked feedback are not shown.
    if len(found) > 1 or kind not in (ENC, WINDOW):
        return None
    if kind == WINDOW:
        _, word, number = struct.unpack_from(">BHI", body)
        if word >> FORM_SHIFT == 0:
            return {"kind": "source", "id": number}
        return {"kind": "coded", "first": number >> FIRST_SHIFT, "count": word & 0x3FFF}
    _, block, word = struct.unpack_from(">HHH", body)
    form, count = word >> FORM_SHIFT, word & 0x3FFF
    if form == 0:
        return {"kind": "source", "block": block, "id": count}
    return {"kind": "coded" if form == 1 else "recoded", "block": block, "count": count}


def chunks(body: bytes):
    """Yields kind and body of each chunk of a frame."""
    place = 0
    while body[place] & FOLLOWED:
        length, head = body[place + 1], 2
        if length & 0x80:
            length, head = (length & 0x7F) << 8 | body[place + 2], 3
        start = place + head
        yield body[place] & ~FOLLOWED, body[start : start + length]
        place = start + length
    yield body[place], body[place + 1 :]


def cut(frames: list[dict], first: int | None, count: int) -> list[dict]:
    """Returns a part of the frames: from a number on, or a block in which a helper helps."""
    if first is not None:
        return frames[first : first + count]
    helped = {frame["block"] for frame in frames if frame["kind"] == "recoded"}
    for block in sorted(helped):
        own = [f for f in frames if f.get("block") == block]
        fresh = sum(f["kind"] == "recoded" and f["at"][f["to"]]["fate"] == "innovative" for f in own)
        lost = sum(f["at"].get(f["to"], {}).get("fate") == "lost" for f in own)
        if fresh >= 3 and lost >= 3 and len(own) <= count:
            return own
    raise SystemExit("helper: expected a block in which the helper brings three symbols")


if __name__ == "__main__":
    sys.exit(main())
