"""Finds circular dependencies among the modules of a crate: run from anywhere in the repository.

A module depends on each module that it names by `crate::` or `super::`. Modules inside one module
must not depend on each other in a circle: what two of them share belongs below both. Dependencies
between a module and those inside it do not count, since they are one; nor do tests. Prints a line
for each fault, and exits with 1 if there is any.
"""

import re
import sys
from pathlib import Path

# Edges that close a circle and are accepted, by crate, each with its reason. An edge that no longer
# closes one is a fault too.
EXCEPTIONS: dict[str, dict[tuple[str, str], str]] = {
    "bench": {
        ("fixture", "peers"): "symbols end as one of the peers wants them to",
        ("report", "checks"): "a report lists the gates, which are made of its figures",
    },
    "cli": {
        ("lab::gates::list", "lab::gates::frontier"): "the frontier's gates are in the list",
    },
    "codec": {
        ("kernel", "field"): "tables of kernels are made by the arithmetic that they speed up",
        ("kernel::simd", "kernel::arrive"): "a kernel's methods are apart by what they do",
        ("kernel::simd", "kernel::beside"): "a kernel's methods are apart by what they do",
        ("kernel::simd", "kernel::eliminate"): "a kernel's methods are apart by what they do",
    },
    "document": {
        ("schema", "reference"): "a schema has its reference as one of its methods",
    },
    "lab": {
        ("rights", "priority"): "what runs may do includes to go first, which needs rights",
    },
    "node": {
        ("syscalls", "config"): "senders on an Ethernet have the addresses of files",
    },
    "relay": {
        ("owed", "queue"): "what is owed are packets of the queue, which asks who has room",
        ("under_way", "queue"): "what is under way was in the queue, which asks for room",
    },
    "scenario": {
        ("line", "expand"): "a run has a line, which is made of the run",
        ("metrics", "plan"): "what a plan may measure hangs on its load",
        ("metrics", "tables"): "measures name the table that they are in",
        ("points", "plan"): "points are made of the tables of the plan that has them",
        ("row", "expand"): "a row begins with the run that it is of",
    },
    "sim": {
        ("plan::tunnels", "plan::flows"): "tunnels set routes as flows do, which cross them",
        ("core::watch", "core::network"): "who watches is told of the network's frames",
        ("tcp::linux::ack", "tcp::linux::sender"): "the way of an acknowledgement in the sender",
        ("tcp::linux::cubic", "tcp::linux::control"): "slow start is the same for all controls",
        ("tcp::linux::rack", "tcp::linux::flow"): "a flow's losses, found in its scoreboard",
    },
    "torture": {
        ("addresses", "draw"): "what is drawn has dice, which are beside the drawing",
        ("draw", "mesh"): "a mesh is part of a scenario and draws itself",
        ("scenario", "mesh"): "a mesh is part of a scenario, and run by the scenario's network",
    },
}

COMMENT = re.compile(r"//[^\n]*")
TEST_FILE = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\(\w+\))? )?mod (\w+);")
TEST_BLOCK = re.compile(r"^#\[cfg\(test\)\]\n(?:pub(?:\(\w+\))? )?mod \w+ \{.*?^\}", re.M | re.S)
PATH = re.compile(r"\b(crate|super(?:::super)*)::")
NAME = re.compile(r"(\w+)(::)?")

Module = tuple[str, ...]


def main() -> int:
    faults = 0
    crates = Path(__file__).resolve().parent.parent / "crates"
    for crate in sorted(crates.iterdir()):
        for fault in check(crate.name, needs(crate / "src")):
            print(f"crates/{crate.name}: {fault}")
            faults += 1
    print(f"circles: {faults} faults")
    return min(faults, 1)


def check(crate: str, edges: set[tuple[str, str]]):
    """Yields the faults among these edges of siblings."""
    excepted = EXCEPTIONS.get(crate, {})
    rest = edges - set(excepted)
    for circle in circles(rest):
        yield f"{' and '.join(circle)} need each other: move what they share below them"
    for edge in sorted(excepted):
        closes = edge in edges and any(edge[0] in it for it in circles(rest | {edge}))
        if not closes:
            yield f"{edge[0]} -> {edge[1]} closes no circle: it is no exception any more"


def circles(edges: set[tuple[str, str]]) -> list[list[str]]:
    """The strongly connected sets of several modules."""
    names = sorted({name for edge in edges for name in edge})
    reach = {name: reached(name, edges) for name in names}
    found = {
        tuple(other for other in names if other in reach[name] and name in reach[other])
        for name in names
        if name in reach[name]
    }
    return [list(circle) for circle in sorted(found)]


def reached(name: str, edges: set[tuple[str, str]]) -> set[str]:
    """What a module depends on, directly or indirectly."""
    seen: set[str] = set()
    todo = [name]
    while todo:
        at = todo.pop()
        fresh = {to for of, to in edges if of == at} - seen
        seen |= fresh
        todo += fresh
    return seen


def needs(src: Path) -> set[tuple[str, str]]:
    """The dependencies in a crate, each between the outermost modules that are siblings."""
    texts = {module_of(src, path): path.read_text() for path in src.rglob("*.rs")}
    tests = {(*of, name) for of, text in texts.items() for name in TEST_FILE.findall(text)}
    is_test = lambda module: any(module[: len(test)] == test for test in tests)
    texts = {module: text for module, text in texts.items() if module and not is_test(module)}
    edges = set()
    for module, text in texts.items():
        code = COMMENT.sub("", TEST_BLOCK.sub("", text))
        for path in paths(code):
            to = resolve(module, path, texts)
            same = next((i for i, (a, b) in enumerate(zip(module, to)) if a != b), None)
            if same is not None:
                edges.add(("::".join(module[: same + 1]), "::".join(to[: same + 1])))
    return edges


def module_of(src: Path, path: Path) -> Module:
    """The module that a file defines; none for the crate root."""
    parts = path.relative_to(src).with_suffix("").parts
    return () if parts in {("lib",), ("main",)} else parts[:-1] if parts[-1] == "mod" else parts


def paths(code: str):
    """Yields every path that begins at the crate or at a parent, with braces expanded."""
    for found in PATH.finditer(code):
        yield from unfold(code, found.end(), found[1].split("::"))


def unfold(code: str, at: int, before: list[str]):
    """Yields the paths that continue at a position, after a prefix."""
    if code[at : at + 1] != "{":
        found = NAME.match(code, at)
        path = [*before, found[1]] if found else before
        if found and found[2]:
            yield from unfold(code, found.end(), path)
        else:
            yield path
        return
    depth, begin = 0, at + 1
    for end in range(at, len(code)):
        depth += {"{": 1, "}": -1}.get(code[end], 0)
        if depth == 0 or depth == 1 and code[end] == ",":
            begin += len(code[begin:end]) - len(code[begin:end].lstrip())
            if begin < end:
                yield from unfold(code, begin, before)
            begin = end + 1
        if depth == 0:
            return


def resolve(module: Module, path: list[str], modules) -> Module:
    """The module that a path leads to, starting from a module."""
    ups = path.count("super")
    base = module[: len(module) - ups] if ups else ()
    full = (*base, *(part for part in path if part not in {"crate", "super", "self"}))
    while full and full not in modules:
        full = full[:-1]
    return full


if __name__ == "__main__":
    sys.exit(main())
