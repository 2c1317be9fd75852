//! The reference of a kind of file, for people: a section per table, a line per key.

use crate::schema::{Key, Schema, Table};

/// See [`Schema::markdown`].
pub(crate) fn markdown(schema: &Schema) -> String {
    let root = schema.root();
    let plain: Vec<&Key> = root.keys.iter().filter(|key| key.table.is_none()).collect();
    let mut text = lines(&plain);
    let mut described = Vec::new();
    for key in &root.keys {
        describe(key, &mut described, &mut text);
    }
    text
}

/// The section of a table, and those of the tables in it; keys of the same type are listed once.
fn describe<'a>(key: &'a Key, described: &mut Vec<&'a Table>, text: &mut String) {
    let Some(table) = &key.table else { return };
    *text += &section(table, key);
    let names = |table: &'a Table| table.keys.iter().map(|key| (&key.name, &key.description));
    let twin = described.iter().find(|other| names(other).eq(names(table)));
    if let Some(twin) = twin.filter(|_| !table.keys.is_empty()) {
        *text += &format!("\nSame keys as `[{}]`.\n", twin.path);
        return;
    }
    *text += &lines(&table.keys.iter().collect::<Vec<_>>());
    described.push(table);
    for key in &table.keys {
        describe(key, described, text);
    }
}

fn section(table: &Table, key: &Key) -> String {
    let name =
        if key.is_list { format!("[[{}]]", table.path) } else { format!("[{}]", table.path) };
    let needed = if key.is_required { " Required." } else { "" };
    format!("\n## `{name}`\n\n{}{needed}\n", key.description)
}

fn lines(keys: &[&Key]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    let mut text = "\n| key | value | default | meaning |\n|---|---|---|---|\n".to_owned();
    for key in keys {
        let left_out = match (&key.default, key.is_required) {
            (_, true) => "required".to_owned(),
            (Some(default), false) => format!("`{default}`"),
            (None, false) => String::new(),
        };
        let cells = [&format!("`{}`", key.name), &key.expected, &left_out, &key.description];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        text += &format!("| {} |\n", cells.join(" | "));
    }
    for key in keys.iter().filter(|key| key.words.iter().any(|(_, meaning)| !meaning.is_empty())) {
        text += &format!("\n`{}`:\n\n", key.name);
        for (word, meaning) in &key.words {
            text += format!("- `\"{word}\"`: {meaning}").trim_end_matches([' ', ':']);
            text += "\n";
        }
    }
    text
}
