//! A path of several hops: links in a row, with forwarding kernels between them. Like those in
//! `radio.rs`, these tests need the right to create network namespaces.

use std::path::Path;

use crate::support::{measure, scenario, try_run};
use corridor_scenario::Row;

fn row(medium: &str, run: &str) -> Row {
    let run = format!("path = 'kernel'\n{run}");
    try_run(&scenario(medium, &run), Path::new("unused")).expect("the kernel path runs")
}

#[test]
fn every_hop_delays_and_all_together_lose_what_they_are_told_to() {
    measure("every_hop_delays_and_all_together_lose_what_they_are_told_to", || {
        let run = "transport = 'udp'\noffered_bps = 4e6\ndatagram_bytes = 400\ne3 = 0.1\n\
            duration_s = 4\ndirection = 'both'";
        let row = row("hops = 4", run);
        let (sent, received) = (row.packets_sent.unwrap(), row.packets_received.unwrap());
        assert!(sent > 9_500, "{row:?}");
        // 10,000 draws at 10 %: a standard deviation of .3 percentage points.
        let lost = 1.0 - received as f64 / sent as f64;
        assert!((lost - 0.1).abs() < 0.015, "lost {lost}: {row:?}");
        assert_eq!((row.packets_out_of_order, row.packets_duplicated), (Some(0), Some(0)));
        // Half the round trip and a frame of 442 bytes, four times each; the rest is the machine's.
        let median = row.delays.delay_p50_s.unwrap();
        assert!((0.0091..0.0151).contains(&median), "{row:?}");
    });
}

#[test]
fn tcp_fills_links_in_a_row_as_it_fills_one() {
    measure("tcp_fills_links_in_a_row_as_it_fills_one", || {
        let row = row("hops = 3", "transport = 'tcp'\ne3 = 0\nduration_s = 3");
        let most = 12e6 * 1448.0 / 1514.0;
        assert!((0.95 * most..=1.005 * most).contains(&row.goodput_bps), "{row:?}");
        assert!(row.valid, "{row:?}");
        // Three frames for each packet, and an acknowledgment for every two.
        assert!(row.air_bytes_per_byte.unwrap() > 3.0, "{row:?}");
    });
}
