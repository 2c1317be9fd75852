//! Configuration of an 802.15.4 MAC: backoff, retries, timing.

use core::ops::RangeInclusive;
use core::time::Duration;

use crate::phy::RadioError;

/// Duration of a symbol at 2450 MHz.
pub const SYMBOL: Duration = Duration::from_micros(16);

/// Most retries of a frame: the largest macMaxFrameRetries.
pub const MAX_RETRIES: u32 = 7;

/// Longest frame, header and FCS included: aMaxPHYPacketSize.
pub const MAX_FRAME_BYTES: u32 = 127;

/// Longest backoff of TinyOS, symbols.
pub const MAX_BACKOFF_SYMBOLS: u32 = 65_535;

/// TinyOS's backoff window for a frame whose ACK is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryWindow {
    /// The large one, as in TinyOS's source.
    Initial,
    /// The small one, as in constrained-defaults-2012, III-B.1.
    Congestion,
}

/// What happens when the channel has been busy too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenBusy {
    /// The frame is given up ([`crate::radio::SendOutcome::ChannelAccess`]): IEEE 802.15.4-2006,
    /// 7.5.1.4.
    GivesUp,
    /// It costs one of the retries, and the backoff begins anew: "until the channel is found to be
    /// free or all MAC layer retries are spent", constrained-defaults-2012, III-B.1.
    CostsRetry,
}

/// When a clear channel assessment (CCA) finds the channel busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LooksFor {
    /// If others send at any time during it: the energy is a mean over the whole CCA (IEEE
    /// 802.15.4-2006, 6.9.7 and 6.9.9), and part of it with a station that can be sensed suffices.
    AnyoneMeanwhile,
    /// If others begin during it, or still send at its end. It misses a frame that ends during it,
    /// as in ns-3's lr-wpan: between a frame and its ACK, others then find the channel free three
    /// times as often.
    WhoeverIsLeft,
}

/// What happens to a station's own frame while it owes an ACK: the standard does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhileAnswering {
    /// Its backoff continues, blind as always.
    GoesOn,
    /// Its backoff or CCA is aborted, and a new one begins, as after an attempt, once the ACK is
    /// sent and the radio has turned round: ns-3's lr-wpan. A pending wait for an ACK counts as a
    /// loss.
    BeginsAnew,
}

/// How long a station waits before its CCA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// 0 to 2^BE - 1 units of 20 symbols, BE from `min_be` to `max_be`, one more each time the
    /// channel was busy (IEEE 802.15.4-2006, 7.5.1.4, unslotted).
    Exponential {
        /// macMinBE, 0 to `max_be`.
        min_be: u32,
        /// macMaxBE, at most 8.
        max_be: u32,
        /// macMaxCSMABackoffs: the channel may be busy this often, and once more is too often; at
        /// most 255.
        max_backoffs: u32,
        /// See [`WhenBusy`].
        when_busy: WhenBusy,
    },
    /// Uniform, in symbols; the channel may be busy any number of times (TinyOS 2, TEP 126).
    TinyOs {
        /// Before a frame's first CCA.
        initial_symbols: RangeInclusive<u32>,
        /// After the channel was busy.
        congestion_symbols: RangeInclusive<u32>,
        /// After a missing ACK.
        retry: RetryWindow,
    },
}

impl Backoff {
    /// The standard's: BE 3 to 5, four backoffs.
    pub const STANDARD: Backoff = Backoff::Exponential {
        min_be: 3,
        max_be: 5,
        max_backoffs: 4,
        when_busy: WhenBusy::GivesUp,
    };

    /// The standard's windows as described in constrained-defaults-2012: until the channel is free
    /// or all retries are spent.
    pub const EXPONENTIAL_PAPER: Backoff = Backoff::Exponential {
        min_be: 3,
        max_be: 5,
        max_backoffs: 4,
        when_busy: WhenBusy::CostsRetry,
    };

    /// TinyOS's windows as described in constrained-defaults-2012: 20 to 640 symbols, then 20 to
    /// 140.
    pub const TINYOS_PAPER: Backoff = Backoff::TinyOs {
        initial_symbols: 20..=640,
        congestion_symbols: 20..=140,
        retry: RetryWindow::Congestion,
    };

    /// As in TinyOS's driver of the CC2420.
    pub const TINYOS_SOURCE: Backoff = Backoff::TinyOs {
        initial_symbols: 20..=638,
        congestion_symbols: 20..=158,
        retry: RetryWindow::Initial,
    };
}

/// An 802.15.4 MAC without beacons: unslotted CSMA/CA at 250 kbit/s (IEEE 802.15.4-2006, 7.5.1.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WpanConfig {
    /// How long a station waits before its CCA.
    pub backoff: Backoff,
    /// Length of the CCA: eight symbols (6.9.9).
    pub cca: Duration,
    /// When the CCA finds the channel busy.
    pub looks_for: LooksFor,
    /// What happens to its own frame while it owes an ACK.
    pub while_answering: WhileAnswering,
    /// Time from a free channel to the frame: aTurnaroundTime, twelve symbols.
    pub turnaround: Duration,
    /// Time from a frame's end to its ACK, likewise aTurnaroundTime.
    pub ack_turnaround: Duration,
    /// Whether unicast frames are acknowledged.
    pub acknowledged: bool,
    /// Most retries of a frame that is not acknowledged: macMaxFrameRetries, 0 to [`MAX_RETRIES`].
    pub retries: u32,
    /// How long a station waits for an ACK after the frame's end: macAckWaitDuration, 54 symbols
    /// here; TinyOS 7.8 ms. The ACK has to be complete by then.
    pub ack_wait: Duration,
    /// Header and FCS of a data frame, bytes: 11 with short addresses in one PAN.
    pub header_bytes: u32,
    /// Time from the end of one frame's exchange to the next backoff: macMinSIFSPeriod, 12 symbols,
    /// for frames of at most 18 bytes with header.
    pub sifs: Duration,
    /// The same for longer frames: macMinLIFSPeriod, 40 symbols.
    pub lifs: Duration,
}

impl Default for WpanConfig {
    /// The standard's defaults.
    fn default() -> Self {
        WpanConfig {
            backoff: Backoff::STANDARD,
            cca: 8 * SYMBOL,
            looks_for: LooksFor::AnyoneMeanwhile,
            while_answering: WhileAnswering::GoesOn,
            turnaround: 12 * SYMBOL,
            ack_turnaround: 12 * SYMBOL,
            acknowledged: true,
            retries: 3,
            ack_wait: 54 * SYMBOL,
            header_bytes: 11,
            sifs: 12 * SYMBOL,
            lifs: 40 * SYMBOL,
        }
    }
}

impl WpanConfig {
    /// Checks every range named in the fields' documentation.
    ///
    /// # Errors
    /// The first field found out of its range.
    pub fn check(&self) -> Result<(), RadioError> {
        let number = |field, given: u32, least: u32, most: u32| {
            let (given, least, most) = (given.into(), least.into(), most.into());
            let fine = (least..=most).contains(&given);
            if fine { Ok(()) } else { Err(RadioError::Mac { field, given, least, most }) }
        };
        match &self.backoff {
            Backoff::Exponential { min_be, max_be, max_backoffs, .. } => {
                number("max_be", *max_be, 0, 8)?;
                number("min_be", *min_be, 0, *max_be)?;
                number("max_backoffs", *max_backoffs, 0, 255)?;
            }
            Backoff::TinyOs { initial_symbols, congestion_symbols, .. } => {
                for range in [initial_symbols, congestion_symbols] {
                    number("backoff symbols", *range.end(), 1, MAX_BACKOFF_SYMBOLS)?;
                    number("backoff symbols", *range.start(), 0, *range.end())?;
                }
            }
        }
        number("retries", self.retries, 0, MAX_RETRIES)?;
        number("header_bytes", self.header_bytes, 0, MAX_FRAME_BYTES)?;
        let spans = [
            ("cca", self.cca),
            ("turnaround", self.turnaround),
            ("ack_turnaround", self.ack_turnaround),
            ("ack_wait", self.ack_wait),
            ("sifs", self.sifs),
            ("lifs", self.lifs),
        ];
        match spans.into_iter().find(|&(_, span)| span > Duration::from_secs(1)) {
            Some((field, given)) => Err(RadioError::Span { field, given }),
            None => Ok(()),
        }
    }
}
