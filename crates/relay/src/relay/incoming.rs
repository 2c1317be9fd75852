//! What comes of neighbours' frames.

use std::sync::Arc;

use corridor_base::Time;

use super::{Received, Relay};
use crate::repair::{Outcome, Repaired};
use crate::wire::{self, Frame, NodeId, PacketId, Part, Symbol, xor};

/// What came of a frame of a neighbour's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was taken.
    Yes,
    /// It is none.
    Malformed,
    /// It came so late that what it brings is said or sent again, or was.
    HeldUp,
}

impl Taken {
    /// Whether it was taken.
    pub fn is_yes(self) -> bool {
        self == Taken::Yes
    }
}

/// How a frame came.
#[derive(Clone, Copy)]
struct How {
    addressed: bool,
    is_held_up: bool,
}

impl Relay {
    /// Takes a frame that `from` has sent; `addressed`: to this node on the link, or to all.
    pub fn handle_frame(
        &mut self,
        now: Time,
        from: NodeId,
        addressed: bool,
        frame: &[u8],
    ) -> Taken {
        self.take_frame(now, from, How { addressed, is_held_up: false }, frame)
    }

    /// The same of one that was held up on its way: another one that its sender has sent later came
    /// [`held_up_after`](crate::RelayConfig::held_up_after) before, or earlier. Only what is not
    /// sent again is taken, for of all else a copy may have come that is known no longer.
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
        // What it brings may have come for longer than what goes again.
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

    /// Takes a frame that was held up, if it is none that is said or sent again. Of reports it may
    /// not be known any more which frames they tell of, and of the neighbour nothing is learned.
    fn take_held_up(&mut self, from: NodeId, how: How, frame: Option<Frame<'_>>) -> Taken {
        let own = self.id;
        let goes_again = match &frame {
            None | Some(Frame::Announcement { .. } | Frame::Repair { .. }) => true,
            Some(Frame::Plain { asks, .. }) => how.addressed && *asks,
            Some(Frame::Coded { parts, asks, .. }) => {
                // Without reports nobody sends again what was only overheard.
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

    /// Takes what is in a frame.
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

    /// Takes a coded frame, by which repairs are solved too if it has a counter. Of one for
    /// this node, whether it could be decoded.
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
                // What is known of it gives the rest, which may be of use later.
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

    /// One packet of a coded frame by the other one.
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

    /// Packets that a neighbour's repair has brought: they are reported as if their own frames had
    /// come.
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

    /// A packet has come for this node, as a hop or its end.
    fn receive(
        &mut self,
        from: NodeId,
        ttl: u16,
        id: PacketId,
        packet: Arc<[u8]>,
        Source { was_coded, may_repeat }: Source,
    ) {
        // Packets of equal bytes are no copies of each other, unless a coded frame brought one, or
        // one that is sent until it has come.
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

/// What a packet came in.
#[derive(Clone, Copy)]
struct Source {
    was_coded: bool,
    /// It may come again, in the same way or another.
    may_repeat: bool,
}

/// Why a packet could not be had from a coded frame.
enum Undecoded {
    /// The other packet is not known.
    Unknown,
    /// It is known, and the frame does not fit it.
    Wrong,
}
