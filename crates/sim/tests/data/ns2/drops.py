"""Makes drops.txt: what the TCP agents of ns-2 send when given transmissions are lost.

Needs ns-2 (Debian's package `ns2`, here 2.35). Run in this folder: `python3 drops.py > drops.txt`.
"""

import subprocess
import tempfile

# Name here, agent and sink of ns-2.
VARIANTS = [
    ("Tahoe", "", ""),
    ("Reno", "/Reno", ""),
    ("NewReno", "/Newreno", ""),
    ("Sack", "/Sack1", "/Sack1"),
    ("Vegas", "/Vegas", ""),
]
# Window, and the transmissions that are lost, numbered from 0.
CASES = [
    (50, []),
    (8, []),
    (50, [20]),
    (50, [20, 21]),
    (50, [20, 21, 22, 23]),
    (50, [20, 24, 28]),
    (50, [14, 15, 16, 17, 18, 19, 20, 21]),
    (50, [1]),
    (50, [30, 59, 60, 61]),
    (12, [20, 22, 30, 41, 50]),
    (50, list(range(20, 44))),
]
PACKETS = 80


def main():
    print("# Made by drops.py with ns-2.35. In each line: microseconds, congestion window, numbers sent.")
    for name, agent, sink in VARIANTS:
        for window, drops in CASES:
            listed = ",".join(map(str, drops)) or "none"
            print(f"case {name} window {window} packets {PACKETS} drops {listed}")
            for line in trace(agent, sink, window, drops):
                print(line)


def trace(agent: str, sink: str, window: int, drops: list[int]):
    """One line for each time at which something was sent or the window changed."""
    with tempfile.NamedTemporaryFile("r") as out:
        arguments = [agent, sink, str(window), str(PACKETS), " ".join(map(str, drops)), out.name]
        subprocess.run(["ns", "drops.tcl", *arguments], check=True)
        rows = [line.split() for line in out]
    cwnd, moments = None, {}
    for row in rows:
        if row[0] == "+":
            key, sent = round(float(row[1]) * 1e6), row[10]
        elif "cwnd_" in row:
            key, sent = round(float(row[0]) * 1e6), None
        else:
            continue
        moment = moments.setdefault(key, [None, []])
        if sent is None:
            moment[0] = row[row.index("cwnd_") + 1]
        else:
            moment[1].append(sent)
    for at, (window, sent) in sorted(moments.items()):
        cwnd = window or cwnd
        if sent:
            yield f"{at} {cwnd} {' '.join(sent)}"


if __name__ == "__main__":
    main()
