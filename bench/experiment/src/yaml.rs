//! YAML and JSON to a tree, within bounds.
//!
//! The core schema of YAML 1.2: `yes` and `on` are texts. Left out are tags, merge keys, keys that
//! are no scalars, and several documents in one file; each is refused with what to write instead.

use crate::mistake::Mistake;
use crate::tree::{DEPTH_MAX, Entry, Kind, Mark, NODES_MAX, Node};
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Number, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Reads a text of YAML.
pub(crate) fn read(file: &str, text: &str) -> Result<Node, Mistake> {
    read_marked(file, text).map_err(without_mark)
}

/// A mistake without what only this module understands.
fn without_mark(mistake: Mistake) -> Mistake {
    match mistake.key.as_str() {
        TWICE | BOUND => mistake.at_key(""),
        _ => mistake,
    }
}

/// Reads a text of YAML. Mistakes that are also those of JSON are marked in place of a key.
fn read_marked(file: &str, text: &str) -> Result<Node, Mistake> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        file: file.into(),
        open: Vec::new(),
        root: None,
        anchors: BTreeMap::new(),
        count: 0,
    };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let mut mistake = Mistake::of_file(file, error.info());
            mistake.line = error.marker().line();
            mistake.column = error.marker().col() + 1;
            match error.info().starts_with("mapping values are not allowed") {
                true => {
                    mistake.next("a text with a colon at its end, such as memory:, needs quotes")
                }
                false => mistake,
            }
        })?;
        reader.event(event, span)?;
    }
    let nothing = || Mistake::of_file(file, "it holds nothing").next(START);
    let root = reader.root.ok_or_else(nothing)?;
    match root.kind {
        Kind::Null => Err(nothing()),
        // Aliases can nest deeper than what is written.
        _ if root.depth() > DEPTH_MAX => Err(too_deep(&root.mark)),
        _ => Ok(root),
    }
}

fn too_deep(mark: &Mark) -> Mistake {
    let text = format!("values are nested more than {DEPTH_MAX} deep");
    mark.wrong(text).at_key(BOUND)
}

/// Reads a text of JSON. Its values have lines where it is YAML, too, which JSON nearly always is.
pub(crate) fn read_json(file: &str, text: &str) -> Result<Node, Mistake> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default();
        let mut mistake = Mistake::of_file(file, format!("this is no JSON: {said}"));
        mistake.line = error.line();
        mistake.column = error.column();
        mistake
    })?;
    match read_marked(file, text) {
        Ok(node) if node.value() == value => Ok(node),
        // A key that stands twice and the bounds are mistakes of JSON, too.
        Err(mistake) if mistake.key == TWICE || mistake.key == BOUND => Err(without_mark(mistake)),
        _ => {
            let mark = Mark {
                file: file.into(),
                line: 0,
            };
            Ok(Node::of(&value, &mut Vec::new(), &|_| mark.clone()))
        }
    }
}

const START: &str = "`extends: micro-personal` alone is an experiment";
/// Inner marks of mistakes that JSON shares.
const TWICE: &str = "\u{1}twice";
const BOUND: &str = "\u{1}bound";

/// A list or mapping that is not complete.
enum Open {
    List(Mark, usize, Vec<Node>),
    Map {
        mark: Mark,
        anchor: usize,
        entries: Vec<Entry>,
        known: BTreeSet<String>,
        /// The key whose value comes next.
        key: Option<(String, Mark)>,
    },
}

struct Reader {
    file: Rc<str>,
    open: Vec<Open>,
    root: Option<Node>,
    anchors: BTreeMap<usize, Node>,
    count: usize,
}

impl Reader {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Mistake> {
        let mark = Mark {
            file: Rc::clone(&self.file),
            line: span.start.line(),
        };
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if tag.is_some() {
                    return Err(no_tags(&mark));
                }
                if self.takes_key() {
                    return self.key(&text, style, mark);
                }
                let kind = match style {
                    ScalarStyle::Plain => plain(&text, &mark)?,
                    _ => Kind::Text(text.into_owned()),
                };
                self.add(Node::new(mark, kind), anchor)
            }
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                let mut node = known.ok_or_else(|| {
                    mark.wrong("an alias stands within its own anchor")
                        .next("write the value out")
                })?;
                node.mark = mark;
                self.count += node.count();
                self.add(node, 0)
            }
            Event::SequenceStart(anchor, tag) => self.begin(
                Open::List(mark.clone(), anchor, Vec::new()),
                tag.is_some(),
                &mark,
            ),
            Event::MappingStart(anchor, tag) => {
                let map = Open::Map {
                    mark: mark.clone(),
                    anchor,
                    entries: Vec::new(),
                    known: BTreeSet::new(),
                    key: None,
                };
                self.begin(map, tag.is_some(), &mark)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (node, anchor) = match self.open.pop() {
                    Some(Open::List(mark, anchor, items)) => {
                        (Node::new(mark, Kind::List(items)), anchor)
                    }
                    Some(Open::Map {
                        mark,
                        anchor,
                        entries,
                        ..
                    }) => (Node::new(mark, Kind::Map(entries)), anchor),
                    None => return Ok(()),
                };
                self.add(node, anchor)
            }
            Event::DocumentStart(_) if self.root.is_some() => Err(mark
                .wrong("a second document begins here")
                .next("write a list of documents instead, each behind a `-`")),
            Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::StreamStart
            | Event::StreamEnd
            | Event::Nothing => Ok(()),
        }
    }

    /// Whether the next value is the key of a mapping.
    fn takes_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map { key: None, .. }))
    }

    fn key(&mut self, text: &str, style: ScalarStyle, mark: Mark) -> Result<(), Mistake> {
        if text == "<<" && style == ScalarStyle::Plain {
            return Err(mark
                .wrong("merge keys (<<) are not supported")
                .next("`extends` inherits from a template or a file"));
        }
        if let Some(Open::Map { known, key, .. }) = self.open.last_mut() {
            if !known.insert(text.to_owned()) {
                return Err(mark
                    .wrong(format!("the key {text} stands twice"))
                    .at_key(TWICE));
            }
            *key = Some((text.to_owned(), mark));
        }
        Ok(())
    }

    fn begin(&mut self, open: Open, has_tag: bool, mark: &Mark) -> Result<(), Mistake> {
        if has_tag {
            return Err(no_tags(mark));
        }
        if self.takes_key() {
            return Err(mark.wrong("a key must be a text"));
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(too_deep(mark));
        }
        self.open.push(open);
        Ok(())
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Mistake> {
        self.count += 1;
        if self.count > NODES_MAX {
            let text = format!("the file has more than {NODES_MAX} values, aliases written out");
            return Err(node.mark.wrong(text).at_key(BOUND));
        }
        if self.takes_key() {
            return Err(node.mark.wrong("a key must be a text"));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            Some(Open::List(_, _, items)) => items.push(node),
            Some(Open::Map { entries, key, .. }) => {
                if let Some((key, mark)) = key.take() {
                    entries.push(Entry {
                        key,
                        mark,
                        value: node,
                    });
                }
            }
            None => self.root = Some(node),
        }
        Ok(())
    }
}

fn no_tags(mark: &Mark) -> Mistake {
    mark.wrong("tags (!) are not supported")
        .next("quotes make a text of anything")
}

/// A scalar without quotes, by the core schema.
fn plain(text: &str, mark: &Mark) -> Result<Kind, Mistake> {
    let number = |number: Option<Number>| {
        let wrong = || mark.wrong(format!("{text} is no number that can be held"));
        number.map(Kind::Number).ok_or_else(wrong)
    };
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Kind::Null),
        "true" | "True" | "TRUE" => return Ok(Kind::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Kind::Bool(false)),
        _ => {}
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix)
            && !digits.is_empty()
            && digits.chars().all(|it| it.is_digit(radix))
        {
            return number(u64::from_str_radix(digits, radix).ok().map(Number::from));
        }
    }
    let unsigned = text.trim_start_matches(['+', '-']);
    if text.len() - unsigned.len() > 1 {
        return Ok(Kind::Text(text.to_owned()));
    }
    if [".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"].contains(&unsigned) {
        return number(None);
    }
    let starts = unsigned.starts_with(|it: char| it.is_ascii_digit() || it == '.');
    let digits = |it: char| it.is_ascii_digit();
    let allowed = |it: char| it.is_ascii_digit() || ".eE+-".contains(it);
    if !starts || !unsigned.contains(digits) || !unsigned.chars().all(allowed) {
        return Ok(Kind::Text(text.to_owned()));
    }
    if unsigned.chars().all(digits) {
        let plain = text.trim_start_matches('+');
        let whole = plain.parse::<u64>().map(Number::from);
        let whole = whole.or_else(|_| plain.parse::<i64>().map(Number::from));
        return number(whole.ok());
    }
    match text.parse::<f64>() {
        Ok(real) => number(Number::from_f64(real)),
        Err(_) => Ok(Kind::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(text: &str) -> Value {
        read("f.yaml", text).map(|node| node.value()).unwrap()
    }

    fn wrong(text: &str) -> String {
        read("f.yaml", text).unwrap_err().to_string()
    }

    #[test]
    fn scalars_are_those_of_the_core_schema() {
        let text = "a: [1, -2, +3, 0x1F, 0o17, 1.5, -2e3, .5, 1.]\n\
                    b: [true, False, ~, null, '', yes, on, 1_000, 1.2.3, 127.0.0.1, '5', e5, +-1]\n\
                    c: 'memory:'\nd: redis://h:1,h:2\ne: |\n  two\n  lines\n\
                    18446744073709551615: x";
        assert_eq!(
            value(text),
            json!({
                "a": [1, -2, 3, 31, 15, 1.5, -2000.0, 0.5, 1.0],
                "b": [true, false, null, null, "", "yes", "on", "1_000", "1.2.3", "127.0.0.1", "5",
                      "e5", "+-1"],
                "c": "memory:", "d": "redis://h:1,h:2", "e": "two\nlines\n",
                "18446744073709551615": "x",
            })
        );
    }

    #[test]
    fn values_know_their_lines() {
        let node = read("f.yaml", "# first\na: 1\nb:\n  c:\n    - 2\n    - d: 3\n").unwrap();
        let b = node.get("b").unwrap();
        assert_eq!((node.get("a").unwrap().mark.line, b.mark.line), (2, 3));
        let c = b.value.get("c").unwrap();
        let Kind::List(items) = &c.value.kind else {
            panic!("no list")
        };
        assert_eq!(
            (items[0].mark.line, items[1].get("d").unwrap().mark.line),
            (5, 6)
        );
    }

    #[test]
    fn what_is_not_supported_is_refused_with_its_line() {
        for (text, says) in [
            ("a: 1\na: 2", "line 2: the key a stands twice"),
            ("a: &x {b: 1}\nc:\n  <<: *x", "line 3: merge keys"),
            ("a: !!str 1", "line 1: tags"),
            ("? [1, 2]\n: 3", "line 1: a key must be a text"),
            ("a: 1\n---\nb: 2", "a second document"),
            ("a: .inf", "line 1: .inf is no number"),
            ("a: 99999999999999999999", "is no number that can be held"),
            ("a: 1e999", "is no number that can be held"),
            ("", "it holds nothing"),
            ("# only a comment\n", "it holds nothing"),
            ("a: [1, 2", "line "),
            ("a: 'x", "line "),
            ("a:\n\t- 1", "line 2"),
            ("a: *b", "line 1"),
            ("a:\n  url: memory:", "such as memory:, needs quotes"),
        ] {
            let said = wrong(text);
            assert!(said.contains(says), "{text:?}: {said}");
        }
    }

    #[test]
    fn what_grows_is_bounded() {
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x]\n");
        for at in 1..12 {
            let below = format!("*a{}", at - 1);
            bomb += &format!("a{at}: &a{at} [{}]\n", [below.as_str(); 8].join(","));
        }
        let said = wrong(&bomb);
        assert!(said.contains("more than 20000 values"), "{said}");
        // The parser has a limit of its own for brackets.
        assert!(wrong(&"[".repeat(100_000)).contains("limit"));
        let said = wrong(&"[".repeat(100));
        assert!(said.contains("nested more than 64"), "{said}");
        let said = wrong(&format!("{}1", "- ".repeat(100_000)));
        assert!(said.contains("nested more than 64"), "{said}");
        assert!(wrong("a: &a [*a]").contains("within its own anchor"));
    }

    #[test]
    fn json_has_lines_and_its_own_words() {
        let node = read_json("f.json", "{\n \"a\": 1,\n \"b\": [\"\\ud83d\\ude00\"]\n}").unwrap();
        assert_eq!(node.value(), json!({ "a": 1, "b": ["\u{1f600}"] }));
        let said = |text: &str| read_json("f.json", text).unwrap_err().to_string();
        assert!(said("{\"a\": 1,}").contains("f.json, line 1, column 9: this is no JSON"));
        let twice = said("{\"a\": 1,\n\"a\": 2}");
        assert_eq!(twice, "f.json, line 2: the key a stands twice");
        assert!(said("a: 1").contains("no JSON"));
    }
}
