//! The emulated radio under kernel sockets. These tests need the right to create network
//! namespaces; without it they are skipped, unless `CORRIDOR_REQUIRE_NET=1` says that they must
//! run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{alone, can_run, measure, scenario, try_run};
use corridor_lab::{LabError, Options};
use corridor_scenario::{Row, Scenario, expand};

/// Set in a copy of this program that is going to be killed.
const VICTIM_VARIABLE: &str = "CORRIDOR_LAB_TEST_VICTIM";

fn kernel_row(medium: &str, run: &str) -> Row {
    let run = format!("path = 'kernel'\n{run}");
    try_run(&scenario(medium, &run), Path::new("unused")).expect("the kernel path runs")
}

#[test]
fn tcp_fills_a_lossless_radio() {
    measure("tcp_fills_a_lossless_radio", || {
        let row = kernel_row("", "transport = 'tcp'\ne3 = 0\nduration_s = 3");
        // 1448 bytes of payload in a frame of 1514 bytes.
        let most = 12e6 * 1448.0 / 1514.0;
        assert!(row.goodput_bps >= 0.95 * most, "{row:?}");
        assert!(row.goodput_bps <= 1.005 * most, "{row:?}");
        // Half the round trip, at most 50 frames of 1.009 ms ahead of the one that is measured, and
        // a few in the sender; on a machine with other work, threads are sometimes late.
        let longest = row.delays.delay_p95_s.expect("records came");
        assert!(row.delays.delay_p50_s.expect("records came") > 0.002, "{row:?}");
        assert!(longest < 0.002 + 51.0 * 0.00101 + 0.020, "{row:?}");
        assert_eq!(row.sides.len(), 1);
    });
}

#[test]
fn the_radio_loses_what_it_is_told_to() {
    measure("the_radio_loses_what_it_is_told_to", || {
        let row = kernel_row(
            "",
            "transport = 'udp'\noffered_bps = 8e6\ndatagram_bytes = 400\ne3 = 0.1\nduration_s = 4\n\
         direction = 'both'",
        );
        let (sent, received) = (row.packets_sent.unwrap(), row.packets_received.unwrap());
        assert!(sent > 19_000, "{row:?}");
        // 20,000 draws at 10 %: a standard deviation of .21 percentage points.
        let lost = 1.0 - received as f64 / sent as f64;
        assert!((lost - 0.1).abs() < 0.01, "lost {lost}: {row:?}");
        assert_eq!((row.packets_out_of_order, row.packets_duplicated), (Some(0), Some(0)));
        // A sender that the machine delayed sends a burst.
        assert!(row.ingress_drops.unwrap() < 100, "{row:?}");
        assert!((row.air_frames_per_packet.unwrap() - 1.0 / (1.0 - lost)).abs() < 0.01, "{row:?}");
        // Half the round trip and one frame of 442 bytes; the rest is the machine's.
        let median = row.delays.delay_p50_s.unwrap();
        assert!((0.0022..0.0052).contains(&median), "{row:?}");
        for side in &row.sides {
            let lost =
                1.0 - side.packets_received.unwrap() as f64 / side.packets_sent.unwrap() as f64;
            assert!((lost - 0.1).abs() < 0.015, "{side:?}");
        }
    });
}

#[test]
fn a_full_interface_pushes_back_at_its_length() {
    measure("a_full_interface_pushes_back_at_its_length", || {
        for queue_frames in [10, 40, 80] {
            let medium = format!("rate_bps = 12_000_000\nqueue_frames = {queue_frames}");
            let text = format!(
                "name = 'test'\nseed = 7\n[medium]\nduplex = 'full'\nrtt_ms = 0\n{medium}\n[[run]]\n\
             path = 'kernel'\ntransport = 'udp'\noffered_bps = 24e6\ne3 = 0\nduration_s = 1"
            );
            let row = try_run(&Scenario::parse(&text).unwrap(), Path::new("unused")).unwrap();
            // A datagram in the last place waits for all before it and for its own airtime.
            let expected = f64::from(queue_frames) * 1514.0 * 8.0 / 12e6;
            let usual = row.delays.delay_p50_s.unwrap();
            assert!((usual - expected).abs() < 0.002, "{queue_frames} frames: {row:?}");
            assert!(row.ingress_drops.unwrap() > 500, "{row:?}");
            assert!((row.air_utilisation.unwrap() - 1.0).abs() < 0.01, "{row:?}");
        }
    });
}

#[test]
fn mac_retransmission_hides_losses() {
    measure("mac_retransmission_hides_losses", || {
        let row = kernel_row(
            "retry_limit = 20",
            "transport = 'udp'\noffered_bps = 2e6\ne3 = 0.3\nduration_s = 2",
        );
        assert_eq!(row.packets_sent, row.packets_received, "{row:?}");
    });
}

#[test]
fn a_path_without_a_connection_is_a_result_in_bounded_time() {
    if !can_run() {
        return;
    }
    let _alone = alone();
    let begin = Instant::now();
    let row = kernel_row("", "transport = 'tcp'\ne3 = 1\nduration_s = 1");
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    assert_eq!(row.goodput_bps, 0.0);
    assert_eq!(row.delays.delay_p50_s, None);
    assert!(row.notes.iter().any(|note| note.contains("no TCP connection")), "{row:?}");
}

#[test]
fn two_labs_side_by_side_do_not_meet() {
    if !can_run() {
        return;
    }
    let _alone = alone();
    let both: Vec<_> = (0..2)
        .map(|_| {
            thread::spawn(|| {
                kernel_row("", "transport = 'udp'\noffered_bps = 2e6\ne3 = 0\nduration_s = 2")
            })
        })
        .collect();
    for lab in both {
        let row = lab.join().expect("the lab ends");
        assert_eq!(row.packets_sent, row.packets_received, "{row:?}");
        assert_eq!(row.packets_duplicated, Some(0));
        // The other lab's datagrams would take airtime, and be received twice.
        assert!((row.air_frames_per_packet.unwrap() - 1.0).abs() < 0.01, "{row:?}");
    }
}

#[test]
fn an_asked_stop_comes_soon() {
    if !can_run() {
        return;
    }
    let _alone = alone();
    let scenario = scenario("", "path = 'kernel'\ntransport = 'tcp'\ne3 = 0\nduration_s = 60");
    let run = expand(&scenario).unwrap().remove(0);
    let options = Options { binary: "unused".into() };
    let stop = AtomicBool::new(false);
    let begin = Instant::now();
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        corridor_lab::run(&scenario, &run, &options, &stop)
    });
    assert!(matches!(result, Err(LabError::Interrupted)), "{result:?}");
    // Of the 60 s that it would take.
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

#[test]
fn a_datagram_that_does_not_fit_is_refused() {
    if !can_run() {
        return;
    }
    let run = "path = 'kernel'\ntransport = 'udp'\noffered_bps = 1e6\ndatagram_bytes = 1473\n\
               e3 = 0\nduration_s = 1";
    let error = try_run(&scenario("", run), Path::new("unused")).unwrap_err();
    assert!(matches!(error, LabError::DatagramTooLong { given: 1473, max: 1472 }), "{error}");
}

const NODE_RUN: &str =
    "path = 'plain'\ntransport = 'udp'\noffered_bps = 1e6\ne3 = 0\nduration_s = 1";

/// A stand-in for a node: a shell script.
fn script(directory: &Path, text: &str) -> std::path::PathBuf {
    let path = directory.join("node");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_node_that_fails_is_shown_with_what_it_said() {
    if !can_run() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let node = script(directory.path(), "echo 'no such frobnicator' >&2; exit 3");
    let error = try_run(&scenario("", NODE_RUN), &node).unwrap_err();
    let LabError::NodeEnded { stderr, status, .. } = &error else { panic!("{error}") };
    assert!(stderr.contains("no such frobnicator") && status.contains('3'), "{error}");

    let error = try_run(&scenario("", NODE_RUN), Path::new("/nonexistent/corridor")).unwrap_err();
    assert!(matches!(error, LabError::Spawn { .. }), "{error}");
}

/// Not a test: the next one starts and kills it.
#[test]
fn victim() {
    let Some(directory) = std::env::var_os(VICTIM_VARIABLE) else { return };
    let node = Path::new(&directory).join("node");
    let _ = try_run(&scenario("", NODE_RUN), &node);
}

#[test]
fn a_killed_lab_leaves_no_process_behind() {
    if !can_run() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let pids = directory.path().join("pids");
    script(directory.path(), &format!("echo $$ >> '{}'; exec sleep 1000", pids.display()));
    let mut lab = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "radio::victim"])
        .env(VICTIM_VARIABLE, directory.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let nodes = loop {
        let text = fs::read_to_string(&pids).unwrap_or_default();
        let nodes: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        if nodes.len() == 2 {
            break nodes;
        }
        assert!(Instant::now() < deadline, "the lab did not start its nodes");
        thread::sleep(Duration::from_millis(10));
    };
    let is_alive = |pid: &u32| {
        // A zombie that has not been reaped yet is not alive.
        fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim().starts_with('Z'))
    };
    assert!(nodes.iter().all(is_alive));
    lab.kill().unwrap();
    lab.wait().unwrap();
    while nodes.iter().any(is_alive) {
        assert!(Instant::now() < deadline, "nodes outlive the lab");
        thread::sleep(Duration::from_millis(10));
    }
}
