//! `include/corridor_codec.h` is cbindgen's output for the crate. With `CORRIDOR_BLESS=1`, the test
//! rewrites it.

use std::fs;
use std::path::Path;

const PREAMBLE: &str = "\
/* C interface of corridor-codec: random linear network coding of blocks and of a sliding window.
 *
 * Generated from crates/capi; do not edit. To renew it:
 *   CORRIDOR_BLESS=1 cargo test -p corridor-capi --test it header
 *
 * A handle comes from the _new function of its type and is valid until passed to _free; one
 * thread uses it at a time. A pointer with a length points to that many bytes that overlap no
 * other argument, and may be null if the length is zero. After an error nothing has changed.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */";

fn generate() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let config = cbindgen::Config {
        language: cbindgen::Language::C,
        header: Some(PREAMBLE.into()),
        include_guard: Some("CORRIDOR_CODEC_H".into()),
        cpp_compat: true,
        usize_is_size_t: true,
        documentation_style: cbindgen::DocumentationStyle::C99,
        line_length: 100,
        enumeration: cbindgen::EnumConfig {
            rename_variants: cbindgen::RenameRule::QualifiedScreamingSnakeCase,
            ..Default::default()
        },
        ..Default::default()
    };
    let files = ["status.rs", "lib.rs", "block.rs", "window.rs", "batch.rs"];
    let builder = files
        .iter()
        .fold(cbindgen::Builder::new(), |builder, file| builder.with_src(folder.join(file)));
    let mut header = Vec::new();
    builder.with_config(config).generate().unwrap().write(&mut header);
    // In C, the safety sections would only repeat the preamble.
    let header = String::from_utf8(header).unwrap();
    let mut lines = Vec::new();
    let mut in_safety = false;
    for line in header.lines() {
        in_safety = line.starts_with("// # Safety") || in_safety && line.starts_with("//");
        if in_safety {
            if lines.last() == Some(&"//") {
                lines.pop();
            }
        } else {
            lines.push(line.trim_end());
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_header_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/corridor_codec.h");
    let generated = generate();
    if std::env::var_os("CORRIDOR_BLESS").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let checked_in = fs::read_to_string(&path).unwrap_or_default();
    assert!(checked_in == generated, "stale: CORRIDOR_BLESS=1 cargo test -p corridor-capi");
}
