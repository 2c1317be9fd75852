//! The peers, each used as documented, with everything reusable prepared in advance.
//!
//! | peer | what it is | given beforehand, not timed |
//! |---|---|---|
//! | rlnc | dense GF(2^8), no systematic mode | encoder with its data, coefficients |
//! | rlnc-simdx | dense, systematic GF(2^8) | aligned sources, coefficients, packets |
//! | reed-solomon-simd | Leopard, GF(2^16), no recoding | coders, sources in the encoder |
//! | raptorq | RFC 6330, no recoding | encoding plan of the block size, packets |
//! | cu-fec | RFC 8681, portable, no recoding | encoder with its window, empty decoder |
//!
//! All of them detect their vector instructions at run time.

pub mod cu_fec;
pub mod raptorq;
pub mod reed_solomon;
pub mod rlnc;
pub mod simdx;

/// Names and versions, as stated in results.
pub const VERSIONS: [(&str, &str); 5] = [
    ("rlnc", "0.8.7"),
    ("rlnc-simdx", "1.3.1"),
    ("reed-solomon-simd", "3.1.0"),
    ("raptorq", "2.0.1"),
    ("cu-fec", "1.3.0"),
];

/// The backend of a peer that does not report its choice.
const DETECTED: &str = "detected";

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_those_that_were_built() {
        let manifest = include_str!("../Cargo.toml");
        for (name, version) in super::VERSIONS {
            let line = manifest.lines().find(|line| line.starts_with(&format!("{name} = ")));
            assert!(line.unwrap().contains(&format!("\"={version}\"")), "{name}");
        }
    }
}
