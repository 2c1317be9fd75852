//! TCP/NC under the kernel's TCP, over a chain of four lossy hops: the scenario of
//! `scenarios/tcp-nc.toml`, a quarter as long from end to end and in time. That it is five times as
//! fast is for `corridor lab gates --only tcp-nc` to say; eight seconds say three times.

use crate::lab_run;
use crate::support::{Place, alone, with_net};

const SCENARIO: &str = "name = 'hops'\n[medium]\nduplex = 'full'\nhops = 4\n\
    rate_bps = 2_000_000\nrtt_ms = 50\nqueue_frames = 50\n[[run]]\npath = ['kernel', 'coded']\n\
    transport = 'tcp'\nunderlay = 'udp'\ne3 = 0.1\nwarm_up_s = 4\nduration_s = 8\n\
    coding = { preset = 'tcp-nc' }\n";
/// Times that a measurement is repeated, with other losses: a busy machine may have spoilt it, and
/// at a third of the frames lost from end to end a connection may stand still from its beginning
/// (seed 2012 on an idle machine: 49 kbit/s; 2013: 817).
const ATTEMPTS: u32 = 3;
/// Times the kernel's goodput. Its few packets are lost alike in every run, and it had 101 kbit/s;
/// TCP/NC had 349 to 586 in four runs.
const TIMES: f64 = 3.0;

#[test]
fn tcp_nc_carries_three_times_what_the_kernel_does_across_four_hops() {
    with_net("tcp_nc_carries_three_times_what_the_kernel_does_across_four_hops", || {
        let _alone = alone();
        let place = Place::new("hops");
        for attempt in 1..=ATTEMPTS {
            let seed = 2012 + attempt;
            let scenario = place.write("scenario.toml", &format!("seed = {seed}\n{SCENARIO}"));
            let (rows, _) = lab_run(&scenario);
            let [kernel, coded] = &rows[..] else { panic!("{rows:?}") };
            // Every byte is compared, whatever the machine does: lateness is the only excuse.
            let corrupted = rows
                .iter()
                .any(|row| row.notes.iter().any(|note| note.contains("not what was sent")));
            assert!(!corrupted, "{rows:?}");
            let is_fast = coded.goodput_bps >= TIMES * kernel.goodput_bps;
            if is_fast && rows.iter().all(|row| row.valid) {
                return;
            }
            let is_sound = rows.iter().all(|row| row.valid);
            if attempt == ATTEMPTS && !is_sound {
                println!("absent: this machine is too busy for four hops: {:?}", rows[0].notes);
                return;
            }
            assert!(attempt < ATTEMPTS, "{} and {}", kernel.goodput_bps, coded.goodput_bps);
        }
    });
}
