//! Settings of a relay.

use core::time::Duration;

/// Maximum queue limit of a relay, packets.
pub const QUEUE_PACKETS_MAX: usize = 4096;
/// Maximum window of packets in flight at a neighbour.
pub const WINDOW_PACKETS_MAX: usize = 256;
/// The paper's hold (Section III-A).
const HOLD: Duration = Duration::from_millis(50);
/// Minimum delay of an overtaken frame behind a later one for the frame to count as held up. Linux
/// keeps out-of-order frames from a neighbour for 100 ms plus up to two of its ticks, at most 10 ms
/// each, before it delivers them (`HT_RX_REORDER_BUF_TIMEOUT` of mac80211).
const HELD_UP_MIN: Duration = Duration::from_millis(120);
/// A frame was certainly held up if a later one arrived this many times that delay before it: two
/// marks of the arrivals measure the delay, not each frame's time.
const HELD_UP_MARKS: u32 = 3;
/// Maximum of any time setting.
pub const SPAN_MAX: Duration = Duration::from_secs(60);

/// Settings of a relay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelayConfig {
    /// Whether to combine packets at all.
    pub coding: bool,
    /// How long a forwarded packet is held to wait for a partner.
    pub hold: Hold,
    /// Which packets may still be combined.
    pub candidates: Candidates,
    /// How long packets are kept for decoding others.
    pub decode_for: Duration,
    /// What the MAC's retry rate controls.
    pub adaptive: Adaptive,
    /// Retries per second above which the channel counts as congested.
    pub retries_per_second: u32,
    /// When to stop sending coded frames to a receiver; none: never.
    pub switch_off: Option<SwitchOff>,
    /// Whether to retransmit what neighbours lack where the MAC does not, and to report to
    /// neighbours which of their frames arrived, so that they can. This applies to packets of coded
    /// frames for the receiver without MAC retries, and to all packets for a neighbour that the MAC
    /// does not reach with its retries.
    pub resend: bool,
    /// With `resend`: whether receivers that probably lack something get combinations of packets
    /// they have not reported while there is nothing else to send.
    pub repair: bool,
    /// Whether TCP segments for this node's host wait for earlier ones, as long as retransmissions
    /// arrive late: see [`InOrder`](crate::in_order::InOrder), which the relay's driver holds for
    /// this purpose.
    pub in_order: bool,
    /// CoDel's target (RFC 8289): acceptable standing delay of packets waiting for the channel;
    /// beyond it some are dropped. None: drop only when the queue is full.
    pub queue_target: Option<Duration>,
    /// Queue limit, packets, including held ones; excess packets are dropped. Up to
    /// [`OWED_MAX`](crate::OWED_MAX) retransmissions may be queued in addition.
    pub queue_packets: usize,
    /// Maximum number of this node's packets that a neighbour may hold without having been
    /// overheard forwarding them; further ones wait here. CoDel then only drops packets that the
    /// node itself originated. None: unlimited.
    pub window_packets: Option<usize>,
    /// Interval of announcements of whom this node hears.
    pub announce_every: Duration,
}

/// How long forwarded packets wait for a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Not at all.
    None,
    /// For a fixed time.
    Fixed(Duration),
    /// While the channel is congested, until the next packet of the opposite flow is expected from
    /// the gaps between its last ones, if that is within `most`.
    Learned {
        /// Maximum wait.
        most: Duration,
    },
    /// While the channel is congested, or if MAC retries are unknown: as long as packets at most
    /// waited for the channel in the last second or two. Such a hold adds no more delay than a
    /// queue already causes, and shortens the queue.
    Waits {
        /// Maximum wait.
        most: Duration,
    },
}

/// Which packets may be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidates {
    /// Packets whose hold has not expired: afterwards they belong to the driver, as in the kernel.
    Held,
    /// All packets waiting for the channel.
    Waiting,
}

/// What the MAC's retries control (CATWOMAN 2013, Sections II-A and IV-B). With
/// [`Candidates::Held`], the two readings differ only in packets held when congestion ends: without
/// a hold, nothing is combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adaptive {
    /// Nothing.
    Off,
    /// Section II-A: packets are held while the channel is congested.
    Holding,
    /// Section IV-B: packets are combined while the channel is congested, and held for it.
    Coding,
}

/// When coding does not pay off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchOff {
    /// Minimum fraction of this node's frames to others that a receiver must overhear.
    pub heard_ratio_min: f64,
    /// Maximum fraction of coded frames that a receiver may fail to decode.
    pub failed_ratio_max: f64,
}

/// Errors of a relay's caller.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RelayError {
    /// A setting is out of its range.
    #[error("{field} = {given}: expected {expected}")]
    Setting {
        /// The setting.
        field: &'static str,
        /// Its value.
        given: f64,
        /// Its range.
        expected: &'static str,
    },
    /// The packet does not fit any frame.
    #[error("packet of {given} bytes: expected 1 to {most}")]
    PacketLen {
        /// Its length.
        given: usize,
        /// The maximum.
        most: usize,
    },
    /// The queue is full.
    #[error("queue is full ({given} packets)")]
    Full {
        /// Its length.
        given: usize,
    },
    /// The packet's hop limit is exhausted.
    #[error("ttl = 0: expected at least 1")]
    Expired,
}

impl Default for RelayConfig {
    /// The settings for use: waiting packets are combined, and only for receivers known to overhear
    /// and to decode; what they still lack is retransmitted. Packets are held no longer than others
    /// wait for the channel, and a standing queue is cut. `retries_per_second` and
    /// `heard_ratio_min` were chosen on the chain of eight nodes of
    /// `experiments/catwoman-fig08-11`.
    fn default() -> Self {
        RelayConfig {
            coding: true,
            hold: Hold::Waits { most: HOLD },
            candidates: Candidates::Waiting,
            decode_for: Duration::from_millis(1500),
            adaptive: Adaptive::Holding,
            retries_per_second: 20,
            switch_off: Some(SwitchOff { heard_ratio_min: 0.6, failed_ratio_max: 0.1 }),
            resend: true,
            repair: true,
            in_order: true,
            queue_target: Some(Duration::from_millis(15)),
            queue_packets: 100,
            window_packets: None,
            announce_every: Duration::from_secs(1),
        }
    }
}

impl RelayConfig {
    /// The paper's settings (Section III-A), always coding: 50 ms of hold, 1500 ms for decoding.
    pub fn paper() -> Self {
        RelayConfig {
            hold: Hold::Fixed(HOLD),
            candidates: Candidates::Held,
            adaptive: Adaptive::Off,
            retries_per_second: 50,
            switch_off: None,
            resend: false,
            in_order: false,
            queue_target: None,
            ..RelayConfig::default()
        }
    }

    /// The paper's settings with adaptive buffering as evaluated in Section IV-B.
    pub fn paper_adaptive() -> Self {
        RelayConfig { adaptive: Adaptive::Coding, ..RelayConfig::paper() }
    }

    /// Pure relaying.
    pub fn plain() -> Self {
        let (coding, resend, in_order) = (false, false, false);
        let (hold, queue_target) = (Hold::None, None);
        RelayConfig { coding, hold, resend, in_order, queue_target, ..RelayConfig::default() }
    }

    /// How long after their arrival here packets that may already have reached the neighbour can be
    /// retransmitted: three quarters of the time for which they are kept for decoding.
    pub fn goes_again_for(&self) -> Duration {
        self.decode_for * 3 / 4
    }

    /// How long before a frame a later one of its sender must have arrived for the frame to count
    /// as held up on its way. After three times as long, it must count as such: so retransmissions
    /// arrive while it is still known whether the packet has arrived before.
    pub fn held_up_after(&self) -> Duration {
        let rest = self.decode_for - self.goes_again_for();
        (rest / HELD_UP_MARKS).max(HELD_UP_MIN)
    }

    /// How long received packets are remembered: while they can be retransmitted, and then may be
    /// on their way.
    pub fn known_for(&self) -> Duration {
        self.goes_again_for() + self.held_up_for()
    }

    /// Maximum transit time of an accepted frame if later ones have arrived.
    pub fn held_up_for(&self) -> Duration {
        HELD_UP_MARKS * self.held_up_after()
    }

    /// Checks every range.
    ///
    /// # Errors
    /// [`RelayError::Setting`] with the first one that is out of its range.
    pub fn check(&self) -> Result<(), RelayError> {
        let span = |field, given: Duration, least: Duration| {
            let (given_s, expected) = (given.as_secs_f64(), "0 to 60 s, timers from 1 ms");
            let fine = (least..=SPAN_MAX).contains(&given);
            if fine { Ok(()) } else { Err(RelayError::Setting { field, given: given_s, expected }) }
        };
        let least = Duration::from_millis(1);
        match self.hold {
            Hold::None => {}
            Hold::Fixed(hold) => span("hold", hold, Duration::ZERO)?,
            Hold::Learned { most } | Hold::Waits { most } => span("hold", most, Duration::ZERO)?,
        }
        self.queue_target.map_or(Ok(()), |target| span("queue_target", target, least))?;
        span("decode_for", self.decode_for, least)?;
        span("announce_every", self.announce_every, least)?;
        if !(2..=QUEUE_PACKETS_MAX).contains(&self.queue_packets) {
            let given = self.queue_packets as f64;
            let expected = "2 to 4096 packets";
            return Err(RelayError::Setting { field: "queue_packets", given, expected });
        }
        if let Some(given) = self.window_packets
            && !(1..=WINDOW_PACKETS_MAX).contains(&given)
        {
            let (given, expected) = (given as f64, "1 to 256 packets, or none");
            return Err(RelayError::Setting { field: "window_packets", given, expected });
        }
        let ratio = |field, given: f64| {
            let expected = "a share from 0 to 1";
            let fine = (0.0..=1.0).contains(&given);
            if fine { Ok(()) } else { Err(RelayError::Setting { field, given, expected }) }
        };
        let Some(SwitchOff { heard_ratio_min, failed_ratio_max }) = self.switch_off else {
            return Ok(());
        };
        ratio("heard_ratio_min", heard_ratio_min)?;
        ratio("failed_ratio_max", failed_ratio_max)
    }
}
