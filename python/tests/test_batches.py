"""Plans run on executors give the same values, even if a worker is lost."""

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

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
    # Forked children of a multi-threaded process may hang.
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
        _batches.run_batch(asked, [(0, 0)], "other")


def test_runs_that_there_are_not_are_refused() -> None:
    runs = _native.PlanRuns(plan(3).text(), "", 2)
    assert (runs.points, runs.replications) == (3, 2)
    with pytest.raises(ValueError, match="point = 3: expected less than 3"):
        runs.make([(3, 0)])
    with pytest.raises(ValueError, match="replication = 2: expected less than 2"):
        runs.measure(0, 2)
    with pytest.raises(ValueError, match="made = 1: expected 2 runs"):
        runs.take([(0, 0), (0, 1)], runs.make([(0, 0)]))


STOP = sim.Stop(
    "goodput_bps", ci95_ratio=0.3, replications_min=3, replications_max=120,
)  # fmt: skip


def test_a_stop_rule_asks_for_the_same_wherever_runs_are_made() -> None:
    given = replace(plan(4), stop=STOP)
    here = sim.run(given, jobs=1)
    counts = here["goodput_bps"].notnull().sum("replication").to_numpy()
    # Without losses, runs only differ in when flows start; with losses, they differ.
    assert counts[0] == 3
    assert 3 < counts.max() < 120
    assert here.sizes["replication"] == counts.max()
    assert sim.run(given, jobs=3).identical(here)
    with ThreadPoolExecutor(3) as executor:
        assert sim.run(given, executor=executor).identical(here)


def test_a_stop_rule_that_gives_up_is_told() -> None:
    given = replace(plan(2), stop=replace(STOP, ci95_ratio=1e-6, replications_max=4))
    with pytest.warns(UserWarning, match=r"the stop rule gave up at points .*1"):
        results = sim.run(given)
    assert results.sizes["replication"] == 4


def test_what_was_done_before_an_interruption_is_not_made_again(tmp_path: Path) -> None:
    def until(most: int) -> Iterator[None]:
        for _ in range(most):
            yield
        raise KeyboardInterrupt

    whole = sim.run(plan(10), replications=2)
    some = until(6)
    with pytest.raises(KeyboardInterrupt):
        sim.run(plan(10), replications=2, jobs=1, out=tmp_path, progress=lambda *_: next(some))
    before = (tmp_path / "journal.jsonl").read_text().splitlines()
    assert 7 <= len(before) < 20
    told: list[tuple[int, int]] = []
    again = sim.run(plan(10), replications=2, out=tmp_path, progress=lambda *at: told.append(at))
    assert again.identical(whole)
    assert (told[0], told[-1]) == ((len(before) + 1, 20), (20, 20))
    assert (tmp_path / "journal.jsonl").read_text().splitlines()[: len(before)] == before
    assert (tmp_path / "plan.toml").read_text() == plan(10).text()
    # Nothing is left to run, here or elsewhere.
    with ThreadPoolExecutor(1) as executor:
        assert sim.run(plan(10), replications=2, out=tmp_path, executor=executor).identical(whole)
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 20
    with pytest.raises(ValueError, match=r'expected results of plan "other", found those of'):
        sim.run(replace(plan(10), name="other"), out=tmp_path)


def test_an_error_elsewhere_ends_the_run() -> None:
    class Broken(ThreadPoolExecutor):
        def submit(self, *_: object, **__: object) -> object:  # type: ignore[override]
            return super().submit(_fail)

    with Broken(1) as executor, pytest.raises(RuntimeError, match="no disk"):
        sim.run(plan(4), executor=executor)


def _fail() -> None:
    raise RuntimeError("no disk")


def lines(directory: Path) -> list[str]:
    """Return all results in a fixed order: equal lines mean equal results."""
    return sorted((directory / "journal.jsonl").read_text().splitlines())


def test_a_cluster_gives_the_same_though_a_worker_is_killed(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    here = sim.run(plan(1000), out=tmp_path / "here")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        first = next(iter(client.run(os.getpid).values()))
        killed = threading.Event()

        def told(done: int, total: int) -> None:
            if done > total // 4 and not killed.is_set():
                killed.set()
                os.kill(first, signal.SIGKILL)

        there = sim.run(plan(1000), executor=client, progress=told, out=tmp_path / "there")
    assert killed.is_set()
    assert there.identical(here)
    assert lines(tmp_path / "there") == lines(tmp_path / "here")
