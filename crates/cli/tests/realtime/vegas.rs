//! FRANC's Section V-C: Vegas instead of Cubic under the paper's coding, with the kernel's own TCP
//! if the kernel has Vegas. The claim, a reduction by at least half, is FRANC-V of
//! `experiments/franc-fig13`.

use corridor_scenario::Congestion;
use corridor_testing::realtime::{Measured, until_it_holds};

use crate::support::{Place, alone, with_net};
use crate::{judge, lab_run};

const SCENARIO: &str = "name = 'vegas'\nseed = 2014\ningress_packets = 100\n[medium]\n\
    duplex = 'half'\nrate_bps = 12_000_000\noverhead_us = 400\nrtt_ms = 4\nqueue_frames = 4\n\
    [[run]]\npath = 'coded'\ntransport = 'tcp'\ncongestion = ['cubic', 'vegas']\ne3 = 0.0\n\
    duration_s = 6\ncoding = { preset = 'paper' }\n";
/// Minimum ratio of Cubic's median delay to that of Vegas.
const TIMES: f64 = 2.0;

#[test]
fn vegas_waits_half_as_long_as_cubic_under_the_papers_coding() {
    with_net("vegas_waits_half_as_long_as_cubic_under_the_papers_coding", || {
        let _alone = alone();
        let place = Place::new("vegas");
        let scenario = place.write("scenario.toml", SCENARIO);
        until_it_holds("Vegas", |_| {
            let (rows, said) = lab_run(&scenario);
            assert!(rows.iter().all(|row| row.goodput_bps > 1e6), "{rows:?}");
            if let Some(absent) = said.lines().find(|line| line.starts_with("absent:")) {
                println!("{absent}");
                assert!(absent.contains("vegas") && absent.contains("1 of 2 runs"), "{absent}");
                assert!(rows.len() == 1 && rows[0].congestion == Some(Congestion::Cubic));
                return Measured::Holds;
            }
            let [cubic, vegas] = &rows[..] else { panic!("{rows:?}") };
            let [cubic_s, vegas_s] = [cubic, vegas].map(|row| row.delays.delay_p50_s.unwrap());
            judge(&rows, cubic_s >= TIMES * vegas_s)
        });
    });
}
