"""What was published: the papers, their claims, and what is recorded of each."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corridor.study.experiment import Experiment, ExperimentError
from corridor.study.readmes import result

#: The list of all claims, in the folder of the experiments.
CLAIMS = "claims.json"
#: Status of a claim for which nothing was recorded.
NOT_CHECKED = "not checked"
#: From the worst to the best, for a claim that several results are held against.
_ORDER = ("fails", "unexpected", "missing", "cannot hold", "differs", NOT_CHECKED, "holds")


@dataclass(frozen=True)
class Paper:
    """A paper that is repeated."""

    #: What its claims' numbers begin with, as ``KIM``.
    key: str
    #: Short name.
    name: str
    title: str
    authors: str
    venue: str
    #: Which figures and tables hold nothing to repeat, and why.
    aside: str

    @property
    def prefix(self) -> str:
        """What names of its experiments begin with."""
        return f"{self.key.lower()}-"


@dataclass(frozen=True)
class Entry:
    """A row of the list: a claim as published, and every result held against it."""

    #: Its number, as ``KIM-008``.
    id: str
    #: Key of its paper.
    paper: str
    #: What is claimed.
    claim: str
    #: The published value: a number, or words.
    value: Any
    unit: str
    conditions: str
    #: Where in the paper: a figure, table, or section.
    figure: str
    #: The test that holds it, and with which status, where no experiment does.
    held: Mapping[str, str] | None
    #: Recorded rows about it, each with the name of its experiment.
    results: tuple[tuple[str, Mapping[str, Any]], ...]

    @property
    def own(self) -> Mapping[str, Any] | None:
        """The recorded row with the number of the claim itself, without a suffix."""
        return next((row for _, row in self.results if row["id"] == self.id), None)

    @property
    def status(self) -> str:
        """What came of it: of the row with its number, or the worst of its parts."""
        if self.own is not None:
            return str(self.own["status"])
        found = [row["status"] for _, row in self.results]
        if found:
            return next((status for status in _ORDER if status in found), found[0])
        return self.held["status"] if self.held else NOT_CHECKED


@dataclass(frozen=True)
class Published:
    """All papers with all of their claims."""

    papers: tuple[Paper, ...]
    entries: tuple[Entry, ...]

    def of(self, paper: Paper) -> list[Entry]:
        """Return the claims of a paper."""
        return [entry for entry in self.entries if entry.paper == paper.key]


def read(folder: Path, experiments: Iterable[Experiment]) -> Published:
    """Read the list of claims in a folder of experiments, and what was recorded of each.

    Raises
    ------
    ExperimentError
        Where the list is missing, or not what it should be.
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
    # A claim may be held in parts: KIM-046 at one loss, KIM-046-2 at another.
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
    """Return how often each status is there."""
    return Counter(statuses)
