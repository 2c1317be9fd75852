//! The C example is compiled with all warnings, linked with the static library, and run.

use std::path::{Path, PathBuf};
use std::process::Command;

fn compiler() -> Option<String> {
    let named = std::env::var("CC").ok();
    let candidates = named.into_iter().chain(["cc", "gcc", "clang"].map(String::from));
    let works = |name: &String| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    candidates.into_iter().find(works)
}

/// Cargo builds it next to the tests.
fn static_library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    [folder.join("libcorridor_capi.a"), folder.join("../libcorridor_capi.a")]
        .into_iter()
        .find(|path| path.exists())
        .expect("libcorridor_capi.a beside the tests")
}

#[test]
fn block_c_runs() {
    if !cfg!(target_os = "linux") {
        println!("skipped: the libraries to link are those of Linux");
        return;
    }
    let Some(compiler) = compiler() else {
        println!("skipped: no C compiler");
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("block");
    let output = Command::new(&compiler)
        .args(["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .arg(root.join("include"))
        .arg(root.join("examples/block.c"))
        .arg(static_library())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(&program).output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("block: 16 symbols, 4 lost, 4 coded symbols\n"), "{out}");
    assert!(out.contains("window: 1000 of 1000 symbols delivered\n"), "{out}");
}

/// C++ reads the header as well.
#[test]
fn the_header_is_cpp_too() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/corridor_codec.h");
    let result = Command::new("c++")
        .args(["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
        .arg(header)
        .output();
    match result {
        Err(_) => println!("skipped: no C++ compiler"),
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
