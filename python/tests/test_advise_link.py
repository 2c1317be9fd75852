"""Advice on a tunnel's coding: input, candidates, and output."""

import json
import tomllib
from collections.abc import Iterable
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corridor.advise import NetworkError
from corridor.advise.link import (
    CODINGS_MAX,
    Coding,
    GivenLink,
    LinkAdvice,
    advise_link,
    codings,
    is_link,
    read_link,
)
from corridor.advise.link import show as link_show
from corridor.advise.link.coding import _CHOICES, _LEFT_OUT
from corridor.advise.link.file import LEAST_S
from corridor.advise.link.search import EVENTS_PER_PACKET, RUNS_EACH_MIN, LinkSampler, gain
from corridor.advise.search import BUDGET, KEPT, search
from corridor.study.main import app
from matplotlib import pyplot as plt
from typer.testing import CliRunner

TOP = Path(__file__).parents[2]
LINK = """
name = "short"

[link]
rate_bps = "2M"
rtt_ms = 10
loss_there = 0.3
loss_back = 0.1

[link.helper]
loss_from_here = 0.05
loss_to_peer = 0.05

[traffic]
transport = "udp"
offered_bps = "0.5M"

[coding]
preset = "block"
block_size = 100
symbol_size = 1000
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "link.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> GivenLink:
    return read_link(write(tmp_path_factory.mktemp("link"), LINK))


def test_a_file_is_a_link_with_a_coding_of_its_own(given: GivenLink, tmp_path: Path) -> None:
    assert given.own == Coding("block", helper=True, block_size=100)
    assert given.kept == {"symbol_size": 1000}
    plan = tomllib.loads(given.plan(given.own))
    (run,) = plan["run"]
    assert (run["e1"], run["e2"], run["e3"], run["e3_back"]) == (0.05, 0.05, 0.3, 0.1)
    assert run["path"] == "coded+helper"
    assert run["coding"] == {"preset": "block", "block_size": 100, "symbol_size": 1000}
    without = tomllib.loads(given.plan(Coding("window")))["run"][0]
    assert (without["path"], without.get("e1")) == ("coded", None)
    unused = LINK.replace("to_peer = 0.05", "to_peer = 0.05\nused = false")
    assert not read_link(write(tmp_path, unused)).own.helper
    # Nothing is set: the node's own defaults.
    nothing = LINK.split("[coding]")[0]
    assert read_link(write(tmp_path, nothing)).own == Coding("block", helper=True)
    lone = nothing.replace("[link.helper]\nloss_from_here = 0.05\nloss_to_peer = 0.05\n", "")
    assert read_link(write(tmp_path, lone)).own == Coding("window")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"2M"', '"fast"', r":5: link.rate_bps = fast: expected bits per second"),
        ('"2M"', "0", r":5: link.rate_bps = 0: expected bits"),
        ("rtt_ms = 10", "rtt_ms = -1", r":6: link.rtt_ms = -1: expected a number 0 to 10000"),
        ("loss_there = 0.3", "loss_there = 0.95", r":7: link.loss_there = 0.95"),
        ("loss_there = 0.3\n", "", r":4: link.loss_there = nothing: expected a number 0 to 0.9"),
        ("loss_back = 0.1", "loss_bakc = 0.1", r":8: link.loss_bakc = 0.1: expected one of"),
        ("loss_back = 0.1", "queue_frames = 2.5", r":8: link.queue_frames = 2.5: expected a whole"),
        ("loss_back = 0.1", "duplex = 'full'", r":8: link.duplex = full: expected half"),
        ("loss_back = 0.1", "drops_when_full = 1", r":8: link.drops_when_full = 1"),
        ("loss_to_peer = 0.05", "loss_to_peer = nan", r":12: link.helper.loss_to_peer = nan"),
        ("loss_to_peer = 0.05", "", r":10: link.helper.loss_to_peer = nothing"),
        ('"udp"', '"sctp"', r":15: traffic.transport = sctp: expected one of tcp, udp"),
        ('offered_bps = "0.5M"\n', "", r":14: traffic.offered_bps = nothing"),
        ('"block"', '"blocks"', r":19: coding.preset = blocks: expected one of window"),
        ("block_size = 100", "block_size = 0", r":20: coding.block_size = 0"),
        ("block_size = 100", "block_sice = 9", r":20: .*block_sice"),
        ("block_size = 100", "overshoot = [1]", r":20: coding.overshoot: expected a number"),
        ("block_size = 100", "goal = 'fun'", r":20: .*fun"),
        ("loss_back = 0.1", "underlay = 'udp'", r":8: link.underlay = \"udp\": expected ethernet"),
        (
            '"block"\nblock_size = 100',
            '"window"\n[coding.delivery_udp]\nfun = 1',
            r":21: `fun` is not known in \[coding.delivery_udp\]",
        ),
        ("symbol_size", "[coding.delivery_udp]\nfun", r":22: `fun` is not known in \[coding.del"),
        ("[traffic]", "[trafic]", r":14: trafic = .*: expected one of the keys"),
        ("[link]", "[[link]]", r"link = .*: expected a table \[link\]"),
    ],
)
def test_a_bad_link_is_refused_by_its_line(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(NetworkError, match=message):
        read_link(write(tmp_path, LINK.replace(old, new, 1)))


@pytest.mark.parametrize("rate", ["2M", "12M", "50M", "400M", "10G"])
def test_the_fewest_runs_are_within_the_default_budget(rate: str, tmp_path: Path) -> None:
    text = LINK.replace('"2M"', f'"{rate}"').replace("rtt_ms = 10", "rtt_ms = 0.01")
    # Low load needs no shorter runs.
    assert read_link(write(tmp_path, text)).duration_s >= 4
    text = text.replace('"0.5M"', f'"{rate}"')
    given = read_link(write(tmp_path, text))
    seconds = given.table["warm_up_s"] + given.duration_s
    events = EVENTS_PER_PACKET * seconds * given.rate_bps / 8 / 1_400
    is_within = RUNS_EACH_MIN * CODINGS_MAX * events < 1.05e6 * BUDGET
    # A run must be long compared with the tunnel's timers.
    assert is_within or given.duration_s == LEAST_S
    runs = LinkSampler(given, [given.own]).runs(given.own, 2)
    assert np.all(runs.goodput_bps > 0)


def test_round_trips_of_too_many_packets_are_refused(tmp_path: Path) -> None:
    text = LINK.replace('"2M"', '"10G"').replace('"0.5M"', '"10G"')
    text = text.replace("rtt_ms = 10", "rtt_ms = 100")
    with pytest.raises(NetworkError, match=r":6: link.rtt_ms = 100.0: expected about 18.7 at most"):
        read_link(write(tmp_path, text))


def test_so_many_codings_are_tried_at_most_the_own_first() -> None:
    own = [Coding(), Coding("block", helper=True, block_size=7, policy="credit", overshoot=2.0),
           Coding("window", goal="throughput", max_overhead=0.5, ack_interval_ms=5.0),
           Coding("paper"), Coding("tcp-nc")]  # fmt: skip
    for each in own:
        found = codings(each, has_helper=True)
        assert found[0] == each
        assert len(set(found)) == len(found) <= CODINGS_MAX
        # Fields without effect are not set.
        assert all(tried == tried.effective() for tried in found)
        assert any(tried.helper for tried in found)
    # A coding that is not among the candidates adds one: the maximum number.
    assert len(codings(Coding("paper"), has_helper=True)) == CODINGS_MAX
    page = (TOP / "docs" / "site" / "pages" / "howto" / "coding.md").read_text()
    assert f"up to {CODINGS_MAX} codings" in page
    assert not any(tried.helper for tried in codings(Coding(), has_helper=False))
    kept = codings(Coding(), has_helper=True, keep=["preset"])
    assert {tried.preset for tried in kept} == {"window"}
    with pytest.raises(ValueError, match="keep = gaol"):
        codings(Coding(), has_helper=False, keep=["gaol"])


@pytest.mark.parametrize(
    ("preset", "key", "value"),
    [(preset, *each) for preset, keys in _LEFT_OUT.items() for each in keys.items()],
)
def test_a_key_set_to_what_it_is_anyway_changes_nothing(
    preset: str, key: str, value: Any, given: GivenLink
) -> None:
    left_out = Coding(preset)
    own = left_out.with_values({key: value})
    assert own != left_out
    # The runs are the same ...
    sampler = LinkSampler(given, [own])
    for one, other in zip(*(astuple(sampler.runs(each, 2)) for each in (own, left_out)),
                          strict=True):  # fmt: skip
        assert np.array_equal(one, other, equal_nan=True)
    # ... and so are the other candidates.
    tried = [
        {getattr(each, key) for each in codings(was, has_helper=False) if each.preset == preset}
        for was in (own, left_out)
    ]
    assert tried[0] - {value} == tried[1] - {None}


def test_what_a_key_is_when_left_out_takes_no_place() -> None:
    credit = codings(Coding("block", policy="credit"), has_helper=False)
    assert {each.policy for each in credit if each.preset == "block"} == {"credit", "playncool"}
    throughput = codings(Coding("window", goal="throughput"), has_helper=False)
    goals = {each.goal for each in throughput if each.preset == "window"}
    assert goals == {"throughput", "low-delay", "bulk"}


def properties(schema: dict[str, Any], table: str) -> dict[str, Any]:
    """Return the keys of a table of Corridor's own file."""
    found = schema["properties"][table]
    found = found.get("items", found)
    for part in (found, *found.get("anyOf", ()), *found.get("allOf", ())):
        if "$ref" in part:
            found = schema["$defs"][part["$ref"].rpartition("/")[2]]
    return dict(found["properties"])


def test_keys_and_words_are_those_of_the_configuration() -> None:
    schema = json.loads((TOP / "share" / "corridor.schema.json").read_text())
    known = properties(schema, "coding")
    text = json.dumps(schema)
    for choices in _CHOICES.values():
        for name, values in choices.items():
            assert name in known
            words = [value for value in values if isinstance(value, str)]
            assert all(f'"const": "{word}"' in text or f'"{word}"' in text for word in words)
    assert set(Coding.__dataclass_fields__) - {"helper"} <= set(known)
    # Keys that are not searched stay, if they have an effect.
    kept = {"symbol_size": 900, "repair_margin": False, "clamp_windows": False}
    assert set(kept) <= set(known)
    assert Coding().table(kept).keys() == {"preset", "symbol_size", "clamp_windows"}
    assert Coding("block").table(kept).keys() == {"preset", "symbol_size", "repair_margin"}
    assert {"id", "role"} <= set(properties(schema, "peer"))


@pytest.fixture(scope="module")
def advice(given: GivenLink) -> LinkAdvice:
    return advise_link(given, sought="delay", budget=1, jobs=2, keep=["overshoot", "policy"])


def test_advice_is_better_than_what_is_set_and_the_same_again(
    given: GivenLink, advice: LinkAdvice
) -> None:
    again = advise_link(given, sought="delay", budget=1, jobs=1, keep=["overshoot", "policy"])
    one = link_show.row(advice)
    assert json.dumps(one) == json.dumps(link_show.row(again))
    # Blocks of 100 packets at a low rate take long to fill.
    assert one["changes"]
    assert 0 < gain(advice).low <= gain(advice).value < 1
    now, then = one["expected_now"], one["expected"]
    assert then["delay_p95_s"]["value"] < now["delay_p95_s"]["value"]
    assert then["goodput_bps"]["value"] > 0.98 * now["goodput_bps"]["value"]
    assert then["frames"]["value"] > 1
    figure = link_show.picture(advice)
    assert figure.axes[0].get_ylabel() == "goodput / Mbit/s"
    plt.close(figure)


def test_lines_are_a_file_of_corridors(advice: LinkAdvice) -> None:
    found = tomllib.loads("\n".join(link_show.lines(advice)))
    schema = json.loads((TOP / "share" / "corridor.schema.json").read_text())
    for table, keys in found.items():
        for entry in keys if isinstance(keys, list) else [keys]:
            assert set(entry) <= set(properties(schema, table))
    assert found["coding"]["symbol_size"] == 1000, "what is not searched stays"


def test_what_is_set_stays_where_nothing_is_better(given: GivenLink) -> None:
    names = set(Coding.__dataclass_fields__)
    kept = advise_link(given, budget=0.1, keep=sorted(names))
    assert kept.changes == {}
    assert link_show.row(kept)["reason"] == "nothing that was tried is better"


def test_histories_are_the_same_for_all_codings(given: GivenLink) -> None:
    sampler = LinkSampler(given, [given.own], "air")
    one, other = (sampler.runs(each, 2) for each in (given.own, Coding("window")))
    assert np.all(one.goodput_bps > 0)
    assert np.all(other.frames >= 1)
    again = LinkSampler(given, [given.own], jobs=1).runs(given.own, 2)
    assert np.array_equal(one.delay_p95_s, again.delay_p95_s)
    # Another name for the same coding.
    named = sampler.runs(Coding("window", goal="throughput"), 2)
    for values, same in zip(astuple(other), astuple(named), strict=True):
        assert np.array_equal(values, same, equal_nan=True)
    other_seed = LinkSampler(given, [given.own], seed=1).runs(given.own, 2)
    assert not np.array_equal(one.delay_p95_s, other_seed.delay_p95_s)


class Made(LinkSampler):
    """Results: blocks are cheap but lose half of the goodput; among windows, `bulk` is cheapest."""

    def run(self, settings: Iterable[Coding], count: int, first: int = 0) -> None:
        for each in settings:
            for number in range(first, first + count):
                is_block = each.preset == "block"
                frames = 1.0 if is_block else 1.2 if each.goal == "bulk" else 1.5
                # Histories differ a little, equally for all codings.
                frames *= 1 + 0.001 * (number % 7)
                goodput_bps = 1e6 if is_block else 2e6
                self._done[each, number] = [goodput_bps, 0.1, 0.2, 0.0, frames, frames]
                self.run_count += 1


def test_what_loses_goodput_does_not_push_out_what_keeps_it(given: GivenLink) -> None:
    own = Coding("window")
    tried = codings(own, has_helper=True)
    assert sum(each.preset == "block" for each in tried) > len(tried) / KEPT
    found = search(Made(replace(given, own=own), tried, "air"), 2_000, 0)
    assert found.changes == {"goal": "bulk"}
    assert found.gain.value == pytest.approx(1.5 / 1.2 - 1, rel=0.01)


def test_of_tcp_the_air_is_bytes_per_byte(tmp_path: Path) -> None:
    text = LINK.replace('"udp"', '"tcp"').replace('offered_bps = "0.5M"', "")
    given = read_link(write(tmp_path, text))
    # Only UDP has frames per packet.
    sampler = LinkSampler(given, [given.own], "air")
    one, other = (sampler.transfers(each, 2) for each in (given.own, Coding("window")))
    assert np.isnan(sampler.runs(given.own, 2).frames).all()
    for each in (one, other):
        assert np.isfinite(each.spent_s).all()
        # On a lossy link, more bytes are on the air than are delivered.
        assert np.all(each.bytes == 1)
        assert np.all(each.spent_s > 1)
    assert not np.array_equal(one.spent_s, other.spent_s)


def test_the_command_tells_links_from_networks(tmp_path: Path) -> None:
    path = write(tmp_path, LINK.replace('"0.5M"', '"0.2M"'))
    assert is_link(path)
    assert not is_link(TOP / "examples" / "advise" / "hall.toml")
    keep = [f"--keep={name}" for name in ("overshoot", "policy", "blocks_in_flight", "delivery")]
    done = CliRunner().invoke(app, ["advise", str(path), "--budget", "0.1", "--json", *keep])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["link"] == "short"
    done = CliRunner().invoke(app, ["advise", str(path), "--budget", "0.1", *keep])
    assert "frames on the air per packet" in done.stdout
    for wrong in (["--together"], ["--flow", "a:b"], ["--for", "fun"], ["--packets", "9"]):
        assert CliRunner().invoke(app, ["advise", str(path), *wrong]).exit_code == 2
    hall = str(TOP / "examples" / "advise" / "hall.toml")
    assert CliRunner().invoke(app, ["advise", hall, "--for", "air"]).exit_code == 2


def test_the_example_is_a_link() -> None:
    given = read_link(TOP / "examples" / "advise" / "tunnel.toml")
    assert (given.own, given.helper) == (Coding("window"), (0.1, 0.1))
