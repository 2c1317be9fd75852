//! Two stations behind gates, as in drivers, mostly while strangers flood them: then the budget of
//! unproven sources is used up before any message of theirs comes.

use core::time::Duration;

use corridor_base::Time;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::wire::{INITIATION_LEN, KEY_EXCHANGE_MAC_LEN};
use crate::{CodingParams, Keys, LinkErrors, PeerKey, PrivateKey, Role, Station, StationConfig};

const IDS: [StationId; 2] = [StationId(1), StationId(2)];

struct End {
    station: Station,
    gate: Gate<usize>,
    /// HELLOs and initiations of strangers, each in the name of another source.
    flood: Vec<Vec<u8>>,
    sources: core::ops::RangeFrom<usize>,
}

fn private(id: StationId) -> PrivateKey {
    PrivateKey::from_random([id.0 as u8; 32])
}

impl End {
    fn new(at: usize, is_keyed: bool, entropy: u8, now: Time) -> Self {
        let (id, peer) = (IDS[at], IDS[1 - at]);
        let peers = vec![PeerKey { station: peer, public: private(peer).public(), psk: None }];
        let security = match is_keyed {
            true => Security::Keys(Box::new(Keys { private: private(id), peers })),
            false => [7; 32].into(),
        };
        let config = StationConfig {
            id,
            role: Role::Endpoint { peer, helper: None },
            security: security.clone(),
            coding: CodingParams::window(),
            link_errors: LinkErrors::Measured,
            ingress_packets: 100,
            frame_len_max: 1_400,
            frame_len_min: 0,
            memory_bytes: crate::bounds::MEMORY_DEFAULT,
            rate_bps: None,
        };
        let mut hello = Vec::new();
        Header { is_hello: true, session_tag: 0, counter: 0 }.write(&mut hello);
        hello.resize(80, entropy);
        let mut initiation = Vec::new();
        KeyExchange::write_head(peer, Step::Initiation, [0; 4], &mut initiation);
        initiation.resize(INITIATION_LEN - KEY_EXCHANGE_MAC_LEN, 0);
        MacKey::of(&private(id).public()).write(&mut initiation);
        End {
            station: Station::new(config, [entropy; 32], now).unwrap(),
            gate: Gate::new(id, &security, [entropy ^ 1; 32], now),
            flood: vec![hello, initiation],
            sources: 1_000..,
        }
    }

    /// Strangers use up the budgets.
    fn be_flooded(&mut self, now: Time) {
        for message in &self.flood {
            let is_turned_away = |source: usize| {
                let from = (source, &source.to_be_bytes()[..]);
                let admission = self.gate.admit(now, from, message, |_| false);
                !matches!(admission, Admission::Pass(_))
            };
            // A station without keys accepts no initiation, and so counts none.
            assert!(self.sources.by_ref().take(1_000).any(is_turned_away) || message.len() != 80);
        }
    }

    /// What is sent back at once.
    fn hear(&mut self, now: Time, from: usize, frame: &[u8]) -> Option<Vec<u8>> {
        let End { station, gate, .. } = self;
        let source = (from, &[from as u8][..]);
        match gate.admit(now, source, frame, |frame| station.expects(frame)) {
            Admission::Pass(message) => {
                station.handle_frame(now, message);
                None
            }
            Admission::Refuse => None,
            Admission::Answer(cookie) => Some(cookie.to_vec()),
        }
    }

    fn view(&self) -> crate::inspect::PeerView {
        self.station.peers().remove(0)
    }
}

/// Lets both hear each other.
fn converse(ends: &mut [End; 2], now: &mut Time, time: Duration, are_flooded: bool) {
    let end = *now + time;
    while *now < end {
        *now += Duration::from_millis(1);
        for at in [0, 1] {
            ends[at].station.handle_timeout(*now);
            while let Some(made) = ends[at].station.poll_transmit(*now) {
                let frame = made.frame.to_vec();
                if are_flooded {
                    ends[1 - at].be_flooded(*now);
                }
                if let Some(cookie) = ends[1 - at].hear(*now, at, &frame) {
                    assert!(ends[at].hear(*now, 1 - at, &cookie).is_none());
                }
            }
        }
    }
}

fn in_peace(is_keyed: bool) -> ([End; 2], Time) {
    let mut now = Time::ZERO;
    let mut ends = [0, 1].map(|at| End::new(at, is_keyed, 1 + at as u8, now));
    converse(&mut ends, &mut now, Duration::from_secs(1), false);
    assert!(ends.iter().all(|end| end.view().is_up));
    (ends, now)
}

/// A station that knew its peer sent no cookie MAC, so its initiations were answered by cookies
/// until the secret was too old.
#[test]
fn secrets_are_renewed_while_both_ends_are_flooded() {
    let (mut ends, mut now) = in_peace(true);
    ends.iter_mut().for_each(|end| end.station.set_rekey_interval(Duration::from_secs(2)));
    for _ in 0..4 {
        let before = ends.each_ref().map(|end| end.view().agreed_at);
        converse(&mut ends, &mut now, Duration::from_secs(5), true);
        let agreed = ends.each_ref().map(|end| end.view().agreed_at);
        assert!(agreed[0] > before[0] && agreed[1] > before[1], "{before:?}, {agreed:?}");
        assert!(ends.iter().all(|end| end.view().is_up));
    }
}

/// The station that has not restarted assumed the other one to be up, and sent no cookie MAC.
#[test]
fn a_station_that_restarts_is_met_while_both_ends_are_flooded() {
    for (is_keyed, at) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
        let (mut ends, mut now) = in_peace(is_keyed);
        let before = ends[1 - at].view().instance;
        ends[at] = End::new(at, is_keyed, 100, now);
        converse(&mut ends, &mut now, Duration::from_secs(10), true);
        assert!(ends.iter().all(|end| end.view().is_up), "keyed: {is_keyed}, {at}");
        assert_ne!(ends[1 - at].view().instance, before);
    }
}

#[test]
fn strangers_meet_while_both_ends_are_flooded() {
    for is_keyed in [false, true] {
        let mut now = Time::ZERO;
        let mut ends = [0, 1].map(|at| End::new(at, is_keyed, 1 + at as u8, now));
        converse(&mut ends, &mut now, Duration::from_secs(5), true);
        assert!(ends.iter().all(|end| end.view().is_up), "keyed: {is_keyed}");
    }
}

/// Its peer is still joined, but there is no secret to seal anything under.
#[test]
fn a_station_whose_secret_is_too_old_is_closed_at_once() {
    let (mut ends, now) = in_peace(true);
    let station = &mut ends[0].station;
    let later = now + crate::bounds::REJECT_AFTER_TIME;
    station.handle_timeout(later);
    station.close(later);
    assert!(station.is_closed() && station.poll_transmit(later).is_none());
    ends[1].station.close(now);
    assert!(!ends[1].station.is_closed());
}

/// An attacker's modification of a message.
#[derive(Clone, Copy, Debug)]
enum Bend {
    /// Another MAC in front of it, valid for the address or not.
    Wrap(bool),
    Cut(usize),
    Flip(usize),
    Fill(usize),
}

impl Bend {
    fn any() -> impl Strategy<Value = Self> {
        prop_oneof![
            any::<bool>().prop_map(Bend::Wrap),
            (0..200usize).prop_map(Bend::Cut),
            (0..1_600usize).prop_map(Bend::Flip),
            (0..40usize).prop_map(Bend::Fill),
        ]
    }

    fn apply(self, gate: &Gate<usize>, address: &[u8], frame: &mut Vec<u8>) {
        match self {
            Bend::Wrap(is_right) => {
                let cookie = gate.cookies[0].cookie(address);
                let mac = if is_right { cookie_mac(&cookie, frame) } else { [0; 16] };
                cookie::wrap(IDS[0], &mac, frame);
            }
            Bend::Cut(len) => frame.truncate(len),
            Bend::Flip(bit) => {
                if let Some(byte) = frame.get_mut(bit / 8) {
                    *byte ^= 1 << (bit % 8);
                }
            }
            Bend::Fill(len) => frame.resize(frame.len() + len, 0),
        }
    }
}

/// What two stations send to each other when they meet, and how it is answered during a flood.
fn recorded(is_keyed: bool) -> Vec<Vec<u8>> {
    let mut ends = [0, 1].map(|at| End::new(at, is_keyed, 1 + at as u8, Time::ZERO));
    let mut frames = Vec::new();
    for ms in 0..150 {
        let now = Time::from_millis(ms);
        for at in [0, 1] {
            ends[at].station.handle_timeout(now);
            while let Some(made) = ends[at].station.poll_transmit(now) {
                let frame = made.frame.to_vec();
                if ms < 30 {
                    ends[1 - at].be_flooded(now);
                }
                let cookie = ends[1 - at].hear(now, at, &frame);
                frames.extend([frame].into_iter().chain(cookie));
            }
        }
    }
    frames
}

proptest! {
    #![proptest_config(corridor_testing::cases!(60))]

    /// A station examines no more than its gate has counted, whatever comes.
    #[test]
    fn what_a_station_looks_into_its_gate_has_counted(
        is_keyed in any::<bool>(),
        drawn in vec((0..100usize, vec(Bend::any(), 0..4)), 1..300),
    ) {
        let (now, address) = (Time::ZERO, [0; 1]);
        let frames = recorded(is_keyed);
        let mut end = End::new(1, is_keyed, 9, now);
        let End { station, gate, .. } = &mut end;
        let (mut hellos, mut initiations) = (0, 0);
        for (which, bends) in drawn {
            let mut frame = frames[which % frames.len()].clone();
            bends.iter().for_each(|bend| bend.apply(gate, &address, &mut frame));
            match gate.admit(now, (0, &address), &frame, |frame| station.expects(frame)) {
                Admission::Pass(message) => {
                    prop_assert_eq!(cookie::unwrap(message), (None, message));
                    let is_hello = Header::parse(message).is_some_and(|it| it.is_hello);
                    hellos += u32::from(is_hello && !station.expects(message));
                    let is_initiation = |it: KeyExchange<'_>| {
                        it.step == Step::Initiation && MacKey::of(&private(IDS[1]).public()).is_of(&it)
                    };
                    initiations += u32::from(KeyExchange::parse(message).is_some_and(is_initiation));
                    station.handle_frame(now, message);
                }
                Admission::Answer(answer) => prop_assert!(answer.len() <= frame.len()),
                Admission::Refuse => {}
            }
        }
        // From one source at one time: this many with a cookie, and as many without.
        prop_assert!(hellos <= 2 * SOURCE_MESSAGES_BURST, "{} HELLOs", hellos);
        if is_keyed {
            let most = SOURCE_MESSAGES_BURST + UNPROVEN_INITIATIONS_PER_SECOND;
            prop_assert!(initiations <= most, "{} initiations", initiations);
        }
    }
}
