//! Runs tshark, and reads and writes its files.

use std::fs;
use std::path::Path;
use std::process::Command;

use corridor_proto::Field;

pub const LINKTYPE_ETHERNET: u32 = 1;

/// A packet in a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub at_ns: u64,
    /// The bytes that were kept.
    pub bytes: Vec<u8>,
    /// Its length on the wire.
    pub len_bytes: usize,
}

/// tshark's output for a file, with the shipped dissector and default preferences; `None` if tshark
/// is not installed.
pub fn tshark(file: &Path, arguments: &[&str]) -> Option<String> {
    let dissector =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../share/wireshark/corridor.lua");
    let home = tempfile::tempdir().expect("a place");
    let output = Command::new("tshark")
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", home.path())
        .arg("-X")
        .arg(format!("lua_script:{}", dissector.display()))
        .arg("-r")
        .arg(file)
        .args(arguments)
        .output();
    let Ok(output) = output else {
        println!("absent: tshark");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("Lua:"), "{said}");
    Some(String::from_utf8(output.stdout).expect("text"))
}

/// Writes a pcap file with times in nanoseconds.
pub fn write_pcap(file: &Path, link_type: u32, packets: &[Recorded]) {
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 1 << 18, link_type] {
        bytes.extend_from_slice(&u32::to_le_bytes(word));
    }
    for packet in packets {
        let (seconds, ns) = (packet.at_ns / 1_000_000_000, packet.at_ns % 1_000_000_000);
        let lengths = [packet.bytes.len(), packet.len_bytes];
        for word in [seconds as u32, ns as u32, lengths[0] as u32, lengths[1] as u32] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&packet.bytes);
    }
    fs::write(file, bytes).expect("a file");
}

/// The packets of a pcapng file.
pub fn packets_of(mut file: &[u8]) -> Vec<Recorded> {
    let mut packets = Vec::new();
    while !file.is_empty() {
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four"));
        let len = word(4) as usize;
        if word(0) == 6 {
            let kept = word(20) as usize;
            packets.push(Recorded {
                at_ns: u64::from(word(12)) << 32 | u64::from(word(16)),
                bytes: file[28..28 + kept].to_vec(),
                len_bytes: word(24) as usize,
            });
        }
        file = &file[len..];
    }
    packets
}

/// Ethernet header and capture header of an unsealed frame from station 1 to station 2.
pub fn unsealed(field: Field, block_size: u16) -> Vec<u8> {
    let bits = match field {
        Field::Gf2 => 1,
        Field::Gf16 => 4,
        Field::Gf256 => 8,
    };
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb6];
    bytes.extend_from_slice(b"CorC\x02\x00\x1b\x01\x00\x01\x00\x02\x00\x00");
    bytes.push(bits);
    bytes.extend_from_slice(&block_size.to_be_bytes());
    bytes.extend_from_slice(&[0; 10]);
    bytes
}
