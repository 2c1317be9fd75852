//! Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s between two stations: the content of its two messages, and
//! the resulting secret.
//!
//! The pattern is WireGuard's: the initiator knows the responder's public key, and sends its own
//! under it. The library does the cryptography; the caller supplies random bytes.

use core::hint::black_box;

use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use crate::keys::{KEY_LEN, PrivateKey, PublicKey};
use crate::psk::{PSK_LEN, Psk};
use crate::wire::{
    HANDOUT_NOISE_LEN, HANDOUT_SECRETS_LEN, INITIATION_NOISE_LEN, RESPONSE_NOISE_LEN, TIMESTAMP_LEN,
};

const PATTERN: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
/// Both ends have to use this protocol, or their messages do not open.
const PROLOGUE: &[u8] = b"corridor wire 3 key exchange";
/// The message of the pattern that mixes in the pre-shared key.
const PSK_PLACE: u8 = 2;

/// Random bytes for the private half of an ephemeral key.
pub(crate) type Ephemeral = Zeroizing<[u8; KEY_LEN]>;

/// A party that has sent an initiation.
pub(crate) struct Initiator(HandshakeState);

impl Initiator {
    /// Makes an initiation; returns the state that waits for the response, and the message.
    pub(crate) fn begin(
        own: &PrivateKey,
        (peer, psk): (&PublicKey, Option<&Psk>),
        timestamp: u64,
        ephemeral: Ephemeral,
    ) -> (Self, [u8; INITIATION_NOISE_LEN]) {
        let none = [0; PSK_LEN];
        let state = builder(own, ephemeral, PROLOGUE)
            .remote_public_key(peer.as_bytes())
            .and_then(|builder| builder.psk(PSK_PLACE, psk.map_or(&none, Psk::as_bytes)))
            .and_then(Builder::build_initiator);
        let mut state = state.expect("all that the pattern needs was given, once");
        let mut message = [0; INITIATION_NOISE_LEN];
        let written = state.write_message(&timestamp.to_be_bytes(), &mut message);
        debug_assert_eq!(written, Ok(INITIATION_NOISE_LEN));
        (Initiator(state), message)
    }

    /// Reads the response and returns the pair's secret. `None` for anything that the peer did not
    /// make for this initiation with the same pre-shared key; the state is then unchanged.
    pub(crate) fn finish(&mut self, message: &[u8]) -> Option<Psk> {
        let mut payload = [0; RESPONSE_NOISE_LEN];
        (self.0.read_message(message, &mut payload).ok()? == 0).then(|| split(&mut self.0))
    }

    /// Reads a handout and returns the secrets that the peer seals under now and next. `None` as
    /// above.
    pub(crate) fn finish_handout(&mut self, message: &[u8]) -> Option<[Psk; 2]> {
        let mut payload = Zeroizing::new([0; HANDOUT_NOISE_LEN]);
        let len = self.0.read_message(message, &mut payload[..]).ok()?;
        let (secrets, []) = payload[..len].as_chunks::<PSK_LEN>() else { return None };
        let &[now, next] = secrets else { return None };
        Some([now.into(), next.into()])
    }
}

/// A party that has read an initiation.
pub(crate) struct Responder {
    state: HandshakeState,
    /// Public key of the initiator, which has the private key.
    pub(crate) peer: PublicKey,
    /// When the initiation was made, by the initiator's clock.
    pub(crate) timestamp: u64,
}

impl Responder {
    /// Reads an initiation; `None` if it was not made for this key.
    pub(crate) fn read(own: &PrivateKey, message: &[u8], ephemeral: Ephemeral) -> Option<Self> {
        let state = builder(own, ephemeral, PROLOGUE).build_responder();
        let mut state = state.expect("all that the pattern needs was given, once");
        let mut payload = [0; INITIATION_NOISE_LEN];
        if state.read_message(message, &mut payload).ok()? != TIMESTAMP_LEN {
            return None;
        }
        let peer: [u8; KEY_LEN] = state.get_remote_static()?.try_into().ok()?;
        let timestamp = u64::from_be_bytes(payload[..TIMESTAMP_LEN].try_into().ok()?);
        Some(Responder { state, peer: peer.into(), timestamp })
    }

    /// Makes the response, and returns it with the pair's secret.
    pub(crate) fn answer(mut self, psk: Option<&Psk>) -> ([u8; RESPONSE_NOISE_LEN], Psk) {
        let mut message = [0; RESPONSE_NOISE_LEN];
        self.write(psk, &[], &mut message);
        (message, split(&mut self.state))
    }

    /// Makes the handout, with the secrets that this station seals under now and next.
    pub(crate) fn hand_out(
        mut self,
        psk: Option<&Psk>,
        [now, next]: [&Psk; 2],
    ) -> [u8; HANDOUT_NOISE_LEN] {
        let mut secrets = Zeroizing::new([0; HANDOUT_SECRETS_LEN]);
        secrets[..PSK_LEN].copy_from_slice(now.as_bytes());
        secrets[PSK_LEN..].copy_from_slice(next.as_bytes());
        let mut message = [0; HANDOUT_NOISE_LEN];
        self.write(psk, &secrets[..], &mut message);
        message
    }

    fn write(&mut self, psk: Option<&Psk>, payload: &[u8], message: &mut [u8]) {
        let none = [0; PSK_LEN];
        let psk = psk.map_or(&none, Psk::as_bytes);
        let written = self
            .state
            .set_psk(usize::from(PSK_PLACE), psk)
            .and_then(|()| self.state.write_message(payload, message));
        debug_assert_eq!(written, Ok(message.len()));
    }
}

fn builder<'a>(own: &'a PrivateKey, ephemeral: Ephemeral, prologue: &'a [u8]) -> Builder<'a> {
    let params = PATTERN.parse().expect("a pattern that the library has");
    Builder::with_resolver(params, Box::new(Resolver(ephemeral)))
        .local_private_key(own.as_bytes())
        .and_then(|builder| builder.prologue(prologue))
        .expect("each was given once")
}

struct SecretLen;

impl KeyType for SecretLen {
    fn len(&self) -> usize {
        PSK_LEN
    }
}

/// The shared result of both messages, as one secret.
fn split(state: &mut HandshakeState) -> Psk {
    let (one, other) = state.dangerously_get_raw_split();
    let (one, other) = (Zeroizing::new(one), Zeroizing::new(other));
    let mut both = Zeroizing::new([0; 2 * KEY_LEN]);
    both[..KEY_LEN].copy_from_slice(&one[..]);
    both[KEY_LEN..].copy_from_slice(&other[..]);
    let mut secret = Zeroizing::new([0; PSK_LEN]);
    Salt::new(HKDF_SHA256, b"corridor pair 1")
        .extract(&both[..])
        .expand(&[b"secret"], SecretLen)
        .and_then(|okm| okm.fill(&mut secret[..]))
        .expect("32 bytes are within HKDF's range");
    (*secret).into()
}

/// The library's own algorithms, with random bytes from the caller, and keys that are wiped.
struct Resolver(Ephemeral);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.0.clone()))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        Some(Box::new(Wiped(DefaultResolver.resolve_dh(choice)?)))
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// Random bytes for one key: a state makes one ephemeral key, and never two from the same bytes.
struct Once(Option<Ephemeral>);

impl Random for Once {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), snow::Error> {
        let bytes = self.0.take().filter(|bytes| bytes.len() == dest.len());
        dest.copy_from_slice(&bytes.ok_or(snow::Error::Rng)?[..]);
        Ok(())
    }
}

/// A key that is wiped when dropped, which the library does not do by itself.
struct Wiped(Box<dyn Dh>);

impl Dh for Wiped {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn pub_len(&self) -> usize {
        self.0.pub_len()
    }

    fn priv_len(&self) -> usize {
        self.0.priv_len()
    }

    fn set(&mut self, privkey: &[u8]) {
        self.0.set(privkey);
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), snow::Error> {
        self.0.generate(rng)
    }

    fn pubkey(&self) -> &[u8] {
        self.0.pubkey()
    }

    fn privkey(&self) -> &[u8] {
        self.0.privkey()
    }

    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        self.0.dh(pubkey, out)
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        self.0.set(&[0; KEY_LEN]);
        // Otherwise the compiler would remove a write that nobody reads.
        black_box(self.0.privkey());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex<const N: usize>(digits: &str) -> [u8; N] {
        let byte = |at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
        assert_eq!(digits.len(), 2 * N);
        core::array::from_fn(byte)
    }

    fn key(digits: &str) -> PrivateKey {
        // Unmodified: the keys in the vectors are not clamped.
        let bytes: [u8; KEY_LEN] = hex(digits);
        use base64ct::Encoding;
        base64ct::Base64::encode_string(&bytes).parse().unwrap()
    }

    /// The test vector of cacophony for this pattern, as in snow's tests.
    #[test]
    fn both_messages_are_those_of_the_published_vector() {
        let prologue = b"John Galt";
        let psk: [u8; 32] = *b"This is my Austrian perspective!";
        let initiator = key("e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1");
        let responder = key("4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893");
        let ephemeral = |digits| Zeroizing::new(hex::<32>(digits));
        let e_i = ephemeral("893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a");
        let e_r = ephemeral("bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b");
        let public = responder.public();
        assert_eq!(
            *public.as_bytes(),
            hex("31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62")
        );
        let mut first = builder(&initiator, e_i, prologue)
            .remote_public_key(public.as_bytes())
            .and_then(|builder| builder.psk(PSK_PLACE, &psk))
            .and_then(Builder::build_initiator)
            .unwrap();
        let mut second = builder(&responder, e_r, prologue).build_responder().unwrap();
        let (mut message, mut payload) = ([0; 200], [0; 200]);

        let len = first.write_message(b"Ludwig von Mises", &mut message).unwrap();
        assert_eq!(
            message[..len],
            hex::<112>(
                "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944001e21de9f98ddd8e2ad\
                 57527207feb56253c9c94a9e496782ecfcb2a75fbcaf1b52948cc48daefe660c62119ab5000980c84831\
                 215f2441eba616548e832985464cf17e51ee93109008399a21f7e13f"
            )
        );
        let len = second.read_message(&message[..len], &mut payload).unwrap();
        assert_eq!(&payload[..len], b"Ludwig von Mises");
        second.set_psk(usize::from(PSK_PLACE), &psk).unwrap();
        let len = second.write_message(b"Murray Rothbard", &mut message).unwrap();
        assert_eq!(
            message[..len],
            hex::<63>(
                "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843cb765f2caef0751b8f00\
                 7572dab0322217755c0632f365717edbf34d33e87a"
            )
        );
        let len = first.read_message(&message[..len], &mut payload).unwrap();
        assert_eq!(&payload[..len], b"Murray Rothbard");
        assert_eq!(
            first.get_handshake_hash(),
            hex::<32>("f5191b875290abcd41347ac3622d9679688a7e980229cb937ef748336cfde0e5")
        );
        assert_eq!(split(&mut first), split(&mut second));
    }

    fn pair() -> (PrivateKey, PrivateKey) {
        (PrivateKey::from_random([3; 32]), PrivateKey::from_random([4; 32]))
    }

    fn once(byte: u8) -> Ephemeral {
        Zeroizing::new([byte; 32])
    }

    #[test]
    fn two_ends_agree_on_a_secret_that_is_new_each_time() {
        let (a, b) = pair();
        let mut secrets = Vec::new();
        for (round, psk) in [(1, None), (2, None), (3, Some(Psk::from([9; 32])))] {
            let peer = (&b.public(), psk.as_ref());
            let (mut initiator, initiation) = Initiator::begin(&a, peer, 77, once(round));
            let responder = Responder::read(&b, &initiation, once(100 + round)).unwrap();
            assert_eq!((responder.peer, responder.timestamp), (a.public(), 77));
            let (response, secret) = responder.answer(psk.as_ref());
            assert_eq!(initiator.finish(&response).as_ref(), Some(&secret));
            assert!(!secrets.contains(&secret));
            secrets.push(secret);
        }
    }

    #[test]
    fn another_key_another_secret_and_a_flipped_bit_do_not_open() {
        let (a, b) = pair();
        let (psk, other_psk) = (Psk::from([9; 32]), Psk::from([8; 32]));
        let peer = (&b.public(), Some(&psk));
        let (mut initiator, initiation) = Initiator::begin(&a, peer, 77, once(1));
        assert!(Responder::read(&a, &initiation, once(2)).is_none());
        for bit in 0..initiation.len() * 8 {
            let mut bent = initiation;
            bent[bit / 8] ^= 1 << (bit % 8);
            // X25519 ignores the highest bit of a key; the transcript does not.
            assert!(Responder::read(&b, &bent, once(2)).is_none(), "bit {bit}");
        }
        let responder = || Responder::read(&b, &initiation, once(2)).unwrap();
        let (response, _) = responder().answer(Some(&other_psk));
        assert!(initiator.finish(&response).is_none());
        let (response, _) = responder().answer(None);
        assert!(initiator.finish(&response).is_none());
        let (response, secret) = responder().answer(Some(&psk));
        for bit in 0..response.len() * 8 {
            let mut bent = response;
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(initiator.finish(&bent).is_none(), "bit {bit}");
        }
        assert_eq!(initiator.finish(&response), Some(secret), "nothing has changed before");
    }
}
