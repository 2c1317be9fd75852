//! The way of a packet, in step 5: whether what a block is decoded to is what its encoder made.
//!
//! A row that is not what it claims to be spoils what is decoded with it, and shows only then. So
//! each symbol is held against its tag as soon as it is decoded, before anybody hears of it; a
//! source symbol before it is taken at all. Where one fails, rows of the helper go first: what the
//! encoder itself has sent is kept for that. The helper is to blame when all that is left is
//! proven, which may take more of the encoder's rows. If a tag fails without the helper's, rows in
//! the encoder's name are not the encoder's, and all go but the symbols that are proven. Before any
//! tag of a run has held nobody is to blame.

use std::num::NonZeroU16;

use corridor_codec::{BlockDecoder, Field, Outcome};

use crate::flow::block::tags::SymbolTags;
use crate::wire::{Enc, Form};

/// Whose a row is, as the key says that it came under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The encoder of the flow.
    Encoder,
    /// The helper.
    Helper,
}

/// What was found out about rows, when a tag had failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Rows in the encoder's name are not its own.
    Unknown,
    /// It was without the helper's that none failed, and the block was given up before it was known
    /// that all others are proven.
    Suspected,
    /// Without the helper's all are proven.
    Helper,
}

/// Who is to blame, if that has not been asked for.
#[derive(Debug, Default)]
pub(crate) struct Blame {
    verdict: Option<Verdict>,
    /// Whether a tag of this run of the encoder was found to hold.
    has_proven: bool,
}

impl Blame {
    pub(crate) fn note(&mut self, verdict: Option<Verdict>) {
        self.verdict = self.verdict.max(verdict);
    }

    /// A block was given up in dispute: the next one would be, too.
    pub(crate) fn suspect(&mut self) {
        if self.has_proven {
            self.note(Some(Verdict::Suspected));
        }
    }

    /// Ends the dispute about a block, if it can be. Where no tag ever holds, it need not be the
    /// helper.
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

/// What of a block is proven, and what it was made of.
pub(crate) struct Proof {
    /// A bit for each symbol that is decoded, and as its encoder made it.
    proven: Vec<u64>,
    proven_count: usize,
    /// Innovative rows of the helper among those held.
    helper_rows: usize,
    /// Coded rows of the encoder among those held: no more than the block has symbols.
    own_rows: Vec<Row>,
    /// A tag has failed with rows of the helper and of the encoder. Until it is known whose were
    /// bad, none of the helper's is taken.
    is_disputed: bool,
}

struct Row {
    count: NonZeroU16,
    seed: u32,
    payload: Vec<u8>,
}

impl Proof {
    /// Bytes of a row that is kept, beside its payload's.
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

    /// Whether it is to be found out yet whose rows made a tag fail.
    pub(crate) fn is_disputed(&self) -> bool {
        self.is_disputed
    }

    /// Whether any symbol of the block is proven.
    pub(crate) fn has_proven(&self) -> bool {
        self.proven_count > 0
    }

    /// Whether rows of the helper are among those held.
    pub(crate) fn has_helper_rows(&self) -> bool {
        self.helper_rows > 0
    }

    /// Whether such a row may be taken: a source symbol is one of the encoder's, and proven.
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

    /// A row was taken that was innovative.
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

    /// Holds what was decoded against its tags; how many of them fail.
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

    /// Takes rows out until no tag fails any more; whether they are nobody's, and how many tags
    /// failed on the way.
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

    /// Ends a dispute: where every row that is left belongs to symbols that are proven, those that
    /// were dropped were bad.
    fn settle(&mut self, coder: &BlockDecoder) -> Option<Verdict> {
        let is_settled = self.is_disputed && coder.rank() == self.proven_count;
        self.is_disputed &= !is_settled;
        is_settled.then_some(Verdict::Helper)
    }

    /// Whose rows were bad is known of another block.
    pub(crate) fn end_dispute(&mut self) {
        self.is_disputed = false;
    }

    /// Takes the helper's rows out of a block.
    pub(crate) fn drop_helper_rows(&mut self, coder: &mut BlockDecoder) {
        self.helper_rows = 0;
        self.rebuild(coder);
    }

    /// Decodes anew, from what is proven and the encoder's coded rows.
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
