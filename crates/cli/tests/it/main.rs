//! The command `corridor` from outside.

mod compare;
mod diagnosis;
mod examples;
mod gates;
mod hub;
mod keys;
mod links;
mod modes;
mod paths;
mod relay;
mod reload;
mod sim;
mod status;
mod support;
mod torture;
mod trace;
mod underlay;
mod up;
mod verbs;
