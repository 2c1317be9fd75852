//! A group of stations controlled by a script, line by line; the result is a trace.
//!
//! The channel is ideal unless told otherwise: in each millisecond every station may send one frame
//! (S, then H, then D), and all others hear it at once. The runner has the group's secret, so the
//! trace can show the contents of frames. Blocks are numbered from each encoder's first.
//!
//! ```text
//! group block=2 timeout=20 ...   starts S and D (and H, with `helper`) and lets them meet
//! group mode=window ...          the same in window mode, or D alone (mode=mixed)
//! send S 3                       S's host sends three packets, each as long as a symbol
//! send S 3 udp                   the same with UDP headers: they need no order
//! send S 3 tcp                   the same as segments of a TCP connection, one after the other
//! send S 1 tcp again             a segment with the sequence number of the one before
//! run 5                          five milliseconds pass
//! lose S ENC 2 [at D]            the next two ENC frames of S are not heard (by D)
//! hold S ENC 1                   the next ENC frame of S is held back
//! release                        the frames held back arrive
//! replay S ENC at D              the last such frame arrives once more
//! bend S ENC at D                the same, with a bit flipped
//! noise 1a2b at D                these bytes arrive
//! mtu S 300                      longer frames of S are dropped, and its interface reports so
//! restart D                      D restarts
//! stranger D                     D restarts with another secret
//! show HELLO                     the trace shows such frames too (at first: ENC, ACK, WIN,
//!                                WINACK, PART)
//! stats S name ...               counters of S that are not zero
//! ```

mod open;

use core::fmt::Write;
use core::time::Duration;

use corridor_base::Time;
use corridor_proto::wire::Kind;
use corridor_proto::{
    CodingParams, ErasureRatios, Field, FrameOutcome, Goal, LinkErrors, Mode, Order, Policy, Role,
    Station, StationConfig, StationId,
};
use corridor_testbed::config as testbed;
use corridor_testbed::{Bed, Sent, Taken, Ways, World};
use etherparse::PacketBuilder;
use open::Eavesdropper;

const NAMES: [&str; 3] = ["S", "D", "H"];
/// The order in which stations send within a millisecond.
const TURNS: [usize; 3] = [0, 2, 1];
const PSK: [u8; 32] = [0x55; 32];
/// The fields of a datagram that the tunnel looks at: IPv4, and UDP as its protocol.
const UDP_HEADERS: [u8; 28] = {
    let mut headers = [0; 28];
    (headers[0], headers[9]) = (0x45, 17);
    headers
};
/// Bytes of the IPv4 and TCP headers without options.
const SEGMENT_HEADERS_LEN: usize = 40;

/// Frames of a station that do not arrive normally.
struct Rule {
    from: usize,
    kind: Kind,
    left: u32,
    /// Only at this station.
    at: Option<usize>,
    hold: bool,
}

/// Stations on a group's channel, and what their hosts have sent.
pub struct Script {
    bed: Bed<Group>,
    configs: Vec<StationConfig>,
    starts: u8,
    packets: [u32; 2],
    /// The hosts' next sequence numbers.
    sequences: [u32; 2],
}

/// The channel, and the trace so far.
struct Group {
    ear: Eavesdropper,
    rules: Vec<Rule>,
    /// Frames held back, with their hearers.
    held: Vec<(usize, Vec<u8>)>,
    /// All frames sent so far.
    sent: Vec<(usize, Kind, Vec<u8>)>,
    shown: Vec<Kind>,
    /// Longest frame of each station that passes.
    mtus: [usize; 3],
    /// When each station may send its next frame.
    free_at: [Time; 3],
    /// Segments sent by hosts: they have to be delivered unchanged, or not at all.
    segments: Vec<Vec<u8>>,
    trace: String,
}

/// The form of a packet around its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Datagram,
    Segment,
    SegmentAgain,
}

impl Script {
    /// An empty group.
    pub fn new() -> Self {
        let group = Group {
            ear: Eavesdropper::new(PSK),
            rules: Vec::new(),
            held: Vec::new(),
            sent: Vec::new(),
            shown: vec![Kind::Enc, Kind::Ack, Kind::Window, Kind::WindowAck, Kind::Part],
            mtus: [usize::MAX; 3],
            free_at: [Time::ZERO; 3],
            segments: Vec::new(),
            trace: String::new(),
        };
        let bed = Bed::new(Vec::<Station>::new(), group);
        Script { bed, configs: Vec::new(), starts: 0, packets: [0; 2], sequences: [1; 2] }
    }

    /// Executes the lines and returns the trace.
    pub fn run(&mut self, lines: &str) -> String {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            self.command(&words);
        }
        core::mem::take(&mut self.bed.world.trace)
    }

    fn command(&mut self, words: &[&str]) {
        match *words {
            ["group", ref options @ ..] => self.group(options),
            ["send", who, count] => self.send(station(who), count, Form::Text),
            ["send", who, count, "udp"] => self.send(station(who), count, Form::Datagram),
            ["send", who, count, "tcp"] => self.send(station(who), count, Form::Segment),
            ["send", who, count, "tcp", "again"] => {
                self.send(station(who), count, Form::SegmentAgain);
            }
            ["run", ms] => self.pass(ms.parse().expect("milliseconds")),
            ["lose", who, what, count] => self.rule(who, what, count, None, false),
            ["lose", who, what, count, "at", at] => self.rule(who, what, count, Some(at), false),
            ["hold", who, what, count] => self.rule(who, what, count, None, true),
            ["release"] => {
                for (to, frame) in core::mem::take(&mut self.bed.world.held) {
                    self.arrive(to, &frame);
                }
            }
            ["replay", who, what, "at", at] => {
                let frame = self.bed.world.last(station(who), kind(what));
                self.arrive(station(at), &frame);
            }
            ["bend", who, what, "at", at] => {
                let mut frame = self.bed.world.last(station(who), kind(what));
                let middle = frame.len() / 2;
                frame[middle] ^= 4;
                self.arrive(station(at), &frame);
            }
            ["noise", hex, "at", at] => {
                let bytes = (0..hex.len() / 2)
                    .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex"));
                let bytes: Vec<u8> = bytes.collect();
                self.arrive(station(at), &bytes);
            }
            ["mtu", who, len] => self.shorten(station(who), len.parse().expect("bytes")),
            ["restart", who] => self.restart(station(who), PSK),
            ["stranger", who] => self.restart(station(who), [0x66; 32]),
            ["show", what] => self.bed.world.shown.push(kind(what)),
            ["stats", who, ref names @ ..] => self.stats(station(who), names),
            _ => panic!("unknown command: {}", words.join(" ")),
        }
    }

    // ---- stations -----------------------------------------------------------------------------

    fn group(&mut self, options: &[&str]) {
        let mut coding = CodingParams {
            tcp_nc: None,
            symbol_size: 64,
            block_size: 2,
            blocks_in_flight: 1,
            encoder_timeout: Duration::from_millis(20),
            delivery_deadline: Duration::from_millis(500),
            ack_interval: Duration::from_millis(1),
            overshoot: 1.0,
            field: Field::Gf256,
            order: Order::Systematic,
            policy: Policy::PlayNCool,
            ..CodingParams::default()
        };
        let (mut helper, mut ratios, mut alone) = (false, ErasureRatios::default(), false);
        let mut modes = [Mode::Block; 2];
        for option in options {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let number = || value.parse::<u16>().expect("a number");
            let ms = || Duration::from_millis(u64::from(number()));
            let ratio = || value.parse::<f64>().expect("a ratio");
            match name {
                "mode" if value == "window" => modes = [Mode::Window; 2],
                "mode" if value == "mixed" => modes = [Mode::Block, Mode::Window],
                "window" => coding.window_size = number(),
                "symbol" => coding.symbol_size = number(),
                "low-delay" => coding.goal = Goal::LowDelay,
                "bulk" => coding.goal = Goal::Bulk,
                "overhead" => coding.max_overhead = Some(ratio()),
                "block" => coding.block_size = number(),
                "inflight" => coding.blocks_in_flight = number(),
                "timeout" => coding.encoder_timeout = ms(),
                "deadline" => coding.delivery_deadline = ms(),
                "ack" => coding.ack_interval = ms(),
                "helper" => helper = true,
                "alone" => alone = true,
                "e1" => ratios.e1 = ratio(),
                "e2" => ratios.e2 = ratio(),
                "e3" => ratios.e3 = ratio(),
                "gf2" => coding.field = Field::Gf2,
                "dense" => coding.order = Order::Dense,
                "on-the-fly" => coding.order = Order::OnTheFly,
                "credit" => coding.policy = Policy::Credit,
                "overshoot" => coding.overshoot = ratio(),
                _ => panic!("unknown option: {option}"),
            }
        }
        let id = |index: usize| StationId(index as u16 + 1);
        for index in 0..if helper { 3 } else { 2 } {
            let role = match index {
                2 => Role::Helper { between: (id(0), id(1)) },
                _ => Role::Endpoint { peer: id(1 - index), helper: helper.then(|| id(2)) },
            };
            coding.mode = modes[index.min(1)];
            // A fixed rate keeps the rate control out of these traces.
            let rate_bps = (coding.mode == Mode::Window).then_some(1_000_000_000);
            self.configs.push(StationConfig {
                coding,
                link_errors: LinkErrors::Fixed(ratios),
                ingress_packets: 100,
                frame_len_max: 576,
                rate_bps,
                ..testbed::config(id(index), role)
            });
            let station = self.start(index, PSK);
            self.bed.push(station);
        }
        self.bed.turns = TURNS[..if helper { 3 } else { 1 }].to_vec();
        if !helper {
            self.bed.turns.push(1);
        }
        if !alone {
            let shown = core::mem::take(&mut self.bed.world.shown);
            self.pass(400);
            self.bed.world.shown = shown;
            self.bed.world.trace.clear();
        }
    }

    fn start(&mut self, index: usize, psk: [u8; 32]) -> Station {
        self.starts += 1;
        let config = StationConfig { security: psk.into(), ..self.configs[index].clone() };
        Station::new(config, [self.starts; 32], self.bed.now).expect("a possible group")
    }

    fn restart(&mut self, index: usize, psk: [u8; 32]) {
        let station = self.start(index, psk);
        self.bed.start(index, station);
        self.say(&format!("{} starts anew", NAMES[index]));
    }

    fn shorten(&mut self, index: usize, len: usize) {
        self.bed.world.mtus[index] = len;
        self.bed.limit_frames(index, len);
    }

    fn stats(&mut self, index: usize, names: &[&str]) {
        let json = format!("{:?}", self.bed[index].stats());
        let inside = json.trim_start_matches("Stats { ").trim_end_matches(" }");
        let told: Vec<&str> = inside
            .split(", ")
            .filter(|field| names.iter().any(|name| field.starts_with(&format!("{name}:"))))
            .collect();
        let _ = writeln!(self.bed.world.trace, "{} {}", NAMES[index], told.join(", "));
    }

    fn send(&mut self, from: usize, count: &str, form: Form) {
        for _ in 0..count.parse().expect("a number of packets") {
            self.packets[from] += 1;
            let name = format!("{}{}", ["p", "q"][from], self.packets[from]);
            let most = self.bed[from].tunnel_mtu();
            let mut packet = match form {
                Form::Text => Vec::new(),
                Form::Datagram => UDP_HEADERS.to_vec(),
                Form::Segment | Form::SegmentAgain => {
                    self.segment(from, form == Form::SegmentAgain, most)
                }
            };
            let len = most - packet.len();
            packet.extend_from_slice(format!("{name:.<len$}").as_bytes());
            self.bed.world.segments.extend(is_segment(&packet).then(|| packet.clone()));
            let outcome = self.bed.put(from, &packet);
            if outcome != corridor_proto::PacketOutcome::Accepted {
                self.say(&format!("{} refuses {name}: {outcome:?}", NAMES[from]));
            }
        }
    }

    /// The headers of the next segment, or of the previous one again; it is `len` bytes long.
    fn segment(&mut self, from: usize, again: bool, len: usize) -> Vec<u8> {
        let data_len = (len - SEGMENT_HEADERS_LEN) as u32;
        let sequence = &mut self.sequences[from];
        *sequence -= if again { data_len } else { 0 };
        let mut headers = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(40_000, 80, *sequence, 500)
            .ack(1)
            .write(&mut headers, &vec![0; data_len as usize])
            .expect("it is a vector");
        headers.truncate(SEGMENT_HEADERS_LEN);
        *sequence += data_len;
        headers
    }

    fn pass(&mut self, ms: u64) {
        self.bed.run(Duration::from_millis(ms));
    }

    /// Delivers a frame out of the ordinary, and traces its outcome.
    fn arrive(&mut self, to: usize, frame: &[u8]) {
        let (_, what) = self.bed.world.ear.describe(frame);
        let now = self.bed.now;
        let outcome = match self.bed[to].handle_frame(now, frame) {
            FrameOutcome::Accepted { .. } => "accepted".to_owned(),
            FrameOutcome::Handshake { .. }
            | FrameOutcome::Initiation { .. }
            | FrameOutcome::Answered { .. }
            | FrameOutcome::Noted => "taken".to_owned(),
            FrameOutcome::Rejected(why) => format!("{why:?}"),
        };
        self.say(&format!("{} hears {what}: {outcome}", NAMES[to]));
        self.bed.take(to);
    }

    fn rule(&mut self, who: &str, what: &str, count: &str, at: Option<&str>, hold: bool) {
        self.bed.world.rules.push(Rule {
            from: station(who),
            kind: kind(what),
            left: count.parse().expect("a number of frames"),
            at: at.map(station),
            hold,
        });
    }

    fn say(&mut self, what: &str) {
        self.bed.world.say(self.bed.now, what);
    }
}

impl World for Group {
    fn send(&mut self, frame: &Sent<'_>, ways: &mut Ways) {
        let &Sent { at: now, from, frame: bytes, .. } = frame;
        self.free_at[from] = now + Duration::from_millis(1);
        let (kind, what) = self.ear.describe(bytes);
        let kind = kind.expect("a station sends frames that open, or HELLOs");
        assert!(bytes.len() <= self.mtus[from], "{what}: {} bytes", bytes.len());
        let (mut lost, mut hearers) = (String::new(), Vec::new());
        let rule = self
            .rules
            .iter_mut()
            .find(|rule| rule.from == from && rule.kind == kind && rule.left > 0);
        let fate = rule.map(|rule| {
            rule.left -= 1;
            (rule.at, rule.hold)
        });
        for to in frame.others() {
            match fate {
                Some((at, hold)) if at.is_none_or(|at| at == to) => {
                    if hold {
                        self.held.push((to, bytes.to_vec()));
                        lost = "   (held)".into();
                    } else if at.is_some() {
                        lost = format!("   (lost at {})", NAMES[to]);
                    } else {
                        lost = "   (lost)".into();
                    }
                }
                _ => hearers.push(to),
            }
        }
        if self.shown.contains(&kind) {
            self.say(now, &format!("{} {what}{lost}", NAMES[from]));
        }
        self.sent.push((from, kind, bytes.to_vec()));
        for to in hearers {
            ways.put(now, from, to, bytes.to_vec());
        }
    }

    fn take(&mut self, taken: &Taken<'_>) {
        let mut packets = Vec::new();
        for packet in taken.packets {
            let mut text = packet.strip_prefix(&UDP_HEADERS).unwrap_or(packet);
            if is_segment(packet) {
                assert!(self.segments.contains(packet), "{packet:02x?}");
                text = &packet[SEGMENT_HEADERS_LEN..];
            }
            let text = String::from_utf8_lossy(text);
            packets.push(text.trim_end_matches('.').to_owned());
        }
        let name = NAMES[taken.at];
        if !packets.is_empty() {
            self.say(taken.now, &format!("{name} delivers {}", packets.join(" ")));
        }
        for (_, event) in taken.events {
            self.say(taken.now, &format!("{name} notes {event:?}"));
        }
    }

    fn free_at(&self, at: usize) -> Time {
        self.free_at[at]
    }
}

impl Group {
    fn last(&self, from: usize, kind: Kind) -> Vec<u8> {
        let mut newest_first = self.sent.iter().rev();
        let found = newest_first.find(|(sender, what, _)| *sender == from && *what == kind);
        found.expect("such a frame was sent").2.clone()
    }

    fn say(&mut self, now: Time, what: &str) {
        let ms = now.as_nanos() / 1_000_000;
        let _ = writeln!(self.trace, "{ms:>4} {what}");
    }
}

fn is_segment(packet: &[u8]) -> bool {
    const TCP: u8 = 6;
    packet.len() > SEGMENT_HEADERS_LEN && packet[0] == 0x45 && packet[9] == TCP
}

fn station(name: &str) -> usize {
    NAMES.iter().position(|known| *known == name).expect("S, D or H")
}

fn kind(name: &str) -> Kind {
    match name {
        "ENC" => Kind::Enc,
        "ACK" => Kind::Ack,
        "HELLO" => Kind::Hello,
        "REPORT" => Kind::Report,
        "WIN" => Kind::Window,
        "WINACK" => Kind::WindowAck,
        "PROBE" => Kind::Probe,
        "PART" => Kind::Part,
        _ => panic!("unknown kind of frame: {name}"),
    }
}
