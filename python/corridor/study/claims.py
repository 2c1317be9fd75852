"""What was published, what is accepted as agreement, and the verdict."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Measured = float | bool
#: ``pass``: accepted. ``fail``: not accepted. ``errata``: not accepted, as the errata prove that
#: it cannot be. ``odd``: accepted although the errata say that it cannot be. ``shown``: printed
#: beside ours, and not held against it. ``missing``: nothing was measured for it.
Word = Literal["pass", "fail", "errata", "odd", "shown", "missing"]


@dataclass(frozen=True)
class Claim:
    """A published value or statement."""

    #: Its number, as ``KIM-008``.
    id: str
    #: What is claimed.
    claim: str
    #: The published value: a number, or words.
    value: Any
    #: Unit of the value.
    unit: str
    #: Under which conditions.
    conditions: str
    #: What of ours is held against it.
    measure: str
    #: Least and largest measure that agree; none of both: only shown.
    low: float | None
    high: float | None
    #: The same for quick runs.
    quick_low: float | None
    quick_high: float | None
    #: Entry of docs/errata.md with the proof that the claim does not hold; empty if it does.
    errata: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Claim":
        """Read a row of ``published.json``.

        Raises
        ------
        KeyError
            For a row without number, claim, or value.
        """
        accepted = row.get("accepted", {})
        quick = row.get("accepted_quick", accepted)
        return cls(
            id=row["id"],
            claim=row["claim"],
            value=row["value"],
            unit=row.get("unit", ""),
            conditions=row.get("conditions", ""),
            measure=row.get("measure", ""),
            low=accepted.get("min"),
            high=accepted.get("max"),
            quick_low=quick.get("min"),
            quick_high=quick.get("max"),
            errata=row.get("errata", ""),
        )

    def judge(self, measured: Measured | None, quick: bool) -> "Verdict":
        """Hold a measure against the claim; true counts as 1, false as 0."""
        low, high = (self.quick_low, self.quick_high) if quick else (self.low, self.high)
        word: Word
        if low is None and high is None:
            word = "shown"
        elif measured is None or math.isnan(measured):
            word = "missing"
        else:
            agrees = (low is None or measured >= low) and (high is None or measured <= high)
            known: tuple[Word, Word] = ("odd", "errata") if self.errata else ("pass", "fail")
            word = known[0] if agrees else known[1]
        return Verdict(self, measured, low, high, word)


@dataclass(frozen=True)
class Verdict:
    """A claim, what was measured for it, and whether that agrees."""

    claim: Claim
    measured: Measured | None
    low: float | None
    high: float | None
    word: Word

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong: it agrees, or is known not to, or is only shown."""
        return self.word in ("pass", "errata", "shown")

    def row(self) -> dict[str, Any]:
        """Return it as a row for JSON."""
        return {
            "id": self.claim.id,
            "claim": self.claim.claim,
            "published": self.claim.value,
            "unit": self.claim.unit,
            "conditions": self.claim.conditions,
            "measure": self.claim.measure,
            "measured": self.measured,
            "accepted": {"min": self.low, "max": self.high},
            "verdict": self.word,
            "errata": self.claim.errata or None,
        }
