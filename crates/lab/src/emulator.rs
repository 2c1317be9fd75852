//! The emulator: runs the medium or a line in real time, in one thread between all stations'
//! radios.
//!
//! 1. Handle what is due on the medium, each event at its own virtual time, however late the thread
//!    is.
//! 2. Write frames that were heard to the radios of the stations that heard them.
//! 3. Fetch frames from radios of stations that have room on the medium; the others wait in the
//!    kernel, whose full ring pushes the senders back.
//! 4. Sleep until the next event or the next frame.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use corridor_air::radio::{MacEvent, MacStats, RadioMedium};
use corridor_air::{
    Address, Carried, Line, LineConfig, Links, LinksConfig, Medium, MediumConfig, StationStats,
};
use corridor_base::Time;
use corridor_scenario::OnAir;
use hdrhistogram::Histogram;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;
use nix::unistd::{Pid, gettid};

use crate::clock;
use crate::error::{Context, LabError};
use crate::outcomes::Outcomes;
use crate::priority;
use crate::station::station_of;

/// Longest frame carried: an Ethernet header and the largest IP packet.
const FRAME_LEN_MAX: usize = ETHERNET_LEN + 65_535;
/// Bytes of Ethernet's header.
const ETHERNET_LEN: usize = 14;
/// Most frames taken from one radio before the others have their turn and the thread checks whether
/// to stop: a kernel may fill a radio's ring as fast as it is read. Two rings' worth.
const FETCH_MAX: usize = 64;

/// Requests to the running emulator. Times are [`clock::now`]'s nanoseconds.
struct Control {
    stop: AtomicBool,
    begin: AtomicU64,
    from: AtomicU64,
    until: AtomicU64,
    wake: EventFd,
}

/// A running emulator; it stops when dropped.
pub(crate) struct Emulator {
    control: Arc<Control>,
    thread: Option<JoinHandle<Result<Report, LabError>>>,
    thread_id: Pid,
}

/// What happened on the air in the measured interval.
pub(crate) struct Report {
    /// Counters of each station at the beginning and the end of the interval.
    stations: Vec<(StationStats, StationStats)>,
    /// The same for each MAC, on radios that have one.
    macs: Vec<(MacStats, MacStats)>,
    /// Actual length of the interval.
    span: Duration,
    /// Whether all stations share one channel.
    half_duplex: bool,
    /// How late frames were written to the radios that heard them.
    pub(crate) lateness: Histogram<u64>,
    /// Whether real-time scheduling was permitted.
    pub(crate) realtime: bool,
    /// Frames that a radio refused, which the kernel only does when out of memory.
    pub(crate) refused: u64,
}

impl Report {
    fn sum(&self, field: fn(&StationStats) -> u64) -> u64 {
        self.stations.iter().map(|(from, until)| field(until) - field(from)).sum()
    }

    /// Number of transmissions.
    pub(crate) fn frames(&self) -> u64 {
        self.sum(|station| station.sent_frames)
    }

    /// Frames dropped by full queues or policers.
    pub(crate) fn dropped(&self) -> u64 {
        self.sum(|station| station.dropped)
    }

    /// Frames lost on the medium.
    pub(crate) fn undelivered(&self) -> u64 {
        self.sum(|station| station.undelivered)
    }

    /// Bytes of all transmissions.
    pub(crate) fn bytes(&self) -> u64 {
        self.sum(|station| station.sent_bytes)
    }

    /// Share of the frames dropped by a full queue: the highest of all stations.
    pub(crate) fn drop_ratio(&self) -> Option<f64> {
        let ratios = self.stations.iter().filter_map(|(from, until)| {
            let (offered, dropped) = (until.offered - from.offered, until.dropped - from.dropped);
            (offered > 0).then(|| dropped as f64 / offered as f64)
        });
        ratios.reduce(f64::max)
    }

    /// What the MACs of all stations did, on radios that have one.
    pub(crate) fn on_air(&self) -> OnAir {
        let before = OnAir::of_macs(self.macs.iter().map(|(from, _)| *from));
        OnAir::of_macs(self.macs.iter().map(|(_, until)| *until)).since(before)
    }

    /// Frames that found these MACs' queues full.
    pub(crate) fn refused_by_macs(&self) -> u64 {
        self.macs.iter().map(|(from, until)| until.refused - from.refused).sum()
    }

    /// Actual length of the interval.
    pub(crate) fn span(&self) -> Duration {
        self.span
    }

    /// Share of the time that the channel was busy; of several channels, the busiest.
    pub(crate) fn utilisation(&self) -> f64 {
        let shares = self
            .stations
            .iter()
            .map(|(from, until)| until.airtime.saturating_sub(from.airtime).as_secs_f64());
        let busy: f64 = if self.half_duplex { shares.sum() } else { shares.fold(0.0, f64::max) };
        busy / self.span.as_secs_f64().max(1e-9)
    }
}

impl Emulator {
    /// Starts to carry frames between the radios, which are numbered as in the medium.
    pub(crate) fn start(config: MediumConfig, radios: Vec<File>) -> Result<Self, LabError> {
        let half_duplex = config.mode == corridor_air::Duplex::Half;
        Emulator::carry(Air::Medium(Box::new(Medium::new(config)?)), radios, half_duplex)
    }

    /// Like [`start`](Self::start), over a line between two radios.
    pub(crate) fn start_line(config: &LineConfig, radios: Vec<File>) -> Result<Self, LabError> {
        let mut line = Line::new(config).map_err(|source| LabError::Pipe { source })?;
        // The clock did not start at zero, so the rates have to begin now.
        line.restart_rates(clock::now());
        Emulator::carry(Air::Line(Box::new(line)), radios, false)
    }

    /// Like [`start`](Self::start), over a network of pipes; each radio is the host at one of its
    /// nodes.
    pub(crate) fn start_links(
        config: &LinksConfig,
        hosts: Vec<usize>,
        radios: Vec<File>,
    ) -> Result<Self, LabError> {
        let mut links = Links::new(config).map_err(|source| LabError::Pipe { source })?;
        links.restart_rates(clock::now());
        Emulator::carry(Air::Links { links: Box::new(links), hosts }, radios, false)
    }

    /// Like [`start`](Self::start), between radios with a standard's MAC.
    pub(crate) fn start_cell(cell: Cell, radios: Vec<File>) -> Result<Self, LabError> {
        Emulator::carry(Air::Cell(Box::new(cell)), radios, true)
    }

    fn carry(medium: Air, radios: Vec<File>, half_duplex: bool) -> Result<Self, LabError> {
        let wake = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let control = Arc::new(Control {
            stop: AtomicBool::new(false),
            begin: AtomicU64::new(u64::MAX),
            from: AtomicU64::new(u64::MAX),
            until: AtomicU64::new(u64::MAX),
            wake: wake.what("make an event descriptor")?,
        });
        let worker = Worker::new(medium, radios, Arc::clone(&control), half_duplex);
        let (tell, told) = mpsc::sync_channel(1);
        let work = move || {
            // The receiver is gone if the thread could not be started.
            let _ = tell.send(gettid());
            worker.work()
        };
        let spawned = thread::Builder::new().name("lab-air".to_owned()).spawn(work);
        let thread = spawned.what("start the emulator's thread")?;
        let thread_id = told.recv().map_err(io::Error::other);
        let thread_id = thread_id.what("start the emulator's thread")?;
        Ok(Emulator { control, thread: Some(thread), thread_id })
    }

    /// The kernel's thread ID.
    pub(crate) fn thread_id(&self) -> Pid {
        self.thread_id
    }

    /// Sets when the load begins, and a line's rates with it, and the interval to report on.
    pub(crate) fn measure(&self, begin: Time, from: Time, until: Time) {
        self.control.begin.store(begin.as_nanos(), Ordering::Relaxed);
        self.control.from.store(from.as_nanos(), Ordering::Relaxed);
        self.control.until.store(until.as_nanos(), Ordering::Relaxed);
        self.wake();
    }

    /// Stops the emulator.
    pub(crate) fn finish(mut self) -> Result<Report, LabError> {
        self.halt();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(report)) => report,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(LabError::Interrupted),
        }
    }

    fn halt(&self) {
        self.control.stop.store(true, Ordering::Relaxed);
        self.wake();
    }

    fn wake(&self) {
        // Fails only after 2^64 unread wake-ups.
        let _ = self.control.wake.write(1);
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.halt();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An Ethernet frame, of which a line only counts the packet.
#[derive(Clone)]
struct Packet(Arc<[u8]>);

impl Carried for Packet {
    fn len_bytes(&self) -> usize {
        self.0.len().saturating_sub(ETHERNET_LEN)
    }
}

/// Radios with a standard's MAC. On the air, a frame has the length of its packet and the MAC's own
/// headers; the Ethernet header does not count.
pub(crate) struct Cell {
    pub(crate) medium: RadioMedium<Arc<[u8]>>,
    /// Whether frames that find a MAC's queue full are dropped, as a driver does that accepts all.
    /// Otherwise they wait in the station's kernel, which pushes the sender back.
    pub(crate) drops: bool,
    /// Where stations read the outcomes of their frames.
    pub(crate) outcomes: Outcomes,
}

impl Cell {
    fn has_room(&self, station: usize) -> bool {
        self.drops || self.medium.has_room(station)
    }

    fn offer(&mut self, now: Time, from: usize, to: Address, frame: &[u8]) -> bool {
        let len_bytes = u32::try_from(frame.len().saturating_sub(ETHERNET_LEN)).unwrap_or(u32::MAX);
        self.medium.offer(now, from, to, len_bytes, frame.into()).is_ok()
    }

    fn poll_delivery(&mut self) -> Option<(Time, usize, Arc<[u8]>)> {
        loop {
            match self.medium.poll_event()? {
                MacEvent::Received { at, station, payload, .. } => {
                    return Some((at, station, payload));
                }
                MacEvent::Sent { station, to, outcome, attempts, .. } => {
                    self.outcomes.count((station, to), outcome, attempts);
                }
            }
        }
    }

    fn station_stats(&self, station: usize) -> StationStats {
        let MacStats { offered, refused, attempts, airtime, .. } = self.medium.stats(station);
        StationStats {
            offered,
            dropped: if self.drops { refused } else { 0 },
            sent_frames: attempts,
            airtime,
            ..StationStats::default()
        }
    }
}

/// What joins the radios.
enum Air {
    Medium(Box<Medium>),
    Line(Box<Line<Packet>>),
    /// Pipes, and the nodes at which the hosts are.
    Links {
        links: Box<Links<Packet>>,
        hosts: Vec<usize>,
    },
    Cell(Box<Cell>),
}

impl Air {
    fn poll_timeout(&self) -> Option<Time> {
        match self {
            Air::Medium(medium) => medium.poll_timeout(),
            Air::Line(line) => line.poll_timeout(),
            Air::Links { links, .. } => links.poll_timeout(),
            Air::Cell(cell) => cell.medium.poll_timeout(),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        match self {
            Air::Medium(medium) => medium.handle_timeout(now),
            Air::Line(line) => line.handle_timeout(now),
            Air::Links { links, .. } => links.handle_timeout(now),
            Air::Cell(cell) => cell.medium.handle_timeout(now),
        }
    }

    /// The next frame that has arrived: time, station, and bytes.
    fn poll_delivery(&mut self) -> Option<(Time, usize, Arc<[u8]>)> {
        match self {
            Air::Medium(medium) => medium.poll_delivery().map(|it| (it.at, it.to, it.frame)),
            Air::Line(line) => line.poll_delivery().map(|it| (it.at, it.to, it.frame.0)),
            Air::Links { links, hosts } => {
                let it = links.poll_delivery()?;
                let host = hosts.iter().position(|&node| node == it.to)?;
                Some((it.at, host, it.frame.0))
            }
            Air::Cell(cell) => cell.poll_delivery(),
        }
    }

    fn has_room(&self, station: usize) -> bool {
        match self {
            Air::Medium(medium) => medium.has_room(station),
            Air::Line(line) => line.has_room(station),
            // Links have no back-pressure.
            Air::Links { .. } => true,
            Air::Cell(cell) => cell.has_room(station),
        }
    }

    /// Puts a frame into a station's queue; returns whether there was room.
    fn offer(&mut self, now: Time, from: usize, to: Address, frame: &[u8]) -> bool {
        match self {
            Air::Medium(medium) => medium.offer(now, from, to, frame).is_ok(),
            Air::Line(line) => line.offer(now, from, to, Packet(frame.into())).is_ok(),
            Air::Links { links, hosts } => {
                let Address::Station(to) = to else { return false };
                links.offer(now, hosts[from], hosts[to], Packet(frame.into())).is_ok()
            }
            Air::Cell(cell) => cell.offer(now, from, to, frame),
        }
    }

    /// The load begins.
    fn begin(&mut self, at: Time) {
        match self {
            Air::Line(line) => line.restart_rates(at),
            Air::Links { links, .. } => links.restart_rates(at),
            Air::Medium(_) | Air::Cell(_) => {}
        }
    }

    /// Reports frames' outcomes to stations that read them. Does not wake any of them: a channel
    /// without traffic has no news.
    fn tell(&mut self, now: Time) {
        if let Air::Cell(cell) = self {
            cell.outcomes.write(now);
        }
    }

    /// Counters of all stations; for links, of every pipe.
    fn stats(&self) -> Vec<StationStats> {
        match self {
            Air::Medium(medium) => (0..medium.stations()).map(|at| medium.stats(at)).collect(),
            Air::Line(line) => (0..line.stations()).map(|at| line.stats(at)).collect(),
            Air::Links { links, .. } => links.stats().map(StationStats::of_pipe).collect(),
            Air::Cell(cell) => {
                (0..cell.medium.stations()).map(|at| cell.station_stats(at)).collect()
            }
        }
    }

    /// Counters of all MACs, on radios that have one.
    fn mac_stats(&self) -> Vec<MacStats> {
        match self {
            Air::Medium(_) | Air::Line(_) | Air::Links { .. } => Vec::new(),
            Air::Cell(cell) => {
                (0..cell.medium.stations()).map(|at| cell.medium.stats(at)).collect()
            }
        }
    }
}

/// Counters at one point in time.
struct Snapshot {
    at: Time,
    stations: Vec<StationStats>,
    macs: Vec<MacStats>,
}

struct Worker {
    medium: Air,
    radios: Vec<File>,
    control: Arc<Control>,
    buffer: Vec<u8>,
    /// Whether the load has begun.
    begun: bool,
    /// Counters at the beginning and the end of the interval.
    from: Option<Snapshot>,
    until: Option<Snapshot>,
    report: Report,
}

impl Worker {
    fn new(medium: Air, radios: Vec<File>, control: Arc<Control>, half_duplex: bool) -> Self {
        // Up to 60 s, to three digits; these bounds are valid, so this cannot fail.
        let lateness = Histogram::new_with_bounds(1, 60_000_000_000, 3)
            .unwrap_or_else(|_| unreachable!("the bounds are constants"));
        Worker {
            medium,
            radios,
            control,
            buffer: vec![0; FRAME_LEN_MAX],
            begun: false,
            from: None,
            until: None,
            report: Report {
                stations: Vec::new(),
                macs: Vec::new(),
                span: Duration::ZERO,
                half_duplex,
                lateness,
                realtime: false,
                refused: 0,
            },
        }
    }

    fn work(mut self) -> Result<Report, LabError> {
        let _ = set_timerslack(1);
        self.report.realtime = priority::EMULATOR.apply().is_ok();
        self.medium.handle_timeout(clock::now());
        while !self.control.stop.load(Ordering::Relaxed) {
            let now = clock::now();
            self.take_snapshots(now);
            self.advance(now);
            let fetched = self.fetch()?;
            // Needed here too, for when there is always another frame.
            self.medium.tell(now);
            if !fetched {
                self.wait()?;
            }
        }
        self.take_snapshots(clock::now());
        Ok(self.finished())
    }

    fn finished(mut self) -> Report {
        if let (Some(from), Some(until)) = (self.from, self.until) {
            self.report.span = until.at - from.at;
            self.report.stations = from.stations.into_iter().zip(until.stations).collect();
            self.report.macs = from.macs.into_iter().zip(until.macs).collect();
        }
        self.report
    }

    /// Handles the medium's events until `now`.
    fn advance(&mut self, now: Time) {
        while let Some(at) = self.medium.poll_timeout().filter(|&at| at <= now) {
            self.medium.handle_timeout(at);
            self.deliver();
        }
    }

    /// Writes frames that have been heard by now to the radios.
    fn deliver(&mut self) {
        while let Some((at, to, frame)) = self.medium.poll_delivery() {
            let Some(radio) = self.radios.get_mut(to) else { continue };
            if radio.write(&frame).is_err() {
                self.report.refused += 1;
            }
            if self.from.is_some() && self.until.is_none() {
                let late = clock::now().since(at).as_nanos();
                self.report.lateness.saturating_record(u64::try_from(late).unwrap_or(u64::MAX));
            }
        }
    }

    /// Takes at most [`FETCH_MAX`] frames from the radio of each station that has room. Returns
    /// whether the medium accepted any.
    fn fetch(&mut self) -> Result<bool, LabError> {
        let mut fetched = false;
        for index in 0..self.radios.len() {
            for _ in 0..FETCH_MAX {
                if !self.medium.has_room(index) {
                    break;
                }
                let len = match self.radios[index].read(&mut self.buffer) {
                    Ok(len) => len,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error).what("read from a radio"),
                };
                // If the thread lost its processor, the frame may have arrived after the clock was
                // last read, and it must not be on the air before it arrived.
                let now = clock::now();
                self.advance(now);
                let frame = &self.buffer[..len];
                let to = match station_of(frame, self.radios.len()) {
                    Some(station) => Address::Station(station),
                    None => Address::All,
                };
                fetched |= self.medium.offer(now, index, to, frame);
            }
        }
        Ok(fetched)
    }

    /// Sleeps until something happens on the medium, at a radio with room, or in the control.
    fn wait(&mut self) -> Result<(), LabError> {
        let mut descriptors = vec![PollFd::new(self.control.wake.as_fd(), PollFlags::POLLIN)];
        let with_room = (0..self.radios.len()).filter(|&index| self.medium.has_room(index));
        let radios =
            with_room.map(|index| PollFd::new(self.radios[index].as_fd(), PollFlags::POLLIN));
        descriptors.extend(radios);
        let timeout = self.next_event().map(|at| TimeSpec::from(at.since(clock::now())));
        match ppoll(&mut descriptors, timeout, None) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error).what("wait for frames"),
        }
        if descriptors[0].revents().is_some_and(|events| !events.is_empty()) {
            let _ = self.control.wake.read();
        }
        Ok(())
    }

    fn next_event(&self) -> Option<Time> {
        let begin = (!self.begun).then(|| self.control.begin.load(Ordering::Relaxed));
        let from = self.from.is_none().then(|| self.control.from.load(Ordering::Relaxed));
        let until = self.until.is_none().then(|| self.control.until.load(Ordering::Relaxed));
        let limits = [begin, from, until].into_iter().flatten().filter(|&ns| ns != u64::MAX);
        self.medium.poll_timeout().into_iter().chain(limits.map(Time::from_nanos)).min()
    }

    fn take_snapshots(&mut self, now: Time) {
        let due = |limit: &AtomicU64| now.as_nanos() >= limit.load(Ordering::Relaxed);
        if !self.begun && due(&self.control.begin) {
            self.begun = true;
            self.medium.begin(Time::from_nanos(self.control.begin.load(Ordering::Relaxed)));
        }
        let counters = |medium: &Air| {
            Some(Snapshot { at: now, stations: medium.stats(), macs: medium.mac_stats() })
        };
        if self.from.is_none() && due(&self.control.from) {
            self.from = counters(&self.medium);
        }
        if self.until.is_none() && due(&self.control.until) {
            self.until = counters(&self.medium);
        }
    }
}
