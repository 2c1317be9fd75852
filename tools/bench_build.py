"""What each variant of the binary takes to build, and how large it is: `make bench-build`.

    bench_build.py [--only VARIANT] [--base COMMIT] [--out FILE] [--publish]
    bench_build.py --size BINARY
    bench_build.py --separate BINARY

Builds every variant from scratch in a target directory of its own. The measure is processor time,
which other work on the machine hardly changes, unlike elapsed time. Unit-seconds are those of
`cargo build --timings`. With --base an older commit is built in the same run, and the default
build, that of `make demo`, is compared with it. --publish writes the results to docs/building.json
and to the table in docs/building.md; tools/tidy.py checks that the two agree. --size checks a
binary against the limit of the default build. --separate moves the debug information of a binary to
a separate file beside it.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target")).resolve()
MEASURED = TOP / "docs" / "building.json"
PAGE = TOP / "docs" / "building.md"
UNITS = re.compile(r"const UNIT_DATA = (\[.*?\n\]);", re.DOTALL)
#: Maximum ratio of the demo build's processor time to that of the older commit's.
BASE_RATIO_MAX = 0.6
#: The side of its limit on which each value must be.
SENSE = "at most"


@dataclass(frozen=True)
class Variant:
    """A variant of the binary's build."""

    name: str
    meaning: str
    arguments: tuple[str, ...]
    profile: str = "release"
    #: Maximum size of the binary, megabytes of 10^6 bytes.
    size_mb_max: float | None = None

    def command(self) -> str:
        words = ["cargo build --profile", self.profile, "--package corridor", *self.arguments]
        return " ".join(words)


VARIANTS = (
    Variant("default", "daemon, lab, demo, simulator", (), size_mb_max=15),
    Variant("daemon", "the daemon alone", ("--no-default-features",), size_mb_max=8),
    Variant("parquet", "and files of results", ("--features=parquet",)),
    Variant("dist", "for packages: LTO", (), profile="dist", size_mb_max=12),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=[variant.name for variant in VARIANTS])
    parser.add_argument("--base", metavar="COMMIT")
    parser.add_argument("--out", type=Path, default=TOP / "out" / "bench" / "build.json")
    parser.add_argument("--publish", action="store_true")
    parser.add_argument("--size", type=Path, metavar="BINARY")
    parser.add_argument("--separate", type=Path, metavar="BINARY")
    arguments = parser.parse_args()
    if arguments.separate:
        separate_debug_information(arguments.separate)
        return 0
    if arguments.size:
        checks = [size_check(VARIANTS[0], arguments.size.stat().st_size)]
        return report(checks)
    chosen = [v for v in VARIANTS if arguments.only is None or v.name in arguments.only]
    result: dict = {"processors": os.cpu_count(), "variants": []}
    checks = []
    for variant in chosen:
        built = build(TOP, variant)
        result["variants"].append(built)
        if variant.size_mb_max is not None:
            checks.append(size_check(variant, built["size_bytes"]))
    if arguments.base:
        checks.append(base_check(arguments.base, result))
    result["checks"] = checks
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(result, indent=2) + "\n")
    if arguments.publish:
        publish(result)
    print(table(result), end="")
    return report(checks)


def build(source: Path, variant: Variant) -> dict:
    """Builds a variant from scratch, and returns the costs."""
    target = TARGET / "bench-build" / f"{source.name}-{variant.name}"
    shutil.rmtree(target, ignore_errors=True)
    command = [
        os.environ.get("CARGO", "cargo"), "build", "--profile", variant.profile, "--package",
        "corridor", "--timings", "--target-dir", str(target), *variant.arguments,
    ]  # fmt: skip
    print(f"{variant.name}: {variant.command()}", flush=True)
    before, begun = cpu_s(), time.monotonic()
    subprocess.run(command, cwd=source, check=True)
    took = {"cpu_s": round(cpu_s() - before, 1), "passed_s": round(time.monotonic() - begun, 1)}
    binary = target / variant.profile / "corridor"
    if variant.profile == "dist":
        separate_debug_information(binary)
    built = {"name": variant.name, "commit": commit(source), **took}
    built["unit_seconds"] = unit_seconds(target)
    built["size_bytes"] = binary.stat().st_size
    shutil.rmtree(target)
    return built


def separate_debug_information(binary: Path) -> None:
    """Moves debug information to a file beside the binary, where debuggers find it."""
    debug = binary.with_suffix(".debug")
    for options in (
        ["--only-keep-debug", binary, debug],
        ["--strip-all", binary],
        [f"--add-gnu-debuglink={debug}", binary],
    ):
        subprocess.run(["objcopy", *map(str, options)], check=True)


def cpu_s() -> float:
    """Processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def unit_seconds(target: Path) -> float:
    page = (target / "cargo-timings" / "cargo-timing.html").read_text(encoding="utf-8")
    units = UNITS.search(page)
    if units is None:
        sys.exit("cargo-timing.html: no UNIT_DATA: this cargo writes another form")
    return round(sum(unit["duration"] for unit in json.loads(units[1])), 1)


def base_check(base: str, result: dict) -> dict:
    """Builds an older commit as it would have built the demo, and compares."""
    folder = TARGET / "bench-build" / "base"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = subprocess.Popen(["git", "archive", base], cwd=TOP, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", str(folder)], stdin=archive.stdout, check=True)
    if archive.wait() != 0:
        sys.exit(f"--base {base}: expected a commit of this repository")
    before = build(folder, VARIANTS[0])
    shutil.rmtree(folder)
    result["base"] = before | {"commit": base}
    after = next(v for v in result["variants"] if v["name"] == VARIANTS[0].name)
    ratio = round(after["cpu_s"] / before["cpu_s"], 3)
    name = f"processor time of the default build over that of {base}"
    holds = ratio <= BASE_RATIO_MAX
    return {"name": name, "value": ratio, "sense": SENSE, "limit": BASE_RATIO_MAX, "holds": holds}


def size_check(variant: Variant, size_bytes: int) -> dict:
    size_mb, limit = size_bytes / 1e6, variant.size_mb_max
    name = f"size of the {variant.name} binary, MB"
    holds = size_mb <= limit
    return {"name": name, "value": round(size_mb, 2), "sense": SENSE, "limit": limit, "holds": holds}


def report(checks: list[dict]) -> int:
    for check in checks:
        word = "holds" if check["holds"] else "FAILS"
        print(f"{word}: {check['name']}: {check['value']}, at most {check['limit']}")
    return 0 if all(check["holds"] for check in checks) else 1


def commit(source: Path) -> str:
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=source, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return told.stdout.strip() or "unknown"


# ---- the page in docs -------------------------------------------------------------------------

BEGIN, END = "<!-- made by make bench-build -->\n", "<!-- to here -->\n"


def publish(result: dict) -> None:
    """Replaces older results of the same variants."""
    known = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    variants = {built["name"]: built for built in known.get("variants", [])}
    variants |= {built["name"]: built for built in result["variants"]}
    checks = {check["name"]: check for check in known.get("checks", [])}
    checks |= {check["name"]: check for check in result["checks"]}
    order = [variant.name for variant in VARIANTS]
    merged = known | result
    merged["variants"] = sorted(variants.values(), key=lambda built: order.index(built["name"]))
    merged["checks"] = list(checks.values())
    MEASURED.write_text(json.dumps(merged, indent=2) + "\n")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_table(page, table(merged)), encoding="utf-8")


def table(result: dict) -> str:
    """The results, as they are written on the page."""
    lines = [
        "| build | command | processor time, s | unit-seconds | binary, MB | at most |",
        "|---|---|---|---|---|---|",
    ]
    known = {variant.name: variant for variant in VARIANTS}
    for built in result["variants"]:
        variant = known[built["name"]]
        limit = "" if variant.size_mb_max is None else f"{variant.size_mb_max:g}"
        lines.append(row(variant.meaning, variant.command(), built, limit))
    if base := result.get("base"):
        lines.append(row(f"before ({base['commit']})", VARIANTS[0].command(), base, ""))
    return "\n".join(lines) + "\n"


def row(meaning: str, command: str, built: dict, limit: str) -> str:
    """A line of the table; cells without results stay empty."""
    took = (built.get(name) for name in ("cpu_s", "unit_seconds"))
    cells = [meaning, f"`{command}`", *("" if s is None else f"{s:.0f}" for s in took)]
    cells += [f"{built['size_bytes'] / 1e6:.1f}", limit]
    return "| " + " | ".join(cells) + " |"


def with_table(page: str, new: str) -> str:
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    return head + BEGIN + "\n" + new + "\n" + END + tail


def page_faults() -> list[str]:
    """Where the page disagrees with the results, or with the limits."""
    if not MEASURED.exists():
        return ["no building.json: expected `tools/bench_build.py --publish`'s"]
    result = json.loads(MEASURED.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    faults = []
    if with_table(page, table(result)) != page:
        faults.append("its table is not that of building.json: expected that of bench_build.py")
    sizes = {built["name"]: built["size_bytes"] for built in result["variants"]}
    for variant in VARIANTS:
        if variant.size_mb_max is None or variant.name not in sizes:
            continue
        if not (check := size_check(variant, sizes[variant.name]))["holds"]:
            faults.append(f"{check['name']}: {check['value']}, at most {check['limit']}")
    missed = [check for check in result["checks"] if not check["holds"]]
    faults += [f"{check['name']}: {check['value']}, at most {check['limit']}" for check in missed]
    return faults


if __name__ == "__main__":
    sys.exit(main())
