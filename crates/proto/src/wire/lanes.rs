//! Lanes: where a window is longer than one coder can handle, its symbols are dealt to several
//! coders.
//!
//! With n lanes, n a power of two, symbol `id` is in lane `id mod n`, at place `id / n`. A coded
//! symbol covers adjacent places of one lane. With one lane, places are ids.

/// The number of lanes that symbols are dealt to.
///
/// ```
/// use corridor_proto::wire::Lanes;
///
/// let lanes = Lanes::holding(3_000, 1_024);
/// assert_eq!((lanes.count(), Lanes::holding(1_024, 1_024)), (4, Lanes::ONE));
/// assert_eq!((lanes.lane(13), lanes.place(13), lanes.id(1, 3)), (1, 3, 13));
/// // The first place of lane 0 that is not before symbol 13 is that of symbol 16.
/// assert_eq!(lanes.first_place(0, 13), 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lanes(u8);

impl Lanes {
    /// One lane.
    pub const ONE: Self = Lanes(0);
    /// The maximum, 16 lanes.
    pub const MOST: Self = Lanes(4);

    /// From the logarithm to base 2, as on the wire; `None` if it is too large.
    pub fn from_code(code: u8) -> Option<Self> {
        (code <= Self::MOST.0).then_some(Lanes(code))
    }

    /// The logarithm to base 2.
    pub fn code(self) -> u8 {
        self.0
    }

    /// The number of lanes, 1 to 16.
    pub fn count(self) -> usize {
        1 << self.0
    }

    /// The fewest lanes of size `lane_size` that hold `symbols` symbols, at most
    /// [`MOST`](Self::MOST).
    pub fn holding(symbols: usize, lane_size: usize) -> Self {
        let lanes = symbols.div_ceil(lane_size.max(1)).max(1);
        Lanes(lanes.checked_next_power_of_two().map_or(u32::MAX, usize::trailing_zeros) as u8)
            .min(Self::MOST)
    }

    /// Twice as many, at most [`MOST`](Self::MOST).
    pub fn doubled(self) -> Self {
        Lanes(self.0 + 1).min(Self::MOST)
    }

    /// The lane of a symbol.
    pub fn lane(self, id: u64) -> usize {
        (id & self.mask()) as usize
    }

    /// A symbol's place within its lane.
    pub fn place(self, id: u64) -> u64 {
        id >> self.0
    }

    /// The symbol at a place of a lane.
    pub fn id(self, lane: usize, place: u64) -> u64 {
        place << self.0 | lane as u64
    }

    /// The first place of a lane whose symbol is not before this one.
    pub fn first_place(self, lane: usize, id: u64) -> u64 {
        id.saturating_add(self.mask() - lane as u64) >> self.0
    }

    fn mask(self) -> u64 {
        (1 << self.0) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]

        #[test]
        fn each_symbol_has_its_place(code in 0_u8..=4, id in 0_u64..1 << 40, ahead in 0_u64..100) {
            let lanes = Lanes::from_code(code).unwrap();
            prop_assert_eq!(lanes.id(lanes.lane(id), lanes.place(id)), id);
            prop_assert!(lanes.lane(id) < lanes.count());
            // As the schoolbook has it.
            prop_assert_eq!(lanes.lane(id), id as usize % lanes.count());
            let lane = lanes.lane(id + ahead);
            let first = (id..).find(|&other| lanes.lane(other) == lane).unwrap();
            prop_assert_eq!(lanes.first_place(lane, id), lanes.place(first));
        }

        #[test]
        fn lanes_hold_what_they_are_made_for(symbols in 0_usize..20_000, lane_size in 1_usize..1_500) {
            let lanes = Lanes::holding(symbols, lane_size);
            prop_assert!(lanes == Lanes::MOST || lanes.count() * lane_size >= symbols);
            prop_assert!(lanes == Lanes::ONE || lanes.count() / 2 * lane_size < symbols);
        }
    }

    #[test]
    fn no_number_is_too_large() {
        assert_eq!(Lanes::holding(usize::MAX, 0), Lanes::MOST);
        assert_eq!((Lanes::from_code(5), Lanes::from_code(4)), (None, Some(Lanes::MOST)));
        assert_eq!(Lanes::MOST.first_place(3, u64::MAX), u64::MAX >> 4);
    }
}
