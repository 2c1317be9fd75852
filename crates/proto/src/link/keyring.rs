//! The source of session keys: one secret of all stations, one of the two ends, or one of each
//! sender.

use corridor_base::rand::SeedableRng;
use corridor_base::{Stream, Time};

use crate::clocks::Clocks;
use crate::config::StationId;
use crate::end_keys::EndKeys;
use crate::keys::Security;
use crate::link::exchange::Exchange;
use crate::link::member_keys::MemberKeys;
use crate::link::seal::SessionKey;
use crate::link::secrets::{Generation, Secrets, SessionKeys};
use crate::psk::Psk;
use crate::wire::Random128;

pub(crate) enum Keyring {
    /// All stations have one secret.
    Shared(Secrets),
    /// Two stations with key pairs agree on shared secrets.
    Pair(Secrets, Box<Exchange>),
    /// Several stations with key pairs: each seals under a secret of its own, which it gives to the
    /// others.
    Members(Box<MemberKeys>),
}

impl Keyring {
    /// `several`: more than one station opens what this one seals.
    pub(crate) fn new(
        me: StationId,
        security: &Security,
        several: bool,
        rng: &mut Stream,
        clocks: Clocks,
    ) -> Self {
        match security {
            Security::Shared(psk) => Keyring::Shared(Secrets::shared(psk.clone())),
            Security::Keys(keys) => {
                let rng = Stream::from_rng(rng);
                match several {
                    true => Keyring::Members(Box::new(MemberKeys::new(me, keys, rng, clocks))),
                    false => {
                        let exchange = Exchange::new(me, keys, rng, clocks);
                        Keyring::Pair(Secrets::default(), Box::new(exchange))
                    }
                }
            }
        }
    }

    /// The key of the station's own session, if there is a secret to seal under.
    pub(crate) fn own_key(&self, me: StationId, session: &Random128) -> Option<SessionKey> {
        match self {
            Keyring::Shared(secrets) | Keyring::Pair(secrets, _) => secrets.own_key(me, session),
            Keyring::Members(keys) => Some(SessionKey::derive(&keys.own().psk, me, session)),
        }
    }

    /// The secret that this station seals under, if there is one.
    pub(crate) fn secret(&self) -> Option<&Psk> {
        match self {
            Keyring::Shared(secrets) | Keyring::Pair(secrets, _) => secrets.current(),
            Keyring::Members(keys) => Some(&keys.own().psk),
        }
    }

    /// The generation of the secret to seal under.
    pub(crate) fn own_generation(&self) -> Option<Generation> {
        match self {
            Keyring::Shared(secrets) | Keyring::Pair(secrets, _) => secrets.generation(),
            Keyring::Members(keys) => Some(keys.own().generation),
        }
    }

    /// The keys of another station's session, one per known secret of that station.
    pub(crate) fn session_keys(&self, sender: StationId, session: &Random128) -> SessionKeys {
        self.follow(SessionKeys::default(), sender, session)
    }

    /// Updates the keys of a session to the present secrets.
    pub(crate) fn follow(
        &self,
        keys: SessionKeys,
        sender: StationId,
        session: &Random128,
    ) -> SessionKeys {
        match self {
            Keyring::Shared(secrets) | Keyring::Pair(secrets, _) => {
                keys.follow(secrets.iter(), sender, session)
            }
            Keyring::Members(members) => {
                let given = members.member(sender).map(|member| member.given.iter());
                let secrets = given.into_iter().flatten();
                keys.follow(secrets.map(|it| (it.generation, &it.psk)), sender, session)
            }
        }
    }

    /// Whether this secret was newly agreed on by this station, and for this station alone, so that
    /// a frame under it cannot be a replay. A secret shared by several is older than that: a frame
    /// to another station may have been recorded before the secret was given to this one.
    pub(crate) fn is_newly_agreed(&self, generation: Generation) -> bool {
        match self {
            Keyring::Shared(_) | Keyring::Members(_) => false,
            Keyring::Pair(secrets, _) => !secrets.is_former(generation),
        }
    }

    /// Since when the secret that a station seals under is known here, if it has a key pair.
    pub(crate) fn agreed_at(&self, station: StationId) -> Option<Time> {
        match self {
            Keyring::Shared(_) => None,
            Keyring::Pair(secrets, _) => secrets.agreed().map(|(at, _)| at),
            Keyring::Members(keys) => keys.member(station).and_then(|it| it.given.since()),
        }
    }

    /// Key exchanges with a station, if it has a key pair.
    pub(crate) fn exchange(&self, station: StationId) -> Option<&Exchange> {
        match self {
            Keyring::Shared(_) => None,
            Keyring::Pair(_, exchange) => Some(exchange),
            Keyring::Members(keys) => keys.member(station).map(|member| &member.exchange),
        }
    }

    /// Keys that this station shares with one other alone, if further stations open what the two
    /// seal.
    pub(crate) fn end_keys(&self, station: StationId) -> Option<&EndKeys> {
        let Keyring::Members(keys) = self else { return None };
        keys.member(station).map(|member| &member.ends)
    }

    /// All key exchanges.
    pub(crate) fn exchanges_mut(&mut self) -> impl Iterator<Item = &mut Exchange> {
        let (one, several) = match self {
            Keyring::Shared(_) => (None, None),
            Keyring::Pair(_, exchange) => (Some(&mut **exchange), None),
            Keyring::Members(keys) => (None, Some(keys.members_mut())),
        };
        let several = several.into_iter().flatten().map(|member| &mut member.exchange);
        one.into_iter().chain(several)
    }
}
