//! Frames sealed by a neighbour with false contents: they are counted, and have no other effect.

use corridor_proto::Unsealer;
use corridor_proto::relay::wire::{Frame, NeighbourReport, PacketId, Part};
use corridor_proto::relay::{NodeId, RelayConfig};
use corridor_proto::wire::{HEADER_LEN, Kind, Relayed, TAG_LEN};

use super::*;

/// A row whose first station may seal anything.
struct Liar {
    row: Bed<Air>,
    unsealer: Unsealer,
}

impl Liar {
    fn new() -> Self {
        let mut row = met(3, RelayConfig::paper());
        let mut unsealer = Unsealer::new([7; 32]);
        for sent in row.world.logged() {
            unsealer.unseal(&sent.frame, &mut Vec::new());
        }
        row.events.clear();
        Liar { row, unsealer }
    }

    /// The next frame of the first station, with its body in clear.
    fn next(&mut self) -> (Vec<u8>, Vec<u8>) {
        self.row.put(0, &datagram(0, 2, 64, b"what it really says"));
        let frame = loop {
            self.row.now += ms(1);
            let now = self.row.now;
            let sent = self.row[0].poll_transmit(now);
            let sent = sent.map(|transmit| (transmit.to, transmit.frame.to_vec()));
            if let Some((Destination::Station(_), frame)) = sent {
                break frame;
            }
        };
        let mut clear = Vec::new();
        self.unsealer.unseal(&frame, &mut clear).expect("it has greeted");
        let body = clear[HEADER_LEN..clear.len() - TAG_LEN].to_vec();
        (frame, body)
    }

    /// The outcome at the second station for the next frame with such a body.
    fn tell(&mut self, lie: impl FnOnce(Vec<u8>) -> Vec<u8>) -> FrameOutcome {
        let (frame, body) = self.next();
        let frame = self.unsealer.reseal(&frame, &lie(body)).expect("it has greeted");
        self.row.hear(1, &frame)
    }

    /// The second station counts such a frame as malformed, and it has no other effect.
    fn is_refused(&mut self, what: &str, lie: impl FnOnce(Vec<u8>) -> Vec<u8>) {
        let at_rest = |row: &Bed<Air>| {
            let (stats, view) = (row[1].stats(), view(row, 1));
            (stats.frames_accepted, stats.packets_delivered, view.queue.packets, view.neighbours)
        };
        let (before, counted) = (at_rest(&self.row), counters_of(&self.row, 1));
        let outcome = self.tell(lie);
        assert_eq!(outcome, FrameOutcome::Rejected(Rejection::NotForUs), "{what}");
        assert_eq!(at_rest(&self.row), before, "{what}");
        let malformed = counted.relay_frames_malformed + 1;
        let expected = RelayCounters { relay_frames_malformed: malformed, ..counted };
        assert_eq!(counters_of(&self.row, 1), expected, "{what}");
        self.row.run(ms(60));
        assert!(self.row.delivered.iter().all(Vec::is_empty), "{what}");
    }
}

/// The body of a relay frame for the second station, or for `to`.
fn body(to: Option<u16>, frame: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    Kind::Relayed.begin_last(&mut body);
    Relayed { to: to.map(StationId), frame }.write(&mut body);
    body
}

fn plain(packet: &[u8]) -> Vec<u8> {
    Frame::Plain { counter: 9, ttl: 9, asks: false, packet }.to_bytes()
}

#[test]
fn bodies_that_lie_are_malformed() {
    let mut liar = Liar::new();
    let packet = datagram(0, 2, 64, b"a lie");
    let part = |to, len_bytes, id| Part { to: NodeId(to), ttl: 3, len_bytes, id: PacketId(id) };
    let coded = |parts| Frame::Coded { counter: 9, parts, asks: false, xored: &[7; 60] }.to_bytes();
    let entry = |id, failed| NeighbourReport { node: NodeId(id), heard: 9, coded: 1, failed };
    let announcement = |entries| Frame::Announcement { counter: 9, entries }.to_bytes();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("padding alone", vec![0; 40]),
        ("a packet for all", body(None, &plain(&packet))),
        ("a coded one for all", body(None, &coded([part(2, 60, 1), part(3, 60, 2)]))),
        ("an announcement for one", body(Some(2), &announcement(vec![entry(1, 0)]))),
        ("padding that says something", [&body(Some(2), &plain(&packet))[..], b"!"].concat()),
        ("of no kind", body(Some(2), &[9; 30])),
        ("no packet", body(Some(2), &plain(&[]))),
        ("no hops", body(Some(2), &[1, 0, 0, 0, 9, 0, 0, 7, 7])),
        ("cut", body(Some(2), &plain(&packet)[..6])),
        ("a longer packet than there is", body(Some(2), &coded([part(2, 61, 1), part(3, 9, 2)]))),
        ("both for one", body(Some(2), &coded([part(2, 60, 1), part(2, 60, 2)]))),
        ("one packet twice", body(Some(2), &coded([part(2, 60, 1), part(3, 60, 1)]))),
        ("more failures than frames", body(None, &announcement(vec![entry(1, 2)]))),
        ("out of order", body(None, &announcement(vec![entry(2, 0), entry(1, 0)]))),
    ];
    for (what, body) in cases {
        liar.is_refused(what, |_| body);
    }
    let longer = |mut body: Vec<u8>| {
        body[3] ^= 0x40;
        body
    };
    liar.is_refused("a longer frame than there is", longer);
    // With its own body the same frame is accepted.
    let taken = liar.tell(|body| body);
    assert_eq!(taken, FrameOutcome::Accepted { from: StationId(1) });
    liar.row.run(ms(100));
    assert_eq!(liar.row.delivered[2].len(), 1);
}

/// A packet for another next hop is overheard, whatever the frame's link address.
#[test]
fn a_packet_is_taken_by_its_next_hop_alone() {
    let mut liar = Liar::new();
    let packet = datagram(0, 2, 64, b"for another");
    let before = counters_of(&liar.row, 1).relay_frames_overheard;
    let outcome = liar.tell(|_| body(Some(3), &plain(&packet)));
    assert_eq!(outcome, FrameOutcome::Accepted { from: StationId(1) });
    liar.row.run(ms(60));
    assert_eq!(counters_of(&liar.row, 1).relay_frames_overheard, before + 1);
    assert!(liar.row.delivered.iter().all(Vec::is_empty));
}

/// Nodes have the same numbers as stations, except for 0, which no station has.
#[test]
fn a_node_that_is_no_station_is_seen_as_none() {
    let mut liar = Liar::new();
    let entry = |id| NeighbourReport { node: NodeId(id), heard: 255, coded: 0, failed: 0 };
    let entries = [0, 2, 258, u16::MAX].map(entry).to_vec();
    let announcement = Frame::Announcement { counter: 9, entries }.to_bytes();
    let outcome = liar.tell(|_| body(None, &announcement));
    assert_eq!(outcome, FrameOutcome::Accepted { from: StationId(1) });
    let view = view(&liar.row, 1);
    let liar = view.neighbours.iter().find(|it| it.id == StationId(1)).expect("a neighbour");
    assert_eq!(liar.hears, [2, 258, u16::MAX].map(|id| (StationId(id), 1.0)));
}
