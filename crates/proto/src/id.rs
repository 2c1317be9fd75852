//! Numbers of stations.

/// What a station's number may be, as errors say it.
pub(crate) const STATION_NUMBER: &str = "a station number from 1 to 65535";

/// Number of a station within its group, 1 to 65535; unique per pre-shared key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u16);
