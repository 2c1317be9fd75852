//! What a frame shows before it is opened, or after it was rejected: its version, its form and the
//! tag of its session are in clear; HELLOs and key exchange messages also name their sender.

use super::*;
use crate::diagnosis::Unopened;
use crate::link::exchange::Sight;
use crate::wire::{KeyExchange, VERSION, hello_clear, version};

impl Group {
    /// Whether a peer has an accepted session with this tag.
    pub(crate) fn has_session_tag(&self, tag: u16) -> bool {
        let mut sessions = self.peers.iter().filter_map(|peer| peer.session.as_ref());
        sessions.any(|session| session_tag(&session.id) == tag)
    }

    /// The sender that a frame claims in clear, without authentication.
    pub(crate) fn claimed(&self, frame: &[u8]) -> Option<StationId> {
        let Some(header) = Header::parse(frame) else {
            return KeyExchange::parse(frame).map(|message| message.sender);
        };
        if header.is_hello {
            return hello_clear(frame).map(|(sender, _)| sender);
        }
        let has_tag = |peer: &&Peer| {
            let session = peer.session.as_ref();
            session.is_some_and(|session| session_tag(&session.id) == header.session_tag)
        };
        self.peers.iter().find(has_tag).map(|peer| peer.id)
    }

    /// Whether a frame belongs to an accepted session of a peer. Records nothing.
    pub(crate) fn is_authentic(&self, header: &Header, frame: &[u8]) -> bool {
        let mut body = Vec::new();
        let mut sessions = self.peers.iter().filter_map(|peer| peer.session.as_ref());
        sessions.any(|session| {
            session_tag(&session.id) == header.session_tag
                && session.keys.open(header.counter, frame, HEADER_LEN, &mut body).is_some()
        })
    }

    /// Examines a frame that [`Group::open`] has rejected. For a HELLO this derives a key.
    pub(crate) fn examine(&self, frame: &[u8]) -> Unopened {
        let Some(header) = Header::parse(frame) else {
            if let Some(message) = KeyExchange::parse(frame) {
                return self.examine_exchange(&message);
            }
            return match version(frame) {
                Some(version) if version != VERSION && version != 0 => Unopened::Version(version),
                _ => Unopened::Foreign,
            };
        };
        let mut body = Vec::new();
        if !header.is_hello {
            let opens = |key: &SessionKey| key.open(header.counter, frame, HEADER_LEN, &mut body);
            let is_own = header.session_tag == session_tag(&self.own.id)
                && self.own.key.as_ref().is_some_and(opens);
            return if is_own { Unopened::Own } else { Unopened::Sealed };
        }
        let Some((sender, id)) = hello_clear(frame) else { return Unopened::Foreign };
        let keys = self.keyring.session_keys(sender, &id);
        if keys.open(header.counter, frame, header.clear_len(), &mut body).is_none() {
            return match self.has_keys() {
                true => Unopened::OtherSecret { names: sender },
                false => Unopened::OtherKey { names: sender },
            };
        }
        if sender == self.me && id == self.own.id {
            Unopened::Own
        } else if self.peer(sender).is_some() {
            Unopened::Sealed
        } else {
            Unopened::Stranger { id: sender }
        }
    }

    fn examine_exchange(&self, message: &KeyExchange<'_>) -> Unopened {
        let names = message.sender;
        if !self.has_keys() {
            return Unopened::HasKeys { names };
        }
        let Some(exchange) = self.keyring.exchange(names) else { return Unopened::Sealed };
        match exchange.examine(message) {
            Sight::Own => Unopened::Own,
            Sight::NotForUs => Unopened::NotOurPublicKey { names },
            Sight::OtherPublicKey(public) => Unopened::OtherPublicKey { names, public },
            Sight::OtherPsk => Unopened::OtherPsk { names },
            Sight::OtherStep => Unopened::OtherStep { names },
            Sight::Nothing => Unopened::Sealed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_base::rand::SeedableRng;

    fn group(me: u8, peer: u8, psk: u8) -> Group {
        let setting = Setting {
            coding: CodingParams::default(),
            crossing: Crossing::Block,
            received_bytes: 0,
            feedback: CodingParams::default().ack_interval,
        };
        let rng = Stream::from_seed([me ^ psk; 32]);
        Group::new(
            StationId(u16::from(me)),
            &[psk; 32].into(),
            &[StationId(u16::from(peer))],
            setting,
            rng,
            Time::ZERO,
        )
    }

    fn hello(group: &mut Group) -> Vec<u8> {
        let mut frame = Vec::new();
        group.write_hello(Time::ZERO, 0, &mut frame, 0);
        frame
    }

    fn data(group: &mut Group) -> Vec<u8> {
        let mut frame = Vec::new();
        group.begin(&mut frame);
        frame.extend_from_slice(b"body");
        group.seal(&mut frame, 0);
        frame
    }

    #[test]
    fn a_rejected_frame_shows_who_it_names_and_whose_key_it_has() {
        let mut ours = group(1, 2, 7);
        let names = |id| Unopened::OtherKey { names: StationId(id) };
        assert_eq!(ours.examine(&hello(&mut group(2, 1, 8))), names(2));
        assert_eq!(ours.examine(&hello(&mut group(9, 1, 8))), names(9));
        let stranger = |id| Unopened::Stranger { id: StationId(id) };
        assert_eq!(ours.examine(&hello(&mut group(9, 1, 7))), stranger(9));
        let mut twin = group(1, 2, 7);
        twin.own.id = [3; 16];
        twin.own.key = Some(SessionKey::derive(&[7; 32].into(), StationId(1), &[3; 16]));
        assert_eq!(ours.examine(&hello(&mut twin)), stranger(1));
        assert_eq!(ours.examine(&data(&mut group(2, 1, 8))), Unopened::Sealed);
        for frame in [hello(&mut ours), data(&mut ours)] {
            assert_eq!(ours.examine(&frame), Unopened::Own);
        }
    }

    #[test]
    fn a_version_is_read_from_what_is_long_enough_and_nothing_panics() {
        let ours = group(1, 2, 7);
        let mut frame = hello(&mut group(2, 1, 7));
        frame[0] = 1 << 4 | frame[0] & 0xf;
        assert_eq!(ours.examine(&frame), Unopened::Version(1));
        for len in 0..frame.len() {
            let expected = len >= HEADER_LEN + TAG_LEN;
            let found = ours.examine(&frame[..len]);
            assert_eq!(found == Unopened::Version(1), expected, "{len}: {found:?}");
        }
        assert_eq!(ours.examine(&[0; 100]), Unopened::Foreign);
        for first in 0..=u8::MAX {
            for len in 0..60 {
                ours.examine(&vec![first; len]);
            }
        }
    }
}
