"""The site: it builds without warnings, its links resolve, its code runs."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
from corridor.advise.link.file import read_link
from corridor.report import access, links, measured, moving, pages, published, records, site
from corridor.report.pictures import described
from corridor.report.since import rests_on, since
from corridor.study.experiment import ExperimentError, find
from corridor.study.main import app
from corridor.study.readmes import result
from typer.testing import CliRunner

TOP = Path(__file__).resolve().parents[2]
PAGES = TOP / "docs" / "site" / "pages"
#: Files that the pages' commands find in their working directory.
AROUND = ("examples", "experiments", "plans")
#: Maximum duration of a command, seconds.
PATIENCE_S = 300


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site: a warning, a dead link or an image without alternative text is an error."""
    return site.build(TOP / "experiments", tmp_path_factory.mktemp("site"), lambda *_: None).parent


def test_every_claim_has_its_row_and_a_status(built: Path) -> None:
    text = (built / "papers" / "claims.html").read_text()
    statuses = dict(re.findall(r'<tr id="([a-z]+-\d+)"[^>]*data-status="([a-z ]+)"', text))
    listed = json.loads((TOP / "experiments" / "claims.json").read_text())["claims"]
    assert set(statuses) == {claim["id"].lower() for claim in listed}
    assert len(listed) == 178
    assert set(statuses.values()) <= set(pages.MEANINGS) - {published.NOT_CHECKED}
    # Its row names what checks it: an experiment's page, or a test.
    for claim in listed:
        row = re.search(rf'<tr id="{claim["id"].lower()}".*?</tr>', text, re.DOTALL)
        assert row is not None
        held = re.search(r'<a href="[\w-]+\.html#|held by <code>([^<]+)</code>', row[0])
        assert held is not None, claim["id"]
        assert held[1] is None or claim["id"] in (TOP / held[1]).read_text(), claim["id"]


#: Number of figures and tables of each paper.
FIGURES = {"FRANC": (16, 0), "KIM": (21, 1), "BETZLER": (9, 1), "CATWOMAN": (13, 0)}


def _numbers(words: str, kind: str) -> set[int]:
    """Expand references such as "Figs. 1 to 4 and 8" or "Table I"."""
    found: set[int] = set()
    for match in re.finditer(rf"{kind}s?\.? ((?:[\dI]+[ab]?(?:, | to | and )?)+)", words):
        text = match[1].replace("I", "1")
        for first, last in re.findall(r"(\d+)[ab]?(?: to (\d+))?", text):
            found |= set(range(int(first), int(last or first) + 1))
    return found


def test_every_figure_and_table_has_a_page_or_it_is_said_why_not() -> None:
    experiments = find(TOP / "experiments")
    for paper in published.read(TOP / "experiments", experiments).papers:
        titles = [each.title for each in experiments if each.name.startswith(paper.prefix)]
        words = "; ".join([*titles, paper.aside])
        figures, tables = FIGURES[paper.key]
        assert _numbers(words, "Fig") == set(range(1, figures + 1)), paper.key
        assert _numbers(words, "Table") == set(range(1, tables + 1)), paper.key


def test_the_page_of_papers_says_how_long_the_full_runs_took(built: Path) -> None:
    seconds = [found["seconds"] for each in find(TOP / "experiments") if (found := result(each))]
    minutes = round(sum(seconds) / 60)
    text = (built / "papers" / "index.html").read_text()
    assert f"took {minutes // 60} h {minutes % 60} min in all" in text


def test_every_experiment_has_a_page_with_its_claims_and_command(built: Path) -> None:
    for experiment in find(TOP / "experiments"):
        text = (built / "papers" / f"{experiment.name}.html").read_text()
        assert f"corridor-study reproduce {experiment.name}" in re.sub(r"<[^>]+>", "", text)
        recorded = result(experiment)
        if recorded is None:
            continue
        assert all(f'id="{row["id"].lower()}"' in text for row in recorded["claims"])
        assert recorded["commit"][:12] in text
        if described(experiment, recorded) or not experiment.plans:
            assert "images/plots/" in text


def test_the_front_page_answers_three_readers(built: Path) -> None:
    text = (built / "index.html").read_text()
    assert re.findall(r'<h2 id="(\w+)"', text) == ["operator", "researcher", "library"]


def _demo(top: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    rows = json.loads((top / "docs/site/data/demo.json").read_text())["rows"]
    names = ("path", "policy", "transport", "congestion", "loss_ratio")
    return {tuple(row[name] for name in names): row for row in rows}


def test_the_front_page_has_the_recorded_demo(built: Path) -> None:
    demo = _demo(TOP)
    found = re.findall(r"<td>.*?</td>", (built / "index.html").read_text())
    cells = [re.sub(r"<[^>]+>", "", cell) for cell in found]
    for words, lost in (("1 frame in 10", 0.1), ("1 frame in 5", 0.2), ("nothing", 0.0)):
        at = cells.index(words)
        plain = demo["plain", "-", "tcp", "cubic", lost]["goodput_bps"] / 1e6
        window = demo["coded", "window", "tcp", "cubic", lost]["goodput_bps"] / 1e6
        assert cells[at + 1 : at + 3] == [f"{plain:.2f} Mbit/s", f"{window:.2f} Mbit/s"]


def test_the_readme_has_the_recorded_demo() -> None:
    demo, text = _demo(TOP), (TOP / "README.md").read_text()
    losses = (0.0, 0.1, 0.2, 0.3)
    lines = {
        "plain, cubic": ("plain", "-", "tcp", "cubic"),
        "plain, BBR": ("plain", "-", "tcp", "bbr"),
        "coded as in the paper, cubic": ("coded", "paper", "tcp", "cubic"),
        "coded, our blocks, cubic": ("coded", "block", "tcp", "cubic"),
        "coded, window mode, cubic": ("coded", "window", "tcp", "cubic"),
    }
    for words, key in lines.items():
        cells = " | ".join(f"{demo[*key, lost]['goodput_bps'] / 1e6:.2f}" for lost in losses)
        assert f"| {words} | {cells} |" in text

    def delay(path: str, policy: str, transport: str, lost: float) -> str:
        congestion = "cubic" if transport == "tcp" else None
        return f"{1e3 * demo[path, policy, transport, congestion, lost]['delay_p50_s']:.0f}"

    said = " ".join(text.split())
    blocks = [delay("coded", "block", "tcp", lost) for lost in losses]
    window = [delay("coded", "window", "tcp", lost) for lost in losses]
    assert (
        f"Median delays at 0 to 30 %: {blocks[0]} to {blocks[-1]} ms in blocks, "
        f"{', '.join(window[:-1])} and {window[-1]} ms in window mode" in said
    )
    assert (
        f"at a median delay of {delay('coded', 'block', 'udp', 0.5)} ms in blocks, "
        f"{delay('coded+helper', 'block', 'udp', 0.5)} with the helper, and "
        f"{delay('coded', 'window', 'udp', 0.5)} in window mode" in said
    )


def test_the_demos_picture_is_of_the_recorded_demo() -> None:
    plain, window = (
        _demo(TOP)[*key, "tcp", "cubic", 0.2]["goodput_bps"]
        for key in (("plain", "-"), ("coded", "window"))
    )
    (title,) = re.findall(r"<title>(.*?)</title>", (TOP / "docs/images/demo.svg").read_text())
    rates = re.findall(r"([\d.]+) ([kM])bit/s", title)
    assert [f"{float(rate) * {'k': 1e3, 'M': 1e6}[unit]:.2g}" for rate, unit in rates] == [
        f"{plain:.2g}",
        f"{window:.2g}",
    ]


def test_faults_of_a_site_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html">dead</a><a href="#no">no part</a><a href="#yes" id="yes">a part</a>'
        '<img src="x.svg"><script src="https://cdn.example/x.js"></script>'
    )
    assert [fault.rpartition(": ")[2] for fault in links.faults(tmp_path)] == [
        "a picture without words", "leads nowhere", "leads to no such part", "leads nowhere",
        "fetched from elsewhere",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<h1>a</h1><h3>b</h3>", "a heading of level 3 after one of level 1"),
        ("<h1>a</h1><h1>b</h1>", "2 headings of level 1: expected one"),
        ("<h1>a</h1><input id=x>", "input x: a control without a name"),
        ("<h1>a</h1><button><i></i></button>", "a button without a name"),
        ('<h1>a</h1><a href="b"><i></i></a>', "b: a link without a name"),
        ("<h1>a</h1><table><tr><td>b</td></tr></table>",
         "a table without the names of its columns or rows"),
        ('<h1>a</h1><svg role="img"></svg>', "a drawing without words"),
        ("<h1>a</h1><p tabindex=1>b</p>", "p: an order of its own for the keyboard"),
        ("<h1 id=a>a</h1><p id=a>b</p>", "id a twice"),
        ("<h1>a</h1><label>b <input></label><label for=c>d</label><input id=c>"
         '<a href="e"><img alt="f"></a><h2>g</h2><h3>h</h3><h2>i</h2>', ""),
    ],
)  # fmt: skip
def test_what_keeps_people_out_is_found(body: str, fault: str) -> None:
    page = f"<html lang=en><title>t</title><main>{body}</main></html>"
    assert access.faults(page) == ([fault] if fault else [])


def test_no_page_keeps_people_out(built: Path) -> None:
    """A part of WCAG 2.1; the rest needs a browser: `tools/look_at_site.py`."""
    read = sorted(built.rglob("*.html"))
    assert len(read) > 100
    assert [(path.name, f) for path in read for f in access.faults(path.read_text())] == []


#: Pages of each kind, as patterns for the tool that inspects them: all, if it gets none.
LOOKED_AT = ("index.html", "papers/[ci]*.html", "papers/kim-table1.html", "measurements.html",
             "explanation/*", "tutorials/first-link.html", "reference/codec.html")  # fmt: skip


@pytest.mark.skipif(
    any(find_spec(name) is None for name in ("playwright", "axe_playwright_python"))
    or shutil.which("chromium") is None,
    reason="absent: playwright, axe-playwright-python, chromium",
)
def test_pages_are_sound_in_a_browser(built: Path) -> None:
    """Widths, colour schemes, contrast, axe-core, and keyboard control; the tool inspects all."""
    command = [sys.executable, str(TOP / "tools" / "look_at_site.py"), str(built)]
    done = subprocess.run(
        [*command, "--only", *LOOKED_AT], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_picture_of_columns_of_no_rows_says_so() -> None:
    (experiment,) = find(TOP / "experiments", "kim-table1")
    with pytest.raises(ExperimentError, match="of which there are none"):
        described(experiment, {"rows": []})


@pytest.mark.parametrize("name", sorted(moving.PICTURES))
def test_moving_pictures_say_each_step(name: str) -> None:
    text = moving.figure(TOP, name)
    data = json.loads(re.findall(r"<script[^>]*>(.*)</script>", text)[0])
    assert len(data["scenes"]) == text.count("<li>") > 5
    for scene in data["scenes"]:
        assert {scene["source"], *scene["reaches"]} <= set(data["stations"])
        assert len(scene["words"]) > 20


def test_a_window_is_whole_in_the_end_and_a_block_too() -> None:
    for name, row in (("window", "receiver"), ("helper", "decoder")):
        trace = json.loads((TOP / moving.TRACES / f"{name}.json").read_text())
        scenes = moving.PICTURES[name][2](trace)
        looks = [look for _, look in scenes[-1].rows[row]]
        assert looks.count("have") + looks.count("repaired") >= len(looks) - 2
        assert any("no" in scene.reaches.values() for scene in scenes)


def test_a_dead_link_in_a_page_is_an_error(tmp_path: Path) -> None:
    from corridor.report.tree import Tree

    (tmp_path / "docs").mkdir()
    tree = Tree(tmp_path, tmp_path / "source", {})
    with pytest.raises(ExperimentError, match=r"docs/a\.md: link to nowhere\.md"):
        tree.write("a.md", "[words](nowhere.md)", "docs/a.md")


def test_claims_that_nobody_repeats_are_not_checked(tmp_path: Path) -> None:
    shutil.copy(TOP / "experiments" / "claims.json", tmp_path)
    listed = published.read(tmp_path, [])
    found = {entry.status for entry in listed.entries}
    # Claims that a test of the simulator checks keep their status.
    assert found == {"not checked", "parameter"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one experiment and its recorded result."""
    for name in ("experiments/kim-fig05", "python/corridor/study/kim", "python/corridor/models"):
        shutil.copytree(TOP / name, tmp_path / name)
    _git(tmp_path, "init", "--quiet")
    _commit(tmp_path)
    path = tmp_path / "experiments" / "kim-fig05" / "result.json"
    head = _git(tmp_path, "rev-parse", "HEAD").strip()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"commit": head}))
    _commit(tmp_path)
    return tmp_path


def _git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    command = ["git", "-C", str(folder), *who, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _commit(folder: Path) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "all")


@pytest.mark.parametrize(
    ("path", "more", "changed"),
    [
        ("python/corridor/study/kim/window.py", "\nX = 1\n", True),
        ("python/corridor/models/tcp_nc.py", "\nX = 1\n", True),
        # Another experiment's files, and text.
        ("python/corridor/study/kim/table1.py", "\nX = 1\n", False),
        ("experiments/kim-fig05/README.md", "\nmore\n", False),
        ("experiments/kim-fig05/experiment.toml", "\n[[picture]]\n", False),
        ("experiments/kim-fig05/experiment.toml", "\nmore = 1\n", True),
    ],
)
def test_what_a_result_rests_on_is_seen_to_change(
    checkout: Path, path: str, more: str, changed: bool
) -> None:
    (experiment,) = find(checkout / "experiments")
    assert since(experiment).files == ()
    file = checkout / path
    file.write_text(file.read_text() + more)
    assert since(experiment).files == ((path,) if changed else ())


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("result.json", {}, "nothing has changed since"),
        ("result.json", {"quick": True}, "no full run: a quick one was recorded"),
        ("result.json", {"commit": "0" * 40}, "the commit is not in this checkout"),
        ("removed", {}, "nothing was recorded"),
    ],
)
def test_what_is_no_full_run_of_this_code_ends_with_an_error(
    checkout: Path, name: str, change: dict[str, object], words: str
) -> None:
    path = checkout / "experiments" / "kim-fig05" / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    path.rename(path.with_name(name))
    asked = ["changes", "--check", "--experiments", str(checkout / "experiments")]
    done = CliRunner().invoke(app, asked)
    assert words in done.stdout
    assert done.exit_code == (0 if words.startswith("nothing has") else 1)
    assert CliRunner().invoke(app, [asked[0], *asked[2:]]).exit_code == 0


def test_docstrings_that_are_reworded_are_no_change(checkout: Path) -> None:
    (experiment,) = find(checkout / "experiments")
    file = checkout / "python" / "corridor" / "models" / "tcp_nc.py"
    text = file.read_text()
    docstring = text[: text.index('"""', 3)]
    file.write_text(text.replace(docstring, f"{docstring} In other words."))
    assert since(experiment).files == ()
    file.write_text(text.replace("return ", "return 0 or ", 1).replace(docstring, '"""Words.'))
    assert since(experiment).files == ("python/corridor/models/tcp_nc.py",)


def test_fewer_replications_than_asked_for_are_no_full_run(checkout: Path) -> None:
    folder = checkout / "experiments" / "kim-fig05"
    settings = folder / "experiment.toml"
    text = settings.read_text()
    assert "[parameters]" in text
    settings.write_text(text.replace("[parameters]", "[parameters]\nreplications = 3"))
    (experiment,) = find(checkout / "experiments")
    assert since(experiment).words == "no full run: 0 replications, of 3"


def test_simulations_rest_on_the_crates_and_formulas_do_not() -> None:
    simulated, computed = find(TOP / "experiments", "franc-fig09", "kim-fig05")
    assert "crates/sim/src" in rests_on(simulated, TOP)
    assert not [path for path in rests_on(computed, TOP) if path.startswith("crates")]


RECORDS = sorted((TOP / records.RECORDED).glob("*.json"))


def test_recorded_measurements_say_where_they_are_from() -> None:
    for path in RECORDS:
        found = json.loads(path.read_text())
        assert path.stem in records.SUBJECTS
        assert all(found[key] for key in ("machine", "commit", "date")), path
        assert re.fullmatch(r"[0-9a-f]{7,40}", found["commit"]), path
        assert found.get("checks") or found.get("rows"), path


def _is_whole(top: Path) -> bool:
    """A checkout with its history."""
    if not (top / ".git").exists():
        return False
    return _git(top, "rev-parse", "--is-shallow-repository").strip() == "false"


@pytest.mark.skipif("not _is_whole(TOP)", reason="this is no checkout with its history")
@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_recorded_measurements_are_of_commits_of_this_history(path: Path) -> None:
    commit = json.loads(path.read_text())["commit"]
    _git(TOP, "merge-base", "--is-ancestor", commit, "HEAD")


def test_what_is_measured_is_there() -> None:
    targets = re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text(), re.MULTILINE)
    for subject in records.SUBJECTS.values():
        assert subject.command.removeprefix("make ") in targets
        assert all((TOP / path).exists() for path in subject.code), subject.title


def test_what_is_not_recorded_is_said_with_its_command(tmp_path: Path) -> None:
    text = measured.page(tmp_path)
    assert text.count("**Not recorded.**") == len(records.SUBJECTS)
    assert "`make bench-codec` measures it" in text


def test_a_record_is_kept_with_the_commit_of_what_it_measures(tmp_path: Path) -> None:
    for path in records.SUBJECTS["codec"].code:
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "lib.rs").write_text("")
    _git(tmp_path, "init", "--quiet")
    _commit(tmp_path)
    measured_at = _git(tmp_path, "rev-parse", "HEAD")[:12]
    (tmp_path / "other").write_text("")
    _commit(tmp_path)
    row = {"library": "corridor", "backend": "avx2", "field": "GF(2^8)", "operation": "encode",
           "block_size": 16, "symbol_size": 1450, "payload_bytes_per_s": 1.5e9}  # fmt: skip
    check = {"name": "faster", "value": 1.5, "unit": "1", "sense": "at least", "limit": 2.0,
             "holds": False}  # fmt: skip
    left = tmp_path / "codec.json"
    header = {"cpu": "A processor", "quick": True, "default_backend": "avx2"}
    others = [row | {"library": "rlnc", "backend": "?"}, row | {"backend": "portable"}]
    left.write_text(json.dumps({"header": header, "checks": [check], "rows": [row, *others]}))
    records.keep(left, tmp_path, "beside other work")
    text = measured.page(tmp_path)
    assert f"A processor, commit `{measured_at}`. The code that it measures has not changed" in text
    assert "A quick run: fewer and shorter measurements. beside other work" in text
    assert "| faster | 1.5 | at least 2 | **no** |" in text
    assert "| corridor GF(2&#94;8) | 1.5 |" in text

    # A benchmark's own output is shown instead, with the same commit.
    fresh = tmp_path / records.BENCH / "codec.json"
    fresh.parent.mkdir(parents=True)
    again = check | {"value": 3.0, "interval": [2.5, 3.5]}
    fresh.write_text(json.dumps({"header": header, "checks": [again], "rows": [row]}))
    text = measured.page(tmp_path)
    assert f"commit `{measured_at}`" in text
    assert "| faster | 3<br><small>2.5 to 3.5</small> | at least 2 |" in text

    code = tmp_path / records.SUBJECTS["codec"].code[0] / "lib.rs"
    code.write_text("changed")
    assert "of this checkout at that time" in measured.page(tmp_path)
    fresh.unlink()
    assert "One file of the code that it measures has changed since." in measured.page(tmp_path)
    with pytest.raises(ExperimentError, match="expected all to be committed"):
        records.keep(left, tmp_path)


def test_what_is_older_than_the_code_that_it_measures_is_not_kept(tmp_path: Path) -> None:
    (path,) = records.SUBJECTS["codec"].code
    (tmp_path / path).mkdir(parents=True)
    (tmp_path / path / "lib.rs").write_text("")
    _git(tmp_path, "init", "--quiet")
    _commit(tmp_path)
    written = int(_git(tmp_path, "show", "--no-patch", "--format=%at", "HEAD"))
    left = tmp_path / "codec.json"
    left.write_text("[]")
    os.utime(left, (written - 1, written - 1))
    with pytest.raises(ExperimentError, match=r"codec\.json: written .* before the code .* anew"):
        records.keep(left, tmp_path)
    assert not (tmp_path / records.RECORDED).exists()
    # Other newer files are not part of the measured code.
    os.utime(left, (written, written))
    (tmp_path / "other").write_text("")
    _commit(tmp_path)
    assert records.keep(left, tmp_path).is_file()


def test_of_many_checks_those_that_miss_their_limits_are_shown_first() -> None:
    check = {"name": "c", "value": 1.0, "sense": "at most", "limit": 2.0, "holds": True}
    missed = check | {"name": "missed", "value": 3.0, "holds": False}
    lines = measured._checks([check] * 20 + [missed])
    assert lines[0] == "20 of 21 within their limits."
    assert lines.index("| missed | 3 | at most 2 | **no** |") < lines.index(
        '??? note "All of them"'
    )


def test_a_file_that_is_no_benchmark_is_refused(tmp_path: Path) -> None:
    (tmp_path / "radio.json").write_text("{}")
    with pytest.raises(ExperimentError, match="expected `checks`"):
        records.digest(tmp_path / "radio.json", "m", "c", "d")


@dataclass(frozen=True)
class Block:
    """A block of code on a page."""

    page: str
    language: str
    text: str
    #: Reason in the comment before it for not running; empty: it runs.
    mark: str

    @property
    def commands(self) -> list[str]:
        """The commands typed."""
        return [line[2:] for line in self.text.splitlines() if line.startswith("$ ")]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    pattern = re.compile(r"(?:<!-- ([^\n]+?) -->\n)?^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    for match in pattern.finditer(page.read_text(encoding="utf-8")):
        yield Block(str(page.relative_to(TOP)), match[2], match[3], match[1] or "")


ALL = [block for page in sorted(PAGES.rglob("*.md")) for block in blocks(page)]
WITH_PYTHON = sorted({block.page for block in ALL if block.language == "python"})
TYPED = [block for block in ALL if block.language == "console"]


def test_every_block_is_run_or_says_why_not() -> None:
    for block in ALL:
        assert block.language in ("python", "console", "toml"), block
        if block.mark and block.mark != "five commands":
            marks = r"(not run|checked|run with less): .{10,}|on machine \w+"
            assert re.fullmatch(marks, block.mark), block
        if block.language == "console":
            assert block.commands, block


#: Commands on pages that no test runs verbatim: the substitute, and where it runs.
ELSEWHERE = {
    "cargo build --release --package corridor": (".ci/run", "make build"),
    "sudo install target/release/corridor /usr/local/bin/": (
        "python/tests/test_site_network.py", "sudo install target/release/corridor /usr/local/bin/",
    ),
    "make demo": (".ci/run", "demo --quick"),
    "corridor-study reproduce --quick": ("Makefile", "reproduce catwoman betzler --quick"),
    "corridor-study reproduce": ("Makefile", "reproduce franc kim --claims"),
}  # fmt: skip


def test_what_is_not_run_is_run_elsewhere() -> None:
    run = {c for block in TYPED if not block.mark.startswith("not run") for c in block.commands}
    left = {c for block in TYPED for c in block.commands} - run
    assert left == set(ELSEWHERE)
    for path, words in ELSEWHERE.values():
        assert words in (TOP / path).read_text(), path


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_on_pages_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks of a page in order, as in a notebook."""
    monkeypatch.chdir(tmp_path)
    known: dict[str, object] = {}
    for block in ALL:
        if (block.page, block.language) == (page, "python"):
            exec(compile(block.text, page, "exec"), known)


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TOP)
    notebook = json.loads((TOP / "examples" / "papers.ipynb").read_text())
    known: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), known)
    ours, theirs = known["ours"], known["published"]
    assert isinstance(ours, list)
    assert isinstance(theirs, list)
    assert len(ours) == len(theirs) == 5


def test_the_notebook_on_results_is_shown_as_it_ran(built: Path) -> None:
    """nbclient ran it to build the site."""
    notebook = json.loads((TOP / "examples" / "results.ipynb").read_text())
    assert len(notebook["cells"]) == 10
    assert all(not cell.get("outputs") for cell in notebook["cells"])
    text = (built / "tutorials" / "results-notebook.html").read_text()
    assert text.count("images/plots/results-c") >= 3
    assert "0.95" in text
    assert (built / "images" / "plots" / "results-c7.png").stat().st_size > 5000


def test_tables_on_pages_are_toml() -> None:
    for block in ALL:
        if block.language == "toml":
            assert tomllib.loads(block.text), block


@pytest.mark.skipif("program() is None", reason="the program is not built")
def test_tables_on_pages_are_configuration(tmp_path: Path) -> None:
    corridor = program()
    assert corridor is not None
    whole = (TOP / "examples/udp/a.toml").read_text()
    # Relays name other ends with keys of their own.
    relay = (TOP / "examples/relay/left.toml").read_text()
    relay = relay.replace('psk_file = "corridor.key"', 'private_key_file = "own.key"')
    relay += 'public_key = "4pFoAnFY0/esjkZpHxEztkiuPgsyJTDRV4NlOCxzkmU="\n'
    _run("corridor genpsk --out corridor.key", tmp_path, [corridor.parent])
    _run("corridor genkey --out own.key", tmp_path, [corridor.parent])
    for block in ALL:
        if block.language != "toml":
            continue
        table = tomllib.loads(block.text)
        if "link" in table:
            (tmp_path / "link.toml").write_text(block.text)
            read_link(tmp_path / "link.toml")
        else:
            around = relay if "end" in table else whole
            (tmp_path / "a.toml").write_text(f"{around}\n{block.text}")
            _run("corridor check-config a.toml", tmp_path, [corridor.parent])


def _around(folder: Path) -> None:
    for name in AROUND:
        (folder / name).symlink_to(TOP / name)


def _run(command: str, folder: Path, tools: list[Path]) -> None:
    path = os.pathsep.join([*map(str, tools), os.environ.get("PATH", os.defpath)])
    environment = os.environ | {"PATH": path, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        ["sh", "-ec", command], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


@pytest.mark.parametrize(
    "block", [b for b in TYPED if not b.mark], ids=lambda b: f"{b.page}-{b.commands[0][:40]}"
)
def test_commands_on_pages_run(block: Block, tmp_path: Path) -> None:
    _around(tmp_path)
    for command in block.commands:
        assert command.startswith("corridor-study "), command
        _run(command, tmp_path, [Path(sys.executable).parent])


def _five_commands() -> list[str]:
    """The README's five commands, without comments."""
    text = (TOP / "README.md").read_text()
    (block,) = re.findall(r"<!-- five commands -->\n\n((?:    .+\n)+)", text)
    return [line.split("  #")[0].strip() for line in block.splitlines()]


def test_five_commands_are_those_of_the_tutorial() -> None:
    (block,) = [b for b in TYPED if b.mark == "five commands"]
    assert block.commands == _five_commands()


def _pages_with_commands() -> list[Path]:
    docs = [TOP / path for path in site.PLACES]
    return sorted({*PAGES.rglob("*.md"), *docs})


def _long() -> list[tuple[str, str]]:
    """Calls of the advisor on pages that take long and, indented, those outside code blocks."""
    pattern = re.compile(r"^(?:\$ |    )(corridor-study advise [^#\n]+)", re.MULTILINE)
    named = {block.page: " ".join(block.commands) for block in TYPED if not block.mark}
    pages = [(str(page.relative_to(TOP)), page.read_text()) for page in _pages_with_commands()]
    return [
        (name, found[1].strip())
        for name, text in pages
        for found in pattern.finditer(text)
        if found[1].strip() not in named.get(name, "")
    ]


@pytest.mark.parametrize("command", [pytest.param(c, id=f"{p}-{c[:50]}") for p, c in _long()])
def test_long_commands_run_with_less(command: str, tmp_path: Path) -> None:
    """The same calls with a small budget and, where a path has transfers, small transfers."""
    _around(tmp_path)
    less = "--budget 0.1" if _is_of_link(command) else "--budget 0.1 --packets 5"
    _run(f"{command} {less}", tmp_path, [Path(sys.executable).parent])


def _is_of_link(command: str) -> bool:
    """Whether the advisor's input file describes a link: a link has a load."""
    path = TOP / command.split()[2]
    return path.suffix == ".toml" and "link" in tomllib.loads(path.read_text())


CONFIGURATIONS = sorted(
    {
        found[1]
        for page in [*PAGES.rglob("*.md"), TOP / "README.md"]
        for found in re.finditer(
            r"^(?:\$ |    )corridor check-config (examples/\S+)", page.read_text(), re.MULTILINE
        )
    }
)


@pytest.mark.skipif("program() is None", reason="the program is not built")
@pytest.mark.parametrize("path", CONFIGURATIONS)
def test_configurations_that_pages_name_are_sound(path: str, tmp_path: Path) -> None:
    """As on the pages: the file, and beside it the key that it names."""
    corridor = program()
    assert corridor is not None
    shutil.copytree((TOP / path).parent, (tmp_path / path).parent)
    table = tomllib.loads((TOP / path).read_text())
    key = (tmp_path / path).parent / table["security"]["psk_file"]
    if not key.is_file():
        _run(f"corridor genpsk --out {key}", tmp_path, [corridor.parent])
    _run(f"corridor check-config {path}", tmp_path, [corridor.parent])


def test_pages_name_configurations_of_each_kind() -> None:
    assert {"hub", "relay", "radio"} <= {Path(path).parent.name for path in CONFIGURATIONS}
    assert any("hall.toml" in command for _, command in _long())


def test_five_commands_lead_to_a_changed_figure(tmp_path: Path) -> None:
    """From the README to a figure with another parameter; the first installs this checkout."""
    install, *others = _five_commands()
    assert (install, len(others)) == ("pip install .", 4)
    _around(tmp_path)
    for command in others:
        _run(command, tmp_path, [Path(sys.executable).parent])
    mine, theirs = (
        json.loads((tmp_path / "out" / name / "franc-fig09" / "result.json").read_text())
        for name in ("mine", "theirs")
    )
    assert (tmp_path / "out/mine/franc-fig09/plot.png").read_bytes().startswith(b"\x89PNG")
    assert mine["rows"] != theirs["rows"]


def program() -> Path | None:
    """Path of ``corridor``, if tests of the workspace or somebody has built it."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target"))
    named = [Path(os.environ["CORRIDOR_BIN"])] if "CORRIDOR_BIN" in os.environ else []
    places = [*named, target / "debug" / "corridor", target / "release" / "corridor"]
    return next((path for path in places if path.is_file()), None)


CHECKED = [b for b in TYPED if b.mark.startswith("checked: ")]


@pytest.mark.skipif(program() is None, reason="the program is not built")
@pytest.mark.parametrize("block", CHECKED, ids=lambda b: f"{b.page}-{b.commands[0][:40]}")
def test_commands_of_the_program_run(block: Block, tmp_path: Path) -> None:
    corridor = program()
    assert corridor is not None
    _around(tmp_path)
    for command in block.commands:
        _run(command, tmp_path, [corridor.parent])


def _simulations(page: Path) -> list[str]:
    """A page's calls of the simulator, in order."""
    found = re.finditer(r"^    (corridor (?:sim|results) [^#\n]+)", page.read_text(), re.MULTILINE)
    return [match[1].strip() for match in found]


WITH_SIMULATIONS = [page for page in _pages_with_commands() if _simulations(page)]


def _with_less(command: str) -> str:
    """The same with one replication, a page's plan if it has one, and limits for unbounded runs."""
    named = command.replace(" PLAN.toml", " plans/bursts.toml")
    if named.startswith("corridor sim run"):
        return f"{named} --replications 1" + ("" if "--out" in named else " --only 0")
    if named.startswith("corridor sim trace"):
        return f"{named} --limit-frames 100" + ("" if "--out" in named else " --out some.pcapng")
    return named


@pytest.mark.skipif(program() is None, reason="the program is not built")
@pytest.mark.parametrize("page", WITH_SIMULATIONS, ids=lambda p: str(p.relative_to(TOP)))
def test_simulations_on_pages_run_with_less(page: Path, tmp_path: Path) -> None:
    """In order in one folder, as a reader types them."""
    corridor = program()
    assert corridor is not None
    _around(tmp_path)
    (tmp_path / "crates").symlink_to(TOP / "crates")
    for command in _simulations(page):
        _run(_with_less(command), tmp_path, [corridor.parent])


def test_pages_have_simulations() -> None:
    pages = {str(page.relative_to(TOP)) for page in WITH_SIMULATIONS}
    assert {"README.md", "docs/captures.md"} <= pages
    commands = [command for page in WITH_SIMULATIONS for command in _simulations(page)]
    assert any("results merge" in command for command in commands)
    assert len(commands) > 10


@pytest.mark.parametrize("page", _pages_with_commands(), ids=lambda p: str(p.relative_to(TOP)))
def test_commands_on_pages_are_commands(page: Path) -> None:
    """All commands, even those not run: make targets, our subcommands, and files they name."""
    targets = re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text(), re.MULTILINE)
    verbs = getattr(typer.main.get_command(app), "commands", {})
    for line in page.read_text(encoding="utf-8").splitlines():
        found = re.match(r"(?:    |\$ )(?:sudo )?((?:make|corridor-study|corridor|cargo) .*)", line)
        if not found:
            continue
        words = found[1].split("#")[0].split()
        if words[0] == "make":
            assert words[1] in targets, line
        if words[0] == "corridor-study" and words[1] != "--version":
            assert words[1] in verbs, line
            known = {name for option in verbs[words[1]].params for name in option.opts}
            assert {w for w in words[2:] if w.startswith("--")} <= known, line
        for word in words[1:]:
            if re.match(r"(crates|examples|plans|experiments|share|docs)/[\w./-]+$", word):
                assert (TOP / word).exists(), line
