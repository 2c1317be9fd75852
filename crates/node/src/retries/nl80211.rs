//! Counters of a radio's driver, as the kernel has them for each station (nl80211's GET_STATION).
//!
//! A dump waits for the radio's locks, during a scan for a second or more. So a separate thread
//! requests it, and the run loop fetches the answer later. Implemented here, because the available
//! library would bring in a second asynchronous stack for three numbers.

use std::io::IoSlice;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use corridor_proto::relay::Sent;
use netlink_packet_core::{
    DecodeError, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer, NlaBuffer,
    NlasIterator,
};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendmsg,
    setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

use super::Counters;
use crate::config::Mac;

/// Buffer for one call: the kernel puts at most 32 KiB into it (netlink(7)).
const RECEIVED_MAX: usize = 1 << 15;
/// Stations read from one dump: more neighbours than a relay has.
const STATIONS_MAX: usize = 4_096;
/// How long the kernel may take for the next part of an answer.
const ANSWER_SECONDS_MAX: i64 = 10;

// linux/genetlink.h: the family that resolves others, and its request.
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// Command, version, and two reserved bytes.
const GENL_HEADER_LEN: usize = 4;
// linux/nl80211.h.
const NL80211_CMD_GET_STATION: u8 = 17;
const NL80211_ATTR_IFINDEX: u16 = 3;
const NL80211_ATTR_MAC: u16 = 6;
const NL80211_ATTR_STA_INFO: u16 = 21;
const NL80211_STA_INFO_TX_PACKETS: u16 = 10;
const NL80211_STA_INFO_TX_RETRIES: u16 = 11;
const NL80211_STA_INFO_TX_FAILED: u16 = 12;

type Answer = Result<Counters, String>;

/// The stations of an interface.
pub(super) struct Stations {
    asks: SyncSender<()>,
    answers: Receiver<Answer>,
    is_asked: bool,
}

impl Stations {
    pub(super) fn new(interface: &str) -> Self {
        let interface = interface.to_owned();
        Self::start(move || stations_of(&interface))
    }

    fn start(mut dump: impl FnMut() -> Answer + Send + 'static) -> Self {
        // One question and one answer: nothing accumulates.
        let (asks, asked) = sync_channel(1);
        let (answer, answers) = sync_channel(1);
        let work = move || while asked.recv().is_ok() && answer.send(dump()).is_ok() {};
        // It ends when the sender of questions is dropped. If it failed to start, answers are
        // missing.
        let _ = std::thread::Builder::new().name("nl80211".into()).spawn(work);
        Stations { asks, answers, is_asked: false }
    }

    /// The answer to the last request, if it has arrived; then requests the next.
    pub(super) fn look(&mut self) -> Result<Option<Counters>, String> {
        let gone = || "the thread that queries the kernel has ended".to_owned();
        let answer = match self.answers.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) if self.is_asked => return Ok(None),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => return Err(gone()),
        };
        self.is_asked = true;
        self.asks.try_send(()).map_err(|_| gone())?;
        answer.transpose()
    }
}

/// Requests the stations of an interface from the kernel.
fn stations_of(interface: &str) -> Answer {
    let failed = |why: String| format!("{interface}: {why}: expected an nl80211 interface");
    let socket = open().map_err(|errno| errno.desc().to_owned())?;
    let family = family(&socket).map_err(&failed)?;
    let index = if_nametoindex(interface).map_err(|errno| failed(errno.desc().to_owned()))?;
    let attribute = attribute(NL80211_ATTR_IFINDEX, &index.to_ne_bytes());
    let request = request(family, NLM_F_DUMP, NL80211_CMD_GET_STATION, &attribute);
    let mut counters = Counters::new();
    ask(&socket, &request, |payload| read_station(payload, &mut counters)).map_err(&failed)?;
    Ok(counters)
}

fn open() -> nix::Result<OwnedFd> {
    let (kind, flags) = (SockType::Raw, SockFlag::SOCK_CLOEXEC);
    let socket = socket(AddressFamily::Netlink, kind, flags, SockProtocol::NetlinkGeneric)?;
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(ANSWER_SECONDS_MAX))?;
    Ok(socket)
}

/// The family number of nl80211 in this kernel.
fn family(socket: &OwnedFd) -> Result<u16, String> {
    let name = attribute(CTRL_ATTR_FAMILY_NAME, b"nl80211\0");
    let request = request(GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, &name);
    let mut found = None;
    ask(socket, &request, |payload| {
        let id = attributes(payload)?.find(|nla| nla.kind() == CTRL_ATTR_FAMILY_ID);
        found = id.and_then(|nla| Some(u16::from_ne_bytes(nla.value().try_into().ok()?)));
        Ok(())
    })?;
    found.ok_or_else(|| "the kernel has no nl80211 family".to_owned())
}

/// Sends a request, and reads the answers up to the last one.
fn ask(
    socket: &OwnedFd,
    request: &[u8],
    mut read: impl FnMut(&[u8]) -> Result<(), DecodeError>,
) -> Result<(), String> {
    let told = |errno: Errno| errno.desc().to_owned();
    let kernel = NetlinkAddr::new(0, 0);
    sendmsg(socket.as_raw_fd(), &[IoSlice::new(request)], &[], MsgFlags::empty(), Some(&kernel))
        .map_err(told)?;
    let mut room = vec![0; RECEIVED_MAX];
    loop {
        let len = recv(socket.as_raw_fd(), &mut room, MsgFlags::empty()).map_err(told)?;
        if read_messages(&room[..len], &mut read)? {
            return Ok(());
        }
    }
}

/// Parses the messages of a datagram; returns whether the answer ends with it.
fn read_messages(
    mut datagram: &[u8],
    read: &mut impl FnMut(&[u8]) -> Result<(), DecodeError>,
) -> Result<bool, String> {
    let unreadable = |error: DecodeError| format!("cannot parse the kernel's answer: {error}");
    let is_of_many = |flags: u16| flags & libc::NLM_F_MULTI as u16 != 0;
    while !datagram.is_empty() {
        let message = NetlinkBuffer::new_checked(datagram).map_err(unreadable)?;
        match message.message_type() {
            // Errors in a dump are reported at its end, not as an error message.
            NLMSG_DONE | NLMSG_ERROR => {
                let code =
                    message.payload().first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                return if code >= 0 {
                    Ok(true)
                } else {
                    Err(Errno::from_raw(code.wrapping_neg()).desc().into())
                };
            }
            _ => read(message.payload()).map_err(unreadable)?,
        }
        if !is_of_many(message.flags()) {
            return Ok(true);
        }
        let len = (message.length() as usize).next_multiple_of(4);
        datagram = datagram.get(len..).unwrap_or_default();
    }
    Ok(false)
}

/// Parses what the kernel reports about one station.
fn read_station(payload: &[u8], counters: &mut Counters) -> Result<(), DecodeError> {
    let (mut mac, mut sent) = (None, None);
    for nla in attributes(payload)? {
        match nla.kind() {
            NL80211_ATTR_MAC => mac = nla.value().try_into().ok().map(Mac),
            NL80211_ATTR_STA_INFO => sent = Some(read_counters(nla.value())?),
            _ => {}
        }
    }
    if let (Some(mac), Some(sent), true) = (mac, sent, counters.len() < STATIONS_MAX) {
        counters.insert(mac, sent);
    }
    Ok(())
}

/// Counters that a driver does not have stay 0.
fn read_counters(info: &[u8]) -> Result<Sent, DecodeError> {
    let mut sent = Sent::default();
    for nla in NlasIterator::new(info) {
        let nla = nla?;
        let count =
            || nla.value().first_chunk().map_or(0, |count| u32::from_ne_bytes(*count).into());
        match nla.kind() {
            NL80211_STA_INFO_TX_PACKETS => sent.frames = count(),
            NL80211_STA_INFO_TX_RETRIES => sent.retries = count(),
            NL80211_STA_INFO_TX_FAILED => sent.failed = count(),
            _ => {}
        }
    }
    Ok(sent)
}

/// The attributes of a message after its generic header, all of them well-formed.
fn attributes(payload: &[u8]) -> Result<impl Iterator<Item = NlaBuffer<&[u8]>>, DecodeError> {
    let behind = payload.get(GENL_HEADER_LEN..).unwrap_or_default();
    Ok(NlasIterator::new(behind).collect::<Result<Vec<_>, _>>()?.into_iter())
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = (mem::size_of::<u32>() + value.len()) as u16;
    let mut bytes = [len.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn request(family: u16, flags: u16, command: u8, attribute: &[u8]) -> Vec<u8> {
    const HEADER_LEN: usize = 16;
    let mut bytes = vec![0; HEADER_LEN];
    bytes.extend_from_slice(&[command, 1, 0, 0]);
    bytes.extend_from_slice(attribute);
    let len = bytes.len() as u32;
    let mut message = NetlinkBuffer::new(&mut bytes);
    message.set_length(len);
    message.set_message_type(family);
    message.set_flags(NLM_F_REQUEST | flags);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of Linux 6.1 to a dump, without its last message: mac80211, with radios to which
    /// wmediumd adds losses. 40 % of the frames to either station were lost, and nothing had been
    /// sent to the first.
    const STATIONS: &str = include_str!("stations.hex");

    fn stations() -> Vec<u8> {
        let digits: Vec<u8> = STATIONS.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |two: &[u8]| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    fn read_all(datagram: &[u8]) -> (Result<bool, String>, Counters) {
        let mut counters = Counters::new();
        let is_last = read_messages(datagram, &mut |payload| read_station(payload, &mut counters));
        (is_last, counters)
    }

    #[test]
    fn a_recorded_dump_is_read_as_iw_reads_it() {
        let (is_last, counters) = read_all(&stations());
        assert_eq!(is_last, Ok(false), "the end of a dump is a message of its own");
        let idle = (Mac([2, 0, 0, 0, 1, 0]), Sent::default());
        let busy = (Mac([2, 0, 0, 0, 2, 0]), Sent { frames: 10, retries: 47, failed: 4 });
        assert_eq!(counters, Counters::from([idle, busy]));
        let done = request(NLMSG_DONE, 0, 0, &[]);
        assert_eq!(read_all(&done).0, Ok(true));
    }

    #[test]
    fn whatever_is_cut_or_changed_is_an_error_or_other_counters() {
        let whole = stations();
        for len in 0..whole.len() {
            let _ = read_all(&whole[..len]);
        }
        for place in 0..whole.len() {
            for bits in [0x01, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[place] ^= bits;
                let (_, counters) = read_all(&changed);
                assert!(counters.len() <= 3);
            }
        }
    }

    #[test]
    fn the_kernels_refusal_is_told() {
        let mut refusal = request(NLMSG_ERROR, 0, 0, &[]);
        refusal[16..20].copy_from_slice(&(-libc::ENODEV).to_ne_bytes());
        assert_eq!(read_all(&refusal).0, Err("No such device".to_owned()));
        refusal[16..20].copy_from_slice(&i32::MIN.to_ne_bytes());
        assert!(read_all(&refusal).0.is_err());
        refusal[16..20].fill(0);
        assert_eq!(read_all(&refusal).0, Ok(true), "an acknowledgement");
    }

    #[test]
    fn a_dump_that_fails_is_no_dump_without_stations() {
        let mut done = request(NLMSG_DONE, 0, 0, &[]);
        done[16..20].copy_from_slice(&(-libc::EOPNOTSUPP).to_ne_bytes());
        assert_eq!(read_all(&done).0, Err("Operation not supported on transport endpoint".into()));
        done[16..20].fill(0);
        assert_eq!(read_all(&done).0, Ok(true));
    }

    #[test]
    fn an_interface_that_is_no_radio_is_told_as_such() {
        let why = stations_of("lo").unwrap_err();
        assert!(why.starts_with("lo: ") && why.ends_with("expected an nl80211 interface"), "{why}");
    }

    #[test]
    fn the_run_loop_never_waits_for_the_kernel() {
        let (go, gone) = sync_channel(0);
        let busy = Mac([2, 0, 0, 0, 0, 2]);
        let mut dumped = 0;
        let mut stations = Stations::start(move || {
            gone.recv().map_err(|_| "nobody goes on".to_owned())?;
            dumped += 1;
            Ok(Counters::from([(busy, Sent { frames: dumped, ..Sent::default() })]))
        });
        // However often it is asked, only one dump is in progress.
        for _ in 0..3 {
            assert_eq!(stations.look(), Ok(None));
        }
        go.send(()).unwrap();
        let answer = loop {
            if let Some(answer) = stations.look().unwrap() {
                break answer;
            }
            std::thread::yield_now();
        };
        assert_eq!(answer[&busy].frames, 1);
        assert_eq!(stations.look(), Ok(None), "the next one is under way");
        drop(go);
        let why = loop {
            if let Err(why) = stations.look() {
                break why;
            }
            std::thread::yield_now();
        };
        assert_eq!(why, "nobody goes on");
    }
}
