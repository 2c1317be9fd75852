#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    corridor_fuzz::parts(data);
});
