//! What runs have exercised: counted, so that coverage cannot vanish unnoticed.

use corridor_proto::{DeliveryName, FieldName, GoalName, OrderName, PolicyName, Stats};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::scenario::{Help, Scenario};

macro_rules! features {
    ($($(#[$meta:meta])* $name:ident = $key:literal,)*) => {
        /// A feature that a run can exercise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names in results say it")]
        pub enum Feature { $($name,)* }

        impl Feature {
            /// All features.
            pub const ALL: &[Feature] = &[$(Feature::$name,)*];

            /// Its name in results.
            pub fn key(self) -> &'static str {
                match self { $(Feature::$name => $key,)* }
            }
        }
    };
}

features! {
    Perfect = "perfect_networks",
    MeshHubStar = "meshes_hub_star",
    MeshHubRow = "meshes_hub_row",
    MeshRelayRow = "meshes_relay_row",
    MeshForwarded = "mesh_packets_forwarded",
    MeshMessages = "mesh_router_messages",
    MeshCoded = "mesh_frames_coded",
    MeshDecoded = "mesh_packets_decoded",
    MeshRepairs = "mesh_repairs_sent",
    MeshRepaired = "mesh_packets_repaired",
    MeshLate = "mesh_segments_late",
    MeshOrdered = "mesh_segments_held",
    MeshCut = "mesh_relays_frames_cut",
    MeshHeldUp = "mesh_frames_held_up_refused",
    MeshHeldUpTwice = "mesh_packets_twice_held_up",
    MeshCreditWaits = "mesh_credit_waits",
    MembersChanged = "members_changed",
    MembersStayed = "members_stayed_while_others_changed",
    AddressesChanged = "addresses_changed",
    AddressesAsked = "addresses_asked",
    AddressesFollowed = "addresses_followed",
    FramesCopied = "frames_copied_from_elsewhere",
    SessionsEnd = "sessions_followed_ends",
    SessionsHelper = "sessions_followed_helpers",
    SessionsHub = "sessions_followed_hubs",
    SessionsRelay = "sessions_followed_relays",
    SecretsWindow = "secrets_agreed_windows",
    SecretsHub = "secrets_agreed_hubs",
    Plain = "plain_pairs",
    Helper = "helpers",
    AbsentHelper = "absent_helpers",
    TwoPairs = "two_pairs_on_a_medium",
    SameNumbers = "same_numbers_other_key",
    BothWays = "packets_both_ways",
    UnlikeEnds = "unlike_ends",
    Big = "blocks_over_64_symbols",
    Gf2 = "gf2",
    Gf16 = "gf16",
    Gf256 = "gf256",
    Systematic = "systematic",
    Dense = "dense",
    OnTheFly = "on_the_fly",
    LittleMemory = "hardly_more_memory_than_it_takes",
    PlayNCool = "playncool",
    Credit = "credit",
    FixedLinkErrors = "fixed_link_errors",
    Paced = "paced",
    BurstLosses = "burst_losses",
    Outages = "outages",
    Stalls = "stalls",
    ClockJumps = "clock_jumps",
    MtusChanged = "mtus_changed",
    SymbolsCut = "symbols_cut",
    SymbolsJoined = "symbols_joined_of_parts",
    EndpointRestarts = "endpoint_restarts",
    HelperRestarts = "helper_restarts",
    FramesLost = "frames_lost",
    FramesDuplicated = "frames_duplicated",
    FramesLate = "frames_late",
    FramesForged = "frames_forged",
    FramesInsider = "frames_insider",
    InsiderAccepted = "insider_frames_accepted",
    FramesRejected = "frames_rejected",
    FramesReplayed = "frames_replayed",
    FramesUnknownSession = "frames_unknown_session",
    FramesOpened = "frames_opened",
    FramesBacklogged = "waits_for_a_full_underlay",
    PacketsAccepted = "packets_accepted",
    PacketsDelivered = "packets_delivered",
    PacketsDroppedIngress = "packets_dropped_ingress",
    PacketsGivenUpReceiver = "packets_given_up_receiver",
    PacketsGivenUpSender = "packets_given_up_sender",
    PacketsDied = "packets_died_with_a_station",
    PacketsRepeated = "packets_repeated_after_restart",
    Window = "windows",
    WindowAndBlocks = "window_meets_blocks",
    WindowLowDelay = "window_low_delay",
    WindowBulk = "window_bulk",
    WindowCeiling = "window_repair_has_a_ceiling",
    WindowInOrder = "window_all_in_order",
    WindowImmediate = "window_all_at_once",
    WindowOverdue = "window_datagrams_overdue",
    WindowCopies = "window_copies",
    WindowCoded = "window_coded_frames",
    WindowMarked = "window_packets_marked",
    WindowDropped = "window_packets_dropped_codel",
    WindowCompressed = "window_packets_compressed",
    WindowNotExpanded = "window_packets_not_expanded",
    WindowClamped = "window_tcp_windows_clamped",
    WindowUpdates = "window_tcp_updates",
    WindowGivenUpReceiver = "window_packets_given_up_receiver",
    WindowGivenUpSender = "window_packets_given_up_sender",
    WindowRepeated = "window_packets_repeated_after_restart",
    WindowWrapped = "window_numbers_wrapped",
    WindowDealt = "window_dealt_to_other_lanes",
    BlocksOpened = "blocks_opened",
    BlocksAcknowledged = "blocks_acknowledged",
    BlocksGivenUp = "blocks_given_up",
    SymbolsInnovative = "symbols_innovative",
    SymbolsDependent = "symbols_dependent",
    SymbolsLate = "symbols_late",
    SymbolsRecoded = "symbols_recoded",
    EncoderTimeouts = "encoder_timeouts",
    AcksPiggybacked = "acks_piggybacked",
    AckFrames = "ack_frames",
    OwnKeys = "keys_of_their_own",
    SecretsAgreed = "secrets_agreed",
    SessionsAccepted = "sessions_accepted",
    RowsBent = "rows_bent",
    PacketsBent = "mesh_packets_bent",
    MeshReplayed = "mesh_packets_replayed",
    TagsFailed = "tags_failed",
    RowsDropped = "rows_dropped",
    HelpersLeftOut = "helpers_left_out",
    PeersRestarted = "peers_restarted",
    PeersSilent = "peers_silent",
}

const COUNT: usize = Feature::ALL.len();

/// Counts of features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    totals: [u64; COUNT],
    seeds: [u64; COUNT],
}

impl Default for Coverage {
    fn default() -> Self {
        Coverage { totals: [0; COUNT], seeds: [0; COUNT] }
    }
}

impl Coverage {
    /// Counts a feature of one run.
    pub(super) fn add(&mut self, feature: Feature, count: u64) {
        let at = feature as usize;
        self.totals[at] += count;
        self.seeds[at] = u64::from(self.totals[at] > 0);
    }

    /// Adds the counts of other runs.
    pub fn merge(&mut self, other: &Coverage) {
        for at in 0..COUNT {
            self.totals[at] += other.totals[at];
            self.seeds[at] += other.seeds[at];
        }
    }

    /// How often it was exercised in total.
    pub fn total(&self, feature: Feature) -> u64 {
        self.totals[feature as usize]
    }

    /// How many seeds exercised it.
    pub fn seeds(&self, feature: Feature) -> u64 {
        self.seeds[feature as usize]
    }
}

impl Serialize for Coverage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Entry {
            seeds: u64,
            total: u64,
        }
        let mut map = serializer.serialize_map(Some(COUNT))?;
        for &feature in Feature::ALL {
            let entry = Entry { seeds: self.seeds(feature), total: self.total(feature) };
            map.serialize_entry(feature.key(), &entry)?;
        }
        map.end()
    }
}

/// Counts the ingredients of a scenario.
pub(super) fn count_scenario(scenario: &Scenario, into: &mut Coverage) {
    let mut has = |feature, holds: bool| into.add(feature, u64::from(holds));
    has(Feature::Perfect, scenario.is_perfect());
    has(Feature::TwoPairs, scenario.pairs.len() > 1);
    has(Feature::OwnKeys, scenario.pairs.iter().any(|pair| pair.keys.is_some()));
    has(Feature::SameNumbers, scenario.same_numbers);
    has(Feature::BurstLosses, scenario.network.loss_ppm > 0 && scenario.network.burst_frames > 1);
    has(Feature::Outages, !scenario.outages.is_empty());
    for (number, pair) in scenario.pairs.iter().enumerate() {
        has(Feature::WindowAndBlocks, scenario.speak_differently(number));
        for window in pair.ends.iter().filter_map(|end| end.coding.window) {
            has(Feature::Window, true);
            has(Feature::WindowLowDelay, window.goal == GoalName::LowDelay);
            has(Feature::WindowBulk, window.goal == GoalName::Bulk);
            has(Feature::WindowCeiling, window.max_overhead_percent > 0);
            has(Feature::WindowInOrder, window.delivery == DeliveryName::InOrder);
            has(Feature::WindowImmediate, window.delivery == DeliveryName::Immediate);
        }
        has(Feature::LittleMemory, pair.memory_beyond.is_some());
        has(Feature::Plain, pair.plain);
        has(Feature::Helper, pair.helper == Help::Present);
        has(Feature::AbsentHelper, pair.helper == Help::Absent);
        has(Feature::BothWays, pair.ends.iter().all(|end| end.packets > 0));
        has(Feature::UnlikeEnds, pair.ends[0].coding != pair.ends[1].coding);
        for end in &pair.ends {
            has(Feature::FixedLinkErrors, end.link_errors_ppm.is_some());
            has(Feature::Paced, end.pace_bps.is_some());
        }
        for coding in pair.ends.iter().map(|end| &end.coding).filter(|_| !pair.plain) {
            has(Feature::Big, coding.block_size > 64);
            has(Feature::Gf2, coding.field == FieldName::Gf2);
            has(Feature::Gf16, coding.field == FieldName::Gf16);
            has(Feature::Gf256, coding.field == FieldName::Gf256);
            has(Feature::Systematic, coding.order == OrderName::Systematic);
            has(Feature::Dense, coding.order == OrderName::Dense);
            has(Feature::OnTheFly, coding.order == OrderName::OnTheFly);
            has(Feature::PlayNCool, coding.policy == PolicyName::Playncool);
            has(Feature::Credit, coding.policy == PolicyName::Credit);
        }
    }
}

/// Counts what a station did in its lifetime.
pub(super) fn count_stats(stats: &Stats, into: &mut Coverage) {
    let counts = [
        (Feature::FramesRejected, stats.frames_rejected),
        (Feature::FramesReplayed, stats.frames_replayed),
        (Feature::FramesUnknownSession, stats.frames_unknown_session),
        (Feature::FramesOpened, stats.frames_accepted),
        (Feature::PacketsAccepted, stats.packets_accepted),
        (Feature::PacketsDelivered, stats.packets_delivered),
        (Feature::PacketsDroppedIngress, stats.packets_dropped_ingress),
        (Feature::BlocksOpened, stats.blocks_opened),
        (Feature::BlocksAcknowledged, stats.blocks_acknowledged),
        (Feature::BlocksGivenUp, stats.blocks_given_up),
        (Feature::SymbolsInnovative, stats.symbols_innovative),
        (Feature::SymbolsDependent, stats.symbols_dependent),
        (Feature::SymbolsLate, stats.symbols_late),
        (Feature::SymbolsRecoded, stats.recoded_frames_sent),
        (Feature::EncoderTimeouts, stats.encoder_timeouts),
        (Feature::AcksPiggybacked, stats.acks_piggybacked),
        (Feature::AckFrames, stats.ack_frames_sent),
        (Feature::SymbolsCut, stats.symbols_cut),
        (Feature::SymbolsJoined, stats.symbols_joined),
        (Feature::SecretsAgreed, stats.secrets_agreed),
        (Feature::SessionsAccepted, stats.sessions_accepted),
        (Feature::TagsFailed, stats.tags_failed),
        (Feature::RowsDropped, stats.rows_dropped),
        (Feature::WindowOverdue, stats.datagrams_overdue),
        (Feature::WindowCopies, stats.copies_sent),
        (Feature::WindowCoded, if stats.blocks_opened == 0 { stats.coded_frames_sent } else { 0 }),
        (Feature::WindowMarked, stats.packets_marked),
        (Feature::WindowDropped, stats.packets_dropped_codel),
        (Feature::WindowCompressed, stats.packets_compressed),
        (Feature::WindowNotExpanded, stats.packets_not_expanded),
        (Feature::WindowClamped, stats.windows_clamped),
        (Feature::WindowUpdates, stats.window_updates_sent),
        (Feature::WindowDealt, stats.windows_dealt),
    ];
    counts.into_iter().for_each(|(feature, count)| into.add(feature, count));
}
