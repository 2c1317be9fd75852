//! Processing of neighbours' frames.

use std::sync::Arc;

use corridor_base::Time;

use super::{Received, Relay};
use crate::repair::{Outcome, Repaired};
use crate::wire::{self, Frame, NodeId, PacketId, Part, Symbol, xor};

/// Result of a neighbour's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was accepted.
    Yes,
    /// It is not a valid frame.
    Malformed,
    /// It arrived so late that its contents are or were sent again.
    HeldUp,
}

impl Taken {
    /// Whether it was accepted.
    pub fn is_yes(self) -> bool {
        self == Taken::Yes
    }
}

/// How a frame arrived.
#[derive(Clone, Copy)]
struct How {
    addressed: bool,
    is_held_up: bool,
}

impl Relay {
    /// Processes a frame sent by `from`; `addressed`: to this node on the link, rather than to all.
    pub fn handle_frame(
        &mut self,
        now: Time,
        from: NodeId,
        addressed: bool,
        frame: &[u8],
    ) -> Taken {
        self.take_frame(now, from, How { addressed, is_held_up: false }, frame)
    }

    /// The same for a frame that was held up on its way: a later one of its sender arrived at least
    /// [`held_up_after`](crate::RelayConfig::held_up_after) before it. Only contents that are not
    /// retransmitted are accepted, since a copy of anything else may have arrived and been
    /// forgotten.
    pub fn handle_held_up(
        &mut self,
        now: Time,
        from: NodeId,
        addressed: bool,
        frame: &[u8],
    ) -> Taken {
        self.take_frame(now, from, How { addressed, is_held_up: true }, frame)
    }

    fn take_frame(&mut self, now: Time, from: NodeId, how: How, frame: &[u8]) -> Taken {
        self.advance(now);
        let own = self.id;
        let Some((reports, bytes)) = wire::split(frame) else {
            self.stats.malformed += 1;
            return Taken::Malformed;
        };
        let is_alone = bytes.is_empty() && !reports.is_empty();
        let frame = Frame::parse(bytes);
        if frame.is_none() && !is_alone {
            self.stats.malformed += 1;
            return Taken::Malformed;
        }
        if how.is_held_up {
            return self.take_held_up(from, how, frame);
        }
        for report in reports.iter().filter(|report| report.node == own) {
            for waiting in self.owed.heed(self.now, from, report) {
                self.resend(waiting);
            }
        }
        self.resend_overdue();
        let Some(frame) = frame else { return Taken::Yes };
        // The packets in it may have arrived longer ago than retransmissions can.
        if matches!(frame, Frame::Repair { .. })
            && self.neighbours.is_overtaken(from, frame.counter())
        {
            self.stats.held_up += 1;
            return Taken::HeldUp;
        }
        let for_all = matches!(frame, Frame::Announcement { .. });
        let repeated = how.addressed && !for_all;
        if !self.neighbours.hear(now, from, frame.counter(), repeated) {
            self.stats.neighbour_table_full += 1;
        }
        self.take(from, how, frame);
        Taken::Yes
    }

    /// Accepts a held-up frame, unless its contents are repeated anyway. Its reports may refer to
    /// frames no longer known, and nothing is learned about the neighbour.
    fn take_held_up(&mut self, from: NodeId, how: How, frame: Option<Frame<'_>>) -> Taken {
        let own = self.id;
        let goes_again = match &frame {
            None | Some(Frame::Announcement { .. } | Frame::Repair { .. }) => true,
            Some(Frame::Plain { asks, .. }) => how.addressed && *asks,
            Some(Frame::Coded { parts, asks, .. }) => {
                // Without reports, nobody retransmits what was only overheard.
                let is_owed = *asks || !how.addressed && self.config.resend;
                is_owed && parts.iter().any(|part| part.to == own)
            }
        };
        match frame.filter(|_| !goes_again) {
            Some(frame) => {
                self.take(from, how, frame);
                Taken::Yes
            }
            None => {
                self.stats.held_up += 1;
                Taken::HeldUp
            }
        }
    }

    /// Processes the contents of a frame.
    fn take(&mut self, from: NodeId, how: How, frame: Frame<'_>) {
        let How { addressed, is_held_up } = how;
        let counter = frame.counter();
        let mut reported = None;
        match frame {
            Frame::Plain { ttl, asks, packet, .. } => {
                if addressed {
                    let source = Source { was_coded: false, may_repeat: asks };
                    let id = PacketId::of(packet);
                    self.receive(from, ttl, id, packet.into(), source);
                    if asks {
                        let outcome =
                            self.repairs.note(self.now, from, counter, &Symbol { ttl, id, packet });
                        self.take_repaired(from, outcome);
                        reported = Some(true);
                    }
                } else {
                    self.stats.overheard += 1;
                    if self.config.coding || self.queue.under_way.is_bounded() {
                        let id = PacketId::of(packet);
                        if self.config.coding {
                            self.kept.keep(self.now, id, packet.into());
                        }
                        self.queue.under_way.hear(self.now, from, id);
                    }
                }
            }
            Frame::Coded { parts, xored, .. } => {
                for part in &parts {
                    self.queue.under_way.hear(self.now, from, part.id);
                }
                let note = (!is_held_up).then_some(counter);
                reported = self.take_coded(from, note, &parts, xored);
            }
            Frame::Announcement { entries, .. } => {
                let switch_off = self.config.switch_off;
                let off = self.neighbours.take(self.now, self.id, from, &entries, switch_off);
                self.stats.switched_off += u64::from(off);
            }
            Frame::Repair { covered, combined, .. } => {
                if addressed {
                    let outcome = self.repairs.take(self.now, from, counter, covered, combined);
                    self.take_repaired(from, outcome);
                    reported = Some(true);
                } else {
                    self.stats.overheard += 1;
                }
            }
        }
        if self.config.resend && !is_held_up {
            self.receptions.note(self.now, from, counter, reported);
        }
    }

    /// Processes a coded frame, which also helps to solve repairs if it has a counter. Returns, for
    /// one for this node, whether it could be decoded.
    fn take_coded(
        &mut self,
        from: NodeId,
        counter: Option<u32>,
        parts: &[Part; 2],
        xored: &[u8],
    ) -> Option<bool> {
        let [first, second] = parts;
        let (own, other) = match self.id {
            id if id == first.to => (first, second),
            id if id == second.to => (second, first),
            _ => {
                self.stats.overheard += 1;
                // The known packet gives the other one, which may be useful later.
                for (wanted, other) in [(first, second), (second, first)] {
                    if let Ok(packet) = self.decode(wanted, other, xored) {
                        self.kept.keep(self.now, wanted.id, packet);
                        break;
                    }
                }
                return None;
            }
        };
        let decoded = self.decode(own, other, xored);
        let is_decoded = decoded.is_ok();
        self.neighbours.count_coded(from, is_decoded);
        match decoded {
            Ok(packet) => {
                self.stats.decoded += 1;
                let source = Source { was_coded: true, may_repeat: true };
                self.receive(from, own.ttl, own.id, Arc::clone(&packet), source);
                let symbol = Symbol { ttl: own.ttl, id: own.id, packet: &packet };
                if let Some(counter) = counter {
                    let outcome = self.repairs.note(self.now, from, counter, &symbol);
                    self.take_repaired(from, outcome);
                }
            }
            Err(Undecoded::Unknown) => self.stats.undecodable += 1,
            Err(Undecoded::Wrong) => self.stats.decode_mismatches += 1,
        }
        Some(is_decoded)
    }

    /// Decodes one packet of a coded frame from the other.
    fn decode(
        &mut self,
        wanted: &Part,
        other: &Part,
        xored: &[u8],
    ) -> Result<Arc<[u8]>, Undecoded> {
        let Some(known) = self.kept.find(self.now, other.id) else {
            return Err(Undecoded::Unknown);
        };
        if known.len() != usize::from(other.len_bytes) {
            return Err(Undecoded::Wrong);
        }
        let decoded = xor(xored, known);
        let Some((packet, padding)) = decoded.split_at_checked(wanted.len_bytes.into()) else {
            return Err(Undecoded::Wrong);
        };
        if padding.iter().any(|&byte| byte != 0) || PacketId::of(packet) != wanted.id {
            return Err(Undecoded::Wrong);
        }
        Ok(packet.into())
    }

    /// Accepts packets from a neighbour's repair: they are reported as if their own frames had
    /// arrived.
    fn take_repaired(&mut self, from: NodeId, outcome: Outcome) {
        self.stats.repair_mismatches += u64::from(outcome.is_wrong);
        for Repaired { counter, ttl, id, packet } in outcome.repaired {
            self.stats.repaired += 1;
            self.receive(from, ttl, id, packet, Source { was_coded: false, may_repeat: true });
            if self.config.resend {
                self.receptions.note(self.now, from, counter, Some(true));
            }
        }
    }

    /// Accepts a packet for this node, as a hop or the destination.
    fn receive(
        &mut self,
        from: NodeId,
        ttl: u16,
        id: PacketId,
        packet: Arc<[u8]>,
        Source { was_coded, may_repeat }: Source,
    ) {
        // Packets with equal bytes are not duplicates, unless one came in a coded frame, or may be
        // retransmitted.
        let before = self.seen.find(self.now, id).copied();
        if before.is_some_and(|before| before || may_repeat) {
            self.stats.duplicates += 1;
            return;
        }
        if self.config.coding || may_repeat {
            self.seen.keep(self.now, id, may_repeat);
        }
        let ttl = ttl.saturating_sub(1);
        self.received.push_back(Received { from, ttl, packet, was_coded });
    }
}

/// The kind of frame a packet arrived in.
#[derive(Clone, Copy)]
struct Source {
    was_coded: bool,
    /// Whether it may arrive again, in the same way or another.
    may_repeat: bool,
}

/// Why a packet could not be decoded from a coded frame.
enum Undecoded {
    /// The other packet is unknown.
    Unknown,
    /// It is known, but the frame does not match it.
    Wrong,
}
