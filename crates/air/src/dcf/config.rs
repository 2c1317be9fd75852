//! Configuration of an 802.11 MAC: timing, contention window, retries, rates.

use core::time::Duration;

use crate::phy::{DSSS, OFDM, Preamble, RadioError, Rate};

/// Largest retry limit, for frames and for RTS, if there is a limit.
pub const MAX_RETRY_LIMIT: u32 = 255;

/// Longest header of a data frame.
pub const MAX_HEADER_BYTES: u32 = 256;

/// Largest contention window: backoffs stay within 16 bits.
pub const MAX_CW: u32 = 65_535;

/// The rate of unicast data frames.
#[derive(Clone, Debug, PartialEq)]
pub enum RateControl {
    /// Always this one.
    Fixed(Rate),
    /// The one with the highest throughput according to recent acknowledgments, with probes of
    /// others: see `dcf/minstrel.rs`.
    Minstrel(Vec<Rate>),
}

/// When a station counts slots again after a missing CTS or ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterTimeout {
    /// From the timeout on, if a DIFS has passed: the channel has been idle meanwhile (IEEE
    /// 802.11-2012, 9.3.2.8 and 9.3.4.3).
    #[default]
    Slots,
    /// After another DIFS, as in ns-3.
    Difs,
    /// Together with the stations that heard the collision: an EIFS after its own transmission, or
    /// a DIFS without [`DcfConfig::eifs`], as in Bianchi's models.
    WithTheOthers,
}

/// An 802.11 MAC under the distributed coordination function (IEEE 802.11-2012, 9.3), without
/// fragmentation, management frames, power saving, or protection of b from g.
#[derive(Clone, Debug, PartialEq)]
pub struct DcfConfig {
    /// The preamble of its frames.
    pub preamble: Preamble,
    /// A slot of backoff: aSlotTime.
    pub slot: Duration,
    /// Before an ACK or a CTS: aSIFSTime. DIFS is this and two slots.
    pub sifs: Duration,
    /// Smallest contention window, aCWmin: backoffs are uniform from 0 to this, inclusive.
    pub cw_min: u32,
    /// Largest contention window, aCWmax, of the form (`cw_min` + 1) 2^m - 1.
    pub cw_max: u32,
    /// Time after a frame within which its ACK or CTS has to begin; in the standard SIFS, a slot,
    /// and aPHY-RX-START-Delay.
    pub response_timeout: Duration,
    /// See [`AfterTimeout`].
    pub after_timeout: AfterTimeout,
    /// Whether a station waits for an EIFS instead of a DIFS after a frame that it could not decode
    /// (9.3.2.3.7).
    pub eifs: bool,
    /// Most attempts of a data frame: dot11ShortRetryLimit; `None` for no limit. With RTS, of RTS
    /// without a CTS.
    pub retry_limit: Option<u32>,
    /// Most attempts of a data frame after a CTS: dot11LongRetryLimit; `None` for no limit.
    pub long_retry_limit: Option<u32>,
    /// Frames longer than this, with header and FCS, use RTS/CTS: dot11RTSThreshold. [`u32::MAX`]:
    /// none.
    pub rts_threshold_bytes: u32,
    /// Header and FCS of a data frame, bytes: 28, and 8 more with LLC and SNAP.
    pub header_bytes: u32,
    /// The basic rates, ascending: an ACK or CTS goes at the highest of them that is not above the
    /// rate of the frame it answers (9.7.6.5).
    pub basic_rates: Vec<Rate>,
    /// The rate of broadcast frames: the lowest basic one, unless given here.
    pub broadcast_rate: Option<Rate>,
    /// The rate of other data frames. RTS go at the rate that a CTS would have.
    pub rates: RateControl,
}

impl DcfConfig {
    /// IEEE 802.11a (2012, Tables 18-17 and 9.3): slots of 9 us, SIFS 16 us, contention window 15
    /// to 1023, seven attempts, basic rates 6, 12 and 24 Mbit/s.
    pub fn a(rate: Rate) -> Self {
        let (slot, sifs) = (Duration::from_micros(9), Duration::from_micros(16));
        DcfConfig {
            preamble: Preamble::Ofdm,
            slot,
            sifs,
            cw_min: 15,
            cw_max: 1023,
            // aPHY-RX-START-Delay: 25 us.
            response_timeout: sifs + slot + Duration::from_micros(25),
            after_timeout: AfterTimeout::default(),
            eifs: true,
            retry_limit: Some(7),
            long_retry_limit: Some(4),
            rts_threshold_bytes: u32::MAX,
            header_bytes: 28,
            basic_rates: vec![Rate::Ofdm6, Rate::Ofdm12, Rate::Ofdm24],
            broadcast_rate: None,
            rates: RateControl::Fixed(rate),
        }
    }

    /// IEEE 802.11b (2012, Table 17-6): slots of 20 us, SIFS 10 us, contention window 31 to 1023,
    /// long preambles, basic rates 1 and 2 Mbit/s.
    pub fn b(rate: Rate) -> Self {
        let (slot, sifs) = (Duration::from_micros(20), Duration::from_micros(10));
        DcfConfig {
            preamble: Preamble::DsssLong,
            slot,
            sifs,
            cw_min: 31,
            // aPHY-RX-START-Delay with a long preamble: 192 us.
            response_timeout: sifs + slot + Duration::from_micros(192),
            basic_rates: vec![Rate::Dsss1, Rate::Dsss2],
            ..DcfConfig::a(rate)
        }
    }

    /// ERP-OFDM of IEEE 802.11g (2012, Table 19-8) without b stations nearby: as a, with SIFS 10 us
    /// and a signal extension of 6 us; slots of 9 us, or of 20 us.
    pub fn g(rate: Rate, short_slot: bool) -> Self {
        let slot = Duration::from_micros(if short_slot { 9 } else { 20 });
        let sifs = Duration::from_micros(10);
        DcfConfig {
            preamble: Preamble::OfdmExtended,
            slot,
            sifs,
            response_timeout: sifs + slot + Duration::from_micros(25),
            ..DcfConfig::a(rate)
        }
    }

    /// SIFS and two slots.
    pub fn difs(&self) -> Duration {
        self.sifs + 2 * self.slot
    }

    /// SIFS, an ACK at the lowest basic rate, DIFS (9.3.7).
    pub fn eifs(&self) -> Duration {
        self.sifs + self.airtime(self.basic_rates[0], super::ACK_BYTES) + self.difs()
    }

    /// Airtime of a frame of this many bytes, header and FCS included.
    pub fn airtime(&self, rate: Rate, mac_bytes: u32) -> Duration {
        rate.airtime(self.preamble, mac_bytes)
    }

    /// The rate of an ACK or CTS that answers a frame at `rate`.
    pub fn control_rate(&self, rate: Rate) -> Rate {
        let fits = |basic: &&Rate| basic.bps() <= rate.bps();
        *self.basic_rates.iter().rev().find(fits).unwrap_or(&self.basic_rates[0])
    }

    /// Checks every range named in the fields' documentation.
    ///
    /// # Errors
    /// The first field found out of its range.
    pub fn check(&self) -> Result<(), RadioError> {
        let span = |field, given: Duration, least: Duration| {
            let fine = given >= least && given <= Duration::from_secs(1);
            if fine { Ok(()) } else { Err(RadioError::Span { field, given }) }
        };
        span("slot", self.slot, Duration::from_nanos(1))?;
        span("sifs", self.sifs, Duration::from_nanos(1))?;
        span("response_timeout", self.response_timeout, self.sifs)?;
        let number = |field, given: u32, least: u32, most: u32| {
            let (given, least, most) = (given.into(), least.into(), most.into());
            let fine = (least..=most).contains(&given);
            if fine { Ok(()) } else { Err(RadioError::Mac { field, given, least, most }) }
        };
        number("cw_min", self.cw_min, 0, MAX_CW)?;
        number("cw_max", self.cw_max, self.cw_min, MAX_CW)?;
        number("header_bytes", self.header_bytes, 0, MAX_HEADER_BYTES)?;
        for limit in [self.retry_limit, self.long_retry_limit].into_iter().flatten() {
            number("retry_limit", limit, 1, MAX_RETRY_LIMIT)?;
        }
        self.check_rates()
    }

    fn check_rates(&self) -> Result<(), RadioError> {
        let known: &[Rate] = match self.preamble {
            Preamble::Ofdm | Preamble::OfdmExtended => &OFDM,
            Preamble::DsssLong | Preamble::DsssShort => &DSSS,
            Preamble::Oqpsk => &[],
        };
        let list = |field, rates: &[Rate]| {
            let fine = !rates.is_empty()
                && rates.iter().all(|rate| known.contains(rate))
                && rates.windows(2).all(|pair| pair[0] < pair[1]);
            if fine { Ok(()) } else { Err(RadioError::Rates { field }) }
        };
        list("basic_rates", &self.basic_rates)?;
        if let Some(rate) = self.broadcast_rate {
            list("broadcast_rate", &[rate])?;
        }
        match &self.rates {
            RateControl::Fixed(rate) => list("rates", &[*rate]),
            RateControl::Minstrel(rates) => list("rates", rates),
        }
    }
}
