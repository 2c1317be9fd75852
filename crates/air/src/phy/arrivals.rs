//! Frames arriving at a station at the same time: rarely more than two, which are kept inline with
//! the station's state.

/// A transmission on the air.
pub type TransmissionIndex = u32;

/// Number of frames kept inline.
const IN_PLACE: usize = 2;

/// An arriving frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Arriving {
    pub transmission: TransmissionIndex,
    pub erased: bool,
    pub power_mw: f64,
}

/// An empty slot.
const EMPTY: Arriving =
    Arriving { transmission: TransmissionIndex::MAX, erased: false, power_mw: 0.0 };

/// Frames in the order in which they began to arrive.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// Empty slots are last.
    first: [Arriving; IN_PLACE],
    /// The following ones: none while there is an empty slot.
    more: Vec<Arriving>,
}

impl Arrivals {
    pub fn new() -> Self {
        Arrivals { first: [EMPTY; IN_PLACE], more: Vec::new() }
    }

    /// Appends a frame.
    pub fn push(&mut self, arriving: Arriving) {
        match self.first.iter_mut().find(|place| place.transmission == EMPTY.transmission) {
            Some(place) => *place = arriving,
            None => self.more.push(arriving),
        }
    }

    /// Removes a transmission.
    pub fn remove(&mut self, transmission: TransmissionIndex) -> Option<Arriving> {
        let is_it = |arriving: &Arriving| arriving.transmission == transmission;
        let Some(place) = self.first.iter().position(is_it) else {
            let place = self.more.iter().position(is_it)?;
            return Some(self.more.remove(place));
        };
        let removed = self.first[place];
        self.first.copy_within(place + 1.., place);
        let next = if self.more.is_empty() { EMPTY } else { self.more.remove(0) };
        self.first[IN_PLACE - 1] = next;
        Some(removed)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arriving> {
        let first = self.first.iter();
        first.take_while(|it| it.transmission != EMPTY.transmission).chain(&self.more)
    }

    /// Total power arriving, mW: summed anew each time, so that no rounding errors accumulate.
    pub fn sum_mw(&self) -> f64 {
        self.iter().map(|arriving| arriving.power_mw).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order is that of a plain list, whatever is added and removed.
    #[test]
    fn they_are_a_list() {
        let mut list: Vec<u32> = Vec::new();
        let mut arrivals = Arrivals::new();
        let mut state = 1u32;
        for step in 0..2_000u32 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let place = (state >> 16) as usize;
            if list.len() < 6 && state >> 31 == 0 {
                list.push(step);
                arrivals.push(Arriving { transmission: step, erased: false, power_mw: 1.0 });
            } else if !list.is_empty() {
                let gone = list.remove(place % list.len());
                assert_eq!(arrivals.remove(gone).map(|it| it.transmission), Some(gone));
            }
            assert!(arrivals.iter().map(|it| it.transmission).eq(list.iter().copied()));
            assert_eq!(arrivals.sum_mw(), list.len() as f64);
            assert_eq!(arrivals.remove(step + 1), None);
        }
    }
}
