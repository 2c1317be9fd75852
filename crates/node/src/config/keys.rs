//! What a configuration file may hold: every table, every key, and what is expected of it.
//!
//! Serde decides what is accepted; this list lets an error say what would have been, and which
//! name was probably meant. A test holds the two together.

/// A table of the file.
pub(super) struct Table {
    /// Its dotted name, without the indices of arrays of tables.
    pub(super) name: &'static str,
    /// Its keys.
    pub(super) keys: &'static [Key],
}

/// A key of a table.
pub(super) struct Key {
    /// Its name.
    pub(super) name: &'static str,
    /// Whether the table must have it.
    pub(super) required: bool,
    /// What its value should be, in words that follow "expected".
    pub(super) expected: &'static str,
    /// The words it may be, where it is one of a few.
    pub(super) words: &'static [&'static str],
}

const fn key(name: &'static str, expected: &'static str) -> Key {
    Key { name, required: false, expected, words: &[] }
}

const fn must(name: &'static str, expected: &'static str) -> Key {
    Key { name, required: true, expected, words: &[] }
}

const fn word(name: &'static str, expected: &'static str, words: &'static [&'static str]) -> Key {
    Key { name, required: false, expected, words }
}

const fn must_word(
    name: &'static str,
    expected: &'static str,
    words: &'static [&'static str],
) -> Key {
    Key { name, required: true, expected, words }
}

const ROLES: &[&str] = &["endpoint", "helper", "plain"];
const ROLES_EXPECTED: &str = "\"endpoint\", \"helper\" or \"plain\"";
const ID_EXPECTED: &str = "a station number from 1 to 254";
const NAME_EXPECTED: &str = "an interface name of 1 to 15 characters";
const RATIO_EXPECTED: &str = "an erasure ratio from 0 to 0.99";

/// All there is.
pub(super) const TABLES: &[Table] = &[
    Table {
        name: "",
        keys: &[
            must("station", "a table: [station]"),
            must("security", "a table: [security]"),
            must("underlay", "a table: [underlay]"),
            must("peer", "one table for each peer: [[peer]]"),
            key("tun", "a table: [tun]"),
            key("coding", "a table: [coding]"),
            key("link_errors", "a table: [link_errors]"),
            key("synthetic_loss", "a table: [synthetic_loss]"),
            key("limits", "a table: [limits]"),
        ],
    },
    Table {
        name: "station",
        keys: &[must("id", ID_EXPECTED), must_word("role", ROLES_EXPECTED, ROLES)],
    },
    Table {
        name: "security",
        keys: &[
            key("psk", "64 hexadecimal digits"),
            key("psk_file", "the path of a file with 64 hexadecimal digits"),
        ],
    },
    Table {
        name: "tun",
        keys: &[
            key("name", NAME_EXPECTED),
            key("addresses", "addresses with prefix, as [\"10.9.0.1/24\", \"fd00:9::1/64\"]"),
            key("routes", "networks with prefix, as [\"10.8.0.0/16\"]"),
            key("mtu", "a number of bytes from 68 to the tunnel's MTU"),
            key("offload", "true or false"),
        ],
    },
    Table {
        name: "underlay",
        keys: &[
            must_word("kind", "\"ethernet\" or \"udp\"", &["ethernet", "udp"]),
            key("interface", NAME_EXPECTED),
            key("ethertype", "an Ethernet protocol number from 0x600 to 0xffff"),
            key("qdisc_bypass", "true or false"),
            key("listen", "an address and port, as \"0.0.0.0:4242\" or \"[::]:4242\""),
            key("mtu", "the longest IP packet of the underlay, 576 to 9216 bytes"),
            key("rate_bps", "at least 1000 bit/s"),
        ],
    },
    Table {
        name: "peer",
        keys: &[
            must("id", ID_EXPECTED),
            must_word("role", ROLES_EXPECTED, ROLES),
            key("mac", "an Ethernet address of one station, as \"02:00:00:00:00:02\""),
            key("endpoint", "an address and port, as \"192.0.2.1:4242\" or \"[2001:db8::1]:4242\""),
        ],
    },
    Table {
        name: "coding",
        keys: &[
            word(
                "preset",
                "\"paper\", \"default\", \"window\" or \"tcp-nc\"",
                &["paper", "default", "window", "tcp-nc"],
            ),
            key("window_size", "a number of symbols"),
            word("goal", "\"throughput\" or \"low-delay\"", &["throughput", "low-delay"]),
            word(
                "delivery",
                "\"auto\", \"in-order\" or \"immediate\"",
                &["auto", "in-order", "immediate"],
            ),
            key("half_duplex", "true, false or \"auto\""),
            key("clamp_windows", "true or false"),
            key("redundancy", "a factor from 1 to 10"),
            key("adaptive", "true or false"),
            word("field", "\"gf2\", \"gf16\" or \"gf256\"", &["gf2", "gf16", "gf256"]),
            word(
                "order",
                "\"systematic\", \"dense\" or \"on-the-fly\"",
                &["systematic", "dense", "on-the-fly"],
            ),
            key("block_size", "a number of symbols"),
            key("symbol_size", "a number of bytes"),
            key("encoder_timeout_ms", "a number of milliseconds"),
            key("overshoot", "a factor from 1 to 10"),
            word("policy", "\"playncool\" or \"credit\"", &["playncool", "credit"]),
            key("blocks_in_flight", "a number of blocks"),
            key("delivery_deadline_ms", "a number of milliseconds"),
            key("ack_interval_ms", "a number of milliseconds"),
        ],
    },
    Table {
        name: "link_errors",
        keys: &[
            word("mode", "\"measured\" or \"fixed\"", &["measured", "fixed"]),
            key("e1", RATIO_EXPECTED),
            key("e2", RATIO_EXPECTED),
            key("e3", RATIO_EXPECTED),
        ],
    },
    Table {
        name: "synthetic_loss",
        keys: &[
            key("seed", "a whole number, 0 or more"),
            key("link", "one table for each link: [[synthetic_loss.link]]"),
        ],
    },
    Table {
        name: "synthetic_loss.link",
        keys: &[must("from", "the number of a peer"), must("ratio", "a loss ratio from 0 to 1")],
    },
    Table { name: "limits", keys: &[key("ingress_packets", "a number of packets")] },
];

/// The table of this name.
pub(super) fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

/// The key of this dotted path, indices left out.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    table(parent)?.keys.iter().find(|key| key.name == name)
}
