"""Claims: what was published, what counts as agreement and who decided that, and the outcome."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

Measured = float | bool
#: Kinds of claims. ``number``: a published value. ``ordering``: a comparison of two things, as a
#: ratio that is 1 where both are equal. ``trend``: a change whose sign counts. ``equality``: a
#: value that is met to within a margin, or a statement that is true or false. ``parameter``: a
#: choice, by the paper and by us. ``identity``: follows from how it is computed, including
#: definitions. The last two cannot be refuted by results, and do not count as passed; a parameter
#: that we set differently, with a cause, differs.
Kind = Literal["number", "ordering", "trend", "equality", "parameter", "identity"]
#: Origin of a tolerance: the paper, the confidence interval of runs, or judgement.
Chooser = Literal["paper", "runs", "judgement"]
#: Outcome of a claim. ``holds``; ``differs``: does not hold, for a stated cause; ``cannot hold``:
#: does not hold, and the errata prove that it cannot; ``parameter`` and ``identity``, as above;
#: ``not checked``: nothing of ours is compared with it, or quick runs are too few to tell. Errors
#: are ``fails``: does not hold, without a stated cause, or differs in another way than stated;
#: ``unexpected``: holds although it is said not to; ``missing``: nothing was measured for it.
Status = Literal[
    "holds",
    "differs",
    "cannot hold",
    "parameter",
    "identity",
    "not checked",
    "fails",
    "unexpected",
    "missing",
]
#: Statuses that indicate an error.
WRONG: tuple[Status, ...] = ("fails", "unexpected", "missing")
#: Factor by which mutation tests falsify a number.
WRONG_FACTOR = 1.3


@dataclass(frozen=True)
class Range:
    """Values from ``low`` to ``high``; None: unbounded."""

    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Range":
        """Read ``{"min": 1, "max": 2}``, either of which may be missing."""
        return cls(row.get("min"), row.get("max"))

    @property
    def is_open(self) -> bool:
        """Whether it contains all values."""
        return self.low is None and self.high is None

    def __contains__(self, value: float) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def row(self) -> dict[str, float | None]:
        """Return it as JSON."""
        return {"min": self.low, "max": self.high}


@dataclass(frozen=True)
class Claim:
    """A published value or statement."""

    #: Number, such as ``KIM-008``.
    id: str
    #: The claim, in words.
    claim: str
    #: Published value: a number, or words.
    value: Any
    #: Unit of the value.
    unit: str
    #: Conditions.
    conditions: str
    #: Kind of claim.
    kind: Kind
    #: Which of our measures is compared with it.
    measure: str
    #: Range of measures that agree; open: none is compared.
    accepted: Range
    #: The same for quick runs.
    accepted_quick: Range
    #: Who chose the bounds, the reason, and the day: before the runs that they judge.
    by: Chooser | None
    why: str
    when: str
    #: Why the bounds differ from those in force for the recorded runs; empty if they do not.
    changed: str
    #: Why a number falsified by `WRONG_FACTOR` may pass; empty if it may not.
    wide: str
    #: Why ours differs; empty if it does not.
    differs: str
    #: Expected range of ours where it differs, or cannot hold.
    ours: Range
    #: Why ours differs in the lab, if only there.
    differs_lab: str
    #: Entry of docs/errata.md with the proof that the claim cannot hold; empty if it can.
    errata: str
    #: Plan settings compared with it: see `corridor.study.settings`.
    reads: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Claim":
        """Read a row of ``published.json``.

        Raises
        ------
        KeyError
            For a row without number, claim, kind or value.
        ValueError
            For an unknown kind or origin of a tolerance, or bounds without one.
        """
        accepted = row.get("accepted", {})
        claim = cls(
            id=row["id"],
            claim=row["claim"],
            value=row["value"],
            unit=row.get("unit", ""),
            conditions=row.get("conditions", ""),
            kind=row["kind"],
            measure=row.get("measure", ""),
            accepted=Range.of(accepted),
            accepted_quick=Range.of(row.get("accepted_quick", accepted)),
            by=accepted.get("by"),
            why=accepted.get("why", ""),
            when=accepted.get("when", ""),
            changed=accepted.get("changed", ""),
            wide=accepted.get("wide", ""),
            differs=row.get("differs", ""),
            ours=Range.of(row.get("ours", {})),
            differs_lab=row.get("differs_lab", ""),
            errata=row.get("errata", ""),
            reads=tuple(row.get("reads", ())),
        )
        claim._check()
        return claim

    def _check(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(
                f"{self.id}: kind = {self.kind!r}: expected one of {', '.join(get_args(Kind))}"
            )
        if self.is_found and not self.accepted.is_open and self.by not in get_args(Chooser):
            expected = ", ".join(get_args(Chooser))
            raise ValueError(f"{self.id}: accepted.by = {self.by!r}: expected one of {expected}")
        if self.by in ("runs", "judgement") and not self.why:
            raise ValueError(f"{self.id}: accepted.why = nothing: expected why {self.by} says so")
        if self.by and not self.when:
            raise ValueError(f"{self.id}: accepted.when = nothing: expected a day")
        if self.errata and self.differs:
            raise ValueError(
                f"{self.id}: differs = {self.differs!r}: expected nothing beside errata"
            )

    @property
    def is_found(self) -> bool:
        """Whether results can refute it."""
        return self.kind not in ("parameter", "identity")

    def judge(
        self,
        measured: Measured | None,
        quick: bool = False,
        half_width: float | None = None,
        *,
        is_whole: bool = True,
    ) -> "Verdict":
        """Judge a measure by the claim; true counts as 1, false as 0.

        Parameters
        ----------
        measured
            Measured value; None or NaN: nothing was measured.
        quick
            Whether it is from quick runs, which have bounds of their own.
        half_width
            Half-width of its 95 % interval; None: unknown.
        is_whole
            Whether all replications were run: then an ordering or a trend must hold over the whole
            interval.
        """
        accepted = self.accepted_quick if quick else self.accepted
        decides = half_width if is_whole and not quick else None
        status = self._status(measured, accepted, quick, decides)
        return Verdict(self, measured, accepted, status, half_width)

    def _status(
        self, measured: Measured | None, accepted: Range, quick: bool, half_width: float | None
    ) -> Status:
        if accepted.is_open:
            return "not checked"
        if measured is None or math.isnan(measured):
            return "missing"
        agrees = measured in accepted
        if agrees and half_width and self.kind in ("ordering", "trend"):
            # An ordering that chance can explain does not count.
            agrees = all(measured + side in accepted for side in (-half_width, half_width))
        if not self.is_found and not self.differs:
            return self.kind if agrees else "fails"  # type: ignore[return-value]
        if agrees and (self.errata or self.differs):
            # Quick runs have wider bounds, and cannot tell the two apart.
            return "not checked" if quick else "unexpected"
        if agrees:
            return "holds"
        if not quick and measured not in self.ours:
            return "fails"
        if self.errata:
            return "cannot hold"
        return "differs" if self.differs else "fails"

    def in_lab(self) -> "Claim":
        """Return the claim as judged in the lab, where it may differ for another cause."""
        return replace(self, differs=self.differs_lab or self.differs, ours=Range())

    def wrong(self, measured: Measured) -> list[float]:
        """Return measures that would be wrong, to test the check.

        Numbers multiplied and divided by 1.3, or one in place of zero; orderings swapped; trends
        reversed; statements negated; equalities shifted by twice their margin to either side, exact
        ones like numbers; nothing for claims that cannot be refuted.
        """
        value, accepted = float(measured), self.accepted
        match self.kind:
            case "number":
                return _other(value)
            case "ordering":
                return [1 / value if value else math.inf]
            case "trend":
                return [-value]
            case "equality":
                if (accepted.low, accepted.high) == (1, 1):
                    return [1 - value]
                low = -math.inf if accepted.low is None else accepted.low
                high = math.inf if accepted.high is None else accepted.high
                if low == high:
                    return _other(value)
                if math.isinf(low):
                    # The margin of a difference, for which 0 is exact.
                    return [value + 2 * high]
                return [value + (high - low), value - (high - low)]
        return []


def _other(value: float) -> list[float]:
    """Return numbers other than this one."""
    return [value * WRONG_FACTOR, value / WRONG_FACTOR] if value else [1.0]


@dataclass(frozen=True)
class Verdict:
    """A claim, the measure for it, and the outcome."""

    claim: Claim
    measured: Measured | None
    #: Range of measures that agree.
    accepted: Range
    status: Status
    #: Half-width of the measure's 95 % interval; None: unknown.
    half_width: float | None = None

    @property
    def is_well(self) -> bool:
        """Whether there is no error: it holds, is said not to, or cannot be refuted."""
        return self.status not in WRONG

    @property
    def is_certain(self) -> bool:
        """Whether no bound of agreement lies within the measure's interval.

        More runs cannot change a measure without an interval, or with an open range.
        """
        if self.half_width is None or self.measured is None or not self.claim.is_found:
            return True
        bounds = (self.accepted.low, self.accepted.high)
        return all(b is None or abs(b - self.measured) >= self.half_width for b in bounds)

    @property
    def cause(self) -> str:
        """Why it does not hold, if so."""
        return {
            "differs": self.claim.differs,
            "cannot hold": f"docs/errata.md, {self.claim.errata}",
        }.get(self.status, "")

    def row(self) -> dict[str, Any]:
        """Return it as a row for JSON."""
        claim = self.claim
        changed = {"changed": claim.changed} if claim.changed else {}
        return {
            "id": claim.id,
            "claim": claim.claim,
            "published": claim.value,
            "unit": claim.unit,
            "conditions": claim.conditions,
            "kind": claim.kind,
            "measure": claim.measure,
            "measured": self.measured,
            "half_width": self.half_width,
            "accepted": {
                **self.accepted.row(),
                "by": claim.by,
                "why": claim.why or None,
                "when": claim.when or None,
                **changed,
            },
            "status": self.status,
            "cause": self.cause or None,
            "errata": claim.errata or None,
        }
