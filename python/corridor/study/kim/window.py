"""Figs. 5 to 7: the evolution of TCP/NC's window, and the Markov chain behind Eq. 18."""

import numpy as np

from corridor import plot
from corridor.models import tcp_nc
from corridor.study.findings import Context, Findings


def evolution(context: Context) -> Findings:
    """Fig. 5: the expected window over rounds (Eq. 17)."""
    parameter = context.parameter
    largest, first, p = parameter("window_max"), parameter("window_first"), parameter("p")
    rounds = np.arange(parameter("rounds") + 1)
    figure, (axes,) = plot.panels(1)
    rows = []
    for factor in parameter("redundancy_over_least"):
        redundancy = max(1.0, factor / (1 - p))
        windows = tcp_nc.window(rounds, p, redundancy, largest, first)
        axes.plot(rounds, windows, label=f"R (1-p) = {redundancy * (1 - p):.2f}")
        reached = (
            int(np.argmax(windows >= largest - 1e-9)) if windows[-1] >= largest - 1e-9 else None
        )
        slope = float(windows[1] - windows[0])
        rows.append({"R (1-p)": redundancy * (1 - p), "slope": slope, "round of W_max": reached})
    plot.published(axes, [60], [largest])
    plot.labelled(axes, "E[W_i], Eq. 17", "round i", "window / packets")
    full = [row for row in rows if row["R (1-p)"] >= 1 - 1e-12]
    measured = {
        "KIM-050": float(full[0]["round of W_max"] or np.nan),
        "KIM-F5-1": bool(all(abs(row["slope"] - min(1, row["R (1-p)"])) < 1e-9 for row in rows)),
    }
    return Findings(measured, rows, figure)


def chain(context: Context) -> Findings:
    """Figs. 6 and 7: packets sent until the window is full, from the chain and by Eq. 18."""
    parameter = context.parameter
    windows, losses = parameter("windows"), parameter("p")
    figure, (left, right) = plot.panels(2)
    rows = []
    for p in losses:
        closed = [float(tcp_nc.transmissions_to_window(w, p)) for w in windows]
        whole = [tcp_nc.chain_transmissions(w, p) for w in windows]
        every = [tcp_nc.chain_transmissions(w, p, "per_packet") for w in windows]
        (line,) = left.plot(windows, closed, label=f"Eq. 18, p = {p:g}")
        left.plot(windows, whole, ".", color=line.get_color(), label=f"chain, p = {p:g}")
        right.plot(windows[1:], np.array(every[1:]) / closed[1:], ".-", label=f"p = {p:g}")
        rows += [
            {"p": p, "W": w, "Eq. 18": c, "chain": n, "chain, 1/W each packet": e}
            for w, c, n, e in zip(windows, closed, whole, every, strict=True)
        ]
    last = int(windows[-1])
    published = [c.value for c in context.experiment.claims if c.id in ("KIM-049", "KIM-F7-1")]
    plot.published(left, [last] * len(published), published)
    plot.labelled(left, "T_p(W): packets until the window is W", "W / packets", "packets sent")
    plot.labelled(right, "chain with S(W + 1/W) over Eq. 18", "W / packets", "ratio")
    ends = [row for row in rows if row["W"] == last]
    # The fundamental matrix itself, for a chain small enough to inspect.
    matrix = tcp_nc.chain_matrix(losses[-1], 30).toarray()[:-1, :-1]
    first_row = np.linalg.inv(np.eye(29) - matrix)[0]
    measured = {
        "KIM-049": ends[0]["chain"],
        "KIM-F7-1": ends[-1]["chain"],
        "KIM-F7-2": float(max(abs(row["chain"] - row["Eq. 18"]) for row in rows)),
        "KIM-F7-3": bool(np.allclose(first_row, 1 / (1 - losses[-1]))),
        "KIM-F7-4": float(
            max(abs(row["chain"] / ends[0]["chain"] * (1 - row["p"]) - 1) for row in ends)
        ),
        "KIM-F7-5": float(
            max(abs(row["chain, 1/W each packet"] / row["Eq. 18"] - 1) for row in ends)
        ),
    }
    return Findings(measured, rows, figure)
