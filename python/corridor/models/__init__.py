"""Closed forms of the papers, vectorised over numpy arrays: a function for each equation.

- `corridor.models.tcp`: TCP over erasures (KIM 2012, Eqs. 1 to 16).
- `corridor.models.tcp_nc`: TCP/NC (Eqs. 17 to 20), its Markov chain, its redundancy factor.
- `corridor.models.base_stations`: users, base stations (Eqs. 21 and 22), power.
- `corridor.models.coding`: PlayNCool's budgets, the transmission optimum, gains of coding.

Arguments out of range raise `ValueError` with the argument's name, its value, and the range.
"""

from corridor.models import base_stations, coding, tcp, tcp_nc

__all__ = ["base_stations", "coding", "tcp", "tcp_nc"]
