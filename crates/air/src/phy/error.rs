//! What can be wrong with radios and their MACs: which field, what was given, what is expected.

use core::time::Duration;

use super::limits::{MAX_DB, MAX_LINKS, MAX_RADIOS};
use crate::error::ErasureError;
use crate::limits::MAX_SPAN;

/// A configuration that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RadioError {
    /// No stations, or too many.
    #[error("stations is {given}, expected 1 to {MAX_RADIOS}")]
    Stations {
        /// Number of stations given.
        given: usize,
    },
    /// A number of decibels or metres that is probably in a wrong unit, or none.
    #[error("{field}{} is {given}, expected a number within {MAX_DB} of zero", At(*.index))]
    Number {
        /// Which field.
        field: &'static str,
        /// Place in the list, if it is one.
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
    /// A span that is zero where it must not be, or in a wrong unit.
    #[error("{field} is {given:?}, expected more than nothing, or at most {MAX_SPAN:?}")]
    Span {
        /// Which field.
        field: &'static str,
        /// Span given.
        given: Duration,
    },
    /// A floor above what is to be sensed or decoded.
    #[error("receiver.floor_dbm is {given}, expected at most {most}: that is sensed or decoded")]
    Floor {
        /// Floor given, dBm.
        given: f64,
        /// Greatest that can be, dBm.
        most: f64,
    },
    /// Not one position for each station.
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
    /// An erasure process that cannot be.
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
    /// A setting of a MAC out of its range.
    #[error("{field} is {given}, expected {least} to {most}")]
    Mac {
        /// Which field.
        field: &'static str,
        /// Number given.
        given: u64,
        /// Least that can be.
        least: u64,
        /// Greatest that can be.
        most: u64,
    },
    /// No rate, or one that the MAC's standard does not have.
    #[error("{field} has no rate that the standard has, expected one at least and no other")]
    Rates {
        /// Which field.
        field: &'static str,
    },
}

/// A place in a list, for a message.
struct At(Option<usize>);

impl core::fmt::Display for At {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.map_or(Ok(()), |index| write!(f, " at {index}"))
    }
}
