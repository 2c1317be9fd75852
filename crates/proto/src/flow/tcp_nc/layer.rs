//! The layers of all connections of a host, between its TCP and IP.
//!
//! ```text
//!   kernel --> data ---------> NcSender ----> coded packet --> path
//!          --> SYN ----------> no SACK, shorter segments ----> path
//!          --> pure ACK -----> kept as template, if behind --> (path)
//!   kernel <-- data in order <-- NcReceiver <-- coded packet -- path
//!                                    `--> ACK of what is seen -> path
//!   kernel <-- ACK, window clamped <-- NcSender <------- ACK -- path
//! ```
//!
//! What is no TCP passes. So does a connection for which there is no room. TCP stays as it is: it
//! is not told what the layers do, and sees packets that TCP could have sent.

use std::collections::VecDeque;

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{Stream, Time};
use corridor_packet::{End, IPV6_LEN, PacketBuf, PacketRef, PureAck, TcpView};

use super::ip;
use super::wire::Feedback;
use super::{
    CONNECTIONS_MAX, NcError, NcParams, NcReceiver, NcSender, OVERHEAD_MAX, SEGMENT_PREFIX_LEN,
    Segment, SegmentOutcome,
};

/// A connection that was silent for so long makes room for another one.
pub const CONNECTION_IDLE: Duration = Duration::from_secs(120);
/// A connection that both ends have closed does so sooner.
pub const CONNECTION_CLOSED: Duration = Duration::from_secs(2);
/// Bytes that a coded IP packet has at most more than the one that it carries.
pub const LAYER_OVERHEAD_MAX: usize = IPV6_LEN + 4 + OVERHEAD_MAX;
/// Segments that TCP may have under way however long the queue: three duplicates have to fit.
const SEGMENTS_MIN: usize = 4;
/// Bytes of the headers of IPv6 and TCP, which the longest segment does not count.
const HEADERS_LEN_MAX: usize = IPV6_LEN + 20;

/// Counts of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NcLayerStats {
    /// Packets of TCP's data that were coded.
    pub segments_coded: u64,
    /// Coded packets sent.
    pub coded_sent: u64,
    /// Coded packets received.
    pub coded_received: u64,
    /// Packets of TCP's data that were decoded.
    pub segments_decoded: u64,
    /// Acknowledgements made.
    pub acks_made: u64,
    /// Acknowledgements of the kernel's held back, because they were behind.
    pub acks_suppressed: u64,
    /// Packets of TCP's data that were lost before the code: no room, or a gap.
    pub segments_dropped: u64,
}

/// All connections of a host. Packets in, packets out; after each input drain
/// [`poll_path`](Self::poll_path) and [`poll_host`](Self::poll_host).
#[derive(Debug)]
pub struct NcLayer {
    params: NcParams,
    packet_len_max: usize,
    connections: Vec<Connection>,
    randomness: Stream,
    to_path: VecDeque<PacketBuf>,
    to_host: VecDeque<PacketBuf>,
    /// Packets that there is room for on the way to the path.
    room: usize,
    stats: NcLayerStats,
}

#[derive(Debug)]
struct Connection {
    /// Our end, and the other.
    ends: (End, End),
    /// Bytes that the other end's TCP may have under way: its buffer may be longer than what ours
    /// can decode.
    window_max: usize,
    sender: Option<Box<NcSender>>,
    receiver: Option<Box<NcReceiver>>,
    template: Option<Template>,
    /// What the host's SYN, and the peer's, said of the window's scale; `None` before it.
    scales: [Option<Option<u8>>; 2],
    /// The window told last, as it was sent.
    told: u16,
    /// The window that the host was offered last.
    offered: Option<u16>,
    /// Whether the host, and the peer, have sent their FIN.
    finished: [bool; 2],
    active: Time,
}

/// What the kernel would say in an acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Template {
    /// Its next sequence number.
    next: u32,
    /// What it last acknowledged, and the window that it offered with that, as sent.
    ack: u32,
    window: u16,
    /// The window in a SYN is not scaled.
    is_syn: bool,
    stamp: Option<u32>,
}

impl NcLayer {
    /// A layer without connections. Packets of the host are at most `packet_len_max` bytes, those
    /// of the path up to [`LAYER_OVERHEAD_MAX`] more. `params.segment_len_max` is set by that.
    ///
    /// # Errors
    /// As [`NcParams::check`].
    pub fn new(params: NcParams, packet_len_max: usize, seed: Stream) -> Result<Self, NcError> {
        let params = NcParams { segment_len_max: packet_len_max, ..params };
        params.check()?;
        Ok(NcLayer {
            params,
            packet_len_max,
            connections: Vec::new(),
            randomness: seed,
            to_path: VecDeque::new(),
            to_host: VecDeque::new(),
            room: usize::MAX,
            stats: NcLayerStats::default(),
        })
    }

    /// How many packets there is room for on the way to the path. Combinations wait to be made
    /// until there is; and TCP is offered a window of what it has under way and as much as fits. So
    /// nothing is lost here, where coding would hide the loss, and take it for one of the path.
    pub fn set_room(&mut self, packets: usize) {
        self.room = packets;
    }

    /// Makes combinations that have waited for room.
    pub fn fill_room(&mut self, now: Time) {
        for index in 0..self.connections.len() {
            if self.room == 0 {
                return;
            }
            self.drain_sender(now, index);
        }
    }

    /// Takes a packet from the host.
    pub fn handle_host_packet(&mut self, now: Time, packet: PacketRef<'_>) {
        let view = packet.tcp();
        let Some((view, index)) = view.and_then(|view| {
            Some((view, self.connection(now, (view.from, view.to), view.is_syn())?))
        }) else {
            self.to_path.push_back(packet.to_buf());
            return;
        };
        if view.is_rst() {
            self.connections.swap_remove(index);
            self.to_path.push_back(packet.to_buf());
            return;
        }
        let echo = self.connections[index].echo_of_delivery(&view);
        self.connections[index].note_own(&view);
        if view.is_syn() {
            let mut packet = packet.trimmed().to_buf();
            let mss = self.packet_len_max.saturating_sub(HEADERS_LEN_MAX);
            packet.restrict_syn(&view, mss.min(usize::from(u16::MAX)) as u16);
            self.to_path.push_back(packet);
        } else if view.data_len() > 0 {
            self.code(now, index, &view, packet);
        } else if echo && !self.connections[index].has_opened() {
            self.stats.acks_suppressed += 1;
        } else if echo {
            self.acknowledge(index);
        } else {
            self.to_path.push_back(packet.to_buf());
        }
    }

    /// Takes a packet from the path.
    pub fn handle_path_packet(&mut self, now: Time, packet: PacketRef<'_>) {
        if let Some((from, to, payload)) = ip::unwrap(packet) {
            if let Some((feedback, ack)) = Feedback::read(payload) {
                self.take_plain(now, PacketRef::read(ack), Some(&feedback));
            } else if let Some(index) = self.connection(now, (to, from), false) {
                self.decode(index, payload);
            }
            return;
        }
        self.take_plain(now, packet, None);
    }

    /// The clock has reached `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        for index in 0..self.connections.len() {
            if let Some(sender) = &mut self.connections[index].sender {
                sender.handle_timeout(now);
                self.drain_sender(now, index);
            }
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn poll_timeout(&self) -> Option<Time> {
        let senders = self.connections.iter().filter_map(|connection| connection.sender.as_ref());
        senders.filter_map(|sender| sender.poll_timeout()).min()
    }

    /// The next packet for the path.
    pub fn poll_path(&mut self) -> Option<PacketBuf> {
        self.to_path.pop_front()
    }

    /// The next packet for the host.
    pub fn poll_host(&mut self) -> Option<PacketBuf> {
        self.to_host.pop_front()
    }

    /// Counts since the start.
    pub fn stats(&self) -> &NcLayerStats {
        &self.stats
    }

    /// Connections known.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// How many coding buffers there are of those, and how many windows of receivers.
    pub(crate) fn buffers(&self) -> (usize, usize) {
        let (mut senders, mut receivers) = (0, 0);
        for connection in &self.connections {
            senders += usize::from(connection.sender.is_some());
            receivers += usize::from(connection.receiver.is_some());
        }
        (senders, receivers)
    }

    /// The place of a connection; a new one if there is room. A SYN begins anew.
    fn connection(&mut self, now: Time, ends: (End, End), begins: bool) -> Option<usize> {
        let found = self.connections.iter().position(|connection| connection.ends == ends);
        if let Some(index) = found {
            let connection = &mut self.connections[index];
            connection.active = now;
            if begins {
                (connection.sender, connection.receiver) = (None, None);
                connection.finished = [false; 2];
            }
            return Some(index);
        }
        if self.connections.len() == CONNECTIONS_MAX {
            let index = self.connections.iter().position(|connection| connection.is_over(now))?;
            self.connections.swap_remove(index);
        }
        self.connections.push(Connection::new(ends, self.buffered_max(), now));
        Some(self.connections.len() - 1)
    }

    /// Gives a packet of the host's with data to the connection's sender.
    fn code(&mut self, now: Time, index: usize, view: &TcpView, packet: PacketRef<'_>) {
        let connection = &mut self.connections[index];
        if connection.sender.is_none() {
            let sender = NcSender::new(self.params, self.randomness.next_u64());
            connection.sender = sender.ok().map(Box::new);
        }
        let Some(sender) = &mut connection.sender else { return };
        let segment = Segment {
            sequence: view.sequence,
            len: view.data_len() as u16,
            stamp: view.options().timestamps.map_or(0, |(own, _)| own),
        };
        match sender.handle_segment(segment, &packet.trimmed()) {
            SegmentOutcome::Added | SegmentOutcome::Repeated => self.stats.segments_coded += 1,
            SegmentOutcome::Acknowledged => self.to_path.push_back(packet.to_buf()),
            SegmentOutcome::Gap | SegmentOutcome::Full | SegmentOutcome::NotCodable => {
                self.stats.segments_dropped += 1;
            }
        }
        self.drain_sender(now, index);
    }

    fn drain_sender(&mut self, now: Time, index: usize) {
        let Connection { ends: (own, peer), sender, .. } = &mut self.connections[index];
        let Some(sender) = sender else { return };
        while self.room > 0
            && let Some(coded) = sender.poll_transmit(now)
        {
            self.to_path.push_back(PacketBuf::read(ip::wrap(*own, *peer, coded)));
            self.room -= 1;
            self.stats.coded_sent += 1;
        }
    }

    /// Gives a coded packet to the connection's receiver, what it decodes to the host, and its
    /// acknowledgement to the path.
    fn decode(&mut self, index: usize, payload: &[u8]) {
        let connection = &mut self.connections[index];
        if connection.receiver.is_none() {
            connection.receiver = NcReceiver::new(self.params).ok().map(Box::new);
        }
        let Some(receiver) = &mut connection.receiver else { return };
        if receiver.handle_packet(payload).is_none() {
            return;
        }
        self.stats.coded_received += 1;
        while let Some(packet) = receiver.poll_delivery() {
            self.to_host.push_back(PacketRef::read(packet).to_buf());
            self.stats.segments_decoded += 1;
        }
        self.acknowledge(index);
    }

    /// Acknowledges what is seen, whatever the kernel has.
    fn acknowledge(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let Some(ack) = connection.make_ack() else { return };
        self.stats.acks_made += 1;
        let (own, peer) = connection.ends;
        let feedback = connection.receiver.as_ref().and_then(|receiver| receiver.feedback());
        self.to_path.push_back(PacketBuf::read(match feedback {
            Some(feedback) if self.params.redundancy.needs_feedback() => {
                ip::wrap(own, peer, &[&feedback.to_bytes()[..], &ack].concat())
            }
            _ => ack,
        }));
    }

    /// Takes a packet as TCP sent it, or as the peer's layer did in its name.
    fn take_plain(&mut self, now: Time, packet: PacketRef<'_>, feedback: Option<&Feedback>) {
        let Some(view) = packet.tcp() else {
            self.to_host.push_back(packet.to_buf());
            return;
        };
        let begins = view.is_syn() && !view.is_ack();
        let Some(index) = self.connection(now, (view.to, view.from), begins) else {
            self.to_host.push_back(packet.to_buf());
            return;
        };
        let mut packet = packet.to_buf();
        let connection = &mut self.connections[index];
        connection.finished[1] |= view.is_fin();
        let mut is_news = true;
        if view.is_syn() {
            connection.scales[1] = Some(view.options().scale);
        } else if view.is_ack() && !view.is_rst() {
            let sender = connection.sender.as_mut();
            is_news = sender.is_none_or(|sender| sender.handle_ack(now, view.ack, feedback));
            let window = self.clamp_window(index, &view, &mut packet);
            let connection = &mut self.connections[index];
            is_news |= connection.offered.replace(window) != Some(window);
        }
        if is_news {
            self.to_host.push_back(packet);
        }
        if view.is_rst() {
            self.connections.swap_remove(index);
        } else {
            self.drain_sender(now, index);
        }
    }

    /// Bytes of TCP's that a coding buffer holds.
    fn buffered_max(&self) -> usize {
        let segment_len = self.packet_len_max.saturating_sub(HEADERS_LEN_MAX);
        usize::from(self.params.buffer_segments) * segment_len
    }

    /// Lets TCP have no more under way than the coding buffer holds, and no more at once than there
    /// is [room](Self::set_room) for; but a few segments always, so that acknowledgements go on.
    /// Returns the window that TCP is offered.
    fn clamp_window(&self, index: usize, view: &TcpView, packet: &mut PacketBuf) -> u16 {
        let connection = &self.connections[index];
        let Some(scale) = connection.scale(1) else { return view.window };
        let segment_len = self.packet_len_max.saturating_sub(HEADERS_LEN_MAX);
        let buffered = connection.sender.as_ref().map_or(0, |sender| sender.buffered_bytes());
        // A segment may take two packets.
        let room = (self.room / 2).saturating_mul(segment_len);
        let most = self.buffered_max();
        let least = SEGMENTS_MIN.min(usize::from(self.params.buffer_segments)) * segment_len;
        let max = (buffered as usize).saturating_add(room).clamp(least, most);
        let max = (max >> scale).clamp(1, usize::from(u16::MAX)) as u16;
        if view.window > max {
            packet.set_window(view, max);
        }
        view.window.min(max)
    }
}

impl Connection {
    fn new(ends: (End, End), window_max: usize, now: Time) -> Self {
        let (sender, receiver, template) = (None, None, None);
        let (scales, told, finished) = ([None; 2], u16::MAX, [false; 2]);
        let (offered, active) = (None, now);
        Connection {
            ends,
            window_max,
            sender,
            receiver,
            template,
            scales,
            told,
            offered,
            finished,
            active,
        }
    }

    /// Whether nothing is lost if the connection is forgotten.
    fn is_over(&self, now: Time) -> bool {
        let buffered = self.sender.as_ref().map_or(0, |sender| sender.buffered());
        let undelivered = self.receiver.as_ref().map_or(0, |receiver| receiver.undelivered());
        let closed = self.finished == [true; 2] && buffered == 0 && undelivered == 0;
        now.since(self.active) >= if closed { CONNECTION_CLOSED } else { CONNECTION_IDLE }
    }

    /// By how much windows are shifted: of the host's SYN with 0, of the peer's with 1. `None`
    /// where the beginning was not seen.
    fn scale(&self, whose: usize) -> Option<u8> {
        match self.scales {
            [Some(Some(own)), Some(Some(peer))] => Some([own, peer][whose]),
            [Some(_), Some(_)] => Some(0),
            _ => None,
        }
    }

    /// Keeps what the kernel says of itself.
    fn note_own(&mut self, view: &TcpView) {
        self.finished[0] |= view.is_fin();
        if view.is_syn() {
            self.scales[0] = Some(view.options().scale);
            if !view.is_ack() {
                self.scales[1] = None;
            }
        }
        let len = view.data_len() as u32 + u32::from(view.is_syn()) + u32::from(view.is_fin());
        let mut next = view.sequence.wrapping_add(len);
        if let Some(template) = self.template.filter(|_| !view.is_syn())
            && (template.next.wrapping_sub(next) as i32) > 0
        {
            next = template.next;
        }
        if view.is_ack() {
            self.template = Some(Template {
                next,
                ack: view.ack,
                window: view.window,
                is_syn: view.is_syn(),
                stamp: view.options().timestamps.map(|(own, _)| own),
            });
        }
    }

    /// Whether a packet of the kernel's is the acknowledgement of what it was given, which the
    /// layer has acknowledged already. What it says again with nothing left to be acknowledged
    /// answers a probe, or opens the window.
    fn echo_of_delivery(&self, view: &TcpView) -> bool {
        let is_pure = view.is_ack() && !view.is_fin() && view.data_len() == 0;
        let Some(seen) = self.receiver.as_ref().and_then(|receiver| receiver.ack()) else {
            return false;
        };
        let behind = seen.wrapping_sub(view.ack) as i32;
        let is_news = self.template.is_none_or(|template| template.ack != view.ack);
        is_pure && (behind > 0 || (behind == 0 && is_news))
    }

    /// Whether the kernel's window has opened so far that TCP should know without waiting.
    fn has_opened(&self) -> bool {
        let (Some(template), Some(receiver)) = (&self.template, &self.receiver) else {
            return false;
        };
        let ahead = receiver.ack().map_or(0, |seen| seen.wrapping_sub(template.ack));
        self.told < self.window_at(template, ahead) / 2
    }

    /// The acknowledgement of what is seen. Its window ends where the kernel's does.
    fn make_ack(&mut self) -> Option<Vec<u8>> {
        let (receiver, template) = (self.receiver.as_ref()?, self.template?);
        let seen = receiver.ack()?;
        // The kernel may be ahead: a FIN, or data that passed uncoded.
        let ahead = seen.wrapping_sub(template.ack) as i32;
        let ack = if ahead < 0 { template.ack } else { seen };
        let window = self.window_at(&template, ahead.max(0) as u32);
        let timestamps = template.stamp.map(|own| (own, receiver.stamp()));
        self.told = window;
        let (from, to) = self.ends;
        let sequence = template.next;
        Some(PureAck { from, to, sequence, ack, window, timestamps }.to_packet())
    }

    /// The kernel's window, for an acknowledgement that is so many bytes ahead of its own; no more
    /// than can be decoded.
    fn window_at(&self, template: &Template, ahead: u32) -> u16 {
        let Some(scale) = self.scale(0) else { return template.window };
        let shift = if template.is_syn { 0 } else { scale };
        let window = (u32::from(template.window) << shift).saturating_sub(ahead);
        let window = (window as usize).min(self.window_max);
        (window >> scale).min(usize::from(u16::MAX)) as u16
    }
}

/// The longest packet that the host may send where the path carries so many bytes.
pub fn packet_len_max(path_packet_len_max: usize) -> usize {
    path_packet_len_max
        .saturating_sub(LAYER_OVERHEAD_MAX)
        .min(usize::from(u16::MAX) - SEGMENT_PREFIX_LEN)
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
