//! A helper between two endpoints: overhears both, helps both flows, and reports e1 for each.

use corridor_base::{Stream, Time};

use super::role::Role;
use super::{Destination, Event, Shared};
use crate::bounds::REPORT_INTERVAL;
use crate::config::{ErasureRatios, LinkErrors, Mode, StationConfig, StationId};
use crate::flow::block::helper::Helper;
use crate::inspect::Inspection;
use crate::link::handshake::{Joined, Opened};
use crate::memory;
use crate::wire::{Ack, Chunk, ENC_LEN, Enc, EncoderReport, Kind, OVERHEAD_LEN, Report};

/// A helper; `flows`: the two flows between the endpoints, each with its receiver.
pub(crate) struct HelperStation {
    flows: [(Helper, StationId); 2],
    /// Which flow is asked first for the next frame.
    turn: usize,
    /// The flow that something was last written for, and the counter of that frame.
    written: Option<(usize, u32)>,
    report_due: Time,
}

impl HelperStation {
    pub(crate) fn new(
        config: &StationConfig,
        (a, b): (StationId, StationId),
        mut fork: impl FnMut() -> Stream,
        now: Time,
    ) -> Self {
        let room = config.frame_len_max - OVERHEAD_LEN - ENC_LEN;
        let bytes = memory::divided(config).received / 2;
        let mut flow = |from, to| {
            let coding = config.coding;
            let (field, size) = (coding.field, coding.block_size);
            let mut helper = Helper::new(coding, from, field, size, room, fork()).holding(bytes);
            if let LinkErrors::Fixed(ratios) = config.link_errors {
                helper.set_links(ratios);
            }
            (helper, to)
        };
        HelperStation { flows: [flow(a, b), flow(b, a)], turn: 0, written: None, report_due: now }
    }

    fn flow_mut(&mut self, from: StationId) -> Option<&mut Helper> {
        self.flows.iter_mut().map(|(helper, _)| helper).find(|helper| helper.flow() == from)
    }

    fn handle_ack(&mut self, shared: &mut Shared, now: Time, from: StationId, ack: &Ack) {
        let Some((helper, to)) = self.flows.iter_mut().find(|(h, _)| h.flow() == ack.flow) else {
            return;
        };
        if *to != from {
            return; // Only the decoder acknowledges its flow.
        }
        if shared.config.link_errors == LinkErrors::Measured {
            let encoder = shared.group.peer(ack.flow);
            let e1 = encoder.map_or(1.0, |it| it.erasure_ratio(now, it.encoder_stale_after()));
            helper.set_links(ErasureRatios { e1, e2: ack.e2, e3: ack.e3 });
        }
        let ratios = helper.ratios();
        shared.stats.erasure_ratio_e1 = ratios.e1;
        shared.stats.erasure_ratio_e2 = ratios.e2;
        shared.stats.erasure_ratio_e3 = ratios.e3;
        helper.handle_ack(now, ack);
    }

    fn anyone_up(&self, shared: &Shared) -> bool {
        self.flows.iter().any(|(_, to)| shared.group.is_up(*to))
    }

    fn write_report(&mut self, shared: &mut Shared, now: Time) {
        self.report_due = now + REPORT_INTERVAL;
        let encoders = self.flows.iter().filter_map(|(helper, _)| {
            let flow = helper.flow();
            let peer = shared.group.peer(flow)?;
            let e1 = peer.erasure_ratio(now, peer.encoder_stale_after());
            let e1 = if peer.link.overhears() { e1 } else { 1.0 };
            Some(EncoderReport { flow, e1, frames: shared.group.frames_for(flow) })
        });
        let report = Report { encoders: encoders.collect() };
        shared.group.begin(&mut shared.frame);
        Kind::Report.begin_last(&mut shared.frame);
        report.write(&mut shared.frame);
        shared.seal();
        shared.stats.control_frames_sent += 1;
    }
}

impl Role for HelperStation {
    fn carries_packets(&self) -> bool {
        false
    }

    fn packet_len_max(&self, _: &Shared, _frame_len: usize) -> usize {
        0
    }

    fn inspect(&self, _: &Shared, view: &mut Inspection) {
        view.held.received = self.flows.iter().map(|(helper, _)| helper.bytes()).sum();
        view.flows = self.flows.iter().map(|(helper, _)| helper.inspect()).collect();
    }

    fn take_joined(&mut self, shared: &mut Shared, _now: Time, joined: &Joined) {
        if !joined.new_instance {
            if let Some(helper) = self.flow_mut(joined.peer) {
                helper.restart_counters();
            }
            return;
        }
        if let Some(helper) = self.flow_mut(joined.peer) {
            helper.restart(joined);
            if let Some(block_bytes) =
                helper.block_too_long().filter(|_| joined.mode == Mode::Block)
            {
                shared.push_event(Event::BlocksTooLong { peer: joined.peer, block_bytes });
            }
        }
        // A decoder that restarted has lost all that it acknowledged.
        for (helper, to) in &mut self.flows {
            if *to == joined.peer {
                helper.restart_decoder();
            }
        }
    }

    fn handle_chunk(
        &mut self,
        shared: &mut Shared,
        now: Time,
        opened: Opened,
        chunk: Chunk<'_>,
    ) -> Option<()> {
        if matches!(chunk.kind, Kind::Enc | Kind::Ack) {
            // It is for the other end.
            shared.group.note_overheard(opened.from);
        }
        match chunk.kind {
            Kind::Enc => {
                let helper = self.flow_mut(opened.from)?;
                let field = helper.field();
                let enc = Enc::parse(chunk.body, |_| Some(field))
                    .filter(|enc| enc.flow == opened.from)?;
                helper.handle_enc(now, opened.header.counter, &enc, &mut shared.stats);
            }
            Kind::Ack => {
                self.handle_ack(shared, now, opened.from, &chunk.read(Ack::parse)?);
            }
            _ => return None,
        }
        Some(())
    }

    fn poll_transmit(&mut self, shared: &mut Shared, now: Time) -> Option<Destination> {
        if self.report_due <= now && self.anyone_up(shared) {
            self.write_report(shared, now);
            return Some(Destination::All);
        }
        if !shared.pacer.allows(now) {
            return None;
        }
        if let (true, Some((at, before))) = (shared.cut.is_open(), self.written) {
            let (helper, to) = &mut self.flows[at];
            let counter = shared.group.next_counter();
            if shared.send_part() {
                helper.note_last_part(before, counter);
            }
            return Some(Destination::Station(*to));
        }
        for step in 0..self.flows.len() {
            let at = (self.turn + step) % self.flows.len();
            let (helper, to) = &mut self.flows[at];
            if !shared.group.is_up(*to) {
                continue;
            }
            let counter = shared.group.next_counter();
            shared.group.begin(&mut shared.frame);
            Kind::Enc.begin_last(&mut shared.frame);
            let begins_at = shared.frame.len();
            if helper.poll(counter, &mut shared.frame, &mut shared.stats) {
                let to = *to;
                self.turn = at + 1;
                self.written = Some((at, counter));
                shared.cut_frame(Kind::Enc, begins_at);
                shared.seal();
                return Some(Destination::Station(to));
            }
        }
        None
    }

    fn handle_timeout(&mut self, _: &mut Shared, now: Time) {
        self.flows.iter_mut().for_each(|(helper, _)| helper.handle_timeout(now));
    }

    fn poll_timeout(&self, shared: &Shared) -> Option<Time> {
        let report = self.anyone_up(shared).then_some(self.report_due);
        self.flows.iter().filter_map(|(helper, _)| helper.poll_timeout()).chain(report).min()
    }
}
