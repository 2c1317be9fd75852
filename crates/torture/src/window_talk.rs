//! TCP connections whose SYNs are seen, so that their windows may be clamped, and what a station
//! may do with their windows. Written from the specification, independently of the code under test.

use super::window_packet::{TCP, ones_sum};

/// Connections of a pair of hosts: one over IPv4, one over IPv6.
const TALKS: usize = 2;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
const TCP_LEN: usize = 20;
/// Offsets in TCP's header of the window, the checksum, and what follows.
const WINDOW_AT: usize = 14;
const CHECKSUM_AT: usize = 16;
const CHECKSUM_END: usize = 18;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
/// Last bytes of the connections' addresses, by end of the pair.
const HOSTS: [u8; 2] = [21, 22];
/// Their MSS as bytes; a multiple of 256.
const MSS: [u8; 2] = [2, 0];

/// The connections between the hosts of a pair.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Talks([Talk; TALKS]);

/// A connection: the next sequence number of each host, and whether it has begun.
#[derive(Clone, Copy, Debug, Default)]
struct Talk {
    next: [u32; 2],
    begun: [bool; 2],
}

impl Talks {
    /// Whether a packet should belong to these connections: some always do, sometimes many in a
    /// row; or nearly all.
    pub(super) fn has(number: u32, nearly_all: bool) -> bool {
        matches!(number % 8, 1 | 2 | 6)
            || number >> 5 & 3 == 3
            || nearly_all && !number.is_multiple_of(16)
    }

    /// Fills a packet of the host at this end with the next segment, if it has room for headers and
    /// number. Hosts do not receive here; each answer is made from what is known to have been sent.
    pub(super) fn fill(&mut self, end: usize, number: u32, packet: &mut [u8]) -> bool {
        let dice = number.wrapping_mul(0x9e37_79b1);
        let v6 = number >> 6 & 1;
        let talk = &mut self.0[v6 as usize];
        if end == 0 && dice.is_multiple_of(97) {
            talk.begun = [false; 2]; // A new connection between the same ports.
        }
        let begins = !talk.begun[end];
        if begins && end == 1 && !talk.begun[0] {
            return false;
        }
        let options = options(begins, dice);
        let ip = if v6 == 1 { IPV6_LEN } else { IPV4_LEN };
        let data = ip + TCP_LEN + options.len();
        if packet.len() < data + 4 {
            return false;
        }
        if begins {
            talk.begun[end] = true;
            talk.next[end] = 0u32.wrapping_sub(dice % 3_000); // The sequence number wraps soon.
        }
        let again = if dice >> 8 & 15 == 0 { 300 } else { 0 };
        let overtaken = if dice >> 12 & 7 == 0 { dice % 2_000 } else { 0 };
        let sequence = if begins { talk.next[end] } else { talk.next[end].wrapping_sub(again) };
        if begins || again == 0 {
            let len = (packet.len() - data) as u32 + u32::from(begins);
            talk.next[end] = sequence.wrapping_add(len);
        }
        let ack = talk.next[1 - end].wrapping_sub(if begins { 0 } else { overtaken });
        let (header, payload) = packet.split_at_mut(data);
        payload[..4].copy_from_slice(&number.to_be_bytes());
        let tcp = &mut header[ip..];
        let ports = [[41, v6 as u8], [0, 81]];
        tcp[..2].copy_from_slice(&ports[end]);
        tcp[2..4].copy_from_slice(&ports[1 - end]);
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        tcp[8..12].copy_from_slice(&ack.to_be_bytes());
        tcp[12] = ((TCP_LEN + options.len()) as u8 / 4) << 4;
        tcp[13] = if begins { SYN } else { 0 } | if begins && end == 0 { 0 } else { ACK };
        tcp[WINDOW_AT..CHECKSUM_AT].copy_from_slice(&[(dice >> 16) as u8, dice as u8]);
        tcp[CHECKSUM_AT..CHECKSUM_END].copy_from_slice(&(number as u16).to_be_bytes());
        tcp[TCP_LEN..].copy_from_slice(&options);
        write_ip(end, v6 == 1, packet);
        true
    }
}

/// Options of a SYN, or of other segments.
fn options(begins: bool, dice: u32) -> Vec<u8> {
    match (begins, dice >> 29 & 1) {
        (true, _) => vec![2, 4, MSS[0], MSS[1], 1, 3, 3, (dice >> 4) as u8 % 15],
        (false, 0) => Vec::new(),
        (false, _) => {
            let [_, a, b, c] = (dice / 64).to_be_bytes();
            vec![1, 1, 8, 10, 0, a, b, c, 0, a, b, c]
        }
    }
}

/// Both IP versions may be ECN-capable.
fn write_ip(end: usize, v6: bool, packet: &mut [u8]) {
    let (from, to) = (HOSTS[end], HOSTS[1 - end]);
    if v6 {
        let len = ((packet.len() - IPV6_LEN) as u16).to_be_bytes();
        packet[..8].copy_from_slice(&[0x60, 0x20, 0, 0, len[0], len[1], TCP, 64]);
        (packet[8], packet[23], packet[24], packet[39]) = (0xfd, from, 0xfd, to);
        return;
    }
    let len = (packet.len() as u16).to_be_bytes();
    packet[..10].copy_from_slice(&[0x45, 2, len[0], len[1], 0, 0, 0x40, 0, 64, TCP]);
    packet[12..20].copy_from_slice(&[10, 0, 0, from, 10, 0, 0, to]);
    let sum = !ones_sum(&packet[..IPV4_LEN]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Where the TCP header begins in a packet of these connections.
fn tcp_at(packet: &[u8]) -> Option<usize> {
    let is_host = |at: usize| packet.get(at).is_some_and(|last| HOSTS.contains(last));
    let (at, protocol, [from, to]) = match packet.first()? {
        0x45 => (IPV4_LEN, 9, [15, 19]),
        0x60..0x70 => (IPV6_LEN, 6, [23, 39]),
        _ => return None,
    };
    let ours = packet.get(protocol) == Some(&TCP) && is_host(from) && is_host(to);
    (ours && packet.len() >= at + TCP_LEN).then_some(at)
}

/// The packet with its window blanked.
pub(super) fn unwindowed(mut packet: Vec<u8>) -> Vec<u8> {
    if let Some(at) = tcp_at(&packet) {
        packet[at + WINDOW_AT..at + CHECKSUM_END].fill(0);
    }
    packet
}

/// Whether a packet equals one that was sent, except for a shorter window, with a checksum that is
/// as right or wrong as before.
pub(super) fn is_clamped_copy(sent: &[u8], came: &[u8]) -> bool {
    let (Some(at), true) = (tcp_at(sent), unwindowed(sent.to_vec()) == unwindowed(came.to_vec()))
    else {
        return false;
    };
    let words = at + WINDOW_AT..at + CHECKSUM_END;
    let window = |packet: &[u8]| [packet[at + WINDOW_AT], packet[at + WINDOW_AT + 1]];
    let sum = |packet: &[u8]| ones_sum(&packet[words.clone()]) % 0xffff;
    sent[at + 13] & SYN == 0 && window(came) < window(sent) && sum(sent) == sum(came)
}

/// Whether a packet was not sent by a host, since it has no data: then it may be a window update
/// for the host at this end.
pub(super) fn is_bare(packet: &[u8]) -> bool {
    let Some(at) = tcp_at(packet) else { return false };
    packet.len() == at + 4 * usize::from(packet[at + 12] >> 4)
}

/// Whether a bare packet for the host at this end is valid.
pub(super) fn is_update(packet: &[u8], end: usize) -> bool {
    let Some(at) = tcp_at(packet) else { return false };
    let tcp = &packet[at..];
    let (addresses, to, sealed) = if at == IPV4_LEN {
        (&packet[12..20], packet[19], ones_sum(&packet[..IPV4_LEN]) == 0xffff)
    } else {
        (&packet[8..40], packet[39], true)
    };
    let pseudo = [addresses, &[0, TCP], &(tcp.len() as u16).to_be_bytes()].concat();
    let right = ones_sum(&[&pseudo, tcp].concat()) == 0xffff;
    sealed && right && to == HOSTS[end] && tcp[13] == ACK && matches!(tcp.len(), 20 | 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_shorter_window_with_its_checksum_is_a_copy() {
        let mut talks = Talks::default();
        let mut seen = 0;
        for number in 0..200 {
            let mut sent = vec![0; 120];
            if !talks.fill(number as usize % 2, number, &mut sent) {
                continue;
            }
            let at = tcp_at(&sent).expect("it is of ours");
            let is_syn = sent[at + 13] & SYN != 0;
            let window = u16::from_be_bytes([sent[at + 14], sent[at + 15]]);
            let checksum = u16::from_be_bytes([sent[at + 16], sent[at + 17]]);
            assert!(!is_clamped_copy(&sent, &sent) && !is_bare(&sent));
            if window < 3 {
                continue;
            }
            let with = |window: u16, checksum: u16| {
                let mut came = sent.clone();
                came[at + 14..at + 16].copy_from_slice(&window.to_be_bytes());
                came[at + 16..at + 18].copy_from_slice(&checksum.to_be_bytes());
                came
            };
            let (raised, carry) = checksum.overflowing_add(2);
            let raised = raised + u16::from(carry);
            assert_eq!(is_clamped_copy(&sent, &with(window - 2, raised)), !is_syn);
            assert!(!is_clamped_copy(&sent, &with(window - 2, raised ^ 1)));
            assert!(!is_clamped_copy(&sent, &with(window, raised)));
            let mut other = with(window - 2, raised);
            other[at + 5] ^= 1;
            assert!(!is_clamped_copy(&sent, &other));
            seen += 1;
        }
        assert!(seen > 50, "{seen}");
    }
}
