//! The way of a packet, in step 5: whether what a block decodes to is what its encoder made.
//!
//! A forged row spoils what is decoded with it, and shows only then. So each decoded symbol is
//! checked against its tag before anything else learns of it, and a source symbol even before it is
//! accepted. If a check fails, the helper's rows are dropped first; the encoder's rows are kept for
//! this purpose. The helper is to blame once everything that is left is proven, which may take more
//! rows of the encoder. If a tag fails even without the helper's rows, rows in the encoder's name
//! are forged, and all are dropped except for proven symbols. Before any tag of a run has been
//! valid, nobody is to blame.

use std::num::NonZeroU16;

use corridor_codec::{BlockDecoder, Field, Outcome};

use crate::flow::block::tags::SymbolTags;
use crate::wire::{Enc, Form};

/// Who sent a row, according to the key that sealed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The encoder of the flow.
    Encoder,
    /// The helper.
    Helper,
}

/// What was found out about rows after a tag has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Rows in the encoder's name are forged.
    Unknown,
    /// Without the helper's rows no tag failed, but the block was given up before all others were
    /// proven.
    Suspected,
    /// Without the helper's rows all are proven.
    Helper,
}

/// The verdict that has not been asked for yet.
#[derive(Debug, Default)]
pub(crate) struct Blame {
    verdict: Option<Verdict>,
    /// Whether any tag of this run of the encoder has been valid.
    has_proven: bool,
}

impl Blame {
    pub(crate) fn note(&mut self, verdict: Option<Verdict>) {
        self.verdict = self.verdict.max(verdict);
    }

    /// A block was given up in dispute: so would be the next.
    pub(crate) fn suspect(&mut self) {
        if self.has_proven {
            self.note(Some(Verdict::Suspected));
        }
    }

    /// Ends the dispute about a block, if possible. Where no tag is ever valid, the helper need not
    /// be the reason.
    pub(crate) fn settle(&mut self, proof: &mut Proof, coder: &BlockDecoder) {
        self.has_proven |= proof.has_proven();
        if self.has_proven {
            self.note(proof.settle(coder));
        }
    }

    pub(crate) fn take(&mut self) -> Option<Verdict> {
        self.verdict.take()
    }
}

/// What is proven of a block, and the rows that it was made of.
pub(crate) struct Proof {
    /// One bit per symbol: decoded, and as its encoder made it.
    proven: Vec<u64>,
    proven_count: usize,
    /// Number of innovative rows of the helper.
    helper_rows: usize,
    /// Coded rows of the encoder: at most as many as the block has symbols.
    own_rows: Vec<Row>,
    /// A tag failed with rows of both the helper and the encoder. Until it is known whose were
    /// forged, the helper's are not accepted.
    is_disputed: bool,
}

struct Row {
    count: NonZeroU16,
    seed: u32,
    payload: Vec<u8>,
}

impl Proof {
    /// Bytes of a stored row, without its payload.
    pub(crate) const ROW_BYTES: usize = size_of::<Row>();

    pub(crate) fn new(block_size: u16) -> Self {
        Proof {
            proven: vec![0; usize::from(block_size).div_ceil(64)],
            proven_count: 0,
            helper_rows: 0,
            own_rows: Vec::new(),
            is_disputed: false,
        }
    }

    /// Whether it is still unknown whose rows made a tag fail.
    pub(crate) fn is_disputed(&self) -> bool {
        self.is_disputed
    }

    /// Whether any symbol of the block is proven.
    pub(crate) fn has_proven(&self) -> bool {
        self.proven_count > 0
    }

    /// Whether any rows come from the helper.
    pub(crate) fn has_helper_rows(&self) -> bool {
        self.helper_rows > 0
    }

    /// Whether a row may be accepted: a source symbol has to come from the encoder, and be proven.
    pub(crate) fn admits(tags: &SymbolTags, block: u32, enc: &Enc<'_>, origin: Origin) -> bool {
        match (enc.form, origin) {
            (Form::Tagged { index }, Origin::Encoder) => {
                tags.is_genuine((block, index), enc.symbol)
            }
            (Form::Seeded { .. }, Origin::Encoder) | (Form::Explicit { .. }, Origin::Helper) => {
                true
            }
            _ => false,
        }
    }

    /// Records an innovative row that was accepted.
    pub(crate) fn note(&mut self, enc: &Enc<'_>, origin: Origin) {
        match (enc.form, origin) {
            (_, Origin::Helper) => self.helper_rows += 1,
            (Form::Tagged { index }, _) => self.prove(index.into()),
            (Form::Seeded { count, seed }, _) => {
                self.own_rows.push(Row { count, seed, payload: enc.symbol.to_vec() });
            }
            _ => {}
        }
    }

    fn prove(&mut self, index: usize) {
        if let Some(word) = self.proven.get_mut(index / 64)
            && *word >> (index % 64) & 1 == 0
        {
            *word |= 1 << (index % 64);
            self.proven_count += 1;
        }
    }

    fn is_proven(&self, index: usize) -> bool {
        self.proven.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Checks decoded symbols against their tags; returns how many fail.
    pub(crate) fn check(&mut self, tags: &SymbolTags, block: u32, coder: &BlockDecoder) -> u64 {
        let mut failed = 0;
        if coder.decoded_count() == self.proven_count {
            return failed;
        }
        for index in 0..coder.known_count() {
            let Some(symbol) = coder.symbol(index).filter(|_| !self.is_proven(index)) else {
                continue;
            };
            if tags.is_genuine((block, index as u16), symbol) {
                self.prove(index);
            } else {
                failed += 1;
            }
        }
        failed
    }

    /// Drops rows until no tag fails. Returns a verdict if the encoder's rows were dropped too, and
    /// how many tags failed on the way.
    pub(crate) fn mend(
        &mut self,
        tags: &SymbolTags,
        block: u32,
        coder: &mut BlockDecoder,
    ) -> (Option<Verdict>, u64) {
        let mut failed = 0;
        if self.has_helper_rows() {
            self.drop_helper_rows(coder);
            failed = self.check(tags, block, coder);
            if failed == 0 {
                self.is_disputed = true;
                return (None, failed);
            }
        }
        self.is_disputed = false;
        self.own_rows.clear();
        self.rebuild(coder);
        (Some(Verdict::Unknown), failed)
    }

    /// Ends a dispute: once every remaining row belongs to proven symbols, the dropped rows were
    /// bad.
    fn settle(&mut self, coder: &BlockDecoder) -> Option<Verdict> {
        let is_settled = self.is_disputed && coder.rank() == self.proven_count;
        self.is_disputed &= !is_settled;
        is_settled.then_some(Verdict::Helper)
    }

    /// Ends a dispute because another block has shown whose rows were bad.
    pub(crate) fn end_dispute(&mut self) {
        self.is_disputed = false;
    }

    /// Drops the helper's rows of a block.
    pub(crate) fn drop_helper_rows(&mut self, coder: &mut BlockDecoder) {
        self.helper_rows = 0;
        self.rebuild(coder);
    }

    /// Decodes again from what is proven and the encoder's coded rows.
    fn rebuild(&self, coder: &mut BlockDecoder) {
        let proven = (0..coder.known_count()).filter(|&index| self.is_proven(index));
        let proven: Vec<(usize, Vec<u8>)> =
            proven.filter_map(|index| Some((index, coder.symbol(index)?.to_vec()))).collect();
        coder.reset();
        for (index, symbol) in &proven {
            let added = coder.add_source(*index, symbol);
            debug_assert!(added.is_ok(), "it was taken before: {added:?}");
        }
        let field = coder.field();
        let mut vector = Vec::new();
        for row in &self.own_rows {
            let added = add_seeded(coder, field, row, &mut vector);
            debug_assert!(added.is_some(), "it was taken before");
        }
    }
}

fn add_seeded(
    coder: &mut BlockDecoder,
    field: Field,
    row: &Row,
    vector: &mut Vec<u8>,
) -> Option<Outcome> {
    let count = usize::from(row.count.get());
    vector.resize(field.vector_len_bytes(count), 0);
    field.expand_seed(row.seed, count, vector).ok()?;
    coder.add_coded(vector, count, &row.payload).ok()
}
