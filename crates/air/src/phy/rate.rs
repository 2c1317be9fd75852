//! Rates: the airtime of frames, and the SINR that they need.

use core::time::Duration;

/// A modulation and coding scheme of a PHY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it: family and Mbit/s")]
pub enum Rate {
    Dsss1,
    Dsss2,
    Dsss5_5,
    Dsss11,
    Ofdm6,
    Ofdm9,
    Ofdm12,
    Ofdm18,
    Ofdm24,
    Ofdm36,
    Ofdm48,
    Ofdm54,
    /// IEEE 802.15.4 at 2450 MHz: 250 kbit/s, symbols of 16 us and four bits.
    Oqpsk250,
}

/// All rates of IEEE 802.11a, and of ERP-OFDM in 802.11g.
pub const OFDM: [Rate; 8] = [
    Rate::Ofdm6,
    Rate::Ofdm9,
    Rate::Ofdm12,
    Rate::Ofdm18,
    Rate::Ofdm24,
    Rate::Ofdm36,
    Rate::Ofdm48,
    Rate::Ofdm54,
];

/// All rates of IEEE 802.11b.
pub const DSSS: [Rate; 4] = [Rate::Dsss1, Rate::Dsss2, Rate::Dsss5_5, Rate::Dsss11];

/// What precedes the first byte of a frame, and follows its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preamble {
    /// 802.11a: 16 us of training and 4 us of SIGNAL (IEEE 802.11-2012, 18.3.2).
    Ofdm,
    /// ERP-OFDM in 802.11g: as `Ofdm`, with 6 us of silence at the end (19.3.2.4).
    OfdmExtended,
    /// 802.11b: 144 us of preamble and 48 us of header (17.2.2.2).
    DsssLong,
    /// 802.11b: 72 us of preamble and 24 us of header (17.2.2.3).
    DsssShort,
    /// 802.15.4: five bytes of synchronisation and one of length (IEEE 802.15.4-2006, 6.3).
    Oqpsk,
}

impl Rate {
    /// Bits per second.
    pub const fn bps(self) -> u64 {
        match self {
            Rate::Dsss1 => 1_000_000,
            Rate::Dsss2 => 2_000_000,
            Rate::Dsss5_5 => 5_500_000,
            Rate::Dsss11 => 11_000_000,
            Rate::Ofdm6 => 6_000_000,
            Rate::Ofdm9 => 9_000_000,
            Rate::Ofdm12 => 12_000_000,
            Rate::Ofdm18 => 18_000_000,
            Rate::Ofdm24 => 24_000_000,
            Rate::Ofdm36 => 36_000_000,
            Rate::Ofdm48 => 48_000_000,
            Rate::Ofdm54 => 54_000_000,
            Rate::Oqpsk250 => 250_000,
        }
    }

    /// Airtime of a frame of `len_bytes`, its MAC header and FCS included: preamble, and its bits.
    /// OFDM adds 22 bits of service and tail and fills the last symbol of 4 us (IEEE 802.11-2012,
    /// 18.4.3, Eq. 18-11); DSSS ends on a whole microsecond (17.3.4).
    pub fn airtime(self, preamble: Preamble, len_bytes: u32) -> Duration {
        let bits = u64::from(len_bytes) * 8;
        let us = match preamble {
            Preamble::Ofdm => 20 + self.symbols_us(bits),
            Preamble::OfdmExtended => 26 + self.symbols_us(bits),
            Preamble::DsssLong => 192 + self.bits_us(bits),
            Preamble::DsssShort => 96 + self.bits_us(bits),
            Preamble::Oqpsk => 192 + self.bits_us(bits),
        };
        Duration::from_micros(us)
    }

    fn symbols_us(self, bits: u64) -> u64 {
        4 * (bits + 22).div_ceil(self.bps() / 250_000)
    }

    fn bits_us(self, bits: u64) -> u64 {
        (bits * 1_000_000).div_ceil(self.bps())
    }

    /// Smallest SINR, dB, for frames to come through: what the receivers of IEEE 802.11-2012 need
    /// at their minimum sensitivity, Tables 18-14 and 17.4.8, less 10 dB of noise figure and 5 dB
    /// of implementation margin.
    pub const fn sinr_db_min(self) -> f64 {
        match self {
            Rate::Dsss1 => 1.0,
            Rate::Dsss2 => 4.0,
            Rate::Dsss5_5 => 6.0,
            Rate::Dsss11 => 9.0,
            Rate::Ofdm6 => 4.0,
            Rate::Ofdm9 => 5.0,
            Rate::Ofdm12 => 7.0,
            Rate::Ofdm18 => 9.0,
            Rate::Ofdm24 => 12.0,
            Rate::Ofdm36 => 16.0,
            Rate::Ofdm48 => 20.0,
            Rate::Ofdm54 => 21.0,
            Rate::Oqpsk250 => 1.0,
        }
    }
}
