//! Stations as black boxes: packets and frames in, packets and frames out.

mod allocator;
mod end_tags;
mod franc_paper;
mod hub;
mod hub_memory;
mod keys;
mod member_keys;
mod memory_beside;
mod memory_modes;
mod modes;
mod path;
mod reads;
mod regressions;
mod relay;
mod script;
mod scripts;
mod switch;
mod window_allocation;
