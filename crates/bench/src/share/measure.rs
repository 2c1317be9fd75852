//! Measures how flows share a bottleneck.

use std::path::Path;

use corridor_scenario::{Plan, fairness};
use corridor_sim::{check_plan, run};
use serde::Serialize;

use crate::Outcome;
use crate::draw::{Bottleneck, Draws, Kind};

/// A bottleneck and its measurements.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The bottleneck.
    pub bottleneck: Bottleneck,
    /// A short description.
    pub title: String,
    /// Length of the measured interval, seconds.
    pub interval_s: f64,
    /// Each kind of competition.
    pub four: Got,
    pub cubic: Got,
    pub bbr: Got,
    pub cubic_bbr: Got,
}

/// Results of one kind: means over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct Got {
    /// Of four tunnels: Jain's index of their goodputs. Otherwise: the first flow's share of both
    /// goodputs.
    pub value: f64,
    /// Sum of the goodputs, of the bottleneck's rate.
    pub utilisation: f64,
    /// Packets that full queues dropped, both ways, of these and the full frames that the
    /// bottleneck can carry meanwhile one way: about the share dropped, where nearly all are full.
    pub dropped_ratio: f64,
    /// One-way delay of the data above half the round-trip time, 95th percentile, milliseconds:
    /// through the tunnels, or of the flow in a tunnel's place.
    pub delay_p95_ms: f64,
    /// The runs.
    pub runs: Vec<Run>,
}

/// Results of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Seed of its plan.
    pub seed: u64,
    /// Start time of each flow, seconds.
    pub starts_s: Vec<f64>,
    /// Goodput of each flow, bits per second.
    pub goodputs_bps: Vec<f64>,
    /// As in [`Got`].
    pub value: f64,
    pub utilisation: f64,
    pub dropped_ratio: f64,
    pub delay_p95_ms: f64,
}

/// Runs all kinds on a bottleneck, each this many times.
pub fn measure(bottleneck: &Bottleneck, seed: u64, replications: u64) -> Outcome<Measured> {
    let got = |kind: Kind| -> Outcome<Got> {
        let draws = |replication| Draws::new(seed, bottleneck.index, replication);
        let runs = (0..replications).map(|at| measure_run(bottleneck, kind, &draws(at)));
        let runs: Vec<Run> = runs.collect::<Outcome<_>>()?;
        let mean = |of: fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        Ok(Got {
            value: mean(|run| run.value),
            utilisation: mean(|run| run.utilisation),
            dropped_ratio: mean(|run| run.dropped_ratio),
            delay_p95_ms: mean(|run| run.delay_p95_ms),
            runs,
        })
    };
    Ok(Measured {
        bottleneck: bottleneck.clone(),
        title: bottleneck.title(),
        interval_s: bottleneck.interval_s(),
        four: got(Kind::Four)?,
        cubic: got(Kind::Cubic)?,
        bbr: got(Kind::Bbr)?,
        cubic_bbr: got(Kind::CubicBbr)?,
    })
}

fn measure_run(bottleneck: &Bottleneck, kind: Kind, draws: &Draws) -> Outcome<Run> {
    let text = bottleneck.plan(kind, draws);
    let fault = |error: &dyn core::fmt::Display| format!("{error}\nin\n{text}");
    let plan = Plan::parse(&text, Path::new(".")).map_err(|error| fault(&error))?;
    check_plan(&plan).map_err(|(_, error)| fault(&error))?;
    let point = plan.points.first().ok_or_else(|| fault(&"points: none, expected one"))?;
    let measures = run(point, 0).map_err(|error| fault(&error))?.measures;
    let number = |name: &str| {
        let value = measures.value(name).number();
        value.ok_or_else(|| fault(&format!("{name}: absent, expected a number")))
    };
    let of_flow = |flow: usize, what: &str| number(&format!("flow.{flow}.{what}"));
    let goodputs_bps = (0..kind.len()).map(|flow| of_flow(flow, "goodput_bps"));
    let goodputs_bps: Vec<f64> = goodputs_bps.collect::<Result<_, _>>()?;
    let value = value(kind, &goodputs_bps)
        .ok_or_else(|| fault(&"flow.*.goodput_bps: 0 in sum, expected more"))?;
    let mut delay_p95_ms = 0.0;
    for flow in 0..kind.reported() {
        let above_ms = 1e3 * of_flow(flow, "delay_p95_s")? - bottleneck.rtt_ms / 2.0;
        delay_p95_ms += above_ms / kind.reported() as f64;
    }
    let dropped = number("packets_dropped")?;
    Ok(Run {
        seed: draws.seed,
        starts_s: draws.starts_s[..kind.len()].to_vec(),
        value,
        utilisation: goodputs_bps.iter().sum::<f64>() / bottleneck.rate_bps as f64,
        dropped_ratio: dropped / (dropped + bottleneck.frames_carried()),
        delay_p95_ms,
        goodputs_bps,
    })
}

/// Jain's index, or the share of the first; `None` if nothing was received.
fn value(kind: Kind, goodputs_bps: &[f64]) -> Option<f64> {
    let sum_bps: f64 = goodputs_bps.iter().sum();
    match kind {
        Kind::Four => fairness(goodputs_bps),
        Kind::Cubic | Kind::Bbr | Kind::CubicBbr => {
            (sum_bps > 0.0).then(|| goodputs_bps[0] / sum_bps)
        }
    }
}

impl Measured {
    /// Results of a kind.
    pub fn got(&self, kind: Kind) -> &Got {
        match kind {
            Kind::Four => &self.four,
            Kind::Cubic => &self.cubic,
            Kind::Bbr => &self.bbr,
            Kind::CubicBbr => &self.cubic_bbr,
        }
    }

    /// The tunnel's share beside BBR less that of plain cubic in its place.
    pub fn above_cubic(&self) -> f64 {
        self.bbr.value - self.cubic_bbr.value
    }

    /// A line of text.
    pub fn line(&self) -> String {
        let of = |kind: Kind| {
            let Got { value, utilisation, dropped_ratio, delay_p95_ms, .. } = self.got(kind);
            let name = kind.name();
            format!(
                "{name} {value:.3} used {utilisation:.3} dropped {dropped_ratio:.3} p95 \
                 +{delay_p95_ms:.1} ms"
            )
        };
        let Measured { bottleneck, title, .. } = self;
        format!("{:4} {title}: {}", bottleneck.index, Kind::ALL.map(of).join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodputs_give_an_index_or_a_share() {
        assert_eq!(value(Kind::Four, &[1.0, 1.0, 1.0, 1.0]), Some(1.0));
        assert_eq!(value(Kind::Four, &[4.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(value(Kind::Bbr, &[1.0, 3.0]), Some(0.25));
        assert_eq!(Kind::ALL.map(|kind| value(kind, &vec![0.0; kind.len()])), [None; 4]);
    }

    #[test]
    fn a_run_measures_each_flow() {
        let bottleneck = Bottleneck {
            index: 0,
            rate_bps: 2_000_000,
            rtt_ms: 20.0,
            queue_frames: 12,
            loss_ratio: 0.05,
        };
        let draws = Draws::new(1, 0, 0);
        for kind in [Kind::Four, Kind::Cubic] {
            let run = measure_run(&bottleneck, kind, &draws).expect("it can be run");
            assert_eq!((run.goodputs_bps.len(), run.starts_s.len()), (kind.len(), kind.len()));
            assert!((0.6..1.0).contains(&run.utilisation), "{run:?}");
            assert!(run.value > 0.1 && run.delay_p95_ms > 0.0, "{run:?}");
            assert!(run.dropped_ratio > 0.0 && run.dropped_ratio < 0.1, "{run:?}");
        }
    }
}
