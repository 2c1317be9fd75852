"""A progress bar on stderr for work that takes longer than two seconds."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: Delay before the bar appears, seconds.
AFTER_S = 2.0


class Bar:
    """A progress bar, shown if stderr is a terminal.

    Parameters
    ----------
    name
        Name of the first task.
    after_s
        Delay before the bar appears, seconds.
    has_remaining
        Whether to show the estimated time left, which only suits steps of similar duration.

    Examples
    --------
    >>> with Bar("runs") as bar:
    ...     bar.told("runs", 1, 2)
    """

    def __init__(self, name: str, after_s: float = AFTER_S, *, has_remaining: bool = False) -> None:
        self._has_remaining = has_remaining
        self._state: tuple[str, int, int | None] = (name, 0, None)
        self._shown: tuple[Progress, TaskID] | None = None
        self._lock = threading.Lock()
        self.timer = threading.Timer(after_s, self._show)
        self.timer.daemon = True
        self._over = False

    def __enter__(self) -> Bar:
        self.timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.timer.cancel()
        with self._lock:
            self._over = True
            if self._shown is not None:
                self._shown[0].stop()

    def told(self, name: str, done: int, total: int | None) -> None:
        """Report the current task, how much is done, and the total, if known."""
        with self._lock:
            self._state = (name, done, total)
            self._update()

    def _show(self) -> None:
        # Imported late: most runs end before the bar appears.
        from rich import progress
        from rich.console import Console

        with self._lock:
            console = Console(stderr=True)
            # Elsewhere rich prints no bar, but an empty line at its end.
            if self._over or not console.is_terminal:
                return
            remaining = [progress.TimeRemainingColumn()] if self._has_remaining else []
            bar = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(bar_width=24),
                progress.MofNCompleteColumn(),
                progress.TimeElapsedColumn(),
                *remaining,
                console=console,
                transient=True,
                # Leave stdout and stderr alone: what the caller prints meanwhile belongs there.
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._shown = (bar, bar.add_task("", total=None))
            self._update()
            bar.start()

    def _update(self) -> None:
        if self._shown is not None:
            (bar, task), (name, done, total) = self._shown, self._state
            if bar.tasks[0].description != name:
                bar.reset(task, total=total, description=name)
            bar.update(task, completed=done, total=total)
