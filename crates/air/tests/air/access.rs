//! Access to the shared channel.

use super::*;

const STATIONS: usize = 4;

/// Senders of the transmissions in order, as heard by station `STATIONS`, which sends nothing.
fn order(queue_frames: usize, end: Time) -> Vec<Station> {
    let config = MediumConfig { queue_frames, ..mesh(Duplex::Half, STATIONS + 1, 0.0) };
    let senders: Vec<_> = (0..STATIONS).map(|station| (station, Address::All)).collect();
    let heard = saturate(&mut medium(config), &senders, &FRAME, end);
    heard.iter().filter(|d| d.to == STATIONS).map(|d| d.from).collect()
}

/// This includes queues of one frame, where the next is offered at the instant at which the channel
/// becomes idle: the driver visits station 0 first, and that must not be an advantage.
#[test]
fn saturated_stations_share_fairly_and_without_memory() {
    for queue_frames in [1, 8] {
        let order = order(queue_frames, ms(40_000));
        let count = order.len() as u64;
        assert_eq!(count, 40_000, "the channel is never idle");
        for station in 0..STATIONS {
            let share = order.iter().filter(|&&from| from == station).count() as u64;
            assert_binomial(share, count, 1.0 / STATIONS as f64);
        }
        let repeats = order.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
        assert_binomial(repeats, count - 1, 1.0 / STATIONS as f64);
    }
}

#[test]
fn a_reaction_at_the_instant_the_channel_becomes_idle_contends() {
    let (mut first, rounds) = (0, 4000);
    for replication in 0..rounds {
        let mut medium = medium(MediumConfig { replication, ..mesh(Duplex::Half, 2, 0.0) });
        for _ in 0..2 {
            medium.offer(ms(0), 0, Address::Station(1), &FRAME[..]).expect("there is room");
        }
        medium.handle_timeout(ms(0));
        medium.handle_timeout(ms(1));
        assert_eq!(drain(&mut medium).len(), 1);
        assert_eq!(medium.poll_timeout(), Some(ms(1)), "access at 1 ms is still to be decided");
        medium.offer(ms(1), 1, Address::Station(0), &FRAME[..]).expect("there is room");
        first += u64::from(run(&mut medium)[0].from == 1);
    }
    assert_binomial(first, rounds, 0.5);
}

#[test]
fn access_goes_by_frames_and_not_by_airtime() {
    let mut medium = medium(mesh(Duplex::Half, 2, 0.0));
    let (short, long) = ([0; 100], [0; 1000]);
    let mut now = ms(0);
    while now < ms(60_000) {
        medium.handle_timeout(now);
        drain(&mut medium);
        for (station, frame) in [(0, &short[..]), (1, &long[..])] {
            while medium.has_room(station) {
                medium.offer(now, station, Address::All, frame).expect("there is room");
            }
        }
        now = medium.poll_timeout().expect("the queues are full");
    }
    let sent = [0, 1].map(|station| medium.stats(station).sent_frames);
    assert_binomial(sent[0], sent[0] + sent[1], 0.5);
}

#[test]
fn a_lone_station_has_the_channel_to_itself() {
    let mut medium = medium(mesh(Duplex::Half, 3, 0.0));
    saturate(&mut medium, &[(1, Address::All)], &FRAME, ms(100));
    assert_eq!(medium.stats(1).sent_frames, 100);
}
