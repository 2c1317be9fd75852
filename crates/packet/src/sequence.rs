//! TCP sequence numbers, which wrap (RFC 9293, Section 3.4).

/// Distance from one sequence number forward to another; zero if the latter is not beyond.
pub fn distance(from: u32, to: u32) -> u32 {
    if is_after(to, from) { to.wrapping_sub(from) } else { 0 }
}

/// Whether a sequence number is beyond another.
pub fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// The later of two sequence numbers.
pub fn later(a: u32, b: u32) -> u32 {
    if is_after(a, b) { a } else { b }
}
