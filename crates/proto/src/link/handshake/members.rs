//! Where several stations open what one of them seals: what of their keys changes, and when they
//! are asked for more. What they say for that is in `link/member_keys.rs`.

use super::*;
use crate::bounds::{REKEY_SILENCE_HELLOS, REKEY_WAIT};
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
                // Or a peer whose clock went back: it is given what it asks for all the same, and
                // is asked itself, for it has perhaps started anew.
                let is_new = |at: Time| now - at < REKEY_WAIT;
                if !self.keyring.agreed_at(from).is_some_and(is_new) {
                    self.ask_for_secrets(now, from);
                }
                Opening::Replayed
            }
            Some(Taken::Offered(_) | Taken::Agreed(_) | Taken::Refused) => Opening::NotAuthentic,
        }
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

    /// When a member is to be asked for what it seals under, if it has not been.
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
