//! Delay of window mode on one hop with a saturated source and no ingress queue, for several loss
//! ratios and round-trip times, beside the frontier of coded delivery.
//! `corridor lab gates --only frontier` judges the result.
//!
//! `cargo run --release -p corridor-sim --example frontier [seconds] [throughput|low-delay|bulk]`
//!
//! `QUEUE=50` gives the link a queue of that many frames, which the sender cannot see, instead of
//! one.
use core::time::Duration;

use corridor_proto::Goal;
use corridor_sim::frontier::{FRONTIER, Hop, saturate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let seconds = args.next().map_or(Ok(60), |seconds| seconds.parse())?;
    let goal = match args.next().as_deref() {
        Some("low-delay") => Goal::LowDelay,
        Some("bulk") => Goal::Bulk,
        _ => Goal::Throughput,
    };
    let queue_frames = std::env::var("QUEUE").map_or(Ok(1), |frames| frames.parse())?;
    println!("rtt loss share | p50 p95 p99 (frontier) | coded copies dependent timeouts acks");
    for best in FRONTIER.iter().filter(|best| best.goal == goal) {
        let hop = Hop { queue_frames, ..best.hop(Duration::from_secs(seconds), 0) };
        let measured = saturate(&hop)?;
        let share = hop.share(measured.packets);
        print!("{:3} {:2} % {share:.3} |", best.rtt_ms, best.loss_percent);
        for (quantile, best_ms) in [0.5, 0.95, 0.99].into_iter().zip(best.delays_ms) {
            let ms = measured.delay_ms(quantile).unwrap_or(f64::NAN);
            print!(" {ms:6.1} ({best_ms:3.0}, {:.2})", ms / best_ms);
        }
        let (sender, receiver) = (&measured.sender, &measured.receiver);
        println!(
            " | {} {} {} {} {}",
            sender.coded_frames_sent,
            sender.copies_sent,
            receiver.symbols_dependent,
            sender.encoder_timeouts,
            receiver.ack_frames_sent
        );
    }
    Ok(())
}
