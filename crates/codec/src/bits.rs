//! Elimination over GF(2) for blocks so small that a row is one word.

use crate::kernel::{Grid, RowList};

/// Maximum size of such a block, symbols.
pub(crate) const BLOCK_SIZE_MAX: usize = 64;

/// The first word of a coding vector.
pub(crate) fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Adds the rows whose numbers are set in `numbers`.
pub(crate) fn reduce(grid: &Grid<'_>, mut numbers: u64, mut sum: u64) -> u64 {
    while numbers != 0 {
        sum ^= word(&grid.bytes[numbers.trailing_zeros() as usize * grid.stride..]);
        numbers &= numbers - 1;
    }
    sum
}

/// Turns `from` into row `index`, and adds it to the active rows that have coefficient `index`,
/// which they keep. Writes to `found` the places of rows that have nothing in common with `unheld`,
/// and returns their number.
pub(crate) fn eliminate(
    grid: &mut Grid<'_>,
    list: &RowList,
    index: usize,
    from: u64,
    unheld: u64,
    found: &mut [u16],
) -> usize {
    grid.bytes[index * grid.stride..][..8].copy_from_slice(&from.to_le_bytes());
    let from = from & !(1 << index);
    let mut count = 0;
    for (place, &row) in (0..).zip(list.active()) {
        let bytes = &mut grid.bytes[usize::from(row) * grid.stride..][..8];
        let row = word(bytes);
        let sum = row ^ (from & ((row >> index) & 1).wrapping_neg());
        bytes.copy_from_slice(&sum.to_le_bytes());
        // Branches would be mispredicted.
        if let Some(found) = found.get_mut(count) {
            *found = place;
        }
        count += usize::from(sum & unheld == 0);
    }
    count
}
