//! Counters of a station, which operators monitor and experiments record.

/// Defines a struct of counters, and a list of their names with their doc comments, so that a
/// counter's description is written once and shown wherever the counter is.
#[macro_export]
macro_rules! counters {
    (
        $(#[$outer:meta])*
        $visibility:vis struct $name:ident {
            $($(#[doc = $doc:literal])+ $field_visibility:vis $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$outer])*
        $visibility struct $name {
            $($(#[doc = $doc])+ $field_visibility $field: $type,)*
        }

        impl $name {
            /// The description of each counter, in the order of the fields.
            pub const DESCRIPTIONS: &'static [$crate::stats::Described] = &[$(
                $crate::stats::Described {
                    name: stringify!($field),
                    text: concat!($($doc),+).trim_ascii(),
                    is_count: <$type as $crate::stats::Join>::IS_COUNT,
                },
            )*];

            /// Adds the counters of another station: counts are summed, and of other values the
            /// larger is kept.
            #[allow(dead_code)] // Not all structs of counters are ever joined.
            $visibility fn join(&mut self, other: &Self) {
                $($crate::stats::Join::join(&mut self.$field, other.$field);)*
            }
        }
    };
}

/// Description of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name.
    pub name: &'static str,
    /// The description.
    pub text: &'static str,
    /// It counts since the start, and never decreases; otherwise it is the latest measurement.
    pub is_count: bool,
}

/// Values of several stations that are combined.
pub trait Join {
    /// Whether such a value is a count.
    const IS_COUNT: bool;

    /// Adds the value of another station.
    fn join(&mut self, other: Self);
}

impl Join for u64 {
    const IS_COUNT: bool = true;

    fn join(&mut self, other: u64) {
        *self = self.saturating_add(other);
    }
}

impl Join for Option<u64> {
    const IS_COUNT: bool = false;

    fn join(&mut self, other: Option<u64>) {
        *self = match (*self, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
    }
}

impl Join for bool {
    const IS_COUNT: bool = false;

    fn join(&mut self, other: bool) {
        *self |= other;
    }
}

impl Join for f64 {
    const IS_COUNT: bool = false;

    fn join(&mut self, other: f64) {
        *self = self.max(other);
    }
}

counters! {
    /// Counters since the station started. Frames are what the underlay carries, packets what the
    /// hosts send, symbols what the code combines.
    #[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
    pub struct Stats {
        /// Packets taken from the host.
        pub packets_accepted: u64,
        /// Bytes of the packets taken from the host.
        pub bytes_accepted: u64,
        /// Packets refused because the ingress queue was full.
        pub packets_dropped_ingress: u64,
        /// Packets dropped at ingress to signal congestion to their flow.
        pub packets_dropped_codel: u64,
        /// Window mode: packets dropped at ingress because they had waited too long for a session
        /// to be of use.
        pub packets_stale: u64,
        /// Packets marked at ingress (ECN) to signal congestion to their flow.
        pub packets_marked: u64,
        /// Window mode: TCP acknowledgments delivered with a reduced receive window.
        pub windows_clamped: u64,
        /// Acknowledgments generated to offer a TCP sender a larger window.
        pub window_updates_sent: u64,
        /// Times the rate was lowered to test whether this station causes the queue on the path.
        pub rate_drains: u64,
        /// Times another flow filled the queue on the path and the rate controller entered, or
        /// stayed in, competitive mode.
        pub rate_competitions: u64,
        /// Times the rate was lowered to tell a short queue from a longer path.
        pub rate_probes: u64,
        /// Symbols sent in parts because they were made for longer frames than the path carries.
        pub symbols_cut: u64,
        /// Frames sent that carry part of such a symbol.
        pub part_frames_sent: u64,
        /// Symbols received in parts.
        pub symbols_joined: u64,
        /// Packets refused because they exceed the tunnel's MTU or are empty.
        pub packets_refused: u64,
        /// Window mode: packets sent with compressed headers.
        pub packets_compressed: u64,
        /// Packets received with compressed headers that could not be restored because the packet
        /// they refer to was given up.
        pub packets_not_expanded: u64,
        /// Window mode: UDP datagrams sent for in-order delivery, because their flow treats
        /// reordered packets as lost.
        pub datagrams_ordered: u64,
        /// Window mode: times a UDP flow switched to in-order delivery.
        pub flows_ordered: u64,
        /// Window mode: UDP datagrams received and held until earlier ones arrived or were given
        /// up.
        pub datagrams_held: u64,
        /// Window mode: total delay of these datagrams, microseconds: from the first frame about
        /// their symbols, or later ones, until delivery.
        pub datagrams_held_us: u64,
        /// Window mode: UDP datagrams held for the maximum time and then delivered ahead of
        /// earlier ones.
        pub datagrams_overdue: u64,
        /// Window mode: longest delay of a held UDP datagram, seconds.
        pub datagram_hold_s_max: f64,
        /// Packets delivered to the host.
        pub packets_delivered: u64,
        /// Bytes of the packets delivered to the host.
        pub bytes_delivered: u64,
        /// Sender: packets given up before they were acknowledged: those in blocks given up or, in
        /// window mode, in symbols dropped.
        pub packets_given_up: u64,
        /// Receiver: source symbols skipped because their deadline passed or the sender gave them
        /// up.
        pub symbols_given_up: u64,
        /// Receiver: losses repaired: innovative coded or recoded symbols or, in window mode,
        /// source symbols received after later ones.
        pub symbols_repaired: u64,
        /// Blocks opened by the encoder.
        pub blocks_opened: u64,
        /// Blocks fully acknowledged by the decoder.
        pub blocks_acknowledged: u64,
        /// Blocks given up by the encoder.
        pub blocks_given_up: u64,
        /// Source symbols added to blocks by the encoder.
        pub symbols_added: u64,
        /// Source symbols sent uncoded for the first time.
        pub source_frames_sent: u64,
        /// Window mode: times new symbols had to wait for space at the peer.
        pub credit_waits: u64,
        /// Window mode: source symbols retransmitted.
        pub copies_sent: u64,
        /// Window mode: of these, short symbols of real-time and sparse flows repeated before any
        /// loss was reported.
        pub copies_ahead_sent: u64,
        /// Window mode: times the number of lanes changed because the path needed a longer or
        /// shorter window, or coding too much of a processor.
        pub windows_dealt: u64,
        /// Coded symbols sent by the encoder.
        pub coded_frames_sent: u64,
        /// Recoded symbols sent by the helper.
        pub recoded_frames_sent: u64,
        /// Window mode: repair symbols sent that the receiver reported as spurious: nothing they
        /// could repair was missing.
        pub repairs_spurious: u64,
        /// Times the encoder's acknowledgment timer expired.
        pub encoder_timeouts: u64,
        /// Acknowledgments sent in frames of their own.
        pub ack_frames_sent: u64,
        /// Acknowledgments piggybacked on other frames.
        pub acks_piggybacked: u64,
        /// Handshake and report frames sent.
        pub control_frames_sent: u64,
        /// Path MTU probes sent.
        pub path_probes_sent: u64,
        /// ICMP messages to the host that a packet exceeds the tunnel's MTU.
        pub too_big_told: u64,
        /// All frames sent.
        pub frames_sent: u64,
        /// Bytes of all frames sent, without the underlay's headers.
        pub bytes_sent: u64,
        /// Frames received and authenticated.
        pub frames_accepted: u64,
        /// Symbols received that were innovative (raised the rank).
        pub symbols_innovative: u64,
        /// Symbols received that were not innovative.
        pub symbols_dependent: u64,
        /// Symbols received for blocks that were already finished.
        pub symbols_late: u64,
        /// Symbols refused: their index or length contradicts the parameters that the peer
        /// announced, or the peer has more blocks in flight than memory here allows.
        pub symbols_refused: u64,
        /// With private keys, blocks with a helper: source symbols, received or decoded, that
        /// failed end-to-end authentication. None of them is delivered.
        pub tags_failed: u64,
        /// Symbols dropped for that reason: those of blocks in which a tag failed, and those of the
        /// helper while it is ignored.
        pub rows_dropped: u64,
        /// Times the helper was ignored for a while because its symbols made tags fail.
        pub helpers_left_out: u64,
        /// Frames that failed authentication: garbage, wrong key, bit errors, other wire version.
        pub frames_rejected: u64,
        /// Authentic frames dropped because they had been received before.
        pub frames_replayed: u64,
        /// Frames of a session that has not answered a challenge.
        pub frames_unknown_session: u64,
        /// Sessions accepted from peers.
        pub sessions_accepted: u64,
        /// With private keys: session secrets agreed on in key exchanges that this station
        /// started.
        pub secrets_agreed: u64,
        /// Cookies accepted from peers under load.
        pub cookies_taken: u64,
        /// Window mode: sending rate as of the last feedback, bits per second of frame bytes,
        /// lowered while a queue is probed; none before feedback, or if the configuration sets the
        /// rate.
        pub rate_bps: Option<u64>,
        /// Window mode: whether both directions share the channel, as configured or detected.
        pub half_duplex: bool,
        /// Latest estimate of e1, the erasure ratio from encoder to helper, for this station's flow
        /// (at a helper: for both flows).
        pub erasure_ratio_e1: f64,
        /// Latest estimate of e2, the erasure ratio from helper to decoder.
        pub erasure_ratio_e2: f64,
        /// Latest estimate of e3, the erasure ratio from encoder to decoder.
        pub erasure_ratio_e3: f64,
    }
}

impl Stats {
    /// The same without what describes the present: what is added up once its station has gone.
    pub(crate) fn without_gauges(&self) -> Stats {
        Stats {
            rate_bps: None,
            half_duplex: false,
            erasure_ratio_e1: 0.0,
            erasure_ratio_e2: 0.0,
            erasure_ratio_e3: 0.0,
            ..self.clone()
        }
    }

    /// A packet of so many bytes was taken from the host.
    pub(crate) fn note_accepted(&mut self, len: usize) {
        self.packets_accepted += 1;
        self.bytes_accepted += len as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_description_of_its_own() {
        let debug = format!("{:?}", Stats::default());
        for Described { name, text, .. } in Stats::DESCRIPTIONS {
            assert!(debug.contains(&format!("{name}: ")), "{name}");
            assert!(
                text.len() > 10 && text.ends_with('.') && !text.contains("  "),
                "{name}: {text}"
            );
        }
        let fields = debug.matches(": ").count();
        assert_eq!(Stats::DESCRIPTIONS.len(), fields);
    }
}
