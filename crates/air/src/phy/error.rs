//! Errors of radios' and MACs' configurations: which field, what was given, what is expected.

use core::time::Duration;

use super::limits::{MAX_DB, MAX_LINKS, MAX_RADIOS};
use crate::error::ErasureError;
use crate::limits::MAX_SPAN;

/// An invalid configuration.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RadioError {
    /// No stations, or too many.
    #[error("stations is {given}, expected 1 to {MAX_RADIOS}")]
    Stations {
        /// Number of stations given.
        given: usize,
    },
    /// A number of decibels or metres that is not finite, or whose unit is probably wrong.
    #[error("{field}{} is {given}, expected a number within {MAX_DB} of zero", At(*.index))]
    Number {
        /// Which field.
        field: &'static str,
        /// Index in the list, if the field is one.
        index: Option<usize>,
        /// Number given.
        given: f64,
    },
    /// A number that is not above zero.
    #[error("{field} is {given}, expected more than 0")]
    Positive {
        /// Which field.
        field: &'static str,
        /// Number given.
        given: f64,
    },
    /// A number below zero.
    #[error("{field} is {given}, expected 0 or more")]
    Negative {
        /// Which field.
        field: &'static str,
        /// Number given.
        given: f64,
    },
    /// A time that is zero where it must not be, or so long that its unit is probably wrong.
    #[error("{field} is {given:?}, expected more than nothing, or at most {MAX_SPAN:?}")]
    Span {
        /// Which field.
        field: &'static str,
        /// Time given.
        given: Duration,
    },
    /// A floor above the carrier-sense threshold or the sensitivity.
    #[error("receiver.floor_dbm is {given}, expected at most {most}: that is sensed or decoded")]
    Floor {
        /// Floor given, dBm.
        given: f64,
        /// Largest valid value, dBm.
        most: f64,
    },
    /// The number of positions is not that of stations.
    #[error("metres has {given} positions, expected one for each of {stations} stations")]
    Positions {
        /// Positions given.
        given: usize,
        /// Number of stations.
        stations: usize,
    },
    /// Too many links.
    #[error(
        "links has more than {MAX_LINKS}, expected at most so many: fewer stations, further apart, \
         or a greater receiver.floor_dbm, which follows sensitivity and carrier sense"
    )]
    Links,
    /// A link from or to a station that does not exist, or to itself.
    #[error("links[{index}] leads from {from} to {to}, expected two stations below {stations}")]
    LinkEnds {
        /// Place of the link in the list.
        index: usize,
        /// Sending station given.
        from: usize,
        /// Receiving station given.
        to: usize,
        /// Number of stations.
        stations: usize,
    },
    /// The same link twice.
    #[error("links has {from} to {to} more than once, expected each pair at most once")]
    DuplicateLink {
        /// Sending station.
        from: usize,
        /// Receiving station.
        to: usize,
    },
    /// An invalid erasure process.
    #[error("links[{index}].{source} ({from} to {to})")]
    Erasure {
        /// Place of the link in the list.
        index: usize,
        /// Sending station.
        from: usize,
        /// Receiving station.
        to: usize,
        /// What is wrong with it.
        source: ErasureError,
    },
    /// A MAC setting that is out of its range.
    #[error("{field} is {given}, expected {least} to {most}")]
    Mac {
        /// Which field.
        field: &'static str,
        /// Number given.
        given: u64,
        /// Smallest valid number.
        least: u64,
        /// Largest valid number.
        most: u64,
    },
    /// No rate, or one that the MAC's standard does not have.
    #[error("{field} has no rate that the standard has, expected one at least and no other")]
    Rates {
        /// Which field.
        field: &'static str,
    },
}

/// Prints an index in a list, for messages.
struct At(Option<usize>);

impl core::fmt::Display for At {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.map_or(Ok(()), |index| write!(f, " at {index}"))
    }
}
