//! What the lab offers beside and around a load: external tunnels, an echo, a second flow, ECN,
//! bursts of losses, deadlines, a wire without a radio. Like those in `radio.rs`, these tests need
//! the right to create network namespaces.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{alone, can_run, measure, scenario, try_run};
use corridor_lab::{LabError, Tunnel, run_tunnel};
use corridor_scenario::{Row, expand};

/// Set in a copy of this program that is going to be killed: how long its tunnel sleeps.
const VICTIM_VARIABLE: &str = "CORRIDOR_LAB_TEST_TUNNEL";

const UDP: &str = "path = 'kernel'\ntransport = 'udp'\noffered_bps = 1e6\ne3 = 0\nduration_s = 1";

/// A fake tunnel: the radio itself, with the tunnel's address.
const ROUTE: &str = "route=ip addr add {address}/24 dev {interface}";

fn row(medium: &str, run: &str) -> Row {
    try_run(&scenario(medium, run), Path::new("unused")).expect("the kernel path runs")
}

fn through(tunnel: &str, run: &str) -> Result<Row, LabError> {
    let scenario = scenario("", run);
    let run = expand(&scenario).expect("a test's scenario is sound").remove(0);
    let tunnel = Tunnel::parse(tunnel).expect("a test's tunnel is sound");
    run_tunnel(&scenario, &run, &tunnel, &AtomicBool::new(false))
}

fn has_ip() -> bool {
    let found = Command::new("ip").arg("-V").stdout(Stdio::null()).status().is_ok();
    if !found {
        println!("absent: ip (of iproute2), which the test's tunnel is made with");
    }
    found
}

#[test]
fn an_external_tunnel_carries_the_load() {
    if !can_run() || !has_ip() {
        return;
    }
    let _alone = alone();
    // In the background, so that the command ends before the tunnel does.
    let row = through(&format!("{ROUTE}; sleep 1000 &"), UDP).unwrap();
    assert_eq!(row.tunnel.as_deref(), Some("route"));
    assert!(row.packets_sent.unwrap() > 0, "{row:?}");
    assert_eq!(row.packets_sent, row.packets_received, "{row:?}");
}

#[test]
fn an_external_tunnel_that_fails_is_shown_with_what_it_said() {
    if !can_run() {
        return;
    }
    let _alone = alone();
    let error =
        through("broken=printf '\\033[31mno such {side}frobnicator'; exit 3", UDP).unwrap_err();
    let LabError::NodeEnded { stderr, status, .. } = &error else { panic!("{error}") };
    assert!(stderr.starts_with("no such") && status.contains('3'), "{error}");

    let proxy = through("proxy=run {proxy}", UDP).unwrap_err();
    assert!(matches!(proxy, LabError::Tunnel { load: "UDP", .. }), "{proxy}");
}

/// Like two machines, the sides have a `/run` each; they share a directory and a secret for what
/// they have to know of each other in advance.
#[test]
fn both_sides_of_a_tunnel_share_a_directory_and_a_secret_and_no_run() {
    if !can_run() || !has_ip() {
        return;
    }
    let _alone = alone();
    let own = format!("/run/corridor-lab-test-{}", std::process::id());
    let meet = "printf {key} > {dir}/{side}; until [ -s {dir}/{other} ]; do sleep .05; done; \
                cmp {dir}/{side} {dir}/{other} && [ $(wc -c < {dir}/{side}) = 64 ]";
    // The command's own address would be refused a second time.
    let up = "ip addr add {address}/24 dev {interface} && ip route show {subnet}/24 | grep -q link";
    let tunnel = format!("meet=mkdir {own} && {meet} && {up}");
    let row = through(&tunnel, UDP).unwrap();
    assert!(row.packets_received.unwrap() > 0, "{row:?}");
    assert!(!Path::new(&own).exists(), "the lab's own /run is not a tunnel's");
}

/// Whether a process sleeps for this long.
fn is_asleep(seconds: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut commands =
        processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let wanted = format!("sleep\0{seconds}\0");
    commands.any(|command| command == wanted.as_bytes())
}

fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A tunnel that never comes up, and has started a background process in a session of its own.
fn sleeper(seconds: &str) -> String {
    format!("sleeper=setsid sleep {seconds} & sleep {seconds}")
}

#[test]
fn an_external_tunnel_ends_with_all_that_it_started() {
    if !can_run() {
        return;
    }
    let _alone = alone();
    let seconds = format!("4{:06}.5", std::process::id());
    let scenario = scenario("", UDP);
    let run = expand(&scenario).unwrap().remove(0);
    let tunnel = Tunnel::parse(&sleeper(&seconds)).unwrap();
    let stop = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            wait_for("the tunnel did not start", || is_asleep(&seconds));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        run_tunnel(&scenario, &run, &tunnel, &stop)
    });
    assert!(matches!(result, Err(LabError::Interrupted)), "{result:?}");
    assert!(!is_asleep(&seconds), "it outlives its run");
}

/// Not a test: the next one starts and kills it.
#[test]
fn victim() {
    let Ok(seconds) = std::env::var(VICTIM_VARIABLE) else { return };
    let _ = through(&sleeper(&seconds), UDP);
}

#[test]
fn a_killed_lab_leaves_nothing_of_a_tunnel_behind() {
    if !can_run() {
        return;
    }
    let _alone = alone();
    let seconds = format!("5{:06}.5", std::process::id());
    let mut lab = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "beside::victim"])
        .env(VICTIM_VARIABLE, &seconds)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the lab did not start its tunnel", || is_asleep(&seconds));
    lab.kill().unwrap();
    lab.wait().unwrap();
    wait_for("the tunnel outlives the lab", || !is_asleep(&seconds));
}

#[test]
fn an_echo_waits_for_the_queue_that_the_load_fills() {
    measure("an_echo_waits_for_the_queue_that_the_load_fills", || {
        let row = row(
            "",
            "path = 'kernel'\ntransport = 'tcp'\ne3 = 0\nduration_s = 3\nping_interval_ms = 20",
        );
        let pings = row.pings.clone().expect("there is an echo");
        let (base, loaded) = (pings.base_p50_s.unwrap(), pings.p95_s.unwrap());
        assert!((0.004..0.010).contains(&base), "{pings:?}");
        // Cubic fills a queue of 50 frames of 1.009 ms.
        assert!(loaded > base + 0.020 && loaded < base + 0.080, "{pings:?}");
        assert!(pings.sent > 100 && pings.received + 10 > pings.sent, "{pings:?}");
    });
}

#[test]
fn two_flows_share_the_interface() {
    measure("two_flows_share_the_interface", || {
        let row =
            row("", "path = 'kernel'\ntransport = 'tcp'\ne3 = 0\nduration_s = 4\nbeside = 'cubic'");
        let beside_bps = row.beside.as_ref().expect("there is a second flow").goodput_bps;
        let most = 12e6 * 1448.0 / 1514.0;
        assert!(beside_bps > 0.05 * most && row.goodput_bps > 0.05 * most, "{row:?}");
        let sum = beside_bps + row.goodput_bps;
        assert!(sum > 0.9 * most && sum < 1.01 * most, "{sum}: {row:?}");
    });
}

#[test]
fn bursts_lose_their_share_and_a_deadline_tells_what_came_too_late() {
    measure("bursts_lose_their_share_and_a_deadline_tells_what_came_too_late", || {
        let run = "path = 'kernel'\ntransport = 'udp'\noffered_bps = 8e6\ndatagram_bytes = 400\n\
                   e3 = 0.1\nduration_s = 4\nburst_frames = 5\ndeadline_ms = 50";
        let row = row("", run);
        let (sent, received) = (row.packets_sent.unwrap(), row.packets_received.unwrap());
        let lost = 1.0 - received as f64 / sent as f64;
        // 10,000 draws in bursts of 5: a standard deviation of .9 percentage points.
        assert!((lost - 0.1).abs() < 0.04, "lost {lost}: {row:?}");
        assert!((row.missed_ratio().unwrap() - lost).abs() < 0.01, "{row:?}");
        let late =
            try_run(&scenario("", &run.replace("= 50", "= 1")), Path::new("unused")).unwrap();
        // Propagation alone takes 2 ms.
        assert_eq!(late.packets_in_time, Some(0));
    });
}

#[test]
fn ecn_and_a_wire_without_a_radio_carry_tcp() {
    if !can_run() {
        return;
    }
    let _alone = alone();
    let run = "path = 'kernel'\ntransport = 'tcp'\ne3 = 0\nduration_s = 1\necn = true";
    let radio = row("", run);
    assert!(radio.ecn && radio.goodput_bps > 1e6, "{radio:?}");
    let wire = row("", &format!("{run}\nwire = 'veth'"));
    assert!(wire.goodput_bps > 20e6, "more than the radio could: {wire:?}");
    assert_eq!((wire.lateness_p99_s, wire.air_bytes_per_byte), (None, None));
}
