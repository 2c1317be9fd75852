//! Key pairs of stations, as in WireGuard: X25519, written in base64.

use core::fmt::{self, Display, Formatter};
use core::str::FromStr;

use base64ct::{Base64, Encoding};
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::Dh;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::ConfigError;
use crate::id::StationId;
use crate::psk::Psk;

/// Length of a private or public key in bytes (RFC 7748).
pub const KEY_LEN: usize = 32;
/// Length of a key in base64, characters.
pub const KEY_TEXT_LEN: usize = 44;
/// The error for a malformed key.
const EXPECTED: &str = "expected 44 characters of base64";

/// The private key of a station. Wiped when dropped; never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey([u8; KEY_LEN]);

impl PrivateKey {
    /// A key from random bytes, clamped as by `wg genkey`.
    pub fn from_random(mut bytes: [u8; KEY_LEN]) -> Self {
        bytes[0] &= 0b1111_1000;
        bytes[KEY_LEN - 1] = bytes[KEY_LEN - 1] & 0b0111_1111 | 0b0100_0000;
        let key = PrivateKey(bytes);
        bytes.zeroize();
        key
    }

    /// The bytes, for a key exchange.
    pub(crate) fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    /// The corresponding public key.
    pub fn public(&self) -> PublicKey {
        let mut own = x25519();
        own.set(&self.0);
        let mut public = [0; KEY_LEN];
        public.copy_from_slice(own.pubkey());
        own.set(&[0; KEY_LEN]);
        PublicKey(public)
    }

    /// The shared secret of this key and another station's (RFC 7748, Section 6.1).
    pub(crate) fn shared(&self, public: &PublicKey) -> Zeroizing<[u8; KEY_LEN]> {
        let mut own = x25519();
        own.set(&self.0);
        let mut secret = Zeroizing::new([0; KEY_LEN]);
        let made = own.dh(&public.0, &mut secret[..]);
        own.set(&[0; KEY_LEN]);
        debug_assert!(made.is_ok(), "a public key has as many bytes");
        secret
    }

    /// The key in base64.
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(Base64::encode_string(&self.0))
    }
}

fn x25519() -> Box<dyn Dh> {
    DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("X25519 is built in")
}

impl FromStr for PrivateKey {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        decode(text).map(|bytes| PrivateKey(*bytes))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

impl Drop for PrivateKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for PrivateKey {}

/// The public key of a station.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey([u8; KEY_LEN]);

impl PublicKey {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    /// Whether it makes a secret with a private key. With one of the few points of small order, the
    /// shared secret is all zeros for everybody (RFC 7748, Section 6.1), so anybody could be its
    /// owner.
    pub fn makes_secrets(&self) -> bool {
        let mut any = x25519();
        any.set(&[1; KEY_LEN]);
        let mut secret = [0; KEY_LEN];
        any.dh(&self.0, &mut secret).is_ok() && secret != [0; KEY_LEN]
    }
}

impl From<[u8; KEY_LEN]> for PublicKey {
    fn from(bytes: [u8; KEY_LEN]) -> Self {
        PublicKey(bytes)
    }
}

impl FromStr for PublicKey {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        decode(text).map(|bytes| PublicKey(*bytes))
    }
}

impl Display for PublicKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&Base64::encode_string(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// White space around a key is allowed.
fn decode(text: &str) -> Result<Zeroizing<[u8; KEY_LEN]>, &'static str> {
    let text = text.trim();
    let mut bytes = Zeroizing::new([0; KEY_LEN]);
    if text.len() != KEY_TEXT_LEN {
        return Err(EXPECTED);
    }
    let decoded = Base64::decode(text, &mut bytes[..]).map_err(|_| EXPECTED)?;
    if decoded.len() == KEY_LEN { Ok(bytes) } else { Err(EXPECTED) }
}

/// How stations authenticate each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// A secret that all stations of the group have.
    Shared(Psk),
    /// A key pair per station. Only the two ends of a pair can open what they send each other.
    Keys(Box<Keys>),
}

impl Security {
    /// The secret of the group, if it has one.
    pub fn shared(&self) -> Option<&Psk> {
        match self {
            Security::Shared(psk) => Some(psk),
            Security::Keys(_) => None,
        }
    }

    /// The same with the keys of these peers only.
    ///
    /// # Errors
    /// A peer without exactly one key, or with a key under which anybody could be that peer.
    pub(crate) fn for_peers(&self, stations: &[StationId]) -> Result<Self, ConfigError> {
        let Security::Keys(keys) = self else { return Ok(self.clone()) };
        let mut peers = Vec::with_capacity(stations.len());
        for &station in stations {
            let mut known = keys.peers.iter().filter(|known| known.station == station);
            let (Some(key), None) = (known.next(), known.next()) else {
                let found = keys.peers.iter().filter(|known| known.station == station).count();
                let expected = "one public key of each peer";
                return Err(ConfigError::new("peer.public_key", found, expected));
            };
            if !key.public.makes_secrets() {
                let expected = "a public key that belongs to a private one";
                return Err(ConfigError::new("peer.public_key", key.public, expected));
            }
            peers.push(key.clone());
        }
        Ok(Security::Keys(Box::new(Keys { peers, ..Keys::clone(keys) })))
    }
}

impl From<Psk> for Security {
    fn from(psk: Psk) -> Self {
        Security::Shared(psk)
    }
}

impl From<[u8; crate::psk::PSK_LEN]> for Security {
    fn from(bytes: [u8; crate::psk::PSK_LEN]) -> Self {
        Security::Shared(bytes.into())
    }
}

/// A station's private key, and the public keys of its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// This station's private key.
    pub private: PrivateKey,
    /// The keys of its peers, one each.
    pub peers: Vec<PeerKey>,
}

/// The key of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerKey {
    /// The peer.
    pub station: StationId,
    /// Its public key.
    pub public: PublicKey,
    /// A pre-shared key of the two in addition to their key pairs, if they have one: it still
    /// protects if X25519 is broken.
    pub psk: Option<Psk>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bob's keys in RFC 7748, Section 6.1.
    const BOB: ([u8; 32], [u8; 32]) = (
        [
            0x5d, 0xab, 0x08, 0x7e, 0x62, 0x4a, 0x8a, 0x4b, 0x79, 0xe1, 0x7f, 0x8b, 0x83, 0x80,
            0x0e, 0xe6, 0x6f, 0x3b, 0xb1, 0x29, 0x26, 0x18, 0xb6, 0xfd, 0x1c, 0x2f, 0x8b, 0x27,
            0xff, 0x88, 0xe0, 0xeb,
        ],
        [
            0xde, 0x9e, 0xdb, 0x7d, 0x7b, 0x7d, 0xc1, 0xb4, 0xd3, 0x5b, 0x61, 0xc2, 0xec, 0xe4,
            0x35, 0x37, 0x3f, 0x83, 0x43, 0xc8, 0x5b, 0x78, 0x67, 0x4d, 0xad, 0xfc, 0x7e, 0x14,
            0x6f, 0x88, 0x2b, 0x4f,
        ],
    );

    #[test]
    fn a_public_key_is_that_of_rfc_7748() {
        assert_eq!(PrivateKey(BOB.0).public(), PublicKey(BOB.1));
        assert_eq!(PrivateKey::from_random(BOB.0).public(), PublicKey(BOB.1));
    }

    /// The points of small order in all their encodings, including those that are not reduced, as
    /// listed at <https://cr.yp.to/ecdh.html#validate>.
    const SMALL_ORDER: [&str; 7] = [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ];

    #[test]
    fn a_public_key_under_which_anybody_would_be_the_peer_is_refused() {
        for digits in SMALL_ORDER {
            let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
            let mut bytes: [u8; KEY_LEN] = core::array::from_fn(byte);
            for high in [0, 0x80] {
                bytes[KEY_LEN - 1] |= high;
                let public = PublicKey(bytes);
                assert!(!public.makes_secrets());
                let private = PrivateKey::from_random([7; KEY_LEN]);
                let peers = vec![PeerKey { station: StationId(2), public, psk: None }];
                let keys = Keys { private, peers };
                let refused = Security::Keys(Box::new(keys)).for_peers(&[StationId(2)]);
                assert_eq!(refused.map_err(|error| error.field), Err("peer.public_key"));
            }
        }
        assert!(PublicKey(BOB.1).makes_secrets());
    }

    #[test]
    fn keys_are_read_as_they_are_written_and_nothing_else_is() {
        let private = PrivateKey::from_random([0xAB; KEY_LEN]);
        assert_eq!(private.to_text().len(), KEY_TEXT_LEN);
        assert_eq!(format!(" {}\n", *private.to_text()).parse(), Ok(private.clone()));
        let public = private.public();
        assert_eq!(public.to_string().parse(), Ok(public));
        let text = public.to_string();
        let not_canonical = text.replacen(&text[42..], "B=", 1);
        for wrong in ["", "AAAA", &text[1..], &"0".repeat(64), &not_canonical, &"=".repeat(44)] {
            assert_eq!(wrong.parse::<PublicKey>(), Err(EXPECTED), "{wrong}");
            assert_eq!(wrong.parse::<PrivateKey>(), Err(EXPECTED), "{wrong}");
        }
    }

    #[test]
    fn a_private_key_is_never_shown_and_is_wiped() {
        fn is_wiped<T: ZeroizeOnDrop>() {}
        is_wiped::<PrivateKey>();
        let mut private = PrivateKey::from_random([0xAB; KEY_LEN]);
        assert_eq!(format!("{private:?}"), "PrivateKey(..)");
        let peers = vec![PeerKey {
            station: StationId(2),
            public: private.public(),
            psk: Some([0xCD; 32].into()),
        }];
        let keys = Keys { private: private.clone(), peers };
        let shown = format!("{:?}", Security::Keys(Box::new(keys)));
        assert!(shown.contains("PrivateKey(..)") && shown.contains("Psk(..)"), "{shown}");
        private.0.zeroize();
        assert_eq!(private.as_bytes(), &[0; KEY_LEN]);
    }
}
