//! The MAC of messages of a key exchange: only those can make it who know the receiver's public
//! key, and it costs little beside what it keeps from being computed.

use ring::digest::{Context, SHA256};
use ring::hmac;

use crate::keys::PublicKey;
use crate::wire::{KEY_EXCHANGE_MAC_LEN, KeyExchange};

/// The key of the MACs of messages to one station.
#[derive(Clone, Debug)]
pub(crate) struct MacKey(hmac::Key);

impl MacKey {
    /// That of the station with this public key.
    pub(crate) fn of(receiver: &PublicKey) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(b"corridor mac 1");
        context.update(receiver.as_bytes());
        MacKey(hmac::Key::new(hmac::HMAC_SHA256, context.finish().as_ref()))
    }

    /// Ends a message with its MAC.
    pub(crate) fn write(&self, frame: &mut Vec<u8>) {
        let mac = hmac::sign(&self.0, frame);
        frame.extend_from_slice(&mac.as_ref()[..KEY_EXCHANGE_MAC_LEN]);
    }

    /// Whether a message was made for that station.
    pub(crate) fn is_of(&self, message: &KeyExchange<'_>) -> bool {
        let mac = hmac::sign(&self.0, message.authenticated);
        // What it is made of is public: time that shows how much agrees gives nothing away.
        mac.as_ref()[..KEY_EXCHANGE_MAC_LEN] == message.mac
    }
}
