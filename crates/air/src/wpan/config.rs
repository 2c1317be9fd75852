//! What an 802.15.4 MAC is told: backoff, retries, timing.

use core::ops::RangeInclusive;
use core::time::Duration;

use crate::phy::RadioError;

/// A symbol at 2450 MHz.
pub const SYMBOL: Duration = Duration::from_micros(16);

/// Most retries of a frame: the greatest macMaxFrameRetries.
pub const MAX_RETRIES: u32 = 7;

/// Longest frame, header and check sequence included: aMaxPHYPacketSize.
pub const MAX_FRAME_BYTES: u32 = 127;

/// Most symbols of a backoff of TinyOS.
pub const MAX_BACKOFF_SYMBOLS: u32 = 65_535;

/// Which of TinyOS's windows a frame enters after an ACK that did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryWindow {
    /// The large one, as TinyOS's source has it.
    Initial,
    /// The small one, as constrained-defaults-2012, III-B.1, has it.
    Congestion,
}

/// What comes of it when the channel was busy too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenBusy {
    /// The frame is given up ([`crate::radio::SendOutcome::ChannelAccess`]): IEEE 802.15.4-2006,
    /// 7.5.1.4.
    GivesUp,
    /// It costs one of the retries, and the backoff begins anew: "until the channel is found to be
    /// free or all MAC layer retries are spent", constrained-defaults-2012, III-B.1.
    CostsRetry,
}

/// What a station that looks at the channel (CCA) takes for busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LooksFor {
    /// Others at any time of it: the energy is a mean over the whole look (IEEE 802.15.4-2006,
    /// 6.9.7 and 6.9.9), and a part of it by anybody who is sensed suffices.
    AnyoneMeanwhile,
    /// Those who begin within it, or are there at its end. Who ends within it is not seen, as in
    /// ns-3's lr-wpan: between a frame and its ACK others then find the channel free three times as
    /// often.
    WhoeverIsLeft,
}

/// What becomes of a station's own frame while it owes an ACK to another's: the standard does not
/// say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhileAnswering {
    /// Its backoff goes on, blindly as ever.
    GoesOn,
    /// Its backoff or look is broken off, and a new one begins, as behind an attempt, when the ACK
    /// is sent and the radio has turned round again: ns-3's lr-wpan. Who waits for an ACK takes it
    /// for lost.
    BeginsAnew,
}

/// How long a station waits before it looks whether the channel is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// 0 to 2^BE - 1 units of 20 symbols, BE from `min_be` to `max_be`, one more each time the
    /// channel was busy (IEEE 802.15.4-2006, 7.5.1.4, unslotted).
    Exponential {
        /// macMinBE, 0 to `max_be`.
        min_be: u32,
        /// macMaxBE, at most 8.
        max_be: u32,
        /// macMaxCSMABackoffs: so often the channel may be busy, and once more is too often; at
        /// most 255.
        max_backoffs: u32,
        /// See [`WhenBusy`].
        when_busy: WhenBusy,
    },
    /// Uniform, in symbols; the channel may be busy without limit (TinyOS 2, TEP 126).
    TinyOs {
        /// Before a frame is looked at first.
        initial_symbols: RangeInclusive<u32>,
        /// When the channel was busy.
        congestion_symbols: RangeInclusive<u32>,
        /// When no ACK came.
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

    /// The standard's windows as constrained-defaults-2012 words them: until the channel is free or
    /// all retries are spent.
    pub const EXPONENTIAL_PAPER: Backoff = Backoff::Exponential {
        min_be: 3,
        max_be: 5,
        max_backoffs: 4,
        when_busy: WhenBusy::CostsRetry,
    };

    /// As constrained-defaults-2012 words TinyOS's: 20 to 640 symbols, then 20 to 140.
    pub const TINYOS_PAPER: Backoff = Backoff::TinyOs {
        initial_symbols: 20..=640,
        congestion_symbols: 20..=140,
        retry: RetryWindow::Congestion,
    };

    /// As TinyOS's driver of the CC2420 has it.
    pub const TINYOS_SOURCE: Backoff = Backoff::TinyOs {
        initial_symbols: 20..=638,
        congestion_symbols: 20..=158,
        retry: RetryWindow::Initial,
    };
}

/// An 802.15.4 MAC without beacons: unslotted CSMA/CA at 250 kbit/s (IEEE 802.15.4-2006, 7.5.1.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WpanConfig {
    /// How long a station waits before it looks.
    pub backoff: Backoff,
    /// How long it looks: eight symbols (6.9.9).
    pub cca: Duration,
    /// What it looks for.
    pub looks_for: LooksFor,
    /// What it does with a frame of its own while it owes an ACK.
    pub while_answering: WhileAnswering,
    /// From a free channel to the frame: aTurnaroundTime, twelve symbols.
    pub turnaround: Duration,
    /// From a frame's end to its ACK: the same.
    pub ack_turnaround: Duration,
    /// Whether frames to single stations are acknowledged.
    pub acknowledged: bool,
    /// Most retries of a frame that is not acknowledged: macMaxFrameRetries, 0 to [`MAX_RETRIES`].
    pub retries: u32,
    /// How long a station waits for an ACK behind the frame's end: macAckWaitDuration, 54 symbols
    /// here; TinyOS 7.8 ms. The ACK itself has to be there then.
    pub ack_wait: Duration,
    /// Header and check sequence of a frame of data, bytes: 11 with short addresses in one PAN.
    pub header_bytes: u32,
    /// From the end of one frame's exchange to the next backoff: macMinSIFSPeriod, 12 symbols, for
    /// frames of at most 18 bytes with header.
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
