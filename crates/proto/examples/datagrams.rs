//! Datagrams between two processes through window mode, with repair, pacing and encryption, but
//! without a TUN device and without IP. Run both, in either order:
//!
//!     cargo run --package corridor-proto --example datagrams -- 127.0.0.1:7001 127.0.0.1:7002
//!     cargo run --package corridor-proto --example datagrams -- 127.0.0.1:7002 127.0.0.1:7001
//!
//! Each line of one process's input is printed by the other, which ends when the first has said
//! goodbye. `main` has all that a station's driver does: pass one input, take all outputs, wait for
//! a frame or a timer.
#![expect(clippy::disallowed_methods, reason = "a driver has a clock")]

use std::io::{BufRead, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};

use corridor_base::Time;
use corridor_proto::{
    CodingParams, Event, LinkErrors, Role, Station, StationConfig, StationId, bounds,
};

/// Precedes each datagram, so that none looks like an IP packet, which a station would parse to
/// mark packets and to compress headers.
const NO_IP: u8 = 0;
/// Longest wait for the socket, and so the delay after which an input line is noticed.
const WAIT_MAX: Duration = Duration::from_millis(5);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let addresses = std::env::args().skip(1).map(|it| it.parse()).collect::<Result<Vec<_>, _>>()?;
    let [here, there]: [SocketAddr; 2] = addresses.try_into().map_err(|_| "two addresses")?;
    let socket = UdpSocket::bind(here)?;
    // The two station ids follow the order of the addresses.
    let [me, peer] = if here < there { [1, 2] } else { [2, 1] }.map(StationId);
    let coding = CodingParams::window();
    let config = StationConfig {
        id: me,
        role: Role::Endpoint { peer, helper: None },
        security: [7; 32].into(), // The shared secret; `Security::Keys` for key pairs.
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
    let mut entropy = [0; 32]; // Fresh random bytes; otherwise nonces are reused.
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut entropy)?;
    let mut station = Station::new(config, entropy, now())?;

    let (lines, input) = channel();
    std::thread::spawn(move || {
        std::io::stdin().lock().lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
    });
    let (mut frame, mut sent, mut closing) = ([0; 2_048], false, false);
    while !station.is_closed() {
        // 1. Timers that are due, and inputs.
        station.handle_timeout(now());
        match input.try_recv() {
            Ok(line) => {
                station.handle_packet(now(), &[&[NO_IP], line.as_bytes()].concat());
                sent = true;
            }
            // The other end has everything if nothing waits, and nothing is kept for repair.
            Err(TryRecvError::Disconnected) if sent && !closing => {
                let view = station.inspect();
                closing = view.ingress_packets == 0 && view.window.is_some_and(|it| it.held == 0);
                closing.then(|| station.close(now()));
            }
            Err(_) => {}
        }
        // 2. All outputs.
        while let Some(transmit) = station.poll_transmit(now()) {
            let _ = socket.send_to(transmit.frame, there); // If lost, it is repaired.
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
        // 3. Wait for a frame, or until a timer is due.
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
