//! Packets sent through window mode's header compression, compared with the result of the
//! receiver's twin for the same bytes.

use corridor_proto::HeaderContexts;
use corridor_proto::packet::PacketRef;
use corridor_torture::HeaderTwin;

use crate::input::Input;

/// Maximum number of packets of one input.
const OPERATIONS_MAX: usize = 400;
/// Connections; those with odd numbers are IPv6.
const CONNECTIONS: usize = 5;
/// Longest packet that a difference may expand to: longer than any here.
const LEN_MAX: usize = 1_000;

/// Interprets `data` as packets of a host, and events at either end of the tunnel.
///
/// # Panics
/// If a packet comes out different from what went in, or from the twin's result; or if one is
/// missing although the receiver has received all before it.
pub fn headers(data: &[u8]) {
    let mut input = Input::new(data);
    let mut tunnel = Tunnel::default();
    let mut connections = [u32::MAX - 100; CONNECTIONS];
    let mut last = Vec::new();
    for _ in 0..OPERATIONS_MAX {
        if input.is_empty() {
            return;
        }
        match input.below(16) {
            0..11 => {
                last = segment(&mut connections, &mut input);
                tunnel.pass(&last);
            }
            11 => {
                let len = input.below(120);
                tunnel.pass(&input.vec(len));
            }
            12 => {
                let at = input.below(last.len().clamp(1, 80));
                last.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << input.below(8));
                tunnel.pass(&last);
            }
            13 => {
                let len = input.below(40);
                tunnel.hear(&input.vec(len), None);
            }
            14 => tunnel.forget(),
            _ => tunnel.sender.clear(),
        }
    }
}

#[derive(Default)]
struct Tunnel {
    sender: HeaderContexts,
    receiver: HeaderContexts,
    twin: HeaderTwin,
    /// The receiver may lack the packets that the sender's differences refer to.
    has_forgotten: bool,
    /// It received differences that the sender never made.
    is_poisoned: bool,
}

impl Tunnel {
    fn pass(&mut self, packet: &[u8]) {
        let mut difference = b"before it".to_vec();
        let start = difference.len();
        if self.sender.compress(PacketRef::read(packet), &mut difference) {
            assert!(difference.len() - start < packet.len(), "a difference is shorter");
            self.hear(&difference[start..], Some(packet));
            return;
        }
        assert_eq!(difference.len(), start, "nothing is left behind");
        self.sender.note_verbatim(PacketRef::read(packet));
        self.receiver.note_verbatim(PacketRef::read(packet));
        self.twin.verbatim(packet, 0);
    }

    /// The receiver receives a difference; `sent`: the packet that it stands for.
    fn hear(&mut self, difference: &[u8], sent: Option<&[u8]>) {
        let mut made = b"rest of another".to_vec();
        let came = self.receiver.expand(difference, LEN_MAX, &mut made).map(|()| made);
        let twin = self.twin.expand(difference).ok().map(|(packet, _)| packet);
        assert_eq!(came, twin);
        if let Some(packet) = &came {
            self.twin.note(difference, packet, 0);
        }
        self.is_poisoned |= sent.is_none() && came.is_some();
        if let Some(sent) = sent.filter(|_| !self.is_poisoned) {
            assert!(came.is_some() || self.has_forgotten, "all that it differs from was heard");
            assert!(came.is_none_or(|packet| packet == sent));
        }
    }

    /// The receiver skipped a symbol.
    fn forget(&mut self) {
        self.receiver.clear();
        self.twin = HeaderTwin::default();
        self.has_forgotten = true;
        self.is_poisoned = false;
    }
}

/// The next segment of some connection; each field may change.
fn segment(connections: &mut [u32; CONNECTIONS], input: &mut Input) -> Vec<u8> {
    let flow = input.below(CONNECTIONS);
    let changes = input.byte();
    let mut some = |bit: u8| if changes >> bit & 1 == 1 { input.u32() } else { 0 };
    let (ahead, ack, window, stamp, ident) = (some(0), some(1), some(2), some(3), some(4));
    let class = 4 * u8::from(changes >> 5 & 1 == 1);
    let options = [0, 12, 12, 4, 24][flow];
    let payload_len = input.below(60);
    let next = &mut connections[flow];
    let sequence =
        next.wrapping_add(ahead % 5_000).wrapping_sub(if ahead % 16 > 12 { 50 } else { 0 });
    *next = sequence.wrapping_add(payload_len as u32);
    let mut tcp = vec![0, flow as u8, 0, 80];
    tcp.extend_from_slice(&sequence.to_be_bytes());
    tcp.extend_from_slice(&ack.to_be_bytes());
    let flags = if changes >> 6 & 1 == 1 { input.byte() } else { 0x10 };
    tcp.extend_from_slice(&[(5 + options as u8 / 4) << 4, flags]);
    tcp.extend_from_slice(&(window as u16).to_be_bytes());
    tcp.extend_from_slice(&[input.byte(), 7, 0, 0]);
    let stamps = [&[1, 1, 8, 10][..], &stamp.to_be_bytes(), &(stamp / 3).to_be_bytes(), &[1; 12]];
    tcp.extend_from_slice(&stamps.concat()[..options]);
    tcp.resize(tcp.len() + payload_len, flow as u8);
    if flow.is_multiple_of(2) { ipv4(&tcp, class, ident as u16) } else { ipv6(&tcp, class) }
}

fn ipv4(tcp: &[u8], class: u8, ident: u16) -> Vec<u8> {
    let len = (20 + tcp.len() as u16).to_be_bytes();
    let [high, low] = ident.to_be_bytes();
    let mut header =
        [0x45, class, len[0], len[1], high, low, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let sum: u32 = header.chunks(2).map(|two| 256 * u32::from(two[0]) + u32::from(two[1])).sum();
    let sum = !((sum % 0x1_0000 + sum / 0x1_0000) as u16);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&header, tcp].concat()
}

fn ipv6(tcp: &[u8], class: u8) -> Vec<u8> {
    let len = (tcp.len() as u16).to_be_bytes();
    let mut header = vec![0x60 | class >> 4, class << 4, 0, 0, len[0], len[1], 6, 64];
    header.resize(40, 9);
    [&header, tcp].concat()
}
