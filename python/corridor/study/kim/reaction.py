"""The paper's statements on TCP/NC without a figure: reaction to congestion; and our own sender."""

import numpy as np

from corridor import plot, stats
from corridor.models import tcp
from corridor.study.claims import Measured
from corridor.study.findings import Context, Findings

QUEUE = "network.links.queue_packets"
ERASURE = "network.links.erasure_ratio"
BUFFER = "flow.0.tcp_nc.buffer_segments"


def congestion(context: Context) -> Findings:
    """Section VI-C: shorter queues at the same links, so that congestion causes losses."""
    results = context.simulate("nc")
    queues = results[QUEUE].to_numpy()
    means = results.mean("replication")
    window = means["flow.cwnd_mean_packets"].mean("flow").to_numpy()
    signs = (means["flow.fast_retransmits"] + means["flow.timeouts"]).sum("flow").to_numpy()
    rows = [
        {"queue": int(queue), "window": float(window[i]), "TD and TO": float(signs[i]),
         "dropped": float(means["packets_dropped"][i]),
         "fairness": float(means["fairness_ratio"][i]),
         **{f"NC{n}": float(means["flow.goodput_bps"][i, n]) / 1e6 for n in (0, 1)}}
        for i, queue in enumerate(queues)
    ]  # fmt: skip
    longest, shortest = int(np.argmax(queues)), int(np.argmin(queues))
    measured: dict[str, Measured] = {
        "KIM-C-1": float(window[shortest] / window[longest]),
        "KIM-C-2": float(signs[shortest] - signs[longest]),
    }
    figure, (left, right) = plot.panels(2)
    packets = stats.mean_ci(results["flow.cwnd_mean_packets"].mean("flow"))
    plot.estimates(left, queues, packets, "mean of both flows")
    plot.published(left, [int(queues[longest])], [50], "published: full")
    plot.labelled(left, "window", "queue of each link / packets", "window / packets")
    plot.estimates(right, queues, stats.mean_ci(results["fairness_ratio"]), "Jain's index")
    plot.labelled(right, "fairness", "queue of each link / packets", "Jain's index")
    for panel in (left, right):
        panel.set_xscale("log")
    return Findings(measured, rows, figure)


def adaptive(context: Context) -> Findings:
    """Our sender, which adapts to the deficit, compared with Table I's factors for each p."""
    results = context.simulate("nc")
    p = tcp.end_to_end_erasure(results[ERASURE].to_numpy(), context.parameter("links"))
    headers = 1 + context.parameter("header_bytes") / context.parameter("payload_bytes")
    goodput = stats.mean_ci(results["flow.goodput_bps"].mean("flow"))
    mean = goodput.sel(estimate="mean").to_numpy() * headers / 1e6
    published = [float(claim.value) for claim in context.experiment.claims]
    measured: dict[str, Measured] = {
        claim.id: float(value) for claim, value in zip(context.experiment.claims, mean, strict=True)
    }
    rows = [
        {"p": round(float(each), 4), "adaptive": float(ours), "Table I": theirs}
        for each, ours, theirs in zip(p, mean, published, strict=True)
    ]
    figure, (axes,) = plot.panels(1)
    plot.estimates(axes, p, goodput, "adaptive, headers counted", 1e6 / headers)
    plot.published(axes, p.tolist(), published, "published, R chosen for each p")
    title = "TCP/NC that is told nothing of p"
    plot.labelled(axes, title, "erasure probability p, end to end", "throughput / (Mbit/s)")
    return Findings(measured, rows, figure)


def receiver(context: Context) -> Findings:
    """Fig. 12 at R = 1.12 with smaller receive buffers, to see what the limit costs."""
    results = context.simulate("nc")
    bounds = 2 * results[BUFFER].to_numpy()
    goodput = stats.mean_ci(results["flow.goodput_bps"].mean("flow"))
    means = goodput.sel(estimate="mean").to_numpy() / 1e6
    timeouts = results["flow.timeouts"].mean(["replication", "flow"]).to_numpy()
    rows = [
        {"segments": int(bound), "goodput": float(mean), "time-outs": float(count),
         "over the bound before": float(mean / means[at - 1]) if at else float("nan")}
        for at, (bound, mean, count) in enumerate(zip(bounds, means, timeouts, strict=True))
    ]  # fmt: skip
    figure, (axes,) = plot.panels(1)
    plot.estimates(axes, bounds, goodput, "TCP/NC, R = 1.12, p = 0.0963", 1e6)
    axes.set_xscale("log", base=2)
    plot.labelled(axes, "bound of the receiver", "segments", "goodput / (Mbit/s)")
    return Findings({}, rows, figure)
