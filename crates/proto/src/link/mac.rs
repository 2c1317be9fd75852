//! The MAC of key exchange messages, and cookies. Only stations that know the receiver's public key
//! can make the MAC; checking it is cheap compared with the computation that it protects. A cookie
//! shows that its sender can receive at its address: it is a MAC of the address under a key of the
//! station's own.

use core::hint::black_box;

use ring::digest::{Context, SHA256};
use ring::hmac;

use crate::keys::PublicKey;
use crate::wire::{KEY_EXCHANGE_MAC_LEN, KeyExchange, Random128};

/// The key of the MACs of messages to one station.
#[derive(Clone, Debug)]
pub(crate) struct MacKey(hmac::Key);

impl MacKey {
    /// The key of the station with this public key.
    pub(crate) fn of(receiver: &PublicKey) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(b"corridor mac 1");
        context.update(receiver.as_bytes());
        MacKey(hmac::Key::new(hmac::HMAC_SHA256, context.finish().as_ref()))
    }

    /// Appends the MAC to a message.
    pub(crate) fn write(&self, frame: &mut Vec<u8>) {
        let mac = hmac::sign(&self.0, frame);
        frame.extend_from_slice(&mac.as_ref()[..KEY_EXCHANGE_MAC_LEN]);
    }

    /// Whether a message was made for that station.
    pub(crate) fn is_of(&self, message: &KeyExchange<'_>) -> bool {
        let mac = hmac::sign(&self.0, message.authenticated);
        // The MAC's input is public, so the timing of this comparison reveals nothing.
        mac.as_ref()[..KEY_EXCHANGE_MAC_LEN] == message.mac
    }
}

/// Makes cookies, which for an address are the same as long as this key is in use, so none is
/// stored.
pub(crate) struct CookieKey(hmac::Key);

impl CookieKey {
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        CookieKey(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The cookie of an address.
    pub(crate) fn cookie(&self, address: &[u8]) -> Random128 {
        first_half(&hmac::sign(&self.0, address))
    }
}

impl Drop for CookieKey {
    /// Overwrites the key.
    fn drop(&mut self) {
        self.0 = hmac::Key::new(hmac::HMAC_SHA256, &[0; 16]);
        black_box(&self.0);
    }
}

/// Shows that the sender of a message knows a cookie.
pub(crate) fn cookie_mac(cookie: &Random128, message: &[u8]) -> Random128 {
    first_half(&hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, cookie), message))
}

fn first_half(tag: &hmac::Tag) -> Random128 {
    let mut half = [0; 16];
    half.copy_from_slice(&tag.as_ref()[..16]);
    half
}
