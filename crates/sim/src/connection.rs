//! A TCP connection as in Linux between two hosts with stations: Cubic with unlimited data.

use core::time::Duration;

use corridor_base::Time;

use crate::SimError;
use crate::agents::ip::{DATA_HEADERS_LEN, IpSink, IpSource};
use crate::agents::source::{Active, FlowEnd, Supply, TcpSink, TcpSource};
use crate::core::agent::NodeIndex;
use crate::core::network::{AgentIndex, Network};
use crate::tcp::linux::{Congestion, LinuxReceiverConfig, LinuxSenderConfig};
use crate::tcp::{ReceiverSettings, SenderSettings};

type Source = IpSource<TcpSource>;
type Sink = IpSink<TcpSink>;

/// Longest time until a connection is established.
const CONNECT_MAX: Duration = Duration::from_secs(60);

/// Both ends of a connection, as agents.
pub(crate) struct Connection {
    source: AgentIndex,
    sink: AgentIndex,
}

/// Linux's settings for segments with this many bytes of payload.
pub(crate) fn settings(payload_bytes: u32, seed: u64) -> (SenderSettings, ReceiverSettings) {
    let header_bytes = DATA_HEADERS_LEN as u32;
    let sender = LinuxSenderConfig {
        payload_bytes,
        header_bytes,
        seed,
        ..LinuxSenderConfig::new(Congestion::Cubic)
    };
    (sender.into(), LinuxReceiverConfig::new(payload_bytes).into())
}

impl Connection {
    /// Adds both ends of a flow to two hosts, for packets of up to `mtu` bytes.
    pub(crate) fn add(
        network: &mut Network,
        (flow, from, to): (u32, NodeIndex, NodeIndex),
        mtu: usize,
        seed: u64,
    ) -> Result<Self, SimError> {
        let payload = mtu.saturating_sub(DATA_HEADERS_LEN) as u32;
        let (sender, receiver) = settings(payload, seed);
        let (here, there) = FlowEnd::pair(flow, from, to);
        let active = Active { from: Time::MAX, until: Time::MAX };
        let source = TcpSource::new(here, active, Supply::Endless, sender)?;
        let sink = TcpSink::new(there, DATA_HEADERS_LEN as u32, receiver)?;
        let scale = receiver.window_scale();
        let source = IpSource::new(source, here, payload, scale);
        let sink = IpSink::new(sink, there, payload, scale);
        let source = network.add_agent(from, flow, source)?;
        let sink = network.add_agent(to, flow, sink)?;
        Ok(Connection { source, sink })
    }

    /// Waits until all connections are established, then has them send.
    pub(crate) fn begin(all: &[Connection], network: &mut Network) {
        let now = network.now();
        for connection in all {
            network.tell(connection.source, |source: &mut Source| source.open(now));
            network.ask(connection.source);
        }
        network.run_until_or(now + CONNECT_MAX, |network| {
            let mut sources = all.iter().filter_map(|at| network.agent::<Source>(at.source));
            sources.all(IpSource::is_open)
        });
        let now = network.now();
        for connection in all {
            network.tell(connection.source, |source: &mut Source| source.inner_mut().begin(now));
            network.ask(connection.source);
        }
    }

    /// Bytes of payload that have arrived in order.
    pub(crate) fn delivered_bytes(&self, network: &Network) -> u64 {
        network.agent::<Sink>(self.sink).map_or(0, |sink| sink.inner().delivered_bytes())
    }
}
