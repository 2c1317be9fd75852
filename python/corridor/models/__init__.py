"""Closed forms of the papers, vectorised over numpy arrays: a function for each equation.

- `corridor.models.tcp`: TCP over erasures (KIM 2012, Eqs. 1 to 16).
- `corridor.models.tcp_nc`: TCP/NC (Eqs. 17 to 20), its Markov chain, its redundancy factor.
- `corridor.models.base_stations`: users, base stations (Eqs. 21 and 22), power.
- `corridor.models.deficit`: how long a packet of TCP/NC waits for the one that repairs it.
- `corridor.models.relaying`: what relays save that XOR opposite packets (CATWOMAN 2013).
- `corridor.models.constrained`: windows of one packet over IEEE 802.15.4 (BETZLER 2012).
- `corridor.models.coding`: PlayNCool's budgets, the transmission optimum, gains of coding.

Arguments out of range raise `ValueError` with the argument's name, its value, and the range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from corridor._lazy import lazily

__all__ = ["base_stations", "coding", "constrained", "deficit", "relaying", "tcp", "tcp_nc"]

if TYPE_CHECKING:
    from corridor.models import base_stations, coding, constrained, deficit, relaying, tcp, tcp_nc
else:
    __getattr__ = lazily(__name__, __all__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
