//! Networks of point-to-point links: several hosts behind one bottleneck, between namespaces. Like
//! those in `radio.rs`, these tests need the right to create network namespaces.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use corridor_lab::{NetworkRun, Options, check_network, run_network};
use corridor_scenario::{Load, Network, Plan};

use crate::support::{measure, note};

fn network(flows: &str) -> Network {
    let text = format!(
        "name = 'wires'\nseed = 7\nduration_s = 4\nwarm_up_s = 1\n[network]\nkind = 'dumbbell'\n\
         pairs = 3\naccess = {{ rate_bps = '100M', delay_ms = 1, queue_packets = 1000 }}\n\
         bottleneck = {{ rate_bps = '6M', delay_ms = 10, queue_packets = 40 }}\n{flows}"
    );
    let plan = Plan::parse(&text, &PathBuf::new()).expect("a test's plan is sound");
    match plan.points.into_iter().next().map(|point| point.load) {
        Some(Load::Network(network)) => Network::clone(&network),
        other => panic!("{other:?}"),
    }
}

fn datagrams(from: usize, to: usize, rate: &str) -> String {
    format!(
        "[[flow]]\nfrom = {from}\nto = {to}\npayload_bytes = 1172\n\
         source = {{ kind = 'cbr', rate_bps = '{rate}' }}\n"
    )
}

fn number(run: &NetworkRun, name: &str) -> f64 {
    run.measures.value(name).number().unwrap_or_else(|| panic!("{name}: {run:?}"))
}

#[test]
fn flows_of_several_hosts_share_one_bottleneck() {
    measure("flows_of_several_hosts_share_one_bottleneck", || {
        let tcp = "[[flow]]\nfrom = 1\nto = 4\nsource = { kind = 'ftp' }\n";
        let text = format!("{}{tcp}{}", datagrams(0, 3, "2M"), datagrams(5, 2, "1M"));
        let options = Options { binary: "unused".into() };
        let run = run_network(&network(&text), (7, 0), &options, &AtomicBool::new(false));
        let run = run.expect("the lab runs");
        note(run.valid, &run.notes);
        // Headers take 2.3 % of the datagrams and 3.5 % of the segments: together, the two forward
        // flows fill the bottleneck.
        let used = number(&run, "flow.0.goodput_bps") * 1_200.0 / 1_172.0
            + number(&run, "flow.1.goodput_bps") * 1_500.0 / 1_448.0;
        assert!((0.9..=1.01).contains(&(used / 6e6)), "{used}: {run:?}");
        // TCP fills the queue of 40 packets, 80 ms, also ahead of the datagrams, and some are lost.
        assert!(number(&run, "flow.0.delay_p95_s") > 0.04, "{run:?}");
        assert!(number(&run, "packets_dropped") > 0.0, "{run:?}");
        // The flow in the other direction has the link for itself, except for acknowledgments.
        assert!(number(&run, "flow.2.packet_loss_ratio") < 0.01, "{run:?}");
        assert!(number(&run, "flow.2.delay_p50_s") < 0.02, "{run:?}");
        // Each packet that came has crossed three links.
        let came =
            number(&run, "flow.0.packets_received") + number(&run, "flow.2.packets_received");
        assert!(number(&run, "packet_hops") > 3.0 * came, "{run:?}");
    });
}

#[test]
fn what_the_lab_does_not_do_with_links_is_said_with_its_place() {
    let said = |flows: &str| check_network(&network(flows)).unwrap_err().to_string();
    let flow = datagrams(0, 3, "1M");
    assert!(check_network(&network(&flow)).is_ok());
    let nc =
        "[[flow]]\nfrom = 0\nto = 3\nsource = { kind = 'ftp' }\ntcp_nc = { redundancy = 1.2 }\n";
    assert!(said(nc).starts_with("flow[0].tcp_nc = a table: expected nothing in the lab"));
    let tunnel = "[[network.tunnel]]\nbetween = [6, 7]\n";
    let expected = "network.tunnel = a table: expected nothing: the lab's links carry the kernels'";
    assert!(said(&format!("{tunnel}{flow}")).starts_with(expected));
}
