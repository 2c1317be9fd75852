//! Command templates: a shell command with `{names}` in it.

use core::fmt::Write;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Side,
    Other,
    Local,
    Remote,
    Address,
    Peer,
    Subnet,
    Tun,
    Interface,
    Netns,
    Dir,
    Key,
    Proxy,
    Target,
}

/// Every name.
const NAMES: [(&str, Place); 14] = [
    ("side", Place::Side),
    ("other", Place::Other),
    ("local", Place::Local),
    ("remote", Place::Remote),
    ("address", Place::Address),
    ("peer", Place::Peer),
    ("subnet", Place::Subnet),
    ("tun", Place::Tun),
    ("interface", Place::Interface),
    ("netns", Place::Netns),
    ("dir", Place::Dir),
    ("key", Place::Key),
    ("proxy", Place::Proxy),
    ("target", Place::Target),
];

/// A command with placeholders that are filled for each side.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Place(Place),
}

impl Template {
    /// Parses a template. `{name}` is a placeholder, `{{` and `}}` are braces; braces of the shell,
    /// as in `${variable}` and `{ command; }`, are left as they are.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = vec![Piece::Text(String::new())];
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let doubled = rest.starts_with("{{") || rest.starts_with("}}");
            let (taken, len) = match name_at(rest) {
                _ if doubled => (next.to_string(), 2),
                // A variable of the shell, with its braces.
                _ if rest.starts_with("${") => ("${".to_owned(), 2),
                Some(name) => {
                    let known = NAMES.iter().find(|(known, _)| *known == name);
                    let (_, place) = known.ok_or_else(|| unknown(name))?;
                    pieces.push(Piece::Place(*place));
                    (String::new(), name.len() + 2)
                }
                None => (next.to_string(), next.len_utf8()),
            };
            if let Some(Piece::Text(text)) = pieces.last_mut() {
                text.push_str(&taken);
            } else if !taken.is_empty() {
                pieces.push(Piece::Text(taken));
            }
            rest = &rest[len..];
        }
        Ok(Template(pieces))
    }

    /// Whether it has this placeholder.
    pub(crate) fn names(&self, place: Place) -> bool {
        self.0.contains(&Piece::Place(place))
    }

    /// The command with its placeholders filled.
    pub(crate) fn fill(&self, value: impl Fn(Place) -> String) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Place(place) => value(*place),
        };
        self.0.iter().map(piece).collect()
    }
}

/// The name in braces at the beginning of a text: lower-case letters only.
fn name_at(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix('{')?.split_once('}')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    is_name.then_some(name)
}

fn unknown(name: &str) -> String {
    let mut expected = String::new();
    for (known, _) in NAMES {
        let _ = write!(expected, "{{{known}}}, ");
    }
    format!("{{{name}}}: expected {expected}or {{{{ and }}}} for braces")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str) -> Result<String, String> {
        let name = |place| NAMES.iter().find(|(_, other)| *other == place).unwrap().0;
        Ok(Template::parse(template)?.fill(|place| name(place).to_uppercase()))
    }

    #[test]
    fn places_are_filled_and_the_shell_keeps_its_braces() {
        for (template, expected) in [
            ("run -l {local} -r {remote}:4000", "run -l LOCAL -r REMOTE:4000"),
            ("{side}{tun}", "SIDETUN"),
            ("x=${side}; { echo; }", "x=${side}; { echo; }"),
            ("awk '{{print}}' {dir}/key", "awk '{print}' DIR/key"),
            ("a {B} {} {a b} }", "a {B} {} {a b} }"),
            ("ümlaut {netns}", "ümlaut NETNS"),
        ] {
            assert_eq!(filled(template).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_that_are() {
        let said = filled("run {locale}").unwrap_err();
        assert!(said.starts_with("{locale}: expected {side}, {other}, {local}, "), "{said}");
        assert!(said.ends_with("or {{ and }} for braces"), "{said}");
    }

    #[test]
    fn it_is_known_which_places_there_are() {
        let template = Template::parse("run {tun} {{proxy}}").unwrap();
        assert!(template.names(Place::Tun) && !template.names(Place::Proxy));
    }
}
