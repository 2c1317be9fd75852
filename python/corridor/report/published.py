"""The papers, their claims, and the recorded result of each."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corridor.study.experiment import Experiment, ExperimentError
from corridor.study.readmes import result

#: File with all claims, in the folder of the experiments.
CLAIMS = "claims.json"
#: Status of a claim without a recorded result.
NOT_CHECKED = "not checked"
#: Statuses from worst to best, for a claim with several results.
_ORDER = ("fails", "unexpected", "missing", "cannot hold", "differs", NOT_CHECKED, "holds")


@dataclass(frozen=True)
class Paper:
    """A paper that we reproduce."""

    #: Prefix of its claims' numbers, such as ``KIM``.
    key: str
    #: Short name.
    name: str
    title: str
    authors: str
    venue: str
    #: Figures and tables with nothing to reproduce, with reasons.
    aside: str

    @property
    def prefix(self) -> str:
        """Prefix of its experiments' names."""
        return f"{self.key.lower()}-"


@dataclass(frozen=True)
class Entry:
    """A row of the list: a claim as published, and all results compared with it."""

    #: Number, such as ``KIM-008``.
    id: str
    #: Key of its paper.
    paper: str
    #: The claim, in words.
    claim: str
    #: Published value: a number, or words.
    value: Any
    unit: str
    conditions: str
    #: Place in the paper: a figure, table, or section.
    figure: str
    #: The test that checks it, and the resulting status, if no experiment does.
    held: Mapping[str, str] | None
    #: Recorded rows for it, each with the name of its experiment.
    results: tuple[tuple[str, Mapping[str, Any]], ...]

    @property
    def own(self) -> Mapping[str, Any] | None:
        """The recorded row with exactly this claim's number, without a suffix."""
        return next((row for _, row in self.results if row["id"] == self.id), None)

    @property
    def status(self) -> str:
        """Its status: that of the row with its number, or the worst of its parts."""
        if self.own is not None:
            return str(self.own["status"])
        found = [row["status"] for _, row in self.results]
        if found:
            return next((status for status in _ORDER if status in found), found[0])
        return self.held["status"] if self.held else NOT_CHECKED


@dataclass(frozen=True)
class Published:
    """All papers with all their claims."""

    papers: tuple[Paper, ...]
    entries: tuple[Entry, ...]

    def of(self, paper: Paper) -> list[Entry]:
        """Return the claims of a paper."""
        return [entry for entry in self.entries if entry.paper == paper.key]


def read(folder: Path, experiments: Iterable[Experiment]) -> Published:
    """Read the list of claims in a folder of experiments, and their recorded results.

    Raises
    ------
    ExperimentError
        If the list is missing or malformed.
    """
    rows: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for experiment in experiments:
        for row in (result(experiment) or {"claims": []})["claims"]:
            rows.setdefault(row["id"], []).append((experiment.name, row))
    path = folder / CLAIMS
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        papers = tuple(Paper(**paper) for paper in listed["papers"])
        entries = tuple(_entry(claim, rows) for claim in listed["claims"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExperimentError(f"{path}: {error!r}: expected papers, and their claims") from error
    return Published(papers, entries)


def _entry(claim: Mapping[str, Any], rows: Mapping[str, Any]) -> Entry:
    number = claim["id"]
    # A claim may be checked in parts: KIM-046 at one loss ratio, KIM-046-2 at another.
    parts = [name for name in rows if name == number or name.startswith(f"{number}-")]
    return Entry(
        id=number,
        paper=claim["paper"],
        claim=claim["claim"],
        value=claim["value"],
        unit=claim.get("unit", ""),
        conditions=claim.get("conditions", ""),
        figure=claim.get("figure", ""),
        held=claim.get("held"),
        results=tuple(row for name in parts for row in rows[name]),
    )


def counts(statuses: Iterable[str]) -> Counter[str]:
    """Return the count of each status."""
    return Counter(statuses)
