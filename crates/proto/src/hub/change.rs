//! Neighbours that come and go while a hub runs.

use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};

use super::credit::Credits;
use super::turns::Turns;
use super::{Hub, HubConfig, Neighbour, check_ids, networks};
use crate::config::StationId;
use crate::error::ConfigError;
use crate::memory;

impl Hub {
    /// Replaces the neighbours and the networks of each. The stations of neighbours that stay keep
    /// their sessions, queues and windows. Of the given station configuration, only the keys of new
    /// neighbours and the memory are used: new neighbours share the memory that is free. `entropy`
    /// is 32 bytes of fresh randomness.
    ///
    /// # Errors
    /// As [`new`](Self::new); or not enough of the memory is free. Nothing has changed then.
    pub fn set_neighbours(
        &mut self,
        config: &HubConfig,
        entropy: [u8; 32],
        now: Time,
    ) -> Result<(), ConfigError> {
        check_ids(config)?;
        let networks = networks(config)?;
        let ids: Vec<StationId> = config.neighbours.iter().map(|&(id, _)| id).collect();
        let mut coming = self.make_coming(config, &ids, entropy, now)?;

        self.now = now;
        self.told.memory_bytes = config.station.memory_bytes;
        let mut staying = core::mem::take(&mut self.neighbours);
        for id in &ids {
            let of_id = |neighbour: &Neighbour| neighbour.id == *id;
            let from = if staying.iter().any(of_id) { &mut staying } else { &mut coming };
            if let Some(at) = from.iter().position(of_id) {
                self.neighbours.push(from.swap_remove(at));
            }
        }
        // What is left belongs to those that leave.
        staying.iter().for_each(|gone| self.gone.join(&gone.station.stats().without_gauges()));
        self.networks = networks;
        self.icmp_errors.set_own(&config.own);
        self.turns = Turns::new(self.neighbours.len());
        self.credits = Credits::new(self.neighbours.len(), self.credits.one_channel(), now);
        self.speaking.clear();
        for place in 0..self.neighbours.len() {
            self.neighbours[place].speaks = false;
            self.neighbours[place].station.set_credit(now, None);
            self.touch(place);
        }
        Ok(())
    }

    /// The new neighbours.
    fn make_coming(
        &self,
        config: &HubConfig,
        ids: &[StationId],
        entropy: [u8; 32],
        now: Time,
    ) -> Result<Vec<Neighbour>, ConfigError> {
        let stays = |neighbour: &&Neighbour| ids.contains(&neighbour.id);
        let shares = self.neighbours.iter().filter(stays);
        let shares = shares.map(|neighbour| neighbour.station.memory().share).sum();
        let mut free = config.station.memory_bytes.saturating_sub(shares);
        let mut entropy = Stream::from_seed(entropy);
        let new: Vec<_> = ids.iter().filter(|&&id| self.place_of(id).is_none()).collect();
        let mut coming = Vec::with_capacity(new.len());
        for (made, &&id) in new.iter().enumerate() {
            let share = memory::share_of_free(&config.station, free, new.len() - made)?;
            free -= share;
            let mut seed = [0; 32];
            entropy.fill_bytes(&mut seed);
            let clocks = self.told.clock.clocks(now);
            let mut neighbour = Neighbour::new(&config.station, (id, share), seed, clocks)?;
            // What is known about the channel, and what the driver has set for the others, applies
            // to it too.
            neighbour.station.set_air_shared(self.channel.is_shared());
            if let Some(lens) = self.told.path_lens {
                neighbour.station.find_path_mtu(now, lens);
            }
            if let Some(len) = self.told.frames_limit {
                neighbour.station.limit_frames(now, len);
            }
            if self.told.reaches_out {
                neighbour.station.reach_out(now, true);
            }
            if let Some(interval) = self.told.rekey_interval {
                neighbour.station.set_rekey_interval(interval);
            }
            if let Some(frames) = self.told.session_frames {
                neighbour.station.set_session_frames(frames);
            }
            coming.push(neighbour);
        }
        Ok(coming)
    }
}
