//! Counters of a station: what operators watch and experiments record.

use serde::Serialize;

/// Counters since the station started. Frames are what the underlay carries, packets what the
/// hosts send, symbols what the code combines.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Packets taken from the host.
    pub packets_accepted: u64,
    /// Packets refused because the ingress queue was full.
    pub packets_dropped_ingress: u64,
    /// Packets dropped at ingress to tell their flow of congestion.
    pub packets_dropped_codel: u64,
    /// Packets marked at ingress to tell their flow of congestion.
    pub packets_marked: u64,
    /// Acknowledgements of TCP delivered with a shorter window, in window mode.
    pub windows_clamped: u64,
    /// Acknowledgements made to tell a sender of a longer window.
    pub window_updates_sent: u64,
    /// Times the rate was lowered to see whether the queue on the way is this station's own.
    pub rate_drains: u64,
    /// Times it was somebody else's, so that the rate began, or went on, to hold its share beside
    /// whoever fills it.
    pub rate_competitions: u64,
    /// Times the rate was lowered to see whether a short queue is one, or the way has become
    /// longer.
    pub rate_probes: u64,
    /// Packets refused because they are longer than the tunnel's MTU, or empty.
    pub packets_refused: u64,
    /// Packets sent with their headers as differences, in window mode.
    pub packets_compressed: u64,
    /// Such packets received that could not be made whole: what they differ from was given up.
    pub packets_not_expanded: u64,
    /// Packets handed to the host.
    pub packets_delivered: u64,
    /// Bytes of those packets.
    pub bytes_delivered: u64,
    /// Sender side: packets in blocks given up before the decoder had them; in window mode, in
    /// symbols let go of that were not known to have come.
    pub packets_given_up: u64,
    /// Receiver side: source symbols passed over because their deadline ran out.
    pub symbols_given_up: u64,
    /// Blocks opened by the encoder.
    pub blocks_opened: u64,
    /// Blocks the decoder acknowledged in full.
    pub blocks_acknowledged: u64,
    /// Blocks the encoder gave up.
    pub blocks_given_up: u64,
    /// Source symbols added to blocks by the encoder.
    pub symbols_added: u64,
    /// Source symbols sent uncoded.
    pub source_frames_sent: u64,
    /// Source symbols sent again, in window mode.
    pub copies_sent: u64,
    /// Coded symbols sent by the encoder.
    pub coded_frames_sent: u64,
    /// Recoded symbols sent by the helper.
    pub recoded_frames_sent: u64,
    /// Times the encoder waited for an acknowledgement in vain.
    pub encoder_timeouts: u64,
    /// Acknowledgement frames sent on their own.
    pub ack_frames_sent: u64,
    /// Acknowledgements sent at the end of another frame.
    pub acks_piggybacked: u64,
    /// Handshake and report frames sent.
    pub control_frames_sent: u64,
    /// All frames sent.
    pub frames_sent: u64,
    /// Bytes of all frames sent.
    pub bytes_sent: u64,
    /// Frames that opened.
    pub frames_accepted: u64,
    /// Symbols received that raised a rank.
    pub symbols_innovative: u64,
    /// Symbols received that did not.
    pub symbols_dependent: u64,
    /// Symbols received for blocks that were already finished.
    pub symbols_late: u64,
    /// Symbols whose index or length cannot be: the peer has other parameters than it said.
    pub symbols_refused: u64,
    /// Frames that did not open: garbage, a wrong key, bit errors, another wire version.
    pub frames_rejected: u64,
    /// Frames that opened but were heard before.
    pub frames_replayed: u64,
    /// Frames under a session that has not answered a challenge.
    pub frames_unknown_session: u64,
    /// Sessions accepted from peers.
    pub sessions_accepted: u64,
    /// Window mode: rate at which frames may go as of the last feedback, low while a queue is
    /// looked at, bits per second of frame bytes; `None` before feedback, or with a rate of its own
    /// in the configuration.
    pub rate_bps: Option<u64>,
    /// Window mode: both ways share the air, as told or found out.
    pub shares_air: bool,
    /// Latest estimate of e1, e2, e3 for what this station sends (a helper: for either flow).
    pub erasure_ratio_e1: f64,
    /// See `erasure_ratio_e1`.
    pub erasure_ratio_e2: f64,
    /// See `erasure_ratio_e1`.
    pub erasure_ratio_e3: f64,
}
