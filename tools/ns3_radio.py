"""The networks of bench-radio in ns-3, by its Python package (`pip install ns3`): one line of JSON.

The same rules as in crates/bench/src/radio/networks.rs: losses by matrix, one rate, frames that are
received or not, the same thresholds. Without the package it reports that, and exits with 1.
"""

import argparse
import json
import sys
import time
from importlib import metadata

try:
    import cppyy
    from ns import ns
except ImportError as fault:
    sys.exit(f"ns-3's Python package is not installed: {fault}")

POWER_DBM = 16.0
SENSITIVITY_DBM = -75.0
SENSE_DBM = -85.0
NEAR_DB, STRONG_DB, SENSED_DB = 76.0, 56.0, 96.0
UDP_BYTES = 1000
QUEUE_FRAMES = 50
WARM_UP_S = 2.0
WPAN_BYTES = 80
PORT = 9

# Saturated senders need an answer to every confirmation: in C++, for speed.
CELL = r"""
#include "ns3/lr-wpan-module.h"
#include "ns3/network-module.h"
#include "ns3/mobility-module.h"
#include "ns3/propagation-module.h"
#include "ns3/spectrum-module.h"

namespace corridor_cell {
using namespace ns3;
using namespace ns3::lrwpan;

uint64_t g_frames, g_acknowledged, g_busy, g_received, g_duplicates;
double g_begin;
std::map<Mac16Address, uint8_t> g_last;

void Send(Ptr<LrWpanMac> mac, uint32_t bytes, uint16_t sink)
{
    McpsDataRequestParams request;
    request.m_srcAddrMode = SHORT_ADDR;
    request.m_dstAddrMode = SHORT_ADDR;
    request.m_dstPanId = 1;
    uint8_t address[2] = {static_cast<uint8_t>(sink >> 8), static_cast<uint8_t>(sink & 0xff)};
    Mac16Address destination;
    destination.CopyFrom(address);
    request.m_dstAddr = destination;
    request.m_msduHandle = 0;
    request.m_txOptions = TX_OPTION_ACK;
    mac->McpsDataRequest(request, Create<Packet>(bytes));
}

void Confirm(Ptr<LrWpanMac> mac, uint32_t bytes, uint16_t sink, McpsDataConfirmParams params)
{
    if (Simulator::Now().GetSeconds() >= g_begin)
    {
        g_frames += 1;
        g_acknowledged += params.m_status == MacStatus::SUCCESS;
        g_busy += params.m_status == MacStatus::CHANNEL_ACCESS_FAILURE;
    }
    Simulator::ScheduleNow(&Send, mac, bytes, sink);
}

// A frame comes again if its ACK was lost: one sender's frames come in order.
void Indicate(McpsDataIndicationParams params, Ptr<Packet>)
{
    auto last = g_last.find(params.m_srcAddr);
    bool again = last != g_last.end() && last->second == params.m_dsn;
    g_last[params.m_srcAddr] = params.m_dsn;
    if (Simulator::Now().GetSeconds() >= g_begin)
    {
        g_received += !again;
        g_duplicates += again;
    }
}

void Start(uint32_t senders, uint32_t bytes, double begin, double end)
{
    g_frames = g_acknowledged = g_busy = g_received = g_duplicates = 0;
    g_last.clear();
    g_begin = begin;
    Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    start->SetStream(99);
    Ptr<MultiModelSpectrumChannel> channel = CreateObject<MultiModelSpectrumChannel>();
    NodeContainer nodes;
    nodes.Create(senders + 1);
    for (uint32_t i = 0; i <= senders; i++)
    {
        Ptr<LrWpanNetDevice> device = CreateObject<LrWpanNetDevice>();
        Ptr<ConstantPositionMobilityModel> place = CreateObject<ConstantPositionMobilityModel>();
        nodes.Get(i)->AggregateObject(place);
        device->SetChannel(channel);
        nodes.Get(i)->AddDevice(device);
        device->GetPhy()->SetMobility(place);
        uint8_t address[2] = {0, static_cast<uint8_t>(i + 1)};
        Mac16Address mine;
        mine.CopyFrom(address);
        device->SetAddress(mine);
        device->GetMac()->SetPanId(1);
        device->AssignStreams(1000 + 10 * i);
        Ptr<LrWpanMac> mac = device->GetMac();
        if (i < senders)
        {
            uint16_t sink = senders + 1;
            mac->SetMcpsDataConfirmCallback(
                Callback<void, McpsDataConfirmParams>([mac, bytes, sink](McpsDataConfirmParams p) {
                    Confirm(mac, bytes, sink, p);
                }));
            // Everything lasts a multiple of 32 us: who began together would for ever end a look
            // in the very instant in which another begins to send.
            Time begins = MilliSeconds(1) + NanoSeconds(start->GetInteger(0, 100000000));
            Simulator::Schedule(begins, &Send, mac, bytes, sink);
        }
        else
        {
            mac->SetMcpsDataIndicationCallback(MakeCallback(&Indicate));
        }
    }
    Simulator::Stop(Seconds(end));
}
} // namespace corridor_cell
"""


def networks():
    """Yields name, number of nodes, losses, flows as paths, RTS, capture."""
    hidden = [(0, 1, NEAR_DB), (1, 2, NEAR_DB)]
    exposed = [(0, 1, NEAR_DB), (1, 2, NEAR_DB), (2, 3, NEAR_DB)]
    capture = [(0, 1, STRONG_DB), (1, 2, NEAR_DB), (0, 2, NEAR_DB)]
    into_one = [[0, 1], [2, 1]]
    yield "hidden", 3, hidden, into_one, False, False
    yield "hidden-rts", 3, hidden, into_one, True, False
    yield "exposed", 4, exposed, [[1, 0], [2, 3]], False, False
    yield "capture", 3, capture, into_one, False, True
    yield "capture-hidden", 3, [(0, 1, STRONG_DB), (1, 2, NEAR_DB)], into_one, False, True
    for hops in range(2, 9):
        losses = [(i, i + 1, NEAR_DB) for i in range(hops)]
        losses += [(i, i + 2, SENSED_DB) for i in range(hops - 1)]
        yield f"chain-{hops}", hops + 1, losses, [list(range(hops + 1))], False, False


def goodput(count, losses, flows, announced, captures, simulated_s):
    """UDP goodput of each flow, bit/s, and the processor time."""
    nodes = ns.NodeContainer()
    nodes.Create(count)
    mobility = ns.MobilityHelper()
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel")
    mobility.Install(nodes)
    places = [nodes.Get(i).GetObject[ns.MobilityModel]() for i in range(count)]
    matrix = ns.CreateObject[ns.MatrixPropagationLossModel]()
    matrix.SetDefaultLoss(300.0)
    for a, b, loss_db in losses:
        matrix.SetLoss(places[a], places[b], loss_db, True)
    channel = ns.CreateObject[ns.YansWifiChannel]()
    channel.SetPropagationLossModel(matrix)
    channel.SetPropagationDelayModel(ns.CreateObject[ns.ConstantSpeedPropagationDelayModel]())
    phy = ns.YansWifiPhyHelper()
    phy.SetChannel(channel)
    phy.SetErrorRateModel("ns3::NistErrorRateModel")
    # Weaker frames are sensed, but not received; below RxSensitivity they would not be sensed.
    phy.SetPreambleDetectionModel(
        "ns3::ThresholdPreambleDetectionModel",
        "Threshold", ns.DoubleValue(-100.0), "MinimumRssi", ns.DoubleValue(SENSITIVITY_DBM),
    )
    if captures:
        phy.SetFrameCaptureModel("ns3::SimpleFrameCaptureModel")
    for name, value in [
        ("TxPowerStart", POWER_DBM), ("TxPowerEnd", POWER_DBM),
        ("RxSensitivity", SENSE_DBM), ("CcaEdThreshold", SENSE_DBM),
    ]:
        phy.Set(name, ns.DoubleValue(value))
    wifi = ns.WifiHelper()
    wifi.SetStandard(ns.WIFI_STANDARD_80211a)
    wifi.SetRemoteStationManager(
        "ns3::ConstantRateWifiManager",
        "DataMode", ns.StringValue("OfdmRate6Mbps"),
        "ControlMode", ns.StringValue("OfdmRate6Mbps"),
        "RtsCtsThreshold", ns.UintegerValue(0 if announced else 4_000_000),
    )
    mac = ns.WifiMacHelper()
    mac.SetType("ns3::AdhocWifiMac")
    devices = wifi.Install(phy, mac, nodes)
    ns.WifiHelper.AssignStreams(devices, 100)

    stack = ns.InternetStackHelper()
    stack.Install(nodes)
    addresses = ns.Ipv4AddressHelper()
    addresses.SetBase(ns.Ipv4Address("10.0.0.0"), ns.Ipv4Mask("255.255.255.0"))
    interfaces = addresses.Assign(devices)
    ns.TrafficControlHelper.Default().Uninstall(devices)
    ns.NeighborCacheHelper().PopulateNeighborCache()
    routing = ns.Ipv4StaticRoutingHelper()
    sinks = []
    for flow, path in enumerate(flows):
        target = interfaces.GetAddress(path[-1])
        for here, there in zip(path, path[1:]):
            ipv4 = nodes.Get(here).GetObject[ns.Ipv4]()
            table = routing.GetStaticRouting(ipv4)
            table.AddHostRouteTo(target, interfaces.GetAddress(there), 1)
        port = PORT + flow
        anywhere = ns.InetSocketAddress(ns.Ipv4Address.GetAny(), port).ConvertTo()
        sink = ns.PacketSinkHelper("ns3::UdpSocketFactory", anywhere).Install(nodes.Get(path[-1]))
        sink.Start(ns.Seconds(0.0))
        sinks.append(sink.Get(0).GetObject[ns.PacketSink]())
        client = ns.UdpClientHelper(ns.InetSocketAddress(target, port).ConvertTo())
        client.SetAttribute("MaxPackets", ns.UintegerValue(4_000_000_000))
        client.SetAttribute("Interval", ns.TimeValue(ns.MicroSeconds(1000)))
        client.SetAttribute("PacketSize", ns.UintegerValue(UDP_BYTES))
        client.Install(nodes.Get(path[0])).Start(ns.Seconds(0.5 + 0.01 * flow))

    ns.Simulator.Stop(ns.Seconds(WARM_UP_S))
    ns.Simulator.Run()
    before = [sink.GetTotalRx() for sink in sinks]
    begin = time.process_time()
    ns.Simulator.Stop(ns.Seconds(simulated_s))
    ns.Simulator.Run()
    cpu_s = time.process_time() - begin
    bits = [8.0 * (sink.GetTotalRx() - b) / simulated_s for sink, b in zip(sinks, before)]
    ns.Simulator.Destroy()
    return {"goodput_bps": bits, "simulated_s": simulated_s, "cpu_s": cpu_s}


def wpan(senders, simulated_s):
    """A cell of saturated 802.15.4 senders around a sink."""
    cell = cppyy.gbl.corridor_cell
    cell.Start(senders, WPAN_BYTES, WARM_UP_S, WARM_UP_S + simulated_s)
    begin = time.process_time()
    ns.Simulator.Run()
    cpu_s = time.process_time() - begin
    frames = max(cell.g_frames, 1)
    answer = {
        "goodput_bps": 8.0 * WPAN_BYTES * cell.g_acknowledged / simulated_s,
        "success_ratio": cell.g_acknowledged / frames,
        "busy_ratio": cell.g_busy / frames,
        "duplicate_ratio": cell.g_duplicates / max(cell.g_duplicates + cell.g_received, 1),
        "simulated_s": simulated_s,
        "cpu_s": cpu_s,
    }
    ns.Simulator.Destroy()
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the simulated time")
    parser.add_argument("--only", help="one network, or wpan")
    arguments = parser.parse_args()
    simulated_s = 20.0 if arguments.quick else 100.0
    only = arguments.only
    ns.Config.SetDefault("ns3::WifiMacQueue::MaxSize", ns.QueueSizeValue(ns.QueueSize(f"{QUEUE_FRAMES}p")))
    # The installed package states its version.
    version = metadata.version("ns3")
    answer = {"version": version, "script": "tools/ns3_radio.py", "networks": {}, "wpan": {}}
    for name, *network in networks():
        if only in (None, name):
            answer["networks"][name] = goodput(*network, simulated_s)
    if only in (None, "wpan"):
        cppyy.cppdef(CELL)
        for senders in (1, 2, 5, 10, 20):
            answer["wpan"][str(senders)] = wpan(senders, simulated_s)
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
