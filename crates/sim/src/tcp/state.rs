//! The states of loss recovery, and the events that change them.

/// A sender's state of loss recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// No loss is known; the window grows.
    #[default]
    Open,
    /// Duplicate acknowledgments indicated a loss; what was in flight at that time is being
    /// repaired.
    Recovery,
    /// Nothing is believed to be in flight: everything is sent again, from slow start.
    Loss,
}

/// What moves a sender between the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Duplicate acknowledgments indicate a loss; what is in flight still counts.
    FastRetransmit,
    /// Duplicate acknowledgments indicate a loss; Tahoe returns to slow start.
    Collapse,
    /// The retransmission timer has expired.
    Timeout,
    /// An acknowledgment ends the recovery, by the variant's rules.
    Repaired,
}

/// Every state, for tables.
pub const STATES: [State; 3] = [State::Open, State::Recovery, State::Loss];
/// Every event, for tables.
pub const EVENTS: [Event; 4] =
    [Event::FastRetransmit, Event::Collapse, Event::Timeout, Event::Repaired];

impl State {
    /// The state after `event`; `None` if the event cannot happen in this state.
    pub const fn after(self, event: Event) -> Option<State> {
        match (self, event) {
            (_, Event::Timeout) => Some(State::Loss),
            (State::Open | State::Loss, Event::FastRetransmit) => Some(State::Recovery),
            (State::Open | State::Loss, Event::Collapse) => Some(State::Loss),
            (State::Recovery | State::Loss, Event::Repaired) => Some(State::Open),
            (State::Recovery, Event::FastRetransmit | Event::Collapse)
            | (State::Open, Event::Repaired) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_matrix() {
        let table: Vec<String> = STATES
            .iter()
            .flat_map(|state| EVENTS.iter().map(move |event| (state, event)))
            .map(|(state, event)| match state.after(*event) {
                Some(next) => format!("{state:?} + {event:?} -> {next:?}"),
                None => format!("{state:?} + {event:?} never"),
            })
            .collect();
        assert_eq!(
            table,
            [
                "Open + FastRetransmit -> Recovery",
                "Open + Collapse -> Loss",
                "Open + Timeout -> Loss",
                "Open + Repaired never",
                "Recovery + FastRetransmit never",
                "Recovery + Collapse never",
                "Recovery + Timeout -> Loss",
                "Recovery + Repaired -> Open",
                "Loss + FastRetransmit -> Recovery",
                "Loss + Collapse -> Loss",
                "Loss + Timeout -> Loss",
                "Loss + Repaired -> Open",
            ]
        );
    }
}
