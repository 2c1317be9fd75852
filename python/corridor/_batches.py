"""Runs of a plan in batches, by whatever executes functions elsewhere."""

from __future__ import annotations

import hashlib
import queue
import socket
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from corridor import _native

#: What runs measured, by column and run; and the long tables: of each row its run, and its values
#: by column and row.
Ran = tuple[NDArray[np.float64], dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]]

#: Text of a plan, the folder of its traces, and replications of each point.
Asked = tuple[str, str, int | None]

#: Most batches of a plan: enough that a worker that is lost costs little, and that the last ones
#: end together.
BATCHES_MAX = 512
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


def run_batch(asked: Asked, first: int, end: int, version: str) -> Ran:
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
    return _runs(asked).run(first, end, 1, None)


def run_batches(
    executor: Anywhere, asked: Asked, runs: int, told: Callable[[int, int], object]
) -> Ran:
    """Make all runs of a plan elsewhere, and return what they measured."""
    _native.PlanRuns.check_rows(_runs(asked).rows_max)
    size = -(-runs // BATCHES_MAX)
    done: queue.SimpleQueue[_Future] = queue.SimpleQueue()
    spans: dict[_Future, tuple[int, int]] = {}
    found: dict[int, Ran] = {}
    try:
        for first in range(0, runs, size):
            span = (first, min(first + size, runs))
            future = _submit(executor, asked, span)
            spans[future] = span
        for future in spans:
            future.add_done_callback(done.put)
        finished = rows = 0
        while len(found) < len(spans):
            future = done.get()
            first, end = spans[future]
            found[first] = future.result()
            finished += end - first
            rows += sum(len(numbers) for numbers, _ in found[first][1].values())
            _native.PlanRuns.check_rows(rows)
            told(finished, runs)
    except BaseException:
        for future in spans:
            future.cancel()
        raise
    ran = [found[first] for first in sorted(found)]
    tables = {
        name: (
            np.concatenate([tables[name][0] for _, tables in ran]),
            np.concatenate([tables[name][1] for _, tables in ran], axis=1),
        )
        for name in ran[0][1]
    }
    return np.concatenate([values for values, _ in ran], axis=1), tables


def _submit(executor: Anywhere, asked: Asked, span: tuple[int, int]) -> _Future:
    """Hand in a batch; a cluster knows it by its content, and does not make it twice."""
    given = (asked, *span, _native.CODE_VERSION)
    submit: Any = executor.submit
    named = {}
    if hasattr(executor, "scheduler_info"):
        content = hashlib.sha256(repr(given).encode()).hexdigest()
        named = {"key": f"corridor-{content[:32]}", "retries": RETRIES}
    future: _Future = submit(run_batch, *given, **named)
    return future
