//! The TUN device: where packets of the host enter the tunnel, and leave it.
//!
//! The kernel hands over super-packets of TCP and UDP and takes them; they are cut into packets
//! here (GSO), and packets of one flow are put together again (GRO).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use ipnet::IpNet;
use tun_rs::{DeviceBuilder, GROTable, SyncDevice, VIRTIO_NET_HDR_LEN};

use crate::config::TunConfig;
use crate::error::{CAP_NET_ADMIN, NodeError};
use crate::netlink;

/// Packets cut from one super-packet, and packets put together, at most.
pub(crate) const BATCH: usize = 128;
/// Longest packet there is, bytes: what 16 bits of length can say.
const PACKET_LEN_MAX: usize = 65_535;

/// A TUN device with its addresses and routes. It vanishes with this value, and they with it.
pub(crate) struct Tun {
    device: SyncDevice,
    name: String,
    index: u32,
    routes: Vec<IpNet>,
    /// A super-packet as the kernel hands it over.
    whole: Vec<u8>,
    /// What it was cut into.
    packets: Vec<Vec<u8>>,
    lens: Vec<usize>,
    /// Packets for the host, the first `outgoing_count` of them.
    outgoing: Vec<Vec<u8>>,
    outgoing_count: usize,
    gro: GROTable,
}

impl Tun {
    /// Makes the device, and gives it its MTU (bytes), addresses and routes.
    pub(crate) fn open(config: &TunConfig, mtu: usize) -> Result<Self, NodeError> {
        let name = &config.name;
        if !Path::new("/dev/net/tun").exists() {
            return Err(NodeError::TunMissing);
        }
        // Attaching to a device that somebody else made would change it under their hands.
        if netlink::link(name)?.is_some() {
            return Err(NodeError::TunNameTaken { name: name.clone() });
        }
        let action = || format!("make the TUN device {name}");
        let device = DeviceBuilder::new()
            .name(name.clone())
            .enable(false)
            .offload(true)
            .build_sync()
            .map_err(|source| match source.raw_os_error() {
                Some(libc::EBUSY) => NodeError::TunNameTaken { name: name.clone() },
                Some(libc::ENODEV | libc::ENXIO) => NodeError::TunMissing,
                _ => NodeError::system(action(), CAP_NET_ADMIN, source),
            })?;
        let system = |source| NodeError::system(action(), CAP_NET_ADMIN, source);
        device.set_nonblocking(true).map_err(system)?;
        let index = device.if_index().map_err(system)?;
        let mut tun = Tun {
            device,
            name: name.clone(),
            index,
            routes: Vec::new(),
            whole: vec![0; VIRTIO_NET_HDR_LEN + PACKET_LEN_MAX],
            packets: vec![vec![0; PACKET_LEN_MAX]; BATCH],
            lens: vec![0; BATCH],
            outgoing: (0..BATCH)
                .map(|_| Vec::with_capacity(2 * VIRTIO_NET_HDR_LEN + PACKET_LEN_MAX))
                .collect(),
            outgoing_count: 0,
            gro: GROTable::default(),
        };
        tun.configure(config, mtu)?;
        Ok(tun)
    }

    fn configure(&mut self, config: &TunConfig, mtu: usize) -> Result<(), NodeError> {
        for &address in &config.addresses {
            netlink::add_address(self.index, &self.name, address)?;
        }
        netlink::set_up(self.index, &self.name, mtu, BATCH as u32)?;
        for &route in &config.routes {
            netlink::add_route(self.index, &self.name, route)?;
            self.routes.push(route);
        }
        Ok(())
    }

    /// Takes the routes down. What fails is only told: the device vanishes anyway.
    pub(crate) fn close(self) {
        for &route in &self.routes {
            if let Err(error) = netlink::delete_route(self.index, &self.name, route) {
                tracing::warn!("{error}");
            }
        }
    }

    /// Takes one super-packet from the host and cuts it. How many packets there are; none if
    /// nothing waits.
    pub(crate) fn receive(&mut self) -> Result<usize, NodeError> {
        let received =
            self.device.recv_multiple(&mut self.whole, &mut self.packets, &mut self.lens, 0);
        match received {
            Ok(count) => Ok(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            // The device is down: nothing comes, and it may be set up again.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(0),
            Err(source) if source.raw_os_error().is_some() => Err(self.gone(source)),
            Err(error) => {
                tracing::debug!("packet of the host dropped: {error}");
                Ok(0)
            }
        }
    }

    /// The packet at `index` of those received last.
    pub(crate) fn packet(&self, index: usize) -> &[u8] {
        &self.packets[index][..self.lens[index]]
    }

    /// Whether [`Tun::flush`] must be called before another packet is pushed.
    pub(crate) fn is_full(&self) -> bool {
        self.outgoing_count == BATCH
    }

    /// Keeps a packet for the host until [`Tun::flush`].
    pub(crate) fn push(&mut self, packet: &[u8]) {
        let buffer = &mut self.outgoing[self.outgoing_count];
        buffer.clear();
        buffer.resize(VIRTIO_NET_HDR_LEN, 0);
        buffer.extend_from_slice(packet);
        self.outgoing_count += 1;
    }

    /// Hands over what was pushed. Whether all of it was taken.
    pub(crate) fn flush(&mut self) -> Result<bool, NodeError> {
        let outgoing = &mut self.outgoing[..self.outgoing_count];
        self.outgoing_count = 0;
        match self.device.send_multiple(&mut self.gro, outgoing, VIRTIO_NET_HDR_LEN) {
            Ok(_) => Ok(true),
            Err(source) if source.raw_os_error() == Some(libc::EBADFD) => Err(self.gone(source)),
            Err(error) => {
                // What the host does not take (not IP, device down) is lost, as on any network.
                tracing::debug!("{} does not take a packet: {error}", self.name);
                Ok(false)
            }
        }
    }

    /// What to wait on.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn gone(&self, source: io::Error) -> NodeError {
        NodeError::TunGone { name: self.name.clone(), source }
    }
}
