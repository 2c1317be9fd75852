//! TCP/NC between an agent of TCP's and the network: the layers of `corridor_proto::tcpnc`.
//!
//! Any TCP agent sits above them as it is. What the layers code are not the bytes of segments,
//! which nobody looks at, but what the simulator knows of them: their numbers. Packets are as long
//! on the wire as they would be: the header of TCP/NC on top of the segment, headers included.
//!
//! Sequence numbers count segments of equal size, as everywhere in the simulator: a segment takes
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

/// What stands for a segment in a combination: its number, and whether TCP had sent it before.
const DESCRIPTOR_LEN: usize = 9;
/// Nanoseconds of a stamp's unit: 2^32 of them are more than an hour.
const STAMP_NS: u64 = 1_000;

/// Parameters for the descriptors that the simulator codes.
pub fn nc_params(params: NcParams) -> NcParams {
    NcParams { segment_len_max: DESCRIPTOR_LEN, ..params }
}

/// Randomness for the coefficients of a flow's sender.
pub(crate) fn nc_randomness(seed: u64, replication: u64, flow: u32) -> u64 {
    let key = StreamKey { seed, replication, entity: u64::from(flow), purpose: "tcp-nc" };
    key.stream().next_u64()
}

/// A sender of TCP's with the layer below it.
pub struct NcSource<A> {
    inner: A,
    layer: NcSender,
    end: FlowEnd,
    /// A segment on the wire without coding, headers included.
    segment_bytes: u32,
    /// The latest acknowledgement, for widening.
    acknowledged: u64,
}

impl<A: Agent> NcSource<A> {
    /// Puts the layer below `inner`, whose segments are `segment_bytes` long with all headers.
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

    /// Gives the layer a segment of TCP's. What it does not take is lost, but for what the other
    /// side has acknowledged: that goes as it is.
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

/// A receiver of TCP's with the layer below it. The layer acknowledges; what the receiver would
/// acknowledge stays here.
pub struct NcSink<A> {
    inner: A,
    layer: NcReceiver,
    end: FlowEnd,
    segment_bytes: u32,
    ack_bytes: u32,
    tells_feedback: bool,
    /// All segments before this number have been given to TCP.
    delivered: u64,
    acks: VecDeque<Packet>,
}

impl<A: Agent> NcSink<A> {
    /// Puts the layer below `inner`, whose segments are `segment_bytes` long with all headers, and
    /// whose acknowledgements are `ack_bytes` long.
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

    /// Gives TCP what is decoded, and drops what it acknowledges.
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

    /// Acknowledges the oldest segment that is not seen.
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
            // Sent uncoded, because it has been acknowledged: TCP has it or is about to.
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

/// The acknowledgement behind a feedback.
fn read_ack(now: Time, acknowledged: u64, bytes: &[u8]) -> Option<Segment> {
    let (&ack, rest) = bytes.split_first_chunk()?;
    let (&stamp, _) = rest.split_first_chunk()?;
    let next = widen_id(u32::from_be_bytes(ack), acknowledged);
    let stamp = widen_id(u32::from_be_bytes(stamp), now.as_nanos() / STAMP_NS);
    Some(ack_segment(next, Time::from_nanos(stamp * STAMP_NS)))
}
