"""Advice, from simulation, on the coding of a tunnel across a measured link."""

from corridor.advise.link.coding import CODINGS_MAX, Coding, codings
from corridor.advise.link.file import GivenLink, is_link, read_link
from corridor.advise.link.search import LinkAdvice, advise_link

__all__ = [
    "CODINGS_MAX", "Coding", "GivenLink", "LinkAdvice", "advise_link", "codings", "is_link",
    "read_link",
]  # fmt: skip
