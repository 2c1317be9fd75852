//! TCP as in Linux (6.18), without I/O: [`LinuxSender`] and [`LinuxReceiver`].
//!
//! An acknowledgment passes through these files: `ack.rs` records on the `scoreboard.rs` which
//! packets have arrived; `rack.rs` detects losses (RFC 8985); `recovery.rs` changes the state, and
//! undoes reductions that prove spurious; `control.rs` sets the window, by `cubic.rs` (with
//! HyStart) or by `bbr.rs`, which uses the delivery rates of `rate.rs`; `sender.rs` sends.
//! `flow.rs` holds the state that all of them share.
//!
//! Written from the RFCs and from the kernel's behaviour; `bench-tcp` compares it with runs of the
//! kernel itself. Windows count packets, times are in microseconds, and timers expire at ticks of 4
//! ms.

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
