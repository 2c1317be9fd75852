"""Advice, from simulation, on the settings of a network of constrained nodes."""

from corridor.advise.network import Given, NetworkError, read
from corridor.advise.search import Advice, advise
from corridor.advise.settings import GRID_MAX, Setting, grid

__all__ = ["GRID_MAX", "Advice", "Given", "NetworkError", "Setting", "advise", "grid", "read"]
