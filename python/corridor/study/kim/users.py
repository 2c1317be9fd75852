"""Fig. 18: users who download files, simulated (Section IX-B)."""

import numpy as np
from numpy.typing import NDArray

from corridor import plot
from corridor.models import base_stations as model
from corridor.study.findings import Context, Findings

FloatArray = NDArray[np.float64]


def run(context: Context) -> Findings:
    """Simulate both mixes of files for every q and B, and compare with Eq. 22."""
    parameter = context.parameter
    bandwidths, chances = parameter("bandwidth_mbps"), parameter("q")
    figure, axes = plot.panels(2)
    rows = []
    for panel, (letter, mix) in zip(axes, parameter("mixes").items(), strict=True):
        mean_mb = model.file_mean_mb(parameter("type_mb"), mix)
        for place, q in enumerate(chances):
            analytic = model.base_stations(
                bandwidths, bandwidths, q, mean_mb, parameter("users"), parameter("megabyte")
            )
            simulated = _simulate(context, mix, q, np.array(bandwidths))
            mean = simulated.mean(axis=0)
            panel.plot(bandwidths, analytic, "--", color=f"C{place}", label=f"Eq. 22, q = {q:g}")
            panel.errorbar(
                bandwidths, mean, simulated.std(axis=0), color=f"C{place}", marker="o",
                markersize=4, linestyle="none", label=f"simulated, q = {q:g}",
            )  # fmt: skip
            sizes = (parameter("type_mb"), mix)
            bias = (
                parameter("users")
                * model.stations_per_user(bandwidths)
                * (
                    model.empty_start_bias(
                        *sizes, bandwidths, q, parameter("duration_s"), parameter("megabyte")
                    )
                )
            )
            for b, m, a, lost in zip(bandwidths, mean, np.atleast_1d(analytic), bias, strict=True):
                load = model.transaction_s(mean_mb, b, parameter("megabyte")) * q
                rows.append(
                    {"mix": letter, "q": q, "B": b, "load": float(load), "simulated": float(m),
                     "Eq. 22": float(a), "difference": float(m - a), "idle start": float(lost)}
                )  # fmt: skip
        plot.labelled(panel, f"mix {letter}", "B = T / (Mbit/s)", "base stations", legend=False)
    plot.legend_beside(figure, axes[0])
    near = [row for row in rows if abs(row["load"] - 1) <= parameter("load_near_one")]
    # Where an idle start may account for the whole value, nothing could disagree.
    tight = [row for row in rows if row["idle start"] <= parameter("idle_start_max")]
    measured = {
        "KIM-F18-1": float(min(row["difference"] + row["idle start"] for row in tight)),
        "KIM-F18-2": float(max(row["difference"] for row in rows)),
        "KIM-F18-4": float(min(row["difference"] for row in near)),
        "KIM-074": float(min(row["difference"] for row in rows)),
    }
    note = f"KIM-F18-1: {len(tight)} of {len(rows)} points, where an idle start takes little"
    return Findings(measured, rows, figure, [note])


def _simulate(context: Context, mix: list[float], q: float, bandwidths: FloatArray) -> FloatArray:
    """Mean number of base stations over time, per iteration and bandwidth.

    All bandwidths see the same users. In every slot, a user starts a transaction with probability q
    times the slot length; it is served after the user's earlier ones, at the full rate. The number
    of base stations is rounded up in every slot. The network starts empty, since the paper does not
    state otherwise.
    """
    parameter = context.parameter
    iterations, users, slot = parameter("iterations"), parameter("users"), parameter("slot_s")
    iterations = iterations if context.most is None else min(iterations, context.most)
    slots = round(parameter("duration_s") / slot)
    bits = np.array(parameter("type_mb")) * 8 * parameter("megabyte")
    result = np.empty((iterations, len(bandwidths)))
    # One random stream per iteration, whatever q and mix: runs differ only in what is varied.
    for iteration, seed in enumerate(np.random.SeedSequence(parameter("seed")).spawn(iterations)):
        rng = np.random.default_rng(seed)
        arrivals, sizes = _transactions(rng, users, slots, q * slot, bits, np.array(mix))
        for place, bandwidth in enumerate(bandwidths):
            service = sizes / (bandwidth * 1e6 * slot)
            active = _active(arrivals, service, slots)
            needed = np.ceil(active * model.stations_per_user(bandwidth) - 1e-9)
            result[iteration, place] = needed.mean()
    return result


def _transactions(
    rng: np.random.Generator,
    users: int,
    slots: int,
    chance: float,
    bits: FloatArray,
    mix: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Slots in which transactions start, and their bits: a row per user, in order of time.

    The slots between starts are geometrically distributed. Rows are padded with starts beyond the
    end.
    """
    mean = slots * chance
    most = int(mean + 8 * np.sqrt(mean) + 10)
    starts = np.cumsum(rng.geometric(chance, (users, most)), axis=1) - 1
    sizes = rng.choice(bits, (users, most), p=mix)
    return starts.astype(np.float64), sizes


def _active(arrivals: FloatArray, service: FloatArray, slots: int) -> FloatArray:
    """Number of users with something to download in each slot.

    Transaction k of a user ends at max(start, end of the previous one) + service. With S the sum of
    the service times before each, the end is S + service + max over the earlier ones of (start -
    S).
    """
    before = np.cumsum(service, axis=1) - service
    begins = np.maximum.accumulate(arrivals - before, axis=1) + before
    ends = begins + service
    # A transaction not served within its first slot is active in it: slots count as a whole.
    first = np.floor(begins).clip(0, slots).astype(np.int64).ravel()
    # A user whose next transaction begins at once stays active: its slot must not count twice.
    last = np.ceil(ends).clip(0, slots).astype(np.int64)
    last[:, :-1] = np.minimum(last[:, :-1], np.floor(begins[:, 1:]).clip(0, slots))
    changes = np.bincount(first, minlength=slots + 1) - np.bincount(
        last.ravel(), minlength=slots + 1
    )
    active: FloatArray = np.cumsum(changes)[:slots].astype(np.float64)
    return active
