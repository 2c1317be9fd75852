//! The fuzz targets on random bytes: what `cargo fuzz` does, without its guidance.

use proptest::collection::vec as vec_of;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn block_coders_agree_with_their_twins(data in vec_of(any::<u8>(), 0..700)) {
        corridor_fuzz::block(&data);
    }

    #[test]
    fn window_coders_agree_with_their_twins(data in vec_of(any::<u8>(), 0..700)) {
        corridor_fuzz::window(&data);
    }
}
