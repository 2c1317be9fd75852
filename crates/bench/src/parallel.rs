//! Work on several threads at once.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::frame::Outcome;

/// Calls `work` for each item, `jobs` of them at once (`None`: the number of processors), and
/// returns the results in the order of the items.
///
/// # Errors
/// The first of a thread whose `work` failed.
pub fn map<Item: Send, Done: Send>(
    items: Vec<Item>,
    jobs: Option<NonZeroUsize>,
    work: impl Fn(&Item) -> Outcome<Done> + Sync,
) -> Outcome<Vec<Done>> {
    let jobs = jobs.or(thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let waiting = Mutex::new(items.into_iter().enumerate().collect::<VecDeque<_>>());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let take = || -> Outcome<Vec<(usize, Done)>> {
        let mut done = Vec::new();
        while let Some((place, item)) = next() {
            done.push((place, work(&item)?));
        }
        Ok(done)
    };
    let mut all = thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(take)).collect();
        let mut all = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(done) => all.extend(done?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Outcome::Ok(all)
    })?;
    all.sort_by_key(|(place, _)| *place);
    Ok(all.into_iter().map(|(_, done)| done).collect())
}
