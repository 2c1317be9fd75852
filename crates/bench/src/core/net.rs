//! Stations on a network of addresses, in virtual time: each is driven as by a daemon, with its
//! gate and its address book, and third parties may send from any address.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_proto::wire::{Header, PATH_CHALLENGE_LEN};
use corridor_proto::{
    Admission, AnyStation, Certainty, CodingParams, Destination, FrameOutcome, Gate, Keys,
    LinkErrors, PeerBook, PeerKey, PrivateKey, Role, Security, StationConfig, StationId,
};

/// Stands for an Internet address.
pub type Address = u32;

/// The key of a station in all measurements here.
pub fn private(id: StationId) -> PrivateKey {
    PrivateKey::from_random([id.0 as u8; 32])
}

/// Security of a station with its own keys.
pub fn keyed(me: StationId, peers: &[StationId]) -> Security {
    keyed_with(private(me), peers)
}

/// The same with a key other than the one that others know.
pub fn keyed_with(private_key: PrivateKey, peers: &[StationId]) -> Security {
    let peer = |&station| PeerKey { station, public: private(station).public(), psk: None };
    let peers = peers.iter().map(peer).collect();
    Security::Keys(Box::new(Keys { private: private_key, peers }))
}

/// One end in window mode.
pub fn config(id: StationId, peer: StationId, security: Security) -> StationConfig {
    let coding = CodingParams::window();
    StationConfig {
        id,
        role: Role::Endpoint { peer, helper: None },
        security,
        coding,
        link_errors: LinkErrors::Measured,
        ingress_packets: coding.ingress_packets_default(),
        frame_len_max: 1_400,
        frame_len_min: 0,
        memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
        rate_bps: Some(30_000_000),
    }
}

/// A station, as in a daemon.
pub struct Host {
    pub station: AnyStation,
    pub book: PeerBook<Address>,
    pub gate: Gate<Address>,
    pub at: Address,
    /// Frames to send that are not the station's: cookies and challenges.
    asides: Vec<(Address, Vec<u8>)>,
    /// Packets delivered, and when.
    pub delivered: Vec<(Time, Vec<u8>)>,
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Frames claiming to be from one station, received from the address of another.
    pub named: Vec<(StationId, StationId)>,
}

impl Host {
    pub fn new(
        station: AnyStation,
        known: impl IntoIterator<Item = (StationId, Option<Address>)>,
        at: Address,
        now: Time,
    ) -> Self {
        let mut station = station;
        let known: Vec<_> = known.into_iter().collect();
        let called = known.iter().filter(|(_, at)| at.is_some()).map(|&(id, _)| id);
        station.reach_out(now, &called.collect::<Vec<_>>());
        let config = station.config();
        Host {
            gate: Gate::new(config.id, &config.security, [at as u8; 32], now),
            station,
            book: PeerBook::new(known, true, [at as u8 ^ 0x55; 32]),
            at,
            asides: Vec::new(),
            delivered: Vec::new(),
            outcomes: BTreeMap::new(),
            named: Vec::new(),
        }
    }

    /// Processes a frame received from an address.
    pub fn hear(&mut self, now: Time, from: Address, frame: &[u8]) {
        let station = &self.station;
        let expects = |frame: &[u8]| station.expects(frame);
        let bytes = from.to_be_bytes();
        let outcome = match self.gate.admit(now, (from, &bytes), frame, expects) {
            Admission::Pass(message) => self.station.handle_frame(now, message),
            Admission::Refuse => return self.count("refused"),
            Admission::Answer(cookie) => {
                self.asides.push((from, cookie.to_vec()));
                return self.count("answered by a cookie");
            }
        };
        let (of, certainty) = match outcome {
            FrameOutcome::Accepted { from } => (from, Certainty::Session),
            FrameOutcome::Handshake { from } => (from, Certainty::Handshake),
            FrameOutcome::Initiation { from } => (from, Certainty::Initiation),
            FrameOutcome::Answered { from, token } => (from, Certainty::Answer(token)),
            FrameOutcome::Noted => return,
            FrameOutcome::Rejected(_) => {
                let claimed = self.station.claimed(frame);
                let sender = self.book.proven_station(from).filter(|&it| Some(it) != claimed);
                self.named.extend(sender.zip(claimed));
                return self.count("rejected");
            }
        };
        self.book.learn(now, (of, from), certainty, frame.len());
    }

    fn count(&mut self, what: &'static str) {
        *self.outcomes.entry(what).or_default() += 1;
    }

    /// Does what is due, and collects the frames to send.
    pub fn drain(&mut self, now: Time) -> Vec<(Address, Vec<u8>)> {
        let mut sent = core::mem::take(&mut self.asides);
        if self.station.poll_timeout().is_some_and(|due| due <= now) {
            self.station.handle_timeout(now);
        }
        while let Some(asked) = self.book.poll_challenge(now, |peer| self.station.is_up(peer)) {
            let frame = self.station.challenge(asked.station, asked.token);
            sent.extend(frame.map(|frame| (asked.address, frame.to_vec())));
        }
        while let Some(transmit) = self.station.poll_transmit(now) {
            let frame = transmit.frame.to_vec();
            let len = frame.len();
            let to: Vec<Address> = match transmit.to {
                Destination::All => self.book.addresses(now, len).collect(),
                Destination::Search(peer) => self.book.places(now, peer, len).collect(),
                Destination::Station(peer) => self.book.place(peer, len).into_iter().collect(),
            };
            sent.extend(to.into_iter().map(|to| (to, frame.clone())));
        }
        while let Some(packet) = self.station.poll_packet() {
            self.delivered.push((now, packet.to_vec()));
        }
        while self.station.poll_event().is_some() {}
        sent
    }

    fn due(&self) -> Option<Time> {
        [self.station.poll_timeout(), self.book.poll_timeout()].into_iter().flatten().min()
    }
}

/// Decides the fate of a frame in transit.
pub type Fate<'a> = &'a mut dyn FnMut(usize, &[u8]) -> bool;

/// Hosts, and frames in transit between them.
pub struct Net {
    pub now: Time,
    pub hosts: Vec<Host>,
    /// One-way delay.
    pub delay: Duration,
    under_way: BTreeMap<(Time, u64), (Address, Address, Vec<u8>)>,
    sequence: u64,
    /// Bytes sent to addresses without a host.
    pub strays: HashMap<Address, usize>,
    /// Frames to such addresses that may carry user data.
    pub data_strays: u64,
}

/// Whether a frame carries packets or reports on them: all but handshakes and path messages. Path
/// messages are recognisable only to those who can decrypt them, and none of them is longer than a
/// challenge here, without path MTU discovery; all data frames are longer.
pub fn is_data(frame: &[u8]) -> bool {
    frame.len() > PATH_CHALLENGE_LEN && Header::parse(frame).is_some_and(|it| !it.is_hello)
}

/// Handshake frames.
pub fn is_hello(frame: &[u8]) -> bool {
    Header::parse(frame).is_none_or(|header| header.is_hello)
}

impl Net {
    pub fn new(hosts: Vec<Host>, delay: Duration) -> Self {
        Net {
            now: Time::ZERO,
            hosts,
            delay,
            under_way: BTreeMap::new(),
            sequence: 0,
            strays: HashMap::new(),
            data_strays: 0,
        }
    }

    /// Sends a frame from an address.
    pub fn send(&mut self, at: Time, (from, to): (Address, Address), frame: Vec<u8>) {
        self.under_way.insert((at + self.delay, self.sequence), (from, to, frame));
        self.sequence += 1;
    }

    /// Time of the next event.
    fn next(&self) -> Option<Time> {
        let frame = self.under_way.keys().next().map(|&(at, _)| at);
        self.hosts.iter().filter_map(Host::due).chain(frame).min()
    }

    /// Runs until then; `survives` decides whether a frame sent by a host arrives.
    pub fn run_until(&mut self, end: Time, survives: Fate<'_>) {
        loop {
            // A station with a timeout in the past wants to be polled now.
            let next = self.next().map(|next| next.max(self.now));
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.now = next;
            let mut touched = Vec::new();
            while let Some(entry) = self.under_way.first_entry() {
                if entry.key().0 > next {
                    break;
                }
                let (from, to, frame) = entry.remove();
                if let Some(host) = self.hosts.iter().position(|host| host.at == to) {
                    self.hosts[host].hear(next, from, &frame);
                    touched.push(host);
                }
            }
            for host in 0..self.hosts.len() {
                if touched.contains(&host) || self.hosts[host].due().is_some_and(|it| it <= next) {
                    self.pump(host, survives);
                }
            }
        }
        self.now = end;
    }

    /// Sends a host's pending frames.
    pub fn pump(&mut self, host: usize, survives: Fate<'_>) {
        let now = self.now;
        let at = self.hosts[host].at;
        for (to, frame) in self.hosts[host].drain(now) {
            if self.hosts.iter().all(|host| host.at != to) {
                *self.strays.entry(to).or_default() += frame.len();
                self.data_strays += u64::from(is_data(&frame));
            } else if survives(host, &frame) {
                self.send(now, (at, to), frame);
            }
        }
    }

    /// Passes a packet to a host.
    pub fn offer(&mut self, host: usize, packet: &[u8], survives: Fate<'_>) {
        self.hosts[host].station.handle_packet(self.now, packet);
        self.pump(host, survives);
    }
}

/// Loses a fraction of frames, with a separate random stream for handshakes, so that their number
/// does not affect losses of data.
pub struct Losses {
    ratio: f64,
    streams: [[Stream; 2]; 4],
}

impl Losses {
    pub fn new(ratio: f64, seed: u64) -> Self {
        let stream = |host: u8, kind: u8| {
            let mut entropy = [0; 32];
            entropy[..8].copy_from_slice(&seed.to_be_bytes());
            (entropy[8], entropy[9]) = (host, kind);
            Stream::from_seed(entropy)
        };
        let host = |host| [stream(host, 0), stream(host, 1)];
        Losses { ratio, streams: [host(0), host(1), host(2), host(3)] }
    }

    pub fn survives(&mut self, host: usize, frame: &[u8]) -> bool {
        let stream = &mut self.streams[host][usize::from(is_data(frame))];
        stream.next_u32() as f64 / f64::from(u32::MAX) >= self.ratio
    }
}

/// The quantile of sorted values.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(at.max(1) - 1).copied()
}
