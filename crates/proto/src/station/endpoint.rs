//! One end of a coded link: encodes what its host sends, decodes what the peer sends.

use core::time::Duration;

use corridor_base::{Stream, Time};

use super::left_out::LeftOut;
use super::role::Role;
use super::{Destination, Event, Shared};
use crate::config::{ErasureRatios, LinkErrors, Mode, StationConfig, StationId};
use crate::flow::block::decoder::Decoder;
use crate::flow::block::encoder::Encoder;
use crate::flow::block::proof::{Origin, Verdict};
use crate::flow::block::tags::SymbolTags;
use crate::inspect::Inspection;
use crate::link::handshake::{Group, Joined, Opened, Peer};
use crate::memory::{self, BlockShape};
use crate::wire::{
    Ack, Chunk, END_TAG_LEN, Enc, EncoderReport, Kind, OVERHEAD_LEN, Report, chunk_len,
};

/// The encoder and the decoder of an end, and the link estimates that they exchange with the peer.
pub(crate) struct Endpoint {
    peer: StationId,
    helper: Option<StationId>,
    encoder: Encoder,
    /// Created when the peer joins, because the peer chooses field and block size.
    decoder: Option<Decoder>,
    /// Erasure ratios that the peer's decoder and the helper measured for our transmissions.
    measured: ErasureRatios,
    report_at: Option<Time>,
    body: Vec<u8>,
    /// An acknowledgment that is due and did not fit the frame before.
    held_ack: Option<Vec<u8>>,
    /// Whether the helper is ignored at present.
    left_out: LeftOut,
}

impl Endpoint {
    pub(crate) fn new(
        config: &StationConfig,
        peer: StationId,
        helper: Option<StationId>,
        group: &Group,
        rng: Stream,
        now: Time,
    ) -> Self {
        let symbol_size_max = usize::from(config.coding.symbol_size);
        let keys = group.end_keys(peer);
        let tags = keys.map(|keys| SymbolTags::new(keys.own_symbols(), group.instance()));
        let mut encoder =
            Encoder::new(config.coding, config.id, symbol_size_max, rng, now).with_tags(tags);
        if let LinkErrors::Fixed(ratios) = config.link_errors {
            encoder.set_links(ratios, helper.is_some());
        }
        Endpoint {
            peer,
            helper,
            encoder,
            decoder: None,
            measured: ErasureRatios::default(),
            report_at: None,
            body: Vec::new(),
            held_ack: None,
            left_out: LeftOut::default(),
        }
    }

    // ---- receiving ----------------------------------------------------------------------------

    fn handle_enc(
        &mut self,
        shared: &mut Shared,
        now: Time,
        from: StationId,
        body: &[u8],
    ) -> Option<()> {
        let decoder = self.decoder.as_mut()?;
        let field = decoder.field();
        let enc = Enc::parse(body, |_| Some(field))?;
        if enc.flow != self.peer {
            // From a helper, for the other end.
            shared.group.note_overheard(from);
            return None;
        }
        let origin = if Some(from) == self.helper { Origin::Helper } else { Origin::Encoder };
        if origin == Origin::Helper && self.left_out.rest(now).is_some() {
            shared.stats.rows_dropped += 1;
            return Some(());
        }
        decoder.handle_enc(now, &enc, origin, &mut shared.egress, &mut shared.stats);
        if let Some(verdict) = decoder.take_verdict() {
            self.act_on(shared, now, verdict);
        }
        Some(())
    }

    /// Rows were forged: ignores their sender from now on, if it is known.
    fn act_on(&mut self, shared: &mut Shared, now: Time, verdict: Verdict) {
        let flow = self.peer;
        let helper = self.helper.filter(|_| verdict != Verdict::Unknown);
        let Some(helper) = helper else {
            if self.left_out.tells_of_unknown(now) {
                shared.push_event(Event::RowsForged { flow });
            }
            return;
        };
        let span = self.left_out.blame(now, shared.config.coding.delivery_deadline);
        if let Some(decoder) = &mut self.decoder {
            decoder.drop_helper_rows(now, &mut shared.stats);
        }
        shared.stats.helpers_left_out += 1;
        let is_proven = verdict == Verdict::Helper;
        shared.push_event(Event::HelperLeftOut { helper, flow, is_proven, span });
        self.update_links(shared, now);
    }

    fn handle_ack(&mut self, shared: &mut Shared, now: Time, told_in: u32, ack: &Ack) {
        if ack.encoder_counter >= shared.group.next_counter() {
            return; // About frames of an earlier session.
        }
        (self.measured.e2, self.measured.e3) = (ack.e2, ack.e3);
        self.update_links(shared, now);
        self.encoder.handle_ack(now, ack, told_in, &mut shared.stats);
    }

    fn handle_report(&mut self, shared: &mut Shared, now: Time, opened: Opened, report: &Report) {
        let own = report.encoders.iter().find(|encoder| encoder.flow == shared.config.id);
        let Some(&EncoderReport { e1, frames, .. }) = own else { return };
        shared.group.note_told(opened, frames);
        // A helper that does not hear this station is not counted on.
        let hears = e1 < 1.0;
        self.measured.e1 = if hears { e1 } else { 0.0 };
        self.report_at = hears.then_some(now);
        self.update_links(shared, now);
    }

    /// How long the helper may send no report before it is not counted on, by its announced
    /// interval.
    fn report_stale_after(&self, shared: &Shared) -> Duration {
        let helper = self.helper.and_then(|helper| shared.group.peer(helper));
        helper.map_or(Duration::MAX, Peer::report_stale_after)
    }

    /// Gives the encoder the link estimates, and whether the helper is there.
    fn update_links(&mut self, shared: &mut Shared, now: Time) {
        // A decoder that ignores the helper reports that nothing arrives from it.
        let brings_nothing = self.encoder.is_tagged() && self.measured.e2 >= 1.0;
        let helper = self.helper.is_some_and(|helper| shared.group.is_up(helper))
            && self.left_out.rest(now).is_none()
            && !brings_nothing
            && self.report_at.is_some_and(|at| now - at < self.report_stale_after(shared));
        let ratios = match shared.config.link_errors {
            LinkErrors::Measured => self.measured,
            LinkErrors::Fixed(ratios) => ratios,
        };
        self.encoder.set_links(ratios, helper);
        shared.stats.erasure_ratio_e1 = ratios.e1;
        shared.stats.erasure_ratio_e2 = ratios.e2;
        shared.stats.erasure_ratio_e3 = ratios.e3;
    }

    // ---- sending ------------------------------------------------------------------------------

    /// Makes an ENC body, or that of a part of one, in `self.body`, if there is one to send;
    /// returns its kind.
    fn poll_enc(&mut self, shared: &mut Shared, now: Time) -> Option<Kind> {
        if !shared.pacer.allows(now) {
            return None;
        }
        let counter = shared.group.next_counter();
        if shared.cut.is_open() {
            if shared.next_part(&mut self.body) {
                self.encoder.note_last_part(now, counter);
            }
            return Some(Kind::Part);
        }
        self.body.clear();
        let (ingress, stats) = (&mut shared.ingress, &mut shared.stats);
        let written = self.encoder.poll(now, counter, ingress, &mut self.body, stats);
        written.then(|| shared.cut(Kind::Enc, &mut self.body))
    }

    fn send_enc(&mut self, shared: &mut Shared, now: Time, kind: Kind, ack_due: bool) {
        let taken = OVERHEAD_LEN + self.body.len();
        let room = shared.path.safe_frame_len().saturating_sub(taken);
        let pending = self.decoder.as_ref().is_some_and(|decoder| decoder.ack_due().is_some());
        let fits =
            |decoder: &Decoder| chunk_len(Ack::len_bytes_max(decoder.blocks_to_tell())) <= room;
        let mut piggyback = None;
        if ack_due || (pending && self.decoder.as_ref().is_some_and(fits)) {
            piggyback = self.make_ack(shared, now);
            if piggyback.as_ref().is_some_and(|ack| chunk_len(ack.len()) > room) {
                self.held_ack = piggyback.take();
            }
        }
        shared.group.begin(&mut shared.frame);
        if let Some(ack) = piggyback {
            Kind::Ack.write(&ack, &mut shared.frame);
            shared.stats.acks_piggybacked += 1;
        }
        kind.begin_last(&mut shared.frame);
        shared.frame.extend_from_slice(&self.body);
        self.seal(shared);
    }

    fn send_ack(&mut self, shared: &mut Shared, ack: &[u8]) -> Destination {
        shared.group.begin(&mut shared.frame);
        Kind::Ack.begin_last(&mut shared.frame);
        shared.frame.extend_from_slice(ack);
        self.seal(shared);
        shared.stats.ack_frames_sent += 1;
        Destination::Station(self.peer)
    }

    fn make_ack(&mut self, shared: &Shared, now: Time) -> Option<Vec<u8>> {
        // A helper reports from time to time: one that is not heard cannot help.
        let stale = self.report_stale_after(shared);
        let is_left_out = self.left_out.rest(now).is_some();
        let e2 = |id| match shared.group.peer(id) {
            Some(peer) if !is_left_out => peer.erasure_ratio(now, stale),
            _ => 1.0,
        };
        let e3 = |id| shared.group.peer(id).map_or(0.0, |peer| peer.link.ratio());
        let room = shared.body_len_max();
        let helper_counter = self.helper.and_then(|id| shared.group.highest_counter(id));
        let (base, blocks) = self.decoder.as_mut()?.take_ack(now, room);
        let ack = Ack {
            flow: self.peer,
            base,
            encoder_counter: shared.group.highest_counter(self.peer)?,
            helper_counter: helper_counter.unwrap_or(u32::MAX),
            e2: self.helper.map_or(1.0, e2),
            e3: e3(self.peer),
            blocks,
        };
        let mut bytes = Vec::new();
        ack.write(&mut bytes);
        Some(bytes)
    }

    fn seal(&mut self, shared: &mut Shared) {
        shared.seal();
        if shared.group.next_counter() == 0 {
            self.restart_session();
        }
    }
}

impl Role for Endpoint {
    fn tag_len(&self) -> usize {
        if self.encoder.is_tagged() { END_TAG_LEN } else { 0 }
    }

    fn left_out(&self, now: Time) -> Option<Duration> {
        self.left_out.rest(now)
    }

    fn limit_symbols(&mut self, _now: Time, len: usize) {
        self.encoder.limit_symbols(len);
    }

    fn handle_chunk(
        &mut self,
        shared: &mut Shared,
        now: Time,
        opened: Opened,
        chunk: Chunk<'_>,
    ) -> Option<()> {
        match chunk.kind {
            Kind::Enc => self.handle_enc(shared, now, opened.from, chunk.body)?,
            Kind::Ack => {
                let ack = chunk.read(Ack::parse)?;
                if opened.from == self.peer && ack.flow == shared.config.id {
                    self.handle_ack(shared, now, opened.header.counter, &ack);
                }
            }
            Kind::Report if Some(opened.from) == self.helper => {
                self.handle_report(shared, now, opened, &chunk.read(Report::parse)?);
            }
            _ => return None,
        }
        Some(())
    }

    fn poll_transmit(&mut self, shared: &mut Shared, now: Time) -> Option<Destination> {
        if !shared.group.is_up(self.peer) {
            return None;
        }
        if let Some(ack) = self.held_ack.take() {
            // It may have been made for longer frames.
            let ack =
                if ack.len() <= shared.body_len_max() { ack } else { self.make_ack(shared, now)? };
            return Some(self.send_ack(shared, &ack));
        }
        let ack_due = self.decoder.as_ref().and_then(Decoder::ack_due).is_some_and(|at| at <= now);
        if let Some(kind) = self.poll_enc(shared, now) {
            self.send_enc(shared, now, kind, ack_due);
            return Some(Destination::Station(self.peer));
        }
        if ack_due {
            let ack = self.make_ack(shared, now)?;
            return Some(self.send_ack(shared, &ack));
        }
        None
    }

    fn handle_timeout(&mut self, shared: &mut Shared, now: Time) {
        self.encoder.handle_timeout(now, &mut shared.stats);
        if let Some(decoder) = &mut self.decoder {
            decoder.handle_timeout(now, &mut shared.egress, &mut shared.stats);
            if let Some(verdict) = decoder.take_verdict() {
                self.act_on(shared, now, verdict);
            }
        }
        if shared.group.is_up(self.peer) && self.encoder.suspects_length(now) {
            shared.path.hint(now);
        }
        if self.report_at.is_some_and(|at| now - at >= self.report_stale_after(shared)) {
            self.report_at = None;
            self.update_links(shared, now);
        }
    }

    fn poll_timeout(&self, shared: &Shared) -> Option<Time> {
        let decoder = self.decoder.as_ref();
        let deadline = decoder.and_then(Decoder::poll_timeout);
        let report = self.report_at.map(|at| at + self.report_stale_after(shared));
        let mut timers = [deadline, report, None, None];
        if shared.group.is_up(self.peer) {
            timers[2] = decoder.and_then(Decoder::ack_due);
            // What the pacer holds back is due when the pacer allows it.
            let pace = shared.pacer.poll_timeout().unwrap_or(Time::ZERO);
            timers[3] = self.encoder.poll_timeout().map(|due| due.max(pace));
        }
        timers.into_iter().flatten().min()
    }

    fn take_joined(&mut self, shared: &mut Shared, now: Time, joined: &Joined) {
        if joined.peer == self.peer {
            self.encoder.forget_order();
        }
        if joined.peer != self.peer || !joined.new_instance {
            return;
        }
        let config = &shared.config;
        let symbol_size_max = usize::from(joined.symbol_size);
        let keys = shared.group.end_keys(self.peer);
        let tags = keys.map(|keys| SymbolTags::new(keys.peer_symbols(), joined.instance));
        let shape = BlockShape {
            field: joined.field,
            block_size: joined.block_size.into(),
            symbol_size: symbol_size_max,
            is_tagged: tags.is_some(),
        };
        let blocks_max = shape.decoded_in(memory::divided(config).received);
        let decoder = Decoder::new(
            joined.field,
            joined.block_size,
            joined.run,
            joined.base,
            symbol_size_max,
            config.coding.delivery_deadline,
            config.coding.ack_interval,
        );
        self.decoder = (blocks_max > 0).then(|| decoder.holding(blocks_max).with_tags(tags));
        if blocks_max == 0 && joined.mode == Mode::Block {
            let (peer, block_bytes) = (joined.peer, shape.received_bytes());
            shared.push_event(Event::BlocksTooLong { peer, block_bytes });
        }
        self.held_ack = None;
        self.encoder.expect_feedback(joined.feedback);
        self.encoder.restart_peer(now);
    }

    fn restart_session(&mut self) {
        self.encoder.restart_session();
    }

    fn base(&self) -> u32 {
        self.encoder.base()
    }

    fn round_trip(&self) -> Option<Duration> {
        self.encoder.rtt().measured()
    }

    fn inspect(&self, _: &Shared, view: &mut Inspection) {
        view.held.sent = self.encoder.bytes();
        view.held.received = self.decoder.as_ref().map_or(0, Decoder::bytes);
        view.encoder = Some(self.encoder.inspect());
        view.decoder = self.decoder.as_ref().map(Decoder::inspect);
    }
}
