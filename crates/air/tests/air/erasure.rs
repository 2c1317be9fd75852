//! Losses of links: ratios, independence, and the same losses for every protocol.

use super::*;

/// Which transmissions of station 0 station `to` heard; frames carry their number.
fn pattern(heard: &[Delivery], to: Station) -> Vec<u64> {
    let mine = heard.iter().filter(|d| d.from == 0 && d.to == to);
    mine.map(|d| u64::from_le_bytes(d.frame[..8].try_into().expect("8 bytes"))).collect()
}

/// Station 0 sends `count` numbered frames of `len` bytes to `to`, while `others` are saturated.
fn numbered(
    config: MediumConfig,
    (count, len): (u64, usize),
    to: Address,
    others: &[Station],
) -> (Medium, Vec<Delivery>) {
    let mut medium = medium(config);
    let (mut heard, mut now, mut next) = (Vec::new(), Time::ZERO, 0_u64);
    while next < count || medium.backlog(0) > 0 {
        medium.handle_timeout(now);
        heard.append(&mut drain(&mut medium));
        while next < count && medium.has_room(0) {
            let mut frame = vec![0; len];
            frame[..8].copy_from_slice(&next.to_le_bytes());
            medium.offer(now, 0, to, frame).expect("there is room");
            next += 1;
        }
        for &station in others {
            while medium.has_room(station) {
                medium.offer(now, station, Address::All, &FRAME[..]).expect("there is room");
            }
        }
        now = medium.poll_timeout().unwrap_or(now);
    }
    heard.append(&mut drain(&mut medium));
    (medium, heard)
}

fn lossy() -> MediumConfig {
    let links = vec![link(0, 1, 0.3), link(0, 2, 0.6), link(1, 0, 0.1)];
    MediumConfig { links, ..config(Duplex::Half, 4) }
}

#[test]
fn each_link_loses_its_own_ratio_and_overhears_independently() {
    let count = 20_000;
    let (medium, heard) = numbered(lossy(), (count, 8), Address::Station(1), &[]);
    let (addressed, overheard) = (pattern(&heard, 1), pattern(&heard, 2));
    assert_binomial(addressed.len() as u64, count, 0.7);
    assert_binomial(overheard.len() as u64, count, 0.4);
    let both = addressed.iter().filter(|k| overheard.binary_search(k).is_ok()).count() as u64;
    assert_binomial(both, count, 0.7 * 0.4);
    assert!(pattern(&heard, 3).is_empty(), "no link, nothing heard");
    assert!(heard.iter().all(|d| d.addressed == (d.to == 1)));

    let stats = medium.link_stats(0, 2).expect("there is such a link");
    assert_eq!((stats.transmissions, stats.heard()), (count, overheard.len() as u64));
    let erased = count - overheard.len() as u64;
    assert_eq!(stats.erasure_ratio(), Some(erased as f64 / count as f64));
    assert_eq!(stats.addressed, 0);
    assert_eq!(medium.link_stats(0, 1).map(|s| s.addressed), Some(count));
    assert_eq!(medium.link_stats(1, 0).and_then(|s| s.erasure_ratio()), None);
    assert_eq!(medium.link_stats(0, 3), None);
    assert_eq!(medium.stats(2).overheard_frames, overheard.len() as u64);
    assert_eq!(medium.stats(2).received_frames, 0);
    assert_eq!(medium.stats(0).delivered, addressed.len() as u64);
    assert_eq!(medium.stats(0).undelivered, count - addressed.len() as u64);
}

/// The k-th draw of a link belongs to the k-th transmission of its sender, whatever else happens.
#[test]
fn another_load_sees_the_same_erasures() {
    let run = |config, size, to, others: &[Station]| {
        let (_, heard) = numbered(config, size, to, others);
        (pattern(&heard, 1), pattern(&heard, 2))
    };
    let quiet = run(lossy(), (2000, 8), Address::Station(1), &[]);
    assert_eq!(run(lossy(), (2000, 700), Address::Station(1), &[1, 2, 3]), quiet, "other load");
    assert_eq!(run(lossy(), (2000, 8), Address::Station(2), &[]), quiet, "other address");
    assert_eq!(run(lossy(), (2000, 8), Address::All, &[]), quiet, "to all");
    let full = MediumConfig { mode: Duplex::Full, ..lossy() };
    assert_eq!(run(full, (2000, 8), Address::Station(1), &[2]), quiet, "other medium");
    let mut joined = lossy();
    joined.stations += 1;
    joined.links.splice(0..0, [link(4, 0, 0.5), link(0, 4, 0.5)]);
    joined.links.reverse();
    assert_eq!(run(joined, (2000, 8), Address::Station(1), &[4]), quiet, "another station");
    let other = MediumConfig { replication: 1, ..lossy() };
    assert_ne!(run(other, (2000, 8), Address::Station(1), &[]), quiet, "another replication");
    let other = MediumConfig { seed: SEED + 1, ..lossy() };
    assert_ne!(run(other, (2000, 8), Address::Station(1), &[]), quiet, "another seed");
}

/// Each link draws its own losses, independent of its reverse direction and of other links of its
/// sender and receiver.
#[test]
fn no_two_links_share_their_draws() {
    let mut medium = medium(mesh(Duplex::Full, 3, 0.5));
    let senders = [0, 1, 2].map(|station| (station, Address::All));
    let heard = saturate(&mut medium, &senders, &FRAME, ms(2000));
    let pairs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
    // Every station ends a transmission each millisecond, so arrival times can be compared.
    let patterns = pairs.map(|(from, to)| -> Vec<Time> {
        heard.iter().filter(|d| (d.from, d.to) == (from, to)).map(|d| d.at).collect()
    });
    for (index, one) in patterns.iter().enumerate() {
        for other in &patterns[index + 1..] {
            let both = one.iter().filter(|at| other.binary_search(at).is_ok()).count() as u64;
            assert_binomial(both, 2000, 0.25);
        }
    }
}

#[test]
fn retransmissions_are_draws_like_others() {
    let mut retrying = lossy();
    retrying.links[0].retry_limit = 3;
    let (plain, first) = numbered(lossy(), (3000, 8), Address::Station(1), &[]);
    let (retried, second) = numbered(retrying, (3000, 8), Address::Station(1), &[]);
    assert!(retried.stats(0).sent_frames > plain.stats(0).sent_frames);
    // The transmission's index follows from its arrival time: one ends every 264 us.
    let airtime = plain.airtime(8).as_nanos() as u64;
    let places = |heard: &[Delivery]| -> Vec<u64> {
        let overheard = heard.iter().filter(|d| d.to == 2).map(|d| d.at.as_nanos() / airtime);
        overheard.filter(|&place| place <= 3000).collect()
    };
    assert_eq!(places(&first), places(&second));
}

#[test]
fn zero_and_one_are_exact() {
    let links = vec![link(0, 1, 0.0), link(0, 2, 1.0)];
    let config = MediumConfig { links, ..config(Duplex::Half, 3) };
    let (_, heard) = numbered(config, (5000, 8), Address::All, &[]);
    assert_eq!(pattern(&heard, 1).len(), 5000);
    assert!(pattern(&heard, 2).is_empty());
    assert!(heard.iter().all(|d| d.addressed));
}
