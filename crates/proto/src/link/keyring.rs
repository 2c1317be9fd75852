//! Where the keys of sessions come from: one secret of all, one of the two ends, or one of each
//! sender's.

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
    /// Two stations with keys of their own agree on secrets that they have in common.
    Pair(Secrets, Box<Exchange>),
    /// Several stations with keys of their own: each seals under a secret of its own, which it
    /// gives to the others.
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

    /// What the station seals under, if there is such a secret.
    pub(crate) fn secret(&self) -> Option<&Psk> {
        match self {
            Keyring::Shared(secrets) | Keyring::Pair(secrets, _) => secrets.current(),
            Keyring::Members(keys) => Some(&keys.own().psk),
        }
    }

    /// Which secret is sealed under.
    pub(crate) fn own_generation(&self) -> Option<Generation> {
        match self {
            Keyring::Shared(secrets) | Keyring::Pair(secrets, _) => secrets.generation(),
            Keyring::Members(keys) => Some(keys.own().generation),
        }
    }

    /// The keys of a session of another station, one for each of its secrets that are known.
    pub(crate) fn session_keys(&self, sender: StationId, session: &Random128) -> SessionKeys {
        self.follow(SessionKeys::default(), sender, session)
    }

    /// The keys of the same session under the secrets that there are now.
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

    /// Whether a frame under this one was made after this station has agreed on it, and for it
    /// alone. What one of several seals under is older than that: what goes to another can have
    /// been recorded before it was given here.
    pub(crate) fn is_newly_agreed(&self, generation: Generation) -> bool {
        match self {
            Keyring::Shared(_) | Keyring::Members(_) => false,
            Keyring::Pair(secrets, _) => !secrets.is_former(generation),
        }
    }

    /// Since when what a station seals under is known here, where it has a key of its own.
    pub(crate) fn agreed_at(&self, station: StationId) -> Option<Time> {
        match self {
            Keyring::Shared(_) => None,
            Keyring::Pair(secrets, _) => secrets.agreed().map(|(at, _)| at),
            Keyring::Members(keys) => keys.member(station).and_then(|it| it.given.since()),
        }
    }

    /// Key exchanges with a station, where it has a key of its own.
    pub(crate) fn exchange(&self, station: StationId) -> Option<&Exchange> {
        match self {
            Keyring::Shared(_) => None,
            Keyring::Pair(_, exchange) => Some(exchange),
            Keyring::Members(keys) => keys.member(station).map(|member| &member.exchange),
        }
    }

    /// Keys that this station has with another one alone, where more than the two open what either
    /// seals.
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
