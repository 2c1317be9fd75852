"""Plans that are run elsewhere: the same values, also where a worker is lost."""

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from corridor import _batches, _native, sim

LINK = sim.Link(rate_bps=2_000_000, delay_ms=5, queue_packets=50)
TCP = sim.Tcp(preset="ns2", variant="reno", window_packets_max=20)


def plan(points: int) -> sim.Plan:
    sweep = sim.Sweep({"network.links.erasure_ratio": np.linspace(0, 0.1, points)})
    return sim.Plan(
        sim.Chain(2, LINK), [sim.Flow(0, 2, tcp=TCP)], duration_s=2, sweeps=[sweep], seed=7
    )


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_an_executor_gives_the_same(kind: str) -> None:
    here = sim.run(plan(40), replications=2)
    # Forked children of a process with threads may hang.
    with (
        ThreadPoolExecutor(2)
        if kind == "threads"
        else ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor
    ):
        told: list[tuple[int, int]] = []
        there = sim.run(
            plan(40), replications=2, executor=executor, progress=lambda *at: told.append(at)
        )
    assert there.identical(here)
    assert told[-1] == (80, 80)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_another_version_is_refused() -> None:
    asked = (plan(1).text(), "", None)
    with pytest.raises(ValueError, match=r"worker .*: code_version = .*, expected other: install"):
        _batches.run_batch(asked, 0, 1, "other")


def test_runs_that_there_are_not_are_refused() -> None:
    runs = _native.PlanRuns(plan(3).text(), "", 2)
    assert (runs.points, runs.replications) == (3, 2)
    with pytest.raises(ValueError, match="end = 7: expected 0 to 6"):
        runs.run(0, 7, 1, None)
    with pytest.raises(ValueError, match="end = 2: expected 3 to 6"):
        runs.run(3, 2, 1, None)


def test_an_error_elsewhere_ends_the_run() -> None:
    class Broken(ThreadPoolExecutor):
        def submit(self, *_: object, **__: object) -> object:  # type: ignore[override]
            return super().submit(_fail)

    with Broken(1) as executor, pytest.raises(RuntimeError, match="no disk"):
        sim.run(plan(4), executor=executor)


def _fail() -> None:
    raise RuntimeError("no disk")


def test_a_cluster_gives_the_same_though_a_worker_is_killed() -> None:
    distributed = pytest.importorskip("distributed")
    here = sim.run(plan(1000))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        first = next(iter(client.run(os.getpid).values()))
        killed = threading.Event()

        def told(done: int, total: int) -> None:
            if done > total // 4 and not killed.is_set():
                killed.set()
                os.kill(first, signal.SIGKILL)

        there = sim.run(plan(1000), executor=client, progress=told)
    assert killed.is_set()
    assert there.identical(here)
