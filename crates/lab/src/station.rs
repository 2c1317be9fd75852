//! A station: a network namespace with a TAP interface, which is its radio.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, OwnedFd};

use corridor_scenario::{DESTINATION, MediumTable, Path, RELAY, RELAYS_MAX, Run};
use futures_util::StreamExt;
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkAttribute, LinkInfo, LinkMessage};
use rtnetlink::packet_route::neighbour::NeighbourState;
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use rtnetlink::{Handle, LinkUnspec, LinkVeth};

use crate::error::{Context, LabError};
use crate::netns::Namespace;
use crate::sys;

/// Name of the radio in every namespace.
pub(crate) const RADIO: &str = "radio0";
/// Names of the stations, by index in the medium.
pub(crate) const NAMES: [&str; 3] = ["S", "D", "H"];
/// Names of relays, from the one next to S.
const RELAYS: [&str; RELAYS_MAX] = ["R1", "R2", "R3", "R4", "R5", "R6"];

/// The name of station `index` of a run.
pub(crate) fn name_of(run: &Run, index: usize) -> &'static str {
    match run.path {
        Path::Relay if index >= RELAY => RELAYS[index - RELAY],
        _ => NAMES[index],
    }
}

/// Longest ring whose places the kernel frees one by one; beyond this length it frees them in
/// batches of 16, so a longer ring would hold anything from its length less 15.
const RING_FRAMES_MAX: usize = 31;

/// How an interface's queue is split between the TAP's ring and the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueSplit {
    /// In the kernel: when the ring is full, the next sender is told that there is no room.
    pub(crate) ring: usize,
    /// In the medium: 2 or more, so that the channel is not idle while the emulator fetches a
    /// frame.
    pub(crate) medium: usize,
}

impl QueueSplit {
    pub(crate) fn of(table: &MediumTable) -> Self {
        let queue_frames = table.queue_frames;
        if table.drops_when_full {
            // The medium accepts all frames at once, and holds the whole queue itself.
            return QueueSplit { ring: RING_FRAMES_MAX, medium: queue_frames };
        }
        let ring = queue_frames.saturating_sub(2).clamp(1, RING_FRAMES_MAX);
        QueueSplit { ring, medium: queue_frames.saturating_sub(ring).max(2) }
    }
}

/// A station's namespace, and the lab's end of its radio.
pub(crate) struct Station {
    pub(crate) index: usize,
    pub(crate) namespace: Namespace,
    /// `None` if another station holds the other end.
    pub(crate) tap: Option<File>,
}

/// Configuration of a station's radio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RadioConfig {
    /// Frames in the kernel's ring.
    pub(crate) ring_frames: usize,
    /// MTU, bytes.
    pub(crate) mtu: usize,
    /// Stations on the medium.
    pub(crate) stations: usize,
    /// Links in a row between S and D.
    pub(crate) hops: usize,
    /// First three bytes of the interface's IPv4 address; `None`: no address.
    pub(crate) subnet: Option<[u8; 3]>,
}

/// The hardware address of an end of the medium; on one hop each station has one end.
pub(crate) fn mac(index: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, index as u8 + 1]
}

impl RadioConfig {
    /// A station's end of the medium: on several hops S has the first, D the last.
    fn place(&self, station: usize) -> usize {
        if self.hops > 1 && station == DESTINATION { 2 * self.hops - 1 } else { station }
    }

    /// The hardware address to which frames for another station are sent: on several hops, the
    /// other end of the first link.
    fn next_mac(&self, station: usize, other: usize) -> [u8; 6] {
        mac(if self.hops > 1 { self.place(station) ^ 1 } else { other })
    }
}

/// The end of the medium with a hardware address.
pub(crate) fn station_of(mac: &[u8], stations: usize) -> Option<usize> {
    let index = usize::from(*mac.get(5)?).checked_sub(1)?;
    (index < stations && mac[..5] == [2, 0, 0, 0, 0]).then_some(index)
}

/// The IPv4 address of a station in a subnet.
pub(crate) fn address(subnet: [u8; 3], index: usize) -> Ipv4Addr {
    Ipv4Addr::new(subnet[0], subnet[1], subnet[2], index as u8 + 1)
}

impl Station {
    /// Makes a station.
    pub(crate) fn new(index: usize, radio: RadioConfig) -> Result<Self, LabError> {
        let namespace = Namespace::new()?;
        let tap = namespace.run(move || {
            let tap = sys::make_tap(RADIO).what("make a TAP interface")?;
            set_up(index, radio)?;
            Ok(tap)
        })?;
        Ok(Station { index, namespace, tap: Some(tap) })
    }

    /// Makes two stations whose interfaces are the two ends of one wire.
    pub(crate) fn pair(radio: RadioConfig) -> Result<[Self; 2], LabError> {
        let namespaces = [Namespace::new()?, Namespace::new()?];
        let far = namespaces[1].descriptor()?;
        namespaces[0].run(move || with_netlink(async |handle| make_pair(&handle, &far).await))?;
        for (index, namespace) in namespaces.iter().enumerate() {
            namespace.run(move || set_up(index, radio))?;
        }
        let mut index = 0..;
        let station =
            |namespace| Station { index: index.next().unwrap_or(0), namespace, tap: None };
        Ok(namespaces.map(station))
    }

    /// Enables ECN in the station's kernel for connections that it opens and accepts (RFC 3168).
    pub(crate) fn enable_ecn(&self) -> Result<(), LabError> {
        self.namespace
            .run(|| fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").what("set net.ipv4.tcp_ecn"))
    }

    /// Gives an interface the station's address in a subnet and brings it up. Returns whether the
    /// interface exists.
    pub(crate) fn give_address(
        &self,
        interface: &'static str,
        subnet: [u8; 3],
    ) -> Result<bool, LabError> {
        let index = self.index;
        self.namespace.run(move || {
            let Ok(number) = nix::net::if_::if_nametoindex(interface) else { return Ok(false) };
            with_netlink(async |handle| {
                let own = IpAddr::V4(address(subnet, index));
                // It may have the address already: then only the route is missing.
                let _ = handle.address().add(number, own, 24).execute().await;
                let up = LinkUnspec::new_with_index(number).up().build();
                handle.link().set(up).execute().await.map_err(failed("bring a tunnel up"))
            })?;
            Ok(true)
        })
    }

    /// Name for display, where there are no relays.
    pub(crate) fn name(&self) -> &'static str {
        NAMES[self.index]
    }

    /// Frames that the station's kernel could not pass to the radio since the beginning.
    pub(crate) fn radio_drops(&self) -> Result<u64, LabError> {
        self.namespace.run(|| {
            let table = fs::read_to_string("/proc/thread-self/net/dev").what("read net/dev")?;
            Ok(sent_drops(&table, RADIO).unwrap_or(0))
        })
    }
}

/// The column of dropped outgoing packets in `/proc/net/dev`.
fn sent_drops(table: &str, interface: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| {
        let (name, counters) = line.split_once(':')?;
        (name.trim() == interface).then_some(counters)
    })?;
    // Eight columns of received, then bytes, packets, errs, drop.
    line.split_whitespace().nth(11)?.parse().ok()
}

/// Sets up the station's existing interface. To be called in its namespace.
fn set_up(index: usize, radio: RadioConfig) -> Result<(), LabError> {
    // Router solicitations and the like would take airtime. Where /proc/sys cannot be written they
    // do, which means a few frames in the first seconds, not an error.
    disable_ipv6(RADIO);
    with_netlink(async |handle| {
        bring_up(&handle, RADIO, radio.place(index), radio).await?;
        match radio.subnet {
            Some(subnet) => set_addresses(&handle, index, subnet, radio).await,
            None => Ok(()),
        }
    })
}

/// Has no effect if `/proc/sys` cannot be written.
pub(crate) fn disable_ipv6(interface: &str) {
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"), "1");
}

/// Opens a netlink connection to the kernel in the calling thread's namespace.
pub(crate) fn with_netlink<T>(
    work: impl AsyncFnOnce(Handle) -> Result<T, LabError>,
) -> Result<T, LabError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.what("start the netlink runtime")?.block_on(async move {
        let (connection, handle, _) = rtnetlink::new_connection().what("open a netlink socket")?;
        tokio::spawn(connection);
        work(handle).await
    })
}

/// Makes a veth pair, one end here and one in another namespace.
async fn make_pair(handle: &Handle, far: &OwnedFd) -> Result<(), LabError> {
    let mut link = LinkVeth::new(RADIO, RADIO).build();
    let peer = LinkUnspec::new_with_name(RADIO);
    let peer = peer.setns_by_fd(far.as_raw_fd()).build();
    for attribute in &mut link.attributes {
        let LinkAttribute::LinkInfo(infos) = attribute else { continue };
        for info in infos {
            if let LinkInfo::Data(data) = info {
                *data = InfoData::Veth(InfoVeth::Peer(peer.clone()));
            }
        }
    }
    handle.link().add(link).execute().await.map_err(failed("make a pair of interfaces"))
}

/// Brings up `interface`, which is end `place` of the medium, without addresses.
pub(crate) async fn bring_up(
    handle: &Handle,
    interface: &str,
    place: usize,
    radio: RadioConfig,
) -> Result<(), LabError> {
    let set = |link: LinkMessage, what: &'static str| {
        let request = handle.link().set(link);
        async move { request.execute().await.map_err(failed(what)) }
    };
    set(LinkUnspec::new_with_name("lo").up().build(), "bring lo up").await?;
    let interface = number_of(interface)?;
    let link = LinkUnspec::new_with_index(interface)
        .address(mac(place).to_vec())
        .txqueuelen(radio.ring_frames as u32)
        .mtu(radio.mtu as u32);
    set(link.build(), "set the radio's address and queue").await?;
    set_noqueue(handle.clone(), interface).await?;
    set(LinkUnspec::new_with_index(interface).up().build(), "bring the radio up").await
}

/// Turns off GSO on an interface, so that TCP makes no super-packets for it.
pub(crate) fn without_gso(interface: &'static str) -> Result<(), LabError> {
    let link = LinkUnspec::new_with_index(number_of(interface)?)
        .append_extra_attribute(LinkAttribute::GsoMaxSegs(1));
    with_netlink(async |handle| {
        let request = handle.link().set(link.build());
        request.execute().await.map_err(failed("take super-packets from the radio"))
    })
}

/// The kernel's interface index.
pub(crate) fn number_of(interface: &str) -> Result<u32, LabError> {
    nix::net::if_::if_nametoindex(interface).what("find the radio")
}

/// Removes the queueing discipline in front of the ring: with one, a full ring would drop the
/// packet silently; without, the sender gets ENOBUFS, which is the radio's back-pressure.
async fn set_noqueue(mut handle: Handle, interface: u32) -> Result<(), LabError> {
    const WHAT: &str = "take the radio's queueing discipline away";
    let mut message = TcMessage::with_index(interface as i32);
    message.header.parent = TcHandle::ROOT;
    message.attributes.push(TcAttribute::Kind("noqueue".to_owned()));
    let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewQueueDiscipline(message));
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
    let mut answers = handle.request(request).map_err(failed(WHAT))?;
    while let Some(answer) = answers.next().await {
        if let NetlinkPayload::Error(error) = answer.payload
            && error.code.is_some()
        {
            return Err(failed(WHAT)(rtnetlink::Error::NetlinkError(error)));
        }
    }
    Ok(())
}

/// Sets an address, and the neighbours' hardware addresses, so that no address resolution is lost.
async fn set_addresses(
    handle: &Handle,
    index: usize,
    subnet: [u8; 3],
    radio: RadioConfig,
) -> Result<(), LabError> {
    let interface = number_of(RADIO)?;
    let own = IpAddr::V4(address(subnet, index));
    let request = handle.address().add(interface, own, 24);
    request.execute().await.map_err(failed("give the radio an address"))?;
    for other in (0..radio.stations).filter(|&other| other != index) {
        let neighbour = IpAddr::V4(address(subnet, other));
        add_neighbour(handle, interface, neighbour, radio.next_mac(index, other)).await?;
    }
    Ok(())
}

/// Adds a permanent neighbour entry for an address.
pub(crate) async fn add_neighbour(
    handle: &Handle,
    interface: u32,
    neighbour: IpAddr,
    mac: [u8; 6],
) -> Result<(), LabError> {
    let request = handle
        .neighbours()
        .add(interface, neighbour)
        .link_layer_address(&mac)
        .state(NeighbourState::Permanent);
    request.execute().await.map_err(failed("name the radio's neighbours"))
}

pub(crate) fn failed(what: &'static str) -> impl Fn(rtnetlink::Error) -> LabError {
    move |error| LabError::Netlink { what: what.to_owned(), message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_split_without_loss() {
        let of = |queue_frames, drops| {
            let lines = "duplex = 'full'\nrate_bps = 1_000_000\nrtt_ms = 4\ndrops_when_full";
            let lines = format!("{lines} = {drops}\nqueue_frames = {queue_frames}");
            QueueSplit::of(&toml::from_str(&lines).unwrap())
        };
        for queue_frames in 3..200 {
            let QueueSplit { ring, medium } = of(queue_frames, false);
            assert_eq!(ring + medium, queue_frames);
            assert!(ring <= RING_FRAMES_MAX && medium >= 2);
        }
        // The smallest that works: one in the ring, two in the medium.
        assert_eq!(of(1, false), QueueSplit { ring: 1, medium: 2 });
        // The medium does the dropping.
        assert_eq!(of(3, true), QueueSplit { ring: RING_FRAMES_MAX, medium: 3 });
    }

    #[test]
    fn on_several_hops_s_has_the_first_end_and_d_the_last() {
        let (mtu, stations, subnet) = (1500, 2, None);
        let radio = RadioConfig { ring_frames: 31, mtu, stations, hops: 4, subnet };
        assert_eq!((radio.place(0), radio.place(1)), (0, 7));
        assert_eq!((radio.next_mac(0, 1), radio.next_mac(1, 0)), (mac(1), mac(6)));
        let radio = RadioConfig { hops: 1, ..radio };
        assert_eq!((radio.place(0), radio.place(1)), (0, 1));
        assert_eq!((radio.next_mac(0, 1), radio.next_mac(0, 2)), (mac(1), mac(2)));
    }

    #[test]
    fn hardware_addresses_name_stations() {
        for index in 0..3 {
            assert_eq!(station_of(&mac(index), 3), Some(index));
        }
        assert_eq!(station_of(&mac(2), 2), None);
        for other in [[0xff; 6], [2, 0, 0, 0, 0, 0], [2, 0, 0, 0, 1, 1], [0; 6]] {
            assert_eq!(station_of(&other, 3), None);
        }
        assert_eq!(station_of(&[2, 0], 3), None);
    }

    #[test]
    fn drops_are_read_from_their_column() {
        let table = "Inter-|   Receive\n face |bytes\n    lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
                     radio0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        assert_eq!(sent_drops(table, RADIO), Some(12));
        assert_eq!(sent_drops(table, "other"), None);
    }
}
