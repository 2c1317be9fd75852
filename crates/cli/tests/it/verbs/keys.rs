//! The references of all keys match this binary. `UPDATE=1 cargo test` rewrites them.

use std::fs;

use super::{corridor, stdout, top};

#[test]
fn the_references_are_current() {
    for (words, file) in [
        (&["check-config", "--keys"][..], "docs/configuration.md"),
        (&["check-config", "--schema"], "share/corridor.schema.json"),
        (&["sim", "keys"], "docs/plans.md"),
        (&["results", "columns"], "docs/results.md"),
        (&["sim", "keys", "--schema"], "share/corridor-plan.schema.json"),
    ] {
        let path = top().join(file);
        let now = stdout(&corridor(&top(), words));
        assert!(now.len() > 1_000, "{words:?}");
        if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
            fs::write(&path, &now).expect(file);
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == now, "{file} is not current: UPDATE=1 cargo test rewrites it");
    }
}

#[test]
fn schemas_are_ones_of_json() {
    for words in [&["check-config", "--schema"][..], &["sim", "keys", "--schema"]] {
        let text = stdout(&corridor(&top(), words));
        let schema: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["properties"]["run"].is_object(), words[0] == "sim");
    }
}
