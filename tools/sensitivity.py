"""Halves and doubles each constant of window mode's rate control: its effect on drawn paths.

    sensitivity.py [--seed SEED] [--count N] [--only NAME,NAME] [--out FOLDER] [--write FILE]

The released code is not touched: in a copy of the sources each constant of
crates/proto/src/link/path_control becomes a function that reads the environment, so that one build
serves all values. Each value is then tested on the same paths (`bench-paths --ways window`). The
table has the medians of shares and drops, and the differences of shares path by path. Existing runs
are not repeated.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
RATE = Path("crates/proto/src/link/path_control")
#: Files that are not part of the control.
TESTS = {"closed_loop.rs", "policy_study.rs", "policy_tests.rs"}
CONSTANT = re.compile(
    r"^(?P<visible>pub(?:\([a-z]+\))? )?const (?P<name>[A-Z0-9_]+): "
    r"(?P<kind>f64|u32|usize|Duration|\[f64; \d+\]) =\s*(?P<value>[^;]*);",
    re.MULTILINE,
)
#: Shares and factors near one: their distance from one is halved and doubled.
ABOUT_ONE = {
    "delivered::PROBE_GAIN",
    "delivered::LOOK_RATIO",
    "compete::COMPETE_DECREASE",
    "compete::CONGESTED_RATIO",
    "policy::PROBE_BELOW",
}
#: The factors.
FACTORS = (0.5, 2.0)
#: A change of the median beyond this is marked; it counts as certain if shares differ, path by
#: path, by this many standard errors, since a median changes by as much by chance.
NAMED = 0.02
ERRORS = 2.0
MARKS = {(False, False): "", (True, False): "moves", (True, True): "**moves**"}
TUNED = """//! Constants that the environment changes, for tools/sensitivity.py alone.

use core::time::Duration;
use std::sync::OnceLock;

fn factor(name: &str) -> f64 {
    static SET: OnceLock<Option<(String, f64)>> = OnceLock::new();
    let set = SET.get_or_init(|| {
        let text = std::env::var("RATE_CONSTANT").ok()?;
        let (name, factor) = text.split_once('=')?;
        Some((name.to_owned(), factor.parse().expect("a factor")))
    });
    set.as_ref().filter(|(other, _)| other == name).map_or(1.0, |(_, factor)| *factor)
}

pub(crate) trait Tuned: Sized + core::fmt::Debug + Copy {
    fn times(self, factor: f64) -> Self;

    fn about_one(self, _factor: f64) -> Self {
        unreachable!("only shares are")
    }

    fn tuned(self, name: &str, is_about_one: bool) -> Self {
        let factor = factor(name);
        // Not even rounding is to change the others.
        if factor == 1.0 {
            return self;
        }
        let now = if is_about_one { self.about_one(factor) } else { self.times(factor) };
        eprintln!("RATE_CONSTANT\\t{self:?}\\t{now:?}");
        now
    }
}

impl Tuned for f64 {
    fn times(self, factor: f64) -> Self {
        self * factor
    }

    fn about_one(self, factor: f64) -> Self {
        1.0 + factor * (self - 1.0)
    }
}

impl Tuned for u32 {
    fn times(self, factor: f64) -> Self {
        (f64::from(self) * factor).round().max(1.0) as u32
    }
}

impl Tuned for usize {
    fn times(self, factor: f64) -> Self {
        (self as f64 * factor).round().max(1.0) as usize
    }
}

impl Tuned for Duration {
    fn times(self, factor: f64) -> Self {
        self.mul_f64(factor)
    }
}

impl<const N: usize> Tuned for [f64; N] {
    fn times(self, factor: f64) -> Self {
        self.map(|value| value * factor)
    }

    fn about_one(self, factor: f64) -> Self {
        self.map(|value| value.about_one(factor))
    }
}
"""


@dataclass(frozen=True)
class Constant:
    """A constant of the rate control."""

    #: Such as `policy::GAIN_MAX`.
    name: str
    #: A type depends on it: it stays a constant, and each value needs a build of its own.
    is_length: bool
    file: Path

    @property
    def short(self) -> str:
        return self.name.split("::")[-1]


@dataclass(frozen=True)
class Run:
    """The result of a value: shares and drops of window mode by path."""

    #: The original and the changed value, as printed by the program.
    values: tuple[str, str]
    shares: dict[int, float]
    drops: dict[int, float]
    varying: frozenset[int]

    def of(self, kind: dict[int, float], varying: bool) -> list[float]:
        return [kind[path] for path in kind if (path in self.varying) == varying]

    def medians(self) -> list[float]:
        kinds = [(self.shares, False), (self.shares, True), (self.drops, False), (self.drops, True)]
        return [statistics.median(self.of(kind, varying) or [0.0]) for kind, varying in kinds]

    def less(self, other: "Run", varying: bool) -> tuple[float, float]:
        """By how much shares exceed those of another, on average, with its standard error."""
        pairs = zip(self.of(self.shares, varying), other.of(other.shares, varying), strict=True)
        differences = [one - two for one, two in pairs]
        if len(differences) < 2:
            return sum(differences), 0.0
        error = statistics.stdev(differences) / len(differences) ** 0.5
        return statistics.fmean(differences), error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=4711)
    parser.add_argument("--count", type=int, default=90)
    parser.add_argument("--rate-max-mbps", type=float, default=12.0, help="of the paths")
    parser.add_argument("--packets-max", type=int, default=20_000)
    parser.add_argument("--only", default="", help="as policy::GAIN_MAX,compete::CUBIC_C")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=TOP / "out/sensitivity")
    parser.add_argument("--write", type=Path, help="a file for the table")
    arguments = parser.parse_args()
    tree = (arguments.out / "tree").resolve()
    constants = copy(tree)
    if only := set(filter(None, arguments.only.split(","))):
        if unknown := only - {constant.name for constant in constants}:
            sys.exit(f"no such constants: {', '.join(sorted(unknown))}")
        constants = [constant for constant in constants if constant.name in only]
    lengths = [constant for constant in constants if constant.is_length]
    programs = build(tree, lengths)

    def run(pair: tuple[Constant | None, float]) -> Run:
        return measure(arguments, programs, *pair)

    asked = [(constant, factor) for constant in constants for factor in FACTORS]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        before, *runs = pool.map(run, [(None, 1.0), *asked])
    text = table(before, list(zip(asked, runs, strict=True)), arguments)
    print(text, end="")
    if arguments.write:
        arguments.write.write_text(text)
    return 0


def copy(tree: Path) -> list[Constant]:
    """Copies the sources with constants as functions, and returns the constants."""
    shutil.rmtree(tree, ignore_errors=True)
    listed = ["git", "ls-files", "-z", "Cargo.toml", "Cargo.lock", "crates", "share", "docs"]
    names = subprocess.run(listed, cwd=TOP, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        to = tree / name
        to.parent.mkdir(parents=True, exist_ok=True)
        if (TOP / name).is_file():
            shutil.copy2(TOP / name, to)
    return rewrite(tree / RATE)


def rewrite(root: Path) -> list[Constant]:
    """Turns constants of a folder, and of its module, into functions, and returns the constants."""
    files = [file for file in sorted(root.rglob("*.rs")) if file.name not in TESTS]
    files.append(root.with_suffix(".rs"))
    texts = {file: file.read_text().split("#[cfg(test)]\nmod tests")[0] for file in files}
    everything = "".join(texts.values())
    constants = []
    for file, text in texts.items():
        for found in CONSTANT.finditer(text):
            name = found["name"]
            is_length = re.search(rf", {name}>|; {name}\]", everything) is not None
            constants.append(Constant(f"{file.stem}::{name}", is_length, file))
    names = {constant.short for constant in constants if not constant.is_length}
    for file, text in texts.items():
        file.write_text(as_functions(text, file.stem, names))
    module = root.with_suffix(".rs")
    text = without_tests(module.read_text())
    module.write_text(text.replace("mod compete;", "mod compete;\nmod tuned;"))
    (root / "tuned.rs").write_text(TUNED)
    return constants


def without_tests(text: str) -> str:
    return re.sub(r"#\[cfg\(test\)\]\n[a-z() ]*mod \w+;\n", "", text)


def as_functions(text: str, module: str, names: set[str]) -> str:
    """The text with each of these constants, defined here or elsewhere, as a function."""

    def define(found: re.Match[str]) -> str:
        name, kind = found["name"], found["kind"]
        if name not in names:
            return found[0]
        about_one = str(f"{module}::{name}" in ABOUT_ONE).lower()
        return (
            f"#[allow(non_snake_case)] {found['visible'] or ''}fn {name}() -> {kind} {{ "
            f"static VALUE: std::sync::OnceLock<{kind}> = std::sync::OnceLock::new(); "
            f"*VALUE.get_or_init(|| {{ let value: {kind} = {called(found['value'])}; "
            f'crate::link::path_control::tuned::Tuned::tuned(value, "{module}::{name}", '
            f"{about_one}) }}) }}"
        )

    def called(code: str) -> str:
        # Neither names that are called or defined already, nor comments.
        parts = re.split(r"(//[^\n]*|^use [^;]*;|\bfn \w+\(\) -> [^{]*\{ static)", code, flags=re.M)
        word = re.compile(r"(?<![\w:])([A-Z][A-Z0-9_]+)\b(?![(:])")
        for index in range(0, len(parts), 2):
            parts[index] = word.sub(
                lambda found: f"{found[1]}()" if found[1] in names else found[0], parts[index]
            )
        return "".join(parts)

    pieces, end = [], 0
    for found in CONSTANT.finditer(text):
        pieces += [called(text[end : found.start()]), define(found)]
        end = found.end()
    return "".join([*pieces, called(text[end:])])


def build(tree: Path, lengths: list[Constant]) -> dict[tuple[str, float], Path]:
    """The programs: the common one, and those of constants on which types depend, by name and
    factor."""
    target = tree.parent / "target"
    programs = {}

    def program(name: str, factor: float) -> None:
        command = ["cargo", "build", "--release", "--quiet", "-p", "corridor-bench"]
        command += ["--bin", "bench-paths", "--target-dir", str(target)]
        subprocess.run(command, cwd=tree, check=True)
        kept = tree.parent / f"bench-paths-{name.replace('::', '-')}-{factor}"
        shutil.copy2(target / "release/bench-paths", kept)
        programs[name, factor] = kept

    program("", 1.0)
    for constant in lengths:
        before = constant.file.read_text()
        for factor in FACTORS:
            pattern = rf"(const {constant.short}: usize = )(\d+);"
            changed = re.sub(
                pattern, lambda found: f"{found[1]}{round(int(found[2]) * factor)};", before
            )
            constant.file.write_text(changed)
            program(constant.name, factor)
        constant.file.write_text(before)
    return programs


def measure(
    arguments: argparse.Namespace,
    programs: dict[tuple[str, float], Path],
    constant: Constant | None,
    factor: float,
) -> Run:
    """Runs the paths with a value, unless that has been done."""
    name = constant.name if constant else ""
    out = arguments.out / "runs" / f"{name.replace('::', '-') or 'as-it-is'}-{factor}.json"
    said = out.with_suffix(".said")
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        program = programs.get((name, factor), programs["", 1.0])
        command = [str(program), "--ways", "window", "--jobs", "1", "--out", str(out)]
        command += ["--seed", str(arguments.seed), "--count", str(arguments.count)]
        command += ["--packets-max", str(arguments.packets_max)]
        command += ["--rate-max-mbps", str(arguments.rate_max_mbps)]
        environment = {**os.environ, "RATE_CONSTANT": f"{name}={factor}"}
        # It exits with 1 if a gate is missed, which does not matter here.
        ended = subprocess.run(command, env=environment, capture_output=True, text=True)
        if not out.exists():
            sys.exit(f"{' '.join(command)}\n{ended.stderr}")
        said.write_text(ended.stderr)
        print(f"{name} {factor}", file=sys.stderr, flush=True)
    paths = json.loads(out.read_text())["paths"]
    values = re.search(r"RATE_CONSTANT\t(.*)\t(.*)", said.read_text())
    shares = {path["path"]["index"]: path["window"]["share"] for path in paths}
    drops = {path["path"]["index"]: path["window"]["dropped_ratio"] for path in paths}
    varying = {
        path["path"]["index"] for path in paths if path["path"]["variation"]["kind"] != "steady"
    }
    return Run(values.groups() if values else ("", ""), shares, drops, frozenset(varying))


def table(
    before: Run,
    rows: list[tuple[tuple[Constant, float], Run]],
    arguments: argparse.Namespace,
) -> str:
    """The table, as Markdown."""
    steady, varying, *drops = before.medians()
    lines = [
        f"`tools/sensitivity.py --seed {arguments.seed} --count {arguments.count} --packets-max "
        f"{arguments.packets_max} --rate-max-mbps {arguments.rate_max_mbps:g}`: {len(before.shares) - len(before.varying)} steady paths, median "
        f"{steady:.3f}, dropped {drops[0]:.4f}; {len(before.varying)} that vary, {varying:.3f} and "
        f"{drops[1]:.3f}.",
        "",
        "| constant | from | to | steady | path by path | varying | path by path | dropped | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (constant, factor), run in rows:
        medians = run.medians()
        moved = [now - was for now, was in zip(medians, (steady, varying), strict=False)]
        named = any(abs(by) > NAMED * was for by, was in zip(moved, (steady, varying), strict=True))
        pairs = [run.less(before, is_varying) for is_varying in (False, True)]
        surely = any(abs(mean) > ERRORS * error > 0.0 for mean, error in pairs)
        was, now = run.values if run.values[0] else ("", f"times {factor}")
        if was.startswith("["):
            was, now = (text.split(",")[0] + ", …]" for text in (was, now))
        cells = [f"`{constant.name}`", was, now]
        for by, (mean, error) in zip(moved, pairs, strict=True):
            cells += [f"{by:+.3f}", f"{mean:+.3f} ± {error:.3f}"]
        cells += [f"{medians[2]:.4f}, {medians[3]:.3f}", MARKS[named, named and surely]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
