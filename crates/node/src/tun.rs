//! The TUN device: where packets of the host enter and leave the tunnel.
//!
//! The kernel sends and accepts super-packets of TCP and UDP. They are cut into packets here (GSO),
//! and packets of a flow are joined again (GRO, [`join`]).

mod join;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use corridor_proto::packet::{PacketRef, concerns_link};
use ipnet::IpNet;
use tun_rs::{DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_LEN, VirtioNetHdr};

use crate::config::TunConfig;
use crate::default_route::DefaultRoute;
use crate::error::{CAP_NET_ADMIN, NodeError};
use crate::netlink;
use join::{Joiner, NEEDS_CHECKSUM};

/// Most packets cut from one super-packet.
const BATCH: usize = 128;
/// Longest possible packet in bytes: the limit of a 16-bit length.
const PACKET_LEN_MAX: usize = 65_535;

/// Minimum buffer for a packet in bytes: longer ones come only if somebody raises the MTU.
const BUFFER_LEN_MIN: usize = 2_000;

/// `VIRTIO_NET_HDR_GSO_NONE`: a packet, not a super-packet.
const GSO_NONE: u8 = 0;
/// Offset of the checksum in a UDP header.
const UDP_CHECKSUM_OFFSET: u16 = 6;

/// A TUN device with its addresses and routes. They all vanish when this value is dropped.
pub(crate) struct Tun {
    device: SyncDevice,
    name: String,
    index: u32,
    /// Whether it is up, as last reported by the kernel; `None`: not yet.
    is_up: Option<bool>,
    /// It has a link-local address: the operator wants to reach neighbours on the link.
    has_link: bool,
    routes: Vec<IpNet>,
    /// The routing rules, if it is the default route.
    default_route: Option<DefaultRoute>,
    /// A super-packet as received from the kernel.
    whole: Vec<u8>,
    /// The packets cut from it.
    packets: Vec<Vec<u8>>,
    lens: Vec<usize>,
    /// Joins packets for the host; `None`: they are written one by one.
    joiner: Option<Joiner>,
    /// Why the host refused something since the last flush.
    refusal: Option<io::Error>,
}

impl Tun {
    /// Creates the device, and sets its MTU, addresses and routes; `mtu_max`: longest MTU in bytes
    /// that it may be set to later ([`Tun::set_mtu`]).
    pub(crate) fn open(config: &TunConfig, mtu: usize, mtu_max: usize) -> Result<Self, NodeError> {
        let name = &config.name;
        if !Path::new("/dev/net/tun").exists() {
            return Err(NodeError::TunMissing);
        }
        // Attaching to an existing device would change somebody else's.
        if netlink::link(name)?.is_some() {
            return Err(NodeError::TunNameTaken { name: name.clone() });
        }
        let action = || format!("make the TUN device {name}");
        let device = make(name, config.offload).map_err(|source| match source.raw_os_error() {
            Some(libc::EBUSY) => NodeError::TunNameTaken { name: name.clone() },
            Some(libc::ENODEV | libc::ENXIO) => NodeError::TunMissing,
            _ => NodeError::system(action(), CAP_NET_ADMIN, source),
        })?;
        let system = |source| NodeError::system(action(), CAP_NET_ADMIN, source);
        device.set_nonblocking(true).map_err(system)?;
        let index = device.if_index().map_err(system)?;
        let joiner = device.tcp_gso().then(|| Joiner::new(device.udp_gso()));
        let mut tun = Tun {
            device,
            name: name.clone(),
            index,
            is_up: None,
            has_link: config.has_link(),
            routes: Vec::new(),
            default_route: None,
            whole: vec![0; VIRTIO_NET_HDR_LEN + PACKET_LEN_MAX],
            // No longer than packets are, so that all buffers stay in the processor's cache.
            packets: vec![vec![0; mtu_max.max(BUFFER_LEN_MIN)]; BATCH],
            lens: vec![0; BATCH],
            joiner,
            refusal: None,
        };
        tun.configure(config, mtu)?;
        Ok(tun)
    }

    fn configure(&mut self, config: &TunConfig, mtu: usize) -> Result<(), NodeError> {
        // As in WireGuard: a link-local address has to be configured in `addresses`.
        if let Err(error) = netlink::make_no_link_local(self.index, &self.name) {
            // Most likely a kernel without IPv6.
            tracing::debug!("{error}");
        }
        for &address in &config.addresses {
            netlink::add_address(self.index, &self.name, address)?;
        }
        netlink::set_up(self.index, &self.name, mtu, BATCH as u32)?;
        for route in config.routes_of(false) {
            netlink::add_route(self.index, &self.name, route)?;
            self.routes.push(route);
        }
        self.default_route = DefaultRoute::add(self.index, &self.name, config.routes_of(true))?;
        Ok(())
    }

    /// Whether this is the index of the device.
    pub(crate) fn is(&self, index: u32) -> bool {
        index == self.index
    }

    /// The device was set up or down, or has changed otherwise.
    pub(crate) fn note_link(&mut self, is_up: bool, config: &TunConfig) {
        let before = self.is_up;
        // A new device is down; that is no news.
        self.is_up = before.map(|_| is_up).or(is_up.then_some(true));
        if before.is_none() || self.is_up == before {
            return;
        }
        let name = &self.name;
        if is_up {
            tracing::info!("{name} is up again");
            self.restore(config);
        } else {
            tracing::warn!("{name} is down: no traffic until it is set up again");
        }
    }

    /// Notifications were lost, so the state of the device is unknown.
    pub(crate) fn note_missed(&self, config: &TunConfig) {
        if self.is_up == Some(true) {
            self.restore(config);
        }
    }

    /// Restores addresses and routes that the kernel removed when the device was set down. If the
    /// device is down again by now, this fails, and is repeated when it is up.
    fn restore(&self, config: &TunConfig) {
        let (index, name) = (self.index, &self.name);
        let addresses = config.addresses.iter().map(|&it| netlink::add_address(index, name, it));
        let routes = self.routes.iter().map(|&it| netlink::add_route(index, name, it));
        let of_default = |it| self.default_route.as_ref().map(|by| by.add_again(index, it));
        let default = config.routes_of(true).into_iter().filter_map(of_default);
        for failed in addresses.chain(routes).chain(default).filter_map(Result::err) {
            if failed.is_there_already() {
                tracing::debug!("{failed}");
            } else {
                tracing::warn!("{failed}");
            }
        }
    }

    /// Networks routed through the device, without a default route.
    pub(crate) fn routes(&self) -> &[IpNet] {
        &self.routes
    }

    /// Routes exactly these networks through the device, besides a default route, which stays as it
    /// is. Returns whether all of that succeeded; failures are only logged.
    pub(crate) fn set_routes(&mut self, routes: &[IpNet]) -> bool {
        let (index, name) = (self.index, &self.name);
        let mut in_force = Vec::new();
        let mut done = true;
        let tell = |changed: Result<(), NodeError>| {
            changed.inspect_err(|error| tracing::error!("{error}")).is_ok()
        };
        for &route in &self.routes {
            let stays = routes.contains(&route);
            if stays || !tell(netlink::delete_route(index, name, route)) {
                in_force.push(route);
                done &= stays;
            }
        }
        for &route in routes.iter().filter(|route| !self.routes.contains(route)) {
            let added = tell(netlink::add_route(index, name, route));
            in_force.extend(added.then_some(route));
            done &= added;
        }
        self.routes = in_force;
        done
    }

    /// Sets the device's MTU in bytes.
    pub(crate) fn set_mtu(&self, mtu: usize) -> Result<(), NodeError> {
        let value = u16::try_from(mtu).unwrap_or(u16::MAX);
        self.device.set_mtu(value).map_err(|source| {
            let action = format!("set the MTU of {} to {mtu} bytes", self.name);
            NodeError::system(action, CAP_NET_ADMIN, source)
        })
    }

    /// Removes the routes. Failures are only logged: the device vanishes anyway.
    pub(crate) fn close(self) {
        for &route in &self.routes {
            if let Err(error) = netlink::delete_route(self.index, &self.name, route) {
                tracing::warn!("{error}");
            }
        }
    }

    /// Reads one super-packet from the host and cuts it. Returns the number of packets; 0 if
    /// nothing waits.
    pub(crate) fn receive(&mut self) -> Result<usize, NodeError> {
        let received =
            self.device.recv_multiple(&mut self.whole, &mut self.packets, &mut self.lens, 0);
        match received {
            Ok(count) => {
                if self.joiner.is_some() && count == 1 {
                    mend_zero_checksum(&self.whole, &mut self.packets[0][..self.lens[0]]);
                }
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            // The device is down: nothing comes, and it may be set up again.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(0),
            Err(source) if source.raw_os_error().is_some() => Err(self.gone(source)),
            Err(error) => {
                tracing::debug!("dropped a packet from the host: {error}");
                Ok(0)
            }
        }
    }

    /// The packet at `index` of those received last.
    pub(crate) fn packet(&self, index: usize) -> &[u8] {
        &self.packets[index][..self.lens[index]]
    }

    /// Whether the kernel itself sent a packet to the link, where nobody else is.
    pub(crate) fn is_of_own_link(&self, packet: &[u8]) -> bool {
        !self.has_link && concerns_link(packet)
    }

    /// Takes a packet for the host, and writes it at the latest in [`Tun::flush`].
    pub(crate) fn push(&mut self, packet: PacketRef<'_>) {
        let (device, refusal) = (&self.device, &mut self.refusal);
        let write = |bytes: &[u8]| note_write(device, bytes, refusal);
        match &mut self.joiner {
            Some(joiner) => joiner.push(packet, write),
            None => note_write(device, &packet, refusal),
        }
    }

    /// Writes what was pushed; returns whether the host accepted all of it.
    pub(crate) fn flush(&mut self) -> Result<bool, NodeError> {
        if let Some(joiner) = &mut self.joiner {
            let (device, refusal) = (&self.device, &mut self.refusal);
            joiner.flush(|bytes| note_write(device, bytes, refusal));
        }
        match self.refusal.take() {
            None => Ok(true),
            Some(source) if source.raw_os_error() == Some(libc::EBADFD) => Err(self.gone(source)),
            Some(error) => {
                // What the host refuses (not IP, device down) is lost, as on any network.
                tracing::debug!("{} refused a packet: {error}", self.name);
                Ok(false)
            }
        }
    }

    /// The file descriptor to wait on.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn gone(&self, source: io::Error) -> NodeError {
        NodeError::TunGone { name: self.name.clone(), source }
    }
}

/// Sends a UDP checksum of zero as all ones, because zero means that there is no checksum (RFC
/// 768), and over IPv6 such a datagram would be dropped (RFC 8200, Section 8.1). Applies where the
/// kernel left the checksum of a single packet to the reader, as the virtio header shows: the
/// library that computes it does not convert zero.
fn mend_zero_checksum(header: &[u8], packet: &mut [u8]) {
    let Ok(header) = VirtioNetHdr::decode(header) else { return };
    let is_udp = header.csum_offset == UDP_CHECKSUM_OFFSET;
    if header.gso_type != GSO_NONE || header.flags & NEEDS_CHECKSUM == 0 || !is_udp {
        return;
    }
    let at = usize::from(header.csum_start) + usize::from(UDP_CHECKSUM_OFFSET);
    if let Some(sum @ [0, 0]) = packet.get_mut(at..at + 2) {
        sum.fill(0xff);
    }
}

/// Creates the device, with super-packets if they are wanted and the kernel supports them.
fn make(name: &str, offload: bool) -> io::Result<SyncDevice> {
    let build =
        |offload| DeviceBuilder::new().name(name).enable(false).offload(offload).build_sync();
    match build(offload) {
        Err(error) if offload && error.raw_os_error() == Some(libc::EINVAL) => {
            tracing::info!("{name}: no kernel offload, packets are handled one by one");
            build(false)
        }
        built => built,
    }
}

/// Writes a packet, and keeps the most informative error.
fn note_write(device: &SyncDevice, bytes: &[u8], refusal: &mut Option<io::Error>) {
    let Err(error) = device.send(bytes) else { return };
    let is_gone = error.raw_os_error() == Some(libc::EBADFD);
    if is_gone || refusal.is_none() {
        *refusal = Some(error);
    }
}
