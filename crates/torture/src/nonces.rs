//! Checks that no nonce is used twice: each frame of a session has the counter after the previous
//! one, and no session returns once another has replaced it.

use std::collections::{BTreeMap, BTreeSet};

use corridor_proto::wire::{HEADER_LEN, HELLO_CLEAR_LEN, Header, Random128};

use super::invariants::{Broken, Invariant, ensure};

/// A session of a station: its place, and the peer, if it has one session for each.
pub(super) type SessionOf = (usize, u16);

#[derive(Default)]
struct Session {
    next_counter: u32,
    id: Option<Random128>,
    newest: Vec<u8>,
}

/// What all stations have sealed.
#[derive(Default)]
pub(super) struct Nonces {
    sessions: BTreeMap<SessionOf, Session>,
    ended: BTreeSet<Random128>,
}

impl Nonces {
    /// A station starts: none of its sessions continues.
    pub(super) fn started(&mut self, station: usize) {
        let of_station = |&(&(of, _), _): &(&SessionOf, &Session)| of == station;
        let ended = self.sessions.iter().filter(of_station);
        self.ended.extend(ended.filter_map(|(_, session)| session.id));
        self.sessions.retain(|&(of, _), _| of != station);
    }

    /// A frame was sent. Returns whether it begins a new session after an earlier one.
    pub(super) fn sent(&mut self, of: SessionOf, frame: &[u8]) -> Result<bool, Broken> {
        let Some(Header { is_hello, counter, .. }) = Header::parse(frame) else { return Ok(false) };
        let session = self.sessions.entry(of).or_default();
        if session.newest == frame {
            return Ok(false); // That tells nobody anything new.
        }
        session.newest = frame.to_vec();
        let is_next = counter == session.next_counter;
        ensure(is_next || counter == 0, Invariant::Nonces, || {
            format!("{of:?} seals with counter {counter}, not {}", session.next_counter)
        })?;
        if !is_next {
            self.ended.extend(session.id.take());
        }
        session.next_counter = counter + 1;
        // After the station number.
        let id = frame.get(HEADER_LEN + 2..HEADER_LEN + HELLO_CLEAR_LEN);
        if let Some(id) = id.filter(|_| is_hello).and_then(|id| id.try_into().ok()) {
            let is_same = session.id.is_none_or(|known| known == id);
            ensure(is_same && !self.ended.contains(&id), Invariant::Nonces, || {
                format!("{of:?} says HELLO of another session than it seals under")
            })?;
            session.id = Some(id);
        }
        Ok(!is_next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(counter: u32, id: u8) -> Vec<u8> {
        let mut frame = Vec::new();
        Header { is_hello: true, session_tag: 7, counter }.write(&mut frame);
        frame.extend([0, 1]);
        frame.extend([id; 16]);
        frame.extend([counter as u8; 40]);
        frame
    }

    fn data(counter: u32, body: u8) -> Vec<u8> {
        let mut frame = Vec::new();
        Header { is_hello: false, session_tag: 7, counter }.write(&mut frame);
        frame.extend([body; 40]);
        frame
    }

    #[test]
    fn a_counter_that_comes_again_is_caught_and_so_is_a_session() {
        let mut nonces = Nonces::default();
        let mut sent = |frame: Vec<u8>| nonces.sent((0, 0), &frame);
        assert_eq!(sent(hello(0, 1)), Ok(false));
        assert_eq!(sent(data(1, 1)), Ok(false));
        assert_eq!(sent(data(1, 1)), Ok(false), "the same frame");
        assert!(sent(data(1, 2)).is_err(), "another with its counter");
        assert_eq!(sent(data(2, 1)), Ok(false));
        assert_eq!(sent(hello(0, 2)), Ok(true), "another session");
        assert!(sent(hello(0, 1)).is_err(), "that has ended");
    }
}
