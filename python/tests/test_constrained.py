"""The first exchange of a transfer over one 802.15.4 link, compared with times computed by hand."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from corridor import _native, sim
from corridor.models import constrained
from corridor.study.betzler.mesh import links
from corridor.study.betzler.runs import COMPLETED, RTT, Runs
from corridor.study.experiment import find
from corridor.study.findings import Context
from matplotlib import pyplot as plt

TOP = Path(__file__).resolve().parents[2]

#: Microseconds: a backoff unit, a CCA, a turnaround, an acknowledgment.
UNIT, LOOK, TURN, ACK = 320, 128, 192, 352
#: Frames on the air, 32 us a byte: preamble and length, header and check sequence, packet.
DATA, REPLY = 32 * (6 + 11 + 114), 32 * (6 + 11 + 20)
PLAN = """
name = "pair"
seed = 7
duration_s = 60
until_done = true

[network]
kind = "line"
nodes = 2
spacing_m = 1

[network.radio]
mac = "802.15.4"
path_loss = { exponent = 3 }

[network.routing]
kind = "nst-aodv"
static = true

[[flow]]
from = 0
to = 1
source = { kind = "fixed", packets = 1 }
payload_bytes = 94
header_bytes = 20

[flow.tcp]
preset = "constrained"
variant = "slowstart"
window_packets_max = 1
ack_bytes = 20
"""


def begins(at: int = 0, exponent: int = 3, share: float = 1.0) -> Iterator[tuple[int, float]]:
    """Yield when a node's reply may begin after the end of the frame, and the probability.

    Its acknowledgment of the frame is on the air one turnaround later. The node's backoff runs
    meanwhile; it then senses its own acknowledgment as a busy channel and backs off anew, twice as
    long; the fifth time it gives up.
    """
    is_spoken = range(TURN, TURN + ACK)
    for units in range(2**exponent):
        looks, own = at + units * UNIT, share / 2**exponent
        if any(now in is_spoken for now in (looks, looks + LOOK - 1)):
            yield from begins(looks + LOOK, min(exponent + 1, 5), own)
        elif looks + LOOK + TURN in is_spoken:
            yield from begins(looks + LOOK + TURN, min(exponent + 1, 5), own)
        else:
            yield looks + LOOK + TURN, own


def test_the_first_exchange_takes_what_it_takes_by_hand() -> None:
    found = sim.run(sim.PlanText(PLAN, Path()), replications=2000)
    trips = np.rint(1e9 * found[RTT].to_numpy().ravel()) / 1e3
    by_hand: dict[int, float] = {}
    for units in range(8):
        there = units * UNIT + LOOK + TURN + DATA
        for begun, share in begins():
            trip = there + begun + REPLY
            by_hand[trip] = by_hand.get(trip, 0.0) + share / 8
    assert sum(by_hand.values()) == pytest.approx(1)
    # To the microsecond: no other times, and all that are not rare.
    assert set(trips) <= set(by_hand)
    assert {trip for trip, share in by_hand.items() if share > 0.01} <= set(trips)
    times, shares = np.array(list(by_hand)), np.array(list(by_hand.values()))
    mean = float(times @ shares)
    error = (float((times - mean) ** 2 @ shares) / len(trips)) ** 0.5
    assert abs(trips.mean() - mean) < 4 * error
    # Under store and forward, a node turns to its reply once it has acknowledged: slightly later
    # here, slightly earlier there, so that the mean agrees within a tenth.
    model = 1e6 * float(constrained.exchange_s(1, constrained.EXPONENTIAL_S))
    assert model == pytest.approx(mean + TURN + ACK, rel=0.1)


def test_round_trips_are_those_of_completed_transfers() -> None:
    plan = PLAN.replace("spacing_m = 1", "spacing_m = 30").replace("packets = 1", "packets = 20")
    fading = "[network.radio]\nfading = { sigma_db = 8, period_s = 1 }"
    text = plan.replace("[network.radio]", fading)
    text = text.replace("[flow.tcp]", "[flow.tcp]\ntimeouts_max = 1")
    runs = Runs(sim.run(sim.PlanText(text, Path()), replications=40))
    completed = runs.at(COMPLETED, {})
    there = ~np.isnan(runs.results[RTT].isel(flow=0).to_numpy())
    failed = completed == 0
    # Some failed transfers have round-trip times nonetheless.
    assert (failed & there).any()
    assert (completed == 1).any()
    assert np.isnan(runs.at(RTT, {})[failed]).all()
    assert not np.isnan(runs.at(RTT, {})[completed == 1]).any()


def test_a_sketch_has_the_mean_power_of_links() -> None:
    places, reaches = _native.PlanRuns(
        PLAN.replace("spacing_m = 1", "spacing_m = 8"), ".", 1
    ).sketch(0)
    assert places.tolist() == [[0.0, 0.0], [8.0, 0.0]]
    assert reaches[:, :3].tolist() == [[0, 1, 1], [1, 0, 1]]
    # 0 dBm, the loss of the first metre, and 30 dB a decade.
    one = _native.PlanRuns(PLAN, ".", 1).sketch(0)[1]
    assert one[0, 3] - reaches[0, 3] == pytest.approx(30 * np.log10(8))
    with pytest.raises(ValueError, match="point = 1"):
        _native.PlanRuns(PLAN, ".", 1).sketch(1)


def test_the_mesh_has_neighbours_that_do_not_hear_each_other() -> None:
    (experiment,) = find(TOP / "experiments", "betzler-fig01")
    found = links(Context(experiment, quick=False))
    plt.close(found.figure)
    near = {row["metres"]: row for row in found.rows}
    # 6 rows of 9 steps, 5 steps of 10 columns, and diagonals.
    assert [near[metres]["pairs"] for metres in (0.9, 1.08, 1.41)] == [54, 50, 90]
    for row in found.rows:
        assert 0 < row["heard"] <= row["pairs"]
        # The weakest link is at the sensitivity, 3 dB above the noise.
        assert 102 <= row["least LQI"] <= row["mean LQI"] <= row["most LQI"] <= 255
    assert near[1.41]["heard"] < near[1.41]["pairs"]
    thick = [line.get_linewidth() for line in found.figure.axes[0].get_lines()[:-1]]
    assert len(thick) == sum(near[metres]["heard"] for metres in (0.9, 1.08, 1.41))
    assert 2 <= min(thick) < max(thick) <= 5
