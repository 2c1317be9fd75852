//! Layer between a TCP agent and a station: turns segments into IPv4 packets, and opens
//! connections.
//!
//! A station carries bytes and inspects them: flows, ECN marks, the windows of acknowledgments.
//! With this layer below, any TCP agent can use a station unchanged.

mod opening;
mod packet;

use std::sync::Arc;

use corridor_base::Time;

use self::opening::Opening;
use self::packet::{Content, Kind, Parsed};
use crate::agents::source::{FlowEnd, TcpSink, TcpSource};
use crate::core::agent::{Agent, Body, Packet};
use crate::tcp::Segment;

pub(crate) use packet::{DATA_HEADERS_LEN, address};

/// A TCP endpoint that knows which segment number to expect: on the wire, sequence numbers wrap.
pub(crate) trait Numbered: Agent {
    /// The segment number that the next segment's numbers are close to.
    fn near(&self) -> u64;

    /// The connection is established: data may be sent from now on.
    fn begin(&mut self, _now: Time) {}
}

impl Numbered for TcpSource {
    fn near(&self) -> u64 {
        self.sender().acknowledged()
    }
}

impl Numbered for TcpSink {
    fn near(&self) -> u64 {
        self.receiver().next_expected()
    }
}

/// The flow of an IP packet, by its ports.
pub(crate) fn flow_of(packet: &[u8]) -> Option<u32> {
    packet::parse(packet).map(|parsed| parsed.flow as u32)
}

/// What both endpoints of a connection have.
struct Wire<A> {
    inner: A,
    end: FlowEnd,
    /// Payload bytes of a full segment.
    payload_bytes: u32,
    /// Window scale of packets that this end writes, bits.
    scale: u8,
    packet: Vec<u8>,
}

impl<A: Numbered> Wire<A> {
    fn packet(&mut self, now: Time, content: &Content) -> Packet {
        self.packet.clear();
        let units = (self.payload_bytes, self.scale);
        packet::write(content, &self.end, units, now, &mut self.packet);
        let bytes = Arc::<[u8]>::from(self.packet.as_slice());
        self.end.packet(bytes.len() as u32, Body::Bytes(bytes))
    }

    fn poll_inner(&mut self, now: Time) -> Option<Packet> {
        let packet = self.inner.poll_transmit(now)?;
        match packet.body {
            Body::Segment(segment) => Some(self.packet(now, &Content::Segment(segment))),
            _ => Some(packet),
        }
    }

    fn give(&mut self, now: Time, packet: &Packet, segment: Segment) {
        let body = Body::Segment(segment);
        self.inner.handle_packet(now, Packet { body, ..packet.clone() });
    }

    /// Converts a packet to a segment; `scale` is the window scale of the packet's sender.
    fn segment(&self, now: Time, parsed: &Parsed<'_>, scale: u8) -> Segment {
        parsed.segment(now, self.inner.near(), (self.payload_bytes, scale))
    }
}

/// A TCP sender with the layer below it. It opens a connection before it sends.
pub(crate) struct IpSource<A> {
    wire: Wire<A>,
    opening: Option<Opening>,
    /// When to open the connection by itself, if it has not been opened.
    connects_at: Option<Time>,
    /// Whether to call [`Numbered::begin`] once the connection is established.
    tells: bool,
    /// The receiver's window scale, from its SYN-ACK.
    peer_scale: u8,
}

impl<A: Numbered> IpSource<A> {
    /// Puts the layer below `inner`, whose segments carry `payload_bytes`, on a host with a window
    /// scale of `scale` bits.
    pub(crate) fn new(inner: A, end: FlowEnd, payload_bytes: u32, scale: u8) -> Self {
        let wire = Wire { inner, end, payload_bytes, scale, packet: Vec::new() };
        IpSource { wire, opening: None, connects_at: None, tells: false, peer_scale: 0 }
    }

    /// Opens the connection at `at` by itself; then the agent above may begin.
    pub(crate) fn connecting_at(self, at: Time) -> Self {
        IpSource { connects_at: Some(at), tells: true, ..self }
    }

    /// The agent above the layer.
    pub(crate) fn inner(&self) -> &A {
        &self.wire.inner
    }

    /// The agent above the layer, mutably.
    pub(crate) fn inner_mut(&mut self) -> &mut A {
        &mut self.wire.inner
    }

    /// Begins to open the connection.
    pub(crate) fn open(&mut self, now: Time) {
        self.opening = Some(Opening::new(now));
    }

    /// Whether the connection is established.
    pub(crate) fn is_open(&self) -> bool {
        self.opening.is_some_and(|opening| opening.is_over())
    }

    /// Stops trying to connect.
    pub(crate) fn give_up(&mut self) {
        if let Some(opening) = &mut self.opening {
            opening.give_up();
        }
    }
}

impl<A: Numbered> Agent for IpSource<A> {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        let Body::Bytes(bytes) = &packet.body else { return };
        let Some(parsed) = packet::parse(bytes) else { return };
        match parsed.kind {
            Kind::Ack => {
                let segment = self.wire.segment(now, &parsed, self.peer_scale);
                self.wire.give(now, &packet, segment);
            }
            Kind::SynAck => {
                self.peer_scale = parsed.scale();
                let Some(opening) = &mut self.opening else { return };
                let is_first = !opening.is_over();
                opening.note_answer();
                if is_first && self.tells {
                    self.wire.inner.begin(now);
                }
            }
            Kind::Syn | Kind::Bare | Kind::Data => {}
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.wire.inner.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.connects_at.take_if(|at| *at <= now).is_some() {
            self.open(now);
        }
        match self.opening.as_mut().and_then(|opening| opening.poll(now)) {
            Some(content) => Some(self.wire.packet(now, &content)),
            None => self.wire.poll_inner(now),
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        let asks_at = self.opening.and_then(|opening| opening.poll_timeout());
        [self.wire.inner.poll_timeout(), asks_at, self.connects_at].into_iter().flatten().min()
    }
}

/// A TCP receiver with the layer below it.
pub(crate) struct IpSink<A> {
    wire: Wire<A>,
    owes_answer: bool,
}

impl<A: Numbered> IpSink<A> {
    /// Puts the layer below `inner`, which receives segments with `payload_bytes`, on a host with a
    /// window scale of `scale` bits.
    pub(crate) fn new(inner: A, end: FlowEnd, payload_bytes: u32, scale: u8) -> Self {
        let wire = Wire { inner, end, payload_bytes, scale, packet: Vec::new() };
        IpSink { wire, owes_answer: false }
    }

    /// The agent above the layer.
    pub(crate) fn inner(&self) -> &A {
        &self.wire.inner
    }

    /// The agent above the layer, mutably.
    pub(crate) fn inner_mut(&mut self) -> &mut A {
        &mut self.wire.inner
    }
}

impl<A: Numbered> Agent for IpSink<A> {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        let Body::Bytes(bytes) = &packet.body else { return };
        let Some(parsed) = packet::parse(bytes) else { return };
        match parsed.kind {
            Kind::Data => {
                let segment = self.wire.segment(now, &parsed, 0);
                self.wire.give(now, &packet, segment);
            }
            Kind::Syn => self.owes_answer = true,
            Kind::SynAck | Kind::Bare | Kind::Ack => {}
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.wire.inner.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        match core::mem::take(&mut self.owes_answer) {
            true => Some(self.wire.packet(now, &Content::SynAck)),
            false => self.wire.poll_inner(now),
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.wire.inner.poll_timeout()
    }
}
