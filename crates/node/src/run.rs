//! The run loop: one thread, which waits for the host, the underlay, a signal, a client of the
//! control socket, or a timer.
//!
//! 1. Fire timers that are due.
//! 2. Hand decoded packets to the host, log events.
//! 3. Make frames, as long as the underlay takes them.
//! 4. Wait.
//! 5. Take a batch of packets from the host and of frames from the underlay; back to 1.
//!
//! Frames are made only while the underlay has room for them, and handed over once there are no
//! more to make or a batch is full. If there is no room, the rest of the batch waits and is offered
//! again; the station is not asked for more frames meanwhile, so that packets stay in its queue,
//! where it can manage them. If that happens, a batch has one frame (`underlay/outbox.rs`).

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use corridor_base::Time;
use corridor_proto::{
    Admission, AnyStation, Certainty, Event, FrameLens, FrameOutcome, Gate, PacketOutcome,
    RelayStation, StationId,
};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::Signal;
use nix::sys::time::TimeSpec;

use crate::clock::{Clock, processor_time};
use crate::config::NodeConfig;
use crate::control::{CLIENTS_MAX, Control, control_socket};
use crate::diagnosis::Diagnosis;
use crate::error::NodeError;
use crate::events;
use crate::links::LinkWatch;
use crate::loss::SyntheticLoss;
use crate::memory;
use crate::reload::{self, Changes};
use crate::retries::Retries;
use crate::signals::Signals;
use crate::stats_file::{self, IoStats, PeerReport, Report};
use crate::status::{Sources, Status};
use crate::tun::Tun;
use crate::underlay::{Address, Busy, News, Source, Underlay, random};
use crate::verbose::{self, Verbose};

/// Frames made in a row before input is processed.
const TRANSMIT_BATCH: usize = 64;
/// Packets taken from the host before input from the underlay is processed: feedback must not wait
/// behind many packets.
const PACKETS_IN_A_ROW: usize = 128;
/// Reads from the host in a row; each returns a packet or a super-packet.
const TUN_READS: usize = 8;

/// How long an underlay that takes no frames may delay the end.
const GOODBYE_TIME_MAX: Duration = Duration::from_secs(1);

/// Descriptors that are always waited on, signals first.
const FDS_FIXED: usize = 4;
/// The same, including those of the control socket.
const FDS_MAX: usize = FDS_FIXED + 1 + CLIENTS_MAX;

/// Options of a run besides the configuration.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Where to write statistics on SIGUSR1 and at the end.
    pub stats_file: Option<PathBuf>,
    /// The file from which the configuration was read: SIGHUP reads it again, and its stem is the
    /// name of the control socket. `None`: there is neither.
    pub config_file: Option<PathBuf>,
}

/// Runs a node until SIGTERM or SIGINT; a second signal ends the process at once. SIGHUP reads the
/// configuration again, and never ends the process.
///
/// The calling thread must be the only one, or the others must have these signals and SIGUSR1
/// blocked.
///
/// # Errors
/// The node could not start, its interface or TUN device was removed, or the statistics could not
/// be written.
pub fn run(config: &NodeConfig, options: &RunOptions) -> Result<(), NodeError> {
    if let Some(path) = &options.stats_file {
        stats_file::check_place(path)?;
    }
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    // From now on signals wait until the loop reads them.
    let signals = Signals::block()?;
    let mut driver = Driver::start(config.clone(), options)?;
    let ended = driver.run(&signals, options);
    let stats = options.stats_file.as_ref().map(|path| driver.write_stats(path, true));
    if ended.is_ok() {
        signals.unblock();
    }
    driver.close();
    ended.and(stats.unwrap_or(Ok(())))
}

/// A station, and what it is connected to.
struct Driver {
    /// The configuration in force: as first read, with the changes applied since.
    config: NodeConfig,
    /// Stem of the configuration file's name.
    name: String,
    control: Option<Control>,
    /// The TUN device's MTU in bytes.
    mtu: usize,
    station: AnyStation,
    underlay: Underlay,
    tun: Option<Tun>,
    loss: SyntheticLoss,
    clock: Clock,
    diagnosis: Diagnosis,
    /// Of a relay: the retry counters of its interface, if available.
    retries: Option<Retries>,
    gate: Gate<Source>,
    watch: Watch,
    /// The underlay had no room for a frame.
    waiting: Option<Waiting>,
    io: IoStats,
}

/// What is observed besides packets and frames.
struct Watch {
    /// The kernel's notifications about interfaces; `None`: unavailable.
    links: Option<LinkWatch>,
    verbose: Verbose,
}

#[derive(Clone, Copy)]
struct Waiting {
    again_at: Time,
    wakes: bool,
}

/// The result of a wait.
struct Ready {
    signal: bool,
    tun: bool,
    underlay: bool,
    control: bool,
    links: bool,
}

impl Driver {
    fn start(config: NodeConfig, options: &RunOptions) -> Result<Self, NodeError> {
        let clock = Clock::start()?;
        // Before the first look at an interface, so that no change is missed.
        let links = LinkWatch::open()
            .inspect_err(|error| tracing::debug!("cannot monitor interfaces: {error}"));
        let underlay = Underlay::open(&config, clock.now())?;
        let entropy = random()?;
        let (longest, shortest) = (underlay.frame_len_max(), underlay.frame_len_min());
        let (mut station, mtu_max) = config.station(longest, shortest, entropy, clock.both())?;
        let lens = underlay.frame_lens();
        let base = lens.base.max(config.frame_len_needed(&station));
        station.find_path_mtu(clock.now(), FrameLens { base, ..lens });
        if underlay.has_strangers() {
            let called = config.peers.iter().filter(|peer| peer.endpoint.is_some());
            let called: Vec<StationId> = called.map(|peer| peer.id).collect();
            station.reach_out(clock.now(), &called);
        }
        let mtu = config.device_mtu(station.tunnel_mtu());
        let tun = config.tun.as_ref().map(|tun| Tun::open(tun, mtu, mtu_max)).transpose()?;
        // Otherwise the kernel may wake us 50 us late, to save power.
        let _ = nix::sys::prctl::set_timerslack(1);
        tracing::info!(
            "station {} is up: {}, {}, frames of up to {longest} bytes, {}",
            config.id.0,
            config.role_name(),
            config.tun.as_ref().map_or("no TUN device".into(), |tun| {
                format!("{} with MTU {mtu} bytes", tun.name)
            }),
            underlay.describe(),
        );
        memory::lines(&config, &station, |_| true).iter().for_each(|it| tracing::info!("{it}"));
        let name = options.config_file.as_deref().and_then(Path::file_stem);
        let name = name.unwrap_or_default().to_string_lossy().into_owned();
        let gate = Gate::new(config.id, &config.security, random()?, clock.now())
            .with_networks(Source::network);
        Ok(Driver {
            watch: Watch { links: links.ok(), verbose: Verbose::default() },
            control: open_control(&name, &config),
            diagnosis: Diagnosis::new(&config, &station, clock.now()),
            loss: SyntheticLoss::new(&config.synthetic_loss, config.id),
            retries: config
                .underlay
                .retries()
                .map(|(source, interface)| Retries::new(source, interface, clock.now())),
            config,
            name,
            mtu,
            station,
            underlay,
            tun,
            clock,
            gate,
            waiting: None,
            io: IoStats::default(),
        })
    }

    fn run(&mut self, signals: &Signals, options: &RunOptions) -> Result<(), NodeError> {
        loop {
            let clocks = self.clock.both();
            let now = clocks.now;
            self.station.set_clock(clocks);
            if self.station.poll_timeout().is_some_and(|due| due <= now) {
                self.station.handle_timeout(now);
            }
            self.underlay.handle_timeout(now)?;
            self.look_at_retries(now);
            self.hear_news(now);
            self.deliver()?;
            self.tell_events()?;
            self.diagnosis.check(now, &self.station, &mut self.underlay);
            self.watch.verbose.look(now, &self.station, &self.io);
            let more = self.transmit()?;
            // Frames that have left may have produced packets for the host's TCP.
            self.deliver()?;
            let ready = self.wait(signals, more, None)?;
            if ready.signal {
                match signals.next()? {
                    Some(Signal::SIGUSR1) => self.report_stats(options),
                    Some(Signal::SIGHUP) => self.reload(options),
                    Some(signal) => {
                        tracing::info!("{signal}: stopping");
                        return self.say_goodbye(signals);
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
            if ready.control {
                self.serve();
            }
            if ready.links {
                self.hear_of_links();
            }
        }
    }

    /// Processes the kernel's notifications about interfaces.
    fn hear_of_links(&mut self) {
        let Some(links) = &mut self.watch.links else { return };
        let (now, heard) = (self.clock.now(), links.read());
        let mut tun = self.tun.as_mut().zip(self.config.tun.as_ref());
        for link in heard.states {
            match &mut tun {
                Some((tun, config)) if tun.is(link.index) => tun.note_link(link.up, config),
                _ => self.underlay.note_link(now, &link),
            }
        }
        if let Some((tun, config)) = tun.filter(|_| heard.missed) {
            tun.note_missed(config);
        }
    }

    /// Says goodbye to the peers, until they have confirmed it, it was repeated often enough, or
    /// another signal comes.
    fn say_goodbye(&mut self, signals: &Signals) -> Result<(), NodeError> {
        self.station.close(self.clock.now());
        // Nothing is taken from the host any more, and nothing waited for.
        if let Some(tun) = self.tun.take() {
            tun.close();
        }
        let end = self.clock.now() + GOODBYE_TIME_MAX;
        loop {
            let now = self.clock.now();
            self.underlay.handle_timeout(now)?;
            self.look_at_retries(now);
            self.diagnosis.check(now, &self.station, &mut self.underlay);
            let more = self.transmit()?;
            // Checked after making frames: after the last of them nothing is left to wait for.
            if self.station.is_closed() || now >= end {
                return Ok(());
            }
            let ready = self.wait(signals, more, Some(end))?;
            // Read, so that it does not end the program before the statistics are written.
            if ready.signal && !matches!(signals.next()?, None | Some(Signal::SIGUSR1)) {
                return Ok(());
            }
            if ready.underlay {
                self.receive()?;
            }
            // A client that is not served would end the wait at once.
            if ready.control {
                self.serve();
            }
            if ready.links {
                self.hear_of_links();
            }
        }
    }

    /// Reports to a relay how often its interface retransmitted.
    fn look_at_retries(&mut self, now: Time) {
        let Some(retries) = self.retries.as_mut().filter(|it| it.poll_timeout() <= now) else {
            return;
        };
        for (mac, sent) in retries.look(now) {
            if let Some(to) = self.underlay.station_at(mac) {
                self.station.handle_retries(now, to, sent);
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

    /// Reports to the station what the underlay has found out about the path.
    fn hear_news(&mut self, now: Time) {
        while let Some(news) = self.underlay.news() {
            verbose::path_news(&news);
            match news {
                News::Limit(len) => self.station.limit_frames(now, len),
                News::TooLong => self.station.note_too_long(now),
                News::Path(peer) => self.station.note_path_changed(now, peer),
            }
        }
    }

    /// Sets the device's MTU to that of the paths.
    fn fit_device(&mut self) -> Result<(), NodeError> {
        let Some(device) = &self.tun else { return Ok(()) };
        let mtu = self.config.device_mtu(self.station.tunnel_mtu());
        if mtu != self.mtu {
            device.set_mtu(mtu)?;
            self.mtu = mtu;
        }
        Ok(())
    }

    /// Adapts the TUN device to what the path carries.
    fn follow_path(
        &mut self,
        peer: StationId,
        frame_len: usize,
        tunnel_mtu: usize,
    ) -> Result<(), NodeError> {
        let (Some(tun), Some(device)) = (&self.config.tun, &self.tun) else { return Ok(()) };
        let (mtu, name) = (self.config.device_mtu(tunnel_mtu), &tun.name);
        tracing::info!(
            "the path to station {} carries frames of {frame_len} bytes: {name} MTU set to {mtu} bytes",
            peer.0
        );
        if mtu > tunnel_mtu {
            tracing::warn!(
                "{name} keeps an MTU of {mtu} bytes, the minimum for IPv6, but packets longer than \
                 {tunnel_mtu} bytes are dropped"
            );
        }
        device.set_mtu(mtu)?;
        self.mtu = mtu;
        Ok(())
    }

    fn tell_events(&mut self) -> Result<(), NodeError> {
        while let Some(event) = self.station.poll_event() {
            match event {
                Event::ModeDiffers { .. } => self.diagnosis.hurry(),
                Event::PathMtu { peer, frame_len, tunnel_mtu } => {
                    self.follow_path(peer, frame_len, tunnel_mtu)?;
                }
                other => events::log(&other),
            }
        }
        Ok(())
    }

    /// Makes frames as long as the underlay takes them; returns whether more may follow at once.
    fn transmit(&mut self) -> Result<bool, NodeError> {
        let now = self.clock.now();
        if self.waiting.is_some() && !self.flush(now)? {
            return Ok(false);
        }
        while let Some(asked) = self.underlay.poll_challenge(now, |peer| self.station.is_up(peer))
            && let Some(frame) = self.station.challenge(asked.station, asked.token)
        {
            tracing::debug!(
                "sending an address challenge for station {} to {}",
                asked.station.0,
                asked.address
            );
            self.underlay.push_to(asked.address, frame);
        }
        for _ in 0..TRANSMIT_BATCH {
            let Some(transmit) = self.station.poll_transmit(now) else {
                self.flush(now)?;
                return Ok(false);
            };
            if transmit.probes {
                tracing::trace!(
                    "sending an MTU probe of {} bytes to {:?}",
                    transmit.frame.len(),
                    transmit.to
                );
            }
            self.underlay.push(now, &transmit);
            if self.underlay.is_full() && !self.flush(now)? {
                return Ok(false);
            }
        }
        self.flush(now)
    }

    /// Hands over the frames made; returns whether all were taken.
    fn flush(&mut self, now: Time) -> Result<bool, NodeError> {
        let flushed = self.underlay.flush(now)?;
        self.io.frames_refused += flushed.lost;
        self.io.underlay_busy += u64::from(flushed.busy.is_some());
        let wait = |busy: Busy| Waiting { again_at: now + busy.retry, wakes: busy.wakes };
        self.waiting = flushed.busy.map(wait);
        Ok(flushed.busy.is_none())
    }

    /// Waits until something can be done, but at most until `end`. While a frame waits for the
    /// underlay, the station's timers wait too.
    fn wait(
        &mut self,
        signals: &Signals,
        more: bool,
        end: Option<Time>,
    ) -> Result<Ready, NodeError> {
        self.io.wakeups += 1;
        let due = match &self.waiting {
            Some(waiting) => Some(waiting.again_at),
            None => [
                self.station.poll_timeout(),
                self.underlay.poll_timeout(),
                self.diagnosis.poll_timeout(),
                self.retries.as_ref().map(Retries::poll_timeout),
            ]
            .into_iter()
            .flatten()
            .min(),
        };
        let until = [due, end].into_iter().flatten().min();
        let now = self.clock.now();
        let timeout = if more { Some(Duration::ZERO) } else { until.map(|until| until.since(now)) };
        let wakes = self.waiting.as_ref().is_some_and(|waiting| waiting.wakes);
        let underlay =
            if wakes { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
        let signal_fd = signals.0.as_fd();
        let mut fds: [PollFd<'_>; FDS_MAX] =
            std::array::from_fn(|_| PollFd::new(signal_fd, PollFlags::POLLIN));
        fds[1] = PollFd::new(self.underlay.fd().unwrap_or(signal_fd), underlay);
        fds[2] = PollFd::new(self.tun.as_ref().map_or(signal_fd, Tun::fd), PollFlags::POLLIN);
        fds[3] = PollFd::new(
            self.watch.links.as_ref().map_or(signal_fd, LinkWatch::fd),
            PollFlags::POLLIN,
        );
        let mut count = FDS_FIXED;
        for (fd, reads) in self.control.iter().flat_map(Control::fds) {
            let flags = if reads { PollFlags::POLLIN } else { PollFlags::POLLOUT };
            fds[count] = PollFd::new(fd, flags);
            count += 1;
        }
        match ppoll(&mut fds[..count], timeout.map(TimeSpec::from_duration), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => {
                return Err(NodeError::System { action: "wait".into(), source: errno.into() });
            }
        }
        // Errors of a descriptor are reported by the call that reads it.
        let ready = |index: usize| {
            let events = fds[index].revents().unwrap_or(PollFlags::empty());
            !(events - PollFlags::POLLOUT).is_empty()
        };
        let control = fds[FDS_FIXED..count]
            .iter()
            .any(|fd| fd.revents().is_some_and(|events| !events.is_empty()));
        let tun = self.tun.is_some() && ready(2);
        let underlay = self.underlay.fd().is_some() && ready(1);
        let links = self.watch.links.is_some() && ready(3);
        Ok(Ready { signal: ready(0), underlay, tun, control, links })
    }

    /// Takes a batch of frames from the underlay. If more wait, feedback goes first.
    fn receive(&mut self) -> Result<(), NodeError> {
        let now = self.clock.now();
        let count = self.underlay.receive(now)?;
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
        let expects = |frame: &[u8]| self.station.expects(frame);
        let len_bytes = frame.len();
        let address = Address::from(sender);
        let from = (Source::of(sender), &address.bytes()[..]);
        let frame = match self.gate.admit(now, from, frame, expects) {
            Admission::Pass(frame) => frame,
            Admission::Refuse => {
                tracing::trace!("rate limit: ignored a handshake message from {address}");
                self.io.key_exchanges_refused += 1;
                return;
            }
            Admission::Answer(cookie) => {
                if self.underlay.may_answer() {
                    self.underlay.push_to(address, &cookie);
                    self.io.cookies_sent += 1;
                }
                return;
            }
        };
        let outcome = self.station.handle_frame(now, frame);
        verbose::frame(&outcome, address, len_bytes);
        match outcome {
            FrameOutcome::Accepted { from } => {
                self.underlay.learn(now, (from, sender), Certainty::Session, len_bytes);
                // A relay challenges nobody.
                if self.station.relay().is_some() {
                    self.underlay.believe(from, address);
                }
            }
            FrameOutcome::Handshake { from } => {
                self.underlay.learn(now, (from, sender), Certainty::Handshake, len_bytes);
            }
            FrameOutcome::Initiation { from } => {
                self.underlay.learn(now, (from, sender), Certainty::Initiation, len_bytes);
            }
            FrameOutcome::Answered { from, token } => {
                self.underlay.learn(now, (from, sender), Certainty::Answer(token), len_bytes);
            }
            FrameOutcome::Noted => {}
            FrameOutcome::Rejected(rejection) => {
                let (station, underlay) = (&self.station, &self.underlay);
                self.diagnosis.note_rejected(station, underlay, (sender, frame), rejection);
            }
        }
    }

    /// Takes packets from the host. The station counts those that it refuses.
    ///
    /// Frames are made after each super-packet: a few of these are longer than the ingress queue,
    /// which would drop packets that the underlay has room for.
    fn take_packets(&mut self) -> Result<(), NodeError> {
        let mut taken = 0;
        for _ in 0..TUN_READS {
            let Some(tun) = &mut self.tun else { return Ok(()) };
            let count = tun.receive()?;
            taken += count;
            let now = self.clock.now();
            for index in 0..count {
                let packet = tun.packet(index);
                if tun.is_of_own_link(packet) {
                    self.io.packets_of_own_link += 1;
                    continue;
                }
                let outcome = self.station.handle_packet(now, packet);
                if outcome != PacketOutcome::Accepted {
                    verbose::packet_dropped(packet.len(), outcome);
                }
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

    /// Serves the control socket.
    fn serve(&mut self) {
        // Taken out, because its clients read the rest of the driver.
        let Some(mut control) = self.control.take() else { return };
        control.serve(|| self.status());
        self.control = Some(control);
    }

    fn status(&self) -> Status {
        let sources = Sources {
            name: &self.name,
            config: &self.config,
            station: &self.station,
            underlay: &self.underlay,
            mtu: self.mtu,
            io: &self.io,
            problem: &|peer| self.diagnosis.problem(peer),
            now: self.clock.now(),
        };
        sources.status()
    }

    /// Reads the configuration again and applies what can be applied. Errors in it are logged, and
    /// the node goes on.
    fn reload(&mut self, options: &RunOptions) {
        let Some(path) = &options.config_file else {
            return tracing::warn!("SIGHUP: no configuration file to reload");
        };
        let frame_len_max = self.underlay.frame_len_max();
        let read = NodeConfig::load(path).and_then(|new| {
            new.check(frame_len_max)?;
            Ok(new)
        });
        let file = path.display();
        let new = match read {
            Ok(new) => new,
            Err(error) => {
                return tracing::error!("SIGHUP: {error}; keeping the current configuration");
            }
        };
        for warning in &new.warnings {
            tracing::warn!("{warning}");
        }
        let changes = Changes::between(&self.config, &new);
        let mut taken: Vec<_> = changes.live.clone();
        taken.retain(|name| self.take_over(name, &new));
        if !taken.is_empty() {
            tracing::info!("SIGHUP: reloaded {file}, applied: {}", taken.join(", "));
        }
        if !changes.restart.is_empty() {
            let restart = changes.restart.join(", ");
            tracing::warn!("SIGHUP: {file}: restart to apply changes in: {restart}");
        }
        if changes == Changes::default() {
            tracing::info!("SIGHUP: reloaded {file}, nothing changed");
        }
    }

    /// Applies one part of another configuration; returns whether all of it could be applied.
    fn take_over(&mut self, part: &str, new: &NodeConfig) -> bool {
        match part {
            reload::ENDPOINTS | reload::MACS => {
                let now = self.clock.now();
                self.underlay.configure(now, &self.config.peers, &new.peers);
                self.config.peers.clone_from(&new.peers);
                self.station.greet(now);
                true
            }
            reload::PEERS => self.take_over_peers(new),
            reload::NETWORKS => {
                let Some(networks) = new.networks() else { return false };
                let taken = self.station.set_networks(&networks, &self.config.own_addresses());
                match &taken {
                    Err(error) => {
                        tracing::error!("SIGHUP: {error}; keeping the current networks");
                    }
                    Ok(_) => self.config.peers.clone_from(&new.peers),
                }
                taken.unwrap_or(false)
            }
            reload::ROUTES => {
                let (Some(tun), Some(of)) = (&mut self.tun, &mut self.config.tun) else {
                    return false;
                };
                let routes = new.tun.as_ref().map_or(Vec::new(), |tun| tun.routes_of(false));
                let done = tun.set_routes(&routes);
                of.routes = [tun.routes(), &of.routes_of(true)].concat();
                done
            }
            reload::RATE => {
                self.config.underlay.rate_bps = new.underlay.rate_bps;
                self.station.set_rate_bps(new.underlay.rate_bps);
                true
            }
            reload::CONTROL => {
                self.config.control_group.clone_from(&new.control_group);
                self.control = None;
                self.control = open_control(&self.name, &self.config);
                self.control.is_some()
            }
            reload::LOSS => {
                self.config.synthetic_loss = new.synthetic_loss.clone();
                self.loss = SyntheticLoss::new(&new.synthetic_loss, self.config.id);
                true
            }
            _ => false,
        }
    }

    /// Applies a hub's new list of peers. Sessions of peers that stay go on.
    fn take_over_peers(&mut self, new: &NodeConfig) -> bool {
        let now = self.clock.now();
        let mut entropy = [0; 32];
        if let Err(error) = getrandom::fill(&mut entropy) {
            tracing::error!("SIGHUP: cannot get random bytes: {error}; keeping the current peers");
            return false;
        }
        let config = self.config.with_peers_of(new);
        let lens = (self.underlay.frame_len_max(), self.underlay.frame_len_min());
        match config.set_neighbours(&mut self.station, lens, entropy, now) {
            Ok(true) => {}
            Ok(false) => return false,
            Err(error) => {
                tracing::error!("SIGHUP: {error}; keeping the current peers");
                return false;
            }
        }
        for peer in self.config.peers.iter().filter(|peer| !config.has_peer(peer.id)) {
            tracing::info!("removed peer station {}", peer.id.0);
        }
        for peer in config.peers.iter().filter(|peer| !self.config.has_peer(peer.id)) {
            tracing::info!("added peer station {}", peer.id.0);
        }
        let is_new = |id: StationId| config.has_peer(id) && !self.config.has_peer(id);
        memory::lines(&config, &self.station, is_new).iter().for_each(|it| tracing::info!("{it}"));
        self.underlay.configure(now, &self.config.peers, &config.peers);
        self.diagnosis = Diagnosis::new(&config, &self.station, now);
        self.config = config;
        // Some may have moved, and the smallest MTU may be different.
        self.station.greet(now);
        self.fit_device().inspect_err(|error| tracing::error!("SIGHUP: {error}")).is_ok()
    }

    /// Writes the statistics while running: errors are logged, and the node goes on.
    fn report_stats(&self, options: &RunOptions) {
        match &options.stats_file {
            None => tracing::warn!("SIGUSR1: ignored, no --stats-file given"),
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
            stats: &self.station.stats(),
            hub: self.station.hub_stats(),
            relay: self.station.relay().map(RelayStation::relay_counters),
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

/// The control socket of a node with this name. A node also works without one.
fn open_control(name: &str, config: &NodeConfig) -> Option<Control> {
    if name.is_empty() {
        return None;
    }
    Control::open(&control_socket(name), config.control_group.as_deref())
        .inspect_err(|error| tracing::warn!("no control socket for corridor status: {error}"))
        .ok()
}
