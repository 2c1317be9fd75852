//! The run loop: one thread, which waits for the host, the underlay, a signal, or time.
//!
//! 1. Fire what is due.
//! 2. Hand decoded packets to the host, tell events.
//! 3. Make frames, as long as the underlay takes them.
//! 4. Wait.
//! 5. Take packets of the host and frames of the underlay, a batch of each; back to 1.
//!
//! Frames are made only when the underlay has room for them, and handed over as soon as there are
//! no more to make or a batch is full. When there is no room, what is left of the batch waits and
//! is offered again; the station is not asked for more, so that its queue stays where it can be
//! seen and managed. A batch is of one frame where that happens (`underlay/outbox.rs`).

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use corridor_base::Time;
use corridor_proto::{Event, FrameOutcome, Station};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, clock_gettime};

use crate::config::NodeConfig;
use crate::error::NodeError;
use crate::loss::SyntheticLoss;
use crate::stats_file::{self, IoStats, PeerReport, Report};
use crate::tun::Tun;
use crate::underlay::{Busy, Certainty, Underlay};

/// How long a frame waits that the underlay had no room for, where the kernel does not tell.
const BUSY_RETRY: Duration = Duration::from_micros(200);
/// Frames made in a row before what came in is looked at.
const TRANSMIT_BATCH: usize = 64;
/// Packets taken from the host before what came from the underlay is looked at: feedback that
/// waits behind many of them is old news.
const PACKETS_IN_A_ROW: usize = 128;
/// Reads from the host in a row; each brings a packet or a super-packet.
const TUN_READS: usize = 8;

/// What a run is told beside its configuration.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Where to write statistics on SIGUSR1 and at the end.
    pub stats_file: Option<PathBuf>,
}

/// Runs a node until SIGTERM or SIGINT; a second one ends the process at once.
///
/// The calling thread must be the only one, or the others must have these signals and SIGUSR1
/// blocked.
///
/// # Errors
/// The node could not start, its interface or TUN device was taken away, or the statistics could
/// not be written.
pub fn run(config: &NodeConfig, options: &RunOptions) -> Result<(), NodeError> {
    if let Some(path) = &options.stats_file {
        stats_file::check_place(path)?;
    }
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    // From here on a signal waits until the loop looks at it.
    let signals = Signals::block()?;
    let mut driver = Driver::start(config)?;
    let ended = driver.run(&signals, options);
    if ended.is_ok() {
        signals.unblock();
    }
    let stats = options.stats_file.as_ref().map(|path| driver.write_stats(path, true));
    driver.close();
    ended.and(stats.unwrap_or(Ok(())))
}

/// A station, and what it is connected to.
struct Driver<'a> {
    config: &'a NodeConfig,
    station: Station,
    underlay: Underlay,
    tun: Option<Tun>,
    loss: SyntheticLoss,
    clock: Clock,
    /// The underlay had no room for a frame.
    waiting: Option<Waiting>,
    io: IoStats,
}

#[derive(Clone, Copy)]
struct Waiting {
    again_at: Time,
    wakes: bool,
}

/// What a wait ended with.
struct Ready {
    signal: bool,
    tun: bool,
    underlay: bool,
}

impl<'a> Driver<'a> {
    fn start(config: &'a NodeConfig) -> Result<Self, NodeError> {
        let clock = Clock::start()?;
        let underlay = Underlay::open(config)?;
        let mut entropy = [0; 32];
        getrandom::fill(&mut entropy).map_err(|error| NodeError::System {
            action: "get random bytes".into(),
            source: error.into(),
        })?;
        let (longest, shortest) = (underlay.frame_len_max(), underlay.frame_len_min());
        let (station, mtu) = config.station(longest, shortest, entropy, clock.now())?;
        let tun = config.tun.as_ref().map(|tun| Tun::open(tun, mtu)).transpose()?;
        // Without this the kernel may wake us 50 us late, to save power.
        let _ = nix::sys::prctl::set_timerslack(1);
        tracing::info!(
            "station {} is up: {}, {}, frames of up to {longest} bytes, {}",
            config.id.0,
            config.role_name(),
            config.tun.as_ref().map_or("no TUN device".into(), |tun| {
                format!("{} with an MTU of {mtu} bytes", tun.name)
            }),
            underlay.describe(),
        );
        Ok(Driver {
            config,
            station,
            underlay,
            tun,
            loss: SyntheticLoss::new(&config.synthetic_loss, config.id),
            clock,
            waiting: None,
            io: IoStats::default(),
        })
    }

    fn run(&mut self, signals: &Signals, options: &RunOptions) -> Result<(), NodeError> {
        loop {
            let now = self.clock.now();
            if self.station.poll_timeout().is_some_and(|due| due <= now) {
                self.station.handle_timeout(now);
            }
            self.deliver()?;
            self.tell_events();
            let more = self.transmit()?;
            // What has left may be news for the host's TCP.
            self.deliver()?;
            let ready = self.wait(signals, more)?;
            if ready.signal {
                match signals.next()? {
                    Some(Signal::SIGUSR1) => self.report_stats(options),
                    Some(signal) => {
                        tracing::info!("{signal}: stopping");
                        return Ok(());
                    }
                    None => {}
                }
            }
            if ready.underlay {
                self.receive()?;
            }
            if ready.tun {
                self.take_packets()?;
            }
        }
    }

    /// Hands decoded packets to the host.
    fn deliver(&mut self) -> Result<(), NodeError> {
        let Some(tun) = &mut self.tun else { return Ok(()) };
        let mut pushed = false;
        while let Some(packet) = self.station.poll_packet() {
            tun.push(packet);
            pushed = true;
        }
        if pushed && !tun.flush()? {
            self.io.packets_untaken += 1;
        }
        Ok(())
    }

    fn tell_events(&mut self) {
        while let Some(event) = self.station.poll_event() {
            match event {
                Event::SessionUp { peer, restarted: false } => {
                    tracing::info!("session with station {} is up", peer.0);
                }
                Event::SessionUp { peer, restarted: true } => {
                    tracing::info!("session with station {} is up again: it was restarted", peer.0);
                }
                Event::ModeDiffers { peer, theirs, ours } => {
                    tracing::warn!(
                        "nothing crosses: station {} has {theirs} and this one {ours}; expected \
                         the same coding.preset and roles on both",
                        peer.0
                    );
                }
                Event::PeerSilent { peer } => {
                    tracing::warn!("station {} has fallen silent", peer.0);
                }
            }
        }
    }

    /// Makes frames as long as the underlay takes them. Whether there may be more at once.
    fn transmit(&mut self) -> Result<bool, NodeError> {
        let now = self.clock.now();
        if self.waiting.is_some() && !self.flush(now)? {
            return Ok(false);
        }
        for _ in 0..TRANSMIT_BATCH {
            let Some(transmit) = self.station.poll_transmit(now) else {
                self.flush(now)?;
                return Ok(false);
            };
            self.underlay.push(transmit.to, transmit.frame);
            if self.underlay.is_full() && !self.flush(now)? {
                return Ok(false);
            }
        }
        self.flush(now)
    }

    /// Hands over what was made. Whether all of it was taken.
    fn flush(&mut self, now: Time) -> Result<bool, NodeError> {
        let flushed = self.underlay.flush(now)?;
        self.io.frames_refused += flushed.lost;
        self.io.underlay_busy += u64::from(flushed.busy.is_some());
        let wait = |busy: Busy| Waiting { again_at: now + BUSY_RETRY, wakes: busy.wakes };
        self.waiting = flushed.busy.map(wait);
        Ok(flushed.busy.is_none())
    }

    /// Waits until something can be done. While a frame waits for the underlay, what is due in
    /// the station waits with it, for no longer than [`BUSY_RETRY`].
    fn wait(&mut self, signals: &Signals, more: bool) -> Result<Ready, NodeError> {
        self.io.wakeups += 1;
        let until = match &self.waiting {
            Some(waiting) => Some(waiting.again_at),
            None => self.station.poll_timeout(),
        };
        let now = self.clock.now();
        let timeout = if more { Some(Duration::ZERO) } else { until.map(|until| until.since(now)) };
        let wakes = self.waiting.as_ref().is_some_and(|waiting| waiting.wakes);
        let underlay =
            if wakes { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
        let mut fds = [
            PollFd::new(signals.0.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.underlay.fd(), underlay),
            PollFd::new(self.tun.as_ref().map_or(signals.0.as_fd(), Tun::fd), PollFlags::POLLIN),
        ];
        match ppoll(&mut fds, timeout.map(TimeSpec::from_duration), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => {
                return Err(NodeError::System { action: "wait".into(), source: errno.into() });
            }
        }
        // Errors of a descriptor are told by the call that reads it.
        let ready = |index: usize| {
            let events = fds[index].revents().unwrap_or(PollFlags::empty());
            !(events - PollFlags::POLLOUT).is_empty()
        };
        Ok(Ready { signal: ready(0), underlay: ready(1), tun: self.tun.is_some() && ready(2) })
    }

    /// Takes a batch of frames of the underlay. If more wait, feedback goes first.
    fn receive(&mut self) -> Result<(), NodeError> {
        let count = self.underlay.receive()?;
        let now = self.clock.now();
        for index in 0..count {
            self.handle_frame(now, index);
        }
        self.deliver()
    }

    fn handle_frame(&mut self, now: Time, index: usize) {
        let Some((sender, frame)) = self.underlay.frame(index) else { return };
        if !self.loss.is_idle()
            && let Some(from) = self.underlay.station(sender)
            && self.loss.takes(from)
        {
            self.io.frames_lost_synthetic += 1;
            return;
        }
        match self.station.handle_frame(now, frame) {
            FrameOutcome::Accepted { from } => {
                self.underlay.learn(from, sender, Certainty::Session);
            }
            FrameOutcome::Handshake { from } => {
                self.underlay.learn(from, sender, Certainty::Handshake);
            }
            FrameOutcome::Rejected(_) => {}
        }
    }

    /// Takes packets of the host. What the station does not want it counts itself.
    ///
    /// Frames are made after each super-packet: a few of those are longer than the ingress queue,
    /// which would drop what the underlay has room for.
    fn take_packets(&mut self) -> Result<(), NodeError> {
        let mut taken = 0;
        for _ in 0..TUN_READS {
            let Some(tun) = &mut self.tun else { return Ok(()) };
            let count = tun.receive()?;
            taken += count;
            let now = self.clock.now();
            for index in 0..count {
                self.station.handle_packet(now, tun.packet(index));
            }
            if count == 0 {
                return Ok(());
            }
            if self.waiting.is_none() {
                self.transmit()?;
            }
            if taken >= PACKETS_IN_A_ROW {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Writes the statistics while running: what goes wrong is told, and the node goes on.
    fn report_stats(&self, options: &RunOptions) {
        match &options.stats_file {
            None => tracing::warn!("SIGUSR1: no --stats-file was given"),
            Some(path) => match self.write_stats(path, false) {
                Ok(()) => tracing::debug!("statistics written to {}", path.display()),
                Err(error) => tracing::error!("{error}"),
            },
        }
    }

    fn write_stats(&self, path: &std::path::Path, lasting: bool) -> Result<(), NodeError> {
        let report = Report {
            station: self.config.id.0,
            role: self.config.role_name(),
            cpu_s: processor_time().as_secs_f64(),
            wall_s: self.clock.now().as_secs_f64(),
            mode: self.station.config().crossing().to_string(),
            peers: PeerReport::of(&self.station),
            stats: self.station.stats(),
            io: self.io,
        };
        stats_file::write(path, &report, lasting)
    }

    fn close(self) {
        if let Some(tun) = self.tun {
            tun.close();
        }
    }
}

/// Time since the start of the run, from a clock that nobody sets.
struct Clock {
    start_ns: u64,
}

impl Clock {
    fn start() -> Result<Self, NodeError> {
        let source = |errno: Errno| NodeError::System {
            action: "read the clock".into(),
            source: errno.into(),
        };
        Ok(Clock { start_ns: monotonic_ns().map_err(source)? })
    }

    fn now(&self) -> Time {
        // It could be read at the start, so it can be read now.
        let now_ns = monotonic_ns().unwrap_or(self.start_ns);
        Time::from_nanos(now_ns.saturating_sub(self.start_ns))
    }
}

fn monotonic_ns() -> nix::Result<u64> {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(u64::try_from(time.num_nanoseconds()).unwrap_or(0))
}

/// Processor time of this process, in user and kernel mode.
fn processor_time() -> Duration {
    getrusage(UsageWho::RUSAGE_SELF).map_or(Duration::ZERO, |usage| {
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    })
}

/// The signals that the loop looks at, as a descriptor.
struct Signals(SignalFd);

impl Signals {
    fn block() -> Result<Self, NodeError> {
        let source = |errno: Errno| NodeError::System {
            action: "catch signals".into(),
            source: errno.into(),
        };
        let mut set = SigSet::empty();
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGUSR1] {
            set.add(signal);
        }
        set.thread_block().map_err(source)?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        SignalFd::with_flags(&set, flags).map(Signals).map_err(source)
    }

    /// A signal that came, if any.
    fn next(&self) -> Result<Option<Signal>, NodeError> {
        let read = self.0.read_signal().map_err(|errno| NodeError::System {
            action: "read a signal".into(),
            source: errno.into(),
        })?;
        let number = read.and_then(|info| i32::try_from(info.ssi_signo).ok());
        Ok(number.and_then(|number| Signal::try_from(number).ok()))
    }

    /// From here on SIGTERM and SIGINT do what they do to any process: end it.
    fn unblock(&self) {
        let mut set = SigSet::empty();
        set.add(Signal::SIGTERM);
        set.add(Signal::SIGINT);
        let _ = set.thread_unblock();
    }
}
