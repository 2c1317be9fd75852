//! Rates in bits per second, as written in files: `10_000_000`, `1e7`, `"10M"`, `"1.5G"`, `"500k"`.
//!
//! Sizes in bytes are written the same way: [`Bytes`].
//!
//! For serde's `deserialize_with`: [`whole`] and [`whole_option`] if a rate must be an integer,
//! else [`real_option`]; [`Rate`] within lists.

use core::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A valid rate, in words that follow "expected".
pub const EXPECTED: &str = "bits per second, such as 10000000, \"10M\", \"1.5G\" or \"500k\"";
/// Maximum number of significant digits.
const DIGITS_MAX: usize = 15;

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub f64);

impl Rate {
    /// Reads `10M`, `1.5G`, `500k` or `1200`, with decimal multiples.
    ///
    /// `None`: it is invalid.
    pub fn parse(text: &str) -> Option<Rate> {
        let (number, exponent) = match text.char_indices().last()? {
            (at, 'k') => (&text[..at], 3),
            (at, 'M') => (&text[..at], 6),
            (at, 'G') => (&text[..at], 9),
            _ => (text, 0),
        };
        let (whole, fraction) = match number.split_once('.') {
            Some((_, "")) | Some(("", _)) => return None,
            Some(parts) => parts,
            None => (number, ""),
        };
        let digits = format!("{whole}{fraction}");
        let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
        if !is_number || whole.is_empty() || digits.len() > DIGITS_MAX {
            return None;
        }
        // Integers of 15 digits are exact; one division or multiplication rounds once.
        let digits = digits.parse::<u64>().ok()? as f64;
        let shift = exponent - fraction.len() as i32;
        let scale = 10f64.powi(shift.abs());
        Some(Rate(if shift < 0 { digits / scale } else { digits * scale }))
    }

    fn whole<E: Error>(self) -> Result<u64, E> {
        // 2^53: all integers below are exact.
        let is_whole = self.0.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&self.0);
        if is_whole { Ok(self.0 as u64) } else { Err(E::custom(format!("expected {EXPECTED}"))) }
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RateVisitor;

        impl Visitor<'_> for RateVisitor {
            type Value = Rate;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Rate, E> {
                Ok(Rate(value as f64))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Rate, E> {
                Ok(Rate(value as f64))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Rate, E> {
                Ok(Rate(value))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Rate, E> {
                Rate::parse(text).ok_or_else(|| E::custom(format!("expected {EXPECTED}")))
            }
        }

        deserializer.deserialize_any(RateVisitor)
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "number", "minimum": 0 },
                { "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?[kMG]?$" },
            ],
            "x-expected": EXPECTED,
        })
    }
}

/// Reads a rate that is a whole number of bits per second.
///
/// # Errors
/// It is no rate, or not whole.
pub fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Rate::deserialize(deserializer)?.whole()
}

/// As [`whole`], for an optional key with serde's `default`.
///
/// # Errors
/// It is no rate, or not whole.
pub fn whole_option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    whole(deserializer).map(Some)
}

/// Reads the rate of an optional key, with serde's `default`.
///
/// # Errors
/// It is no rate.
pub fn real_option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Rate::deserialize(deserializer).map(|rate| Some(rate.0))
}

/// A valid size, in words that follow "expected".
pub const EXPECTED_BYTES: &str = "bytes, such as 256000000, \"256M\" or \"1.5G\"";

/// A size in bytes, written like a rate, with decimal multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub usize);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = |_| D::Error::custom(format!("expected {EXPECTED_BYTES}"));
        let bytes = Rate::deserialize(deserializer).and_then(Rate::whole::<D::Error>);
        let bytes = bytes.map_err(wrong)?;
        usize::try_from(bytes).map(Bytes).map_err(|_| D::Error::custom("too many bytes"))
    }
}

impl JsonSchema for Bytes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Bytes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?[kMG]?$" },
            ],
            "x-expected": EXPECTED_BYTES,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize as Derive;

    #[derive(Derive)]
    struct File {
        #[serde(deserialize_with = "whole")]
        rate_bps: u64,
        #[serde(default, deserialize_with = "real_option")]
        offered_bps: Option<f64>,
    }

    #[test]
    fn rates_are_read_as_people_write_them() {
        for (text, bps) in [
            ("10_000_000", 10_000_000),
            ("1e7", 10_000_000),
            ("\"10M\"", 10_000_000),
            ("\"1.5G\"", 1_500_000_000),
            ("\"1.1M\"", 1_100_000),
            ("\"500k\"", 500_000),
            ("\"0.123456789G\"", 123_456_789),
            ("\"64000\"", 64_000),
            ("0", 0),
        ] {
            let file: File = toml::from_str(&format!("rate_bps = {text}")).expect(text);
            assert_eq!(file.rate_bps, bps, "{text}");
            assert_eq!(file.offered_bps, None);
        }
        let file: File = toml::from_str("rate_bps = 1\noffered_bps = \"2.5k\"").unwrap();
        assert_eq!(file.offered_bps, Some(2_500.0));
    }

    #[test]
    fn sizes_are_read_as_rates_are() {
        #[derive(Debug, Derive)]
        struct File {
            memory: Bytes,
        }
        let read = |text: &str| toml::from_str::<File>(&format!("memory = {text}"));
        for (text, bytes) in [("256_000_000", 256_000_000), ("\"1.5G\"", 1_500_000_000)] {
            assert_eq!(read(text).unwrap().memory, Bytes(bytes), "{text}");
        }
        for text in ["\"256MB\"", "1.5", "-1", "true"] {
            let said = read(text).expect_err(text).to_string();
            assert!(said.contains("expected bytes, such as 256000000, \"256M\""), "{text}: {said}");
        }
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for text in [
            "\"10 M\"",
            "\"10m\"",
            "\"M\"",
            "\"\"",
            "\"1.M\"",
            "\".5M\"",
            "\"-1M\"",
            "\"10Mbit\"",
            "\"1e7\"",
            "\"0.0001k\"",
            "-1",
            "1.5",
            "nan",
            "1e300",
            "true",
            "[1]",
            "\"1.2.3M\"",
            "\"1234567890123456G\"",
            "\"1\u{0660}M\"",
        ] {
            let error = toml::from_str::<File>(&format!("rate_bps = {text}"));
            let said = error.err().expect(text).to_string();
            assert!(said.contains("\"10M\""), "{text}: {said}");
        }
    }
}
