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
        /// Window mode: packets dropped at ingress because they had waited for a session for so
        /// long that nobody would have had use for them.
        pub packets_stale: u64,
        /// Packets marked at ingress (ECN) to signal congestion to their flow.
        pub packets_marked: u64,
        /// Window mode: acknowledgements of TCP delivered with a shorter receive window.
        pub windows_clamped: u64,
        /// Acknowledgements made to offer a TCP sender a longer window.
        pub window_updates_sent: u64,
        /// Times the rate was lowered to see whether the queue on the path is this station's own.
        pub rate_drains: u64,
        /// Times another flow filled the queue on the path, so that the rate entered, or stayed in,
        /// competitive mode.
        pub rate_competitions: u64,
        /// Times the rate was lowered to see whether there is a short queue, or the path has become
        /// longer.
        pub rate_probes: u64,
        /// Symbols sent in parts: they had been made for longer frames than the path carries.
        pub symbols_cut: u64,
        /// Frames sent with a part of such a symbol.
        pub part_frames_sent: u64,
        /// Symbols received in parts.
        pub symbols_joined: u64,
        /// Packets refused because they are longer than the tunnel's MTU, or empty.
        pub packets_refused: u64,
        /// Window mode: packets sent with compressed headers.
        pub packets_compressed: u64,
        /// Packets received with compressed headers that could not be restored: the packet that
        /// they refer to was given up.
        pub packets_not_expanded: u64,
        /// Window mode: datagrams of UDP sent to be delivered in order, because their flow takes
        /// what comes late for lost.
        pub datagrams_ordered: u64,
        /// Window mode: times a flow of UDP began to be delivered in order.
        pub flows_ordered: u64,
        /// Window mode: datagrams of UDP that were received, and held until those before them came
        /// or were given up.
        pub datagrams_held: u64,
        /// Window mode: by how much they were late, all together, microseconds: from when it was
        /// first heard of their symbols, or of later ones, until they were delivered.
        pub datagrams_held_us: u64,
        /// Window mode: datagrams of UDP that were held for the longest time allowed, and delivered
        /// before those before them.
        pub datagrams_overdue: u64,
        /// Window mode: by how much a datagram of UDP that was held was late at most, seconds.
        pub datagram_hold_s_max: f64,
        /// Packets handed to the host.
        pub packets_delivered: u64,
        /// Bytes of the packets handed to the host.
        pub bytes_delivered: u64,
        /// Sender: packets in blocks given up before the decoder had them; in window mode, in
        /// symbols dropped before they were acknowledged.
        pub packets_given_up: u64,
        /// Receiver: source symbols skipped because their deadline ran out, or because the sender
        /// gave them up.
        pub symbols_given_up: u64,
        /// Receiver: losses repaired, which are innovative symbols that came as coded or recoded
        /// ones or, in window mode, behind later ones.
        pub symbols_repaired: u64,
        /// Blocks opened by the encoder.
        pub blocks_opened: u64,
        /// Blocks the decoder acknowledged in full.
        pub blocks_acknowledged: u64,
        /// Blocks the encoder gave up.
        pub blocks_given_up: u64,
        /// Source symbols added to blocks by the encoder.
        pub symbols_added: u64,
        /// Source symbols sent uncoded, for the first time.
        pub source_frames_sent: u64,
        /// Window mode: times that new symbols had to wait since the peer had no room for more.
        pub credit_waits: u64,
        /// Window mode: source symbols sent again.
        pub copies_sent: u64,
        /// Window mode: of these, copies of short symbols of real-time and sparse flows, ahead of
        /// need.
        pub copies_ahead_sent: u64,
        /// Window mode: times that symbols were dealt to more or fewer lanes, as the path needed a
        /// longer window, or no longer did.
        pub windows_dealt: u64,
        /// Coded symbols sent by the encoder.
        pub coded_frames_sent: u64,
        /// Recoded symbols sent by the helper.
        pub recoded_frames_sent: u64,
        /// Window mode: symbols sent that the receiver reported as spurious: it lacked nothing that
        /// they could have repaired.
        pub repairs_spurious: u64,
        /// Times the encoder's timer for an acknowledgement expired.
        pub encoder_timeouts: u64,
        /// Acknowledgement frames sent on their own.
        pub ack_frames_sent: u64,
        /// Acknowledgements piggybacked on other frames.
        pub acks_piggybacked: u64,
        /// Handshake and report frames sent.
        pub control_frames_sent: u64,
        /// Probes of the path's MTU sent.
        pub path_probes_sent: u64,
        /// Messages to the host that a packet is longer than the tunnel's MTU.
        pub too_big_told: u64,
        /// All frames sent.
        pub frames_sent: u64,
        /// Bytes of all frames sent, without the underlay's headers.
        pub bytes_sent: u64,
        /// Frames that opened.
        pub frames_accepted: u64,
        /// Symbols received that raised a rank.
        pub symbols_innovative: u64,
        /// Symbols received that did not raise a rank.
        pub symbols_dependent: u64,
        /// Symbols received for blocks that were already finished.
        pub symbols_late: u64,
        /// Symbols that were not taken: their index or length cannot be, as the peer has other
        /// parameters than it announced; or there is no place for another block, where the peer has
        /// more in flight than there is memory for.
        pub symbols_refused: u64,
        /// Keys of one's own, blocks with a helper: source symbols, as they came or as they were
        /// decoded, that are not what their encoder made. None of them is delivered.
        pub tags_failed: u64,
        /// Symbols that were dropped for that: of blocks in which a tag failed, and of the helper
        /// while it is left out.
        pub rows_dropped: u64,
        /// Times that the helper was left out since what it had sent made tags fail.
        pub helpers_left_out: u64,
        /// Frames that did not open: garbage, another key, bit errors, another wire version.
        pub frames_rejected: u64,
        /// Frames that opened but were heard before.
        pub frames_replayed: u64,
        /// Frames under a session that has not answered a challenge.
        pub frames_unknown_session: u64,
        /// Sessions accepted from peers.
        pub sessions_accepted: u64,
        /// Keys of one's own: secrets agreed on with a peer in key exchanges that this station
        /// began.
        pub secrets_agreed: u64,
        /// Cookies taken from peers that many strangers ask to be looked into.
        pub cookies_taken: u64,
        /// Window mode: rate at which frames may go as of the last feedback, low while a queue is
        /// looked at, bits per second of frame bytes; none before feedback, or with a rate of its
        /// own in the configuration.
        pub rate_bps: Option<u64>,
        /// Window mode: both directions share the channel, as configured or found out.
        pub half_duplex: bool,
        /// Latest estimate of e1, the erasure ratio encoder to helper, for what this station sends
        /// (a helper: for either flow).
        pub erasure_ratio_e1: f64,
        /// The same of e2, helper to decoder.
        pub erasure_ratio_e2: f64,
        /// The same of e3, encoder to decoder.
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
