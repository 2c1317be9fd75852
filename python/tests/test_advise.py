"""Advice on constrained networks: input, search, and output."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from corridor.advise import (
    GRID_MAX,
    Advice,
    Given,
    NetworkError,
    Setting,
    advise,
    alike,
    grid,
    paste,
    proof,
    read,
    sample,
    search,
    show,
)
from corridor.advise.network import spread
from corridor.advise.sample import Transfers
from corridor.study.main import app
from matplotlib import pyplot as plt
from typer.testing import CliRunner

LINE = "from,to,lqi\na,b,130\nb,c,125\nc,d,160  # measured at night\n"
TRACE = "from,to,lqi,time_s\na,b,130,0\nb,c,125,0\na,b,140,60\na,b,150,120\n"
PLAN = """
name = "row"

[network]
kind = "line"
nodes = 3
spacing_m = 20

[network.radio]
mac = "802.15.4"
retries = 1
path_loss = { exponent = 3, extra_db = 15 }

[[flow]]
from = 0
to = 2

[flow.tcp]
window_packets_max = 4
"""


def write(folder: Path, text: str, name: str = "links.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Given:
    return read(write(tmp_path_factory.mktemp("line"), LINE), packets=20)


def test_a_table_of_links_is_a_network(line: Given) -> None:
    assert line.names == ("a", "b", "c", "d")
    assert line.pairs == ((1, 0), (2, 0), (3, 0))
    assert line.transfer_bytes == 20 * 94
    rows = (line.directory / "links").read_text().splitlines()
    # Equal in both directions: LQI 130 is 130/255 of 20 dB above -5 dB over the noise of -98 dBm.
    loss_db = 98 + 5 - 20 * 130 / 255
    assert [row.split()[:2] for row in rows[:2]] == [["0", "1"], ["1", "0"]]
    assert float(rows[0].split()[2]) == pytest.approx(loss_db, abs=1e-3)


@pytest.mark.parametrize(
    ("kind", "word", "lqi"),
    [("lqi", "200", 200.0), ("rssi_dbm", "-93", 127.5), ("delivery_ratio", "0.5", 102.0)],
)
def test_other_qualities_stand_for_an_lqi(kind: str, word: str, lqi: float, tmp_path: Path) -> None:
    given = read(write(tmp_path, f"from,to,{kind}\na,b,{word}\n"))
    row = (given.directory / "links").read_text().split()
    assert float(row[2]) == pytest.approx(98 + 5 - 20 * lqi / 255, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LINE + "a,d,256\n", r":5: lqi = 256: expected a number 0 to 255"),
        (LINE + "a,d,good\n", r":5: lqi = good"),
        (LINE + "a,d\n", r":5: 'a,d': expected from, to and lqi"),
        (LINE + "a,b,120\n", r":5: a to b: expected once, as in line 2"),
        (LINE + "a,a,120\n", r":5: a to a: expected two nodes"),
        (LINE + "e,f,200\n", r":5: node e: expected a network in one piece"),
        (LINE + "d,e,40\n", r":5: node e: expected a network in one piece"),
        (LINE + "a,c,130,7\n", r":5: 'a,c,130,7': expected from, to and lqi"),
        (TRACE + "a,b,130\n", r":6: 'a,b,130': expected from, to, lqi and time_s"),
        (TRACE + "a,b,130,soon\n", r":6: time_s = soon: expected a number 0 to 1e\+12"),
        (TRACE + "a,b,130,-1\n", r":6: time_s = -1"),
        (TRACE + "a,b,nan,90\n", r":6: lqi = nan: expected a number 0 to 255"),
        (TRACE + "a,b,130,60.0\n", r":6: a to b at 60.0 s: expected once, as in line 4"),
        (TRACE + "c,d,20,0\nc,d,100,1\nd,a,60,0\n", r":6: node d: expected a network in one"),
        (TRACE + "c,d,20,0\nc,d,250,1\nd,e,60,0\n", r":8: node e: expected a network in one"),
        ("from,to,lqi,when\na,b,1,1\n", r":1: when: expected time_s"),
        ("from,to,snr\na,b,1\n", r":1: snr: expected one of delivery_ratio, lqi, rssi_dbm"),
        ("from,to,delivery_ratio\na,b,1.2\n", r":2: delivery_ratio = 1.2"),
        ("\n", r"no links"),
    ],
)
def test_a_bad_table_is_refused_by_its_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=message):
        read(write(tmp_path, text))


TWO_FLOWS = PLAN + "[[flow]]\nfrom = 2\nto = 0\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # Errors name lines of the file, not of the plan generated from it.
        ("to = 2", "to = -1", r":16: flow.to = -1: expected a whole number"),
        ("to = 0", "to = -1", r":22: flow.to = -1: expected a whole number"),
        ("to = 0", "to = 7", r":22: flow\[1\].to = 7: expected a node from 0 to 2"),
        ("retries = 1", "retries = 9", r":11: .*retries is 9, expected 0 to 7"),
        ("retries = 1", "retrys = 1", r":11: `retrys` is not known in \[network.radio\]"),
        ("retries = 1", "power_dbm = 900", r":11: .*power_dbm at 0 is 900"),
        ("exponent = 3", "exponent = -3", r":12: .*path_loss.exponent is -3"),
        ("packets_max = 4", "packets_max = 0", r":19: .*window_packets_max is 0"),
        ("from = 2\n", "from = 2\nfrm = 1\n", r":22: `frm` is not known in \[flow\]"),
    ],
)
def test_what_a_plan_refuses_is_found_in_the_file(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    assert TWO_FLOWS.count(old) == 1
    with pytest.raises(NetworkError, match=r"links\.toml" + message):
        read(write(tmp_path, TWO_FLOWS.replace(old, new), "links.toml"))


@pytest.mark.parametrize(
    ("kind", "words", "mean_lqi", "sigma_db"),
    [
        # Two links: one with three measurements, 10 apart, one with two, 4 apart.
        ("lqi", ("130", "140", "150", "120", "124"), (140, 122), 20 / 255 * (208 / 3) ** 0.5),
        ("rssi_dbm", ("-93", "-91", "-89", "-92", "-90"), (153, 153), (10 / 3) ** 0.5),
        # Delivery ratios contain sampling noise: treated like links with unknown variation.
        ("delivery_ratio", ("0.5", "0.4", "0.6", "0.5", "0.5"), (102, 102), 3.0),
    ],
)
def test_a_trace_is_the_means_of_its_links_and_how_they_vary(
    kind: str,
    words: Sequence[str],
    mean_lqi: tuple[float, float],
    sigma_db: float,
    tmp_path: Path,
) -> None:
    ends = ("a,b", "a,b", "a,b", "c,b", "c,b")
    rows = [
        f"{pair},{word},{10 * at}" for at, (pair, word) in enumerate(zip(ends, words, strict=True))
    ]
    given = read(write(tmp_path, "\n".join([f"from,to,{kind},time_s", *rows])), packets=5)
    losses = [float(row.split()[2]) for row in (given.directory / "links").read_text().splitlines()]
    expected = [98 + 5 - 20 * mean / 255 for mean in mean_lqi]
    # There and back, first of a and b.
    assert losses == pytest.approx(np.repeat(expected, 2), abs=1e-3)
    fading = given.table["network"]["radio"]["fading"]
    assert fading["sigma_db"] == pytest.approx(sigma_db)
    found = sample.Sampler(given, [given.defaults]).transfers(given.defaults, 4)
    assert found.goodput_bps > 0


def test_a_trace_in_which_nothing_varies_is_a_network(tmp_path: Path) -> None:
    given = read(write(tmp_path, "a,b,200,0\na,b,200,1\n"), packets=5)
    assert given.table["network"]["radio"]["fading"]["sigma_db"] == 0
    assert sample.Sampler(given, [given.defaults]).transfers(given.defaults, 2).success == 1


def test_a_plan_is_a_network_with_defaults_of_its_own(tmp_path: Path) -> None:
    given = read(write(tmp_path, PLAN, "row.toml"))
    assert given.name == "row"
    assert given.pairs == ((0, 2),)
    assert given.defaults == Setting(retries=1, window=4)
    assert grid(given.defaults)[0] == given.defaults


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("spacing_m = 20", "spacing_m = -20", r":7: network.spacing_m = -20"),
        ("to = 2", "to = 3", r":16: flow\[0\].to = 3"),
        ("extra_db = 15", "extra_db = 60", r":16: flow\[0\].to = 2: expected a node that links"),
        ("nodes = 3", "nodos = 3", r"nodos"),
        ("to = 2", "to = 1\n[[flow]]\nfrom = 0\nto = 0", r":19: flow\[1\]"),
        ('"802.15.4"', '"dcf"', r":10: .*expected mac = \"802.15.4\""),
        ("[[flow]]", "[[flaw]]", r"flow = nothing"),
    ],
)
def test_a_bad_plan_is_refused_by_its_line(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(NetworkError, match=message):
        read(write(tmp_path, PLAN.replace(old, new, 1), "row.toml"))


def test_a_plan_in_parts_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "0 0\n20 0\n2000 0\n", "places.txt")
    places = PLAN.replace(
        'kind = "line"\nnodes = 3\nspacing_m = 20', 'kind = "positions"\npath = "places.txt"'
    )
    with pytest.raises(NetworkError, match=r":5: node 2: expected a network in one piece"):
        read(write(tmp_path, places.replace("to = 2", "to = 1"), "row.toml"))


def test_the_grid_has_at_most_96_settings_the_own_first() -> None:
    for own in (Setting(), Setting(backoff="tinyos-paper", window=3), Setting(retries=7)):
        settings = grid(own)
        assert settings[0] == own
        assert len(set(settings)) == len(settings) <= GRID_MAX
    assert {each.rto for each in grid(Setting(), ["rto"])} == {"rfc6298"}
    with pytest.raises(ValueError, match="keep = rta"):
        grid(Setting(), ["rta"])
    assert len(spread(tuple((node, 0) for node in range(1, 200)))) == 20


def transfers(kb: Sequence[float], seconds: Sequence[float]) -> Transfers:
    count = len(kb)
    done = np.array(kb)
    rest = [np.ones(count)] * 4
    return Transfers(1e3 * done, np.array(seconds), (done > 0).astype(float), *rest)


def test_goodput_counts_the_time_of_transfers_that_failed() -> None:
    found = transfers([44, 0, 44], [10, 20, 10])
    assert found.goodput_bps == pytest.approx(8 * 88e3 / 40)
    assert found.success == pytest.approx(2 / 3)
    assert sample.success(found.completed).high < 1


def test_a_failure_more_is_chance_and_two_are_not() -> None:
    whole = transfers([44] * 9, [10] * 9)
    for count, is_more in ((0, False), (1, False), (2, True)):
        some = transfers([44] * (9 - count) + [0] * count, [10] * 9)
        assert sample.lets_more_fail(some, whole) == is_more
        assert not sample.lets_more_fail(whole, some)


def test_the_interval_of_a_gain_covers_it() -> None:
    draw, hits = np.random.default_rng(7), 0
    for _ in range(400):
        luck = draw.exponential(1, 40) + 1
        times = [luck * draw.uniform(0.9, 1.1, 40) * scale for scale in (10, 12)]
        ours, others = (transfers([44] * 40, each.tolist()) for each in times)
        found = sample.gain(ours, others)
        hits += found.low <= 0.2 <= found.high
    assert 0.91 < hits / 400 < 0.985
    assert sample.gain(transfers([0, 0], [1, 1]), transfers([44, 44], [1, 1])).value == -1


def test_what_a_choice_may_lose_is_its_expectation() -> None:
    draw = np.random.default_rng(11)
    luck = draw.exponential(1, 60) + 1
    times = [luck * draw.uniform(0.8, 1.2, 60) * scale for scale in (10, 10.1)]
    ours, others = (transfers([44] * 60, each.tolist()) for each in times)
    # By drawing values of the logarithm of the ratio.
    found = sample.gain(others, ours)
    log = np.log1p(found.value)
    deviation = (np.log1p(found.high) - log) / 2.001
    drawn = np.maximum(draw.normal(log, deviation, 200_000), 0).mean()
    assert sample.loss(ours, others) == pytest.approx(drawn, rel=0.05)
    assert sample.loss(ours, ours) == 0
    failed = transfers([0] * 60, [10] * 60)
    assert sample.loss(ours, failed) == 0
    assert sample.loss(failed, ours) == float("inf")


def test_settings_are_known_by_those_alike() -> None:
    settings = grid(Setting())
    draw = np.random.default_rng(5)
    wrong, smooth = [], []
    for _ in range(20):
        effects = {"retries": {3: 0, 7: draw.normal(0, 0.3)}, "window": {5: 0.2, 2: 0.0, 8: 0.1}}
        true = [
            sum(effect[getattr(each, name)] for name, effect in effects.items())
            for each in settings
        ]
        # All settings share the histories, which differ; each has its own noise.
        history = draw.exponential(1, 3) + 0.5
        seen = [
            transfers([44] * 3, (10 * history * np.exp(draw.normal(-level, 0.4, 3))).tolist())
            for level in true
        ]
        levels = alike.levels(settings, seen)
        own = np.log([each.goodput_bps for each in seen])
        wrong.append(np.std(own - true))
        smooth.append(np.std(levels - true))
    assert np.mean(smooth) < 0.5 * np.mean(wrong)


def test_levels_of_nothing_are_numbers() -> None:
    settings = grid(Setting())[:4]
    failed = transfers([0, 0], [10, 10])
    fine = transfers([44, 44], [10, 11])
    for seen in ([failed] * 4, [fine] * 4, [failed, fine, failed, failed]):
        levels = alike.levels(settings, seen)
        assert np.isfinite(levels).all()
    assert int(np.argmax(levels)) == 1
    assert len(alike.levels(settings[:2], [fine] * 2)) == 2


@dataclass
class Drawn:
    """Transfers with a given gain, and histories shared by all settings."""

    gain: float
    seed: int
    run_count: int = 0

    @property
    def defaults(self) -> Setting:
        return Setting()

    def run(self, settings: Sequence[Setting], count: int, _first: int) -> None:
        self.run_count += len(settings) * count

    def transfers(self, setting: Setting, count: int, first: int = 0) -> Transfers:
        stream = np.random.default_rng(self.seed)
        history = stream.exponential(1, 1_000) + 0.3
        own = np.random.default_rng([self.seed, int(setting == self.defaults)])
        times = 10 * history * np.exp(own.normal(0, 0.2, 1_000))
        times /= 1 if setting == self.defaults else 1 + self.gain
        return transfers([44] * count, times[first : first + count].tolist())


@pytest.mark.parametrize("gain", [0.0, 0.1, 1.0])
def test_intervals_that_end_the_judgement_cover_the_gain(gain: float) -> None:
    hits, counts = 0, []
    for seed in range(300):
        drawn = Drawn(gain, seed)
        count, found = search._compared(cast("Any", drawn), Setting(retries=7), 600)
        hits += found.low <= gain <= found.high
        counts.append(count)
    # 95 %, up to chance and the stopping rule.
    assert hits / 300 > 0.91
    # Large gains are known sooner.
    assert np.mean(counts) < 200 if gain == 1 else np.mean(counts) == 300


@pytest.fixture(scope="module")
def advice(line: Given) -> Advice:
    return advise(line, budget=1, jobs=2)


def test_advice_is_better_than_the_defaults_and_the_same_again(line: Given, advice: Advice) -> None:
    again = advise(line, budget=1, jobs=1)
    one, other = show.row(advice), show.row(again)
    assert json.dumps(one) == json.dumps(other)
    assert one["changes"]
    assert one["gain"]["low"] > 0
    assert one["expected"]["success"]["value"] >= one["expected_of_defaults"]["success"]["value"]
    assert len(one["tried"]) == 96
    picture = show.picture(advice)
    legend = picture.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.texts][1:] == ["now", "to be"]
    plt.close(picture)


def test_defaults_stay_where_nothing_is_better(line: Given) -> None:
    kept = advise(line, budget=0.1, keep=["retries", "backoff", "window", "rto", "acks", "metric"])
    assert kept.changes == {}
    assert kept.reason == "nothing that was tried is better"
    assert kept.gain.value == 0


def test_lines_say_what_has_no_counterpart() -> None:
    new = Setting(7, "exponential-paper", 2, "semi-dynamic", "positive", "path-dr")
    contiki, linux, plan = paste.lines(new, Setting().changes(new), 94)
    assert "#define CSMA_CONF_MAX_FRAME_RETRIES 7" in contiki.lines
    assert "#define UIP_CONF_RECEIVE_WINDOW 188" in contiki.lines
    assert {"window", "rto", "acks", "metric"} == set(contiki.absent)
    assert "iwpan dev wpan0 set max_frame_retries 7" in linux.lines
    assert {"backoff", "rto", "acks", "metric"} == set(linux.absent)
    assert 'backoff = "exponential-paper"' in plan.lines
    back = paste.lines(Setting(), new.changes(Setting()), 94)[1]
    assert "ip -6 route change PREFIX dev lowpan0 window 752 rto_min 500ms" in back.lines
    assert back.lines[-1] == "sysctl -w net.ipv4.tcp_rto_min_us=500000"


def test_the_command_prints_json_and_errors(tmp_path: Path) -> None:
    path, picture = write(tmp_path, LINE), tmp_path / "advice.png"
    short = ["--packets", "10", "--budget", "0.1"]
    done = CliRunner().invoke(app, ["advise", str(path), *short, "--json", "--out", str(picture)])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["network"] == "links"
    assert picture.stat().st_size > 10_000
    done = CliRunner().invoke(app, ["advise", str(path), "--flow", "a:x"])
    assert done.exit_code == 2
    done = CliRunner().invoke(app, ["advise", str(path), *short, "--flow", "d:a", "--together"])
    assert "delivered per time" in done.stdout
    assert "project-conf.h" in done.stdout


@pytest.fixture
def prove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """Run the proof with few histories, into one file."""

    def run(words: str) -> int:
        asked = f"proof --replays 5 --budget 0.1 --out {tmp_path / 'advise.json'} {words}"
        monkeypatch.setattr(sys, "argv", asked.split())
        return proof.main()

    return run


def held(path: Path) -> dict[str, bool]:
    return {each["name"]: each["holds"] for each in json.loads(path.read_text())["checks"]}


def test_the_proof_says_which_promises_are_kept(
    tmp_path: Path, prove: Callable[[str], int]
) -> None:
    # Without an exhaustive search, the regret is unknown.
    assert prove("--whole 5 --first 4 --exhaustive 0") == 1
    path = tmp_path / "advise.json"
    found = json.loads(path.read_text())
    assert list(held(path).values()) == [False, False, True, True, False, True]
    (row,) = found["networks"]
    assert row["network"] == 4
    assert 5 <= row["nodes"] <= 20
    # The interval is one of five simultaneous ones, however few run now.
    advice = advise(proof.network(4), budget=0.1)
    assert row["replayed"] == proof.replay(advice, 5, 1 - 0.05 / 5).row()


def test_the_proof_goes_on_where_it_was_cut_short(
    tmp_path: Path,
    prove: Callable[[str], int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def row(_asked: proof.Asked, number: int, is_exhaustive: bool) -> dict[str, object]:
        ran.append(number)
        known = {"network": number, "nodes": 5, "seconds": 1.0, "checked_s": 1.0}
        gains = {key: {"value": 0.1, "low": 0.0, "high": 0.2} for key in ("predicted", "replayed")}
        if number in slow:
            known["seconds"] = 121.0
        return {**known, **gains, **({"regret": 0.01} if is_exhaustive else {})}

    ran: list[int] = []
    slow: set[int] = set()
    monkeypatch.setattr(proof, "_row", row)
    assert prove("--whole 4 --exhaustive 0 --first 2 --networks 1") == 1
    assert prove("--whole 4 --exhaustive 0") == 1
    assert ran == [2, 0, 1, 3]
    assert "1 of 4 networks are there" in capsys.readouterr().out
    # Only the networks that need the exhaustive search run again.
    ran.clear()
    assert prove("--whole 4 --exhaustive 4 --only-exhaustive") == 0
    assert ran == [0, 1, 2, 3]
    assert "3 of 4: " in (said := capsys.readouterr().out)
    assert " min left" in said
    ran.clear()
    assert prove("--whole 4 --exhaustive 4") == 0
    assert ran == []
    # A network whose answer took too long runs again: the machine may have been busy.
    slow.add(3)
    (tmp_path / "advise.json").unlink()
    assert prove("--whole 4 --exhaustive 4") == 1
    slow.clear()
    ran.clear()
    assert prove("--whole 4 --exhaustive 4") == 0
    assert ran == [3]
    ran.clear()
    # Rows with another budget, or by another advisor, do not count.
    assert prove("--whole 4 --exhaustive 0 --budget 0.2 --networks 1") == 1
    assert "another proof, kept in" in capsys.readouterr().out
    kept = json.loads((tmp_path / "advise.before.json").read_text())
    assert [row["network"] for row in kept["networks"]] == [0, 1, 2, 3]
    monkeypatch.setattr(proof, "fingerprint", lambda: "of another")
    assert prove("--whole 4 --exhaustive 0 --budget 0.2 --networks 1") == 1
    assert ran == [0, 0]
    (tmp_path / "advise.json").write_text("{}")
    with pytest.raises(SystemExit, match="expected what this has left"):
        prove("--whole 4")


def test_a_promise_that_is_broken_is_seen() -> None:
    row: dict[str, object] = {"network": 1, "seconds": 130.0, "regret": 0.04}
    row |= {"predicted": {"value": 0.1}, "replayed": {"value": -0.1, "high": -0.05}}
    found = [check["holds"] for check in proof._checks([row], 1)]
    assert found == [True, True] + [False] * 4
