"""Plans that are run in batches, by whatever executes functions elsewhere."""

from __future__ import annotations

import hashlib
import os
import queue
import socket
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from corridor import _native

#: Text of a plan, the folder of its traces, and replications of each point.
Asked = tuple[str, str, int | None]
#: Point and replication of a run.
Run = tuple[int, int]

#: Most batches of a plan: enough that a worker that is lost costs little, and that the last ones
#: end together.
BATCHES_MAX = 512
#: Where a stop rule decides what is asked for: runs under way for each worker, so that there is
#: always one to go on with, and little is made that is not asked for.
AHEAD = 2
#: How often a batch is tried on a cluster whose workers are lost.
RETRIES = 10


class Anywhere(Protocol):
    """What executes functions elsewhere: of `concurrent.futures`, or a client of Dask."""

    def submit(self, function: Any, /, *arguments: Any) -> Any:
        """Hand in a call, and return what becomes its result."""


class _Future(Protocol):
    def result(self) -> Any: ...
    def cancel(self) -> Any: ...
    def add_done_callback(self, done: Callable[[Any], object], /) -> object: ...


@lru_cache(maxsize=4)
def _runs(asked: Asked) -> _native.PlanRuns:
    """Read a plan once for all batches that a worker gets."""
    return _native.PlanRuns(*asked)


def run_batch(asked: Asked, batch: list[Run], version: str) -> bytes:
    """Make some runs of a plan; what workers call.

    Raises
    ------
    ValueError
        Where the worker's simulator is another one.
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
    """Make all runs elsewhere that are missing."""
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
        # Those that a stop rule did not ask for in the end, or all after an error.
        for future in under_way:
            future.cancel()


def _workers(executor: Anywhere) -> int:
    """Return how many batches an executor makes at once, as far as it tells."""
    if hasattr(executor, "ncores"):
        return max(1, sum(int(cores) for cores in executor.ncores().values()))
    return int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)


def _submit(executor: Anywhere, asked: Asked, batch: list[Run], key: str) -> _Future:
    """Hand in a batch; a cluster knows it by its content, and does not make it twice."""
    submit: Any = executor.submit
    named = {}
    if hasattr(executor, "scheduler_info"):
        content = hashlib.sha256(key.encode()).hexdigest()
        named = {"key": f"corridor-{content[:32]}", "retries": RETRIES}
    future: _Future = submit(run_batch, asked, batch, _native.CODE_VERSION, **named)
    return future
