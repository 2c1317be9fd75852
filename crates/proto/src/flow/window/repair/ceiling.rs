//! A ceiling on repair relative to the payload, where bytes cost money.

/// Symbols that may at least be repaired at once: a burst of losses is repaired as one.
const BURST_SYMBOLS: f64 = 16.0;

/// Bytes that repair may still take. Source symbols earn them, up to what a full window of the
/// longest symbols earns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ceiling {
    /// Bytes of repair per byte of source symbols; `None`: no ceiling.
    ratio: Option<f64>,
    bytes: f64,
    bytes_max: f64,
}

impl Ceiling {
    pub(crate) fn new(ratio: Option<f64>, window_size: u16, symbol_size_max: usize) -> Self {
        let symbols = (ratio.unwrap_or(0.0) * f64::from(window_size)).max(BURST_SYMBOLS);
        let bytes_max = symbols * symbol_size_max as f64;
        Ceiling { ratio, bytes: bytes_max, bytes_max }
    }

    /// A source symbol of `len` bytes is sent.
    pub(crate) fn earn(&mut self, len: usize) {
        let ratio = self.ratio.unwrap_or(0.0);
        self.bytes = (self.bytes + ratio * len as f64).min(self.bytes_max);
    }

    /// A repair symbol of `len` bytes is sent. Loss probes are sent whatever is left, so there may
    /// be a debt, of no more than one burst of them.
    pub(crate) fn spend(&mut self, len: usize) {
        self.bytes = (self.bytes - len as f64).max(-self.bytes_max);
    }

    /// Whether repair may be sent.
    pub(crate) fn allows_repair(&self) -> bool {
        self.ratio.is_none() || self.bytes > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 1_000;

    #[test]
    fn repair_takes_no_more_than_its_share_of_what_goes() {
        for ratio in [0.05, 0.3, 1.5] {
            let mut ceiling = Ceiling::new(Some(ratio), 256, LEN);
            let (sources, mut repairs) = (20_000, 0);
            for _ in 0..sources {
                ceiling.earn(LEN);
                while ceiling.allows_repair() {
                    ceiling.spend(LEN);
                    repairs += 1;
                }
            }
            let burst = (256.0 * ratio).max(BURST_SYMBOLS) + 1.0;
            let most = ratio * f64::from(sources) + burst;
            assert!(f64::from(repairs) <= most, "{repairs} of {most} at {ratio}");
            assert!(f64::from(repairs) > most - 2.0 * burst, "{repairs} of {most} at {ratio}");
        }
    }

    #[test]
    fn without_a_ceiling_repair_goes_on() {
        let mut ceiling = Ceiling::new(None, 1, 1);
        (0..1_000).for_each(|_| ceiling.spend(LEN));
        assert!(ceiling.allows_repair());
    }

    #[test]
    fn a_long_pause_leaves_no_more_than_a_window_earns() {
        let mut ceiling = Ceiling::new(Some(0.5), 100, LEN);
        (0..10_000).for_each(|_| ceiling.earn(LEN));
        let mut repairs = 0;
        while ceiling.allows_repair() {
            ceiling.spend(LEN);
            repairs += 1;
        }
        assert_eq!(repairs, 50);
    }
}
