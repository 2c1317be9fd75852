//! Radios and their MACs together: the script notation that `dcf.rs` and `wpan.rs` use, and
//! properties that hold for every network.

use core::time::Duration;
use std::fmt::Write;

use corridor_air::dcf::DcfConfig;
use corridor_air::radio::{
    Begun, Decoding, Fading, FrameKind, Links, MAX_LINKS, MacConfig, MacEvent, PathLoss, Radio,
    RadioConfig, RadioError, RadioLink, RadioMedium, RadioMediumConfig, RadioStation, Rate,
    Receiver, SendOutcome,
};
use corridor_air::wpan::WpanConfig;
use corridor_air::{Address, Station};
use corridor_base::Time;
use proptest::prelude::*;

pub fn us(us: u64) -> Time {
    Time::from_nanos(us * 1000)
}

/// Stations at 0 dBm with these links of 60 dB, in both directions.
pub fn network(stations: usize, links: &[(Station, Station)], mac: MacConfig) -> RadioMediumConfig {
    let both = |&(a, b): &(usize, usize)| [RadioLink::new(a, b, 60.0), RadioLink::new(b, a, 60.0)];
    let radio = RadioConfig {
        stations: vec![RadioStation::default(); stations],
        links: Links::Matrix(links.iter().flat_map(both).collect()),
        fading: Fading::None,
        receiver: Receiver { decoding: Decoding::Threshold { sinr_db: 3.0 }, ..Receiver::DOT11 },
        propagation: Duration::ZERO,
        seed: 1,
        replication: 0,
    };
    RadioMediumConfig { radio, mac, queue_frames: 50 }
}

/// When, sender, addressee, how many bytes.
pub type Offer = (u64, Station, Address, u32);

/// Outcome of some offers: all transmissions, and all events.
pub struct Outcome {
    pub begun: Vec<Begun<usize>>,
    pub events: Vec<MacEvent<usize>>,
}

/// Runs until nothing is left to do. Payloads are the indices of the offers.
pub fn run(config: &RadioMediumConfig, offers: &[Offer]) -> Outcome {
    let mut medium = RadioMedium::new(config).expect("sound settings");
    medium.keep_transmissions();
    let mut outcome = Outcome { begun: Vec::new(), events: Vec::new() };
    let mut offers = offers.iter().enumerate().peekable();
    loop {
        let next = offers.peek().map(|(_, offer)| us(offer.0));
        let due = medium.poll_timeout();
        match (next, due) {
            (Some(at), due) if due.is_none_or(|due| at <= due) => {
                let (index, &(_, from, to, len_bytes)) = offers.next().expect("peeked");
                medium.offer(at, from, to, len_bytes, index).expect("the queue has room");
            }
            (_, Some(due)) => medium.handle_timeout(due),
            (_, None) => break,
        }
        outcome.begun.extend(core::iter::from_fn(|| medium.poll_transmission()));
        outcome.events.extend(core::iter::from_fn(|| medium.poll_event()));
    }
    outcome
}

impl Outcome {
    /// One line for each transmission: when it begins, who sends what to whom, for how long; then
    /// one for each event that is not a reception: when, who, what, attempts. In microseconds.
    pub fn script(&self) -> String {
        let mut lines = Vec::new();
        for Begun { at, airtime, frame } in &self.begun {
            let kind = match frame.kind {
                FrameKind::Data => "data",
                FrameKind::Ack => "ack",
                FrameKind::Rts => "rts",
                FrameKind::Cts => "cts",
            };
            let to = match frame.to {
                Address::Station(to) => to.to_string(),
                Address::All => "all".to_owned(),
            };
            let (at, airtime) = (at.as_nanos() / 1000, airtime.as_micros());
            lines.push((at, format!("{at} {kind} {}>{to} {airtime}", frame.from)));
        }
        for event in &self.events {
            if let MacEvent::Sent { at, station, outcome, attempts, .. } = event {
                let at = at.as_nanos() / 1000;
                lines.push((at, format!("{at} {station} {outcome:?} {attempts}")));
            }
        }
        lines.sort_by_key(|(at, _)| *at);
        lines.iter().fold(String::new(), |mut script, (_, line)| {
            writeln!(script, "{line}").expect("a string takes all");
            script
        })
    }

    /// Which station received which offer when, in microseconds.
    pub fn received(&self) -> Vec<(u64, Station, usize)> {
        let received = self.events.iter().filter_map(|event| match event {
            MacEvent::Received { at, station, payload, .. } => {
                Some((at.as_nanos() / 1000, *station, *payload))
            }
            MacEvent::Sent { .. } => None,
        });
        received.collect()
    }
}

/// Compares what happened with a script, which may be indented.
pub fn assert_script(outcome: &Outcome, expected: &str) {
    let lines = expected.lines().map(str::trim).filter(|line| !line.is_empty());
    let expected: String = lines.map(|line| format!("{line}\n")).collect();
    assert_eq!(outcome.script(), expected);
}

#[test]
fn frames_do_not_cross_channels() {
    let mac = MacConfig::Dcf(DcfConfig::a(Rate::Ofdm6));
    let mut config = network(3, &[(0, 1), (0, 2)], mac);
    config.radio.stations[2].channel = 1;
    let outcome = run(&config, &[(0, 0, Address::All, 100)]);
    assert_eq!(outcome.received(), [(196, 1, 0)]);
}

#[test]
fn power_falls_with_distance_and_shadows_are_the_same_both_ways() {
    let path_loss = PathLoss {
        reference_db: 40.0,
        reference_m: 1.0,
        exponent: 3.0,
        extra_db: 0.0,
        shadowing_db: 0.0,
        is_fixed: false,
    };
    let mac = MacConfig::Dcf(DcfConfig::a(Rate::Ofdm6));
    let mut config = network(3, &[], mac).radio;
    let metres = vec![[0.0; 3], [10.0, 0.0, 0.0], [0.0, 1000.0, 0.0]];
    config.links = Links::Positions { metres: metres.clone(), path_loss };
    let power = |config: &RadioConfig| -> Vec<_> {
        let radio = Radio::<()>::new(config).expect("sound settings");
        let found: Vec<_> =
            (0..3).flat_map(|from| radio.neighbours(from).collect::<Vec<_>>()).collect();
        found
    };
    // 40 dB at a metre, 30 dB more at ten metres; at 1000 m, -130 dBm is below the floor.
    let found = power(&config);
    assert_eq!(found.len(), 2);
    assert!((10.0 * libm::log10(found[0].1) + 70.0).abs() < 1e-9, "{found:?}");
    let shadowed = PathLoss { shadowing_db: 6.0, ..path_loss };
    config.links = Links::Positions { metres, path_loss: shadowed };
    let found = power(&config);
    assert_eq!(found[0].1, found[1].1);
    assert!((10.0 * libm::log10(found[0].1) + 70.0).abs() > 1e-3, "{found:?}");
}

#[test]
fn more_links_than_there_may_be_are_refused() {
    let path_loss = PathLoss {
        reference_db: 40.0,
        reference_m: 1.0,
        exponent: 3.0,
        extra_db: 0.0,
        shadowing_db: 0.0,
        is_fixed: false,
    };
    let mac = MacConfig::Dcf(DcfConfig::a(Rate::Ofdm6));
    let links = |stations: usize, last_m: f64| {
        let mut metres: Vec<_> = (0..stations).map(|at| [at as f64 * 0.01, 0.0, 0.0]).collect();
        metres[stations - 1][1] = last_m;
        let mut config = network(stations, &[], mac.clone()).radio;
        config.links = Links::Positions { metres, path_loss };
        let radio = Radio::<()>::new(&config)?;
        Ok((0..stations).map(|from| radio.neighbours(from).count()).sum::<usize>())
    };
    const { assert!(1025 * 1024 > MAX_LINKS) };
    assert_eq!(links(1025, 0.0), Err(RadioError::Links));
    // Out of reach of all others.
    assert_eq!(links(1025, 10_000.0), Ok(1024 * 1023));
}

#[test]
fn a_wrong_setting_is_named_with_its_value() {
    let mac = MacConfig::Dcf(DcfConfig::a(Rate::Ofdm6));
    let sound = network(2, &[(0, 1)], mac);
    let mut config = sound.clone();
    config.radio.receiver.floor_dbm = -50.0;
    let refused = RadioMedium::<()>::new(&config).expect_err("the floor is too high");
    assert_eq!(refused, RadioError::Floor { given: -50.0, most: -82.0 });
    let mut config = sound.clone();
    config.radio.links = Links::Matrix(vec![RadioLink::new(0, 2, 60.0)]);
    let refused = RadioMedium::<()>::new(&config).expect_err("there is no station 2").to_string();
    assert_eq!(refused, "links[0] leads from 0 to 2, expected two stations below 2");
    let mut config = sound;
    config.mac = MacConfig::Wpan(WpanConfig { retries: 8, ..WpanConfig::default() });
    let refused = RadioMedium::<()>::new(&config).expect_err("too many retries").to_string();
    assert_eq!(refused, "retries is 8, expected 0 to 7");
}

#[test]
fn the_standard_s_error_ratio_of_oqpsk() {
    // IEEE 802.15.4-2006, E.4.1.8, at an SINR of 1: only the first terms matter.
    let first =
        120.0 * libm::exp(-10.0) - 560.0 * libm::exp(-40.0 / 3.0) + 1820.0 * libm::exp(-15.0);
    let ratio = 1.0 - Rate::Oqpsk250.success_ratio(1.0, 1.0);
    assert!((ratio / (first / 30.0) - 1.0).abs() < 0.1, "{ratio}");
    // For every rate, better with more power and worse with more bits.
    for rate in corridor_air::radio::OFDM.into_iter().chain(corridor_air::radio::DSSS) {
        let at = |db: f64, bits| rate.success_ratio(libm::pow(10.0, db / 10.0), bits);
        assert!(at(40.0, 12_000.0) > 0.999_999, "{rate:?}");
        assert!(at(-20.0, 12_000.0) < 1e-6, "{rate:?}");
        assert!((-20..40).all(|db| at(f64::from(db), 800.0) <= at(f64::from(db + 1), 800.0)));
        assert!((-20..40).all(|db| at(f64::from(db), 800.0) >= at(f64::from(db), 1600.0)));
    }
}

/// A random network of a few stations, with frames to send.
fn networks() -> impl Strategy<Value = (RadioMediumConfig, Vec<Offer>)> {
    let losses = prop::collection::vec(prop::option::of(60.0..105.0), 30);
    let offers = prop::collection::vec((0_u64..30_000, 0_usize..6, 0_usize..7, 1_u32..100), 1..40);
    let kinds = (any::<bool>(), any::<bool>(), 0_u8..3, any::<u64>());
    (losses, offers, kinds).prop_map(|(losses, mut offers, (wpan, delayed, decoding, seed))| {
        let mac = if wpan {
            MacConfig::Wpan(WpanConfig::default())
        } else {
            MacConfig::Dcf(DcfConfig { rts_threshold_bytes: 80, ..DcfConfig::a(Rate::Ofdm6) })
        };
        let mut config = network(6, &[], mac);
        let pairs = (0..6).flat_map(|from| (0..6).map(move |to| (from, to)));
        let links = pairs.filter(|(from, to)| from != to).zip(losses);
        let links = links.filter_map(|((from, to), loss)| Some(RadioLink::new(from, to, loss?)));
        config.radio.links = Links::Matrix(links.collect());
        config.radio.seed = seed;
        config.radio.propagation = Duration::from_micros(u64::from(delayed));
        config.radio.receiver.decoding = match decoding {
            0 => Decoding::Threshold { sinr_db: 6.0 },
            1 => Decoding::ThresholdByRate,
            _ => Decoding::ErrorRatio,
        };
        offers.sort_unstable();
        let address = |to| if to == 6 { Address::All } else { Address::Station(to) };
        let offers = offers.into_iter().map(|(at, from, to, len)| (at, from, address(to), len));
        (config, offers.collect())
    })
}

proptest! {
    #![proptest_config(corridor_testing::cases!(200))]

    /// Every accepted frame has exactly one outcome, and acknowledged frames have arrived.
    #[test]
    fn frames_are_conserved((config, offers) in networks()) {
        let outcome = run(&config, &offers);
        let mut ends = vec![0; offers.len()];
        for event in &outcome.events {
            if let MacEvent::Sent { payload, outcome: end, attempts, to, at, .. } = event {
                ends[*payload] += 1;
                prop_assert!(*attempts >= 1 || *end == SendOutcome::ChannelAccess);
                prop_assert_eq!(*to == Address::All, *end == SendOutcome::Sent
                    || *to == Address::All && *end == SendOutcome::ChannelAccess);
                if *end == SendOutcome::Acknowledged {
                    let arrived = outcome.received().iter().any(|&(us, station, index)| {
                        index == *payload && Address::Station(station) == *to
                            && us <= at.as_nanos() / 1000
                    });
                    prop_assert!(arrived, "offer {} was acknowledged, and did not arrive", payload);
                }
            }
        }
        prop_assert!(ends.iter().all(|&ends| ends == 1), "{:?}", ends);
        // No station receives the same frame twice.
        let mut received: Vec<_> =
            outcome.received().into_iter().map(|(_, station, index)| (station, index)).collect();
        received.sort_unstable();
        let all = received.len();
        received.dedup();
        prop_assert_eq!(received.len(), all);
    }

    /// No station receives while it sends, receives two frames at once, or sends two at once.
    #[test]
    fn stations_are_half_duplex((config, offers) in networks()) {
        let outcome = run(&config, &offers);
        let delay = config.radio.propagation;
        let spans = |station| outcome.begun.iter().filter(move |begun| begun.frame.from == station);
        for event in &outcome.events {
            let MacEvent::Received { at, station, payload, .. } = event else { continue };
            let sent = outcome.begun.iter().find(|begun| {
                begun.frame.payload == Some(*payload) && begun.at + begun.airtime + delay == *at
            });
            let sent = sent.expect("what is received was sent");
            let begin = sent.at + delay;
            let overlaps = spans(*station).any(|own| own.at < *at && own.at + own.airtime > begin);
            prop_assert!(!overlaps, "{} received while it sent", station);
        }
        for station in 0..6 {
            let own: Vec<_> = spans(station).collect();
            prop_assert!(own.windows(2).all(|pair| pair[0].at + pair[0].airtime <= pair[1].at));
        }
    }

    /// The same seed gives the same bytes.
    #[test]
    fn runs_repeat((config, offers) in networks()) {
        let (first, second) = (run(&config, &offers), run(&config, &offers));
        prop_assert_eq!(format!("{:?}", first.events), format!("{:?}", second.events));
        prop_assert_eq!(first.begun, second.begun);
    }
}
