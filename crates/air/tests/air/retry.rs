//! Retransmissions by the link layer.

use super::*;

fn pair(erasure_ratio: f64, retry_limit: u32) -> MediumConfig {
    let links = vec![
        Link { from: 0, to: 1, erasure: erasure_ratio.into(), retry_limit },
        // An overhearing link with a retry limit of its own, which must not matter.
        Link { from: 0, to: 2, erasure: 0.0.into(), retry_limit: 100 },
    ];
    MediumConfig { links, ..config(Duplex::Half, 3) }
}

#[test]
fn the_limit_is_exact_and_every_transmission_is_overheard() {
    let mut medium = medium(pair(1.0, 3));
    medium.offer(ms(0), 0, Address::Station(1), &FRAME[..]).expect("there is room");
    let heard: Vec<_> = run(&mut medium).iter().map(|d| (d.at, d.to, d.addressed)).collect();
    assert_eq!(heard, [1, 2, 3, 4].map(|end| (ms(end), 2, false)));
    let stats = medium.stats(0);
    assert_eq!((stats.sent_frames, stats.retransmissions), (4, 3));
    assert_eq!((stats.delivered, stats.undelivered), (0, 1));
    assert_eq!(stats.airtime, 4 * FRAME_AIRTIME);
    let link = medium.link_stats(0, 1).expect("there is such a link");
    assert_eq!((link.addressed, link.retransmissions, link.erased), (4, 3, 4));
    assert_eq!(medium.backlog(0), 0);
}

/// With a limit that is never reached, the transmissions of a frame are geometric: 1 / (1 - e).
#[test]
fn mean_transmissions_without_limit() {
    let (ratio, end) = (0.4, ms(20_000));
    let mut medium = medium(pair(ratio, u32::MAX));
    saturate(&mut medium, &[(0, Address::Station(1))], &FRAME, end);
    let stats = medium.stats(0);
    assert_binomial(stats.delivered, stats.sent_frames, 1.0 - ratio);
    assert_eq!(stats.undelivered, 0);
    assert_eq!(stats.sent_frames - stats.delivered, medium.link_stats(0, 1).unwrap().erased);
}

/// With a limit of r, a frame is lost with e^(r + 1), and is sent (1 - e^(r + 1)) / (1 - e) times.
#[test]
fn mean_transmissions_and_losses_with_limit() {
    let (ratio, limit, end) = (0.5_f64, 2, ms(40_000));
    let mut medium = medium(pair(ratio, limit));
    saturate(&mut medium, &[(0, Address::Station(1))], &FRAME, end);
    let stats = medium.stats(0);
    let frames = stats.delivered + stats.undelivered;
    let lost = libm::pow(ratio, f64::from(limit + 1));
    assert_binomial(stats.undelivered, frames, lost);
    let mean = stats.sent_frames as f64 / frames as f64;
    assert!((mean - (1.0 - lost) / (1.0 - ratio)).abs() < 0.03, "{mean} (seed {SEED})");
}

#[test]
fn a_station_hears_a_retried_frame_once_and_others_after_it_stay_in_order() {
    let mut config = pair(0.5, u32::MAX);
    config.queue_frames = 200;
    let mut medium = medium(config);
    for number in 0..200_u8 {
        medium.offer(ms(0), 0, Address::Station(1), vec![number]).expect("there is room");
    }
    let heard = run(&mut medium);
    let addressed: Vec<_> = heard.iter().filter(|d| d.to == 1).map(|d| d.frame[0]).collect();
    assert!(addressed.into_iter().eq(0..200));
}

#[test]
fn a_retransmission_contends_again() {
    let mut config = mesh(Duplex::Half, 3, 0.0);
    config.links.retain(|link| (link.from, link.to) != (0, 1));
    config.links.push(Link { from: 0, to: 1, erasure: 1.0.into(), retry_limit: u32::MAX });
    let mut medium = medium(config);
    let senders = [(0, Address::Station(1)), (1, Address::Station(2))];
    saturate(&mut medium, &senders, &FRAME, ms(10_000));
    assert_binomial(medium.stats(1).sent_frames, 10_000, 0.5);
    assert_eq!(medium.stats(0).retransmissions, medium.stats(0).sent_frames - 1);
}

#[test]
fn frames_to_all_or_without_link_are_sent_once() {
    let mut medium = medium(pair(1.0, 3));
    for to in [Address::All, Address::Station(0), Address::Station(99)] {
        medium.offer(ms(0), 0, to, &FRAME[..]).expect("there is room");
    }
    let addressed: Vec<_> = run(&mut medium).iter().map(|d| (d.to, d.addressed)).collect();
    assert_eq!(addressed, [(2, true), (2, false), (2, false)]);
    let stats = medium.stats(0);
    assert_eq!((stats.sent_frames, stats.delivered, stats.undelivered), (3, 0, 2));
}

#[test]
fn every_transmission_is_kept_with_its_fate_for_who_asks() {
    let mut config = pair(0.5, 6);
    config.propagation = Duration::from_micros(100);
    let (mut asked, mut unasked) = (medium(config.clone()), medium(config));
    asked.keep_transmissions();
    for medium in [&mut asked, &mut unasked] {
        for to in [Address::Station(1), Address::All] {
            medium.offer(ms(0), 0, to, &FRAME[..]).expect("there is room");
        }
    }
    let deliveries = run(&mut asked);
    assert_eq!(run(&mut unasked), deliveries, "asking changes nothing");
    assert_eq!(unasked.poll_transmission(), None);

    let kept: Vec<_> = std::iter::from_fn(|| asked.poll_transmission()).collect();
    assert_eq!(kept.len() as u64, asked.stats(0).sent_frames);
    let heard = kept.iter().flat_map(|sent| {
        let hearers = sent.hearers.iter().filter(|(_, heard)| *heard);
        hearers.map(|&(station, _)| (sent.ended_at + Duration::from_micros(100), station))
    });
    let delivered: Vec<_> = deliveries.iter().map(|delivery| (delivery.at, delivery.to)).collect();
    assert_eq!(heard.collect::<Vec<_>>(), delivered);
    let (last, retried) = kept.split_last().expect("two frames were sent");
    assert_eq!((last.to, last.retransmissions), (Address::All, 0));
    for (number, sent) in retried.iter().enumerate() {
        assert_eq!((sent.to, sent.retransmissions), (Address::Station(1), number as u32));
        assert_eq!(sent.hearers[0], (1, number + 1 == retried.len()));
        assert_eq!(sent.hearers[1], (2, true));
        assert_eq!(sent.ended_at - sent.began_at, FRAME_AIRTIME);
    }
}
