"""Assembles the site, builds it, and checks the result."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from corridor.report import access, links, measured, moving, notebooks, pages, published
from corridor.report.pictures import draw
from corridor.report.since import Since, since
from corridor.report.tree import Tree
from corridor.study import readmes
from corridor.study.experiment import Experiment, ExperimentError, find
from corridor.study.readmes import BEGIN, result

#: Directory of pages written for the site alone, and of its build configuration.
OWN = "docs/site"
#: Pages of the repository, and their places in the site.
PLACES = {
    "README.md": "index.md",
    "docs/errata.md": "errata.md",
    "docs/configuration.md": "reference/configuration.md",
    "docs/plans.md": "reference/plans.md",
    "docs/results.md": "reference/columns.md",
    "docs/radio.md": "reference/radio.md",
    "docs/captures.md": "howto/captures.md",
    "docs/tunnels.md": "howto/tunnels.md",
    "docs/building.md": "howto/building.md",
    "docs/audit.md": "reference/audit.md",
    "GLOSSARY.md": "reference/glossary.md",
    "ARCHITECTURE.md": "reference/architecture.md",
    "CHANGELOG.md": "reference/changelog.md",
    "experiments/README.md": "papers/index.md",
}
#: Pages for which the site has a page of its own at that place.
_OWN_PAGE = ("README.md", "experiments/README.md")
#: Placeholder line for the command's help.
_HELP = "<!-- help of corridor-study -->"
#: Placeholder line for the demo's table.
_DEMO = "<!-- demo -->"
#: Placeholder line for an animation.
_MOVING = re.compile(r"^<!-- moving: (\w+) -->$", re.MULTILINE)
#: Notebooks shown with their outputs, and their places.
_NOTEBOOKS = {"examples/results.ipynb": "tutorials/results-notebook.md"}
#: Modules needed to build.
_NEEDED = (
    "mkdocs", "material", "mkdocstrings", "mkdocstrings_handlers.python", "nbclient", "ipykernel",
)  # fmt: skip
Tell = Callable[[str, int, int], object]


def build(folder: Path, out: Path, tell: Tell) -> Path:
    """Build the site from the checkout that contains a folder of experiments.

    Parameters
    ----------
    folder
        Folder of the experiments.
    out
        Output folder; its contents are replaced.
    tell
        Called with the current task, the amount done, and the total.

    Returns
    -------
    Path of the front page.

    Raises
    ------
    ExperimentError
        If this is not a checkout, a build tool is missing, or the site has faults.
    """
    top = folder.resolve().parent
    if not (top / OWN / "mkdocs.yml").is_file():
        raise ExperimentError(f"{top}: expected a checkout, with {OWN}/mkdocs.yml")
    if missing := [name for name in _NEEDED if not _is_there(name)]:
        raise ExperimentError(f"{missing[0]} = nothing: expected `pip install '.[report]'`")
    source = out / "source"
    for stale in (source, out / "site"):
        shutil.rmtree(stale, ignore_errors=True)
    experiments = find(folder)
    _assemble(top, folder, source, experiments, tell)
    tell("HTML", 0, 1)
    _mkdocs(source, out / "site")
    tell("links", 0, 1)
    if faults := _faults(out / "site"):
        raise ExperimentError("the site is not sound:\n" + "\n".join(faults))
    return out / "site" / "index.html"


def _faults(site: Path) -> list[str]:
    """Return the faults of a built site, one per line."""
    found = links.faults(site)
    for page in sorted(site.rglob("*.html")):
        name, text = page.relative_to(site), page.read_text(encoding="utf-8")
        found += [f"{name}: {fault}" for fault in access.faults(text)]
    return found


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _assemble(
    top: Path, folder: Path, source: Path, experiments: list[Experiment], tell: Tell
) -> None:
    """Write all pages into a folder, and the generator's configuration beside it."""
    text = source / "pages"
    shutil.copytree(top / OWN / "pages", text)
    tree = Tree(top, text, _places(top, experiments))
    anchors = pages.proofs((top / "docs" / "errata.md").read_text(encoding="utf-8"))
    listed = published.read(folder, experiments)
    sinces = _write_experiments(tree, experiments, anchors, tell)
    results = {each.name: result(each) for each in experiments}
    papers = pages.papers_page(listed, experiments, results, sinces)
    (text / "papers" / "index.md").write_text(papers, encoding="utf-8")
    claims = pages.claims_page(listed, anchors)
    (text / "papers" / "claims.md").write_text(claims, encoding="utf-8")
    tree.write("measurements.md", measured.page(top), f"{OWN}/pages/measurements.md")
    tally = pages.tallies(listed)
    for name, site in tree.places.items():
        if name.startswith("experiments/") or name in (*_OWN_PAGE, *_NOTEBOOKS):
            continue
        words = (top / name).read_text(encoding="utf-8")
        filled = words.replace("<!-- papers -->", tally).replace(_HELP, help_of_command())
        filled = filled.replace(_DEMO, measured.demo(top))
        filled = _MOVING.sub(lambda found: moving.figure(top, found[1]), filled)
        tree.write(site, filled, name)
    for name, site in _NOTEBOOKS.items():
        tell(name, 0, 1)
        ran = notebooks.executed(top / name, top)
        shown = notebooks.page(ran, text / "images" / "plots", Path(name).stem)
        (text / site).write_text(shown, encoding="utf-8")
    _configure(top, source, _navigation(top, experiments, listed))


def _places(top: Path, experiments: list[Experiment]) -> dict[str, str]:
    """Return the pages' places in the site, by their places in the repository."""
    places = {**PLACES, **_NOTEBOOKS}
    for decision in sorted((top / "docs" / "decisions").glob("*.md")):
        places[f"docs/decisions/{decision.name}"] = f"reference/decisions/{decision.name}"
    for page in sorted((top / OWN / "pages").rglob("*.md")):
        places[str(page.relative_to(top))] = str(page.relative_to(top / OWN / "pages"))
    for experiment in experiments:
        places[f"experiments/{experiment.name}/README.md"] = f"papers/{experiment.name}.md"
    return places


def _write_experiments(
    tree: Tree, experiments: list[Experiment], anchors: Mapping[str, str], tell: Tell
) -> dict[str, Since]:
    """Write the page of each experiment, with its plots; return the changes since."""
    plots = tree.source / "images" / "plots"
    plots.mkdir(parents=True)
    sinces = {}
    for place, each in enumerate(experiments):
        tell(each.name, place, len(experiments))
        recorded = result(each)
        sinces[each.name] = since(each)
        drawn = draw(each, recorded, plots) if recorded else []
        page = pages.experiment_page(each, recorded, drawn, sinces[each.name], anchors)
        filled = page.replace("{words}", _words(each.folder / "README.md"))
        filled = pages.errata_linked(filled, anchors)
        tree.write(f"papers/{each.name}.md", filled, f"experiments/{each.name}/README.md")
    return sinces


def help_of_command() -> str:
    """Return the help of ``corridor-study`` and of each of its commands, as Markdown."""
    from corridor.study.main import app  # It imports this module when it builds.

    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="corridor-study")
    parts = [f"{command.help}\n"]
    for name, verb in getattr(command, "commands", {}).items():
        below = typer.Context(verb, info_name=name, parent=context)
        usage = " ".join(verb.collect_usage_pieces(below))
        parts.append(f"## `{name}`\n\n{verb.help}\n\n    corridor-study {name} {usage}\n")
        rows = [r for r in (p.get_help_record(below) for p in verb.params) if r]
        if rows:
            table = [f"| `{pages.piped(what)}` | {pages.piped(said)} |" for what, said in rows]
            parts += ["| option | meaning |", "|---|---|", *table, ""]
    return "\n".join(parts)


def _words(readme: Path) -> str:
    """Return a README's own text: without its heading and its recorded figures."""
    if not readme.is_file():
        return ""
    head, _, tail = readme.read_text(encoding="utf-8").partition(BEGIN)
    after = tail.partition(readmes.END)[2]
    words = head.partition("\n")[2].strip()
    return "\n\n".join(filter(None, [words and f"## What is found\n\n{words}", after.strip()]))


def _navigation(top: Path, experiments: list[Experiment], listed: published.Published) -> list[Any]:
    def own(folder: str) -> list[Any]:
        """Pages of a folder, in the order in which its own page lists them."""
        found = sorted(page.name for page in (top / OWN / "pages" / folder).glob("*.md"))
        index = top / OWN / "pages" / folder / "index.md"
        named = re.findall(r"\]\((\S+?)\)", index.read_text(encoding="utf-8"))
        ahead = ["index.md", *named]
        found.sort(key=lambda name: ahead.index(name) if name in ahead else len(ahead))
        return [f"{folder}/{name}" for name in found]

    papers: list[Any] = ["papers/index.md", {"All claims": "papers/claims.md"}]
    papers.append({"Errata, with proofs": "errata.md"})
    for paper in listed.papers:
        chosen = [
            {each.title: f"papers/{each.name}.md"}
            for each in experiments
            if each.name.startswith(paper.prefix)
        ]
        if chosen:
            papers.append({paper.name: chosen})
    decisions = [
        f"reference/decisions/{each.name}"
        for each in sorted((top / "docs" / "decisions").glob("*.md"))
    ]
    placed = {site: None for path, site in PLACES.items() if path not in _OWN_PAGE}
    howto = [site for site in placed if site.startswith("howto/")]
    reference = [site for site in placed if site.startswith("reference/")]
    return [
        {"Corridor": "index.md"},
        {"Tutorials": [*own("tutorials"), *_NOTEBOOKS.values()]},
        {"How coding works": own("explanation")},
        {"Four papers": papers},
        {"Measurements": ["measurements.md", "results.md"]},
        {"How to": [*own("howto"), *howto]},
        {"Reference": [*own("reference"), *reference, {"Decisions": decisions}]},
    ]


def _configure(top: Path, source: Path, navigation: list[Any]) -> None:
    """Write the generator's configuration; JSON is also YAML."""
    text = (top / OWN / "mkdocs.yml").read_text(encoding="utf-8")
    text = text.replace("PACKAGE", json.dumps(str(top / "python")))
    text += f"nav: {json.dumps(navigation, ensure_ascii=False)}\n"
    (source / "mkdocs.yml").write_text(text, encoding="utf-8")


def _mkdocs(source: Path, site: Path) -> None:
    command = [
        sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict",
        "--config-file", str(source / "mkdocs.yml"), "--site-dir", str(site.resolve()),
    ]  # fmt: skip
    # Suppresses an advertisement, not a warning about these pages.
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env=environment,
    )  # fmt: skip
    if done.returncode or done.stdout.strip():
        raise ExperimentError(f"mkdocs: expected no warning:\n{done.stdout.strip()}")
