//! Where every packet is, in window mode: the ledger of one flow, from a host to its peer.
//!
//! A reader with the key unseals frames, so each source symbol is in the ledger with its packets
//! before any station can receive it. The receiver passes over symbols in order; each one has then
//! been delivered whole or is given up, and the number given up has to match the increase of its
//! counter. From a delivered symbol, only packets may be missing that are differences from a packet
//! that the receiver never had, or had before it passed over something; these are counted as well.

use std::collections::{BTreeMap, BTreeSet};

use corridor_proto::inspect::{Inspection, WindowView};
use corridor_proto::wire::{
    Chunk, Chunks, Header, Hello, Kind, Part, TAG_LEN, WindowForm, WindowSymbol,
};
use corridor_proto::{Delivery, Mode, Stats};

use super::invariants::{Broken, Invariant, ensure};
use super::ledger::Fate;
use super::window_headers::HeaderTwin;
use super::window_packet::{flow_of, is_datagram, is_marked_copy, needs_order, unmarked};
use super::window_talk::{is_clamped_copy, unwindowed};

struct Packet {
    bytes: Vec<u8>,
    /// Whether it is sent as in-order; `None`: its sender decides.
    in_order: Option<bool>,
    /// Whether its receiver lets nothing overtake it, however long that takes.
    waits: bool,
    run: usize,
    /// Symbol since the sender's start, and index in it.
    place: Option<(usize, usize)>,
    /// The previous packet of its flow, if it was sent as a difference from that.
    differs_from: Option<usize>,
    fate: Fate,
}

/// What a receiver counted in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lost {
    /// Symbols given up.
    pub(super) given_up: u64,
    /// Packets that could not be restored.
    pub(super) not_expanded: u64,
}

/// One lifetime of the sender.
struct Run {
    instance: u64,
    /// Number of its first symbol, as in its greeting.
    first: Option<u32>,
    /// Its packets without ECN marks, and regardless of their windows.
    known: BTreeMap<Vec<u8>, usize>,
    accepted: u64,
    /// Packets that found the ingress queue full.
    refused: u64,
    placed: u64,
    /// By flow: the newest packet that is part of a symbol.
    newest: BTreeMap<Vec<u8>, usize>,
    symbols: Vec<Vec<usize>>,
    headers: HeaderTwin,
    /// Symbols that have left the sender.
    gone: usize,
    /// Symbols that left it although no receiver had passed them: the receiver must have them.
    claimed: BTreeSet<usize>,
    /// The furthest position of any receiver.
    reached: usize,
    /// Packets in the ingress queue, and symbols in the window.
    waiting: usize,
}

/// The receiver, since it or its peer started.
struct Reader {
    run: usize,
    at: usize,
    delivered: BTreeSet<usize>,
    /// The last packet delivered in order.
    last: Option<(usize, usize)>,
    /// The symbol from which on it has passed over none; several candidates where this cannot be
    /// told from outside yet.
    unbroken: BTreeSet<usize>,
    span: usize,
}

/// The ledger of a flow in window mode.
pub(super) struct WindowLedger {
    /// Delivery mode configured at the sender, and at the receiver.
    delivery: [Delivery; 2],
    packets: Vec<Packet>,
    runs: Vec<Run>,
    reader: Option<Reader>,
    /// Number of receivers so far.
    readers: u32,
    /// Packets the sender counted as given up.
    pub(super) given_up_by_sender: u64,
    /// Packets delivered again after the receiver restarted.
    pub(super) repeated: u64,
    /// Packets delivered with a shorter window.
    pub(super) clamped: u64,
    /// Whether the sender's numbers have wrapped at 2^32.
    pub(super) wrapped: bool,
}

impl WindowLedger {
    pub(super) fn new(sender: Delivery, receiver: Delivery) -> Self {
        WindowLedger {
            delivery: [sender, receiver],
            packets: Vec::new(),
            runs: Vec::new(),
            reader: None,
            readers: 0,
            given_up_by_sender: 0,
            repeated: 0,
            clamped: 0,
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
            headers: HeaderTwin::default(),
            gone: 0,
            claimed: BTreeSet::new(),
            reached: 0,
            waiting: 0,
        });
    }

    /// The sender has died, with all packets that it had accepted.
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
        run.known.insert(unwindowed(unmarked(&bytes)), number);
        let [in_order, waits] = self.delivery.map(|delivery| needs_order(&bytes, delivery));
        // Packets other than datagrams wait at any receiver if they were sent so.
        let waits = in_order == Some(true) && (waits == Some(true) || !is_datagram(&bytes));
        let (run, place, differs_from, fate) = (self.runs.len() - 1, None, None, Fate::Waits);
        self.packets.push(Packet { bytes, in_order, waits, run, place, differs_from, fate });
    }

    pub(super) fn refused(&mut self) {
        if let Some(run) = self.runs.last_mut() {
            run.refused += 1;
        }
    }

    /// Reads an unsealed frame of the sender, and the chunk that it last split into parts.
    pub(super) fn sent(&mut self, clear: &[u8], cut: &[u8]) -> Result<(), Broken> {
        let Some(header) = Header::parse(clear) else { return Ok(()) };
        for chunk in Chunks::new(&clear[header.clear_len()..clear.len() - TAG_LEN]) {
            let unreadable = || (Invariant::Delivery, "a sender's chunk cannot be read".to_owned());
            let Chunk { kind, body, .. } = chunk.ok_or_else(unreadable)?;
            match kind {
                Kind::Hello => self.greeted(Hello::parse(body)),
                Kind::Window => self.sent_symbol(body)?,
                Kind::Part => self.sent_part(body, cut)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A symbol counts as sent with its first part.
    fn sent_part(&mut self, body: &[u8], cut: &[u8]) -> Result<(), Broken> {
        let part = Part::parse(body).filter(|part| {
            let at = usize::from(part.at);
            usize::from(part.len.get()) == cut.len()
                && cut.get(at..at + part.bytes.len()) == Some(part.bytes)
        });
        let unknown = || (Invariant::Delivery, "a part is none of what was cut".to_owned());
        let part = part.ok_or_else(unknown)?;
        match Chunks::only(cut) {
            Some(Chunk { kind: Kind::Window, body, .. }) if part.at == 0 => self.sent_symbol(body),
            _ => Ok(()),
        }
    }

    fn greeted(&mut self, hello: Option<Hello>) {
        let Some(hello) = hello.filter(|hello| hello.mode == Mode::Window) else { return };
        let Some(run) = self.runs.last_mut() else { return };
        // The first greeting precedes the first symbol.
        if run.instance == hello.instance {
            run.first.get_or_insert(hello.base);
        }
    }

    fn sent_symbol(&mut self, body: &[u8]) -> Result<(), Broken> {
        let unreadable = || (Invariant::Delivery, "a sender's symbol cannot be read".to_owned());
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
            let len = usize::from(u16::from_be_bytes([*high & 0x3f, *low]));
            if len == 0 || len > behind.len() {
                break;
            }
            let (bytes, in_order) = (&behind[..len], high & 0x80 == 0);
            if high & 0x40 != 0 {
                self.place_difference(bytes, in_order, index)?;
            } else {
                let number = self.place(bytes, in_order, index)?;
                let run = self.runs.last_mut().filter(|_| in_order);
                run.into_iter().for_each(|run| run.headers.verbatim(bytes, number));
            }
            rest = &behind[len..];
        }
        Ok(())
    }

    /// A difference is part of a symbol.
    fn place_difference(
        &mut self,
        bytes: &[u8],
        in_order: bool,
        symbol: usize,
    ) -> Result<(), Broken> {
        let Some(run) = self.runs.last_mut() else { return Ok(()) };
        let broken = |what| (Invariant::Delivery, format!("in symbol {symbol}: {what}"));
        let (whole, before) = run.headers.expand(bytes).map_err(broken)?;
        let number = self.place(&whole, in_order, symbol)?;
        self.packets[number].differs_from = Some(before);
        let run = self.runs.last_mut().filter(|_| in_order);
        let run = run.ok_or_else(|| broken("a difference may overtake".to_owned()))?;
        run.headers.note(bytes, &whole, number);
        Ok(())
    }

    /// A packet is part of a symbol; returns its number.
    fn place(&mut self, bytes: &[u8], in_order: bool, symbol: usize) -> Result<usize, Broken> {
        let nobody = (Invariant::Delivery, "nobody has started".to_owned());
        let run = self.runs.last_mut().ok_or(nobody)?;
        let Some(&number) = run.known.get(&unwindowed(unmarked(bytes))) else {
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
        ensure(packet.in_order.is_none_or(|told| told == in_order), Invariant::Delivery, || {
            format!("packet {number} is sent with order {in_order}")
        })?;
        packet.bytes = bytes.to_vec();
        packet.place = Some((symbol, run.symbols[symbol].len()));
        run.symbols[symbol].push(number);
        run.placed += 1;
        let newest = run.newest.insert(flow_of(bytes), number);
        ensure(newest.is_none_or(|newest| newest < number), Invariant::Delivery, || {
            format!("packet {number} was sent behind {newest:?} of its flow")
        })?;
        Ok(number)
    }

    /// Inspects the sender after an event.
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

    /// Inspects the receiver after an event that delivered `delivered` to its host, and raised its
    /// counters by `lost`.
    pub(super) fn look_at_receiver(
        &mut self,
        view: &Inspection,
        sender: u16,
        delivered: &[Vec<u8>],
        lost: Lost,
    ) -> Result<(), Broken> {
        let peer = view.peers.iter().find(|peer| peer.id.0 == sender);
        let instance = peer.and_then(|peer| peer.instance);
        let window = view.window.and_then(|window| Some((window.next?, window.span)));
        let (Some(instance), Some((next, span))) = (instance, window) else {
            let nothing = lost == Lost { given_up: 0, not_expanded: 0 };
            return ensure(delivered.is_empty() && nothing, Invariant::Delivery, || {
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
        self.walk(to, lost)?;
        if let Some(reader) = &mut self.reader {
            reader.span = span;
        }
        Ok(())
    }

    /// The receiver is gone, and with it what it had not delivered.
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

    /// A receiver begins at what the sender held at its greeting.
    fn open_reader(&mut self, run: usize, to: usize) -> Result<(), Broken> {
        let books = &self.runs[run];
        ensure(to <= books.gone, Invariant::Delivery, || {
            format!(
                "the receiver begins at symbol {to}, the sender holds those from {}",
                books.gone
            )
        })?;
        self.readers += 1;
        let (delivered, unbroken) = (BTreeSet::new(), BTreeSet::from([to]));
        self.reader = Some(Reader { run, at: to, delivered, last: None, unbroken, span: 0 });
        Ok(())
    }

    /// A packet was delivered, in an event after which the receiver is at symbol `to`.
    fn take(&mut self, bytes: &[u8], to: usize) -> Result<(), Broken> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let known = &self.runs[reader.run].known;
        let number = known.get(&unwindowed(unmarked(bytes))).copied();
        let as_sent = |number: usize| self.packets[number].bytes == bytes;
        let clamped = |number: usize| is_clamped_copy(&self.packets[number].bytes, bytes);
        let sent = number.filter(|&number| as_sent(number) || clamped(number));
        self.clamped += sent.map_or(0, |number| u64::from(!as_sent(number)));
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
        if packet.waits {
            ensure(place.0 < to && reader.last < Some(place), Invariant::Delivery, || {
                format!("{place:?} came out behind {:?}, on the way to {to}", reader.last)
            })?;
            reader.last = Some(place);
        }
        self.repeated += u64::from(packet.fate == Fate::Delivered);
        packet.fate = Fate::Delivered;
        Ok(())
    }

    /// The receiver has moved on to a symbol: what it passed was delivered or given up.
    fn walk(&mut self, to: usize, lost: Lost) -> Result<(), Broken> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        ensure(reader.at <= to, Invariant::Delivery, || {
            format!("the receiver falls back from {} to {to}", reader.at)
        })?;
        let run = &mut self.runs[reader.run];
        let nothing = Lost { given_up: 0, not_expanded: 0 };
        let mut tales: BTreeSet<_> =
            reader.unbroken.iter().map(|&unbroken| Tale { unbroken, lost: nothing }).collect();
        for symbol in reader.at..to {
            let numbers = &run.symbols[symbol];
            let claimed = run.claimed.remove(&symbol);
            let packets = &self.packets;
            let delivered = &reader.delivered;
            let next = tales.iter().flat_map(|tale| {
                let whole = tale.delivered(numbers, packets, delivered);
                [whole, tale.passed_over(symbol, numbers, delivered).filter(|_| !claimed)]
            });
            tales = next.flatten().filter(|tale| tale.lost.is_within(lost)).collect();
            ensure(!tales.is_empty(), Invariant::Accounting, || {
                let out = numbers.iter().filter(|number| delivered.contains(number)).count();
                format!(
                    "{out} of {} packets of symbol {symbol} came out, with {lost:?} on the way to \
                     {to}; the sender took it for received: {claimed}",
                    numbers.len()
                )
            })?;
            for &number in numbers {
                let fate = &mut self.packets[number].fate;
                *fate = if *fate == Fate::Delivered { *fate } else { Fate::GivenUp };
            }
        }
        let told = tales.iter().map(|tale| tale.lost).next_back();
        tales.retain(|tale| tale.lost == lost);
        ensure(!tales.is_empty(), Invariant::Accounting, || {
            format!("{lost:?} is counted, where it may be {told:?}, at {to}")
        })?;
        reader.unbroken = tales.iter().map(|tale| tale.unbroken).collect();
        reader.at = to;
        run.reached = run.reached.max(to);
        Ok(())
    }

    // ---- the end ------------------------------------------------------------------------------

    /// Packets in the ingress queue, and symbols whose fate is open on either side.
    pub(super) fn waiting(&self) -> usize {
        let last = self.runs.len().wrapping_sub(1);
        let reader = self.reader.iter().filter(|reader| reader.run == last);
        let span: usize = reader.map(|reader| reader.span).sum();
        self.runs.last().map_or(0, |run| run.waiting) + span
    }

    /// The final checks of a flow at rest: one side must have counted what was not delivered.
    pub(super) fn close(&self) -> Result<(), Broken> {
        let (Some(reader), [run], 1) = (&self.reader, &self.runs[..], self.readers) else {
            return Ok(()); // Stations have died, and packets with them.
        };
        // Only the sender can know about symbols beyond the receiver's position.
        let beyond = run.symbols[reader.at..].iter().flatten();
        let lost = beyond.filter(|number| !reader.delivered.contains(number)).count() as u64;
        ensure(lost <= self.given_up_by_sender, Invariant::Accounting, || {
            format!("{lost} packets lost, {} counted by the sender", self.given_up_by_sender)
        })
    }
}

impl Lost {
    fn is_within(self, most: Lost) -> bool {
        self.given_up <= most.given_up && self.not_expanded <= most.not_expanded
    }
}

/// A possible history of a receiver. A symbol that only holds packets that could not be restored
/// looks from outside like one that was passed over; counters and later packets tell the
/// difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Tale {
    unbroken: usize,
    lost: Lost,
}

impl Tale {
    /// A symbol arrived: its packets were delivered, and only those may be missing that are
    /// differences from packets that the receiver did not have, or had to forget.
    fn delivered(
        self,
        numbers: &[usize],
        packets: &[Packet],
        delivered: &BTreeSet<usize>,
    ) -> Option<Self> {
        let mut lost = self.lost;
        for number in numbers {
            let is_known = |before: &usize| {
                let place = packets[*before].place;
                delivered.contains(before) && place.is_some_and(|(at, _)| at >= self.unbroken)
            };
            let expected = packets[*number].differs_from.as_ref().is_none_or(is_known);
            if delivered.contains(number) != expected {
                return None;
            }
            lost.not_expanded += u64::from(!expected);
        }
        Some(Tale { lost, ..self })
    }

    /// A symbol was given up: none of its packets was delivered.
    fn passed_over(
        self,
        symbol: usize,
        numbers: &[usize],
        delivered: &BTreeSet<usize>,
    ) -> Option<Self> {
        let given_up = self.lost.given_up + 1;
        let lost = Lost { given_up, ..self.lost };
        let silent = !numbers.iter().any(|number| delivered.contains(number));
        silent.then_some(Tale { unbroken: symbol + 1, lost })
    }
}

impl Run {
    /// Checks that the sender's counters add up.
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
        let dropped = stats.packets_dropped_codel + stats.packets_dropped_ingress - self.refused
            + stats.packets_stale;
        let known = self.placed + view.ingress_packets as u64 + dropped;
        ensure(self.accepted == known, Invariant::Accounting, || {
            format!(
                "{} packets accepted; {} in symbols, {} queued, {dropped} dropped",
                self.accepted, self.placed, view.ingress_packets
            )
        })
    }
}
