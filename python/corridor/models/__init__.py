"""Closed forms from the papers, vectorised over numpy arrays: one function per equation.

- `corridor.models.tcp`: TCP over erasures (KIM 2012, Eqs. 1 to 16).
- `corridor.models.tcp_nc`: TCP/NC (Eqs. 17 to 20), its Markov chain and redundancy factor.
- `corridor.models.base_stations`: users, base stations (Eqs. 21 and 22), power.
- `corridor.models.deficit`: how long a TCP/NC packet waits for the combination that repairs it.
- `corridor.models.relaying`: transmissions saved by relays that XOR opposite packets (CATWOMAN
  2013).
- `corridor.models.constrained`: stop-and-wait transfers over IEEE 802.15.4 (BETZLER 2012).
- `corridor.models.coding`: PlayNCool's budgets, optimal numbers of transmissions, coding gains.

An argument out of range raises `ValueError` with its name, its value and the range.
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
