//! Networks of radios with 802.11's MAC: the kernels' own traffic between namespaces. Like those in
//! `radio.rs`, these tests need the right to create network namespaces.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use corridor_air::Address;
use corridor_air::radio::{RadioMedium, RadioMediumConfig};
use corridor_base::Time;
use corridor_lab::{LabError, NetworkRun, Options, check_network, run_network};
use corridor_scenario::{Air, Load, Network, Plan};

use crate::support::{measure, note};

const FLOW: &str = "[[flow]]\nfrom = 0\nto = 1\npayload_bytes = 1472\n\
                    source = { kind = 'cbr', rate_bps = '20M' }\n";

fn network(nodes: usize, radio: &str) -> Network {
    let text = format!(
        "name = 'cell'\nseed = 7\nduration_s = 4\nwarm_up_s = 1\n[network]\n\
         kind = 'line'\nnodes = {nodes}\nspacing_m = 20\n[network.radio]\n{radio}\n"
    );
    let plan = Plan::parse(&text, &PathBuf::new()).expect("a test's plan is sound");
    match plan.points.into_iter().next().map(|point| point.load) {
        Some(Load::Network(network)) => Network::clone(&network),
        other => panic!("{other:?}"),
    }
}

fn dcf(nodes: usize, flows: &str) -> Network {
    let text = "mac = 'dcf'\nstandard = 'g'\nrate_bps = '12M'\npower_dbm = 0\nsense_dbm = -92";
    network(nodes, &format!("{text}\n{flows}"))
}

fn run(network: &Network) -> Result<NetworkRun, LabError> {
    let options = Options { binary: "unused".into() };
    let run = run_network(network, (7, 0), &options, &AtomicBool::new(false))?;
    note(run.valid, &run.notes);
    Ok(run)
}

fn number(run: &NetworkRun, name: &str) -> f64 {
    run.measures.value(name).number().unwrap_or_else(|| panic!("{name}: {run:?}"))
}

/// Payload rate, bits per second, of a station that always has a frame to send, in virtual time.
fn saturated(config: &RadioMediumConfig, packet_bytes: u32, payload_bytes: f64) -> f64 {
    let mut medium = RadioMedium::<()>::new(config).expect("a test's radio is sound");
    let mut now = Time::ZERO;
    while now < Time::from_millis(20_000) {
        while medium.has_room(0) {
            medium.offer(now, 0, Address::Station(1), packet_bytes, ()).expect("there is room");
        }
        now = medium.poll_timeout().expect("there are frames");
        medium.handle_timeout(now);
        while medium.poll_event().is_some() {}
    }
    medium.stats(1).received as f64 * payload_bytes * 8.0 / now.as_secs_f64()
}

#[test]
fn one_hop_carries_what_the_same_radios_carry_in_virtual_time() {
    measure("one_hop_carries_what_the_same_radios_carry_in_virtual_time", || {
        let network = dcf(2, FLOW);
        let Some(Air::Mac(config)) = network.air() else { panic!("{network:?}") };
        let most = saturated(config, 1500, 1472.0);
        let run = run(&network).expect("the lab runs");
        let goodput = number(&run, "goodput_bps");
        assert!((0.97..=1.01).contains(&(goodput / most)), "{goodput} of {most}: {run:?}");
        // What exceeds the channel's capacity finds the MAC's queue full.
        assert!(number(&run, "packets_dropped") > 1_000.0, "{run:?}");
        assert_eq!(number(&run, "frames_given_up"), 0.0);
    });
}

#[test]
fn kernels_forward_from_radio_to_radio() {
    measure("kernels_forward_from_radio_to_radio", || {
        let flows = "[[flow]]\nfrom = 0\nto = 3\nsource = { kind = 'ftp' }\n\
                     [[flow]]\nfrom = 3\nto = 0\npayload_bytes = 400\n\
                     source = { kind = 'cbr', rate_bps = '200k' }\n";
        let run = run(&dcf(4, flows)).expect("the lab runs");
        assert!(number(&run, "flow.0.goodput_bps") > 1e6, "{run:?}");
        assert!(number(&run, "flow.1.packets_received") > 100.0, "{run:?}");
        // Three transmissions for each of its packets.
        let packets = number(&run, "flow.0.goodput_bps") * 3.0 / 8.0 / 1448.0;
        assert!(number(&run, "frames_sent") > 2.9 * packets, "{run:?}");
    });
}

#[test]
fn short_packets_cross_radios_of_802_15_4() {
    measure("short_packets_cross_radios_of_802_15_4", || {
        let flow = "mac = '802.15.4'\n[[flow]]\nfrom = 0\nto = 2\npayload_bytes = 60\n\
                    source = { kind = 'cbr', rate_bps = '5k' }\n";
        let run = run(&network(3, flow)).expect("the lab runs");
        let received = number(&run, "flow.0.packets_received");
        assert!(received > 0.9 * number(&run, "flow.0.packets_sent"), "{run:?}");
    });
}

#[test]
fn what_the_lab_does_not_do_is_said_with_its_place() {
    let said = |network: &Network| check_network(network).unwrap_err().to_string();
    assert_eq!(said(&dcf(9, FLOW)), "network.nodes = 9: expected 2 to 8 in the lab");
    let fixed = FLOW.replace("'cbr', rate_bps = '20M'", "'fixed', packets = 3");
    let fixed = fixed.replace("payload_bytes = 1472\n", "");
    assert!(said(&dcf(2, &fixed)).starts_with("flow[0].source.kind = fixed: expected ftp"));
    let late = format!("{FLOW}start_s = 1\n");
    assert_eq!(said(&dcf(2, &late)), "flow[0].start_s = 1: expected 0 in the lab");
    let ns2 = "[[flow]]\nfrom = 0\nto = 1\nsource = { kind = 'ftp' }\ntcp = { preset = 'ns2' }\n";
    assert!(said(&dcf(2, ns2)).starts_with("flow[0].tcp = another table: expected nothing but"));
    let ideal = "mac = 'ideal'\nrate_bps = '1M'\nreach_m = 30\n";
    let ideal = network(2, &format!("{ideal}{FLOW}"));
    assert!(said(&ideal).starts_with("network.radio.mac = ideal: expected dcf or 802.15.4"));
    assert!(check_network(&dcf(8, FLOW)).is_ok());
}

#[test]
fn loads_that_cannot_be_are_refused_before_anything_is_made() {
    let said = |network: &Network| check_network(network).unwrap_err().to_string();
    let of = |payload_bytes: u32, rate: &str| {
        let flow = FLOW.replace("1472", &payload_bytes.to_string());
        dcf(2, &flow.replace("'20M'", rate))
    };
    // A datagram contains its number and the time of sending.
    let expected = "flow[0].payload_bytes = 15: expected 16 to 1472 bytes, of packets of 1500";
    assert!(said(&of(15, "'20M'")).starts_with(expected), "{}", said(&of(15, "'20M'")));
    let expected = "flow[0].payload_bytes = 1473: expected 16 to 1472 bytes";
    assert!(said(&of(1473, "'20M'")).starts_with(expected));
    for fine in [of(16, "'20M'"), of(1472, "'1G'")] {
        assert!(check_network(&fine).is_ok(), "{:?}", check_network(&fine));
    }

    let expected = "flow[0].source.rate_bps = 1000000000000: expected at most 1000000000 bit/s";
    assert!(said(&of(1472, "1e12")).starts_with(expected), "{}", said(&of(1472, "1e12")));
    let mut long = of(16, "'10M'");
    long.duration = Duration::from_secs(3_600);
    // 100 million datagrams of 128 bits in an hour.
    let expected = "flow[0].source.rate_bps = 10000000: expected at most 3555555 bit/s";
    assert!(said(&long).starts_with(expected), "{}", said(&long));
    long.duration = Duration::from_secs(3_601);
    assert!(said(&long).starts_with("duration_s = 3601: expected at most 3600 s"));

    // TCP flows determine the length of all packets.
    let tcp = "[[flow]]\nfrom = 0\nto = 1\npayload_bytes = 400\nsource = { kind = 'ftp' }\n";
    let beside = format!("{tcp}{}", FLOW.replace("payload_bytes = 1472\n", ""));
    let expected = "flow[1].payload_bytes = 1000: expected 16 to 424 bytes, of packets of 452";
    assert!(said(&dcf(2, &beside)).starts_with(expected), "{}", said(&dcf(2, &beside)));
    let fast = tcp.replace("'ftp'", "'rate', rate_bps = 2e9");
    assert!(said(&dcf(2, &fast)).starts_with("flow[0].source.rate_bps = 2000000000: expected"));
}

#[test]
fn a_flow_without_a_route_is_refused() {
    // At a nanowatt, no station hears another.
    let far = "mac = 'dcf'\nrate_bps = '54M'\npower_dbm = -60\n";
    let network = network(2, &format!("{far}{FLOW}"));
    let error = run(&network).unwrap_err().to_string();
    assert!(error.contains("flow[0].to = 1: expected a node that there is a route to"), "{error}");
}
