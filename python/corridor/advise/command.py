"""The command ``corridor-study advise``."""

import sys
from pathlib import Path
from typing import Annotated

import matplotlib as mpl
import typer
from rich.console import Console
from rich.text import Text

from corridor._progress import Bar
from corridor.advise import show
from corridor.advise.network import TRANSFER_PACKETS, NetworkError, read
from corridor.advise.search import BUDGET, advise


def advise_network(
    network: Annotated[
        Path,
        typer.Argument(help="TOML with [network] and [[flow]], or a table: from, to, LQI"),
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
            metavar="FIELD", help="Leave as it is: retries, backoff, window, rto, acks, metric"
        ),
    ] = None,
    packets: Annotated[
        int, typer.Option(min=1, help="Packets of a transfer where the file does not say")
    ] = TRANSFER_PACKETS,
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
    """Say which settings of a network of constrained nodes to change, and what that gains.

    Retries, backoff, window limit, retransmission timeout, acknowledgements and routing metric are
    searched by simulation: 96 settings, judged over histories that the search has not seen.
    """
    from corridor.study.run import dumps

    mpl.use("Agg")
    try:
        given = read(
            network, flows=[_pair(each) for each in flow or ()], together=together, packets=packets
        )
        with Bar("transfers", has_remaining=True) as bar:
            advice = advise(
                given, keep=keep or (), budget=budget, seed=seed, jobs=jobs,
                told=lambda done, total: bar.told("transfers", done, total),
            )  # fmt: skip
        if out:
            show.picture(advice).savefig(out, dpi=120)
    except (ValueError, OSError) as error:
        print(f"corridor-study: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    if as_json:
        print(dumps(show.row(advice)))
        return
    console = Console()
    show.show(console, advice)
    if out:
        console.print(Text(str(out), style="dim"), soft_wrap=True)


def _pair(words: str) -> tuple[str, str]:
    ends = words.split(":")
    if len(ends) != 2:
        raise NetworkError(f"--flow {words}: expected FROM:TO")
    return ends[0], ends[1]
