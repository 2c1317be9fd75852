//! The simulator's public interface: plans, TCP, captures.

mod aodv;
mod course;
mod experiments;
mod fingerprint;
mod franc_claims;
mod helpers;
mod identity;
mod integrity;
mod kim_reno;
mod kim_tcpnc;
mod lines;
mod mesh;
mod network;
mod radio_tcp;
mod radios;
mod relays;
mod star;
mod tcp;
mod transmissions;
mod tunnels;
mod turns;
mod wireshark;
