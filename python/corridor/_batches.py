"""Run plans in batches on executors such as `concurrent.futures` or a Dask cluster."""

from __future__ import annotations

import hashlib
import os
import queue
import socket
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from corridor import _native

#: A plan's text, the directory of its traces, and the replications per point.
Asked = tuple[str, str, int | None]
#: Point and replication of a run.
Run = tuple[int, int]

#: Maximum batches per plan: enough that losing a worker costs little, and that the last batches end
#: together.
BATCHES_MAX = 512
#: With a stop rule: runs in progress per worker, so that each always has another to go on with, but
#: few runs are superfluous.
AHEAD = 2
#: How often a cluster retries a batch whose worker is lost.
RETRIES = 10


class Anywhere(Protocol):
    """An executor: one of `concurrent.futures`, or a Dask client."""

    def submit(self, function: Any, /, *arguments: Any) -> Any:
        """Submit a call, and return its future."""


class _Future(Protocol):
    def result(self) -> Any: ...
    def cancel(self) -> Any: ...
    def add_done_callback(self, done: Callable[[Any], object], /) -> object: ...


@lru_cache(maxsize=4)
def _runs(asked: Asked) -> _native.PlanRuns:
    """Parse a plan once for all batches that a worker gets."""
    return _native.PlanRuns(*asked)


def run_batch(asked: Asked, batch: list[Run], version: str) -> bytes:
    """Run a batch of a plan's runs; called on the workers.

    Raises
    ------
    ValueError
        If the worker has another version of the simulator.
    """
    if version != _native.CODE_VERSION:
        raise ValueError(
            f"worker {socket.gethostname()}: code_version = {_native.CODE_VERSION}, expected "
            f"{version}: install the same corridor there"
        )
    return _runs(asked).make(batch)


def run_batches(
    executor: Anywhere,
    asked: Asked,
    runs: _native.PlanRuns,
    told: Callable[[int, int], object],
) -> None:
    """Make all missing runs on the executor."""
    done, expected = runs.progress
    size, most = 1, AHEAD * _workers(executor)
    if runs.is_fixed:
        size, most = max(1, -(-(expected - done) // BATCHES_MAX)), BATCHES_MAX
    finished: queue.SimpleQueue[_Future] = queue.SimpleQueue()
    under_way: dict[_Future, list[Run]] = {}
    try:
        while not runs.is_complete:
            while len(under_way) < most and (batch := runs.next_runs(size)):
                future = _submit(executor, asked, batch, runs.key(batch))
                under_way[future] = batch
                future.add_done_callback(finished.put)
            future = finished.get()
            runs.take(under_way.pop(future), future.result())
            told(*runs.progress)
    finally:
        # Batches the stop rule no longer needs, or all of them after an error.
        for future in under_way:
            future.cancel()


def _workers(executor: Anywhere) -> int:
    """Return the number of batches an executor runs at once, as far as it reports it."""
    if hasattr(executor, "ncores"):
        return max(1, sum(int(cores) for cores in executor.ncores().values()))
    return int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)


def _submit(executor: Anywhere, asked: Asked, batch: list[Run], key: str) -> _Future:
    """Submit a batch; a cluster identifies it by its content, and does not run it twice."""
    submit: Any = executor.submit
    named = {}
    if hasattr(executor, "scheduler_info"):
        content = hashlib.sha256(key.encode()).hexdigest()
        named = {"key": f"corridor-{content[:32]}", "retries": RETRIES}
    future: _Future = submit(run_batch, asked, batch, _native.CODE_VERSION, **named)
    return future
