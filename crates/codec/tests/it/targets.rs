//! The crate works without std: it is compiled for every available target, including some without
//! an operating system, its NEON kernels run under emulation, and part of its tests under Miri,
//! where these are available.
//!
//! Missing tools are skipped with a message. To install them:

use std::path::Path;
use std::process::{Command, Output};

/// Those without std first.
const TARGETS: [&str; 6] = [
    "thumbv7em-none-eabihf",
    "riscv32imac-unknown-none-elf",
    "wasm32-unknown-unknown",
    "aarch64-unknown-linux-gnu",
    "armv7-unknown-linux-gnueabihf",
    "mips-unknown-linux-musl",
];

/// The crate's folder, with a separate target directory: the one in use is locked.
fn command(program: &str, arguments: &[&str]) -> Option<Output> {
    Command::new(program)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("targets"))
        // The settings of this test's own cargo are for its own toolchain and target.
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO")
        .output()
        .ok()
}

#[test]
fn the_crate_says_that_it_has_no_std() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let root = std::fs::read_to_string(root).unwrap();
    let has = |wanted: &str| root.lines().any(|line| line == wanted);
    assert!(has("#![no_std]") || has("#![cfg_attr(not(feature = \"std\"), no_std)]"));
}

#[test]
fn it_compiles_for_every_target_at_hand() {
    let installed = command("rustup", &["target", "list", "--installed"]);
    let Some(installed) = installed.filter(|output| output.status.success()) else {
        println!("absent: no rustup to ask for targets");
        return;
    };
    let installed = String::from_utf8_lossy(&installed.stdout).into_owned();
    let at_hand = |target: &&str| installed.lines().any(|line| line == *target);
    for target in TARGETS.iter().filter(|target| !at_hand(target)) {
        println!("absent: {target} is not installed");
    }
    for target in TARGETS.iter().filter(|target| at_hand(target)) {
        let arguments =
            ["check", "--offline", "--lib", "--no-default-features", "--target", target];
        let output = command("cargo", &arguments).expect("cargo");
        let text = String::from_utf8_lossy(&output.stderr);
        // Without a registry, nothing can be said about the crate.
        if text.contains("you may use `--offline`") || text.contains("--offline was specified") {
            println!("absent: {target} needs a crate that is not downloaded");
            continue;
        }
        assert!(output.status.success(), "{target}: {text}");
        println!("compiles: {target}");
    }
}

/// The NEON kernels, and the block coders built on them, compared with the naive method.
#[test]
fn neon_agrees_with_the_schoolbook_under_emulation() {
    const TARGET: &str = "aarch64-unknown-linux-musl";
    if cfg!(target_arch = "aarch64") {
        println!("skipped: the unit tests of this machine are those of NEON");
        return;
    }
    if Command::new("qemu-aarch64").arg("--version").output().is_err() {
        println!("absent: no qemu-aarch64");
        return;
    }
    let installed = command("rustup", &["target", "list", "--installed"]);
    if !installed.is_some_and(|list| String::from_utf8_lossy(&list.stdout).contains(TARGET)) {
        println!("absent: {TARGET} is not installed");
        return;
    }
    let settings = [
        "target.aarch64-unknown-linux-musl.linker = 'rust-lld'",
        "target.aarch64-unknown-linux-musl.runner = 'qemu-aarch64'",
    ];
    let mut arguments = vec!["test", "--offline", "--lib", "--release", "--target", TARGET];
    settings.iter().for_each(|setting| arguments.extend(["--config", setting]));
    arguments.extend(["--", "--nocapture", "schoolbook", "twin_tests::a_block"]);
    let output = command("cargo", &arguments).expect("cargo");
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    if text[1].contains("you may use `--offline`") || text[1].contains("--offline was specified") {
        println!("absent: the tests need a crate that is not downloaded");
        return;
    }
    assert!(output.status.success(), "{text:?}");
    assert!(!text.concat().contains("no neon"), "NEON was not detected");
    let result = text[0].lines().find(|line| line.starts_with("test result"));
    assert!(result.is_some_and(|line| !line.contains(" 0 passed")), "nothing ran: {text:?}");
    println!("by NEON: {}", result.unwrap_or_default());
}

/// The window coder, the generator, block and window coders in lent memory, and all unsafe code in
/// the C interface; a selection, because Miri takes a thousand times as long.
#[test]
fn miri_finds_nothing() {
    if std::env::var_os("CORRIDOR_MIRI").is_none() {
        println!("absent: takes minutes; CORRIDOR_MIRI=1 runs it");
        return;
    }
    let version = command("cargo", &["+nightly", "miri", "--version"]);
    if !version.is_some_and(|output| output.status.success()) {
        println!("absent: no Miri");
        return;
    }
    let runs = [
        &["--lib", "--", "rfc_", "window"][..],
        &["--test", "it", "misuse::", "--", "storage::"],
        &["-p", "corridor-capi", "--lib", "--test", "it", "interface::"],
    ];
    for arguments in runs {
        let arguments = [&["+nightly", "miri", "test"], arguments].concat();
        let output = command("cargo", &arguments).expect("cargo");
        let text = String::from_utf8_lossy(&output.stderr);
        if text.contains("failed to download") || text.contains("Could not resolve") {
            println!("absent: Miri has no standard library to work with");
            return;
        }
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stdout));
    }
}
