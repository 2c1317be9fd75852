//! The loads: bulk over QUIC or TCP, and voice.

use core::time::Duration;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use corridor_bench::frame::Outcome;
use corridor_lab::{Guest, Side, Stage};
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Serialize;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::time::{timeout, timeout_at};

const QUIC_PORT: u16 = 4433;
const TCP_PORT: u16 = 7700;
const VOICE_PORT: u16 = 5004;
/// Name in the certificate.
const NAME: &str = "corridor";
/// Size of a write, bytes.
const CHUNK: usize = 1 << 14;
/// Flow-control window that never limits QUIC, bytes.
const WINDOW: u32 = 16 << 20;
/// Sampling interval of QUIC's round-trip time.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum time to connect.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Interval at which waiting threads check for the end.
const TICK: Duration = Duration::from_millis(50);
/// Time after the measured interval in which voice packets may still arrive.
const DRAIN: Duration = Duration::from_secs(2);
/// Voice: time between packets, and their size in bytes: RTP's header, a number and a time, and
/// padding to the length of G.711's.
const VOICE_INTERVAL: Duration = Duration::from_millis(20);
const VOICE_LEN: usize = 172;
const RTP_LEN: usize = 12;

/// The measured interval.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    pub from: Instant,
    pub until: Instant,
}

impl Interval {
    fn contains(&self, at: Instant) -> bool {
        (self.from..self.until).contains(&at)
    }

    fn seconds(&self) -> f64 {
        (self.until - self.from).as_secs_f64()
    }
}

/// A bulk transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bulk {
    QuicCubic,
    QuicBbr,
    TcpCubic,
}

impl Bulk {
    /// All, and none.
    pub const ALL: [Option<Bulk>; 4] =
        [None, Some(Bulk::TcpCubic), Some(Bulk::QuicCubic), Some(Bulk::QuicBbr)];

    pub fn name(self) -> &'static str {
        match self {
            Bulk::QuicCubic => "quic cubic",
            Bulk::QuicBbr => "quic bbr",
            Bulk::TcpCubic => "tcp cubic",
        }
    }
}

/// Results of a bulk transfer in the measured interval.
#[derive(Clone, Debug, Serialize)]
pub struct Carried {
    pub goodput_bps: f64,
    /// Mean of QUIC's smoothed round-trip time.
    pub rtt_ms: Option<f64>,
    /// QUIC's packets, over the whole connection.
    pub packets_sent: Option<u64>,
    pub packets_lost: Option<u64>,
    pub congestion_events: Option<u64>,
}

/// Results of the voice flow's packets sent in the measured interval.
#[derive(Clone, Debug, Serialize)]
pub struct Voice {
    pub sent: u64,
    pub lost: u64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
}

/// A running bulk transfer.
pub struct Running {
    sender: Guest<Outcome<Option<QuicSent>>>,
    receiver: Guest<Outcome<u64>>,
    interval: Interval,
}

impl Running {
    pub fn finish(self) -> Outcome<Carried> {
        let quic = self.sender.join()??;
        let bytes = self.receiver.join()??;
        Ok(Carried {
            goodput_bps: 8.0 * bytes as f64 / self.interval.seconds(),
            rtt_ms: quic.as_ref().and_then(|quic| quic.rtt_ms),
            packets_sent: quic.as_ref().map(|quic| quic.stats.sent_packets),
            packets_lost: quic.as_ref().map(|quic| quic.stats.lost_packets),
            congestion_events: quic.as_ref().map(|quic| quic.stats.congestion_events),
        })
    }
}

/// Starts a bulk transfer from S to D.
pub fn start(stage: &Stage, bulk: Bulk, to: Ipv4Addr, interval: Interval) -> Outcome<Running> {
    let controller: Arc<dyn ControllerFactory + Send + Sync> = match bulk {
        Bulk::QuicCubic => Arc::new(CubicConfig::default()),
        Bulk::QuicBbr => Arc::new(BbrConfig::default()),
        Bulk::TcpCubic => {
            let receiver =
                stage.spawn(Side::Destination, "tcp-receive", move || tcp_receive(interval))?;
            let to = SocketAddr::from((to, TCP_PORT));
            let sender = stage
                .spawn(Side::Source, "tcp-send", move || tcp_send(to, interval).map(|()| None))?;
            return Ok(Running { sender, receiver, interval });
        }
    };
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let given = certificate.clone();
    let receiver = stage.spawn(Side::Destination, "quic-receive", move || {
        within(quic_receive(given, key, interval))
    })?;
    let to = SocketAddr::from((to, QUIC_PORT));
    let sender = stage.spawn(Side::Source, "quic-send", move || {
        within(quic_send(to, certificate, controller, interval)).map(Some)
    })?;
    Ok(Running { sender, receiver, interval })
}

/// Runs on this thread's own runtime, whose sockets are in this thread's network.
fn within<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// The QUIC sender's final state.
struct QuicSent {
    rtt_ms: Option<f64>,
    stats: quinn::PathStats,
}

async fn quic_send(
    to: SocketAddr,
    certificate: CertificateDer<'static>,
    controller: Arc<dyn ControllerFactory + Send + Sync>,
    interval: Interval,
) -> Outcome<QuicSent> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut config = quinn::ClientConfig::with_root_certificates(Arc::new(roots))?;
    let mut transport = quinn::TransportConfig::default();
    transport.congestion_controller_factory(controller).send_window(WINDOW.into());
    config.transport_config(Arc::new(transport));
    let mut endpoint = quinn::Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    endpoint.set_default_client_config(config);
    let connection = timeout(CONNECT_MAX, endpoint.connect(to, NAME)?).await??;
    let mut stream = connection.open_uni().await?;
    let chunk = [0x5a; CHUNK];
    let (mut sum, mut looks, mut look_at) = (0.0, 0_u32, Instant::now());
    loop {
        let now = Instant::now();
        if now >= interval.until {
            break;
        }
        if now >= look_at {
            look_at = now + LOOK_INTERVAL;
            if interval.contains(now) {
                sum += 1e3 * connection.rtt().as_secs_f64();
                looks += 1;
            }
        }
        // An interrupted write loses nothing it had accepted: it reports how much that was.
        if let Ok(written) = timeout_at(look_at.into(), stream.write(&chunk)).await {
            written?;
        }
    }
    let stats = connection.stats().path;
    connection.close(0u32.into(), b"done");
    endpoint.close(0u32.into(), b"done");
    let _ = timeout(TICK, endpoint.wait_idle()).await;
    Ok(QuicSent { rtt_ms: (looks > 0).then(|| sum / f64::from(looks)), stats })
}

async fn quic_receive(
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    interval: Interval,
) -> Outcome<u64> {
    let mut config = quinn::ServerConfig::with_single_cert(vec![certificate], key)?;
    let mut transport = quinn::TransportConfig::default();
    transport.stream_receive_window(WINDOW.into()).receive_window(WINDOW.into());
    config.transport_config(Arc::new(transport));
    let endpoint = quinn::Endpoint::server(config, (Ipv4Addr::UNSPECIFIED, QUIC_PORT).into())?;
    let connection = async {
        let incoming = endpoint.accept().await.ok_or("the endpoint is closed")?;
        Outcome::Ok(incoming.await?)
    };
    let connection = timeout(CONNECT_MAX + TICK, connection).await??;
    let mut stream = connection.accept_uni().await?;
    let mut bytes = 0;
    // The sender closes at the end, and then the stream ends with an error.
    while let Ok(Ok(Some(chunk))) =
        timeout_at((interval.until + TICK).into(), stream.read_chunk(usize::MAX, true)).await
    {
        if interval.contains(Instant::now()) {
            bytes += chunk.bytes.len() as u64;
        }
    }
    Ok(bytes)
}

fn tcp_send(to: SocketAddr, interval: Interval) -> Outcome<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_tcp_congestion(b"cubic")?;
    socket.connect_timeout(&to.into(), CONNECT_MAX)?;
    socket.set_write_timeout(Some(TICK))?;
    let mut stream: TcpStream = socket.into();
    let chunk = [0x5a; CHUNK];
    while Instant::now() < interval.until {
        match stream.write(&chunk) {
            Ok(_) => {}
            Err(error) if is_wait(error.kind()) => {}
            // The receiver stops when time is up, which may hit a write waiting for room.
            Err(_) if Instant::now() >= interval.until => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Unsent data are not worth waiting for.
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    Ok(())
}

fn tcp_receive(interval: Interval) -> Outcome<u64> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, TCP_PORT))?;
    listener.set_nonblocking(true)?;
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(_) if Instant::now() >= interval.until => return Err("no TCP connection".into()),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    };
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(TICK))?;
    let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
    while Instant::now() < interval.until {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) if interval.contains(Instant::now()) => bytes += len as u64,
            Ok(_) => {}
            Err(error) if is_wait(error.kind()) => {}
            Err(_) => break, // The sender is done a little before.
        }
    }
    Ok(bytes)
}

fn is_wait(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// A running voice flow.
pub struct VoiceRunning {
    sender: Guest<Outcome<u64>>,
    receiver: Guest<Outcome<Vec<f64>>>,
}

/// Starts a voice flow from S to D.
pub fn start_voice(stage: &Stage, to: Ipv4Addr, interval: Interval) -> Outcome<VoiceRunning> {
    let origin = Instant::now();
    let receiver =
        stage.spawn(Side::Destination, "voice-receive", move || voice_receive(origin, interval))?;
    let to = SocketAddr::from((to, VOICE_PORT));
    let sender =
        stage.spawn(Side::Source, "voice-send", move || voice_send(to, origin, interval))?;
    Ok(VoiceRunning { sender, receiver })
}

impl VoiceRunning {
    pub fn finish(self) -> Outcome<Voice> {
        let sent = self.sender.join()??;
        let mut delays = self.receiver.join()??;
        delays.sort_by(f64::total_cmp);
        let quantile = |share: f64| {
            let at = (share * delays.len() as f64).ceil() as usize;
            delays.get(at.saturating_sub(1)).copied().unwrap_or(f64::NAN)
        };
        Ok(Voice {
            sent,
            lost: sent.saturating_sub(delays.len() as u64),
            p50_ms: quantile(0.5),
            p95_ms: quantile(0.95),
            p99_ms: quantile(0.99),
        })
    }
}

fn voice_send(to: SocketAddr, origin: Instant, interval: Interval) -> Outcome<u64> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let (mut due, mut sent) = (Instant::now(), 0);
    for number in 0_u16.. {
        if due >= interval.until {
            break;
        }
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        let mut packet = [0; VOICE_LEN];
        packet[0] = 0x80;
        packet[2..4].copy_from_slice(&number.to_be_bytes());
        packet[4..8].copy_from_slice(&(160 * u32::from(number)).to_be_bytes());
        packet[8..RTP_LEN].copy_from_slice(b"corr");
        let at = (now - origin).as_nanos() as u64;
        packet[RTP_LEN..RTP_LEN + 8].copy_from_slice(&at.to_be_bytes());
        // A packet refused by the host's own queue counts as sent and lost, like any other.
        let _ = socket.send_to(&packet, to);
        sent += u64::from(interval.contains(now));
        due += VOICE_INTERVAL;
    }
    Ok(sent)
}

/// Delays in milliseconds of the packets sent in the interval.
fn voice_receive(origin: Instant, interval: Interval) -> Outcome<Vec<f64>> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, VOICE_PORT))?;
    socket.set_read_timeout(Some(TICK))?;
    let (mut delays, mut buffer) = (Vec::new(), [0; 2 * VOICE_LEN]);
    while Instant::now() < interval.until + DRAIN {
        let Ok(len) = socket.recv(&mut buffer) else { continue };
        let now = Instant::now();
        let stamp = buffer[..len].get(RTP_LEN..RTP_LEN + 8).and_then(|at| at.try_into().ok());
        let Some(at) = stamp.map(u64::from_be_bytes) else { continue };
        let sent = origin + Duration::from_nanos(at);
        if interval.contains(sent) {
            delays.push(1e3 * now.saturating_duration_since(sent).as_secs_f64());
        }
    }
    Ok(delays)
}
