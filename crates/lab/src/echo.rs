//! Tests whether the two ends of a path reach each other, by a packet that goes there and back.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;

use crate::clock;
use crate::error::{Context, LabError};
use crate::netns::{Inside, Namespace};

/// Port on which D answers while a tunnel is coming up.
const PORT: u16 = 7699;
/// Polling interval while waiting.
const TICK: Duration = Duration::from_millis(20);
/// Time limit for an answer through a proxy's connection.
const PROXY_ANSWER_MAX: Duration = Duration::from_millis(500);
/// What is sent and has to return.
const WORD: &[u8] = b"corridor";

/// A running test: a thread at S asks until D's answer arrives.
pub(crate) struct Echo {
    found: Arc<AtomicBool>,
    threads: [Inside<()>; 2],
}

impl Echo {
    /// Tests with datagrams from S to this address of D.
    pub(crate) fn datagrams(
        source: &Namespace,
        destination: &Namespace,
        address: Ipv4Addr,
    ) -> Result<Self, LabError> {
        let to = SocketAddrV4::new(address, PORT);
        Self::start(source, destination, answer, move |found| ask(to, found))
    }

    /// Tests with connections from S to a proxy that forwards them to this port of D.
    pub(crate) fn connections(
        source: &Namespace,
        destination: &Namespace,
        proxy: SocketAddrV4,
        port: u16,
    ) -> Result<Self, LabError> {
        let accept = move |found: &AtomicBool| accept(port, found);
        Self::start(source, destination, accept, move |found| connect(proxy, found))
    }

    fn start(
        source: &Namespace,
        destination: &Namespace,
        answer: impl FnOnce(&AtomicBool) -> Result<(), LabError> + Send + 'static,
        ask: impl FnOnce(&AtomicBool) -> Result<(), LabError> + Send + 'static,
    ) -> Result<Self, LabError> {
        let found = Arc::new(AtomicBool::new(false));
        let (at_destination, at_source) = (Arc::clone(&found), Arc::clone(&found));
        let threads = [
            destination.spawn("lab-echo", move || answer(&at_destination))?,
            source.spawn("lab-echo", move || ask(&at_source))?,
        ];
        Ok(Echo { found, threads })
    }

    /// Whether an answer has arrived.
    pub(crate) fn has_crossed(&self) -> bool {
        self.found.load(Ordering::Relaxed)
    }

    /// Ends the test.
    pub(crate) fn finish(self) -> Result<(), LabError> {
        self.found.store(true, Ordering::Relaxed);
        self.threads.into_iter().try_for_each(Inside::join)
    }
}

/// Returns datagrams to their senders.
fn answer(found: &AtomicBool) -> Result<(), LabError> {
    let socket = udp_socket(PORT)?;
    let mut buffer = [0; 64];
    while !found.load(Ordering::Relaxed) {
        if let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..len], from);
        }
    }
    Ok(())
}

/// Sends datagrams to D until one returns.
fn ask(to: SocketAddrV4, found: &AtomicBool) -> Result<(), LabError> {
    let socket = udp_socket(0)?;
    let mut buffer = [0; 64];
    while !found.load(Ordering::Relaxed) {
        // Fails while there is no interface, and so no route to D.
        if socket.send_to(WORD, to).is_err() {
            clock::sleep_until(clock::now() + TICK);
        } else if socket.recv_from(&mut buffer).is_ok() {
            found.store(true, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Opens a UDP port.
pub(crate) fn udp_socket(port: u16) -> Result<UdpSocket, LabError> {
    let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
    let socket = UdpSocket::bind(address).what("open a UDP port")?;
    socket.set_read_timeout(Some(TICK)).what("bound a UDP socket's waiting")?;
    Ok(socket)
}

/// Returns what arrives on connections.
fn accept(port: u16, found: &AtomicBool) -> Result<(), LabError> {
    let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
    let listener = TcpListener::bind(address).what("listen for TCP")?;
    listener.set_nonblocking(true).what("make a listener non-blocking")?;
    while !found.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((mut stream, _)) => {
                let _ = stream.set_nonblocking(false);
                let _ = send_back(&mut stream);
            }
            Err(_) => clock::sleep_until(clock::now() + TICK),
        }
    }
    Ok(())
}

fn send_back(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut word = [0; WORD.len()];
    stream.set_read_timeout(Some(PROXY_ANSWER_MAX))?;
    stream.read_exact(&mut word)?;
    stream.write_all(&word)
}

/// Connects to the proxy until D's answer arrives: a proxy may accept before its other half is up.
fn connect(proxy: SocketAddrV4, found: &AtomicBool) -> Result<(), LabError> {
    let attempt = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&proxy.into(), PROXY_ANSWER_MAX)?;
        stream.set_read_timeout(Some(PROXY_ANSWER_MAX))?;
        stream.write_all(WORD)?;
        let mut word = [0; WORD.len()];
        stream.read_exact(&mut word)?;
        Ok(word == WORD)
    };
    while !found.load(Ordering::Relaxed) {
        match attempt() {
            Ok(true) => found.store(true, Ordering::Relaxed),
            _ => clock::sleep_until(clock::now() + TICK),
        }
    }
    Ok(())
}
