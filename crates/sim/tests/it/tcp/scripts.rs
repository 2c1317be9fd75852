//! Exchanges as readable scripts in the folder `scripts`: each line is an event, a colon, and its
//! consequences. Times are milliseconds, numbers count packets.
//!
//! A script begins with the end under test and its settings, `sender reno window=20` or
//! `receiver delayed=2`, `sender linux cubic` or `receiver linux buffer=44`, and for senders with
//! `show` and the gauges to show. Then:
//!
//! | line | event |
//! |---|---|
//! | `0 offer 10` | the application has 10 packets more |
//! | `100 ack 3 sack 5-7` | an acknowledgment of all before 3, and of 5 and 6 |
//! | `100 ack 3 until 9` | one with the end of the receiver's window |
//! | `100 ack 3 echo 50 ce` | one that echoes a packet's time, and congestion |
//! | `100 data 4 echo 50 ce` | packet 4, sent at 50, arrives, marked |
//! | `100 data 4 echo 50 cwr` | one that says that the window was reduced |
//! | `hold` | from here on the end under test cannot send |
//! | `release` | it can again |
//! | `timer` | time goes on until the next timer, and this expires |

use std::fmt::Write;
use std::time::Duration;

use corridor_base::Time;
use corridor_sim::tcp::linux::{Congestion, LinuxReceiverConfig, LinuxSenderConfig};
use corridor_sim::tcp::{
    Acks, AnyReceiver, AnySender, ReceiverConfig, Reduction, RtoConfig, RtoEstimator, RttSampling,
    SACK_RANGES_MAX, SackRange, Segment, SenderConfig, Variant, VegasConfig,
};

/// Plays a script, and compares the consequences of each line.
fn plays(name: &str, script: &str) {
    let mut played = String::new();
    let mut end: Option<End> = None;
    for line in script.lines() {
        let input = line.split(" :").next().unwrap().trim_end();
        let words: Vec<&str> = input.split_whitespace().collect();
        match words.as_slice() {
            [] => played.push_str(line),
            [first, ..] if first.starts_with('#') => played.push_str(line),
            ["sender", variant, settings @ ..] => {
                end = Some(End::sender(variant, settings));
                played.push_str(line);
            }
            ["receiver", settings @ ..] => {
                end = Some(End::receiver(settings));
                played.push_str(line);
            }
            ["show", gauges @ ..] => {
                end.as_mut().unwrap().show = gauges.iter().map(|gauge| gauge.to_string()).collect();
                played.push_str(line);
            }
            words => {
                let found = end.as_mut().unwrap().step(words);
                write!(played, "{input:30} : {found}").unwrap();
            }
        }
        played.truncate(played.trim_end_matches(' ').len());
        played.push('\n');
    }
    let lines = script.lines().zip(played.lines()).enumerate();
    for (index, (expected, found)) in lines {
        assert_eq!(found, expected, "{name}, line {}; all of it:\n{played}", index + 1);
    }
}

/// The end under test.
struct End {
    sender: Option<AnySender>,
    receiver: Option<AnyReceiver>,
    show: Vec<String>,
    now: Time,
    held: bool,
}

impl End {
    fn new(sender: Option<AnySender>, receiver: Option<AnyReceiver>) -> End {
        End { sender, receiver, show: Vec::new(), now: Time::ZERO, held: false }
    }

    /// A sender with ns-2's settings, or the RFCs' with `rfc`, and the script's changes.
    fn sender(variant: &str, settings: &[&str]) -> End {
        let variant = match variant {
            "tahoe" => Variant::Tahoe,
            "reno" => Variant::Reno,
            "newreno" => Variant::NewReno,
            "sack" => Variant::Sack,
            "cubic" => Variant::Cubic,
            "vegas" => Variant::Vegas(VegasConfig::default()),
            "linux" => return End::linux_sender(settings),
            other => panic!("{other}: expected a variant"),
        };
        let rfc = settings.contains(&"rfc");
        let mut config = if rfc { SenderConfig::rfc(variant) } else { SenderConfig::ns2(variant) };
        config.limited_transmit = false;
        for setting in settings.iter().filter(|setting| **setting != "rfc") {
            let (key, value) = setting.split_once('=').unwrap_or((setting, "0"));
            let number: u32 = value.parse().unwrap();
            match key {
                "window" => config.window_packets_max = number,
                "initial" => config.initial_window_packets = number,
                "ssthresh" => config.initial_ssthresh_packets = Some(number),
                "limited" => config.limited_transmit = true,
                "careless" => config.careful = false,
                "flight" => config.reduction = Reduction::Flight,
                "timestamps" => config.rtt_sampling = RttSampling::Timestamps,
                "karn" => config.rtt_sampling = RttSampling::OnePacket,
                "ecn" => config.ecn = true,
                "tick" => config.rto.granularity = Duration::from_millis(number.into()),
                "constrained" => config.rto = RtoConfig::constrained(),
                "fixed" => {
                    let timeout = Duration::from_millis(number.into());
                    config.rto.estimator = RtoEstimator::Fixed(timeout);
                }
                "first" => config.rto.estimator = RtoEstimator::FirstSample { k: number },
                "steady" => config.rto.backoff = false,
                other => panic!("{other}: expected a setting of a sender"),
            }
        }
        End::new(Some(AnySender::new(config.into()).unwrap()), None)
    }

    /// A Linux sender with the script's changes to its settings.
    fn linux_sender(settings: &[&str]) -> End {
        let mut config = LinuxSenderConfig::new(Congestion::Cubic);
        for setting in settings {
            let (key, value) = setting.split_once('=').unwrap_or((setting, "0"));
            match key {
                "cubic" => config.congestion = Congestion::Cubic,
                "reno" => config.congestion = Congestion::Reno,
                "bbr" => config.congestion = Congestion::Bbr,
                "initial" => config.initial_window_packets = value.parse().unwrap(),
                "ecn" => config.ecn = true,
                "paced" => config.pacing = true,
                other => panic!("{other}: expected a setting of Linux's sender"),
            }
        }
        End::new(Some(AnySender::new(config.into()).unwrap()), None)
    }

    fn receiver(settings: &[&str]) -> End {
        if let Some((&"linux", settings)) = settings.split_first() {
            let mut config = LinuxReceiverConfig::new(1_448);
            for setting in settings {
                match setting.split_once('=') {
                    Some(("buffer", value)) => {
                        config.buffer_packets_initial = value.parse().unwrap();
                    }
                    _ => panic!("{setting}: expected a setting of Linux's receiver"),
                }
            }
            return End::new(None, Some(AnyReceiver::new(config.into()).unwrap()));
        }
        let mut config = ReceiverConfig::ns2(false);
        for setting in settings {
            let (key, value) = setting.split_once('=').unwrap_or((setting, "0"));
            match key {
                "sack" => config.sack = true,
                "positive" => config.acks = Acks::Positive,
                "discards" => config.keeps_out_of_order = false,
                "delayed" => config.delayed_ack_packets = value.parse().unwrap(),
                "window" => config.window_packets_max = value.parse().unwrap(),
                other => panic!("{other}: expected a setting of a receiver"),
            }
        }
        End::new(None, Some(AnyReceiver::new(config.into()).unwrap()))
    }

    /// Plays a line; returns the consequences.
    fn step(&mut self, words: &[&str]) -> String {
        let mut found = String::new();
        match words {
            ["hold"] => self.held = true,
            ["release"] => self.held = false,
            ["timer"] => {
                let sender = self.sender.as_ref().and_then(AnySender::poll_timeout);
                let receiver = self.receiver.as_ref().and_then(AnyReceiver::poll_timeout);
                let Some(at) = sender.or(receiver) else { return "none".to_string() };
                self.now = at;
                write!(found, "at {} ", at.as_nanos() as f64 / 1e6).unwrap();
                self.sender.iter_mut().for_each(|sender| sender.handle_timeout(at));
                self.receiver.iter_mut().for_each(|receiver| receiver.handle_timeout(at));
            }
            [time, words @ ..] => {
                self.now = Time::from_millis(time.parse().unwrap());
                self.happens(words);
            }
            [] => {}
        }
        self.drain(&mut found);
        found.trim_end().to_string()
    }

    fn happens(&mut self, words: &[&str]) {
        if let ["offer", packets] = words {
            self.sender.as_mut().unwrap().offer(packets.parse().unwrap());
            return;
        }
        let segment = segment(words);
        let now = self.now;
        self.sender.iter_mut().for_each(|sender| sender.handle_segment(now, &segment));
        self.receiver.iter_mut().for_each(|receiver| receiver.handle_segment(now, &segment));
    }

    /// Writes what is sent, and the gauges.
    fn drain(&mut self, found: &mut String) {
        let now = self.now;
        if !self.held {
            let sender = self.sender.iter_mut();
            let sent = sender.flat_map(|sender| std::iter::from_fn(|| sender.poll_transmit(now)));
            sent.for_each(|segment| write!(found, "{} ", words_of(&segment)).unwrap());
            let receiver = self.receiver.iter_mut();
            let sent =
                receiver.flat_map(|receiver| std::iter::from_fn(|| receiver.poll_transmit(now)));
            sent.for_each(|segment| write!(found, "{} ", words_of(&segment)).unwrap());
        }
        let Some(sender) = &self.sender else { return };
        let stats = sender.stats();
        if !self.show.is_empty() {
            found.push_str("| ");
        }
        for gauge in &self.show {
            match gauge.as_str() {
                "cwnd" => write!(found, "cwnd {:.4} ", stats.cwnd_packets),
                "ssthresh" => write!(found, "ssthresh {} ", stats.ssthresh_packets),
                "inflation" => write!(found, "inflation {} ", stats.inflation_packets),
                "state" => match sender {
                    AnySender::Classic(sender) => write!(found, "{:?} ", sender.state()),
                    AnySender::Linux(sender) => write!(found, "{:?} ", sender.state()),
                },
                "undos" => match sender {
                    AnySender::Classic(_) => Ok(()),
                    AnySender::Linux(sender) => write!(found, "undos {} ", sender.undos()),
                },
                "rto" => write!(found, "rto {} ", sender.rto().as_secs_f64() * 1e3),
                other => panic!("{other}: expected a gauge"),
            }
            .unwrap();
        }
    }
}

/// Parses an acknowledgment or a packet of a script.
fn segment(words: &[&str]) -> Segment {
    let number = words[1].parse().unwrap();
    let value = |key| words.iter().position(|word| *word == key).map(|index| words[index + 1]);
    let ce = words.contains(&"ce");
    let echo = Time::from_millis(value("echo").map_or(0, |echo| echo.parse().unwrap()));
    if words[0] == "data" {
        let retransmission = words.contains(&"again");
        return Segment::Data {
            sequence: number,
            sent_at: echo,
            retransmission,
            congestion_experienced: ce,
            window_reduced: words.contains(&"cwr"),
        };
    }
    assert_eq!(words[0], "ack", "{words:?}: expected data or ack");
    let mut sack = [SackRange::default(); SACK_RANGES_MAX];
    for (place, range) in sack.iter_mut().zip(value("sack").iter().flat_map(|it| it.split(','))) {
        let (start, end) = range.split_once('-').unwrap();
        *place = SackRange { start: start.parse().unwrap(), end: end.parse().unwrap() };
    }
    let window_end = value("until").map(|end| end.parse().unwrap());
    Segment::Ack {
        next: number,
        echo,
        echo_retransmission: false,
        sack,
        congestion_echo: ce,
        window_end,
    }
}

/// A sent segment in the words of a script.
fn words_of(segment: &Segment) -> String {
    match segment {
        Segment::Data { sequence, retransmission, window_reduced, .. } => {
            let again = if *retransmission { "again" } else { "" };
            let reduced = if *window_reduced { "cwr" } else { "" };
            format!("{sequence}{again}{reduced}")
        }
        Segment::Ack { next, echo, sack, congestion_echo, .. } => {
            let mut words = format!("ack {next}");
            let ranges = sack.iter().filter(|range| range.end > range.start);
            for (index, range) in ranges.enumerate() {
                let before = if index == 0 { " sack " } else { "," };
                write!(words, "{before}{}-{}", range.start, range.end).unwrap();
            }
            if *echo > Time::ZERO {
                write!(words, " echo {}", echo.as_nanos() / 1_000_000).unwrap();
            }
            words + if *congestion_echo { " ce;" } else { ";" }
        }
    }
}

macro_rules! scripts {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            plays(stringify!($name), include_str!(concat!("scripts/", stringify!($name), ".txt")));
        })*
    };
}

scripts!(
    slow_start_and_avoidance,
    reno_one_loss,
    reno_two_losses,
    tahoe_one_loss,
    newreno_partial_acks,
    sack_recovery,
    cubic_loss,
    limited_transmit,
    karn_and_backoff,
    rto_rfc6298,
    rto_others,
    ecn_echo,
    idle_restart,
    strange_acks,
    receiver_rfc2018,
    receiver_window,
    receiver_delayed,
    receiver_go_back_n,
    receiver_positive,
    linux_rack_reordering,
    linux_tail_probe,
    linux_prr,
    linux_spurious_timeout,
    linux_undo_by_timestamps,
    linux_undo_by_duplicates,
    linux_hystart,
    linux_ecn,
    linux_receiver_ecn,
    linux_receiver_opens,
    linux_receiver_quick,
    linux_receiver_delayed_echo,
    linux_receiver_beyond_gap,
    linux_pacing,
);
