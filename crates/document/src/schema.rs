//! What a kind of file may contain, from the types that read it.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Schema keyword for what a value should be, in words that follow "expected".
const EXPECTED: &str = "x-expected";

/// What a kind of file may contain.
#[derive(Clone, Debug)]
pub struct Schema {
    json: Value,
    root: Table,
}

/// A table of a file.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its dotted path, without the indices of lists.
    pub path: String,
    /// Its keys, in the order of the type that reads it.
    pub keys: Vec<Key>,
    /// Whether any other key is allowed too.
    pub is_open: bool,
}

/// A key of a table.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// Its description, for people.
    pub description: String,
    /// Whether it is required.
    pub is_required: bool,
    /// What its value should be, in words that follow "expected".
    pub expected: String,
    /// The words allowed, if it is one of a few, with their meanings.
    pub words: Vec<(String, String)>,
    /// The default, in TOML.
    pub default: Option<String>,
    /// If the value is a table or a list of tables: what these may contain.
    pub table: Option<Table>,
    /// Whether the value can only be a list of tables.
    pub is_list: bool,
}

impl Schema {
    /// What files of this type may contain.
    pub fn of<T: JsonSchema>() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
        let mut json = settings.into_generator().into_root_schema_for::<T>().to_value();
        drop_nulls(&mut json);
        let root = Table::new("", &json).unwrap_or_default();
        Schema { json, root }
    }

    /// The schema as JSON (JSON Schema, draft 2020-12).
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// The reference of its keys for people, in Markdown.
    pub fn markdown(&self) -> String {
        crate::reference::markdown(self)
    }

    /// The file as a whole.
    pub fn root(&self) -> &Table {
        &self.root
    }

    /// The table at this dotted path, without indices.
    pub fn table(&self, path: &str) -> Option<&Table> {
        if path.is_empty() { Some(&self.root) } else { self.key(path)?.table.as_ref() }
    }

    /// The key at this dotted path, without indices.
    pub fn key(&self, path: &str) -> Option<&Key> {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let mut key = self.root.key(first)?;
        for name in rest.split('.').filter(|name| !name.is_empty()) {
            key = key.table.as_ref()?.key(name)?;
        }
        Some(key)
    }

    /// All tables, in the order of the file, the file itself first.
    pub fn tables(&self) -> Vec<&Table> {
        let mut tables = Vec::new();
        self.root.collect(&mut tables);
        tables
    }
}

impl core::fmt::Display for Schema {
    /// JSON with line breaks, for editors.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        writeln!(f, "{:#}", self.json)
    }
}

impl Table {
    /// The table that a schema describes, if it describes one.
    fn new(path: &str, json: &Value) -> Option<Self> {
        let properties = json.get("properties").and_then(Value::as_object);
        let others = json.get("additionalProperties");
        if properties.is_none() && others.is_none() {
            return None;
        }
        let required = json.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|known| known.as_str() == Some(name)))
        };
        let key = |(name, json): (&String, &Value)| Key::new(path, name, json, is_required(name));
        Some(Table {
            path: path.to_owned(),
            keys: properties.into_iter().flatten().map(key).collect(),
            is_open: others != Some(&Value::Bool(false)),
        })
    }

    /// Its key with this name.
    pub fn key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    fn collect<'a>(&'a self, tables: &mut Vec<&'a Table>) {
        tables.push(self);
        for table in self.keys.iter().filter_map(|key| key.table.as_ref()) {
            table.collect(tables);
        }
    }
}

impl Key {
    fn new(table: &str, name: &str, json: &Value, is_required: bool) -> Self {
        let path = if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") };
        let shapes = shapes(json);
        let items = |shape: &'_ Value| shape.get("items").cloned();
        let words = shapes.iter().flat_map(|shape| words(shape)).collect::<Vec<_>>();
        let inside: Vec<Value> = shapes.iter().filter_map(|shape| items(shape)).collect();
        let table = shapes
            .iter()
            .copied()
            .chain(inside.iter().flat_map(|shape| self::shapes(shape)))
            .find_map(|shape| Table::new(&path, shape));
        let is_list = table.is_some() && shapes.iter().all(|shape| shape.get("items").is_some());
        let words = match words.is_empty() {
            true => inside.iter().flat_map(words_of_all).collect(),
            false => words,
        };
        let told = json.get(EXPECTED).and_then(Value::as_str).map(str::to_owned);
        let expected = told.unwrap_or_else(|| match &table {
            Some(table) if is_list => format!("an array of tables: [[{}]]", table.path),
            Some(table) => format!("a table: [{}]", table.path),
            None => expected(&shapes, &words),
        });
        let description = json.get("description").and_then(Value::as_str).unwrap_or_default();
        Key {
            name: name.to_owned(),
            description: description.replace('\n', " "),
            is_required,
            expected,
            words,
            default: json.get("default").and_then(toml_of),
            table,
            is_list,
        }
    }
}

/// The schema itself, or its alternatives.
fn shapes(json: &Value) -> Vec<&Value> {
    match json.get("anyOf").and_then(Value::as_array) {
        Some(alternatives) => alternatives.iter().flat_map(shapes).collect(),
        None => vec![json],
    }
}

fn words_of_all(json: &Value) -> Vec<(String, String)> {
    shapes(json).into_iter().flat_map(words).collect()
}

/// The words that a schema allows, with their meanings.
fn words(json: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let described = json.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let described = described.flat_map(|word| {
        let meaning = word.get("description").and_then(text).unwrap_or_default();
        let one = word.get("const").and_then(text);
        let several = word.get("enum").and_then(Value::as_array).into_iter().flatten();
        one.into_iter()
            .chain(several.filter_map(text))
            .map(move |name| (name, meaning.clone()))
            .collect::<Vec<_>>()
    });
    let bare = json.get("enum").and_then(Value::as_array).into_iter().flatten();
    let single = json.get("const").and_then(text);
    let bare = bare.filter_map(text).chain(single).map(|name| (name, String::new()));
    described.chain(bare).collect()
}

fn expected(shapes: &[&Value], words: &[(String, String)]) -> String {
    if !words.is_empty() {
        return listed(words.iter().map(|(word, _)| format!("\"{word}\"")).collect());
    }
    let said = shapes.iter().map(|shape| expected_of(shape)).collect();
    listed(said)
}

/// Describes a value of one type.
fn expected_of(json: &Value) -> String {
    match json.get("type").and_then(Value::as_str) {
        Some("boolean") => "true or false".to_owned(),
        Some("string") => "a string".to_owned(),
        Some("array") => {
            let items = json.get("items").map(|items| expected(&self::shapes(items), &[]));
            format!("a list of values, each {}", items.unwrap_or_else(|| "a value".to_owned()))
        }
        kind => {
            let what = if kind == Some("integer") { "a whole number" } else { "a number" };
            let bound = |name| json.get(name).filter(|value| value.is_number());
            match (bound("minimum"), bound("maximum")) {
                (Some(min), Some(max)) => format!("{what} from {min} to {max}"),
                (Some(min), None) => format!("{what}, {min} or more"),
                (None, Some(max)) => format!("{what}, at most {max}"),
                (None, None) => what.to_owned(),
            }
        }
    }
}

/// `a, b or c`.
fn listed(mut names: Vec<String>) -> String {
    match names.pop() {
        Some(last) if names.is_empty() => last,
        Some(last) => format!("{} or {last}", names.join(", ")),
        None => "a value".to_owned(),
    }
}

/// TOML has no null: optional values are left out.
fn drop_nulls(json: &mut Value) {
    match json {
        Value::Object(map) => {
            if map.get("default") == Some(&Value::Null) {
                map.remove("default");
            }
            if let Some(Value::Array(kinds)) = map.get_mut("type") {
                kinds.retain(|kind| kind != "null");
                if let [kind] = &kinds[..] {
                    let kind = kind.clone();
                    map.insert("type".into(), kind);
                }
            }
            if let Some(Value::Array(words)) = map.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            let is_null = |shape: &Value| shape.get("type").is_some_and(|kind| kind == "null");
            if let Some(Value::Array(shapes)) = map.get_mut("anyOf") {
                shapes.retain(|shape| !is_null(shape));
                if let [Value::Object(only)] = &mut shapes[..] {
                    let only = core::mem::take(only);
                    map.remove("anyOf");
                    for (name, value) in only {
                        map.entry(name).or_insert(value);
                    }
                }
            }
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(values) => values.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// A default as written in the file; tables and empty lists are not shown.
fn toml_of(json: &Value) -> Option<String> {
    match json {
        Value::Null | Value::Object(_) => None,
        Value::Array(values) if values.is_empty() => None,
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    /// A file.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct File {
        /// How many
        /// of them.
        #[schemars(range(min = 1, max = 9))]
        count: u8,
        #[serde(default)]
        kind: Option<Kind>,
        #[serde(default)]
        ratio: Option<f64>,
        #[serde(default)]
        link: Vec<Link>,
        #[schemars(extend("x-expected" = "a name"))]
        name: String,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    #[allow(dead_code)]
    enum Kind {
        /// The one.
        InOrder,
        /// The other.
        AtOnce,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Link {
        up: bool,
    }

    #[test]
    fn types_say_what_a_file_may_hold() {
        let schema = Schema::of::<File>();
        let key = |path| schema.key(path).unwrap();
        assert_eq!(key("count").description, "How many of them.");
        assert_eq!(key("count").expected, "a whole number from 1 to 9");
        assert!(key("count").is_required && !key("kind").is_required);
        assert_eq!(key("kind").expected, "\"in-order\" or \"at-once\"");
        assert_eq!(key("kind").words[1], ("at-once".into(), "The other.".into()));
        assert_eq!(key("ratio").expected, "a number");
        assert_eq!(key("name").expected, "a name");
        assert_eq!(key("link").expected, "an array of tables: [[link]]");
        assert_eq!(key("link.up").expected, "true or false");
        assert!(!schema.root().is_open && !schema.table("link").unwrap().is_open);
        let names: Vec<_> = schema.root().keys.iter().map(|key| key.name.as_str()).collect();
        assert_eq!(names, ["count", "kind", "ratio", "link", "name"]);
        assert!(!schema.json().to_string().contains("null"), "{}", schema.json());
    }
}
