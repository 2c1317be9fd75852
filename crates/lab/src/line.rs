//! Point-to-point links in real time: the simulator's own [`Pipe`], one each way, between the
//! kernels of two hosts, with a TCP connection of these kernels across them.
//!
//! 1. Two stations, S and D, whose interfaces hand over single segments (no GSO).
//! 2. A thread takes frames from either interface at once, puts them into the pipe of that
//!    direction, and writes those that have arrived to the other interface. A full pipe drops;
//!    there is no back-pressure.
//! 3. S writes without end, D reads everything. The result is what D has read when the time is
//!    over.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;

use corridor_air::{Pipe, PipeConfig, PipeStats};
use corridor_base::{StreamKey, Time};
use corridor_scenario::{DESTINATION, ETHERNET_MTU, SOURCE, Wire};
use hdrhistogram::Histogram;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};

use crate::clock;
use crate::error::{Context, LabError};
use crate::node::INNER_SUBNET;
use crate::priority;
use crate::station::{RADIO, RadioConfig, Station, address, without_gso};
use crate::sys::{self, TcpInfo};

/// Bytes of Ethernet's header, which pipes do not carry.
const ETHERNET_LEN: usize = 14;
/// Frames in an interface's ring, from which all are taken at once.
const RING_FRAMES: usize = 4_096;
/// Port of D.
const PORT: u16 = 7700;
/// Bytes per read and write.
const CHUNK_BYTES: usize = 1 << 16;
/// Largest send buffer of S, so large that only congestion control limits it.
const SEND_BUFFER_BYTES_MAX: usize = 1 << 27;
/// How often threads check whether to end.
const TICK: Duration = Duration::from_millis(20);
/// Time limit until a connection is established.
const CONNECT_MAX: Duration = Duration::from_secs(30);

/// A run of the kernel's TCP over two pipes.
#[derive(Clone, Debug)]
pub struct LineRun {
    /// From S to D.
    pub forth: PipeConfig,
    /// From D to S.
    pub back: PipeConfig,
    /// Seed of the pipes' losses.
    pub seed: u64,
    /// Replication of the pipes' losses.
    pub replication: u64,
    /// Congestion control of S, by the kernel's name.
    pub congestion: String,
    /// How long S sends after the handshake.
    pub duration: Duration,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct LineReport {
    /// Bytes that D's application has read.
    pub delivered_bytes: u64,
    /// Data segments that S has sent, including retransmissions.
    pub segments_sent: u64,
    /// Of these, retransmissions.
    pub retransmitted: u64,
    /// Round-trip time estimated by S at the end.
    pub rtt: Duration,
    /// Counters of the pipes: from S to D, from D to S.
    pub pipes: [PipeStats; 2],
    /// Upper bound of the lateness of 99 % of the frames.
    pub late_p99: Duration,
}

/// Makes a run. Call [`crate::prepare`] first.
///
/// # Errors
/// See [`LabError`]; [`LabError::Interrupted`] if no connection was established.
pub fn run_line(run: &LineRun) -> Result<LineReport, LabError> {
    let _raised = priority::raise_stations(Wire::Radio);
    let radio = RadioConfig {
        ring_frames: RING_FRAMES,
        mtu: ETHERNET_MTU,
        stations: 2,
        hops: 1,
        subnet: Some(INNER_SUBNET),
    };
    let mut stations = [Station::new(SOURCE, radio)?, Station::new(DESTINATION, radio)?];
    for station in &stations {
        station.namespace.run(|| {
            without_gso(RADIO)?;
            let limits = format!("4096 {CHUNK_BYTES} {SEND_BUFFER_BYTES_MAX}");
            fs::write("/proc/sys/net/ipv4/tcp_wmem", limits).what("set net.ipv4.tcp_wmem")
        })?;
    }
    let taps = stations.each_mut().map(|station| station.tap.take());
    let [Some(near), Some(far)] = taps else { return Err(LabError::Interrupted) };
    let stop = Arc::new(AtomicBool::new(false));
    let carrier = Carrier::new(run, [near, far], Arc::clone(&stop))?;
    let carrier = thread::Builder::new().name("lab-line".to_owned()).spawn(|| carrier.work());
    let carrier = carrier.what("start the thread between the interfaces")?;
    let sent = transfer(run, &stations);
    stop.store(true, Ordering::Relaxed);
    let carried = match carrier.join() {
        Ok(carried) => carried?,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    let (info, delivered_bytes) = sent?;
    Ok(LineReport {
        delivered_bytes,
        segments_sent: info.segments_sent,
        retransmitted: info.retransmits,
        rtt: info.rtt,
        pipes: carried.pipes.map(|pipe| *pipe.stats()),
        late_p99: Duration::from_nanos(carried.lateness.value_at_quantile(0.99)),
    })
}

/// Makes a connection and loads it; returns TCP's state at S at the end, and the bytes that D has
/// read.
fn transfer(run: &LineRun, stations: &[Station; 2]) -> Result<(TcpInfo, u64), LabError> {
    let [source, sink] = stations;
    let to = SocketAddr::from((address(INNER_SUBNET, DESTINATION), PORT));
    let listener = sink.namespace.run(move || TcpListener::bind(to).what("listen at D"))?;
    let (congestion, duration) = (run.congestion.clone(), run.duration);
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    let sender = source.namespace.spawn("lab-source", move || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP));
        let socket = socket.what("make a TCP socket")?;
        let what = format!("congestion control {congestion}, which this kernel may not have");
        socket.set_tcp_congestion(congestion.as_bytes()).what(what)?;
        socket.set_write_timeout(Some(TICK)).what("set a time limit")?;
        socket.connect_timeout(&to.into(), CONNECT_MAX).what("connect to D")?;
        // The connection is reset at the end: data in flight no longer matters.
        socket.set_linger(Some(Duration::ZERO)).what("set SO_LINGER")?;
        let begin = clock::now();
        // If the receiver has failed and is gone, its own error says why.
        let _ = tell.send(begin);
        write_until(&socket.into(), begin + duration)
    })?;
    let receiver = sink.namespace.spawn("lab-sink", move || {
        let stream = accept(&listener)?;
        let Ok(begin) = told.recv() else { return Ok(0) };
        read_until(&stream, begin + duration)
    })?;
    let sent = sender.join();
    let read = receiver.join();
    Ok((sent?, read?))
}

/// Accepts a connection.
fn accept(listener: &TcpListener) -> Result<TcpStream, LabError> {
    listener.set_nonblocking(true).what("make a listener non-blocking")?;
    let until = clock::now() + CONNECT_MAX;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).what("make a TCP socket blocking")?;
                stream.set_read_timeout(Some(TICK)).what("set a time limit")?;
                return Ok(stream);
            }
            Err(_) if clock::now() < until => thread::sleep(TICK / 20),
            Err(_) => return Err(LabError::Interrupted),
        }
    }
}

/// Writes as much as possible.
fn write_until(mut stream: &TcpStream, end: Time) -> Result<TcpInfo, LabError> {
    let chunk = vec![0x5a; CHUNK_BYTES];
    while clock::now() < end {
        match stream.write(&chunk) {
            Ok(_) => {}
            Err(error) if is_impatience(&error) => {}
            Err(error) => return Err(error).what("write to D"),
        }
    }
    sys::tcp_info(stream).what("ask for TCP_INFO")
}

/// Reads all that arrives; returns the number of bytes.
fn read_until(mut stream: &TcpStream, end: Time) -> Result<u64, LabError> {
    let mut buffer = vec![0; 4 * CHUNK_BYTES];
    let mut bytes = 0;
    loop {
        let read = stream.read(&mut buffer);
        if clock::now() >= end {
            return Ok(bytes);
        }
        match read {
            Ok(0) => return Ok(bytes),
            Ok(len) => bytes += len as u64,
            Err(error) if is_impatience(&error) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(bytes),
            Err(error) => return Err(error).what("read from S"),
        }
    }
}

fn is_impatience(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The thread between the interfaces.
struct Carrier {
    pipes: [Pipe<Box<[u8]>>; 2],
    taps: [File; 2],
    stop: Arc<AtomicBool>,
    lateness: Histogram<u64>,
}

impl Carrier {
    fn new(run: &LineRun, taps: [File; 2], stop: Arc<AtomicBool>) -> Result<Self, LabError> {
        let key = |entity| {
            let (seed, replication) = (run.seed, run.replication);
            StreamKey { seed, replication, entity, purpose: "erasure" }
        };
        let pipe = |config: &PipeConfig, entity| {
            Pipe::new(config, key(entity)).map_err(|error| LabError::Pipe { source: error })
        };
        let pipes = [pipe(&run.forth, 0)?, pipe(&run.back, 1)?];
        let lateness = Histogram::new_with_bounds(1, 60_000_000_000, 3)
            .unwrap_or_else(|_| unreachable!("the bounds are constants"));
        Ok(Carrier { pipes, taps, stop, lateness })
    }

    fn work(mut self) -> Result<Self, LabError> {
        let _ = set_timerslack(1);
        // If this is not permitted, the measured lateness shows it.
        let _ = priority::EMULATOR.apply();
        let mut buffer = vec![0; ETHERNET_LEN + usize::from(u16::MAX)];
        while !self.stop.load(Ordering::Relaxed) {
            self.deliver();
            for way in 0..2 {
                self.take(way, &mut buffer)?;
            }
            self.deliver();
            self.wait()?;
        }
        Ok(self)
    }

    /// Takes all frames that wait at an interface.
    fn take(&mut self, way: usize, buffer: &mut [u8]) -> Result<(), LabError> {
        loop {
            match self.taps[way].read(buffer) {
                Ok(len) => {
                    let len_bytes = len.saturating_sub(ETHERNET_LEN) as u32;
                    let frame = Box::from(&buffer[..len]);
                    // The pipe counts what it loses or refuses.
                    let _ = self.pipes[way].offer(clock::now(), len_bytes, frame);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).what("read from an interface"),
            }
        }
    }

    /// Writes arrived frames to the interface at the other end.
    fn deliver(&mut self) {
        for way in 0..2 {
            loop {
                let now = clock::now();
                let Some(due) = self.pipes[way].poll_timeout() else { break };
                let Some(frame) = self.pipes[way].poll_delivery(now) else { break };
                // A write fails only without memory, which is a loss like any other.
                let _ = self.taps[1 - way].write(&frame);
                let late = clock::now().since(due).as_nanos();
                self.lateness.saturating_record(u64::try_from(late).unwrap_or(u64::MAX));
            }
        }
    }

    /// Sleeps until a frame arrives at an interface or at the end of a pipe.
    fn wait(&self) -> Result<(), LabError> {
        let next = self.pipes.iter().filter_map(Pipe::poll_timeout).min();
        let sleep = next.map_or(TICK, |at| at.since(clock::now()).min(TICK));
        let mut descriptors =
            self.taps.each_ref().map(|tap| PollFd::new(tap.as_fd(), PollFlags::POLLIN));
        match ppoll(&mut descriptors, Some(TimeSpec::from(sleep)), None) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error).what("wait for frames"),
        }
    }
}
