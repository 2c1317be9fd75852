//! Resolves the names of peers: at the start, and again while a peer is silent.
//!
//! A lookup may take half a minute, so a separate thread does them, one at a time; the run loop
//! asks, and fetches the answer later. Frames never wait for it: the last good address remains in
//! use, and new ones are tried in addition.

mod dns;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use corridor_base::Time;
use corridor_proto::StationId;

/// First and longest interval between lookups of a silent peer's name. A peer that is up sends
/// something every five seconds.
const LOOKUP_FIRST: Duration = Duration::from_secs(7);
/// See [`LOOKUP_FIRST`].
const LOOKUP_MAX: Duration = Duration::from_secs(60);
/// First interval after a failed lookup.
const FAILED_FIRST: Duration = Duration::from_secs(1);
/// How often to check for an answer.
const ANSWER_POLL: Duration = Duration::from_millis(20);
/// Longest name (RFC 1035, Section 2.3.4).
const NAME_LEN_MAX: usize = 253;

/// Where a peer is to be found first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// At an address.
    Address(SocketAddr),
    /// At the addresses of a name.
    Name {
        /// The name of a host.
        host: String,
        /// The UDP port.
        port: u16,
    },
}

impl Endpoint {
    /// The address, if one is configured.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Endpoint::Address(address) => Some(*address),
            Endpoint::Name { .. } => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Address(address) => address.fmt(f),
            Endpoint::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

impl FromStr for Endpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected an address or host name with a port";
        if let Ok(address) = text.parse() {
            return Ok(Endpoint::Address(address));
        }
        let (host, port) = text.rsplit_once(':').ok_or(EXPECTED)?;
        let port = port.parse().map_err(|_| EXPECTED)?;
        let is_label = |label: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..=63).contains(&label.len()) && label.bytes().all(plain)
        };
        let name = host.strip_suffix('.').unwrap_or(host);
        // A name that ends in a number is meant as an address (RFC 1123, Section 2.1).
        let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
        let sound = name.len() <= NAME_LEN_MAX
            && name.split('.').all(is_label)
            && !name.rsplit('.').next().is_none_or(is_number)
            && port != 0;
        if sound { Ok(Endpoint::Name { host: host.into(), port }) } else { Err(EXPECTED) }
    }
}

/// A lookup: from host and port to addresses.
pub(crate) type Lookup = Box<dyn FnMut(&str, u16) -> io::Result<Vec<SocketAddr>> + Send>;

/// The system's lookup, as for any program; with a mark, over sockets that carry it.
pub(crate) fn lookup(mark: Option<u32>) -> Lookup {
    match mark {
        Some(mark) => dns::marked_lookup(mark),
        None => Box::new(|host, port| (host, port).to_socket_addrs().map(Iterator::collect)),
    }
}

/// The peers with names.
pub(crate) struct Names {
    names: Vec<Name>,
    thread: Thread,
    /// The station whose name is being looked up, and that name.
    asked: Option<(StationId, String)>,
    asked_at: Time,
    /// Only addresses of this family can be reached.
    family: Family,
}

/// The thread for lookups, which starts with the first name.
enum Thread {
    Idle(Lookup),
    Runs { questions: SyncSender<(String, u16)>, answers: Receiver<Answer> },
    Gone,
}

type Answer = io::Result<Vec<SocketAddr>>;

/// Which addresses a socket can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
    Both,
}

impl Family {
    fn has(self, address: IpAddr) -> bool {
        match self {
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
            Family::Both => true,
        }
    }
}

struct Name {
    station: StationId,
    host: String,
    port: u16,
    due: Time,
    pause: Duration,
    heard: bool,
    /// The result of the last lookup.
    found: Vec<SocketAddr>,
    /// Index of the address that was tried last.
    turn: usize,
    /// A failed lookup was logged.
    told: bool,
}

impl Names {
    pub(crate) fn new(family: Family, lookup: Lookup) -> Self {
        let thread = Thread::Idle(lookup);
        Names { names: Vec::new(), thread, asked: None, asked_at: Time::ZERO, family }
    }

    /// Changes where a peer is to be found.
    pub(crate) fn set(&mut self, now: Time, station: StationId, endpoint: Option<Endpoint>) {
        self.names.retain(|name| name.station != station);
        let Some(Endpoint::Name { host, port }) = endpoint else { return };
        self.names.push(Name {
            station,
            host,
            port,
            due: now,
            pause: FAILED_FIRST,
            heard: false,
            found: Vec::new(),
            turn: 0,
            told: false,
        });
    }

    /// A peer was heard, so its address is good.
    pub(crate) fn note_heard(&mut self, station: StationId) {
        if let Some(name) = self.names.iter_mut().find(|name| name.station == station) {
            name.heard = true;
        }
    }

    /// When there is something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        match (&self.thread, &self.asked) {
            (Thread::Gone, _) => None,
            (_, Some(_)) => Some(self.asked_at + ANSWER_POLL),
            (_, None) => self.names.iter().map(|name| name.due).min(),
        }
    }

    /// Asks for a lookup if one is due. Returns an address to try for a station, if there is an
    /// answer.
    pub(crate) fn handle_timeout(&mut self, now: Time) -> Option<(StationId, SocketAddr)> {
        if let (Some(_), Thread::Runs { answers, .. }) = (&self.asked, &self.thread) {
            self.asked_at = now;
            return match answers.try_recv() {
                Ok(answer) => self.take_answer(now, answer),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => {
                    tracing::error!("host name lookups have stopped");
                    self.thread = Thread::Gone;
                    None
                }
            };
        }
        let due = |name: &mut &mut Name| {
            let heard = name.due <= now && core::mem::take(&mut name.heard);
            if heard {
                (name.due, name.pause) = (now + LOOKUP_FIRST, LOOKUP_FIRST);
            }
            name.due <= now
        };
        let name = self.names.iter_mut().find_map(|mut name| due(&mut name).then_some(name))?;
        let (asked, question) = ((name.station, name.host.clone()), (name.host.clone(), name.port));
        self.thread.ask(question);
        (self.asked, self.asked_at) = (Some(asked), now);
        None
    }

    fn take_answer(&mut self, now: Time, answer: Answer) -> Option<(StationId, SocketAddr)> {
        let (station, host) = self.asked.take()?;
        // The peer may have been given another name meanwhile, or none.
        let is_asked = |name: &&mut Name| name.station == station && name.host == host;
        let name = self.names.iter_mut().find(is_asked)?;
        let reachable = |address: &SocketAddr| self.family.has(address.ip());
        let why = match answer {
            Ok(found) => {
                let found: Vec<_> = found.into_iter().filter(reachable).collect();
                if !found.is_empty() {
                    // With several addresses, the next each time: not all of them may be alive.
                    name.turn = if found == name.found { name.turn + 1 } else { 0 };
                    let address = found[name.turn % found.len()];
                    name.found = found;
                    name.pause = (2 * name.pause).clamp(LOOKUP_FIRST, LOOKUP_MAX);
                    name.due = now + name.pause;
                    name.told = false;
                    tracing::debug!("{} is {address}", name.host);
                    return Some((name.station, address));
                }
                "no address of the same family as underlay.listen".to_owned()
            }
            Err(error) => error.to_string(),
        };
        if !name.told {
            name.told = true;
            let host = &name.host;
            tracing::warn!("cannot resolve {host}, will keep trying: {why}");
        }
        name.pause = (2 * name.pause).min(LOOKUP_MAX);
        name.due = now + name.pause;
        None
    }
}

impl Thread {
    /// Asks for a name; only called when no other question is pending.
    fn ask(&mut self, question: (String, u16)) {
        *self = match std::mem::replace(self, Thread::Gone) {
            Thread::Idle(lookup) => Thread::start(lookup),
            thread => thread,
        };
        if let Thread::Runs { questions, .. } = self
            && questions.try_send(question).is_err()
        {
            *self = Thread::Gone;
        }
    }

    fn start(mut lookup: Lookup) -> Self {
        // One question and one answer: nothing accumulates.
        let (questions, asked) = sync_channel::<(String, u16)>(1);
        let (answer, answers) = sync_channel(1);
        let work = move || {
            while let Ok((host, port)) = asked.recv() {
                if answer.send(lookup(&host, port)).is_err() {
                    return;
                }
            }
        };
        // It ends with the process, perhaps in the middle of a lookup.
        match std::thread::Builder::new().name("names".into()).spawn(work) {
            Ok(_) => Thread::Runs { questions, answers },
            Err(error) => {
                tracing::error!("cannot look up host names: {error}");
                Thread::Gone
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn addresses_and_names_are_told_apart() {
        let address = |text: &str| Endpoint::Address(text.parse().unwrap());
        assert_eq!("192.0.2.1:4242".parse(), Ok(address("192.0.2.1:4242")));
        assert_eq!("[2001:db8::1]:4242".parse(), Ok(address("[2001:db8::1]:4242")));
        let name = Endpoint::Name { host: "peer.example.org".into(), port: 4242 };
        assert_eq!("peer.example.org:4242".parse(), Ok(name.clone()));
        assert_eq!(name.to_string(), "peer.example.org:4242");
        for wrong in [
            "",
            ":",
            "peer",
            "peer:",
            ":1",
            "peer:0",
            "peer:70000",
            "a..b:1",
            "a b:1",
            "192.0.2:1",
            "2001:db8::1",
            "[::1]",
            "192.0.2.300:1",
            "-ä.org:1",
        ] {
            assert!(wrong.parse::<Endpoint>().is_err(), "{wrong}");
        }
        assert!(format!("{}:1", "a".repeat(64)).parse::<Endpoint>().is_err());
    }

    type Answers = Arc<Mutex<Vec<Answer>>>;

    /// Names with one peer, and the results of lookups, last first.
    fn names(answers: &Answers, family: Family) -> Names {
        let answers = answers.clone();
        let lookup: Lookup = Box::new(move |_, _| answers.lock().unwrap().pop().unwrap());
        let mut names = Names::new(family, lookup);
        let name = Endpoint::Name { host: "peer".into(), port: 4242 };
        names.set(Time::ZERO, StationId(2), Some(name));
        names
    }

    /// Advances time until something is found, at most until `latest`.
    fn until_found(names: &mut Names, now: &mut Time, latest: Time) -> Option<SocketAddr> {
        while let Some(due) = names.poll_timeout().filter(|&due| due <= latest) {
            *now = due.max(*now);
            if let Some((station, address)) = names.handle_timeout(*now) {
                assert_eq!(station, StationId(2));
                return Some(address);
            }
            if names.asked.is_some() {
                // The other thread may take as long as it likes: virtual time stands still.
                std::thread::sleep(Duration::from_millis(1));
                names.asked_at = Time::from_nanos(now.as_nanos().saturating_sub(20_000_000));
            }
        }
        None
    }

    #[test]
    fn a_name_is_looked_up_until_it_is_found_and_again_while_the_peer_is_silent() {
        let [a, b]: [SocketAddr; 2] =
            ["192.0.2.1:4242", "192.0.2.2:4242"].map(|a| a.parse().unwrap());
        let nothing = || Err(io::Error::other("no such name"));
        let answers: Answers =
            Arc::new(Mutex::new(vec![Ok(vec![b]), nothing(), Ok(vec![a]), nothing(), nothing()]));
        let mut names = names(&answers, Family::V4);
        let mut now = Time::ZERO;
        let end = |now: Time, s: u64| now + Duration::from_secs(s);
        let latest = end(now, 10);
        assert_eq!(until_found(&mut names, &mut now, latest), Some(a));
        assert!(now >= Time::from_millis(2_000), "asked in a hurry: {now:?}");
        // While the peer is heard there are no lookups.
        let quiet = end(now, 100);
        while now < quiet {
            now += Duration::from_secs(5);
            names.note_heard(StationId(2));
            assert_eq!(names.handle_timeout(now), None);
            assert!(names.asked.is_none());
        }
        let latest = end(now, 60);
        assert_eq!(until_found(&mut names, &mut now, latest), Some(b));
        assert!(answers.lock().unwrap().is_empty());
        // With an address instead of a name there is nothing to look up.
        names.set(now, StationId(2), Some(Endpoint::Address(a)));
        assert_eq!(names.poll_timeout(), None);
    }

    #[test]
    fn addresses_take_turns_and_those_out_of_reach_do_not_count() {
        let [a, b, c]: [SocketAddr; 3] =
            ["192.0.2.1:1", "[2001:db8::1]:1", "192.0.2.2:1"].map(|a| a.parse().unwrap());
        let answers: Answers = Arc::default();
        let answer = || Ok(vec![a, b, c]);
        answers.lock().unwrap().extend([answer(), answer(), answer(), Ok(vec![b])]);
        let mut names = names(&answers, Family::V4);
        let mut now = Time::ZERO;
        let found = [(); 3].map(|()| until_found(&mut names, &mut now, Time::from_millis(200_000)));
        assert_eq!(found, [Some(a), Some(c), Some(a)]);
    }
}
