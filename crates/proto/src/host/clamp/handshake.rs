//! What both ends of a connection have said in their SYNs.

use corridor_packet::TcpView;

/// Bytes that timestamps take from each segment.
const TIMESTAMPS_LEN: u32 = 12;
/// The longest segment of a connection that says nothing of it (RFC 9293, Section 3.7.1).
const MSS_DEFAULT: u16 = 536;

/// What a SYN said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syn {
    /// Its number, and the one after it.
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

/// What is agreed on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handshake {
    /// What sender and receiver of the data have said.
    near: Option<Syn>,
    far: Option<Syn>,
    /// What the receiver said that has not been answered yet.
    far_asks: Option<Syn>,
}

impl Handshake {
    /// Whether the sender has spoken.
    pub(crate) fn is_open(&self) -> bool {
        self.near.is_some()
    }

    /// Whether this is what the sender has said already.
    pub(crate) fn has_opened(&self, syn: &Syn) -> bool {
        self.near.is_some_and(|near| near.first == syn.first)
    }

    /// The same once the sender has opened the connection anew; `answered` as far as which its SYN
    /// acknowledges what the receiver has asked.
    pub(crate) fn reopened(&self, near: Syn, answered: Option<u32>) -> Self {
        let far = self.far_asks.filter(|far| answered == Some(far.end));
        Handshake { near: Some(near), far, far_asks: None }
    }

    /// A SYN of the receiver. Whether it is an answer, which counts once, and only to what was
    /// asked.
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

    /// The numbers after the SYNs of sender and receiver.
    pub(crate) fn ends(&self) -> Option<(u32, u32)> {
        Some((self.near?.end, self.far?.end))
    }

    /// Bits that windows of the sender are shifted by, as far as it has said so.
    pub(crate) fn near_shift(&self) -> u8 {
        self.near.and_then(|near| near.scale).unwrap_or(0)
    }

    /// Bits that windows of the receiver are shifted by; `None` as long as it is not known, or if
    /// windows are not to be touched.
    pub(crate) fn shift(&self) -> Option<u32> {
        let (near, far) = (self.near?, self.far?);
        if near.is_protected || far.is_protected {
            return None;
        }
        // RFC 7323, Section 2.2: scaled if both have said so.
        Some(near.scale.and(far.scale).map_or(0, u32::from))
    }

    /// Data in the longest segment that both take, bytes.
    pub(crate) fn segment_len(&self) -> Option<u32> {
        let (near, far) = (self.near?, self.far?);
        let stamps = if near.has_timestamps && far.has_timestamps { TIMESTAMPS_LEN } else { 0 };
        Some(u32::from(near.mss.min(far.mss)).saturating_sub(stamps))
    }
}
