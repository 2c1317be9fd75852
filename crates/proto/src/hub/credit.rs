//! How much credit neighbours get for the queues to those whom they send to.
//!
//! A neighbour's packets should wait in its own queue, where flows notice it, rather than in the
//! hub's, which would have to drop them. But a slow receiver must not hold back traffic to another:
//! a neighbour that sends to several gets unlimited credit, unless all share the channel that is
//! full. Receivers that are cut off hold nobody back.

use corridor_base::Time;

use crate::bounds::{CREDIT_MEMORY, CREDIT_STUCK};

/// Where packets of a neighbour go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Onward {
    /// To the hub's own host, which takes everything.
    Host,
    /// To another neighbour.
    Neighbour(usize),
}

/// Who sends to whom, by index of the neighbours.
#[derive(Debug)]
pub(super) struct Credits {
    /// For each neighbour, where its packets went recently, and when.
    onward: Vec<Vec<(Onward, Time)>>,
    /// For each neighbour, who has sent to it, and when.
    feeders: Vec<Vec<(usize, Time)>>,
    /// For each neighbour, when a packet last left its queue, or came to an empty one.
    moved_at: Vec<Time>,
    one_channel: bool,
}

impl Credits {
    pub(super) fn new(neighbours: usize, one_channel: bool, now: Time) -> Self {
        Credits {
            onward: vec![Vec::new(); neighbours],
            feeders: vec![Vec::new(); neighbours],
            moved_at: vec![now; neighbours],
            one_channel,
        }
    }

    /// See [`HubConfig::one_channel`](super::HubConfig::one_channel).
    pub(super) fn one_channel(&self) -> bool {
        self.one_channel
    }

    /// A packet of a neighbour is forwarded.
    pub(super) fn note(&mut self, now: Time, from: usize, onward: Onward) {
        note(&mut self.onward[from], now, onward);
        if let Onward::Neighbour(to) = onward {
            note(&mut self.feeders[to], now, from);
        }
    }

    /// The queue to a neighbour has become shorter, or was empty.
    pub(super) fn note_moved(&mut self, now: Time, to: usize) {
        self.moved_at[to] = now;
    }

    /// Whether the queue to `to` holds back `from` by credit, and so drops none of its packets.
    pub(super) fn holds_back(&self, now: Time, from: usize, to: usize) -> bool {
        let is_stuck = now - self.moved_at[to] > CREDIT_STUCK;
        !is_stuck && (self.one_channel || self.onward(now, from).count() == 1)
    }

    /// Where packets of a neighbour go at present.
    fn onward(&self, now: Time, from: usize) -> impl Iterator<Item = Onward> + '_ {
        let of_late = move |&(_, at): &(Onward, Time)| now - at < CREDIT_MEMORY;
        self.onward[from].iter().copied().filter(of_late).map(|(onward, _)| onward)
    }

    /// The queues that hold a neighbour back.
    pub(super) fn queues_before(&self, now: Time, from: usize) -> impl Iterator<Item = usize> + '_ {
        let place = |onward| match onward {
            Onward::Host => None,
            Onward::Neighbour(to) => Some(to),
        };
        let places = self.onward(now, from).filter_map(place);
        places.filter(move |&to| self.holds_back(now, from, to))
    }

    /// Who sends to a neighbour at present.
    pub(super) fn feeders(&self, now: Time, to: usize) -> impl Iterator<Item = usize> + '_ {
        let of_late = move |&&(_, at): &&(usize, Time)| now - at < CREDIT_MEMORY;
        self.feeders[to].iter().filter(of_late).map(|&(from, _)| from)
    }
}

/// Records when an item was last seen, and forgets those not seen for long.
fn note<T: PartialEq>(list: &mut Vec<(T, Time)>, now: Time, what: T) {
    match list.iter_mut().find(|(listed, _)| *listed == what) {
        Some((_, at)) => *at = now,
        None => {
            list.retain(|&(_, at)| now - at < CREDIT_MEMORY);
            list.push((what, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_holds_back_who_sends_to_nobody_else() {
        let (ms, onward) = (Time::from_millis, Onward::Neighbour(1));
        let mut credits = Credits::new(3, false, ms(0));
        credits.note(ms(100), 0, onward);
        credits.note_moved(ms(100), 1);
        assert_eq!(credits.queues_before(ms(100), 0).collect::<Vec<_>>(), [1]);
        credits.note(ms(200), 0, Onward::Host);
        assert_eq!(credits.queues_before(ms(200), 0).count(), 0, "it sends to two");
        credits.note(ms(1_250), 0, onward);
        credits.note_moved(ms(1_250), 1);
        assert_eq!(credits.queues_before(ms(1_250), 0).count(), 1, "not to the host any more");
        assert_eq!(credits.queues_before(ms(1_501), 0).count(), 0, "the queue does not move");
    }

    #[test]
    fn on_one_channel_every_queue_holds_back() {
        let ms = Time::from_millis;
        let mut credits = Credits::new(3, true, ms(0));
        for onward in [Onward::Neighbour(1), Onward::Host, Onward::Neighbour(2)] {
            credits.note(ms(10), 0, onward);
        }
        assert_eq!(credits.queues_before(ms(20), 0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(credits.feeders(ms(20), 2).collect::<Vec<_>>(), [0]);
        assert_eq!(credits.feeders(ms(2_000), 2).count(), 0);
    }

    #[test]
    fn who_was_not_heard_of_late_is_forgotten() {
        let mut credits = Credits::new(2, false, Time::ZERO);
        for number in 0..1_000 {
            let onward = Onward::Neighbour(number);
            note(&mut credits.onward[0], Time::from_millis(2_000 * number as u64), onward);
        }
        assert_eq!(credits.onward[0].len(), 1);
    }
}
