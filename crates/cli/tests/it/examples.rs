//! The node files under `examples/` are valid.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

#[test]
fn every_example_passes_check_config() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut checked = 0;
    let entries = fs::read_dir(examples).expect("examples").map(|entry| entry.expect("entry"));
    // Notebooks are beside the directories of configuration files.
    for group in entries.filter(|entry| entry.path().is_dir()) {
        let place = tempfile::tempdir().expect("temporary directory");
        let key = place.path().join("corridor.key");
        fs::write(&key, "5a".repeat(32)).expect("key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("permissions");
        let own = place.path().join("own.key");
        fs::write(&own, &*corridor_node::generate_key().expect("a key")).expect("key");
        fs::set_permissions(&own, fs::Permissions::from_mode(0o600)).expect("permissions");
        for file in fs::read_dir(group.path()).expect("group") {
            let file = file.expect("entry");
            let text = fs::read_to_string(file.path()).expect("text");
            if !text.contains("[station]") {
                continue;
            }
            let copy = place.path().join(file.file_name());
            fs::copy(file.path(), &copy).expect("copy");
            let checked_file = Command::new(env!("CARGO_BIN_EXE_corridor"))
                .arg("check-config")
                .arg(&copy)
                .output()
                .expect("corridor starts");
            let said = String::from_utf8_lossy(&checked_file.stderr);
            assert!(checked_file.status.success(), "{}: {said}", file.path().display());
            assert_eq!(said, "", "{}: a warning", file.path().display());
            checked += 1;
        }
    }
    assert_eq!(checked, 13);
}
