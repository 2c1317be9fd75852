"""Commands for several machines on pages, run on as many network namespaces.

Each machine has its own network and ``/run``. All of them end with the test; if the test is killed,
after ``PATIENCE_S``.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_site import TOP, TYPED, program

#: Maximum duration of a test, seconds: other work may use the processors.
PATIENCE_S = 120
#: Sends ICMP echoes, where ping is not installed.
PING = """#!{python}
import os, socket, struct, sys, time
count, address = int(sys.argv[2]), sys.argv[3]
def summed(data):
    total = sum(struct.unpack(f"!{{len(data) // 2}}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
raw.settimeout(1)
came = 0
for number in range(count):
    ident = os.getpid() & 0xFFFF
    head = struct.pack("!BBHHH", 8, 0, 0, ident, number)
    raw.sendto(struct.pack("!BBHHH", 8, 0, summed(head), ident, number), (address, 0))
    try:
        while struct.unpack("!BBHHH", raw.recv(2048)[20:28])[0::3] != (0, ident):
            pass
        came += 1
    except TimeoutError:
        pass
print(f"{{count}} packets transmitted, {{came}} received")
sys.exit(0 if came else 1)
"""
#: Machines on one channel, where each hears all, and how commands are typed on them.
PRELUDE = """
set -eu
mount -t tmpfs none /run
ip link add air type bridge ageing_time 0 mcast_snooping 0
ip link set air up
machine() { # NAME INTERFACE [ADDRESS]
    mkdir -p $1
    cp -r $TOP/examples $TOP/plans $1/
    unshare --mount --net sh -ec "mount -t tmpfs none /run; : > $1/ready; exec sleep 1000" &
    until [ -e $1/ready ]; do sleep 0.05; done
    eval "of_$1=$!"
    ip link add p_$1 type veth peer name $2 netns $!
    ip link set p_$1 master air up
    enter $1 "ip link set lo up; ip link set $2 up; ${3:+ip addr add $3/24 dev $2}"
}
enter() { # NAME COMMAND
    eval "pid=\\$of_$1"
    nsenter --target $pid --mount --net sh -ec "cd $PWD/$1; $2"
}
on() { # NAME COMMAND
    echo "$1: $2"
    enter "$@"
}
up() { # NAME COMMAND: goes on beside
    echo "$1: $2"
    enter $1 "exec > log 2>&1; $2" &
    heard $1 "is up"
}
heard() { # NAME WORDS
    for _ in $(seq 600); do
        if grep -q "$2" $1/log; then return; fi
        sleep 0.1
    done
    cat */log
    exit 1
}
"""
_ROOT = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
_SPACES = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
_UNSHARE = ["unshare", *_ROOT, *_SPACES]


def _absent() -> str:
    """Why there can be no network; empty if there can."""
    if program() is None:
        return "the program is not built"
    if missing := [name for name in ("ip", "unshare", "nsenter") if shutil.which(name) is None]:
        return f"no command {missing[0]}"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "/dev/net/tun cannot be opened"
    tried = subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "no network namespaces"


#: If a network is required, a missing prerequisite fails the test.
pytestmark = pytest.mark.skipif(
    "os.environ.get('CORRIDOR_REQUIRE_NET') != '1' and _absent()",
    reason="no network, or the program is not built",
)


def typed(page: str, machine: str) -> list[str]:
    """Return the commands that a page gives for a machine, block by block."""
    found = [
        "\n".join(block.commands)
        for block in TYPED
        if (block.page, block.mark) == (f"docs/site/pages/{page}.md", f"on machine {machine}")
    ]
    assert found, f"{page}: nothing is typed on machine {machine}"
    return found


class Machines:
    """A script that runs commands on machines, a line each."""

    def __init__(self) -> None:
        self.script = PRELUDE

    def machine(self, name: str, interface: str, address: str = "") -> None:
        """Create a machine, with the checkout's examples and plans in its folder."""
        self.script += f"machine {name} {interface} {address}\n"

    def type(self, machine: str, commands: str) -> None:
        """Run commands; a started node keeps running beside the others."""
        for command in commands.splitlines():
            verb = "up" if re.match(r"sudo corridor up\b", command) else "on"
            self.script += f"{verb} {machine} {shlex.quote(command)}\n"

    def copy(self, file: str, here: str, there: str) -> None:
        """Copy a file from one machine to another."""
        self.script += f"cp -p {here}/{file} {there}/{file}\n"

    def hear(self, machine: str, words: str) -> None:
        """Wait until a node's log has these words."""
        self.script += f"heard {machine} {shlex.quote(words)}\n"

    def run(self, folder: Path) -> str:
        """Run the script; return its output."""
        corridor = program()
        assert corridor is not None
        tools = folder / "tools"
        tools.mkdir()
        (tools / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
        if shutil.which("ping") is None:
            (tools / "ping").write_text(PING.format(python=sys.executable))
        for tool in tools.iterdir():
            tool.chmod(0o755)
        places = [str(corridor.parent), str(tools), os.environ.get("PATH", os.defpath)]
        asked = {"PATH": os.pathsep.join(places), "TOP": str(TOP), "EDITOR": "true"}
        done = subprocess.run(
            ["timeout", "--kill-after=5", str(PATIENCE_S), *_UNSHARE, "sh", "-c", self.script],
            cwd=folder, env=os.environ | asked, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        logs = "".join(f"\n{log}:\n{log.read_text()}" for log in sorted(folder.glob("*/log")))
        assert done.returncode == 0, f"{done.stdout}{logs}"
        return done.stdout


def test_the_first_link(tmp_path: Path) -> None:
    key, up_a, look = typed("tutorials/first-link", "A")
    install = "sudo install target/release/corridor /usr/local/bin/"
    (up_b,) = typed("tutorials/first-link", "B")
    page = (TOP / "docs/site/pages/tutorials/first-link.md").read_text()
    (table,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    net = _two("192.0.2.1")
    built = "mkdir -p target/release && cp $(command -v corridor) target/release/"
    empty = f"mount -t tmpfs none /usr/local/bin && {install} && /usr/local/bin/corridor --version"
    net.type("A", f"{built}\nunshare --mount sh -ec {shlex.quote(empty)}")
    net.type("A", key)
    net.copy("corridor.key", "A", "B")
    net.type("A", up_a)
    net.type("B", up_b)
    net.hear("A", "session with station 2 is up")
    net.type("A", look)
    net.script += f"cat >> A/corridor.toml <<'end'\n{table}end\n"
    net.type("A", "kill -HUP $(corridor status --json | grep -o '\"pid\": *[0-9]*' | cut -d: -f2)")
    net.hear("A", ", applied: synthetic_loss")
    net.type("A", "ping -c 20 10.9.0.2")
    _ask(net, "A")
    said = net.run(tmp_path)
    assert "3 packets transmitted, 3" in said
    assert "20 packets transmitted, 20" in said


def _two(address: str) -> Machines:
    """Two machines; B has the address in the examples."""
    net = Machines()
    net.machine("A", "eth0", address)
    net.machine("B", "eth0", "192.0.2.2")
    return net


def _ask(net: Machines, machine: str) -> None:
    """Run the README's queries to a running node."""
    text = (TOP / "README.md").read_text()
    asked = re.findall(r"^    (corridor status[^#\n]*)", text, re.MULTILINE)
    assert len(asked) == 5
    for command in map(str.strip, asked):
        if "| jq" in command and shutil.which("jq") is None:
            continue
        # One runs until it is stopped.
        watched = command.endswith("--watch")
        net.type(machine, f"timeout 3 {command} || [ $? = 124 ]" if watched else command)


def test_the_readmes_two_machines(tmp_path: Path) -> None:
    text = (TOP / "README.md").read_text()
    quick = text.partition("## Quick start")[2].partition("\n## ")[0]
    build, at_a, at_b, look = (
        "\n".join(line.split("  #")[0].strip() for line in block.splitlines())
        for block in re.findall(r"(?:^    .+\n)+", quick, re.MULTILINE)
    )
    assert build.startswith("cargo build --release")
    ping, iperf3 = look.splitlines()
    assert iperf3 == "iperf3 -c 10.9.0.2"
    net = _two("192.0.2.1")
    # The editor changes nothing: B has the address that the example names.
    net.type("A", at_a.replace("sudo corridor up", "true up"))
    net.copy("corridor.key", "A", "B")
    net.type("B", at_b)
    net.type("A", at_a.splitlines()[-1])
    net.hear("A", "session with station 2 is up")
    net.type("A", ping)
    assert "3 packets transmitted, 3" in net.run(tmp_path)


def test_a_hub(tmp_path: Path) -> None:
    net = Machines()
    net.machine("hub", "eth0", "192.0.2.1")
    net.machine("peer", "eth0", "192.0.2.3")
    net.type("hub", "corridor genpsk --out examples/hub/corridor.key")
    net.copy("examples/hub/corridor.key", "hub", "peer")
    (commands,) = typed("howto/hub", "hub")
    net.type("hub", commands)
    net.type("peer", "sudo corridor up examples/hub/peer.toml")
    net.hear("hub", "session with station 3 is up")
    net.type("peer", "ping -c 3 10.9.0.1")
    net.type("hub", commands.splitlines()[-1])
    assert re.search(r"^peer: station 3$", net.run(tmp_path), re.MULTILINE)


def test_keys_of_ones_own(tmp_path: Path) -> None:
    first, second, last = typed("howto/keys", "A")
    net = _two("192.0.2.1")
    net.type("A", first)
    net.type("B", "corridor genkey --out own.key\ncp examples/keys/b.toml corridor.toml")
    # Each has the key that the page's second command prints on the other.
    for here, there in (("A", "B"), ("B", "A")):
        net.script += (
            f"key=$(on {there} 'corridor pubkey < own.key' | tail -n 1)\n"
            f"sed -i \"s|^public_key.*|public_key = '$key'|\" "
            f"{here}/examples/keys/{here.lower()}.toml\n"
        )
    net.type("B", "cp examples/keys/b.toml corridor.toml")
    # A already has its key.
    net.type("A", "\n".join(second.splitlines()[1:]))
    net.type("B", "sudo corridor up corridor.toml")
    net.type("A", last)
    net.hear("A", "session with station 2 is up")
    net.type("A", "ping -c 3 10.9.0.2")
    assert "3 packets transmitted, 3" in net.run(tmp_path)


def test_a_helper(tmp_path: Path) -> None:
    net = _row("radio", ("left", "helper", "right"))
    net.type("left", "sudo corridor up examples/radio/left.toml")
    net.type("right", "sudo corridor up examples/radio/right.toml")
    (commands,) = typed("howto/helper", "helper")
    net.type("helper", commands)
    net.hear("left", "session with station 2 is up")
    net.hear("left", "session with station 3 is up")
    net.type("left", "ping -c 3 10.9.0.2")
    assert "3 packets transmitted, 3" in net.run(tmp_path)


def test_relays(tmp_path: Path) -> None:
    net = _row("relay", ("left", "relay", "right"))
    # The ends do not hear each other.
    net.script += "for end in left right; do bridge link set dev p_$end isolated on; done\n"
    net.type("left", "sudo corridor up examples/relay/left.toml")
    net.type("right", "sudo corridor up examples/relay/right.toml")
    (commands,) = typed("howto/relay", "relay")
    net.type("relay", commands)
    for end in ("left", "right"):
        net.hear(end, "session with station 2 is up")
    net.type("left", "ping -c 3 10.9.0.3")
    net.type("relay", commands.splitlines()[-1])
    assert "3 packets transmitted" in net.run(tmp_path)


def _row(examples: str, names: tuple[str, ...]) -> Machines:
    """Machines with a radio, and the same key beside the examples on each."""
    net = Machines()
    for name in names:
        net.machine(name, "wlan0")
    key = f"examples/{examples}/corridor.key"
    net.type(names[0], f"corridor genpsk --out {key}")
    for name in names[1:]:
        net.copy(key, names[0], name)
    return net
