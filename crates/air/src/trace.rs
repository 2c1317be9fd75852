//! Recorded losses, to be replayed.

use std::sync::Arc;

use crate::error::ErasureError;
use crate::limits::MAX_TRACE_RUNS;

/// Which of a sequence of transmissions were lost. The sequence repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossTrace {
    /// Lengths of runs, alternately carried and lost, carried first; an even number of them, so
    /// that the trace can repeat. Their sum is not zero.
    runs: Arc<[u32]>,
}

impl LossTrace {
    /// Parses a trace: a `1` for every transmission that was lost, a `0` for every other; white
    /// space is ignored.
    ///
    /// # Errors
    /// [`ErasureError::TraceByte`] for any other character; [`ErasureError::TraceEmpty`] and
    /// [`ErasureError::TraceRuns`] if there are none, or too many.
    pub fn parse(text: &[u8]) -> Result<Self, ErasureError> {
        let mut builder = Builder::default();
        for (offset, &byte) in text.iter().enumerate() {
            match byte {
                b'0' => builder.push(false, 1)?,
                b'1' => builder.push(true, 1)?,
                _ if byte.is_ascii_whitespace() => {}
                given => return Err(ErasureError::TraceByte { offset, given }),
            }
        }
        builder.finish()
    }

    /// A trace of run lengths: carried, lost, carried, and so on.
    ///
    /// # Errors
    /// [`ErasureError::TraceEmpty`] and [`ErasureError::TraceRuns`] if there are no transmissions,
    /// or too many runs.
    pub fn from_runs(runs: impl IntoIterator<Item = u32>) -> Result<Self, ErasureError> {
        let mut builder = Builder::default();
        for (index, count) in runs.into_iter().enumerate() {
            builder.push(index % 2 == 1, count)?;
        }
        builder.finish()
    }

    /// Share of transmissions lost, 0 to 1.
    pub fn loss_ratio(&self) -> f64 {
        let lost: u64 = self.runs.iter().skip(1).step_by(2).map(|&count| u64::from(count)).sum();
        lost as f64 / self.packets() as f64
    }

    /// Number of transmissions before the trace repeats; 1 or more.
    pub fn packets(&self) -> u64 {
        self.runs.iter().map(|&count| u64::from(count)).sum()
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    pub(crate) fn run(&self, index: usize) -> u32 {
        self.runs[index]
    }
}

/// Alternating runs, of which the last one can still grow.
#[derive(Default)]
struct Builder {
    runs: Vec<u32>,
}

impl Builder {
    fn push(&mut self, lost: bool, count: u32) -> Result<(), ErasureError> {
        if count == 0 {
            return Ok(());
        }
        // Index of the last or next run of this kind; a run of the other kind that has to come in
        // between is empty.
        while self.runs.is_empty() || (self.runs.len() - 1) % 2 != usize::from(lost) {
            self.begin()?;
        }
        match self.runs.last().and_then(|last| last.checked_add(count)) {
            Some(sum) => *self.runs.last_mut().expect("begun above") = sum,
            None => {
                self.begin()?;
                self.begin()?;
                *self.runs.last_mut().expect("begun above") = count;
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), ErasureError> {
        if self.runs.len() == MAX_TRACE_RUNS {
            return Err(ErasureError::TraceRuns);
        }
        self.runs.push(0);
        Ok(())
    }

    fn finish(mut self) -> Result<LossTrace, ErasureError> {
        if self.runs.is_empty() {
            return Err(ErasureError::TraceEmpty);
        }
        if !self.runs.len().is_multiple_of(2) {
            self.begin()?;
        }
        Ok(LossTrace { runs: self.runs.into() })
    }
}
