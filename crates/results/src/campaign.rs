//! Campaigns: all replications of a plan, whatever makes them, stored as they finish.
//!
//! One loop serves the simulator and the lab, local threads and remote workers: take a task from
//! the [`Schedule`], run it, and take in its results. The outcome depends neither on the order of
//! finishing nor on interruptions: replications in a [`Store`] are not repeated.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use corridor_scenario::{Measures, Plan, Replication, Tables};

use crate::error::ResultsError;
use crate::journal::{Key, PointKey};
use crate::results::{Provenance, Results};
use crate::schedule::{Finished, Schedule, Task};
use crate::store::Store;

/// Interval of syncs to disk: the maximum loss in a power failure.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which interruption requests are checked.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How long to wait for replications in progress at an interruption.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs replications: the simulator, or the lab. Equal versions give equal replications of equal
/// points, as far as the engine is deterministic.
pub trait Engine {
    /// Its errors.
    type Error: Send + 'static;

    /// Runs one replication.
    ///
    /// # Errors
    /// Those of the engine.
    fn make(&self, plan: &Plan, task: Task) -> Result<Replication, Self::Error>;
}

/// Errors of a campaign.
#[derive(Debug)]
pub enum CampaignError<E> {
    /// The engine failed.
    Engine {
        /// The replication.
        task: Task,
        /// Its message.
        source: E,
    },
    /// The engine panicked.
    Panic {
        /// The replication.
        task: Task,
        /// Its message.
        said: String,
    },
    /// Results could not be stored.
    Results(ResultsError),
}

impl<E> From<ResultsError> for CampaignError<E> {
    fn from(error: ResultsError) -> Self {
        CampaignError::Results(error)
    }
}

/// How a campaign ended without failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All requested replications are done.
    Complete,
    /// It was interrupted on request.
    Interrupted,
}

/// A plan whose replications are being run.
#[derive(Debug)]
pub struct Campaign {
    plan: Arc<Plan>,
    keys: Vec<PointKey>,
    is_partial: bool,
    schedule: Schedule,
    store: Option<Store>,
    /// Long tables of finished replications, if there is no store.
    held: BTreeMap<(usize, u64), Tables>,
    held_rows: usize,
    synced: Instant,
}

/// A thread's result.
type Made<E> = (Task, Result<Replication, CampaignError<E>>);

impl Campaign {
    /// A campaign of these points of a plan. `version` identifies the engine: stored replications
    /// of another version are repeated, and so are all if `afresh`.
    pub fn new(
        plan: Arc<Plan>,
        points: &[usize],
        version: &str,
        (store, afresh): (Option<Store>, bool),
    ) -> Self {
        let keys: Vec<PointKey> = plan.points.iter().map(|p| PointKey::new(p, version)).collect();
        let schedule = match store.as_ref().filter(|_| !afresh) {
            Some(store) => Schedule::new(&plan, points, |task| {
                store.known(&keys[task.point].replication(task.replication)).cloned()
            }),
            None => Schedule::fresh(&plan, points),
        };
        let is_partial = points.len() < plan.points.len();
        let (held, synced) = (BTreeMap::new(), Instant::now());
        Campaign { plan, keys, is_partial, schedule, store, held, held_rows: 0, synced }
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Its progress.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The key of a replication.
    pub fn key(&self, task: Task) -> Key {
        self.keys[task.point].replication(task.replication)
    }

    /// The next replication to run; `None` if none is left, or the rest depends on those in
    /// progress.
    pub fn next_task(&mut self) -> Option<Task> {
        self.schedule.next_task()
    }

    /// Like [`next_task`](Self::next_task), but only replications needed whatever the others
    /// measure: for callers that take many at once.
    pub fn next_certain_task(&mut self) -> Option<Task> {
        self.schedule.next_certain_task()
    }

    /// Takes in a finished replication.
    ///
    /// # Errors
    /// [`ResultsError::Io`].
    pub fn take(&mut self, task: Task, made: Replication) -> Result<(), ResultsError> {
        let key = self.key(task);
        let Replication { measures, tables } = match &mut self.store {
            Some(store) => {
                store.keep(key, task, &made)?;
                Replication { tables: Tables::default(), ..made }
            }
            None => made,
        };
        if !tables.is_empty() {
            self.held_rows += tables.row_count();
            self.held.insert((task.point, task.replication), tables);
        }
        self.schedule.finish(Finished { task, measures });
        if let Some(store) = self.store.as_ref().filter(|_| self.synced.elapsed() >= SYNC_INTERVAL)
        {
            store.sync()?;
            self.synced = Instant::now();
        }
        Ok(())
    }

    /// Takes in an untrustworthy replication. It is not stored: a resumed campaign repeats it.
    pub fn take_doubtful(&mut self, task: Task, made: Replication) {
        // Only trusted replications are written at the end.
        self.is_partial |= self.store.is_some();
        self.schedule.finish(Finished { task, measures: made.measures });
    }

    /// Number of rows of long tables in memory.
    pub fn held_rows(&self) -> usize {
        self.held_rows
    }

    /// Runs the missing replications on several threads. `look` sees the progress after each
    /// replication, and ten times a second, and may stop the campaign.
    ///
    /// Threads in the middle of a long replication are abandoned at an interruption.
    ///
    /// # Errors
    /// [`CampaignError`]: the first one.
    pub fn run<E: Engine + Send + Sync + 'static>(
        &mut self,
        engine: &Arc<E>,
        jobs: usize,
        mut look: impl FnMut(&Campaign) -> ControlFlow<()>,
    ) -> Result<Ending, CampaignError<E::Error>> {
        if self.schedule.is_complete() {
            return Ok(Ending::Complete);
        }
        let crew = Crew::new(&self.plan, engine, jobs);
        let ending = self.collect(&crew, jobs, &mut look);
        crew.halt.store(true, Ordering::Relaxed);
        if matches!(ending, Ok(Ending::Interrupted)) {
            let until = Instant::now() + PATIENCE;
            while let Some(left) = until.checked_duration_since(Instant::now())
                && let Ok((task, made)) = crew.made.recv_timeout(left)
            {
                if let Ok(made) = made {
                    self.take(task, made)?;
                }
            }
        }
        if let Some(store) = &self.store {
            store.sync()?;
        }
        ending
    }

    fn collect<E>(
        &mut self,
        crew: &Crew<E>,
        jobs: usize,
        look: &mut impl FnMut(&Campaign) -> ControlFlow<()>,
    ) -> Result<Ending, CampaignError<E>> {
        let mut under_way = 0;
        loop {
            while under_way < jobs
                && let Some(task) = self.next_task()
            {
                under_way += 1;
                // A thread that has ended has sent the reason.
                crew.tasks.send(task).unwrap_or_default();
            }
            if self.schedule.is_complete() || under_way == 0 {
                return Ok(Ending::Complete);
            }
            match crew.made.recv_timeout(LOOK_INTERVAL) {
                Ok((task, made)) => {
                    under_way -= 1;
                    self.take(task, made?)?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Ending::Interrupted),
            }
            if look(self).is_break() {
                return Ok(Ending::Interrupted);
            }
        }
    }

    /// Runs the missing replications on this thread, one after the other, as the lab requires.
    ///
    /// # Errors
    /// The engine's first, or [`CampaignError::Results`].
    pub fn run_here<E: Engine>(&mut self, engine: &E) -> Result<(), CampaignError<E::Error>> {
        while !self.schedule.is_complete()
            && let Some(task) = self.next_task()
        {
            let made = engine.make(&self.plan, task);
            let made = made.map_err(|source| CampaignError::Engine { task, source })?;
            self.take(task, made)?;
        }
        Ok(())
    }

    /// The long tables of a finished replication.
    ///
    /// # Errors
    /// [`ResultsError::Io`], [`ResultsError::Format`].
    pub fn tables(&self, task: Task) -> Result<Cow<'_, Tables>, ResultsError> {
        match &self.store {
            Some(store) => Ok(Cow::Owned(store.tables(&self.key(task))?)),
            None => Ok(match self.held.get(&(task.point, task.replication)) {
                Some(tables) => Cow::Borrowed(tables),
                None => Cow::Owned(Tables::default()),
            }),
        }
    }

    /// The rows of finished replications, by point and replication. `commit` and `version` are the
    /// engine's.
    pub fn results(&self, commit: &str, version: &str) -> Results {
        results(&self.plan, &self.schedule, (commit, version))
    }

    /// Writes the files of a results directory: of all known points of the plan, even if only some
    /// were to be run. Does nothing without a directory.
    ///
    /// # Errors
    /// [`ResultsError::NoParquet`], [`ResultsError::Io`], [`ResultsError::Format`].
    pub fn write(&self, commit: &str, version: &str) -> Result<(), ResultsError> {
        let Some(store) = &self.store else { return Ok(()) };
        let (plan, of) = (&self.plan, (&*self.plan, &self.keys[..]));
        if !self.is_partial {
            return store.write(of, &self.schedule, &self.results(commit, version));
        }
        let known = |task: Task| -> Option<Measures> { store.known(&self.key(task)).cloned() };
        let all: Vec<usize> = (0..plan.points.len()).collect();
        let schedule = Schedule::new(plan, &all, known);
        store.write(of, &schedule, &results(plan, &schedule, (commit, version)))
    }
}

fn results(plan: &Plan, schedule: &Schedule, (commit, version): (&str, &str)) -> Results {
    let rows = schedule.rows();
    let records = rows.map(|(task, measures)| plan.record(task.point, task.replication, measures));
    let provenance = Provenance {
        commit: commit.to_owned(),
        code_version: version.to_owned(),
        complete_points: schedule.complete_points(),
    };
    Results::new(plan, records.collect(), &provenance)
}

/// Threads that run the tasks sent to them.
struct Crew<E> {
    tasks: Sender<Task>,
    made: Receiver<Made<E>>,
    halt: Arc<AtomicBool>,
}

impl<E: Send + 'static> Crew<E> {
    fn new<G>(plan: &Arc<Plan>, engine: &Arc<G>, jobs: usize) -> Self
    where
        G: Engine<Error = E> + Send + Sync + 'static,
    {
        let (tasks, given) = mpsc::channel::<Task>();
        let (sender, made) = mpsc::channel();
        let (given, halt) = (Arc::new(Mutex::new(given)), Arc::new(AtomicBool::new(false)));
        for _ in 0..jobs {
            let (plan, engine, given) = (Arc::clone(plan), Arc::clone(engine), Arc::clone(&given));
            let (halt, sender) = (Arc::clone(&halt), sender.clone());
            thread::spawn(move || {
                let next = || given.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok(task) = next()
                    && !halt.load(Ordering::Relaxed)
                    && sender.send((task, make(&plan, &*engine, task))).is_ok()
                {}
            });
        }
        Crew { tasks, made, halt }
    }
}

/// Runs one replication; a panic of the engine becomes an error of this replication.
fn make<E: Engine>(
    plan: &Plan,
    engine: &E,
    task: Task,
) -> Result<Replication, CampaignError<E::Error>> {
    match panic::catch_unwind(AssertUnwindSafe(|| engine.make(plan, task))) {
        Ok(made) => made.map_err(|source| CampaignError::Engine { task, source }),
        Err(payload) => Err(CampaignError::Panic { task, said: said(&*payload) }),
    }
}

fn said(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const VERSION: &str = "made up";

    fn plan() -> Arc<Plan> {
        let text = "name = 't'\nseed = 1\nmedium = { duplex = 'half', rate_bps = 12000000, \
            rtt_ms = 4, queue_frames = 4 }\nstop = { metric = 'goodput_bps', ci95_ratio = 0.1, \
            replications_min = 3, replications_max = 50 }\n[[run]]\npath = 'plain'\n\
            transport = 'udp'\noffered_bps = 1e6\ne3 = [0, 0.1, 0.2]\nduration_s = 1\n";
        Arc::new(Plan::parse(text, Path::new(".")).unwrap())
    }

    /// Synthetic results, noisier from point to point; `broken` panics.
    struct Made {
        broken: Option<Task>,
    }

    impl Engine for Made {
        type Error = String;

        fn make(&self, _: &Plan, task: Task) -> Result<Replication, String> {
            assert!(self.broken != Some(task), "it broke down");
            let noise = ((task.replication * 7 + 3) % 5) as f64 - 2.0;
            let mut made = Replication::default();
            made.measures.set("goodput_bps", 10.0 + 0.3 * noise * task.point as f64);
            Ok(made)
        }
    }

    const SOUND: Made = Made { broken: None };

    fn campaign(store: Option<Store>) -> Campaign {
        Campaign::new(plan(), &[0, 1, 2], VERSION, (store, false))
    }

    fn rows(campaign: &Campaign) -> Vec<corridor_scenario::Record> {
        campaign.results("", VERSION).records
    }

    #[test]
    fn threads_this_thread_and_whoever_takes_tasks_come_to_the_same() {
        let mut here = campaign(None);
        here.run_here(&SOUND).unwrap();
        let expected = rows(&here);
        assert!(expected.len() > 9 && here.schedule().is_complete());
        for jobs in [1, 3] {
            let mut threads = campaign(None);
            let mut looks = 0;
            let look = |_: &Campaign| {
                looks += 1;
                ControlFlow::Continue(())
            };
            let ending = threads.run(&Arc::new(SOUND), jobs, look).unwrap();
            assert_eq!(ending, Ending::Complete);
            assert!(rows(&threads) == expected && looks >= expected.len());
        }
        let mut elsewhere = campaign(None);
        let mut under_way = Vec::new();
        while !elsewhere.schedule().is_complete() {
            under_way.extend(std::iter::from_fn(|| elsewhere.next_task()).take(4));
            let task = under_way.pop().unwrap();
            elsewhere.take(task, SOUND.make(&plan(), task).unwrap()).unwrap();
        }
        assert!(rows(&elsewhere) == expected);
    }

    #[test]
    fn what_was_kept_at_an_interruption_is_not_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let store = |force| Store::open(directory.path(), &plan(), force).ok();
        let mut first = campaign(store(false));
        let look = |campaign: &Campaign| match campaign.schedule().done() {
            0..5 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let ending = first.run(&Arc::new(SOUND), 1, look).unwrap();
        assert_eq!(ending, Ending::Interrupted);
        let kept = first.schedule().done();
        drop(first);
        let mut second = campaign(store(false));
        assert!(kept >= 5 && second.schedule().done() == kept);
        second.run_here(&SOUND).unwrap();
        let mut whole = campaign(None);
        whole.run_here(&SOUND).unwrap();
        assert!(rows(&second) == rows(&whole));
        drop(second);
        // Another engine's replications do not count.
        let of_another = |version| {
            Campaign::new(plan(), &[0, 1, 2], version, (store(false), false)).schedule().done()
        };
        assert_eq!((of_another("another"), of_another(VERSION) > 9), (0, true));
        let afresh = Campaign::new(plan(), &[0, 1, 2], VERSION, (store(false), true));
        assert_eq!(afresh.schedule().done(), 0);
    }

    #[test]
    fn a_breakdown_is_told_with_its_replication() {
        let task = Task { point: 1, replication: 2 };
        let engine = Arc::new(Made { broken: Some(task) });
        let failed = campaign(None).run(&engine, 2, |_| ControlFlow::Continue(())).unwrap_err();
        assert!(
            matches!(&failed, CampaignError::Panic { task: of, said } if *of == task && said == "it broke down"),
            "{failed:?}"
        );
    }
}
