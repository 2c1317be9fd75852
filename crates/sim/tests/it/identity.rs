//! Which changes of the sources change the hash that identifies results.

#[path = "../../build/identity.rs"]
mod of_sources;

use std::fs;
use std::path::Path;

use of_sources::{CRATES, Identity};

const SOURCE: &str = r#"
pub fn halved(value: u64) -> u64 {
    value >> 1
}
"#;

fn identity(source: &str) -> Identity {
    let mut identity = Identity::new();
    identity.add("lib.rs", source.as_bytes());
    identity
}

#[test]
fn comments_and_spaces_leave_results_what_they_are() {
    for alike in [
        "pub fn halved(value: u64)->u64{value >> 1}",
        "//! A file.\n\n/// Half.\npub fn halved(value: u64) -> u64 {\n    // By a shift.\n    value >> 1\n}",
        "/* Of /* several */ lines. */\n/** Half. */\npub fn halved(value: u64) -> u64 { value >> 1 /* bit */ }",
        "#![doc = \"A file.\"]\n#[doc(hidden)]\npub fn halved(value: u64) -> u64 { value >> 1 }",
    ] {
        assert_eq!(identity(alike), identity(SOURCE), "{alike}");
    }
}

#[test]
fn any_change_of_code_makes_results_others() {
    for other in [
        "pub fn halved(value: u64) -> u64 { value >> 2 }",
        "pub fn halved(value: u64) -> u64 { value << 1 }",
        "pub fn halved(value: u64) -> u64 { value > > 1 }",
        "pub fn halved(value: u64) -> u64 { (value >> 1) }",
        "pub fn halved(value: u64) -> u64 [ value >> 1 ]",
        "pub fn halve(value: u64) -> u64 { value >> 1 }",
        "fn halved(value: u64) -> u64 { value >> 1 }",
        "#[inline]\npub fn halved(value: u64) -> u64 { value >> 1 }",
        "pub fn halved(value: u64) -> u64 { value >> 1 } // and\nconst ONE: u8 = 1;",
        "// pub fn halved(value: u64) -> u64 { value >> 1 }",
        "pub fn halved(value: u64) -> u64 { \"// value\"; value >> 1 }",
        "pub fn halved(value: u64) -> u64 { value >> 1",
    ] {
        assert_ne!(identity(other), identity(SOURCE), "{other}");
    }
    assert_ne!(identity("\"// one\""), identity("\"// two\""), "strings are no comments");
    assert_ne!(identity("{ // one"), identity("{ // two"), "what is no Rust counts as it is");
}

/// Tables count entirely, and so do file names.
#[test]
fn names_and_other_files_count_whole() {
    let of = |name: &str, bytes: &[u8]| {
        let mut identity = Identity::new();
        identity.add(name, bytes);
        identity
    };
    assert_ne!(of("table.txt", b"1 // one"), of("table.txt", b"1 // two"));
    assert_ne!(of("a.rs", b"const A: u8 = 1;"), of("b.rs", b"const A: u8 = 1;"));
    let mut both = of("a.rs", b"const A: u8 = 1;");
    both.add("b.rs", b"");
    assert_ne!(both, of("a.rs", b"const A: u8 = 1;"));
}

#[test]
fn groups_and_names_like_their_ends_differ() {
    assert_ne!(identity("m! {(a end b)}"), identity("m! {(a) b end}"));
}

#[test]
fn lines_may_end_as_on_any_system() {
    let lines = "const LINES: &str = \"a\nb\";\n";
    assert_eq!(identity(&lines.replace('\n', "\r\n")), identity(lines));
}

#[test]
fn this_build_is_known_by_these_sources() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(Identity::of(here, &CRATES).digits(), corridor_sim::CODE_VERSION);
    assert_ne!(Identity::of(here, &CRATES[1..]), Identity::of(here, &CRATES));
}

/// Our crates that a listed crate depends on are listed too.
#[test]
fn all_crates_that_results_depend_on_count() {
    for name in CRATES {
        let path = format!("{}/../{name}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
        let manifest = fs::read_to_string(path).unwrap();
        let own = manifest.split("[dependencies]\n").nth(1).unwrap_or_default();
        for line in own.lines().take_while(|line| !line.starts_with('[')) {
            if let Some(rest) = line.strip_prefix("corridor-") {
                let other = rest.split([' ', '.', '=']).next().unwrap();
                assert!(CRATES.contains(&other), "{name} depends on {other}");
            }
        }
    }
}

#[test]
fn the_simulator_says_which_it_is() {
    let built = corridor_sim::CODE_VERSION;
    assert_eq!(built.len(), Identity::new().digits().len());
    assert!(built.bytes().all(|digit| digit.is_ascii_hexdigit()), "{built}");
}
