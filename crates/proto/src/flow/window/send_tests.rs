//! What a sender does with spare air: bursts of packets with pauses in between, a frame per
//! millisecond, a round trip of 40 ms.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};

use crate::config::{CodingParams, Goal};
use crate::flow::window::receive::WindowReceiver;
use crate::flow::window::send::WindowSender;
use crate::host::egress::EgressQueue;
use crate::host::queue::IngressQueue;
use crate::link::arrivals::Arrivals;
use crate::link::usage::{Heard, LinkUsage};
use crate::stats::Stats;
use crate::wire::{Lanes, LinkFeedback, WindowFeedback, WindowForm, WindowSymbol};

const WAY: Duration = Duration::from_millis(20);
const SYMBOL_SIZE_MAX: usize = 1_400;
const BURSTS: usize = 40;

struct Link {
    usage: LinkUsage,
    arrivals: Arrivals,
    sender: WindowSender,
    receiver: WindowReceiver,
    ingress: IngressQueue,
    egress: EgressQueue,
    stats: Stats,
    now: Time,
    counter: u32,
    loss_ratio: f64,
    draws: Stream,
    frames: VecDeque<(Time, u32, Vec<u8>)>,
    feedback: VecDeque<(Time, LinkFeedback, WindowFeedback)>,
    /// The next source symbol not yet sent.
    next: Option<u32>,
    order: Order,
}

/// What overtakes what.
#[derive(Default)]
struct Order {
    /// Frames take longer by up to this, drawn anew for each, and overtake each other.
    jitter: Duration,
    /// Feedback overtakes feedback that reports the same newest frame, but fewer of the others.
    feedback: bool,
}

impl Link {
    fn new(loss_ratio: f64, half_duplex: bool) -> Self {
        Link::with(
            CodingParams { half_duplex: Some(half_duplex), ..CodingParams::window() },
            loss_ratio,
        )
    }

    fn with(params: CodingParams, loss_ratio: f64) -> Self {
        let rng = Stream::from_seed([1; 32]);
        let sender = WindowSender::new(params, SYMBOL_SIZE_MAX, rng, Time::ZERO).unwrap();
        let (field, deadline) = (params.field, params.delivery_deadline);
        let (lanes, interval) = ((params.lane_size(), params.lanes_max()), params.ack_interval);
        let (base, shape) = (sender.base(), (field, SYMBOL_SIZE_MAX));
        let receiver = WindowReceiver::new(shape, lanes, base, deadline, interval);
        Link {
            usage: LinkUsage::new(&params, SYMBOL_SIZE_MAX, Time::ZERO),
            arrivals: Arrivals::default(),
            sender,
            receiver: receiver.unwrap(),
            ingress: IngressQueue::fifo(1_000),
            egress: EgressQueue::default(),
            stats: Stats::default(),
            now: Time::ZERO,
            counter: 0,
            loss_ratio,
            draws: Stream::from_seed([2; 32]),
            frames: VecDeque::new(),
            feedback: VecDeque::new(),
            next: None,
            order: Order::default(),
        }
    }

    /// Whether a frame was sent in the next millisecond, and if so, whether it was repair.
    fn step(&mut self) -> Option<bool> {
        self.now += Duration::from_millis(1);
        while let Some((_, counter, body)) = self.frames.pop_front_if(|(at, ..)| *at <= self.now) {
            let symbol = WindowSymbol::parse(&body).unwrap();
            let (egress, stats) = (&mut self.egress, &mut self.stats);
            self.arrivals.note(self.now, counter);
            self.receiver.set_frame_time(self.arrivals.frame_time());
            self.receiver.handle_symbol(self.now, &symbol, egress, stats);
        }
        if self.receiver.ack_due().is_some_and(|due| due <= self.now)
            && let Some(frames) = self.arrivals.feedback(self.now, self.loss_ratio, false)
        {
            let symbols = self.receiver.take_feedback(self.now, self.loss_ratio);
            self.feedback.push_back((self.now + WAY, frames, symbols));
        }
        while let Some((_, frames, symbols)) =
            self.feedback.pop_front_if(|(at, ..)| *at <= self.now)
        {
            self.hear(frames, &symbols);
            if self.order.feedback {
                let frames = LinkFeedback { frames: frames.frames.wrapping_sub(1), ..frames };
                let useless = symbols.useless.wrapping_sub(1);
                let late = WindowFeedback { useless, deficit: symbols.deficit + 1, ..symbols };
                self.hear(frames, &late);
            }
        }
        self.sender.handle_timeout(self.now, &mut self.usage, &mut self.stats);
        let mut body = Vec::new();
        self.usage.begin(self.counter, 0);
        let (link, ingress, stats) = (&mut self.usage, &mut self.ingress, &mut self.stats);
        if !self.sender.poll(self.now, (link, false), ingress, &mut body, stats) {
            return None;
        }
        let is_repair = match WindowSymbol::parse(&body).unwrap().form {
            WindowForm::Source { id, .. } if self.next.is_none_or(|next| next == id) => {
                self.next = Some(id.wrapping_add(1));
                false
            }
            WindowForm::Source { .. } | WindowForm::Coded { .. } => true,
        };
        if f64::from(self.draws.next_u32()) / 2f64.powi(32) >= self.loss_ratio {
            let at = self.now + WAY + self.draw_jitter();
            let place = self.frames.partition_point(|&(other, ..)| other <= at);
            self.frames.insert(place, (at, self.counter, body));
        }
        self.counter += 1;
        Some(is_repair)
    }

    fn draw_jitter(&mut self) -> Duration {
        if self.order.jitter.is_zero() {
            return Duration::ZERO;
        }
        self.order.jitter.mul_f64(f64::from(self.draws.next_u32()) / 2f64.powi(32))
    }

    fn hear(&mut self, frames: LinkFeedback, symbols: &WindowFeedback) {
        let (link, heard) = (&mut self.usage, Heard::new(frames, 0));
        self.sender.handle_feedback(self.now, symbols, (link, &heard), &mut self.stats);
    }

    /// Fills the air for this long; returns source and repair symbols sent.
    fn saturate(&mut self, seconds: u32) -> (f64, f64) {
        let (mut sources, mut repairs) = (0.0, 0.0);
        for _ in 0..1_000 * seconds {
            while self.ingress.len() < 4 {
                assert!(self.ingress.push_bytes(self.now, &[0; 1_000], &mut self.stats));
            }
            match self.step() {
                Some(true) => repairs += 1.0,
                Some(false) => sources += 1.0,
                None => {}
            }
        }
        (sources, repairs)
    }

    /// Repair sent while packets of a burst wait, within its first four frames, per burst.
    fn ahead(mut self, packets: usize) -> f64 {
        let mut ahead = 0;
        for _ in 0..BURSTS {
            for _ in 0..packets {
                assert!(self.ingress.push_bytes(self.now, &[0; 1_000], &mut self.stats));
            }
            for _ in 0..4 {
                let waits = !self.ingress.is_empty();
                ahead += usize::from(self.step() == Some(true) && waits);
            }
            (0..2 * packets + 100).for_each(|_| {
                self.step();
            });
        }
        f64::from(ahead as u32) / BURSTS as f64
    }
}

#[test]
fn repair_goes_ahead_of_a_short_burst_after_a_pause() {
    let ahead = Link::new(0.3, false).ahead(8);
    assert!(ahead > 0.8, "{ahead} per burst");
}

/// Share of spurious repair where jitter reorders. Overtaken frames counted as lost at once.
fn spurious_where_frames_overtake(goal: Goal, loss_ratio: f64) -> f64 {
    let jitter = Duration::from_millis(20);
    let params = CodingParams { half_duplex: Some(false), goal, ..CodingParams::window() };
    let order = Order { jitter, ..Order::default() };
    let mut link = Link { order, ..Link::with(params, loss_ratio) };
    link.saturate(10);
    let (sources, repairs) = link.saturate(20);
    // What is lost is repaired before it holds everything up.
    assert!(sources + repairs > 19_000.0, "{loss_ratio}: {sources} and {repairs}");
    let needed = sources * loss_ratio / (1.0 - loss_ratio);
    (repairs - needed) / (sources + repairs)
}

#[test]
fn overtaken_frames_are_hardly_repaired() {
    for (loss_ratio, most) in [(0.0, 0.02), (0.2, 0.08)] {
        let spurious = spurious_where_frames_overtake(Goal::Throughput, loss_ratio);
        assert!(spurious < most, "{loss_ratio}: {spurious}");
    }
}

/// Where delay matters more than goodput, nothing waits for them.
#[test]
fn with_the_goal_of_low_delay_overtaken_frames_are_repaired_at_once() {
    let [fast, slow] =
        [Goal::LowDelay, Goal::Throughput].map(|goal| spurious_where_frames_overtake(goal, 0.2));
    assert!(fast > slow + 0.02, "{fast} and {slow}");
}

/// In idle air nothing is sent for frames that are only late: the path's bytes may cost money, and
/// its air may be others'.
#[test]
fn a_burst_without_losses_is_hardly_repaired_where_frames_overtake() {
    for goal in [Goal::Throughput, Goal::Bulk] {
        let params = CodingParams { half_duplex: Some(false), goal, ..CodingParams::window() };
        let order = Order { jitter: Duration::from_millis(20), ..Order::default() };
        let mut link = Link { order, ..Link::with(params, 0.0) };
        for _ in 0..BURSTS {
            for _ in 0..8 {
                assert!(link.ingress.push_bytes(link.now, &[0; 1_000], &mut link.stats));
            }
            (0..200).for_each(|_| {
                link.step();
            });
        }
        let per_burst = f64::from(link.stats.coded_frames_sent as u32) / BURSTS as f64;
        assert!(per_burst < 0.1, "{goal:?}: {per_burst}");
    }
}

/// Whether repair follows feedback about this lane that covers all frames in flight, and reports
/// nothing of them.
fn is_repaired_after_feedback_about(lanes: Lanes) -> bool {
    let mut link = Link::new(0.0, false);
    link.saturate(1);
    link.ingress = IngressQueue::fifo(1_000);
    let frames = link.arrivals.feedback(link.now, 0.0, false).unwrap();
    let symbols = WindowFeedback {
        next: link.sender.base(),
        lanes,
        span: 0,
        deficit: 0,
        needed: [].into_iter().collect(),
        ..link.receiver.take_feedback(link.now, 0.0)
    };
    link.hear(LinkFeedback { counter: link.counter - 1, ..frames }, &symbols);
    link.step() == Some(true)
}

/// Where lanes have just become one, feedback about an earlier lane may still come.
#[test]
fn feedback_about_a_lane_that_is_gone_takes_no_frame_for_lost() {
    assert!(!is_repaired_after_feedback_about(Lanes::MOST));
    assert!(is_repaired_after_feedback_about(Lanes::ONE));
}

#[test]
fn feedback_that_was_overtaken_does_no_harm() {
    let link =
        Link { order: Order { feedback: true, ..Order::default() }, ..Link::new(0.3, false) };
    assert_eq!(link.ahead(8), Link::new(0.3, false).ahead(8));
}

/// Feedback that comes while probes are still to be sent, and reports that everything arrived.
#[test]
fn probes_that_were_answered_are_not_sent() {
    let mut link = Link::new(0.0, false);
    for _ in 0..20 {
        assert!(link.ingress.push_bytes(link.now, &[0; 1_000], &mut link.stats));
    }
    while link.stats.encoder_timeouts == 0 {
        link.step();
        let late = link.now + Duration::from_secs(3);
        link.feedback.iter_mut().for_each(|(at, ..)| *at = late);
    }
    let now = link.now;
    link.feedback.iter_mut().for_each(|(at, ..)| *at = now);
    assert_eq!(link.step(), None);
    assert_eq!(link.sender.held(), 0, "everything is acknowledged");
    assert!(link.ingress.push_bytes(link.now, &[0; 1_000], &mut link.stats));
    assert_eq!(link.step(), Some(false));
    assert_eq!(link.step(), None);
}

/// Repair that was sent in idle air, and overtaken, is about nothing that is held any more.
#[test]
fn nothing_is_due_once_everything_is_acknowledged() {
    let order = Order { jitter: Duration::from_millis(20), ..Order::default() };
    let mut link = Link { order, ..Link::new(0.3, false) };
    for _ in 0..BURSTS {
        for _ in 0..8 {
            assert!(link.ingress.push_bytes(link.now, &[0; 1_000], &mut link.stats));
        }
        while !link.ingress.is_empty() || link.sender.held() > 0 {
            link.step();
        }
        assert_eq!(link.sender.poll_timeout(&link.usage), None, "at {}", link.now);
    }
    assert!(link.stats.coded_frames_sent > 0);
}

/// Only feedback was lost, for a second: all probes were repair, most of it useless, although
/// packets waited.
#[test]
fn silence_is_asked_into_with_packets_that_wait_where_repair_would_bring_nothing() {
    // With losses, repair that is more likely useful than not is sometimes useless: 0.13.
    for (loss_ratio, most) in [(0.0, 0.1), (0.2, 0.2)] {
        let mut link = Link::new(loss_ratio, false);
        link.saturate(10);
        let until = link.now + Duration::from_secs(1);
        let dependent = |link: &Link| link.stats.symbols_dependent;
        let (timeouts, before) = (link.stats.encoder_timeouts, dependent(&link));
        let (mut asked, mut frames) = (0, 0);
        while link.now < until {
            link.feedback.iter_mut().for_each(|(at, ..)| *at = until);
            while link.ingress.len() < 4 {
                assert!(link.ingress.push_bytes(link.now, &[0; 1_000], &mut link.stats));
            }
            let went = link.step().is_some();
            frames += u32::from(went);
            asked += u32::from(went && link.stats.encoder_timeouts > timeouts);
        }
        assert!(asked > 100, "{asked} of {frames} frames in silence");
        let useless = f64::from((dependent(&link) - before) as u32) / f64::from(frames);
        assert!(
            useless < most,
            "{useless} of {frames} frames brought nothing, at {loss_ratio} lost"
        );
    }
}

/// The sender has changed keys, and died before it sent a symbol under the new ones: missing
/// symbols are skipped, there is nothing to report, and no timer fires again and again.
#[test]
fn nothing_is_due_about_a_session_that_nothing_was_heard_of() {
    let mut link = Link::new(0.0, false);
    for _ in 0..20 {
        assert!(link.ingress.push_bytes(link.now, &[0; 1_000], &mut link.stats));
    }
    assert_eq!((link.step(), link.step()), (Some(false), Some(false)));
    link.frames.pop_front();
    while !link.frames.is_empty() {
        link.step();
    }
    assert!(link.receiver.poll_timeout().is_some(), "something is missing");
    link.arrivals.restart_session();
    link.receiver.drop_feedback();
    let now = link.now + Duration::from_secs(60);
    link.receiver.handle_timeout(now, &mut link.egress, &mut link.stats);
    assert!(link.stats.symbols_given_up > 0);
    assert!(link.arrivals.feedback(now, 0.0, false).is_none());
    assert!(link.receiver.poll_timeout().is_none_or(|due| due > now));
}

#[test]
fn repair_keeps_to_its_ceiling_and_to_what_is_lost_below_it() {
    for (ceiling, enough) in [(0.1, false), (0.3, false), (1.0, true)] {
        let params = CodingParams {
            half_duplex: Some(false),
            max_overhead: Some(ceiling),
            ..CodingParams::window()
        };
        let mut link = Link::with(params, 0.3);
        link.saturate(10);
        let (sources, repairs) = link.saturate(60);
        let ratio = repairs / sources;
        assert!(ratio <= 1.02 * ceiling + 0.02, "{ratio} of {ceiling}");
        // What 30 % of losses need: .3 of .7.
        assert_eq!(ratio > 0.42, enough, "{ratio} of {ceiling}");
        assert_eq!(link.stats.symbols_given_up == 0, enough, "at {ceiling}");
    }
}

#[test]
fn bulk_sends_hardly_a_symbol_in_vain() {
    let spurious = |goal: Goal| {
        let params = CodingParams { half_duplex: Some(false), goal, ..CodingParams::window() };
        let mut link = Link::with(params, 0.2);
        link.saturate(10);
        let before = link.stats.repairs_spurious;
        let (sources, repairs) = link.saturate(100);
        (link.stats.repairs_spurious - before) as f64 / (sources + repairs)
    };
    let (bulk, throughput) = (spurious(Goal::Bulk), spurious(Goal::Throughput));
    assert!(bulk < 0.008, "{bulk}");
    assert!(throughput > 2.0 * bulk, "{throughput} and {bulk}");
}

#[test]
fn where_nothing_is_lost_none_does() {
    assert_eq!(Link::new(0.0, false).ahead(8), 0.0);
}

#[test]
fn on_shared_air_none_does_either() {
    let (shared, separate) = (Link::new(0.3, true).ahead(8), Link::new(0.3, false).ahead(8));
    assert!(shared < separate / 4.0, "{shared} and {separate} per burst");
}

#[test]
fn a_long_burst_takes_the_air_itself() {
    let (long, short) = (Link::new(0.3, false).ahead(400), Link::new(0.3, false).ahead(8));
    // Some is wanted whatever waits.
    assert!(long < 0.7 * short, "{long} and {short} per burst");
}

/// The first feedback about a burst may report many frames, most of which the rate held back, and
/// the pause before them.
#[test]
fn a_burst_after_a_pause_does_not_make_the_path_look_slow() {
    let mut link = Link::new(0.0, false);
    let mut send = |packets: usize| {
        for _ in 0..packets {
            assert!(link.ingress.push_bytes(link.now, &[0; 1_000], &mut link.stats));
            // All but the first of them have to wait.
            if link.ingress.len() > 1 {
                link.usage.note_limited();
            }
        }
        (0..1_000).for_each(|_| {
            if !link.ingress.is_empty() && link.step().is_some() {
                link.usage.note_limited();
            } else {
                link.step();
            }
        });
        link.usage.bytes_per_s()
    };
    (0..3).for_each(|_| {
        send(900);
    });
    let before = send(900);
    for burst in 0..20 {
        let rate = send(30);
        assert!(rate > 0.9 * before, "{rate} bytes a second and {before} before, burst {burst}");
    }
}
