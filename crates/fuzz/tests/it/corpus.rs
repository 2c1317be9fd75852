//! Replay of the checked-in corpus: inputs that `cargo fuzz` found to reach different code (those
//! of `headers`, `clamp`, `relay`, `sealed`, `keys`, `gate`, `tags` and `parts` are random), and
//! any that once made a target fail.

use std::fs;
use std::path::Path;

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no corpus");
    for path in &paths {
        println!("{}", path.display());
        run(&fs::read(path).unwrap());
    }
}

#[test]
fn block() {
    replay("block", corridor_fuzz::block);
}

#[test]
fn clamp() {
    replay("clamp", |data| {
        corridor_fuzz::clamp(data);
    });
}

#[test]
fn gate() {
    replay("gate", corridor_fuzz::gate);
}

#[test]
fn headers() {
    replay("headers", corridor_fuzz::headers);
}

#[test]
fn keys() {
    replay("keys", |data| {
        corridor_fuzz::keys(data);
    });
}

#[test]
fn parts() {
    replay("parts", |data| {
        corridor_fuzz::parts(data);
    });
}

#[test]
fn relay() {
    replay("relay", corridor_fuzz::relay);
}

#[test]
fn sealed() {
    replay("sealed", corridor_fuzz::sealed);
}

#[test]
fn tags() {
    replay("tags", corridor_fuzz::tags);
}

#[test]
fn wire() {
    replay("wire", corridor_fuzz::wire);
}

#[test]
fn window() {
    replay("window", corridor_fuzz::window);
}
