"""The networks of bench-constrained in ns-3, by its Python package (`pip install ns3`): JSON.

The same rules as in crates/bench/src/constrained: 802.15.4 on a line with static routes, where
nodes hear only their neighbours, and AODV over 802.11. Without the package it reports that, and
exits with 1.
"""

import argparse
import json
import sys
from importlib import metadata

try:
    import cppyy
    from ns import ns  # noqa: F401 (loads ns-3's libraries)
except ImportError as fault:
    sys.exit(f"ns-3's Python package is not installed: {fault}")

HOPS = range(1, 9)
WINDOWS = (1, 5)
# Discoveries on each network, and simulated seconds of each line.
DISCOVERIES, QUICK_DISCOVERIES = 60, 20
LINE_S, QUICK_LINE_S = 200.0, 40.0
WARM_UP_S = 5.0
# Side lengths of the grid.
SIDE = 5

# In C++, for speed: every frame needs an answer.
LINE = r"""
#include "ns3/lr-wpan-module.h"
#include "ns3/network-module.h"
#include "ns3/mobility-module.h"
#include "ns3/propagation-module.h"
#include "ns3/spectrum-module.h"

namespace corridor_line {
using namespace ns3;
using namespace ns3::lrwpan;

// Data of a packet and its headers; of an answer. A packet without an answer is given up.
const uint32_t DATA_BYTES = 114, ANSWER_BYTES = 20;
const double GIVEN_UP_S = 2.0;
// Each end works so long on a packet, at most.
const int64_t WORK_NS = 1000000;

uint32_t g_window, g_next, g_last;
uint64_t g_delivered, g_transmissions, g_frames, g_given_up;
double g_begin;
std::vector<Ptr<LrWpanMac>> g_macs;
std::map<uint32_t, EventId> g_under_way;
std::set<uint32_t> g_received;
std::map<std::pair<uint32_t, Mac16Address>, uint8_t> g_seen;
Ptr<UniformRandomVariable> g_work;

bool Measured() { return Simulator::Now().GetSeconds() >= g_begin; }

Mac16Address AddressOf(uint32_t node)
{
    uint8_t bytes[2] = {0, static_cast<uint8_t>(node + 1)};
    Mac16Address address;
    address.CopyFrom(bytes);
    return address;
}

void Forward(uint32_t node, uint32_t next, Ptr<Packet> packet)
{
    McpsDataRequestParams request;
    request.m_srcAddrMode = SHORT_ADDR;
    request.m_dstAddrMode = SHORT_ADDR;
    request.m_dstPanId = 1;
    request.m_dstAddr = AddressOf(next);
    request.m_msduHandle = 0;
    request.m_txOptions = TX_OPTION_ACK;
    g_frames += Measured();
    g_macs[node]->McpsDataRequest(request, packet);
}

Ptr<Packet> Made(uint32_t number, uint32_t bytes)
{
    std::vector<uint8_t> body(bytes, 0);
    for (uint32_t i = 0; i < 4; i++)
    {
        body[i] = number >> (8 * i);
    }
    return Create<Packet>(body.data(), bytes);
}

void Fill();

void GiveUp(uint32_t number)
{
    g_given_up += Measured();
    g_under_way.erase(number);
    Fill();
}

void Fill()
{
    while (g_under_way.size() < g_window)
    {
        uint32_t number = g_next++;
        g_under_way[number] = Simulator::Schedule(Seconds(GIVEN_UP_S), &GiveUp, number);
        Forward(0, 1, Made(number, DATA_BYTES));
    }
}

void Answered(uint32_t number)
{
    auto found = g_under_way.find(number);
    if (found != g_under_way.end())
    {
        found->second.Cancel();
        g_under_way.erase(found);
        Fill();
    }
}

void Indicate(uint32_t node, McpsDataIndicationParams params, Ptr<Packet> packet)
{
    // A frame comes again if its ACK was lost: one sender's frames come in order.
    auto from = std::make_pair(node, params.m_srcAddr);
    auto last = g_seen.find(from);
    bool again = last != g_seen.end() && last->second == params.m_dsn;
    g_seen[from] = params.m_dsn;
    if (again)
    {
        return;
    }
    uint8_t body[4];
    packet->CopyData(body, 4);
    uint32_t number = body[0] | body[1] << 8 | body[2] << 16 | body[3] << 24;
    bool data = packet->GetSize() == DATA_BYTES;
    if (data ? node < g_last : node > 0)
    {
        Forward(node, data ? node + 1 : node - 1, Made(number, packet->GetSize()));
        return;
    }
    Time work = NanoSeconds(g_work->GetInteger(0, WORK_NS));
    if (data)
    {
        g_delivered += g_received.insert(number).second && Measured();
        Simulator::Schedule(work, &Forward, node, node - 1, Made(number, ANSWER_BYTES));
    }
    else
    {
        Simulator::Schedule(work, &Answered, number);
    }
}

// Acknowledgments have 5 bytes.
void Sending(Ptr<const Packet> frame)
{
    g_transmissions += Measured() && frame->GetSize() > 5;
}

void Start(uint32_t hops, uint32_t window, double begin, double end, int64_t run)
{
    RngSeedManager::SetRun(run);
    g_window = window, g_next = 0, g_last = hops, g_begin = begin;
    g_delivered = g_transmissions = g_frames = g_given_up = 0;
    g_macs.clear(), g_under_way.clear(), g_received.clear(), g_seen.clear();
    g_work = CreateObject<UniformRandomVariable>();
    g_work->SetStream(99);
    Ptr<SingleModelSpectrumChannel> channel = CreateObject<SingleModelSpectrumChannel>();
    Ptr<MatrixPropagationLossModel> losses = CreateObject<MatrixPropagationLossModel>();
    losses->SetDefaultLoss(300.0);
    channel->AddPropagationLossModel(losses);
    channel->SetAttribute("MaxLossDb", DoubleValue(200.0));
    NodeContainer nodes;
    nodes.Create(hops + 1);
    std::vector<Ptr<MobilityModel>> places;
    for (uint32_t i = 0; i <= hops; i++)
    {
        Ptr<LrWpanNetDevice> device = CreateObject<LrWpanNetDevice>();
        Ptr<ConstantPositionMobilityModel> place = CreateObject<ConstantPositionMobilityModel>();
        nodes.Get(i)->AggregateObject(place);
        device->SetChannel(channel);
        nodes.Get(i)->AddDevice(device);
        device->GetPhy()->SetMobility(place);
        device->SetAddress(AddressOf(i));
        device->GetMac()->SetPanId(1);
        device->GetMac()->SetTxQMaxSize(64);
        device->AssignStreams(1000 + 10 * i);
        device->GetPhy()->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Sending));
        device->GetMac()->SetMcpsDataIndicationCallback(
            Callback<void, McpsDataIndicationParams, Ptr<Packet>>(
                [i](McpsDataIndicationParams params, Ptr<Packet> packet) {
                    Indicate(i, params, packet);
                }));
        g_macs.push_back(device->GetMac());
        if (i > 0)
        {
            losses->SetLoss(places.back(), place, 50.0, true);
        }
        places.push_back(place);
    }
    Simulator::Schedule(MilliSeconds(1), &Fill);
    Simulator::Stop(Seconds(end));
    Simulator::Run();
    Simulator::Destroy();
}
} // namespace corridor_line
"""

AODV = r"""
#include "ns3/aodv-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/wifi-module.h"

namespace corridor_aodv {
using namespace ns3;

uint64_t g_requests, g_replies;
double g_begun_s, g_found_s;

// 1: a request, 2: a reply.
uint8_t KindOf(Ptr<const Packet> packet)
{
    Ptr<Packet> copy = packet->Copy();
    Ipv4Header ip;
    UdpHeader udp;
    if (!copy->RemoveHeader(ip) || ip.GetProtocol() != 17 || !copy->RemoveHeader(udp) ||
        udp.GetDestinationPort() != aodv::RoutingProtocol::AODV_PORT || !copy->GetSize())
    {
        return 0;
    }
    uint8_t kind = 0;
    copy->CopyData(&kind, 1);
    return kind;
}

void Sent(uint32_t node, Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t interface)
{
    uint8_t kind = interface > 0 ? KindOf(packet) : 0;
    g_requests += kind == 1;
    g_replies += kind == 2;
    if (kind == 1 && node == 0 && g_begun_s < 0)
    {
        g_begun_s = Simulator::Now().GetSeconds();
    }
}

void Received(uint32_t node, Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t)
{
    if (node == 0 && g_found_s < 0 && KindOf(packet) == 2)
    {
        g_found_s = Simulator::Now().GetSeconds();
    }
}

void Ask(Ptr<Socket> socket, InetSocketAddress to)
{
    socket->SendTo(Create<Packet>(20), 0, to);
}

// One discovery from the first node to the last, on a line or on a grid.
void Start(uint32_t columns, uint32_t rows, int64_t run)
{
    RngSeedManager::SetRun(run);
    g_requests = g_replies = 0;
    g_begun_s = g_found_s = -1;
    uint32_t count = columns * rows;
    NodeContainer nodes;
    nodes.Create(count);
    MobilityHelper mobility;
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(nodes);
    Ptr<MatrixPropagationLossModel> losses = CreateObject<MatrixPropagationLossModel>();
    losses->SetDefaultLoss(300.0);
    for (uint32_t i = 0; i < count; i++)
    {
        Ptr<MobilityModel> place = nodes.Get(i)->GetObject<MobilityModel>();
        if (i % columns + 1 < columns)
        {
            losses->SetLoss(place, nodes.Get(i + 1)->GetObject<MobilityModel>(), 76.0, true);
        }
        if (i + columns < count)
        {
            losses->SetLoss(place, nodes.Get(i + columns)->GetObject<MobilityModel>(), 76.0, true);
        }
    }
    Ptr<YansWifiChannel> channel = CreateObject<YansWifiChannel>();
    channel->SetPropagationLossModel(losses);
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());
    YansWifiPhyHelper phy;
    phy.SetChannel(channel);
    phy.SetErrorRateModel("ns3::NistErrorRateModel");
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "Threshold",
                                  DoubleValue(-100.0), "MinimumRssi", DoubleValue(-75.0));
    phy.Set("TxPowerStart", DoubleValue(16.0));
    phy.Set("TxPowerEnd", DoubleValue(16.0));
    phy.Set("RxSensitivity", DoubleValue(-85.0));
    phy.Set("CcaEdThreshold", DoubleValue(-85.0));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211a);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode",
                                 StringValue("OfdmRate6Mbps"), "ControlMode",
                                 StringValue("OfdmRate6Mbps"), "NonUnicastMode",
                                 StringValue("OfdmRate6Mbps"));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    NetDeviceContainer devices = wifi.Install(phy, mac, nodes);
    AodvHelper aodv;
    aodv.Set("EnableHello", BooleanValue(false));
    aodv.Set("DestinationOnly", BooleanValue(true));
    aodv.Set("GratuitousReply", BooleanValue(false));
    // No expanding ring.
    aodv.Set("TtlStart", UintegerValue(35));
    InternetStackHelper stack;
    stack.SetRoutingHelper(aodv);
    stack.Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    NeighborCacheHelper neighbours;
    neighbours.PopulateNeighborCache();
    WifiHelper::AssignStreams(devices, 100);
    aodv.AssignStreams(nodes, 5000);
    for (uint32_t i = 0; i < count; i++)
    {
        Ptr<Ipv4L3Protocol> ip = nodes.Get(i)->GetObject<Ipv4L3Protocol>();
        ip->TraceConnectWithoutContext(
            "Tx", Callback<void, Ptr<const Packet>, Ptr<Ipv4>, uint32_t>(
                      [i](Ptr<const Packet> packet, Ptr<Ipv4> ipv4, uint32_t interface) {
                          Sent(i, packet, ipv4, interface);
                      }));
        ip->TraceConnectWithoutContext(
            "Rx", Callback<void, Ptr<const Packet>, Ptr<Ipv4>, uint32_t>(
                      [i](Ptr<const Packet> packet, Ptr<Ipv4> ipv4, uint32_t interface) {
                          Received(i, packet, ipv4, interface);
                      }));
    }
    Ptr<Socket> socket = Socket::CreateSocket(nodes.Get(0), UdpSocketFactory::GetTypeId());
    InetSocketAddress to(interfaces.GetAddress(count - 1), 9);
    // All of a discovery is over before a second request would go.
    Simulator::Schedule(MilliSeconds(100), &Ask, socket, to);
    Simulator::Stop(Seconds(1.0));
    Simulator::Run();
    Simulator::Destroy();
}
} // namespace corridor_aodv
"""


def line(hops, window, simulated_s):
    """Goodput and attempts of packets that are answered, with this many in flight."""
    cell = cppyy.gbl.corridor_line
    cell.Start(hops, window, WARM_UP_S, WARM_UP_S + simulated_s, 1)
    return {
        "goodput_bps": 8.0 * 94 * cell.g_delivered / simulated_s,
        "attempts_per_packet": cell.g_transmissions / max(cell.g_delivered, 1),
        "given_up_ratio": cell.g_given_up / max(cell.g_delivered + cell.g_given_up, 1),
        "simulated_s": simulated_s,
    }


def discoveries(columns, rows, count):
    """Requests and replies of each discovery, and the duration of those that found a route."""
    cell = cppyy.gbl.corridor_aodv
    requests, replies, delays = [], [], []
    for run in range(1, count + 1):
        cell.Start(columns, rows, run)
        requests.append(cell.g_requests)
        replies.append(cell.g_replies)
        if cell.g_found_s > 0:
            delays.append(cell.g_found_s - cell.g_begun_s)
    mean = lambda values: sum(values) / max(len(values), 1)  # noqa: E731
    deviation = (sum((d - mean(delays)) ** 2 for d in delays) / max(len(delays) - 1, 1)) ** 0.5
    return {
        "requests": mean(requests),
        "replies": mean(replies),
        "found_ratio": len(delays) / count,
        "delay_s": mean(delays),
        "delay_error_s": deviation / max(len(delays), 1) ** 0.5,
        "discoveries": count,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a quarter of the simulated time")
    parser.add_argument("--only", choices=("line", "aodv"), help="one of the two")
    arguments = parser.parse_args()
    simulated_s = QUICK_LINE_S if arguments.quick else LINE_S
    count = QUICK_DISCOVERIES if arguments.quick else DISCOVERIES
    version = metadata.version("ns3")
    answer = {"version": version, "script": "tools/ns3_constrained.py", "lines": {}, "aodv": {}}
    if arguments.only in (None, "line"):
        cppyy.cppdef(LINE)
        for window in WINDOWS:
            for hops in HOPS:
                answer["lines"][f"{hops} hops, window {window}"] = line(hops, window, simulated_s)
    if arguments.only in (None, "aodv"):
        cppyy.cppdef(AODV)
        for hops in HOPS:
            answer["aodv"][f"line-{hops}"] = discoveries(hops + 1, 1, count)
        answer["aodv"][f"grid-{SIDE}"] = discoveries(SIDE, SIDE, count)
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
