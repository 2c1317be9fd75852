//! Where several stations open what one of them seals: when keys change, and when to ask for new
//! secrets. The messages for that are in `link/member_keys.rs`.

use super::*;
use crate::bounds::{REKEY_SILENCE_HELLOS, REKEY_WAIT};
use crate::end_keys::EndKeys;
use crate::link::exchange::Taken;
use crate::link::member_keys::{Member, MemberKeys};
use crate::wire::KeyExchange;

impl Group {
    pub(super) fn open_member_exchange(&mut self, now: Time, message: &KeyExchange<'_>) -> Opening {
        let Keyring::Members(keys) = &mut self.keyring else { return Opening::Malformed };
        let from = message.sender;
        match keys.take(now, message) {
            None => Opening::Overheard,
            Some(Taken::Asked | Taken::Repeated) => Opening::Initiation { from },
            Some(Taken::Given(_)) => {
                self.follow_secrets(now);
                self.hurry_hello(now);
                self.drop_cookie_if_known();
                Opening::Response { from }
            }
            Some(Taken::Unheard) => Opening::Replayed,
            Some(Taken::Replayed) => {
                // Or it is a peer whose clock went back: it is given what it asks for nevertheless,
                // and is asked in turn, since it may have restarted.
                let is_new = |at: Time| now - at < REKEY_WAIT;
                if !self.keyring.agreed_at(from).is_some_and(is_new) {
                    self.ask_for_secrets(now, from);
                }
                Opening::Replayed
            }
            Some(Taken::Offered(_) | Taken::Agreed(_) | Taken::Refused) => Opening::NotAuthentic,
        }
    }

    /// Keys that this station shares with one peer alone, where others open what the two send.
    pub(crate) fn end_keys(&self, station: StationId) -> Option<&EndKeys> {
        self.keyring.end_keys(station)
    }

    /// Answers challenges in a way that only this station can. Every station that opens its frames
    /// could otherwise seal the same answer in its name, and feign that it has restarted.
    pub(super) fn vouch(&self, hello: &mut Hello) {
        if hello.to.iter().all(|to| self.end_keys(to.station).is_none()) {
            return;
        }
        let mut said = Vec::new();
        hello.write_own(&mut said);
        for to in hello.to.iter_mut().filter(|to| to.answer != [0; 16]) {
            let Some(keys) = self.end_keys(to.station) else { continue };
            to.answer = keys.answer(&to.answer, &self.own.id, &said);
        }
    }

    /// The answer that the peer at index `at` owes to a challenge to its `session`, given what this
    /// HELLO says about it.
    pub(super) fn expected_answer(
        &self,
        at: usize,
        challenge: &Random128,
        session: &Random128,
        hello: &Hello,
    ) -> Random128 {
        let Some(keys) = self.end_keys(self.peers[at].id) else { return *challenge };
        let mut said = Vec::new();
        hello.write_own(&mut said);
        keys.expected(challenge, session, &said)
    }

    /// A frame in this peer's name did not open.
    pub(super) fn note_unopened(&mut self, now: Time, claimed: StationId) {
        if let Keyring::Members(keys) = &mut self.keyring {
            keys.note_unopened(now, claimed);
        }
    }

    fn ask_for_secrets(&mut self, now: Time, station: StationId) {
        if let Keyring::Members(keys) = &mut self.keyring {
            let member = keys.members_mut().iter_mut().find(|member| member.station == station);
            member.into_iter().for_each(|member| member.exchange.begin(now));
        }
    }

    pub(super) fn handle_members_timeout(&mut self, now: Time) {
        let Keyring::Members(keys) = &mut self.keyring else { return };
        let peers = &self.peers;
        let is_there = |station: StationId| {
            peers.iter().any(|peer| peer.id == station && peer.is_joined() && !peer.silent)
        };
        if keys.handle_timeout(now, self.own.sealed, is_there) {
            self.follow_secrets(now);
        }
        let Keyring::Members(keys) = &self.keyring else { return };
        let is_due = |member: &&Member| self.ask_at(member).is_some_and(|at| at <= now);
        let due: Vec<StationId> =
            keys.members().iter().filter(is_due).map(|it| it.station).collect();
        due.into_iter().for_each(|station| self.ask_for_secrets(now, station));
    }

    /// When to ask a member for its secrets, if this has not been done.
    fn ask_at(&self, member: &Member) -> Option<Time> {
        if member.exchange.has_begun() {
            return None;
        }
        let Some(given_at) = member.given.since() else { return Some(Time::ZERO) };
        let peer = self.peer(member.station);
        let heard_at = peer.and_then(Peer::heard_at).unwrap_or(given_at);
        let hello = peer.map_or(HELLO_INTERVAL_SLOW, Peer::hello_interval);
        Some(heard_at.max(given_at) + REKEY_SILENCE_HELLOS * hello)
    }

    pub(super) fn members_due(&self, keys: &MemberKeys) -> Option<Time> {
        let members = keys.members().iter();
        let asks = members.flat_map(|member| [member.exchange.due(), self.ask_at(member)]);
        asks.flatten().chain([keys.due(self.own.sealed)]).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Keys, PeerKey, PrivateKey};
    use corridor_base::rand::SeedableRng;

    const IDS: [StationId; 3] = [StationId(1), StationId(2), StationId(3)];

    /// Two ends and their helper.
    fn group(me: StationId) -> Group {
        let private = |id: StationId| PrivateKey::from_random([id.0 as u8; 32]);
        let others: Vec<StationId> = IDS.into_iter().filter(|&id| id != me).collect();
        let key = |&station: &StationId| PeerKey {
            station,
            public: private(station).public(),
            psk: None,
        };
        let peers = others.iter().map(key).collect();
        let keys = Keys { private: private(me), peers };
        let coding = CodingParams { symbol_size: 1_400, ..CodingParams::default() };
        let feedback = coding.ack_interval;
        let setting = Setting { coding, crossing: Crossing::Block, received_bytes: 0, feedback };
        let rng = Stream::from_seed([me.0 as u8; 32]);
        Group::new(me, &Security::Keys(Box::new(keys)), &others, setting, rng, Time::ZERO)
    }

    /// A HELLO of a session in a station's name, with the answer to whatever challenge was set.
    fn hello(challenge: Random128, to: &Group) -> Hello {
        let to = HelloTo {
            station: to.me,
            session: to.own.id,
            challenge: [0; 16],
            answer: challenge,
            accepted: true,
            asks: true,
            instead: None,
            lanes: crate::wire::Lanes::ONE,
            lane_size: 1,
        };
        let CodingParams { field, block_size, .. } = CodingParams::default();
        let (instance, mode, base) = (77, Mode::Block, 70_000);
        let intervals = Intervals::default();
        let to = vec![to];
        Hello { instance, field, block_size, symbol_size: 1_400, mode, base, to, intervals }
    }

    /// The helper has all secrets that an end seals under: what it seals in the end's name opens,
    /// but it does not know what the end would answer.
    #[test]
    fn who_seals_under_a_neighbours_secret_cannot_answer_for_it() {
        let [mut encoder, mut decoder, helper] = IDS.map(group);
        let (now, session) = (Time::ZERO, [9; 16]);
        let joins = |decoder: &mut Group, counter, hello: &Hello| {
            let at = decoder.peers.iter().position(|peer| peer.id == IDS[0]).unwrap();
            let opening = decoder.take_hello(now, at, session, counter, hello, hello.to.first());
            matches!(opening, Opening::Hello { joined: Some(_), .. })
        };
        let at = decoder.peers.iter().position(|peer| peer.id == IDS[0]).unwrap();
        let challenge = decoder.pending_session(now, at, session).our_challenge;
        let plain = hello(challenge, &decoder);
        assert!(!joins(&mut decoder, 1, &plain), "the challenge itself is no answer");
        let mut of_helper = hello(challenge, &decoder);
        helper.vouch(&mut of_helper);
        assert!(!joins(&mut decoder, 2, &of_helper));
        let mut own = hello(challenge, &decoder);
        encoder.vouch(&mut own);
        assert!(!joins(&mut decoder, 3, &own), "an answer for its own session");

        encoder.own.id = session;
        let mut own = hello(challenge, &decoder);
        encoder.vouch(&mut own);
        for (counter, change) in [(4, 0), (5, 1), (6, 2)] {
            let mut changed = own.clone();
            match change {
                0 => changed.base -= 65_536,
                1 => changed.instance += 1,
                _ => changed.block_size += 1,
            }
            assert!(!joins(&mut decoder, counter, &changed), "{change}");
        }
        assert!(joins(&mut decoder, 7, &own));
    }
}
