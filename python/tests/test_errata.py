"""Statements of docs/errata.md, entry by entry, where no other test checks them.

Figures are read from its text, and recomputed, or found in recorded results.
"""

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corridor.models import base_stations, coding, relaying, tcp
from corridor.models.deficit import deficit_mean
from corridor.study.experiment import find

G = 150
EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
ENTRIES = dict(
    re.findall(
        r"^### (\w+)\. (.*?)(?=^#|\Z)",
        (EXPERIMENTS.parent / "docs" / "errata.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
)


def said(entry: str, pattern: str) -> list[float]:
    """Return the numbers in an entry at a pattern's groups; spaces also match line ends."""
    text = " ".join(ENTRIES[entry].split())
    found = re.findall(pattern, text)
    assert len(found) == 1, f"errata {entry}: {pattern!r}: {len(found)} times"
    groups = [found[0]] if isinstance(found[0], str) else found[0]
    return [float(number) for group in groups for number in re.findall(r"-?[\d.]*\d", group)]


def row(entry: str, name: str) -> list[float]:
    """Return the numbers in a row of an entry's table."""
    return said(entry, rf"\| {re.escape(name)} \|([^a-zA-Z]*)\|")


def recorded(experiment: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EXPERIMENTS / experiment / "result.json").read_text())
    return found


def measured(experiment: str) -> dict[str, tuple[float, float]]:
    """Return the recorded measure of each claim, and the half-width of its interval."""
    return {
        claim["id"]: (float(claim["measured"]), claim["half_width"] or 0.0)
        for claim in recorded(experiment)["claims"]
        if claim["measured"] is not None
    }


def test_2_the_credits_of_case_1_are_not_enough() -> None:
    e1, e2, e3 = 0.1, 0.5, 0.9
    budgets = coding.playncool(G, e1, e2, e3)
    head_start, helper, encoder = (
        float(each)
        for each in (budgets.encoder_head_start, budgets.helper_budget, budgets.encoder_budget)
    )
    assert (round(head_start, 2), round(helper, 1), round(encoder)) == (1.23, 249.8, 251)
    credited = G / (1 - e1 * e3)
    assert credited == pytest.approx(164.8, abs=0.05)
    arriving = credited * (1 - e3) + helper * (1 - e2)
    assert arriving == pytest.approx(141.4, abs=0.05)
    assert arriving < G <= encoder * (1 - e3) + helper * (1 - e2) + 1


def test_c1_no_one_count_gives_all_gains() -> None:
    counts = (relaying.gain_of_paper, relaying.gain_with_ends, relaying.gain_of_transmissions)
    printed = {1: 1.25, 3: 1.33, 6: 1.42}
    for count in counts:
        assert any(round(count(n), 2) != gain for n, gain in printed.items())
    assert round(relaying.gain_of_paper(3), 2) == 1.33
    assert round(relaying.gain_of_paper(6), 2) == 1.42
    assert relaying.gain_with_ends(1) == 1.25
    assert relaying.transmissions_coded(1) == 3
    assert round(relaying.paired_share(6, 1.42), 2) == 0.69


def test_3_a_helper_beats_the_unreliable_link() -> None:
    encoder, helper = (float(x) for x in coding.optimum(G, 0.25, 0.25, 0.5))
    assert G / (encoder + helper) == pytest.approx(0.583, abs=5e-4)


def test_8_the_combined_quality_does_not_decide() -> None:
    places = [(0.1, 0.5), (0.3, 0.3), (0.5, 0.1)]
    totals = {
        e3: [round(float(sum(coding.optimum(G, e1, e2, e3))), 1) for e1, e2 in places]
        for e3 in (0.5, 0.7, 0.8)
    }
    assert totals == {
        0.5: [300.0, 264.7, 255.6],
        0.7: [364.5, 322.8, 320.5],
        0.8: [397.8, 355.3, 361.1],
    }


class Basis:
    """A subspace of GF(2)^G, its vectors as integers."""

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}

    def add(self, vector: int) -> bool:
        """Add a vector; return whether it was innovative."""
        while vector:
            row = self.rows.get(vector.bit_length())
            if row is None:
                self.rows[vector.bit_length()] = vector
                return True
            vector ^= row
        return False


def block(dice: random.Random, most: float) -> int:
    """Return a block's transmissions at (0.5, 0.1, 0.9) with a helper limited to ``most``."""
    e1, e2, e3 = 0.5, 0.1, 0.9
    threshold = float(coding.playncool(G, e1, e2, e3).helper_threshold)
    decoder, helper = Basis(), Basis()
    held: list[int] = []
    sent, earned, spent = 0, 0.0, 0
    while len(decoder.rows) < G:
        vector = dice.getrandbits(G)
        sent += 1
        if dice.random() >= e3:
            decoder.add(vector)
        if dice.random() >= e1 and helper.add(vector):
            held.append(vector)
            if len(held) >= threshold:
                earned = min(earned + (1 / (1 - e1) if earned else 1), most)
        while earned - spent >= 1 and len(decoder.rows) < G:
            spent += 1
            recoded = 0
            for each in held:
                recoded ^= each if dice.getrandbits(1) else 0
            if dice.random() >= e2:
                decoder.add(recoded)
    return sent + spent


def test_7_a_helper_that_stops_at_k_costs_transmissions() -> None:
    k = float(coding.playncool(G, 0.5, 0.1, 0.9).helper_budget)
    rules = {
        "goes on until the decoder is done": np.inf,
        "stops at k for good": k,
        "stops at 1.05 k for good": 1.05 * k,
    }
    means = []
    for name, most in rules.items():
        dice = random.Random(7)
        totals = [block(dice, most) for _ in range(400)]
        *_, mean, half_width = row("7", name)
        error = 2 * float(np.std(totals)) / len(totals) ** 0.5
        assert float(np.mean(totals)) == pytest.approx(mean, abs=half_width + error), name
        means.append(float(np.mean(totals)))
    on, strict, more = means
    assert on < more < strict
    assert 1.04 < strict / on < 1.12


def frame_overhead_us(slot: float, window: int) -> float:
    """Overhead of 802.11g per frame at 12 Mbit/s (IEEE 802.11-2020, 10.3 and 18)."""
    sifs, preamble, extension, rate = 10.0, 20.0, 6.0, 12.0
    difs = sifs + 2 * slot
    backoff = slot * window / 2
    # MAC header, LLC and SNAP, frame check sequence.
    headers = 8 * (24 + 8 + 4) / rate
    # An acknowledgment has 14 bytes, service and tail 22 bits, a symbol 48 bits in 4 us.
    acknowledgement = preamble + 4 * np.ceil((8 * 14 + 22) / 48) + extension
    return float(difs + backoff + preamble + extension + headers + sifs + acknowledgement)


def test_16_the_overhead_is_between_two_kinds_of_access() -> None:
    (short,) = said("16", r"MAC headers are (\d+) us a frame")
    slot, at_first = said("16", r"\((\d+) us slots, (\d+) of them at first\)")
    (long,) = said("16", r"and (\d+) us with the slots")
    other_slot, other_window = said(
        "16", r"the slots of (\d+) us and the contention window of (\d+)"
    )
    assert frame_overhead_us(slot, int(at_first)) == pytest.approx(short, abs=0.5)
    assert frame_overhead_us(other_slot, int(other_window)) == pytest.approx(long, abs=0.5)
    (fitted,) = said("16", r"(\d+) us are fitted")
    assert short < fitted < long


def test_k7_eq_11_is_no_upper_bound() -> None:
    """Reno of ns-2.35 has 0.0688 Mbit/s at p = 0.0199 (crates/sim/tests/it/kim_reno.rs)."""
    without_timeouts = tcp.mbps(tcp.throughput_without_timeouts(tcp.end_to_end_erasure(0.005), 0.8))
    bound, ns2 = said(
        "K7", r"is ([\d.]+) Mbit/s at p = 0.0199, but .* has ([\d.]+) without headers"
    )
    assert float(without_timeouts) == pytest.approx(bound, abs=5e-5)
    assert float(without_timeouts) < ns2


def test_k7_has_the_readings_that_were_recorded() -> None:
    """The table has means of 100 runs; if fewer are recorded, their interval counts."""
    claims = measured("kim-table1")
    reno = recorded("kim-fig09")
    assert reno["replications"] == 100
    plain = [1.04 * point["TCP"] for point in reno["rows"][1:]]
    assert row("K7", "Reno with ns-2's options") == pytest.approx(plain, abs=5e-5)
    readings = {
        "the same, time-outs of at least the stated 3 s": [f"KIM-TO3-{n}" for n in range(1, 5)],
        "Cubic": ["KIM-CUBIC", "KIM-CUBIC-2", "KIM-CUBIC-3", "KIM-CUBIC-4"],
    }
    for name, ids in readings.items():
        for value, number in zip(row("K7", name), ids, strict=True):
            mean, half_width = claims[number]
            assert mean == pytest.approx(value, abs=1.5 * half_width + 5e-5), number
    (experiment,) = find(EXPERIMENTS, "kim-table1")
    published = {claim.id: claim.value for claim in experiment.claims}
    printed = [published[number] for number in ("KIM-014", "KIM-022", "KIM-030", "KIM-038")]
    assert row("K7", "printed, TCP0") == printed
    (likely,) = said("K7", r"A misprint for ([\d.]+) is likely")
    assert plain[0] == pytest.approx(likely, rel=0.01)
    assert printed[3] / plain[3] == pytest.approx(
        1 + said("K7", r"fourth is (\d+) %")[0] / 100, abs=0.02
    )


def test_k8_one_user_in_a_hundred_needs_fewer_than_5() -> None:
    (stations,) = said("K8", r"Eq. 22 gives ([\d.]+) base stations")
    q, bandwidth = said("K8", r"At q = ([\d.]+) and B = ([\d.]+) Eq. 22")
    assert float(base_stations.base_stations(bandwidth, bandwidth, q, 3.2)) == pytest.approx(
        stations, abs=0.005
    )
    slope, *edges = said("K8", r"for B up to ([\d.]+) q Mbit/s, which is ([\d., ]+) for q")
    chances = np.array([0.01, 0.02, 0.03, 0.04])
    duration = base_stations.transaction_s(3.2, 1.0)
    assert float(duration) == pytest.approx(slope, abs=0.05)
    assert (float(duration) * chances).round(2).tolist() == edges
    assert edges[-1] > 1 > edges[-2]


def test_k9_an_idle_start_takes_base_stations() -> None:
    sizes, mix, users = [0.008, 1, 3, 20], [0.3, 0.3, 0.3, 0.1], 1000
    taken = said("K9", r"q = 0.01 ([\d.]+) base stations for B = 0.5 and ([\d.]+) for B = 1.5")
    for bandwidth, stations in zip((0.5, 1.5), taken, strict=True):
        bias = float(base_stations.empty_start_bias(sizes, mix, bandwidth, 0.01, 1000))
        per_user = float(base_stations.stations_per_user(bandwidth))
        assert users * per_user * bias == pytest.approx(stations, rel=0.03), bandwidth
    load, mean, analysis = said(
        "K9",
        r"B = 0.5 \(load ([\d.]+)\) the mean over 1000 s is (\d+) base stations, analysis (\d+)",
    )
    (point,) = [
        each
        for each in recorded("kim-fig18")["rows"]
        if (each["mix"], each["q"], each["B"]) == ("a", 0.02, 0.5)
    ]
    assert point["load"] == pytest.approx(load, abs=0.005)
    assert point["simulated"] == pytest.approx(mean, abs=0.1)
    assert point["Eq. 22"] == pytest.approx(analysis)


def test_k10_the_megabyte_decides_which_curves_coincide() -> None:
    speed, decimal, binary = said(
        "K10", r"0.03 / ([\d.]+) = ([\d.]+) with 10\^6 and of ([\d.]+) with 2\^20"
    )
    throughput = base_stations.tcp_throughput_mbps(10, 0.01)
    assert float(throughput) == pytest.approx(speed, abs=5e-4)

    def active(q: float, megabyte: int) -> float:
        duration = base_stations.transaction_s(3.2, throughput, megabyte)
        return float(base_stations.active_probability(duration, q))

    assert active(0.03, 10**6) == pytest.approx(decimal, abs=5e-4)
    assert active(0.03, 2**20) == pytest.approx(binary, abs=5e-4)
    assert active(0.04, 10**6) == active(0.04, 2**20) == 1
    percent = said("K10", r"they do to within ([\d.]+) %; over 10\^6 they are up to (\d+) %")
    apart = [measured("kim-fig20")[number][0] for number in ("KIM-083", "KIM-T20-6")]
    assert [100 * each for each in apart] == pytest.approx(percent, abs=0.3)


def test_k12_the_wait_is_not_in_the_table() -> None:
    claims, points = measured("kim-table1"), recorded("kim-table1")["rows"][1:]
    printed = said(
        "K12", r"with means of ([\d., and]+) packets missing .*, and ([\d.]+) at p = 0.1855"
    )
    missing = [deficit_mean(each["p"], each["R"]) for each in points]
    missing.append(deficit_mean(0.1855, 1.25))
    assert np.round(missing, 2).tolist() == printed
    # The round trip includes the queueing delay, and 50 packets fill it.
    idle, _ = claims["KIM-001"]
    waits = [1e3 * idle * each / (50 - each) for each in missing]
    assert np.round(waits).tolist() == said("K12", r"in a round trip: ([\d, and]+) ms")

    *timed, longest, half_width = said(
        "K12", r"grows with p: ([\d., ]+) s, and ([\d.]+) ± ([\d.]+) s at p = 0.1855 in Fig. 11"
    )
    for value, number in zip(timed, ("KIM-009", "KIM-017", "KIM-025", "KIM-033"), strict=True):
        mean, interval = claims[number]
        assert mean == pytest.approx(value, abs=interval + 5e-4), number
    mean, interval = measured("kim-fig11")["KIM-047"]
    assert mean == pytest.approx(longest, abs=0.005)
    assert interval == pytest.approx(half_width, abs=0.005)
    (path,) = said("K12", r"that of the path: ([\d.]+) s at all p")
    echoed = [claims[f"KIM-SRTT-{number}"][0] for number in range(1, 6)]
    assert [*echoed, measured("kim-fig11")["KIM-F11-1"][0]] == pytest.approx([path] * 6, abs=1e-3)
