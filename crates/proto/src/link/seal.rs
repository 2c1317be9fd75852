//! The way of a packet, steps 3 and 4: frames are sealed and opened with AES-128-GCM, under a key
//! for one session of one sender.
//!
//! The key is HKDF-SHA256(secret, sender, session id) and the nonce is the frame counter, which
//! starts from zero with a session id of 128 fresh random bits. So no restart can repeat a nonce.

use core::hint::black_box;

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::hmac;
use zeroize::Zeroizing;

use crate::config::StationId;
use crate::psk::Psk;
use crate::wire::{Random128, TAG_LEN};

const SALT: &[u8] = b"corridor wire 3";

/// The key of one session of one sender.
pub(crate) struct SessionKey(LessSafeKey);

/// Bytes of an AES-128 key.
const KEY_LEN: usize = 16;

struct KeyLen;

impl KeyType for KeyLen {
    fn len(&self) -> usize {
        KEY_LEN
    }
}

impl SessionKey {
    /// Derives the key of `sender`'s session from the secret of the group or pair.
    pub(crate) fn derive(psk: &Psk, sender: StationId, session: &Random128) -> Self {
        let info: [&[u8]; 3] = [b"session", &sender.0.to_be_bytes(), session];
        let mut key = Zeroizing::new([0; KEY_LEN]);
        let filled = Salt::new(HKDF_SHA256, SALT)
            .extract(psk.as_bytes())
            .expand(&info, KeyLen)
            .and_then(|okm| okm.fill(&mut key[..]));
        // HKDF fails only for outputs longer than 255 hashes.
        filled.expect("16 bytes are within HKDF's range");
        SessionKey(aead_key(&key))
    }

    /// Seals `frame[clear..]` in place, authenticates `frame[..clear]` too, and appends the tag.
    pub(crate) fn seal(&self, counter: u32, frame: &mut Vec<u8>, clear: usize) {
        let (head, body) = frame.split_at_mut(clear);
        let tag = self
            .0
            .seal_in_place_separate_tag(nonce(counter), Aad::from(head), body)
            .expect("a frame is far below GCM's length limit");
        frame.extend_from_slice(tag.as_ref());
    }

    /// Opens `frame` into `body` (replaced). Returns `false`, with an empty `body`, if it was not
    /// sealed under this key or was modified.
    pub(crate) fn open(
        &self,
        counter: u32,
        frame: &[u8],
        clear: usize,
        body: &mut Vec<u8>,
    ) -> bool {
        body.clear();
        if frame.len() < clear + TAG_LEN {
            return false;
        }
        let (head, sealed) = frame.split_at(clear);
        body.extend_from_slice(sealed);
        let opened = self.0.open_in_place(nonce(counter), Aad::from(head), body);
        let len = opened.map(|opened| opened.len()).ok();
        body.truncate(len.unwrap_or(0));
        len.is_some()
    }
}

impl Drop for SessionKey {
    /// Wipes the key, which the library does not do by itself.
    fn drop(&mut self) {
        self.0 = aead_key(&[0; KEY_LEN]);
        // Otherwise the compiler would remove a write that nobody reads.
        black_box(&self.0);
    }
}

fn aead_key(key: &[u8; KEY_LEN]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key).expect("the length of AES-128's keys"))
}

/// Makes the challenges of one run of a station: always the same for the same session of a peer,
/// until a session of that peer is accepted. So none is stored, and none can be pushed out of
/// memory.
pub(crate) struct ChallengeKey(hmac::Key);

impl ChallengeKey {
    pub(crate) fn new(secret: &Random128) -> Self {
        ChallengeKey(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The challenge that session `session` of `peer` has to answer, after `promotions` sessions of
    /// that peer have been accepted.
    pub(crate) fn challenge(
        &self,
        peer: StationId,
        session: &Random128,
        promotions: u32,
    ) -> Random128 {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(&peer.0.to_be_bytes());
        context.update(session);
        context.update(&promotions.to_be_bytes());
        let mut challenge = [0; 16];
        challenge.copy_from_slice(&context.sign().as_ref()[..16]);
        challenge
    }
}

impl Drop for ChallengeKey {
    /// Wipes the key, like a session's.
    fn drop(&mut self) {
        self.0 = hmac::Key::new(hmac::HMAC_SHA256, &[0; 16]);
        black_box(&self.0);
    }
}

fn nonce(counter: u32) -> Nonce {
    let mut bytes = [0; 12];
    bytes[8..].copy_from_slice(&counter.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_opens_and_a_flipped_bit_anywhere_does_not() {
        let key = SessionKey::derive(&[7; 32].into(), StationId(1), &[9; 16]);
        let mut frame = b"clearsecret".to_vec();
        key.seal(5, &mut frame, 5);
        let mut body = Vec::new();
        assert!(key.open(5, &frame, 5, &mut body));
        assert_eq!(body, b"secret");
        assert!(!key.open(6, &frame, 5, &mut body));
        for bit in 0..frame.len() * 8 {
            let mut bent = frame.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.open(5, &bent, 5, &mut body), "bit {bit}");
        }
    }

    #[test]
    fn a_frame_shorter_than_a_tag_does_not_open_and_an_empty_body_does() {
        let key = SessionKey::derive(&[7; 32].into(), StationId(1), &[9; 16]);
        let mut frame = b"clear".to_vec();
        key.seal(5, &mut frame, 5);
        let mut body = b"left from before".to_vec();
        assert!(key.open(5, &frame, 5, &mut body) && body.is_empty());
        for len in 0..frame.len() {
            body.push(1);
            assert!(!key.open(5, &frame[..len], 5, &mut body) && body.is_empty(), "{len} bytes");
        }
    }

    #[test]
    fn keys_differ_by_secret_sender_and_session() {
        let mut frame = b"clearsecret".to_vec();
        SessionKey::derive(&[7; 32].into(), StationId(1), &[9; 16]).seal(5, &mut frame, 5);
        let others = [
            SessionKey::derive(&[8; 32].into(), StationId(1), &[9; 16]),
            SessionKey::derive(&[7; 32].into(), StationId(2), &[9; 16]),
            SessionKey::derive(&[7; 32].into(), StationId(1), &[8; 16]),
        ];
        for other in others {
            assert!(!other.open(5, &frame, 5, &mut Vec::new()));
        }
    }
}
