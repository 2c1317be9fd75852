//! TCP: scripted exchanges, properties, and comparison with traces of ns-2.

mod line;
mod loopback;
mod ns2;
mod plans;
mod scripts;
