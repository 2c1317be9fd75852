//! Where every packet is, in window mode: the books of one flow, from a host to its peer.
//!
//! Whoever holds the key reads along: each source symbol is in the books with its packets before
//! anybody can hear it. The receiver passes over symbols in order; each one was delivered whole by
//! then, or is given up, and of these there have to be as many as its counter rose by.

use std::collections::{BTreeMap, BTreeSet};

use corridor_proto::inspect::{Inspection, WindowView};
use corridor_proto::wire::{
    HEADER_LEN, HELLO_CLEAR_LEN, Header, Hello, Kind, TAG_LEN, WindowAck, WindowForm, WindowSymbol,
};
use corridor_proto::{Delivery, Mode, Stats};

use super::invariants::{Broken, Invariant, ensure};
use super::ledger::Fate;
use super::window_packet::{flow_of, is_marked_copy, needs_order, unmarked};

struct Packet {
    bytes: Vec<u8>,
    in_order: bool,
    run: usize,
    /// Symbol since the sender started, and place in it.
    place: Option<(usize, usize)>,
    fate: Fate,
}

/// One start of the sender.
struct Run {
    instance: u64,
    /// Number of its first symbol, as it greets.
    first: Option<u32>,
    /// Its packets as they are without marks.
    known: BTreeMap<Vec<u8>, usize>,
    accepted: u64,
    /// Packets that found the ingress queue full.
    refused: u64,
    placed: u64,
    /// The newest packet of each flow that is part of a symbol.
    newest: BTreeMap<Vec<u8>, usize>,
    symbols: Vec<Vec<usize>>,
    /// Symbols that have left the sender.
    gone: usize,
    /// Symbols that left it although no receiver had passed them: the receiver has to have them.
    claimed: BTreeSet<usize>,
    /// How far any receiver has come.
    reached: usize,
    /// Packets in the ingress queue, and symbols in the window.
    waiting: usize,
}

/// The receiver, since it started or its peer did.
struct Reader {
    run: usize,
    at: usize,
    delivered: BTreeSet<usize>,
    /// The last packet delivered in order.
    last: Option<(usize, usize)>,
    span: usize,
}

/// The books of a flow in window mode.
pub(super) struct WindowLedger {
    delivery: Delivery,
    packets: Vec<Packet>,
    runs: Vec<Run>,
    reader: Option<Reader>,
    /// Receivers there have been.
    readers: u32,
    /// Packets the sender counted as given up.
    pub(super) given_up_by_sender: u64,
    /// Packets that came out once more after the receiver had started anew.
    pub(super) repeated: u64,
    /// The sender's numbers have gone through 2^32.
    pub(super) wrapped: bool,
}

impl WindowLedger {
    pub(super) fn new(delivery: Delivery) -> Self {
        WindowLedger {
            delivery,
            packets: Vec::new(),
            runs: Vec::new(),
            reader: None,
            readers: 0,
            given_up_by_sender: 0,
            repeated: 0,
            wrapped: false,
        }
    }

    pub(super) fn count(&self, fate: Fate) -> u64 {
        self.packets.iter().filter(|packet| packet.fate == fate).count() as u64
    }

    /// Packets that became part of symbols.
    pub(super) fn placed(&self) -> u64 {
        self.packets.iter().filter(|packet| packet.place.is_some()).count() as u64
    }

    // ---- the sender ---------------------------------------------------------------------------

    pub(super) fn sender_started(&mut self, instance: u64) {
        self.runs.push(Run {
            instance,
            first: None,
            known: BTreeMap::new(),
            accepted: 0,
            refused: 0,
            placed: 0,
            newest: BTreeMap::new(),
            symbols: Vec::new(),
            gone: 0,
            claimed: BTreeSet::new(),
            reached: 0,
            waiting: 0,
        });
    }

    /// The sender has died, with all it had accepted.
    pub(super) fn sender_died(&mut self) {
        let waiting = self.packets.iter_mut().filter(|packet| packet.fate == Fate::Waits);
        waiting.for_each(|packet| packet.fate = Fate::Died);
        if let Some(run) = self.runs.last_mut() {
            run.waiting = 0;
        }
    }

    pub(super) fn accepted(&mut self, bytes: Vec<u8>) {
        let number = self.packets.len();
        let Some(run) = self.runs.last_mut() else { return };
        run.accepted += 1;
        run.known.insert(unmarked(&bytes), number);
        let (in_order, run) = (needs_order(&bytes, self.delivery), self.runs.len() - 1);
        self.packets.push(Packet { bytes, in_order, run, place: None, fate: Fate::Waits });
    }

    pub(super) fn refused(&mut self) {
        if let Some(run) = self.runs.last_mut() {
            run.refused += 1;
        }
    }

    /// Reads a frame of the sender, in the clear.
    pub(super) fn sent(&mut self, clear: &[u8]) -> Result<(), Broken> {
        let Some(header) = Header::parse(clear) else { return Ok(()) };
        let body = &clear[HEADER_LEN..clear.len() - TAG_LEN];
        match header.kind {
            Kind::Hello => {
                self.greeted(Hello::parse(body.get(HELLO_CLEAR_LEN..).unwrap_or_default()));
                Ok(())
            }
            Kind::Window => self.sent_symbol(header.has_ack, body),
            _ => Ok(()),
        }
    }

    fn greeted(&mut self, hello: Option<Hello>) {
        let Some(hello) = hello.filter(|hello| hello.mode == Mode::Window) else { return };
        let Some(run) = self.runs.last_mut() else { return };
        // The first greeting comes before the first symbol.
        if run.instance == hello.instance {
            run.first.get_or_insert(hello.base);
        }
    }

    fn sent_symbol(&mut self, has_ack: bool, body: &[u8]) -> Result<(), Broken> {
        let unreadable = || (Invariant::Delivery, "a sender's symbol cannot be read".to_owned());
        let mut body = body;
        if has_ack {
            body = WindowAck::parse(body).ok_or_else(unreadable)?.1;
        }
        let symbol = WindowSymbol::parse(body).ok_or_else(unreadable)?;
        let Some(run) = self.runs.last_mut() else { return Ok(()) };
        let (WindowForm::Source { id, .. }, Some(first)) = (symbol.form, run.first) else {
            return Ok(());
        };
        let index = id.wrapping_sub(first) as usize;
        ensure(index <= run.symbols.len(), Invariant::Accounting, || {
            format!("symbol {index} is sent after {}", run.symbols.len())
        })?;
        if index < run.symbols.len() {
            return Ok(()); // Sent again.
        }
        self.wrapped |= index > 0 && id < first;
        run.symbols.push(Vec::new());
        let mut rest = symbol.symbol;
        while let [high, low, behind @ ..] = rest {
            let len = usize::from(u16::from_be_bytes([*high & 0x7f, *low]));
            if len == 0 || len > behind.len() {
                break;
            }
            self.place(&behind[..len], high >> 7 == 0, index)?;
            rest = &behind[len..];
        }
        Ok(())
    }

    /// A packet is part of a symbol.
    fn place(&mut self, bytes: &[u8], in_order: bool, symbol: usize) -> Result<(), Broken> {
        let Some(run) = self.runs.last_mut() else { return Ok(()) };
        let Some(&number) = run.known.get(&unmarked(bytes)) else {
            let text = format!("{bytes:02x?} is in symbol {symbol}, and was never accepted");
            return Err((Invariant::Delivery, text));
        };
        let packet = &mut self.packets[number];
        ensure(packet.place.is_none(), Invariant::Delivery, || {
            format!("packet {number} is in symbols {:?} and {symbol}", packet.place)
        })?;
        ensure(is_marked_copy(&packet.bytes, bytes), Invariant::Delivery, || {
            format!("packet {number} was marked and cannot be: {bytes:02x?}")
        })?;
        ensure(packet.in_order == in_order, Invariant::Delivery, || {
            format!("packet {number} is sent with order {in_order}")
        })?;
        packet.bytes = bytes.to_vec();
        packet.place = Some((symbol, run.symbols[symbol].len()));
        run.symbols[symbol].push(number);
        run.placed += 1;
        let newest = run.newest.insert(flow_of(bytes), number);
        ensure(newest.is_none_or(|newest| newest < number), Invariant::Delivery, || {
            format!("packet {number} was sent behind {newest:?} of its flow")
        })
    }

    /// Looks at the sender after an event.
    pub(super) fn look_at_sender(
        &mut self,
        view: &Inspection,
        before: &Stats,
        after: &Stats,
    ) -> Result<(), Broken> {
        let (Some(run), Some(window)) = (self.runs.last_mut(), &view.window) else {
            return Ok(());
        };
        run.check_sums(view, window, after)?;
        run.waiting = view.ingress_packets + window.held;
        let gone = run.symbols.len() - window.held;
        ensure(gone >= run.gone, Invariant::Accounting, || {
            format!("{} symbols had left the window, now {gone}", run.gone)
        })?;
        let left = run.gone..gone;
        let packets: u64 = left.clone().map(|symbol| run.symbols[symbol].len() as u64).sum();
        let given_up = after.packets_given_up - before.packets_given_up;
        ensure(given_up <= packets, Invariant::Accounting, || {
            format!("{given_up} packets given up in symbols of {packets}")
        })?;
        if given_up == 0 {
            run.claimed.extend(left.filter(|&symbol| symbol >= run.reached));
        }
        run.gone = gone;
        self.given_up_by_sender += given_up;
        Ok(())
    }

    // ---- the receiver -------------------------------------------------------------------------

    /// Looks at the receiver after an event that brought its host `delivered`, and raised its
    /// counter of symbols given up by `given_up`.
    pub(super) fn look_at_receiver(
        &mut self,
        view: &Inspection,
        sender: u8,
        delivered: &[Vec<u8>],
        given_up: u64,
    ) -> Result<(), Broken> {
        let peer = view.peers.iter().find(|peer| peer.id.0 == sender);
        let instance = peer.and_then(|peer| peer.instance);
        let window = view.window.and_then(|window| Some((window.next?, window.span)));
        let (Some(instance), Some((next, span))) = (instance, window) else {
            return ensure(delivered.is_empty() && given_up == 0, Invariant::Delivery, || {
                "packets came out before the peer joined".to_owned()
            });
        };
        let run = self.runs.iter().rposition(|run| run.instance == instance);
        let heard = run.and_then(|run| Some((run, self.runs[run].first?)));
        let Some((run, first)) = heard else {
            let text = "the receiver hears a run that never was".to_owned();
            return Err((Invariant::Delivery, text));
        };
        let to = (next as u32).wrapping_sub(first) as usize;
        ensure(to <= self.runs[run].symbols.len(), Invariant::Delivery, || {
            format!("the receiver is at symbol {to} of {}", self.runs[run].symbols.len())
        })?;
        if self.reader.as_ref().is_none_or(|reader| reader.run != run) {
            self.close_reader();
            self.open_reader(run, to)?;
        }
        delivered.iter().try_for_each(|packet| self.take(packet, to))?;
        self.walk(to, given_up)?;
        if let Some(reader) = &mut self.reader {
            reader.span = span;
        }
        Ok(())
    }

    /// The receiver is gone: what it had and had not delivered is gone with it.
    pub(super) fn close_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            let run = &mut self.runs[reader.run];
            let lost = run.claimed.iter().flat_map(|&symbol| &run.symbols[symbol]);
            for &number in lost {
                let fate = &mut self.packets[number].fate;
                *fate = if *fate == Fate::Waits { Fate::Died } else { *fate };
            }
            run.claimed.clear();
        }
    }

    /// A receiver begins at what the sender held when it greeted.
    fn open_reader(&mut self, run: usize, to: usize) -> Result<(), Broken> {
        let books = &self.runs[run];
        ensure(to <= books.gone, Invariant::Delivery, || {
            format!(
                "the receiver begins at symbol {to}, the sender holds those from {}",
                books.gone
            )
        })?;
        self.readers += 1;
        let delivered = BTreeSet::new();
        self.reader = Some(Reader { run, at: to, delivered, last: None, span: 0 });
        Ok(())
    }

    /// A packet came out, in an event after which the receiver is at symbol `to`.
    fn take(&mut self, bytes: &[u8], to: usize) -> Result<(), Broken> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let number = self.runs[reader.run].known.get(&unmarked(bytes)).copied();
        let sent = number.filter(|&number| self.packets[number].bytes == bytes);
        let place = sent.and_then(|number| Some((number, self.packets[number].place?)));
        let Some((number, place)) = place else {
            let text = format!("delivered {bytes:02x?}, which was not sent");
            return Err((Invariant::Delivery, text));
        };
        let packet = &mut self.packets[number];
        debug_assert_eq!(packet.run, reader.run);
        ensure(reader.delivered.insert(number), Invariant::Delivery, || {
            format!("packet {number} of symbol {place:?} came out twice")
        })?;
        ensure(place.0 >= reader.at, Invariant::Delivery, || {
            format!("packet {number} of symbol {place:?} came out behind symbol {}", reader.at)
        })?;
        if packet.in_order {
            ensure(place.0 < to && reader.last < Some(place), Invariant::Delivery, || {
                format!("{place:?} came out behind {:?}, on the way to {to}", reader.last)
            })?;
            reader.last = Some(place);
        }
        self.repeated += u64::from(packet.fate == Fate::Delivered);
        packet.fate = Fate::Delivered;
        Ok(())
    }

    /// The receiver has moved on to a symbol: what it passed was delivered, or given up.
    fn walk(&mut self, to: usize, given_up: u64) -> Result<(), Broken> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        ensure(reader.at <= to, Invariant::Delivery, || {
            format!("the receiver falls back from {} to {to}", reader.at)
        })?;
        let run = &mut self.runs[reader.run];
        let mut passed_over = 0;
        for symbol in reader.at..to {
            let packets = &run.symbols[symbol];
            let out = packets.iter().filter(|number| reader.delivered.contains(number)).count();
            ensure(out == 0 || out == packets.len(), Invariant::Delivery, || {
                format!("{out} of {} packets of symbol {symbol} came out", packets.len())
            })?;
            let claimed = run.claimed.remove(&symbol);
            if out > 0 {
                continue;
            }
            passed_over += 1;
            ensure(!claimed, Invariant::Accounting, || {
                format!("the sender took symbol {symbol} for received, and the receiver gave it up")
            })?;
            for &number in packets {
                let fate = &mut self.packets[number].fate;
                *fate = if *fate == Fate::Delivered { *fate } else { Fate::GivenUp };
            }
        }
        ensure(passed_over == given_up, Invariant::Accounting, || {
            format!("{passed_over} symbols passed over, {given_up} counted as given up, at {to}")
        })?;
        reader.at = to;
        run.reached = run.reached.max(to);
        Ok(())
    }

    // ---- the end ------------------------------------------------------------------------------

    /// Packets in the ingress queue and symbols on either side that nobody is done with.
    pub(super) fn waiting(&self) -> usize {
        let last = self.runs.len().wrapping_sub(1);
        let reader = self.reader.iter().filter(|reader| reader.run == last);
        let span: usize = reader.map(|reader| reader.span).sum();
        self.runs.last().map_or(0, |run| run.waiting) + span
    }

    /// Closes the books of a flow at rest: what did not come out is counted on one side.
    pub(super) fn close(&self) -> Result<(), Broken> {
        let (Some(reader), [run], 1) = (&self.reader, &self.runs[..], self.readers) else {
            return Ok(()); // Stations have died, and packets with them.
        };
        // Beyond where the receiver is nobody but the sender can know.
        let beyond = run.symbols[reader.at..].iter().flatten();
        let lost = beyond.filter(|number| !reader.delivered.contains(number)).count() as u64;
        ensure(lost <= self.given_up_by_sender, Invariant::Accounting, || {
            format!("{lost} packets lost, {} counted by the sender", self.given_up_by_sender)
        })
    }
}

impl Run {
    /// That the sender's numbers add up.
    fn check_sums(
        &self,
        view: &Inspection,
        window: &WindowView,
        stats: &Stats,
    ) -> Result<(), Broken> {
        let symbols = self.symbols.len() as u64;
        ensure(symbols == stats.symbols_added, Invariant::Accounting, || {
            format!("{} symbols added, {symbols} sent", stats.symbols_added)
        })?;
        ensure(window.held <= self.symbols.len(), Invariant::Accounting, || {
            format!("{} symbols held of {symbols}", window.held)
        })?;
        let dropped = stats.packets_dropped_codel + stats.packets_dropped_ingress - self.refused;
        let known = self.placed + view.ingress_packets as u64 + dropped;
        ensure(self.accepted == known, Invariant::Accounting, || {
            format!(
                "{} packets accepted; {} in symbols, {} queued, {dropped} dropped",
                self.accepted, self.placed, view.ingress_packets
            )
        })
    }
}
