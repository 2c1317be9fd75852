//! What is needed to draw a plan's network.

use corridor_base::Time;
use corridor_scenario::{Load, Network as NetworkPlan, Point};

use super::error::SimError;
use super::flows::Prepared;
use crate::core::network::Reach;

/// A network to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Sketch {
    /// Positions of nodes from above, metres; on a circle where the plan gives none.
    pub places: Vec<[f64; 2]>,
    /// Whether the plan gives the positions.
    pub is_to_scale: bool,
    /// Who hears and who senses whom by radio.
    pub reaches: Vec<Reach>,
    /// Pipes between two nodes, listed once for both directions.
    pub pipes: Vec<(usize, usize)>,
    /// Source and destination of each flow.
    pub flows: Vec<(usize, usize)>,
}

/// Sketches the network of a point.
///
/// # Errors
/// As [`run`](crate::run()); [`SimError::NothingToSketch`] for a point without a network.
pub fn sketch(point: &Point) -> Result<Sketch, SimError> {
    let Load::Network(plan) = &point.load else {
        return Err(SimError::NothingToSketch);
    };
    let network = Prepared::new(plan, point.seed)?.to_be_watched(point.seed, 0)?;
    debug_assert_eq!(network.now(), Time::ZERO);
    let metres = plan.metres.as_ref();
    let reaches = plan.radios.iter().enumerate().flat_map(|(radio, cell)| {
        let at_nodes = |reach: &Reach| {
            let (from, to) = (cell.nodes[reach.from], cell.nodes[reach.to]);
            Reach { from, to, ..*reach }
        };
        network.reaches(radio).iter().map(at_nodes)
    });
    Ok(Sketch {
        is_to_scale: metres.is_some(),
        places: match metres {
            Some(metres) => metres.iter().map(|&[x, y, _]| [x, y]).collect(),
            None => on_a_circle(plan),
        },
        reaches: reaches.collect(),
        pipes: plan.links.iter().step_by(2).map(|link| (link.from, link.to)).collect(),
        flows: plan.flows.iter().map(|flow| (flow.from, flow.to)).collect(),
    })
}

fn on_a_circle(plan: &NetworkPlan) -> Vec<[f64; 2]> {
    let place = |node: usize| {
        let turn = 2.0 * core::f64::consts::PI * node as f64 / plan.nodes as f64;
        let (sin, cos) = libm::sincos(turn);
        [cos, sin]
    };
    (0..plan.nodes).map(place).collect()
}
