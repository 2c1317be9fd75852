"""All commands in the README and the pages run, if scaled down; exceptions are listed with reasons.

``test_site.py`` and ``test_site_network.py`` run what they find in place: code blocks of the site's
pages, simulations, the advisor, nodes on several machines. This file runs commands that need the
lab, lets the real command lines parse those that take long, and checks that no command is
forgotten. Decision records are left out: they say what was run when they were made.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import test_site_network as network
import typer
from corridor.study.main import app
from test_site import (
    CONFIGURATIONS,
    PATIENCE_S,
    TOP,
    _five_commands,
    _long,
    _pages_with_commands,
    _run,
    _simulations,
    program,
)
from test_site_network import _absent  # noqa: F401  (for the condition of the next)

needs_network: pytest.MarkDecorator = network.pytestmark
#: First words of commands.
PROGRAMS = ("cargo", "corridor", "corridor-study", "cp", "iperf3", "make", "mkdir", "pip", "ping",
            "sed", "sudo", "wireshark", "$EDITOR")  # fmt: skip
#: Blocks that are not commands, by their beginnings, and what they are.
SHOWN = {
    ("ARCHITECTURE.md", "base, codec, packet, relay  <-  proto"): "a drawing",
    ("ARCHITECTURE.md", "application -> kernel TCP/UDP"): "a drawing",
    ("docs/wire.md", "0        1        3"): "a drawing",
    ("docs/captures.md", "No.  Time"): "what Wireshark says",
    ("docs/captures.md", "WIN source 1234"): "what Wireshark says",
    ("docs/captures.md", "Corridor ENC, flow 1"): "what Wireshark says",
    ("docs/radio.md", "Ptr ="): "a formula",
    ("docs/radio.md", "tau = 2 /"): "a formula",
    ("docs/radio.md", "P' ="): "a formula",
    ("docs/radio.md", "tau = V /"): "a formula",
    ("docs/radio.md", "beta ="): "a formula",
    ("docs/radio.md", "t + P1"): "a formula",
    ("docs/tunnels.md", "case {side} in\n    S) exec x-client"): "a tunnel that stands for any",
    ("docs/tunnels.md", "umask 077\ny-keygen"): "a tunnel that stands for any",
    ("docs/tunnels.md", "case {side} in\n    S) exec z-client"): "a tunnel that stands for any",
    # `test_package.py` runs it.
    ("README.md", ">>> import corridor"): "a session in Python",
}
#: Commands that no test can run, with reasons, and what runs in their place: a file, and words in
#: it.
NOT_HERE = {
    "pip install .": (
        "it installs what is tested", "tools/test_python.py", '"--no-deps", "--no-build-isolation"',
    ),
    "cargo build --release --package corridor --features parquet": (
        "it builds for minutes", "Makefile",
        "build --release --package corridor --features parquet",
    ),
    "wireshark -X lua_script:share/wireshark/corridor.lua udp.pcapng": (
        "it needs a screen; tshark reads the same script",
        "crates/sim/tests/it/wireshark/tool.rs", "lua_script:",
    ),
    "make test": ("it runs this test", "tools/test.py", "test_python.Suite()"),
    "make bench-quic": (
        "it builds libraries for it alone, whose tests are built with them",
        "crates/bench/src/quic/main.rs", "fn what_make_types_is_read()",
    ),
    "make demo": ("it takes five minutes", ".ci/run", "demo --quick"),
}  # fmt: skip


def _blocks(page: Path) -> Iterator[str]:
    """Yield a page's indented code blocks: those after an empty line, outside lists."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for found in re.finditer(r"(?<=\n\n)(?: {4}.*\n)+", text):
        yield re.sub(r"^ {4}", "", found[0], flags=re.M)


def _commands(block: str) -> list[str]:
    """Return commands without comments; continued lines are joined."""
    lines = re.sub(r" *\\\n +", " ", block).splitlines()
    bare = (re.split(r"\s+#\s", line)[0].strip() for line in lines)
    return [line for line in bare if line and not line.startswith("#")]


def _typed() -> list[tuple[str, str]]:
    """Pages, and the commands in their indented blocks."""
    found = []
    for page in _with_blocks():
        for block in _blocks(page):
            if block.split()[0] in PROGRAMS or block.startswith("#"):
                name = str(page.relative_to(TOP))
                found += [(name, command) for command in _commands(block)]
    return found


def _with_blocks() -> list[Path]:
    return sorted({*_pages_with_commands(), TOP / "docs" / "wire.md"})


TYPED = _typed()


def _of(*begin: str) -> list[str]:
    """Commands that begin with one of these words, each once."""
    return sorted({command for _, command in TYPED if command.startswith(begin)})


LAB = _of("corridor lab run ")
STUDY = sorted({*_of("corridor-study ")} - {*_five_commands()})
TARGETS = sorted({command.split()[1] for command in _of("make ")})
#: Commands that are only parsed: they take a missing tunnel, or hours.
READ = _of("corridor lab compare ")


def _section(heading: str) -> list[str]:
    """The commands of a README section, whose tests read them from there."""
    text = (TOP / "README.md").read_text()
    section = text.partition(f"## {heading}")[2].partition("\n## ")[0]
    blocks = re.findall(r"(?<=\n\n)(?: {4}.*\n)+", section)
    return [command for block in blocks for command in _commands(block)]


def _run_somewhere() -> set[str]:
    """Commands that a test runs, or passes to the real command line."""
    simulated = {command for page in _with_blocks() for command in _simulations(page)}
    long = {command for _, command in _long()}
    checked = {f"corridor check-config {path}" for path in CONFIGURATIONS}
    # `readme.rs`, and `test_site_network.py`.
    nodes = {*_section("Quick start: two machines"), *_of("corridor status")}
    here = {*LAB, *STUDY, *READ, *(f"make {target}" for target in TARGETS)}
    return {*simulated, *long, *checked, *nodes, *here, *_five_commands()} - set(NOT_HERE)


def test_nothing_that_is_typed_is_forgotten() -> None:
    run = _run_somewhere()
    for page, command in TYPED:
        assert command in run or command in NOT_HERE, f"{page}: {command}: no test runs it"
    typed = {command for _, command in TYPED}
    assert set(NOT_HERE) <= typed, "nobody types it any more"
    for why, path, words in NOT_HERE.values():
        assert len(why) > 10
        assert words in (TOP / path).read_text(), (path, words)


def test_every_block_is_typed_or_it_is_said_what_it_is() -> None:
    shown = set()
    for page in _with_blocks():
        for block in _blocks(page):
            if block.split()[0] in PROGRAMS or block.startswith("#"):
                continue
            name = str(page.relative_to(TOP))
            known = [key for key in SHOWN if key[0] == name and block.lstrip().startswith(key[1])]
            assert known, f"{name}: neither a command nor known: {block}"
            shown.add(known[0])
    assert shown == set(SHOWN), "it is not there any more"


def test_a_block_that_is_new_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Words:\n\n    corridor new verb  # what it does\n    make \\\n        this\n")
    (block,) = _blocks(page)
    assert _commands(block) == ["corridor new verb", "make this"]
    assert not {*_commands(block)} & {*_run_somewhere(), *NOT_HERE}


def _shorter(folder: Path) -> None:
    """Write shortened plans and scenarios into a folder: a second per run."""
    for path in [*(TOP / "plans").iterdir(), *(TOP / "crates/cli/scenarios").iterdir()]:
        copy = folder / path.relative_to(TOP)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".toml":
            shutil.copy(path, copy)
            continue
        text = re.sub(r"^(duration_s = ).*$", r"\g<1>1", path.read_text(), flags=re.M)
        copy.write_text(re.sub(r"^(warm_up_s = ).*$", r"\g<1>0.5", text, flags=re.M))


@needs_network
@pytest.mark.parametrize("command", LAB)
def test_runs_in_the_lab_run_with_less(command: str, tmp_path: Path) -> None:
    """The first run of each, once, for a second; a machine that is too busy for it may say so."""
    corridor = program()
    assert corridor is not None
    _shorter(tmp_path)
    named = command.replace(" SCENARIO.toml", " crates/cli/scenarios/udp.toml")
    words = [str(corridor), *shlex.split(named)[1:], "--only", "0", "--repeats", "1"]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    busy = done.returncode == 1 and "not valid" in done.stderr
    assert done.returncode == 0 or busy, f"{command}: {done.stdout}{done.stderr}"
    assert re.search(r"\d", done.stdout), done.stdout


def _is_read(words: list[str], corridor: Path) -> None:
    """Pass arguments to the program, which parses all of them before it shows its help."""
    done = subprocess.run(
        [str(corridor), *words, "--help"], cwd=TOP, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}: {done.stderr}"


@pytest.mark.skipif("program() is None", reason="the program is not built")
def test_words_that_the_program_does_not_know_are_seen() -> None:
    corridor = program()
    assert corridor is not None
    with pytest.raises(AssertionError, match="--no-such"):
        _is_read(["lab", "compare", "PLAN.toml", "--no-such"], corridor)


@pytest.mark.skipif("program() is None", reason="the program is not built")
@pytest.mark.parametrize("command", READ)
def test_comparisons_in_the_lab_are_read(command: str) -> None:
    corridor = program()
    assert corridor is not None
    # The templates are the reader's files.
    words = shlex.split(re.sub(r'"\$\(cat \w+\.sh\)"', "'x-command {tun}'", command))
    _is_read(words[1:], corridor)
    for word in words:
        if "/" in word and word.endswith(".toml"):
            assert (TOP / word).is_file(), word


@pytest.mark.parametrize("command", STUDY)
def test_the_study_reads_what_it_is_told(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsed by its own command line, which refuses unknown words; ``make claims`` runs most."""
    monkeypatch.chdir(TOP)
    verb, *words = shlex.split(command)[1:]
    group = typer.main.get_command(app)
    verbs = getattr(group, "commands", {})
    with verbs[verb].make_context(verb, words) as context:
        assert context.params


def _recipe(target: str) -> list[str]:
    """Return the commands that make would run."""
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "--no-print-directory", target], cwd=TOP,
        env={key: value for key, value in os.environ.items() if not key.startswith("MAKE")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return re.sub(r"\\\n\s*", "", done.stdout).splitlines()


def _less_of(words: list[str]) -> list[str] | None:
    """Return a scaled-down command, if that takes seconds; ``None`` if it stays long."""
    match words[:2]:
        case ["sim", "run"]:
            return [*words, "--replications", "1", "--only", "0"]
        case ["sim", "torture"]:
            return ["sim", "torture", "--seeds", "20"]
        case ["lab", "gates"]:
            return [*words, "--list"]
        case _:
            return None


@pytest.mark.skipif("program() is None", reason="the program is not built")
@pytest.mark.parametrize("target", TARGETS)
def test_targets_of_make_type_what_there_is(target: str, tmp_path: Path) -> None:
    """Calls of the program are scaled down or parsed. Benchmarks parse theirs: ``recipe.rs``."""
    corridor = program()
    assert corridor is not None
    _shorter(tmp_path)
    lines = _recipe(target)
    assert lines, target
    for line in lines:
        words = shlex.split(line)
        if not words or not words[0].endswith("/release/corridor"):
            continue
        _is_read(words[1:], corridor)
        less = _less_of(words[1:])
        if less is not None:
            _run(shlex.join(["corridor", *less]), tmp_path, [corridor.parent])
