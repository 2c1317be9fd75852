//! Captures of radios with a standard's MAC: every transmission, written at its beginning, as a
//! card in monitor mode would write it that hears everything.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use corridor_air::Address;
use corridor_air::radio::{Begun, FrameKind, MacConfig, MacFrame};
use corridor_base::Time;

use super::pcapng::{LINKTYPE_802_11, LINKTYPE_802_15_4_WITHOUT_FCS, PcapngWriter};
use super::{CaptureCounts, CaptureLimits};
use crate::agents::headers::write_packet;
use crate::core::agent::Body;
use crate::core::network::Frame;
use crate::core::watch::Watcher;

/// LLC/SNAP header without its EtherType (RFC 1042), then the EtherTypes of IPv4 and of the
/// daemon's frames that go without IP.
const LLC_SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
const IPV4: u16 = 0x0800;
const CORRIDOR: u16 = 0x88b5;
/// The Retry bit of the frame control field (IEEE 802.11-2012, 8.2.4.1.6).
const RETRY: u8 = 0x08;
/// Bytes of the frame check sequence, which is not written: of 802.11, of 802.15.4.
const FCS_LEN: [usize; 2] = [4, 2];
/// The network that all nodes belong to: an IBSS's BSSID, and a PAN identifier.
const BSSID: [u8; 6] = [2, 0, 0, 0, 0xff, 0xff];
const PAN: u16 = 0xc0de;
/// The broadcast address of 802.15.4.
const BROADCAST: u16 = 0xffff;

/// Writes the frames of a radio.
pub(super) struct FrameCapture(Rc<RefCell<Inner>>);

struct Inner {
    writer: PcapngWriter<Box<dyn Write>>,
    radios: Vec<Heard>,
    /// By flow: payload bytes of its TCP segments.
    payloads: Vec<(u32, u32)>,
    limits: CaptureLimits,
    counts: CaptureCounts,
    newest: Time,
    head: Vec<u8>,
    packet: Vec<u8>,
    zeros: Vec<u8>,
    failed: Option<io::Error>,
}

/// A radio that is captured.
struct Heard {
    interface: u32,
    is_wpan: bool,
    /// The node at each of its places.
    nodes: Vec<usize>,
}

impl FrameCapture {
    /// Begins a capture; `comment` says of what. Each radio, with the nodes at its places, becomes
    /// an interface of the capture.
    pub(super) fn new(
        out: Box<dyn Write>,
        comment: &str,
        macs: &[(&MacConfig, &[usize])],
        payloads: Vec<(u32, u32)>,
        limits: CaptureLimits,
    ) -> io::Result<Self> {
        let mut writer = PcapngWriter::new(out, comment)?;
        let mut radios = Vec::new();
        for (index, (mac, nodes)) in macs.iter().enumerate() {
            let is_wpan = matches!(mac, MacConfig::Wpan(_));
            let link_type = if is_wpan { LINKTYPE_802_15_4_WITHOUT_FCS } else { LINKTYPE_802_11 };
            let name = if macs.len() == 1 { "radio".to_owned() } else { format!("radio {index}") };
            let interface = writer.interface(link_type, &name, "everything on the air")?;
            radios.push(Heard { interface, is_wpan, nodes: nodes.to_vec() });
        }
        Ok(FrameCapture(Rc::new(RefCell::new(Inner {
            writer,
            radios,
            payloads,
            limits,
            counts: CaptureCounts::default(),
            newest: Time::ZERO,
            head: Vec::new(),
            packet: Vec::new(),
            zeros: Vec::new(),
            failed: None,
        }))))
    }

    /// The watcher to give to the network.
    pub(super) fn watcher(&self) -> Box<dyn Watcher> {
        Box::new(Watching(Rc::clone(&self.0)))
    }

    /// Ends the capture.
    pub(super) fn finish(self) -> io::Result<CaptureCounts> {
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
    fn take_begun(&mut self, radio: usize, begun: &Begun<Frame>) {
        self.0.borrow_mut().take(radio, begun);
    }

    fn has_enough(&self) -> bool {
        self.0.borrow().has_enough()
    }
}

impl Inner {
    fn has_enough(&self) -> bool {
        self.failed.is_some()
            || self.counts.frames >= self.limits.frames_max
            || self.newest >= self.limits.until
    }

    fn take(&mut self, radio: usize, begun: &Begun<Frame>) {
        self.newest = begun.at;
        if begun.at < self.limits.from || self.has_enough() {
            return;
        }
        self.head.clear();
        let Some(heard) = self.radios.get(radio) else { return };
        let (interface, is_wpan) = (heard.interface, heard.is_wpan);
        match is_wpan {
            true => write_wpan(&begun.frame, &heard.nodes, &mut self.head),
            false => write_dcf(&begun.frame, &heard.nodes, &mut self.head),
        }
        self.write_payload(&begun.frame);
        let fcs_len = FCS_LEN[usize::from(is_wpan)];
        let len = (begun.frame.mac_bytes as usize).saturating_sub(fcs_len);
        self.head.truncate(len);
        let place = (interface, begun.at.as_nanos());
        self.failed = self.writer.packet(place, &[&self.head], len, "").err();
        self.counts.frames += 1;
    }

    /// Writes the payload of a data frame, as far as it is known.
    fn write_payload(&mut self, frame: &MacFrame<Frame>) {
        if let Some(bytes) = bare(frame) {
            return self.head.extend_from_slice(bytes);
        }
        match &frame.payload {
            Some(Frame::Packet(packet, _)) => {
                let payloads = &self.payloads;
                let payload = payloads.iter().find(|(flow, _)| *flow == packet.flow);
                let payload = payload.map(|&(_, bytes)| bytes);
                write_packet(packet, payload, &mut self.zeros, &mut self.packet);
                self.head.extend_from_slice(&self.packet);
            }
            Some(Frame::Sealed(bytes) | Frame::Relayed(bytes)) => {
                self.head.extend_from_slice(bytes)
            }
            None => {}
        }
    }
}

/// A tunnel's frame that goes over the radio without IP.
fn bare(frame: &MacFrame<Frame>) -> Option<&[u8]> {
    match &frame.payload {
        Some(Frame::Packet(packet, _)) => match &packet.body {
            Body::Bare(bytes) => Some(bytes),
            _ => None,
        },
        _ => None,
    }
}

/// The 802.11 header of frames in an IBSS, without access point (IEEE 802.11-2012, 8.3).
fn write_dcf(frame: &MacFrame<Frame>, nodes: &[usize], out: &mut Vec<u8>) {
    let to = match frame.to {
        Address::Station(place) => address(nodes[place]),
        Address::All => [0xff; 6],
    };
    let kind: u8 = match frame.kind {
        FrameKind::Data => 0x08,
        FrameKind::Rts => 0xb4,
        FrameKind::Cts => 0xc4,
        FrameKind::Ack => 0xd4,
    };
    out.extend_from_slice(&[kind, if frame.retry { RETRY } else { 0 }]);
    let duration_us = frame.duration.as_micros().min(0x7fff) as u16;
    out.extend_from_slice(&duration_us.to_le_bytes());
    out.extend_from_slice(&to);
    if matches!(frame.kind, FrameKind::Data | FrameKind::Rts) {
        out.extend_from_slice(&address(nodes[frame.from]));
    }
    if frame.kind == FrameKind::Data {
        out.extend_from_slice(&BSSID);
        // Sequence control: fragment 0, and the sequence number of 12 bits.
        out.extend_from_slice(&(frame.sequence << 4).to_le_bytes());
        out.extend_from_slice(&LLC_SNAP);
        let protocol = if bare(frame).is_some() { CORRIDOR } else { IPV4 };
        out.extend_from_slice(&protocol.to_be_bytes());
    }
}

/// The header of 802.15.4 with short addresses in one PAN (IEEE 802.15.4-2006, 7.2).
fn write_wpan(frame: &MacFrame<Frame>, nodes: &[usize], out: &mut Vec<u8>) {
    if frame.kind != FrameKind::Data {
        return out.extend_from_slice(&[0x02, 0, frame.sequence as u8]);
    }
    let (to, asks) = match frame.to {
        Address::Station(place) => (nodes[place] as u16, 0x20),
        Address::All => (BROADCAST, 0),
    };
    out.extend_from_slice(&[0x41 | asks, 0x88, frame.sequence as u8]);
    for field in [PAN, to, nodes[frame.from] as u16] {
        out.extend_from_slice(&field.to_le_bytes());
    }
}

/// A locally administered address that ends with the node's number, counted from 1 as in its IP
/// address.
fn address(node: usize) -> [u8; 6] {
    let [a, b, c, d] = (node as u32 + 1).to_be_bytes();
    [2, 0, a, b, c, d]
}
