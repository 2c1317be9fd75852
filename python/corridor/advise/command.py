"""The command ``corridor-study advise``."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import matplotlib as mpl
import typer
from matplotlib.figure import Figure
from rich.console import Console
from rich.text import Text

from corridor._progress import Bar
from corridor.advise import show
from corridor.advise.link import advise_link, is_link, read_link
from corridor.advise.link import show as link_show
from corridor.advise.link.search import SOUGHT
from corridor.advise.network import TRANSFER_PACKETS, Given, NetworkError, read
from corridor.advise.search import BUDGET, advise


def advise_network(
    network: Annotated[
        Path,
        typer.Argument(
            help="TOML with [network] and [[flow]], or a table: from, to, LQI; or TOML with [link]"
        ),
    ],
    flow: Annotated[
        list[str] | None,
        typer.Option(metavar="FROM:TO", help="Of a table: transfers (default: all to the first)"),
    ] = None,
    together: Annotated[
        bool, typer.Option("--together", help="All transfers at the same time")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="Leave as it is: retries, backoff, window, rto, acks, metric, or a coding's key",
        ),
    ] = None,
    packets: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Packets of a transfer where the file does not say (default: {TRANSFER_PACKETS})",
        ),
    ] = None,
    sought: Annotated[
        str, typer.Option("--for", help="Of a link, what matters: goodput, delay or air")
    ] = "goodput",
    budget: Annotated[
        float, typer.Option(help="What may be spent: millions of the simulator's events")
    ] = BUDGET,
    seed: Annotated[int, typer.Option(help="Which histories of the network are drawn")] = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Threads (default: as many as processors)")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Leave the picture of what was tried in this file")
    ] = None,
) -> None:
    """Advise which settings of a network of constrained nodes to change, and what that gains.

    The search simulates 96 combinations of retries, backoff, window limit, retransmission timeout,
    acknowledgements and routing metric, and judges the best over histories that the search did not
    use. For a file with [link], which describes a tunnel across a measured link, it searches the
    coding instead.
    """
    from corridor.study.run import dumps

    mpl.use("Agg")
    try:
        with Bar("runs", has_remaining=True) as bar:
            options: _Options = {
                "keep": keep or (), "budget": budget, "seed": seed, "jobs": jobs,
                "told": lambda done, total: bar.told("runs", done, total),
            }  # fmt: skip
            if is_link(network):
                if flow or together:
                    raise NetworkError("--flow, --together: expected none: a link has two ends")
                if packets is not None:
                    raise NetworkError(f"--packets {packets}: expected none: a link has a load")
                said = _of_link(network, sought, options)
            else:
                if sought != SOUGHT[0]:
                    raise NetworkError(f"--for {sought}: expected a file with [link]")
                pairs = [_pair(each) for each in flow or ()]
                given = read(
                    network, flows=pairs, together=together, packets=packets or TRANSFER_PACKETS
                )
                said = _of_network(given, options)
        if out:
            said.picture().savefig(out, dpi=120)
    except (ValueError, OSError) as error:
        print(f"corridor-study: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    if as_json:
        print(dumps(said.row()))
        return
    console = Console()
    said.show(console)
    if out:
        console.print(Text(str(out), style="dim"), soft_wrap=True)


class _Options(TypedDict):
    """Options of a search, whatever it searches."""

    keep: Sequence[str]
    budget: float
    seed: int
    jobs: int | None
    told: Callable[[int, int], object]


@dataclass(frozen=True)
class _Said:
    """Advice in a form that can be shown."""

    row: Callable[[], dict[str, Any]]
    picture: Callable[[], Figure]
    show: Callable[[Console], None]


def _of_network(given: Given, options: _Options) -> _Said:
    advice = advise(given, **options)
    return _Said(
        lambda: show.row(advice),
        lambda: show.picture(advice),
        lambda console: show.show(console, advice),
    )


def _of_link(path: Path, sought: str, options: _Options) -> _Said:
    advice = advise_link(read_link(path), sought=sought, **options)
    return _Said(
        lambda: link_show.row(advice),
        lambda: link_show.picture(advice),
        lambda console: link_show.show(console, advice),
    )


def _pair(words: str) -> tuple[str, str]:
    ends = words.split(":")
    if len(ends) != 2:
        raise NetworkError(f"--flow {words}: expected FROM:TO")
    return ends[0], ends[1]
