//! The same seed gives the same trace, however late the driver is.

use proptest::prelude::*;

use super::*;

/// An offered frame: when (ns), sender, addressee, length (bytes).
type Offer = (u64, Station, Option<Station>, usize);

const STATIONS: usize = 3;

fn offers() -> impl Strategy<Value = Vec<Offer>> {
    // Coarse times and lengths, so that events coincide often.
    let offer = (0_u64..40, 0..STATIONS, prop::option::of(0..STATIONS), 0_usize..4);
    let offers = prop::collection::vec(offer, 1..60);
    offers.prop_map(|mut offers| {
        for (time, .., len) in &mut offers {
            *time *= 400_000;
            *len *= 50;
        }
        offers.sort();
        offers
    })
}

fn lossy(mode: Duplex, propagation_us: u64, seed: u64) -> MediumConfig {
    let mut config = mesh(mode, STATIONS, 0.4);
    config.links.iter_mut().for_each(|link| link.retry_limit = link.to as u32);
    let propagation = Duration::from_micros(propagation_us);
    MediumConfig { propagation, seed, queue_frames: 4, ..config }
}

fn offer(medium: &mut Medium, &(time, from, to, len): &Offer) -> bool {
    let to = to.map_or(Address::All, Address::Station);
    medium.offer(Time::from_nanos(time), from, to, vec![0xC0; len]).is_ok()
}

/// Wakes up for every event before each offer.
fn punctual(config: MediumConfig, offers: &[Offer]) -> (Vec<bool>, Vec<Delivery>) {
    let (mut medium, mut taken, mut heard) = (medium(config), Vec::new(), Vec::new());
    for next in offers {
        while let Some(now) = medium.poll_timeout().filter(|now| now.as_nanos() < next.0) {
            medium.handle_timeout(now);
            heard.append(&mut drain(&mut medium));
        }
        taken.push(offer(&mut medium, next));
    }
    heard.append(&mut run(&mut medium));
    (taken, heard)
}

/// Wakes up only for offers, and once more long after everything.
fn late(config: MediumConfig, offers: &[Offer]) -> (Vec<bool>, Vec<Delivery>) {
    let mut medium = medium(config);
    let taken = offers.iter().map(|next| offer(&mut medium, next)).collect();
    medium.handle_timeout(ms(3_600_000));
    assert_eq!(medium.poll_timeout(), medium.poll_timeout().min(Some(ms(3_600_000))));
    let heard = drain(&mut medium);
    assert_eq!(medium.poll_timeout(), None);
    (taken, heard)
}

proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    #[test]
    fn a_late_driver_changes_nothing(
        offers in offers(), full in any::<bool>(), propagation_us in 0_u64..1000, seed: u64,
    ) {
        let mode = if full { Duplex::Full } else { Duplex::Half };
        let config = lossy(mode, propagation_us, seed);
        let exact = punctual(config.clone(), &offers);
        prop_assert_eq!(&punctual(config.clone(), &offers), &exact, "not deterministic");
        prop_assert_eq!(&late(config, &offers), &exact);
        prop_assert!(exact.1.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }

    /// Half duplex without loss: a transmission begins when the one before ends or when the first
    /// waiting frame is offered, whichever is later.
    #[test]
    fn no_transmission_begins_before_its_offer_or_after_a_gap(offers in offers(), seed: u64) {
        let mut config = lossy(Duplex::Half, 0, seed);
        config.queue_frames = 1000;
        config.links.iter_mut().for_each(|link| link.erasure = 0.0.into());
        let overhead = config.overhead;
        let airtime = |len: usize| overhead + Duration::from_micros(8 * len as u64);
        let (_, heard) = late(config, &offers);
        // Queues are FIFO: the n-th frame heard of a station is its n-th offer.
        let mut waiting: Vec<_> = offers.clone();
        let mut idle_from = Time::ZERO;
        for transmission in heard.chunks(STATIONS - 1) {
            let from = transmission[0].from;
            let index = waiting.iter().position(|next| next.1 == from).expect("it was offered");
            let earliest = waiting.iter().map(|next| next.0).min().expect("not empty");
            let (offered, _, _, len) = waiting.remove(index);
            let begin = idle_from.max(Time::from_nanos(earliest));
            prop_assert_eq!(transmission[0].at, begin + airtime(len));
            prop_assert!(begin >= Time::from_nanos(offered));
            idle_from = transmission[0].at;
        }
        prop_assert_eq!(heard.len(), offers.len() * (STATIONS - 1));
    }
}

#[test]
fn the_next_transmission_begins_at_the_virtual_end_of_the_previous_one() {
    for mode in [Duplex::Half, Duplex::Full] {
        let mut medium = medium(mesh(mode, 2, 0.0));
        for _ in 0..3 {
            medium.offer(ms(0), 0, Address::All, &FRAME[..]).expect("there is room");
        }
        medium.handle_timeout(ms(0));
        medium.handle_timeout(Time::from_nanos(1_700_000));
        assert_eq!(drain(&mut medium)[0].at, ms(1));
        assert_eq!(medium.poll_timeout(), Some(ms(2)), "not 2.7 ms");
        medium.handle_timeout(ms(50));
        let at: Vec<_> = drain(&mut medium).iter().map(|d| d.at).collect();
        assert_eq!(at, [ms(2), ms(3)]);
    }
}

#[test]
fn a_frame_offered_late_does_not_fill_the_past() {
    for mode in [Duplex::Half, Duplex::Full] {
        let mut medium = medium(mesh(mode, 2, 0.0));
        medium.offer(ms(0), 0, Address::All, &FRAME[..]).expect("there is room");
        // handle_timeout is not called, though the first frame ended at 1 ms.
        medium.offer(ms(10), 0, Address::All, &FRAME[..]).expect("there is room");
        medium.handle_timeout(ms(20));
        let at: Vec<_> = drain(&mut medium).iter().map(|d| d.at).collect();
        assert_eq!(at, [ms(1), ms(11)]);
    }
}

#[test]
fn a_frame_offered_after_a_missed_end_does_not_contend_in_the_past() {
    for replication in 0..50 {
        let mut medium = medium(MediumConfig { replication, ..mesh(Duplex::Half, 2, 0.0) });
        medium.offer(ms(0), 0, Address::All, &FRAME[..]).expect("there is room");
        medium.offer(ms(0), 0, Address::All, &FRAME[..]).expect("there is room");
        // Station 0 has had the channel again since 1 ms, though the driver has not checked.
        medium.offer(Time::from_nanos(1_500_000), 1, Address::All, &FRAME[..]).expect("room");
        let heard: Vec<_> = run(&mut medium).iter().map(|d| (d.at, d.from)).collect();
        assert_eq!(heard, [(ms(1), 0), (ms(2), 0), (ms(3), 1)]);
    }
}

#[test]
fn time_does_not_go_back() {
    let mut medium = medium(mesh(Duplex::Full, 2, 0.0));
    medium.handle_timeout(ms(10));
    medium.offer(ms(3), 0, Address::All, &FRAME[..]).expect("there is room");
    medium.handle_timeout(ms(4));
    assert_eq!(medium.poll_timeout(), Some(ms(11)));
}

#[test]
fn the_end_of_time_is_survived() {
    let mut medium = medium(mesh(Duplex::Half, 2, 0.0));
    for _ in 0..3 {
        medium.offer(Time::MAX, 0, Address::All, &FRAME[..]).expect("there is room");
    }
    assert_eq!(run(&mut medium).len(), 3);
}
