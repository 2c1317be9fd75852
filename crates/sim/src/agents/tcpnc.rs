//! TCP/NC between a TCP agent and the network: the layers of `corridor_proto::tcpnc`.
//!
//! Any TCP agent works above them unchanged. They code what the simulator knows of segments, their
//! numbers, in place of payload bytes, which do not matter here. On the wire packets have their
//! real length: the TCP/NC header on top of the segment, headers included.
//!
//! As everywhere in the simulator, sequence numbers count segments of equal size: a segment takes
//! one byte of the layers' sequence space.

use std::collections::VecDeque;
use std::sync::Arc;

use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_codec::widen_id;
use corridor_proto::tcpnc::wire::{FEEDBACK_LEN, Feedback, Header};
use corridor_proto::tcpnc::{NcError, NcParams, NcReceiver, NcSender, Segment as NcSegment};

use crate::agents::source::FlowEnd;
use crate::core::agent::{Agent, Body, Packet};
use crate::tcp::{SACK_RANGES_MAX, SackRange, Segment};

/// Bytes that represent a segment in a combination: its number, and whether it is a retransmission.
const DESCRIPTOR_LEN: usize = 9;
/// Unit of time stamps, in nanoseconds: 2^32 of them are more than an hour.
const STAMP_NS: u64 = 1_000;

/// TCP/NC parameters for coding the simulator's segment descriptors.
pub fn nc_params(params: NcParams) -> NcParams {
    NcParams { segment_len_max: DESCRIPTOR_LEN, ..params }
}

/// The random seed for the coefficients of a flow's sender.
pub(crate) fn nc_randomness(seed: u64, replication: u64, flow: u32) -> u64 {
    let key = StreamKey { seed, replication, entity: u64::from(flow), purpose: "tcp-nc" };
    key.stream().next_u64()
}

/// A TCP sender with the TCP/NC layer below it.
pub struct NcSource<A> {
    inner: A,
    layer: NcSender,
    end: FlowEnd,
    /// Bytes of an uncoded segment on the wire, headers included.
    segment_bytes: u32,
    /// The latest number acknowledged, for extending wrapped numbers.
    acknowledged: u64,
}

impl<A: Agent> NcSource<A> {
    /// Puts the layer below `inner`, whose segments are `segment_bytes` long, headers included.
    ///
    /// # Errors
    /// As [`NcSender::new`].
    pub fn new(
        inner: A,
        end: FlowEnd,
        segment_bytes: u32,
        params: NcParams,
        randomness: u64,
    ) -> Result<Self, NcError> {
        let layer = NcSender::new(nc_params(params), randomness)?;
        Ok(NcSource { inner, layer, end, segment_bytes, acknowledged: 0 })
    }

    /// The agent above the layer.
    pub fn inner(&self) -> &A {
        &self.inner
    }

    /// The layer, for its statistics.
    pub fn layer(&self) -> &NcSender {
        &self.layer
    }

    /// Gives the layer a segment. A segment that the layer refuses is lost, unless the receiver has
    /// acknowledged it already: that goes out uncoded.
    fn take(&mut self, packet: Packet) -> Option<Packet> {
        let Body::Segment(Segment::Data { sequence, sent_at, retransmission, .. }) = packet.body
        else {
            return Some(packet);
        };
        let mut descriptor = [0; DESCRIPTOR_LEN];
        descriptor[..8].copy_from_slice(&sequence.to_be_bytes());
        descriptor[8] = u8::from(retransmission);
        let stamp = (sent_at.as_nanos() / STAMP_NS) as u32;
        let segment = NcSegment { sequence: sequence as u32, len: 1, stamp };
        let outcome = self.layer.handle_segment(segment, &descriptor);
        (outcome == corridor_proto::tcpnc::SegmentOutcome::Acknowledged).then_some(packet)
    }
}

impl<A: Agent> Agent for NcSource<A> {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        let mut packet = packet;
        let mut feedback = None;
        if let Body::Bytes(bytes) = &packet.body {
            let Some((told, ack)) = Feedback::read(bytes) else { return };
            let Some(ack) = read_ack(now, self.acknowledged, ack) else { return };
            feedback = Some(told);
            packet.body = Body::Segment(ack);
        }
        if let Body::Segment(Segment::Ack { next, .. }) = packet.body {
            self.acknowledged = self.acknowledged.max(next);
            if !self.layer.handle_ack(now, next as u32, feedback.as_ref()) {
                return;
            }
        }
        self.inner.handle_packet(now, packet);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.inner.handle_timeout(now);
        self.layer.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        loop {
            if let Some(coded) = self.layer.poll_transmit(now) {
                let head_len = Header::read(coded).map_or(0, |(_, rest)| coded.len() - rest.len());
                let len_bytes = self.segment_bytes + head_len as u32;
                let body = Body::Bytes(Arc::from(coded));
                return Some(self.end.packet(len_bytes, body));
            }
            let packet = self.inner.poll_transmit(now)?;
            if let Some(packet) = self.take(packet) {
                return Some(packet);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        [self.inner.poll_timeout(), self.layer.poll_timeout()].into_iter().flatten().min()
    }
}

/// A TCP receiver with the TCP/NC layer below it. The layer acknowledges; the TCP receiver's own
/// acknowledgments are dropped here.
pub struct NcSink<A> {
    inner: A,
    layer: NcReceiver,
    end: FlowEnd,
    segment_bytes: u32,
    ack_bytes: u32,
    tells_feedback: bool,
    /// All segments before this number have been delivered to TCP.
    delivered: u64,
    acks: VecDeque<Packet>,
}

impl<A: Agent> NcSink<A> {
    /// Puts the layer below `inner`, whose segments are `segment_bytes` long, headers included, and
    /// whose acknowledgments are `ack_bytes` long.
    ///
    /// # Errors
    /// As [`NcReceiver::new`].
    pub fn new(
        inner: A,
        end: FlowEnd,
        (segment_bytes, ack_bytes): (u32, u32),
        params: NcParams,
    ) -> Result<Self, NcError> {
        let layer = NcReceiver::new(nc_params(params))?;
        let tells_feedback = params.redundancy.needs_feedback();
        let (delivered, acks) = (0, VecDeque::new());
        Ok(NcSink { inner, layer, end, segment_bytes, ack_bytes, tells_feedback, delivered, acks })
    }

    /// The agent above the layer.
    pub fn inner(&self) -> &A {
        &self.inner
    }

    /// The layer, for its statistics.
    pub fn layer(&self) -> &NcReceiver {
        &self.layer
    }

    /// Delivers decoded segments to TCP, and drops TCP's acknowledgments.
    fn deliver(&mut self, now: Time) {
        while let Some(descriptor) = self.layer.poll_delivery() {
            let Some((&number, rest)) = descriptor.split_first_chunk() else { continue };
            let sequence = u64::from_be_bytes(number);
            let segment = Segment::Data {
                sequence,
                sent_at: now,
                retransmission: rest == [1],
                congestion_experienced: false,
                window_reduced: false,
            };
            self.delivered = sequence + 1;
            let packet = self.packet(self.segment_bytes, Body::Segment(segment));
            self.inner.handle_packet(now, packet);
            while self.inner.poll_transmit(now).is_some() {}
        }
    }

    /// Acknowledges up to the oldest unseen segment.
    fn acknowledge(&mut self, now: Time) {
        let (Some(ack), Some(feedback)) = (self.layer.ack(), self.layer.feedback()) else { return };
        let next = widen_id(ack, self.delivered);
        let now_stamp = now.as_nanos() / STAMP_NS;
        let echo = Time::from_nanos(widen_id(self.layer.stamp(), now_stamp) * STAMP_NS);
        let packet = if self.tells_feedback {
            let mut bytes = feedback.to_bytes().to_vec();
            bytes.extend_from_slice(&ack.to_be_bytes());
            bytes.extend_from_slice(&self.layer.stamp().to_be_bytes());
            let len_bytes = self.ack_bytes + FEEDBACK_LEN as u32;
            self.packet(len_bytes, Body::Bytes(Arc::from(bytes)))
        } else {
            self.packet(self.ack_bytes, Body::Segment(ack_segment(next, echo)))
        };
        self.acks.push_back(packet);
    }

    fn packet(&self, len_bytes: u32, body: Body) -> Packet {
        self.end.packet(len_bytes, body)
    }
}

impl<A: Agent> Agent for NcSink<A> {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        match &packet.body {
            Body::Bytes(bytes) => {
                if self.layer.handle_packet(bytes).is_none() {
                    return;
                }
                self.deliver(now);
            }
            // Sent uncoded because it has been acknowledged: TCP has it, or is about to get it.
            _ => {
                self.inner.handle_packet(now, packet);
                while self.inner.poll_transmit(now).is_some() {}
            }
        }
        self.acknowledge(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.inner.handle_timeout(now);
        while self.inner.poll_transmit(now).is_some() {}
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        self.acks.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }
}

fn ack_segment(next: u64, echo: Time) -> Segment {
    Segment::Ack {
        next,
        echo,
        echo_retransmission: false,
        sack: [SackRange::default(); SACK_RANGES_MAX],
        congestion_echo: false,
        window_end: None,
    }
}

/// The acknowledgment that a feedback carries.
fn read_ack(now: Time, acknowledged: u64, bytes: &[u8]) -> Option<Segment> {
    let (&ack, rest) = bytes.split_first_chunk()?;
    let (&stamp, _) = rest.split_first_chunk()?;
    let next = widen_id(u32::from_be_bytes(ack), acknowledged);
    let stamp = widen_id(u32::from_be_bytes(stamp), now.as_nanos() / STAMP_NS);
    Some(ack_segment(next, Time::from_nanos(stamp * STAMP_NS)))
}
