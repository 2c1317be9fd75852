//! TCP as Linux speaks it (6.18), without I/O: [`LinuxSender`] and [`LinuxReceiver`].
//!
//! The way of an acknowledgement: `ack.rs` takes from it what it tells of packets, on the
//! `scoreboard.rs`; `rack.rs` finds what is lost (RFC 8985); `recovery.rs` changes the state, and
//! undoes that where it was wrong; `control.rs` sets the window, by `cubic.rs` (with HyStart) or
//! `bbr.rs`, which goes by `rate.rs`; `sender.rs` sends. `flow.rs` is what all of them share.
//!
//! Written from the RFCs and from what the kernel does; `bench-tcp` holds it against the kernel's
//! own runs. Windows count packets, times are microseconds, timers expire with ticks of 4 ms.

mod ack;
mod bbr;
mod clock;
mod config;
mod control;
#[cfg(test)]
mod cost;
mod cubic;
mod flow;
mod rack;
mod rate;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod sender;
mod state;
mod window;
mod windowed;

pub(super) use self::config::RMEM_MAX;
pub use self::config::{Congestion, LinuxReceiverConfig, LinuxSenderConfig};
pub use self::receiver::LinuxReceiver;
pub(crate) use self::receiver::SACK_HEAD_LEN;
pub use self::sender::LinuxSender;
pub use self::state::CaState;
