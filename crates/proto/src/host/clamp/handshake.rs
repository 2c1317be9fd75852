//! What the two ends of a connection declare in their SYNs.

use corridor_packet::TcpView;

/// Bytes that timestamps take in each segment.
const TIMESTAMPS_LEN: u32 = 12;
/// MSS of a connection that does not declare one (RFC 9293, Section 3.7.1).
const MSS_DEFAULT: u16 = 536;

/// The content of a SYN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syn {
    /// Its sequence number, and the one after it.
    first: u32,
    pub(crate) end: u32,
    scale: Option<u8>,
    mss: u16,
    has_timestamps: bool,
    is_protected: bool,
}

impl From<&TcpView> for Syn {
    fn from(view: &TcpView) -> Self {
        let options = view.options();
        Syn {
            first: view.sequence,
            end: view.sequence_end(),
            scale: options.scale,
            mss: options.mss.unwrap_or(MSS_DEFAULT),
            has_timestamps: options.timestamps.is_some(),
            is_protected: options.is_protected || view.asks_for_accurate_ecn(),
        }
    }
}

/// What both ends have agreed on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handshake {
    /// The SYNs of the data's sender and receiver.
    near: Option<Syn>,
    far: Option<Syn>,
    /// A SYN of the receiver that is not answered yet.
    far_asks: Option<Syn>,
}

impl Handshake {
    /// Whether the sender's SYN was seen.
    pub(crate) fn is_open(&self) -> bool {
        self.near.is_some()
    }

    /// Whether the sender has sent this SYN before.
    pub(crate) fn has_opened(&self, syn: &Syn) -> bool {
        self.near.is_some_and(|near| near.first == syn.first)
    }

    /// The handshake after the sender reopens the connection; `answered`: the acknowledgment in its
    /// SYN, if it answers the receiver's.
    pub(crate) fn reopened(&self, near: Syn, answered: Option<u32>) -> Self {
        let far = self.far_asks.filter(|far| answered == Some(far.end));
        Handshake { near: Some(near), far, far_asks: None }
    }

    /// Records a SYN of the receiver; returns whether it is an answer. An answer counts once, and
    /// only if it acknowledges what was asked.
    pub(crate) fn note_far(&mut self, view: &TcpView) -> bool {
        if !view.is_ack() {
            self.far_asks = Some(view.into());
            return false;
        }
        let is_answer = self.far.is_none() && self.near.is_some_and(|near| near.end == view.ack);
        if is_answer {
            self.far = Some(view.into());
        }
        is_answer
    }

    /// The sequence numbers after the SYNs of sender and receiver.
    pub(crate) fn ends(&self) -> Option<(u32, u32)> {
        Some((self.near?.end, self.far?.end))
    }

    /// Window scale (shift count) of the sender, as far as it has declared one.
    pub(crate) fn near_shift(&self) -> u8 {
        self.near.and_then(|near| near.scale).unwrap_or(0)
    }

    /// Window scale (shift count) of the receiver; `None` if it is not known yet, or windows must
    /// not be rewritten.
    pub(crate) fn shift(&self) -> Option<u32> {
        let (near, far) = (self.near?, self.far?);
        if near.is_protected || far.is_protected {
            return None;
        }
        // RFC 7323, Section 2.2: windows are scaled if both ends have declared it.
        Some(near.scale.and(far.scale).map_or(0, u32::from))
    }

    /// Bytes of data in the longest segment that both accept.
    pub(crate) fn segment_len(&self) -> Option<u32> {
        let (near, far) = (self.near?, self.far?);
        let stamps = if near.has_timestamps && far.has_timestamps { TIMESTAMPS_LEN } else { 0 };
        Some(u32::from(near.mss.min(far.mss)).saturating_sub(stamps))
    }
}
