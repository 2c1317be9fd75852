//! TCP: exchanges packet by packet, properties, and the traces of ns-2.

mod line;
mod loopback;
mod ns2;
mod plans;
mod scripts;
