//! What may be kept of symbols of which parts have come: none is longer than its sender's symbols
//! are, whatever was announced, and there are no more of them than the sender has cut.

use std::collections::BTreeMap;

use corridor_proto::bounds::{FRAME_LEN_MAX, PARTS_WHOLES_MAX};
use corridor_proto::inspect::Inspection;
use corridor_proto::wire::{
    ENC_LEN, LAST_CHUNK_LEN, RUN_LEN, SEED_LEN, WINDOW_SYMBOL_LEN, symbol_size_max,
};
use corridor_proto::{Mode, Role, StationConfig, StationId};

use super::invariants::{Broken, Invariant, ensure, within};

/// A station, and whom it speaks with by a session of its own, if that is not all.
pub(super) type Sender = (usize, usize);

/// What all stations of a run send.
pub(super) struct Parts {
    /// Longest chunk that each station sends: as of its symbols, which a helper may have recoded.
    chunk_lens: Vec<usize>,
    cuts: BTreeMap<Sender, Cut>,
}

/// Symbols that a sender has cut.
#[derive(Default)]
struct Cut {
    /// Since it started last.
    now: u64,
    /// Before that.
    before: u64,
}

impl Parts {
    pub(super) fn new(configs: impl Iterator<Item = StationConfig>) -> Self {
        let chunk_lens = configs.map(|config| chunk_len_max(&config)).collect();
        Parts { chunk_lens, cuts: BTreeMap::new() }
    }

    /// Looks at a station that has cut so many symbols since it started; `sender` says who a peer
    /// of it is, and that it sends to this one.
    pub(super) fn look(
        &mut self,
        station: Sender,
        (view, symbols_cut): (&Inspection, u64),
        sender: impl Fn(StationId) -> Option<Sender>,
    ) -> Result<(), Broken> {
        let cut = self.cuts.entry(station).or_default();
        if symbols_cut < cut.now {
            cut.before += cut.now;
        }
        cut.now = symbols_cut;
        for of in &view.parts {
            let from = sender(of.peer);
            let len = from.map_or(0, |(station, _)| self.chunk_lens[station]);
            let of_peer = of.peer.0;
            ensure(of.chunk_len_max <= len, Invariant::Bounds, || {
                let taken = of.chunk_len_max;
                format!("chunks of {taken} bytes are taken of {of_peer}, which sends {len} at most")
            })?;
            let cut = from.and_then(|from| self.cuts.get(&from));
            let cut = cut.map_or(0, |cut| cut.before + cut.now);
            let wholes = usize::try_from(cut).unwrap_or(usize::MAX).min(PARTS_WHOLES_MAX);
            let what = format_args!("bytes of what {of_peer} has cut, {cut} symbols");
            within(what, of.bytes, wholes * len)?;
        }
        Ok(())
    }

    /// The same of a node of a mesh, and its station for one neighbour.
    pub(super) fn look_at_node(
        &mut self,
        node: usize,
        view: &Inspection,
        symbols_cut: u64,
    ) -> Result<(), Broken> {
        let at = |peer: StationId| usize::from(peer.0) - 1;
        let to = view.peers.first().map_or(node, |peer| at(peer.id));
        self.look((node, to), (view, symbols_cut), |peer| Some((at(peer), node)))
    }
}

/// Longest chunk of a station's symbols, bytes.
fn chunk_len_max(config: &StationConfig) -> usize {
    let coding = &config.coding;
    let is_recoded = !matches!(config.role, Role::Endpoint { helper: None, .. });
    let symbol_size = match (config.role, usize::from(coding.symbol_size)) {
        // A plain forwarder has no symbols, and ignores the configured size.
        (Role::Plain { .. }, _) | (_, 0) => {
            symbol_size_max(config.frame_len_max, coding, is_recoded)
        }
        (_, told) => told,
    };
    let before = match coding.mode {
        Mode::Window => WINDOW_SYMBOL_LEN,
        Mode::Block => {
            let vector = RUN_LEN + coding.field.vector_len_bytes(coding.block_size.into());
            ENC_LEN + vector.max(SEED_LEN)
        }
    };
    (LAST_CHUNK_LEN + before + symbol_size).min(FRAME_LEN_MAX)
}
