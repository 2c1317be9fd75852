"""Pages about the papers: claims, figures, tables and our results, as Markdown."""

import html
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from corridor.report.pictures import Drawn
from corridor.report.published import NOT_CHECKED, Entry, Paper, Published
from corridor.report.since import Since
from corridor.study import readmes
from corridor.study.experiment import Experiment

#: Statuses in display order, with the symbol of each.
MARKS = {
    "holds": "✓", "differs": "≠", "cannot hold": "∅", "parameter": "=", "identity": "≡",
    "not checked": "?", "fails": "✗", "unexpected": "!", "missing": "…",
}  # fmt: skip
#: Meaning of each status.
MEANINGS = {
    "holds": "what was measured is within the bounds, which were chosen before the runs",
    "differs": "it is not, and the cause is given, with the range that ours is in",
    "cannot hold": "it is not, and [the errata](../errata.md) prove that it cannot be",
    "parameter": "chosen, by the paper and by us: not counted as passed",
    "identity": "true by how it is computed: not counted as passed",
    "not checked": "nothing is held against it yet",
}
#: Maximum number of rows shown unfolded if there is no plot of them.
_OPEN_ROWS_MAX = 40
#: Characters with a meaning in Markdown or HTML.
_MEANS = re.compile(r"[\\`*_<>\[\]~^|]")
#: Format of references to errata in causes and READMEs.
_ERRATUM = re.compile(r"(?<![\w/`\[])docs/errata\.md, ([A-Z]?\d+)\b")
#: Format of references to decisions.
_DECISION = re.compile(r"(?<![\w/`\[])docs/decisions/(\d{4})([\w-]*)\.md\b")
#: How causes refer to their figure's README, and its replacement on the page.
_README, _FOUND = "(README.md)", "(see *What is found*)"
NO_CURVE = (
    "The paper prints curves without numbers: *curve not available*. What its text says in numbers "
    "is in the table below; nothing is read off a picture."
)


_HOW = (
    "Each claim has a number of the paper's, as KIM-008; one with a suffix, as KIM-047-2, is a "
    "part of it, or a question of ours about it. *Ours* says in small print what is held against "
    'the published value: where the paper has words ("rises", "twice"), that is a ratio, a '
    "difference or a slope. *Agrees if* has the bounds, with who chose them: the paper, by its "
    "words or the digits that it prints; the interval of the runs; or judgement, with the reason. "
    "It says so where bounds were changed after the runs.",
)


def status(word: str, count: int | None = None) -> str:
    """Return a status as HTML: a symbol and a word, so that colour is not the only cue."""
    kind = word.replace(" ", "-")
    said = word if count is None else f"{count} {word}"
    return (
        f'<span class="status {kind}"><span aria-hidden="true">{MARKS[word]}</span> {said}</span>'
    )


def tally(counts: Counter[str]) -> str:
    """Return statuses with their counts."""
    return " ".join(status(word, counts[word]) for word in MARKS if counts[word])


def slug(heading: str) -> str:
    """Return the anchor of a heading, as Markdown's table of contents generates it.

    Examples
    --------
    >>> slug("K7. TCP's columns of Table I")
    'k7-tcps-columns-of-table-i'
    """
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    words = re.sub(r"[^\w\s-]", "", plain).strip().lower()
    return re.sub(r"[-\s]+", "-", words)


def proofs(text: str) -> dict[str, str]:
    """Return the anchors of the errata's entries, by number."""
    found = {}
    for line in text.splitlines():
        if match := re.match(r"### ([A-Z]?\d+)\. ", line):
            found[match[1]] = slug(line.removeprefix("### ").replace("`", ""))
    return found


def claims_table(
    rows: Iterable[Mapping[str, Any]],
    anchors: Mapping[str, str],
    errata: str = "../../docs/errata.md",
) -> list[str]:
    """Return claims with published and our values, as a Markdown table."""
    lines = [
        "| claim | published | ours | agrees if | status |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f'| <span id="{row["id"].lower()}">**{row["id"]}**</span> '
            f"{_cell(readmes._words(row['claim']))}"
            f"{_cell(readmes._where(row))} | {_cell(readmes._published(row))} "
            f"| {_ours(row)} | {_agrees(row)} | {_outcome(row, anchors, errata)} |"
        )
    return lines


def _cell(text: str) -> str:
    """Return a text escaped for Markdown and for a table cell."""
    return plain(text.replace("\\|", "|"))


def plain(text: str) -> str:
    """Return a text with all characters special to Markdown or HTML escaped.

    Examples
    --------
    >>> plain("B < 1 | 2^8, ~4 of [a]*_b_")
    'B &#60; 1 &#124; 2&#94;8, &#126;4 of &#91;a&#93;&#42;&#95;b&#95;'
    """
    return _MEANS.sub(lambda found: f"&#{ord(found[0])};", text)


def piped(text: str) -> str:
    """Return a text escaped for a table cell, with brackets unchanged."""
    return " ".join(text.replace("|", "/").split()).replace("[", "\\[")


def _ours(row: Mapping[str, Any]) -> str:
    """Return the measured value, and the measure's description."""
    return f"{readmes._ours(row)}<br><small>{_cell(readmes._words(row['measure']))}</small>"


def errata_linked(text: str, anchors: Mapping[str, str], page: str = "../../docs/errata.md") -> str:
    """Return Markdown with references to errata ("docs/errata.md, K5") and decisions as links.

    Examples
    --------
    >>> errata_linked("not so (docs/errata.md, K5)", {"K5": "k5-a"}, "e.md")
    'not so ([errata, K5](e.md#k5-a))'
    """

    def lead(found: re.Match[str]) -> str:
        anchor = anchors.get(found[1])
        return f"[errata, {found[1]}]({page}#{anchor})" if anchor else found[0]

    linked = _ERRATUM.sub(lead, text)
    return _DECISION.sub(r"[decision \1](../../docs/decisions/\1\2.md)", linked)


def _agrees(row: Mapping[str, Any]) -> str:
    bounds = row["accepted"]
    more = ", ".join(filter(None, [bounds.get("why"), bounds.get("when")]))
    return _cell(readmes._accepted(row)) + (f"<br><small>{_cell(more)}</small>" if more else "")


def _outcome(row: Mapping[str, Any], anchors: Mapping[str, str], errata: str) -> str:
    cause = row.get("cause")
    if row["status"] == "cannot hold" and row["errata"] in anchors:
        link = f"[errata, {row['errata']}]({errata}#{anchors[row['errata']]})"
        return f"{status(row['status'])}<br><small>{link}</small>"
    words = _cell(readmes._words(cause or "")).replace(_README, _FOUND)
    said = f"<br><small>{words}</small>" if cause else ""
    return status(row["status"]) + said


def experiment_page(
    experiment: Experiment,
    recorded: Mapping[str, Any] | None,
    pictures: list[Drawn],
    since: Since,
    anchors: Mapping[str, str],
) -> str:
    """Return the page of a figure or table; ``{words}`` marks the place of its README's text."""
    lines = [f"# {experiment.title}", ""]
    if recorded is None:
        waiting = [status(NOT_CHECKED, len(experiment.claims))] if experiment.claims else []
        lines += [*waiting, "", "Nothing was recorded yet.", "", "{words}", ""]
        lines += [*_waiting(experiment), "", *_repeat(experiment, None, since)]
        return "\n".join(lines)
    statuses = Counter(row["status"] for row in recorded["claims"])
    if statuses:
        lines += [tally(statuses), ""]
    for drawn in pictures:
        lines += ['<div class="plots" markdown="0">']
        alt = html.escape(drawn.words, quote=True).replace("[", "(").replace("]", ")")
        for scheme in ("light", "dark"):
            name = f"../images/plots/{drawn.name}-{scheme}.svg#only-{scheme}"
            look = f'class="plot" style="--wide: {drawn.wide:.3g}"'
            lines.append(f'<img src="{name}" alt="{alt}" loading="lazy" {look}>')
        lines += ["</div>", ""]
    curve = NO_CURVE if "Fig" in experiment.title else ""
    lines += [f"{_drawn(experiment, recorded, pictures)} {curve}".strip(), "", "{words}", ""]
    if recorded["claims"]:
        table = claims_table(recorded["claims"], anchors)
        lines += ["## Published, and ours", "", '<div class="claims" markdown>', "", *table, ""]
        lines += ["</div>", ""]
        lines += ["± is half of a 95 % interval, by the jackknife over replications.", ""]
    if recorded["notes"]:
        lines += [*(f"- {_cell(note)}" for note in recorded["notes"]), ""]
    if recorded["rows"]:
        is_open = not pictures and len(recorded["rows"]) <= _OPEN_ROWS_MAX
        what = "drawn" if pictures else "found"
        lines += [f'???{"+" if is_open else ""} note "What is {what}, in numbers"', ""]
        lines += [f"    {line}" for line in _rows(recorded["rows"])] + [""]
    return "\n".join([*lines, *_repeat(experiment, recorded, since)])


def _waiting(experiment: Experiment) -> list[str]:
    """Return the claims of an experiment without a recorded result."""
    if not experiment.claims:
        return []
    lines = ["## Published", "", "| claim | published | status |", "|---|---|---|"]
    for claim in experiment.claims:
        said = f'<span id="{claim.id.lower()}">**{claim.id}**</span> {_cell(claim.claim)}'
        value = _cell(f"{claim.value} {claim.unit}".strip(" -"))
        lines.append(f"| {said} | {value} | {status(NOT_CHECKED)} |")
    return lines


def _drawn(experiment: Experiment, recorded: Mapping[str, Any], pictures: Iterable[Drawn]) -> str:
    if not experiment.plans:
        return "Computed from the paper's formulas."
    runs = recorded["replications"]
    if not runs:
        return "Computed from the plan: nothing is drawn at random."
    crosses = "; crosses are published" if any(each.has_published for each in pictures) else ""
    return f"Means of {runs} runs of each point, from the recorded rows{crosses}."


def _rows(rows: list[dict[str, Any]]) -> list[str]:
    return [_cell_line(line) for line in readmes._plain(rows)]


def _cell_line(line: str) -> str:
    # Keep the column separators.
    return "|".join(map(plain, line.split("|")))


def _repeat(experiment: Experiment, recorded: Mapping[str, Any] | None, since: Since) -> list[str]:
    plans = dict.fromkeys(
        path for use, path in experiment.plans.items() if use != "lab" and path.is_file()
    )
    seeds = {str(tomllib.loads(p.read_text(encoding="utf-8")).get("seed", 0)) for p in plans}
    lines = ["## Repeat it", "", "```console", f"$ corridor-study reproduce {experiment.name}"]
    lines += ["```", ""]
    facts = [
        ("the same, sooner and rougher", f"`corridor-study reproduce {experiment.name} --quick`")
    ]
    if plans:
        facts.append(("seed", f"{', '.join(sorted(seeds))}, in the plans"))
    if recorded is not None:
        if recorded["replications"]:
            facts.append(("runs of each point", f"{recorded['replications']}, from 0 on"))
        facts.append(("took", f"{recorded['seconds']:.0f} s, intervals included"))
        facts.append(("recorded at commit", f"`{recorded['commit'][:12]}`"))
        facts.append(("code that it rests on", since.words))
    lines += ["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in facts), ""]
    if plans:
        names = [f"[{p.name}]({_to(experiment, p)})" for p in plans]
        lines += [f"Plans: {', '.join(names)}.", ""]
    return lines


def _to(experiment: Experiment, plan: Path) -> str:
    """Link to a plan, relative to the experiment's README: rewritten with its other links."""
    return f"../{plan.resolve().relative_to(experiment.folder.resolve().parent)}"


def papers_page(
    published: Published,
    experiments: Iterable[Experiment],
    results: Mapping[str, Mapping[str, Any] | None],
    sinces: Mapping[str, Since],
) -> str:
    """Return the overview page of all papers."""
    listed = list(experiments)
    total = Counter(entry.status for entry in published.entries)
    lines = [
        "# Four papers", "",
        f"{len(published.entries)} published values and statements: {tally(total)}", "",
        "[All claims in one table](claims.md), [errata with proofs](../errata.md).", "",
        "| status | means |", "|---|---|",
        *(f"| {status(word)} | {meaning} |" for word, meaning in MEANINGS.items() if total[word]),
        "", *_HOW, "",
    ]  # fmt: skip
    for paper in published.papers:
        entries = published.of(paper)
        lines += [f"## {paper.name}", "", f"{paper.authors}: *{paper.title}*, {paper.venue}.", ""]
        counts = Counter(e.status for e in entries)
        numbers = f" ({entries[0].id} to {entries[-1].id})" if entries else ""
        lines += [f"{len(entries)} claims{numbers}: {tally(counts)} {paper.aside}", ""]
        own = [each for each in listed if each.name.startswith(paper.prefix)]
        if not own:
            lines += ["No experiment repeats it yet.", ""]
            continue
        lines += [
            "| figure or table | claims, parts and ours included | code since |",
            "|---|---|---|",
        ]
        for each in own:
            rows = (results[each.name] or {"claims": []})["claims"]
            since = sinces[each.name]
            told = tally(Counter(row["status"] for row in rows)) or "none: our own question"
            lines.append(f"| [{each.title}]({each.name}.md) | {told} | {since.short_words} |")
        lines.append("")
    return "\n".join([*lines, *_commands(recorded_times(published.papers, results))])


def recorded_times(papers: Iterable[Paper], results: Mapping[str, Mapping[str, Any] | None]) -> str:
    """Return a sentence on how long the recorded full runs took, in total and per paper."""
    seconds = {
        paper.name: sum(
            float(found["seconds"])
            for name, found in results.items()
            if found and name.startswith(paper.prefix)
        )
        for paper in papers
    }
    each = ", ".join(f"{name} {spent / 60:.0f}" for name, spent in seconds.items())
    whole = round(sum(seconds.values()) / 60)
    return (
        f"The recorded full runs took {whole // 60} h {whole % 60} min in all, on two processors "
        f"with other work beside; minutes by paper: {each}."
    )


def _commands(times: str) -> list[str]:
    return [
        "## Repeat all of it", "",
        "```console",
        "$ corridor-study reproduce --quick",
        "$ corridor-study reproduce",
        "$ corridor-study changes",
        "```", "",
        "The first, fewer and shorter runs with wider bounds, takes a few minutes on two "
        f"processors. {times} The third command says which recorded results rest on code that has "
        "changed since.", "",
    ]  # fmt: skip


def claims_page(published: Published, anchors: Mapping[str, str]) -> str:
    """Return the page with all claims, with filter controls."""
    words = [w for w in MARKS if any(w == e.status for e in published.entries)]
    lines = [
        "# All claims", "",
        f"All {len(published.entries)} published values and statements of the four papers, and "
        "what came of each. A claim that is held in several parts shows the worst of them; the "
        "parts are on the figure's page. Without scripts the table is simply whole.", "",
        '<form class="filter" role="search" aria-label="Narrow the table down">',
        _choice("paper", [(paper.key, paper.name) for paper in published.papers]),
        _choice("status", [(word, word) for word in words]),
        '<label>words <input type="search" name="words" autocomplete="off"></label>',
        '<output aria-live="polite"></output>',
        "</form>", "",
        '<div class="md-typeset__scrollwrap" tabindex="0" role="region" '
        'aria-label="All claims"><div class="md-typeset__table"><table id="claims">',
        "<thead><tr><th>claim</th><th>where</th><th>published</th><th>ours</th><th>status</th></tr>"
        "</thead><tbody>",
        *(_claim_row(entry, anchors) for entry in published.entries),
        "</tbody></table></div></div>", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _choice(name: str, values: list[tuple[str, str]]) -> str:
    options = "".join(f'<option value="{value}">{word}</option>' for value, word in values)
    every = '<option value="">all</option>'
    return f'<label>{name} <select name="{name}">{every}{options}</select></label>'


def _claim_row(entry: Entry, anchors: Mapping[str, str]) -> str:
    escape = html.escape
    shown = sorted(entry.results, key=lambda found: found[1]["id"] != entry.id)
    place, row = shown[0] if shown else ("", None)
    link = f'<a href="{place}.html#{row["id"].lower()}">{entry.id}</a>' if row else entry.id
    said = escape(entry.claim)
    if entry.conditions:
        said += f"<br><small>{escape(entry.conditions)}</small>"
    value = escape(f"{entry.value} {entry.unit}".strip(" -")) or "-"
    ours = escape(readmes._ours(row)) if row else "-"
    if row:
        ours += f"<br><small>{escape(readmes._words(row['measure']))}</small>"
    about = ""
    if row and row.get("cause"):
        cause = escape(readmes._words(row["cause"]).replace(_README, "(see its page)"))
        about = _ERRATUM.sub(lambda found: _erratum(found[1], anchors), cause)
    elif not row and entry.held:
        about = f"held by <code>{escape(entry.held['by'])}</code>"
    small = f"<br><small>{about}</small>" if about else ""
    return (
        f'<tr id="{entry.id.lower()}" data-paper="{entry.paper}" data-status="{entry.status}">'
        f'<td><strong>{link}</strong> {said}</td><td data-label="where">{escape(entry.figure)}</td>'
        f'<td data-label="published">{value}</td><td data-label="ours">{ours}</td>'
        f"<td>{status(entry.status)}{small}</td></tr>"
    )


def _erratum(number: str, anchors: Mapping[str, str]) -> str:
    """Return a link to an entry of the errata, as HTML."""
    anchor = anchors.get(number)
    words = f"errata, {number}"
    return f'<a href="../errata.html#{anchor}">{words}</a>' if anchor else words


def tallies(published: Published) -> str:
    """Return the papers with their status counts, for the front page."""
    lines = ["| paper | claims |", "|---|---|"]
    for paper in published.papers:
        counts = Counter(entry.status for entry in published.of(paper))
        lines.append(f"| [{paper.name}](papers/index.md#{_anchor(paper)}) | {tally(counts)} |")
    return "\n".join(lines)


def _anchor(paper: Paper) -> str:
    return slug(paper.name)
