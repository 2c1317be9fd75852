//! Invalid configurations are refused with an error that names field, value and expectation.

use corridor_air::{AirError, MAX_QUEUE_FRAMES, MAX_SPAN, MAX_STATIONS};

use super::*;

/// Checks the error for an invalid configuration.
fn refused(change: impl FnOnce(&mut MediumConfig), message: &str) {
    let mut config = config(Duplex::Half, 3);
    config.links = vec![link(0, 1, 0.1), link(1, 0, 0.1)];
    <Medium>::new(config.clone()).expect("valid before the change");
    change(&mut config);
    let error: AirError = <Medium>::new(config).expect_err("invalid after the change");
    assert_eq!(error.to_string(), message);
}

#[test]
fn stations() {
    refused(|c| c.stations = 0, "stations is 0, expected 1 to 1024");
    refused(|c| c.stations = MAX_STATIONS + 1, "stations is 1025, expected 1 to 1024");
}

#[test]
fn rate() {
    refused(|c| c.rate_bps = 0, "rate_bps is 0, expected 1 or more");
}

#[test]
fn queue_frames() {
    refused(|c| c.queue_frames = 0, "queue_frames is 0, expected 1 to 65536");
    refused(
        |c| c.queue_frames = MAX_QUEUE_FRAMES + 1,
        "queue_frames is 65537, expected 1 to 65536",
    );
}

#[test]
fn spans() {
    let long = MAX_SPAN + Duration::from_nanos(1);
    refused(|c| c.overhead = long, "overhead is 60.000000001s, expected at most 60s");
    refused(|c| c.propagation = long, "propagation is 60.000000001s, expected at most 60s");
}

#[test]
fn link_ends() {
    refused(|c| c.links[1].from = 3, "links[1].from is 3, expected a station below 3");
    refused(|c| c.links[0].to = 3, "links[0].to is 3, expected a station below 3");
    refused(|c| c.links[0].to = 0, "links[0].to is 0, expected a station other than its from");
}

#[test]
fn erasure_ratio() {
    for (ratio, shown) in [(-0.1, "-0.1"), (1.1, "1.1"), (f64::NAN, "NaN"), (1.0 / 0.0, "inf")] {
        let message = format!("links[1].erasure_ratio is {shown}, expected 0 to 1 (1 to 0)");
        refused(|c| c.links[1].erasure = ratio.into(), &message);
    }
}

#[test]
fn duplicate_links() {
    refused(
        |c| c.links.push(link(0, 1, 0.2)),
        "links has 0 to 1 more than once, expected each pair at most once",
    );
}

#[test]
fn bounds_themselves_are_valid() {
    let mut config = config(Duplex::Full, MAX_STATIONS);
    config.rate_bps = 1;
    config.queue_frames = MAX_QUEUE_FRAMES;
    (config.overhead, config.propagation) = (MAX_SPAN, MAX_SPAN);
    config.links = vec![link(0, MAX_STATIONS - 1, 0.0), link(MAX_STATIONS - 1, 0, 1.0)];
    assert_eq!(medium(config).stations(), MAX_STATIONS);
}
