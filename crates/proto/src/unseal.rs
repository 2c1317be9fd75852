//! Opens recorded frames, for analysis: anyone with the group's secret can.

use std::collections::VecDeque;

use corridor_codec::Field;

use crate::bounds::UNSEALER_SESSIONS_MAX;
use crate::config::StationId;
use crate::link::seal::SessionKey;
use crate::psk::Psk;
use crate::wire::{HEADER_LEN, Header, Hello, Random128, TAG_LEN, cookie, hello_clear};

/// Opens a group's frames in the order in which they were sent.
///
/// Unlike a station it takes no part: it accepts every session whose HELLO it hears, has no replay
/// window, and changes nothing. Frames of a session whose HELLO it has not heard stay sealed.
pub struct Unsealer {
    psk: Psk,
    /// The most recently used first.
    sessions: VecDeque<Session>,
    body: Vec<u8>,
}

struct Session {
    sender: StationId,
    id: Random128,
    key: SessionKey,
    field: Field,
    block_size: u16,
}

impl Unsealer {
    /// For frames sealed under this group's secret.
    pub fn new(psk: impl Into<Psk>) -> Self {
        Unsealer { psk: psk.into(), sessions: VecDeque::new(), body: Vec::new() }
    }

    /// Switches to another secret, which a pair has agreed on.
    #[doc(hidden)]
    pub fn follow(&mut self, psk: &Psk) {
        if *psk == self.psk {
            return;
        }
        self.psk = psk.clone();
        for session in &mut self.sessions {
            session.key = SessionKey::derive(psk, session.sender, &session.id);
        }
    }

    /// Opens a frame into `out` (replaced): the same bytes at the same places, with the body in
    /// clear and the AEAD tag unchanged. Returns the sender; `None` if the frame does not open, and
    /// `out` then is the frame as it is.
    pub fn unseal(&mut self, frame: &[u8], out: &mut Vec<u8>) -> Option<StationId> {
        out.clear();
        out.extend_from_slice(frame);
        // Under load a HELLO is preceded by a MAC.
        let (_, message) = cookie::unwrap(frame);
        let header = Header::parse(message)?;
        let sender = if header.is_hello {
            self.open_hello(header, message)?
        } else {
            self.open(header, message)?
        };
        let body_at = frame.len() - message.len() + header.clear_len();
        out[body_at..frame.len() - TAG_LEN].copy_from_slice(&self.body);
        Some(sender)
    }

    /// Field and block size of a station's own flow, as in its last HELLO.
    pub fn coding(&self, flow: StationId) -> Option<(Field, u16)> {
        let session = self.sessions.iter().find(|session| session.sender == flow)?;
        Some((session.field, session.block_size))
    }

    /// A frame with another body, which nobody without the secret can make, from a station whose
    /// HELLO was heard. For tests of how stations react to lying neighbours.
    #[doc(hidden)]
    pub fn reseal(&mut self, frame: &[u8], body: &[u8]) -> Option<Vec<u8>> {
        let header = Header::parse(frame)?;
        let opened = &mut self.body;
        let opens =
            |session: &&Session| session.key.open(header.counter, frame, HEADER_LEN, opened);
        let session = self.sessions.iter().find(opens)?;
        let mut resealed = [&frame[..HEADER_LEN], body].concat();
        session.key.seal(header.counter, &mut resealed, HEADER_LEN);
        Some(resealed)
    }

    fn open(&mut self, header: Header, frame: &[u8]) -> Option<StationId> {
        let body = &mut self.body;
        let tag = header.session_tag.to_be_bytes();
        let mut hinted = self.sessions.iter().filter(|session| session.id[..2] == tag);
        let opens = |session: &&Session| session.key.open(header.counter, frame, HEADER_LEN, body);
        hinted.find(opens).map(|session| session.sender)
    }

    fn open_hello(&mut self, header: Header, frame: &[u8]) -> Option<StationId> {
        let (sender, id) = hello_clear(frame)?;
        let known = self.sessions.iter().position(|known| (known.sender, known.id) == (sender, id));
        let key = match known.and_then(|at| self.sessions.remove(at)) {
            Some(session) => {
                // Moved to the front: it is in use, whatever becomes of this frame.
                self.sessions.push_front(session);
                None
            }
            None => Some(SessionKey::derive(&self.psk, sender, &id)),
        };
        let at_hand = key.as_ref().or(self.sessions.front().map(|session| &session.key))?;
        if !at_hand.open(header.counter, frame, header.clear_len(), &mut self.body) {
            return None;
        }
        if let Some(key) = key {
            let Hello { field, block_size, .. } = Hello::find(&self.body)?;
            self.sessions.truncate(UNSEALER_SESSIONS_MAX - 1);
            self.sessions.push_front(Session { sender, id, key, field, block_size });
        }
        Some(sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CodingParams, LinkErrors, Role, StationConfig};
    use crate::station::Station;
    use corridor_base::Time;

    fn stations() -> [Station; 2] {
        [(1, 2), (2, 1)].map(|(id, peer)| {
            let config = StationConfig {
                id: StationId(id),
                role: Role::Endpoint { peer: StationId(peer), helper: None },
                security: [7; 32].into(),
                coding: CodingParams::default(),
                link_errors: LinkErrors::Measured,
                ingress_packets: 100,
                frame_len_max: 1500,
                frame_len_min: 46,
                memory_bytes: crate::bounds::MEMORY_DEFAULT,
                rate_bps: None,
            };
            Station::new(config, [id as u8; 32], Time::ZERO).unwrap()
        })
    }

    /// All frames of a short exchange, with the number of their sender.
    fn conversation() -> Vec<(u8, Vec<u8>)> {
        let [mut a, mut b] = stations();
        a.handle_packet(Time::ZERO, b"a packet to be found in the clear");
        let mut frames = Vec::new();
        for ms in 0..200 {
            let now = Time::from_millis(ms);
            for (number, from, to) in [(1, &mut a, &mut b)] {
                from.handle_timeout(now);
                to.handle_timeout(now);
                while let Some(transmit) = from.poll_transmit(now) {
                    frames.push((number, transmit.frame.to_vec()));
                    to.handle_frame(now, transmit.frame);
                }
                while let Some(transmit) = to.poll_transmit(now) {
                    frames.push((3 - number, transmit.frame.to_vec()));
                    from.handle_frame(now, transmit.frame);
                }
            }
        }
        frames
    }

    #[test]
    fn a_witness_reads_everything_and_bytes_keep_their_places() {
        let (mut witness, mut out) = (Unsealer::new([7; 32]), Vec::new());
        let mut packet_seen = false;
        for (sender, frame) in conversation() {
            assert_eq!(witness.unseal(&frame, &mut out), Some(StationId(u16::from(sender))));
            assert_eq!(out.len(), frame.len());
            assert_eq!(out[..HEADER_LEN], frame[..HEADER_LEN]);
            assert_eq!(out[out.len() - TAG_LEN..], frame[frame.len() - TAG_LEN..]);
            packet_seen |= out.windows(18).any(|bytes| bytes == b"found in the clear");
        }
        assert!(packet_seen);
        let coding = CodingParams::default();
        assert_eq!(witness.coding(StationId(1)), Some((coding.field, coding.block_size)));
    }

    #[test]
    fn without_the_secret_or_the_greeting_frames_stay_as_they_are() {
        let (mut stranger, mut out) = (Unsealer::new([8; 32]), Vec::new());
        let mut latecomer = Unsealer::new([7; 32]);
        let frames = conversation();
        assert!(frames.iter().any(|(_, frame)| !is_hello(frame)));
        for (_, frame) in &frames {
            assert_eq!(stranger.unseal(frame, &mut out), None);
            assert_eq!(&out, frame);
            if !is_hello(frame) {
                assert_eq!(latecomer.unseal(frame, &mut out), None);
            }
        }
        for len in 0..40 {
            assert_eq!(latecomer.unseal(&frames[0].1[..len], &mut out), None);
        }
    }

    /// Captures of a flood stayed sealed, data included: no HELLO opened.
    #[test]
    fn greetings_behind_the_mac_of_a_cookie_open_as_well() {
        let (mut witness, mut out) = (Unsealer::new([7; 32]), Vec::new());
        for (sender, mut frame) in conversation() {
            if is_hello(&frame) {
                cookie::wrap(StationId(u16::from(sender)), &[5; 16], &mut frame);
            }
            assert_eq!(witness.unseal(&frame, &mut out), Some(StationId(u16::from(sender))));
            assert_eq!((out.len(), &out[..HEADER_LEN]), (frame.len(), &frame[..HEADER_LEN]));
        }
    }

    fn is_hello(frame: &[u8]) -> bool {
        Header::parse(frame).is_some_and(|header| header.is_hello)
    }

    #[test]
    fn sessions_are_bounded() {
        let mut witness = Unsealer::new([7; 32]);
        for seed in 0..=u8::MAX {
            let mut config = stations()[0].config().clone();
            config.id = StationId(1);
            let mut station = Station::new(config, [seed; 32], Time::ZERO).unwrap();
            let hello = station.poll_transmit(Time::ZERO).unwrap().frame.to_vec();
            assert_eq!(witness.unseal(&hello, &mut Vec::new()), Some(StationId(1)));
            assert!(witness.sessions.len() <= UNSEALER_SESSIONS_MAX);
        }
    }
}
