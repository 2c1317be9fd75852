//! Settings of a relay.

use core::time::Duration;

/// Most packets that a relay's queue may be given room for.
pub const QUEUE_PACKETS_MAX: usize = 4096;
/// Most packets that may be under way to a neighbour.
pub const WINDOW_PACKETS_MAX: usize = 256;
/// The paper's hold (Section III-A).
const HOLD: Duration = Duration::from_millis(50);
/// By how much a frame that was overtaken may be behind at least, and yet be none that was held up.
/// Linux keeps what came out of order from a neighbour for 100 ms and up to two of its ticks, which
/// are of 10 ms at most, before it hands it on (`HT_RX_REORDER_BUF_TIMEOUT` of mac80211).
const HELD_UP_MIN: Duration = Duration::from_millis(120);
/// A frame was held up for certain where one behind it came so many times as long before as that it
/// may have been: two marks of what came tell how long ago it was, not each frame's time.
const HELD_UP_MARKS: u32 = 3;
/// Longest time of any setting.
pub const SPAN_MAX: Duration = Duration::from_secs(60);

/// Settings of a relay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelayConfig {
    /// Whether packets are combined at all.
    pub coding: bool,
    /// How long a packet of others waits for a partner.
    pub hold: Hold,
    /// Which packets may still get a partner.
    pub candidates: Candidates,
    /// How long packets are kept by which others are decoded.
    pub decode_for: Duration,
    /// What the MAC's retries decide.
    pub adaptive: Adaptive,
    /// Retries in a second beyond which the channel counts as congested.
    pub retries_per_second: u32,
    /// When a receiver is sent no coded frames; none: it always is.
    pub switch_off: Option<SwitchOff>,
    /// Whether what neighbours lack is sent again where the MAC does not see to it, and what comes
    /// of neighbours' frames is reported to them for it: packets of coded frames for the receiver
    /// without retries, and all packets for one that the MAC does not reach with its retries.
    pub resend: bool,
    /// With `resend`: whether receivers that are likely to lack something get combinations of what
    /// they have not reported while there is nothing else to send.
    pub repair: bool,
    /// Whether segments of TCP for this node's host wait for those before them, as long as what is
    /// sent again comes late: [`InOrder`](crate::in_order::InOrder), which whoever drives the relay
    /// has for it.
    pub in_order: bool,
    /// How long packets may wait for the air for good: beyond it some are dropped, as CoDel has it
    /// (RFC 8289); none: only what finds the queue full.
    pub queue_target: Option<Duration>,
    /// Packets that wait, those held among them; others are dropped. Up to
    /// [`OWED_MAX`](crate::OWED_MAX) that are sent again may wait besides.
    pub queue_packets: usize,
    /// Packets of this node's that a neighbour may have without having been heard to pass them on;
    /// what is beyond waits here. Then only packets of the node's own are dropped for their wait.
    /// None: any number.
    pub window_packets: Option<usize>,
    /// How often neighbours are told who is heard.
    pub announce_every: Duration,
}

/// How long packets of others wait for a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Not at all.
    None,
    /// So long.
    Fixed(Duration),
    /// While the channel is congested, until the next packet of the opposite flow is expected by
    /// the gaps between its last ones, if that is within so long.
    Learned {
        /// Longest wait.
        most: Duration,
    },
    /// While the channel is congested, or nobody tells of the MAC's retries: as long as packets had
    /// to wait for the air at most in the last second or two. Then a hold delays nothing by more
    /// than a queue does already, and makes that shorter.
    Waits {
        /// Longest wait.
        most: Duration,
    },
}

/// Which packets may get a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidates {
    /// Those whose hold lasts: behind it they are the driver's, as in the kernel.
    Held,
    /// All that wait for the air.
    Waiting,
}

/// What retries of the MAC decide (CATWOMAN 2013, Sections II-A and IV-B). With
/// [`Candidates::Held`] the two readings differ only for what is held when congestion ends: without
/// a hold nothing is combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adaptive {
    /// Nothing.
    Off,
    /// Section II-A: packets are held while the channel is congested.
    Holding,
    /// Section IV-B: packets are combined while the channel is congested, and held for it.
    Coding,
}

/// When coding does not pay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchOff {
    /// Least share of this node's frames to others that a receiver must hear.
    pub heard_ratio_min: f64,
    /// Greatest share of coded frames that a receiver may fail to decode.
    pub failed_ratio_max: f64,
}

/// What cannot be.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RelayError {
    /// A setting out of its range.
    #[error("{field} = {given}: expected {expected}")]
    Setting {
        /// Which.
        field: &'static str,
        /// What it was.
        given: f64,
        /// Its range.
        expected: &'static str,
    },
    /// A packet that no frame has room for.
    #[error("packet of {given} bytes: expected 1 to {most}")]
    PacketLen {
        /// Its length.
        given: usize,
        /// The longest.
        most: usize,
    },
    /// The queue has no room.
    #[error("queue is full ({given} packets)")]
    Full {
        /// Its length.
        given: usize,
    },
    /// The packet may make no more hops.
    #[error("ttl = 0: expected at least 1")]
    Expired,
}

impl Default for RelayConfig {
    /// What is for use: what waits is combined, and only for receivers that are known to hear and
    /// to decode; what they lack all the same is sent again. Packets are held no longer than
    /// others wait for the air, and what stands is dropped. `retries_per_second` and
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
    /// The paper's (Section III-A), always coding: 50 ms of hold, 1500 ms for decoding.
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

    /// The paper's with adaptive buffering as Section IV-B evaluates it.
    pub fn paper_adaptive() -> Self {
        RelayConfig { adaptive: Adaptive::Coding, ..RelayConfig::paper() }
    }

    /// Pure relaying.
    pub fn plain() -> Self {
        let (coding, resend, in_order) = (false, false, false);
        let (hold, queue_target) = (Hold::None, None);
        RelayConfig { coding, hold, resend, in_order, queue_target, ..RelayConfig::default() }
    }

    /// How long packets that may have come go again, since they came here: three quarters of the
    /// time for which they are kept to decode others.
    pub fn goes_again_for(&self) -> Duration {
        self.decode_for * 3 / 4
    }

    /// How long before a frame another one must have come that its sender has sent later, that the
    /// frame may count as held up on its way. Three times as long, and it has to: so what may go
    /// again comes while it is known whether it has come.
    pub fn held_up_after(&self) -> Duration {
        let rest = self.decode_for - self.goes_again_for();
        (rest / HELD_UP_MARKS).max(HELD_UP_MIN)
    }

    /// How long it is known which packets have come: while they may go again, and may be on their
    /// way then.
    pub fn known_for(&self) -> Duration {
        self.goes_again_for() + self.held_up_for()
    }

    /// How long a frame may be on its way at most that is taken, if later ones have come.
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
