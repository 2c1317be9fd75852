//! The TCP/NC layers of all connections of a host, between its TCP and IP.
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
//! What is not TCP passes through, and so does a connection that there is no room for. TCP stays
//! unmodified: it does not know of the layers, and sees only packets that TCP could have sent.

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

/// A connection that was silent for this long may be replaced.
pub const CONNECTION_IDLE: Duration = Duration::from_secs(120);
/// A connection that both ends have closed may be replaced after this long.
pub const CONNECTION_CLOSED: Duration = Duration::from_secs(2);
/// By how many bytes a coded IP packet may exceed the one that it carries.
pub const LAYER_OVERHEAD_MAX: usize = IPV6_LEN + 4 + OVERHEAD_MAX;
/// Segments that TCP may have in flight however long the queue, so that three duplicate
/// acknowledgments are possible.
const SEGMENTS_MIN: usize = 4;
/// Bytes of IPv6 and TCP headers, which do not count towards the longest segment.
const HEADERS_LEN_MAX: usize = IPV6_LEN + 20;

/// Counts of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NcLayerStats {
    /// TCP data packets that were coded.
    pub segments_coded: u64,
    /// Coded packets sent.
    pub coded_sent: u64,
    /// Coded packets received.
    pub coded_received: u64,
    /// TCP data packets that were decoded.
    pub segments_decoded: u64,
    /// Acknowledgments made by the layer.
    pub acks_made: u64,
    /// Acknowledgments of the kernel that were held back because they were outdated.
    pub acks_suppressed: u64,
    /// TCP data packets lost before coding: no room, or a gap.
    pub segments_dropped: u64,
}

/// All connections of a host. After each input, drain [`poll_path`](Self::poll_path) and
/// [`poll_host`](Self::poll_host).
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
    /// Our end, and the other end.
    ends: (End, End),
    /// Bytes that the other end's TCP may have in flight: its coding buffer may be larger than what
    /// our end can decode.
    window_max: usize,
    sender: Option<Box<NcSender>>,
    receiver: Option<Box<NcReceiver>>,
    template: Option<Template>,
    /// Window scale in the host's SYN, and in the peer's: outer `None` before the SYN.
    scales: [Option<Option<u8>>; 2],
    /// The window last sent, as in the header.
    told: u16,
    /// The window last offered to the host.
    offered: Option<u16>,
    /// Whether the host, and the peer, have sent their FINs.
    finished: [bool; 2],
    active: Time,
}

/// What the kernel would put into an acknowledgment.
#[derive(Clone, Copy, Debug)]
struct Template {
    /// Its next sequence number.
    next: u32,
    /// Its last acknowledgment, and the window offered with it, as sent.
    ack: u32,
    window: u16,
    /// The window in a SYN is not scaled.
    is_syn: bool,
    stamp: Option<u32>,
}

impl NcLayer {
    /// A layer without connections. Packets from the host have at most `packet_len_max` bytes,
    /// those from the path up to [`LAYER_OVERHEAD_MAX`] more; this determines
    /// `params.segment_len_max`.
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

    /// Sets how many packets there is room for on the way to the path. Combinations are made only
    /// when there is room, and TCP is offered a window of what it has in flight plus what fits. So
    /// nothing is lost here, where coding would hide the loss and take it for one on the path.
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

    /// Advances the clock to `now`.
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

    /// Number of known connections.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// How many of them have a coding buffer, and how many a receiver's window.
    pub(crate) fn buffers(&self) -> (usize, usize) {
        let (mut senders, mut receivers) = (0, 0);
        for connection in &self.connections {
            senders += usize::from(connection.sender.is_some());
            receivers += usize::from(connection.receiver.is_some());
        }
        (senders, receivers)
    }

    /// The index of a connection, created if there is room; a SYN (`begins`) restarts it.
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

    /// Passes a data packet of the host to its connection's sender.
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

    /// Passes a coded packet to its connection's receiver, what it decodes to the host, and an
    /// acknowledgment to the path.
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

    /// Acknowledges what is seen, whatever the kernel has received.
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

    /// Handles a packet as sent by TCP, or by the peer's layer on TCP's behalf.
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

    /// Bytes of TCP data that a coding buffer holds.
    fn buffered_max(&self) -> usize {
        let segment_len = self.packet_len_max.saturating_sub(HEADERS_LEN_MAX);
        usize::from(self.params.buffer_segments) * segment_len
    }

    /// Limits what TCP has in flight to what the coding buffer holds, and what it sends at once to
    /// what there is [room](Self::set_room) for; but always allows a few segments, so that
    /// acknowledgments keep flowing. Returns the window offered to TCP.
    fn clamp_window(&self, index: usize, view: &TcpView, packet: &mut PacketBuf) -> u16 {
        let connection = &self.connections[index];
        let Some(scale) = connection.scale(1) else { return view.window };
        let segment_len = self.packet_len_max.saturating_sub(HEADERS_LEN_MAX);
        let buffered = connection.sender.as_ref().map_or(0, |sender| sender.buffered_bytes());
        // A segment may need two packets.
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

    /// Whether the connection can be dropped without loss.
    fn is_over(&self, now: Time) -> bool {
        let buffered = self.sender.as_ref().map_or(0, |sender| sender.buffered());
        let undelivered = self.receiver.as_ref().map_or(0, |receiver| receiver.undelivered());
        let closed = self.finished == [true; 2] && buffered == 0 && undelivered == 0;
        now.since(self.active) >= if closed { CONNECTION_CLOSED } else { CONNECTION_IDLE }
    }

    /// Window scale (shift count) in the SYN of the host (0) or the peer (1); `None` if the SYN was
    /// not seen.
    fn scale(&self, whose: usize) -> Option<u8> {
        match self.scales {
            [Some(Some(own)), Some(Some(peer))] => Some([own, peer][whose]),
            [Some(_), Some(_)] => Some(0),
            _ => None,
        }
    }

    /// Records the state that a packet of the kernel shows.
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

    /// Whether a packet of the kernel only acknowledges what was delivered to it, which the layer
    /// has already acknowledged. A repetition with nothing left to acknowledge is different: it
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

    /// Whether the kernel's window has opened so far that TCP should be told at once.
    fn has_opened(&self) -> bool {
        let (Some(template), Some(receiver)) = (&self.template, &self.receiver) else {
            return false;
        };
        let ahead = receiver.ack().map_or(0, |seen| seen.wrapping_sub(template.ack));
        self.told < self.window_at(template, ahead) / 2
    }

    /// The acknowledgment of what is seen. Its window ends where the kernel's does.
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

    /// The kernel's window for an acknowledgment that is `ahead` bytes ahead of the kernel's; at
    /// most what can be decoded.
    fn window_at(&self, template: &Template, ahead: u32) -> u16 {
        let Some(scale) = self.scale(0) else { return template.window };
        let shift = if template.is_syn { 0 } else { scale };
        let window = (u32::from(template.window) << shift).saturating_sub(ahead);
        let window = (window as usize).min(self.window_max);
        (window >> scale).min(usize::from(u16::MAX)) as u16
    }
}

/// The longest packet that the host may send if the path carries `path_packet_len_max` bytes.
pub fn packet_len_max(path_packet_len_max: usize) -> usize {
    path_packet_len_max
        .saturating_sub(LAYER_OVERHEAD_MAX)
        .min(usize::from(u16::MAX) - SEGMENT_PREFIX_LEN)
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
