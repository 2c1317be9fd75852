//! Datagrams between two processes, through window mode: repaired, paced, sealed, without a TUN
//! device, and without IP. Run both, in either order:
//!
//!     cargo run --package corridor-proto --example datagrams -- 127.0.0.1:7001 127.0.0.1:7002
//!     cargo run --package corridor-proto --example datagrams -- 127.0.0.1:7002 127.0.0.1:7001
//!
//! Each line of one's input comes out at the other, which ends when the first has said goodbye.
//! What the driver of a station does is all in `main`: put one thing in, take everything out, wait
//! until something comes or is due.
#![expect(clippy::disallowed_methods, reason = "a driver has a clock")]

use std::io::{BufRead, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};

use corridor_base::Time;
use corridor_proto::{
    CodingParams, Event, LinkErrors, Role, Station, StationConfig, StationId, bounds,
};

/// Stands in front of each datagram, so that none looks like a packet of IP, which a station would
/// read: it marks packets, and compresses their headers.
const NO_IP: u8 = 0;
/// Longest wait for the socket: how late a line of the input is noticed.
const WAIT_MAX: Duration = Duration::from_millis(5);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let addresses = std::env::args().skip(1).map(|it| it.parse()).collect::<Result<Vec<_>, _>>()?;
    let [here, there]: [SocketAddr; 2] = addresses.try_into().map_err(|_| "two addresses")?;
    let socket = UdpSocket::bind(here)?;
    // Of the two numbers, each has one: by the order of their addresses.
    let [me, peer] = if here < there { [1, 2] } else { [2, 1] }.map(StationId);
    let coding = CodingParams::window();
    let config = StationConfig {
        id: me,
        role: Role::Endpoint { peer, helper: None },
        security: [7; 32].into(), // The secret of both; `Security::Keys` for keys of their own.
        coding,
        link_errors: LinkErrors::Measured,
        ingress_packets: coding.ingress_packets_default(),
        frame_len_max: 1_400,
        frame_len_min: 0,
        memory_bytes: bounds::MEMORY_DEFAULT,
        rate_bps: None,
    };
    let start = Instant::now();
    let now = || Time::from_nanos(start.elapsed().as_nanos() as u64);
    let mut entropy = [0; 32]; // Fresh random bytes, or nonces are used twice.
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut entropy)?;
    let mut station = Station::new(config, entropy, now())?;

    let (lines, input) = channel();
    std::thread::spawn(move || {
        std::io::stdin().lock().lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
    });
    let (mut frame, mut sent, mut closing) = ([0; 2_048], false, false);
    while !station.is_closed() {
        // 1. What is due, and what comes in.
        station.handle_timeout(now());
        match input.try_recv() {
            Ok(line) => {
                station.handle_packet(now(), &[&[NO_IP], line.as_bytes()].concat());
                sent = true;
            }
            // The other end has all of it when nothing waits, and nothing is kept for repair.
            Err(TryRecvError::Disconnected) if sent && !closing => {
                let view = station.inspect();
                closing = view.ingress_packets == 0 && view.window.is_some_and(|it| it.held == 0);
                closing.then(|| station.close(now()));
            }
            Err(_) => {}
        }
        // 2. Everything out.
        while let Some(transmit) = station.poll_transmit(now()) {
            let _ = socket.send_to(transmit.frame, there); // Lost, then: it is repaired.
        }
        while let Some(packet) = station.poll_packet() {
            println!("{}", String::from_utf8_lossy(&packet[1..]));
        }
        while let Some(event) = station.poll_event() {
            eprintln!("{event:?}");
            if matches!(event, Event::PeerGone { .. }) {
                return Ok(());
            }
        }
        // 3. Wait for a frame, or until something is due.
        let due = station.poll_timeout().map_or(WAIT_MAX, |due| due.since(now()).min(WAIT_MAX));
        socket.set_read_timeout(Some(due.max(Duration::from_micros(100))))?;
        match socket.recv_from(&mut frame) {
            Ok((len, from)) if from == there => drop(station.handle_frame(now(), &frame[..len])),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
