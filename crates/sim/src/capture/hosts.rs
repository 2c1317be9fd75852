//! Captures of a wired network, like those of tcpdump on some of its hosts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Write};
use std::rc::Rc;

use corridor_base::Time;

use super::pcapng::{LINKTYPE_RAW, PcapngWriter};
use super::{CaptureCounts, CaptureLimits};
use crate::agents::headers::write_packet;
use crate::core::agent::{Body, NodeIndex, Packet};
use crate::core::watch::{Crossing, Watcher};

/// What a flow's packets do not say themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedFlow {
    /// Which flow.
    pub flow: u32,
    /// Payload of its TCP segments.
    pub payload_bytes: u32,
}

/// Writes the packets that pass some nodes of a [`Network`](crate::Network), with the headers that
/// they would have on the Internet.
///
/// At each node it writes what leaves the node and what arrives for it, so a capture at both ends
/// of a flow, or at a router between them, holds the same packet more than once.
pub struct NetworkCapture(Rc<RefCell<Inner>>);

struct Inner {
    writer: PcapngWriter<Box<dyn Write>>,
    /// Interface number of each node.
    interfaces: BTreeMap<NodeIndex, u32>,
    payload_bytes: BTreeMap<u32, u32>,
    limits: CaptureLimits,
    counts: CaptureCounts,
    newest: Time,
    head: Vec<u8>,
    zeros: Vec<u8>,
    failed: Option<io::Error>,
}

impl NetworkCapture {
    /// Begins a capture at `nodes`; `comment` says of what. The same packets give the same bytes.
    ///
    /// # Errors
    /// The write error of `out`.
    pub fn new(
        out: impl Write + 'static,
        comment: &str,
        nodes: &[NodeIndex],
        flows: &[CapturedFlow],
        limits: CaptureLimits,
    ) -> io::Result<Self> {
        let mut writer = PcapngWriter::new(Box::new(out) as Box<dyn Write>, comment)?;
        let mut interfaces = BTreeMap::new();
        for &node in nodes {
            if let Entry::Vacant(place) = interfaces.entry(node) {
                let (name, what) = (format!("node {node}"), "what leaves, and what arrives for it");
                place.insert(writer.interface(LINKTYPE_RAW, &name, what)?);
            }
        }
        let payload_bytes = flows.iter().map(|flow| (flow.flow, flow.payload_bytes)).collect();
        Ok(NetworkCapture(Rc::new(RefCell::new(Inner {
            writer,
            interfaces,
            payload_bytes,
            limits,
            counts: CaptureCounts::default(),
            newest: Time::ZERO,
            head: Vec::new(),
            zeros: Vec::new(),
            failed: None,
        }))))
    }

    /// The watcher to give to the network.
    pub fn watcher(&self) -> Box<dyn Watcher> {
        Box::new(Watching(Rc::clone(&self.0)))
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// The first write error of `out`.
    pub fn finish(self) -> io::Result<CaptureCounts> {
        let mut inner = self.0.borrow_mut();
        if let Some(failed) = inner.failed.take() {
            return Err(failed);
        }
        inner.writer.flush()?;
        Ok(inner.counts)
    }
}

struct Watching(Rc<RefCell<Inner>>);

impl Watcher for Watching {
    fn take_packet(&mut self, now: Time, node: NodeIndex, packet: &Packet, crossing: Crossing) {
        self.0.borrow_mut().take_packet(now, node, packet, crossing);
    }

    fn has_enough(&self) -> bool {
        self.0.borrow().has_enough()
    }
}

impl Inner {
    fn take_packet(&mut self, now: Time, node: NodeIndex, packet: &Packet, crossing: Crossing) {
        self.newest = now;
        let Some(&interface) = self.interfaces.get(&node) else { return };
        if matches!(packet.body, Body::Bare(_)) {
            return; // No IP.
        }
        if now < self.limits.from || self.has_enough() {
            return;
        }
        let payload_bytes = self.payload_bytes.get(&packet.flow).copied();
        let len = write_packet(packet, payload_bytes, &mut self.zeros, &mut self.head);
        let comment = comment(crossing);
        let place = (interface, now.as_nanos());
        let written = self.writer.packet(place, &[&self.head], len, &comment);
        self.failed = written.err();
        self.counts.frames += 1;
    }

    fn has_enough(&self) -> bool {
        self.failed.is_some()
            || self.counts.frames >= self.limits.frames_max
            || self.newest >= self.limits.until
    }
}

/// The packet's comment: what no header says.
fn comment(crossing: Crossing) -> String {
    match crossing {
        Crossing::Arrived | Crossing::Sent(_) => String::new(),
        Crossing::Lost(next) => format!("lost on the link to node {next}"),
        Crossing::Dropped(next) => format!("dropped: the queue of the link to node {next} is full"),
        Crossing::Unroutable => "dropped: no route from here to its destination".to_owned(),
        Crossing::Expired => "dropped: it has crossed as many links as it may".to_owned(),
    }
}
