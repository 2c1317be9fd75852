//! What becomes of the frames that a station sends: its underlay, the network, and who overhears.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::{Destination, StationId};

use super::{Driver, Happening, Origin};
use crate::coverage::Feature;
use crate::invariants::{Broken, Invariant, ensure};
use crate::network::Passage;
use crate::scenario::PAIR_NUMBERS;

impl Driver<'_> {
    pub(super) fn has_room(&mut self, station: usize) -> bool {
        let now = self.now;
        let ms = now.as_nanos() / 1_000_000;
        let mut stalls = self.scenario.stalls.iter().filter(|stall| {
            usize::from(stall.station) == station
                && (u64::from(stall.begin_ms)..stall.end_ms.into()).contains(&ms)
        });
        if let Some(stall) = stalls.next() {
            let until = Time::from_millis(stall.end_ms.into());
            if self.seats[station].stalled_until < until {
                self.seats[station].stalled_until = until;
                self.coverage.add(Feature::Stalls, 1);
                self.happen(until, Happening::Room { station });
            }
            return false;
        }
        let departures = &mut self.seats[station].departures;
        while departures.front().is_some_and(|&at| at <= now) {
            departures.pop_front();
        }
        departures.len() < usize::from(self.scenario.network.queue_frames)
    }

    pub(super) fn send(
        &mut self,
        from: usize,
        to: Destination,
        frame: Vec<u8>,
    ) -> Result<(), Broken> {
        let scenario = self.scenario;
        let seat = &mut self.seats[from];
        let (least, most) = (seat.config.frame_len_min, seat.config.frame_len_max);
        ensure((least..=most).contains(&frame.len()), Invariant::Bounds, || {
            format!("station {from} sent {} bytes, expected {least} to {most}", frame.len())
        })?;
        if let Destination::Station(StationId(id)) = to {
            let own = seat.place.id.0;
            let is_of_pair = id / PAIR_NUMBERS == own / PAIR_NUMBERS;
            ensure(id != own && is_of_pair, Invariant::Bounds, || {
                format!("station {from} sends to station number {id}")
            })?;
        }
        seat.frames_sent += 1;
        self.books.sent(from, &frame)?;
        let airtime = 8_000_000_000 * frame.len() as u64 / scenario.network.rate_bps;
        let begin = seat.departures.back().map_or(self.now, |&at| at.max(self.now));
        let sent_at = begin + Duration::from_nanos(airtime.max(1));
        seat.departures.push_back(sent_at);
        self.happen(sent_at, Happening::Room { station: from });
        self.say(format_args!("{from} sends {} bytes to {to:?}", frame.len()));
        for hearer in (0..self.seats.len()).filter(|&hearer| hearer != from) {
            match self.network.carry(self.now, scenario, from, hearer) {
                Passage::Lost => {
                    self.coverage.add(Feature::FramesLost, 1);
                    self.say(format_args!("  lost on the way to {hearer}"));
                }
                Passage::Arrives(delay, again) => {
                    self.fly(sent_at + delay, hearer, frame.clone(), Origin::Station);
                    if delay > Duration::from_micros(scenario.network.delay_us.into()) {
                        self.coverage.add(Feature::FramesLate, 1);
                    }
                    if let Some(delay) = again {
                        self.coverage.add(Feature::FramesDuplicated, 1);
                        self.fly(sent_at + delay, hearer, frame.clone(), Origin::Station);
                    }
                }
            }
            if !self.network.is_calm() {
                self.tamper(sent_at, from, hearer, &frame);
            }
        }
        self.overhear(&frame);
        Ok(())
    }

    fn fly(&mut self, at: Time, to: usize, bytes: Vec<u8>, origin: Origin) {
        self.happen(at, Happening::Frame { to, bytes, origin });
    }

    /// The adversaries' turn, after a frame from one station to another.
    fn tamper(&mut self, at: Time, from: usize, hearer: usize, frame: &[u8]) {
        let scenario = self.scenario;
        let delay = Duration::from_micros(scenario.network.delay_us.into());
        if let Some(stranger) = &mut self.stranger
            && stranger.strikes(scenario.forged_ppm)
        {
            let to = stranger.aim(hearer, self.seats.len());
            let forged = stranger.forge(at, from, frame, &scenario.forgeries);
            if let Some((bytes, forged)) = forged {
                self.coverage.add(Feature::FramesForged, 1);
                let origin = if forged { Origin::Forged } else { Origin::Echo };
                self.fly(at + delay, to, bytes, origin);
            }
        }
        if let Some(insider) = &mut self.insider
            && insider.strikes(scenario.insider_ppm)
            && let Some(bytes) = insider.forge()
        {
            self.coverage.add(Feature::FramesInsider, 1);
            self.fly(at + delay, hearer, bytes, Origin::Insider);
        }
    }

    fn overhear(&mut self, frame: &[u8]) {
        if let Some(stranger) = &mut self.stranger {
            stranger.hear(frame);
        }
        if let Some(insider) = &mut self.insider {
            insider.hear(frame);
        }
    }
}
