//! The search on paths in virtual time, with a delay, losses, and a length beyond which frames are
//! dropped.

use corridor_base::StreamKey;
use corridor_base::rand::Rng;
use std::collections::BTreeMap;

use super::*;

const LENS: FrameLens = FrameLens { min: 528, base: 1_232, max: 1_452 };

/// A path: its MTU, its round-trip delay, and its loss ratio in either direction.
struct Path {
    mtu: usize,
    rtt: Duration,
    loss_ratio: f64,
    dice: corridor_base::Stream,
}

struct Run {
    search: PathMtu,
    now: Time,
    /// Echoes in flight.
    echoes: BTreeMap<(Time, u64), (u16, usize)>,
    number: u64,
    probes: usize,
    bytes: usize,
}

impl Path {
    fn new(mtu: usize, rtt_ms: u64, loss_ratio: f64, seed: u64) -> Self {
        let key = StreamKey { seed, replication: 0, entity: 0, purpose: "path" };
        Path { mtu, rtt: Duration::from_millis(rtt_ms), loss_ratio, dice: key.stream() }
    }

    fn loses(&mut self) -> bool {
        f64::from(self.dice.next_u32()) < self.loss_ratio * f64::from(u32::MAX)
    }
}

impl Run {
    fn new(lens: FrameLens) -> Self {
        let search = PathMtu::new(lens);
        Run { search, now: Time::ZERO, echoes: BTreeMap::new(), number: 0, probes: 0, bytes: 0 }
    }

    /// Sends what is due. Echoes of one round share a frame, as on the wire.
    fn send(&mut self, path: &mut Path) {
        let mut arrived = Vec::new();
        while let Some(probe) = self.search.poll(self.now) {
            assert!(probe.len <= self.search.lens.max, "{probe:?}");
            self.probes += 1;
            self.bytes += probe.len;
            if probe.len <= path.mtu && !path.loses() {
                arrived.push((probe.round, probe.len));
            }
        }
        if !path.loses() {
            for echo in arrived {
                self.number += 1;
                self.echoes.insert((self.now + path.rtt, self.number), echo);
            }
        }
    }

    /// Lets the next event happen, but none after `until`.
    fn step(&mut self, path: &mut Path, until: Time) {
        self.send(path);
        let due = self.search.poll_timeout();
        let next = self.echoes.first_key_value().map_or(due, |(&(at, _), _)| at.min(due));
        if next > until {
            self.now = until;
            return;
        }
        match self.echoes.first_key_value() {
            Some((&(at, number), &(round, len))) if at <= due.max(self.now) => {
                self.echoes.remove(&(at, number));
                self.now = at;
                self.search.handle_echo(at, round, len);
            }
            _ => {
                assert!(due >= self.now, "a timer in the past");
                self.now = due;
            }
        }
    }

    /// Runs until the search ends, or until this time.
    fn settle(&mut self, path: &mut Path, until: Time) -> Option<usize> {
        while self.now < until {
            self.send(path);
            if self.search.phase == Phase::Rest {
                return Some(self.search.frame_len());
            }
            self.step(path, until);
        }
        None
    }

    fn pass(&mut self, path: &mut Path, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.step(path, until);
        }
    }
}

#[test]
fn a_path_that_carries_everything_is_known_after_one_round_trip() {
    let mut path = Path::new(9_000, 80, 0.0, 1);
    let mut run = Run::new(LENS);
    assert_eq!(run.search.frame_len(), LENS.base);
    assert_eq!(run.settle(&mut path, Time::from_millis(1_000)), Some(LENS.max));
    assert_eq!((run.now, run.probes), (Time::from_millis(80), 4));
}

#[test]
fn every_length_is_found_where_nothing_gets_lost() {
    for mtu in (LENS.min..=LENS.max + 20).chain([9_000]) {
        let mut path = Path::new(mtu, 40, 0.0, 1);
        let mut run = Run::new(LENS);
        let found = run.settle(&mut path, Time::from_millis(5_000)).expect("an end");
        let most = mtu.min(LENS.max);
        assert!(found <= most && found + PRECISION > most, "{mtu}: {found}");
        assert!(run.probes <= 80 && run.bytes < 100_000, "{mtu}: {}", run.probes);
    }
}

#[test]
fn losses_are_not_taken_for_a_short_path() {
    let mut wrong = 0;
    let (mut slowest, mut sum) = (Time::ZERO, 0.0);
    for seed in 0..300 {
        let mut dice = StreamKey { seed, replication: 1, entity: 0, purpose: "mtu" }.stream();
        let mut below = |count: u32| dice.next_u32() % count;
        let mtu = LENS.min + below(1_200) as usize;
        let max = [1_452, 1_452, 9_000][below(3) as usize];
        let (rtt, loss) = (1 + below(200), f64::from(below(45)) / 100.0);
        let mut path = Path::new(mtu, rtt.into(), loss, seed);
        let mut run = Run::new(FrameLens { max, ..LENS });
        let Some(found) = run.settle(&mut path, Time::from_millis(600_000)) else {
            panic!("seed {seed}: no end: {mtu} of {max}, {rtt} ms, {loss}")
        };
        let most = mtu.min(max);
        assert!(found <= most, "seed {seed}: {found} does not pass {mtu}");
        wrong += usize::from(found + PRECISION <= most);
        slowest = slowest.max(run.now);
        sum += run.now.as_secs_f64();
    }
    println!("too short: {wrong} of 300, mean time {} s, slowest {slowest:?}", sum / 300.0);
    assert!(wrong <= 6, "{wrong} of 300 are too short");
    assert!(slowest < Time::from_millis(300_000), "{slowest:?}");
}

#[test]
fn an_outage_proves_nothing() {
    let mut path = Path::new(1_452, 20, 0.0, 3);
    let mut run = Run::new(LENS);
    path.loss_ratio = 1.0;
    run.pass(&mut path, Duration::from_secs(60));
    assert_eq!(run.search.frame_len(), LENS.base);
    assert!(run.probes < 30, "{} probes to nobody", run.probes);
    path.loss_ratio = 0.0;
    let until = run.now + Duration::from_secs(60);
    assert_eq!(run.settle(&mut path, until), Some(LENS.max));
    // The same where something was known.
    path.loss_ratio = 1.0;
    run.pass(&mut path, Duration::from_secs(60));
    assert_eq!(run.search.frame_len(), LENS.max);
}

#[test]
fn a_path_that_becomes_shorter_is_noticed_and_one_that_becomes_longer_too() {
    let mut path = Path::new(1_452, 20, 0.1, 4);
    let mut run = Run::new(LENS);
    run.settle(&mut path, Time::from_millis(60_000)).unwrap();
    path.mtu = 1_352;
    run.pass(&mut path, MTU_CONFIRM_INTERVAL + Duration::from_secs(10));
    let found = run.search.frame_len();
    assert!((1_349..=1_352).contains(&found), "{found}");
    path.mtu = 1_452;
    run.pass(&mut path, 2 * MTU_RAISE_FIRST + Duration::from_secs(10));
    assert_eq!(run.search.frame_len(), 1_452);
}

/// After the path's MTU had been smaller for a moment, it took 600 s until the full MTU was used
/// again.
#[test]
fn a_longer_length_is_looked_for_soon_after_a_fall_and_then_more_and_more_rarely() {
    for told in [false, true] {
        let mut path = Path::new(1_452, 20, 0.0, 7);
        let mut run = Run::new(LENS);
        run.settle(&mut path, Time::from_millis(5_000)).unwrap();
        path.mtu = 1_300;
        if told {
            run.search.limit(run.now, 1_300);
        }
        run.pass(&mut path, MTU_CONFIRM_INTERVAL + Duration::from_secs(2));
        assert!((1_297..=1_300).contains(&run.search.frame_len()), "told: {told}");
        // While the MTU stays small, this costs little: seven searches in half an hour.
        let (probes, bytes) = (run.probes, run.bytes);
        run.pass(&mut path, Duration::from_secs(1_800));
        println!("told: {told}: {} probes, {} bytes", run.probes - probes, run.bytes - bytes);
        assert!(run.bytes - bytes < 1_500_000, "{} bytes", run.bytes - bytes);
        let looks = |run: &Run| run.search.raise.after;
        assert_eq!(looks(&run), MTU_RAISE_INTERVAL);
        // After another decrease, the search starts again soon.
        path.mtu = 1_200;
        run.pass(&mut path, MTU_CONFIRM_INTERVAL + Duration::from_secs(2));
        assert!(run.search.frame_len() <= 1_200);
        path.mtu = 1_452;
        run.pass(&mut path, 2 * MTU_RAISE_FIRST);
        assert_eq!(run.search.frame_len(), 1_452, "told: {told}");
    }
}

/// A full queue accepts short frames and no long ones. In three rounds of 30 ms the path appeared
/// to have an MTU of 1232 bytes, in six one of 528, and kept that for ten minutes.
#[test]
fn a_queue_that_is_full_for_a_moment_is_no_short_path() {
    let mut path = Path::new(1_452, 1, 0.0, 8);
    let mut run = Run::new(LENS);
    run.settle(&mut path, Time::from_millis(5_000)).unwrap();
    path.mtu = 600;
    run.search.hint(run.now);
    run.pass(&mut path, MTU_DOUBT_SPAN * 3 / 4);
    assert_eq!(run.search.safe_len(), LENS.min, "what must arrive does not wait for the verdict");
    path.mtu = 1_452;
    run.pass(&mut path, Duration::from_secs(2));
    assert_eq!((run.search.frame_len(), run.search.safe_len()), (1_452, 1_452));
}

#[test]
fn a_hint_is_looked_into_and_not_believed() {
    let mut path = Path::new(1_452, 20, 0.0, 5);
    let mut run = Run::new(LENS);
    run.settle(&mut path, Time::from_millis(5_000)).unwrap();
    let probes = run.probes;
    for _ in 0..1_000 {
        run.search.hint(run.now);
        run.pass(&mut path, Duration::from_millis(1));
    }
    assert_eq!(run.search.frame_len(), 1_452, "forged");
    assert!(run.probes - probes <= 4, "{} probes asked for", run.probes - probes);
    path.mtu = 1_400;
    run.pass(&mut path, MTU_HINT_INTERVAL);
    run.search.hint(run.now);
    run.pass(&mut path, Duration::from_secs(2));
    assert!((1_397..=1_400).contains(&run.search.frame_len()), "{}", run.search.frame_len());
}

/// Each hint delayed the search for a longer length until the next rest, which never came.
#[test]
fn hints_do_not_put_a_longer_length_off() {
    let mut path = Path::new(1_452, 20, 0.0, 9);
    let mut run = Run::new(LENS);
    run.settle(&mut path, Time::from_millis(5_000)).unwrap();
    path.mtu = 1_300;
    run.search.hint(run.now);
    run.pass(&mut path, Duration::from_secs(2));
    assert!(run.search.frame_len() <= 1_300);
    path.mtu = 1_452;
    for _ in 0..3 {
        run.search.hint(run.now);
        run.pass(&mut path, Duration::from_secs(10));
    }
    assert_eq!(run.search.frame_len(), 1_452);
}

#[test]
fn what_the_interface_refuses_is_never_sent_again() {
    let mut path = Path::new(1_452, 20, 0.0, 6);
    let mut run = Run::new(LENS);
    run.settle(&mut path, Time::from_millis(5_000)).unwrap();
    run.search.limit(run.now, 1_300);
    assert_eq!(run.search.frame_len(), 1_300);
    let until = run.now + Duration::from_secs(5);
    assert_eq!(run.settle(&mut path, until), Some(1_300));
    // A length less than every path carries is ignored.
    run.search.limit(run.now, 12);
    assert_eq!(run.search.frame_len(), LENS.min);
}

#[test]
fn what_was_not_asked_is_no_answer() {
    let mut run = Run::new(LENS);
    while run.search.poll(run.now).is_some() {}
    for round in 0..4 {
        for len in [0, 1, 1_300, 1_453, 9_000, 65_535] {
            run.search.handle_echo(run.now, round, len);
        }
    }
    assert_eq!(run.search.frame_len(), LENS.base);
}
