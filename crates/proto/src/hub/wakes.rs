//! When the stations of a hub's neighbours want to be woken: asked once after something has
//! happened to them, for a station looks through all that it waits for, and a hub that is held back
//! by its rate would ask all whose packets wait, for each frame.

use core::cell::Cell;

use corridor_base::Time;

/// What stations have said, by their places in a list.
pub(super) struct Wakes(Vec<Cell<Wake>>);

#[derive(Clone, Copy)]
enum Wake {
    Unknown,
    At(Option<Time>),
}

impl Wakes {
    pub(super) fn new(neighbours: usize) -> Self {
        Wakes(vec![Cell::new(Wake::Unknown); neighbours])
    }

    /// Something has happened to a station.
    pub(super) fn forget(&mut self, place: usize) {
        self.0[place].set(Wake::Unknown);
    }

    /// Something has happened to all of them.
    pub(super) fn forget_all(&mut self) {
        self.0.fill(Cell::new(Wake::Unknown));
    }

    /// When a station wants to be woken, which `ask` finds out.
    pub(super) fn of(&self, place: usize, ask: impl FnOnce() -> Option<Time>) -> Option<Time> {
        if let Wake::At(due) = self.0[place].get() {
            debug_assert_eq!(due, ask(), "something has happened to the station at {place}");
            return due;
        }
        let due = ask();
        self.0[place].set(Wake::At(due));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_station_is_asked_once_after_each_thing_that_happens_to_it() {
        let mut wakes = Wakes::new(2);
        let asked = Cell::new(0);
        let due = |wakes: &Wakes, place, nanos| {
            wakes.of(place, || {
                asked.set(asked.get() + 1);
                Some(Time::from_nanos(nanos))
            })
        };
        let at = |nanos| Some(Time::from_nanos(nanos));
        assert_eq!([due(&wakes, 0, 5), due(&wakes, 1, 7)], [at(5), at(7)]);
        let before = asked.get();
        assert_eq!([due(&wakes, 0, 5), due(&wakes, 1, 7)], [at(5), at(7)]);
        // Where assertions are on, what is known is compared.
        assert_eq!(asked.get() - before, if cfg!(debug_assertions) { 2 } else { 0 });
        wakes.forget(1);
        assert_eq!([due(&wakes, 0, 5), due(&wakes, 1, 8)], [at(5), at(8)]);
        wakes.forget_all();
        assert_eq!([due(&wakes, 0, 6), due(&wakes, 1, 9)], [at(6), at(9)]);
    }
}
