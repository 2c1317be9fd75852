//! Keys of the two ends of a flow. They are derived from the static keys, so that stations in
//! between do not have them, although these open and seal the frames. See
//! docs/decisions/0032-end-to-end-tags.md.
//!
//! ```text
//! X25519 of the two static keys, secret of the pair or 32 zeros -> HKDF-SHA256 -> a key for each
//! direction and purpose -> keyed BLAKE3, cut to 64 or 128 bits
//! ```

use core::hint::black_box;

use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use zeroize::Zeroizing;

use crate::keys::{KEY_LEN, PeerKey, PrivateKey, PublicKey};
use crate::psk::{PSK_LEN, Psk};
use crate::wire::{END_TAG_LEN, Random128};

const SALT: &[u8] = b"corridor ends 1";

/// The purpose of a key.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// Answers to session challenges.
    Answers,
    /// Source symbols of blocks.
    Symbols,
    /// Packets across relays.
    Packets,
}

impl Purpose {
    fn label(self) -> &'static [u8] {
        match self {
            Purpose::Answers => b"answers",
            Purpose::Symbols => b"symbols",
            Purpose::Packets => b"packets",
        }
    }
}

/// The keys that a station shares with one other.
#[derive(Clone)]
pub(crate) struct EndKeys {
    /// For this station's answers to the other one's challenges, and the reverse.
    answers: Directions,
    /// For this station's symbols, and the other one's.
    symbols: Directions,
    /// For packets across relays, likewise.
    packets: Directions,
}

/// One key per direction.
#[derive(Clone)]
struct Directions {
    to_peer: MacKey,
    from_peer: MacKey,
}

impl EndKeys {
    pub(crate) fn new(private: &PrivateKey, peer: &PeerKey) -> Self {
        let both = Both::new(private, &peer.public, peer.psk.as_ref());
        EndKeys {
            answers: both.directions(Purpose::Answers),
            symbols: both.directions(Purpose::Symbols),
            packets: both.directions(Purpose::Packets),
        }
    }

    /// The key for symbols from this station to the other.
    pub(crate) fn own_symbols(&self) -> MacKey {
        self.symbols.to_peer.clone()
    }

    /// The key for symbols from the other station to this one.
    pub(crate) fn peer_symbols(&self) -> MacKey {
        self.symbols.from_peer.clone()
    }

    /// The key for packets from this station to the other, across relays.
    pub(crate) fn own_packets(&self) -> MacKey {
        self.packets.to_peer.clone()
    }

    /// The key for packets from the other station to this one, across relays.
    pub(crate) fn peer_packets(&self) -> MacKey {
        self.packets.from_peer.clone()
    }

    /// This station's answer to a challenge; also authenticates what it announces about its
    /// session.
    pub(crate) fn answer(
        &self,
        challenge: &Random128,
        session: &Random128,
        said: &[u8],
    ) -> Random128 {
        self.answers.to_peer.mac(&[challenge, session, said])
    }

    /// The answer that the other station owes.
    pub(crate) fn expected(
        &self,
        challenge: &Random128,
        session: &Random128,
        said: &[u8],
    ) -> Random128 {
        self.answers.from_peer.mac(&[challenge, session, said])
    }
}

/// The common input of the keys, before direction and purpose are mixed in.
struct Both {
    prk: Prk,
    own: PublicKey,
    peer: PublicKey,
}

struct MacKeyLen;

impl KeyType for MacKeyLen {
    fn len(&self) -> usize {
        KEY_LEN
    }
}

impl Both {
    fn new(private: &PrivateKey, peer: &PublicKey, psk: Option<&Psk>) -> Self {
        let mut both = Zeroizing::new([0; KEY_LEN + PSK_LEN]);
        both[..KEY_LEN].copy_from_slice(&private.shared(peer)[..]);
        if let Some(psk) = psk {
            both[KEY_LEN..].copy_from_slice(psk.as_bytes());
        }
        let prk = Salt::new(HKDF_SHA256, SALT).extract(&both[..]);
        Both { prk, own: private.public(), peer: *peer }
    }

    fn directions(&self, purpose: Purpose) -> Directions {
        let key = |sender: &PublicKey, receiver: &PublicKey| {
            let info = [purpose.label(), sender.as_bytes(), receiver.as_bytes()];
            let mut key = Zeroizing::new([0; KEY_LEN]);
            let filled = self.prk.expand(&info, MacKeyLen).and_then(|okm| okm.fill(&mut key[..]));
            filled.expect("32 bytes are within HKDF's range");
            MacKey(key)
        };
        Directions { to_peer: key(&self.own, &self.peer), from_peer: key(&self.peer, &self.own) }
    }
}

/// A MAC key for one direction and purpose. Wiped when dropped.
#[derive(Clone)]
pub(crate) struct MacKey(Zeroizing<[u8; KEY_LEN]>);

impl MacKey {
    /// The MAC of the concatenation of these parts, all but the last of which have fixed lengths.
    fn mac<const N: usize>(&self, parts: &[&[u8]]) -> [u8; N] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        parts.iter().for_each(|part| {
            hasher.update(part);
        });
        let mut mac = [0; N];
        mac.copy_from_slice(&hasher.finalize().as_bytes()[..N]);
        mac
    }

    /// The tag of a text in a context, which has a fixed length.
    pub(crate) fn tag(&self, context: &[u8], text: &[u8]) -> [u8; END_TAG_LEN] {
        self.mac(&[context, text])
    }

    /// Whether this is the text's tag, in constant time.
    pub(crate) fn is_tag(&self, tag: &[u8; END_TAG_LEN], context: &[u8], text: &[u8]) -> bool {
        is_same(&self.tag(context, text), tag)
    }
}

/// Whether two MACs are equal, in constant time.
pub(crate) fn is_same<const N: usize>(one: &[u8; N], other: &[u8; N]) -> bool {
    // Otherwise the compiler could stop at the first byte that differs.
    one.iter().zip(other).fold(0, |all: u8, (a, b)| black_box(all | (a ^ b))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::block::tags::SymbolTags;
    use crate::id::StationId;

    fn bytes(digits: &str) -> Vec<u8> {
        let pairs = digits.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16);
        pairs.map(|pair| byte(pair).unwrap()).collect()
    }

    fn array<const N: usize>(digits: &str) -> [u8; N] {
        bytes(digits).try_into().unwrap()
    }

    /// The keys of both ends, the sender's first.
    fn ends(sender: &str, receiver: &str, psk: &str) -> [EndKeys; 2] {
        let privates = [sender, receiver].map(|key| PrivateKey::from_random(array(key)));
        let psk = (psk != "-").then(|| Psk::from(array::<32>(psk)));
        [0, 1].map(|at| {
            let (station, public) = (StationId(2), privates[1 - at].public());
            EndKeys::new(&privates[at], &PeerKey { station, public, psk: psk.clone() })
        })
    }

    /// From an independent implementation in Python: `end_tags.py` in the same directory.
    #[test]
    fn tags_and_answers_are_those_of_an_independent_implementation() {
        let (mut symbols, mut packets, mut answers) = (0, 0, 0);
        for line in include_str!("../tests/data/end_tags.txt").lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [to, from] = ends(words[1], words[2], words[3]);
            if words[0] == "symbol" {
                let instance = u64::from_str_radix(words[4], 16).unwrap();
                let place = (words[5].parse().unwrap(), words[6].parse().unwrap());
                let mut symbol = [&[0; END_TAG_LEN][..], &bytes(words[7])].concat();
                SymbolTags::new(to.own_symbols(), instance).write(place, &mut symbol);
                assert_eq!(symbol[..END_TAG_LEN], bytes(words[8]), "{line}");
                let checker = SymbolTags::new(from.peer_symbols(), instance);
                assert!(checker.is_genuine(place, &symbol));
                symbols += 1;
            } else if words[0] == "packet" {
                let number: u64 = words[4].parse().unwrap();
                let (number, packet) = (number.to_be_bytes(), bytes(words[5]));
                let tag = to.own_packets().tag(&number[1..], &packet);
                assert_eq!(tag[..], bytes(words[6]), "{line}");
                assert!(from.peer_packets().is_tag(&tag, &number[1..], &packet));
                packets += 1;
            } else {
                let (challenge, session) = (array(words[4]), array(words[5]));
                let said = bytes(words[6]);
                assert_eq!(to.answer(&challenge, &session, &said), array(words[7]), "{line}");
                assert_eq!(from.expected(&challenge, &session, &said), array(words[7]));
                answers += 1;
            }
        }
        assert_eq!((symbols, packets, answers), (8, 8, 8));
    }

    #[test]
    fn keys_differ_by_direction_purpose_secret_and_pair() {
        let [a, b, c] = ["11", "22", "33"].map(|byte| byte.repeat(32));
        let [to, from] = ends(&a, &b, "-");
        let others = [ends(&a, &c, "-"), ends(&a, &b, &c), ends(&b, &a, "-")];
        let tag = to.own_symbols().tag(b"context", b"text");
        assert!(from.peer_symbols().is_tag(&tag, b"context", b"text"));
        let mut keys: Vec<MacKey> = others.iter().map(|[to, _]| to.own_symbols()).collect();
        keys.extend([to.peer_symbols(), from.own_symbols(), to.answers.to_peer.clone()]);
        keys.push(to.own_packets());
        for (at, key) in keys.iter().enumerate() {
            assert!(!key.is_tag(&tag, b"context", b"text"), "{at}");
        }
        for bit in 0..64 {
            let mut bent = tag;
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(!from.peer_symbols().is_tag(&bent, b"context", b"text"), "{bit}");
        }
        for text in [&b"tex"[..], b"text\0", b""] {
            assert!(!from.peer_symbols().is_tag(&tag, b"context", text), "{text:?}");
        }
    }

    #[test]
    fn macs_are_one_only_if_all_their_bits_are() {
        fn holds<const N: usize>() {
            let mac: [u8; N] = core::array::from_fn(|at| at as u8 ^ 0xa5);
            assert!(is_same(&mac, &mac.clone()));
            for bit in 0..8 * N {
                let mut other = mac;
                other[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_same(&mac, &other) && !is_same(&other, &mac), "bit {bit} of {N} bytes");
                // Nor do two differences cancel out.
                other[N - 1 - bit / 8] ^= 1 << (bit % 8);
                assert!(!is_same(&mac, &other), "bit {bit} at both ends of {N} bytes");
            }
        }
        holds::<END_TAG_LEN>();
        holds::<16>();
    }
}
