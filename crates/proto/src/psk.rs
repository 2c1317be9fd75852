//! Pre-shared keys, which appear in no log and are wiped from memory.

use core::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Length of a pre-shared key in bytes.
pub const PSK_LEN: usize = 32;

/// The pre-shared key of a group. Wiped when dropped; never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Psk([u8; PSK_LEN]);

impl Psk {
    /// The bytes, to derive keys from.
    pub fn as_bytes(&self) -> &[u8; PSK_LEN] {
        &self.0
    }
}

impl From<[u8; PSK_LEN]> for Psk {
    fn from(bytes: [u8; PSK_LEN]) -> Self {
        Psk(bytes)
    }
}

impl fmt::Debug for Psk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Psk(..)")
    }
}

impl Drop for Psk {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for Psk {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        assert_eq!(format!("{:?}", Psk::from([0xAB; PSK_LEN])), "Psk(..)");
    }

    #[test]
    fn a_key_is_wiped() {
        fn is_wiped<T: ZeroizeOnDrop>() {}
        is_wiped::<Psk>();
        // Does what drop does, while the value can still be inspected.
        let mut psk = Psk::from([0xAB; PSK_LEN]);
        psk.0.zeroize();
        assert_eq!(psk.as_bytes(), &[0; PSK_LEN]);
    }
}
