//! Documents of MongoDB (BSON): the kinds of values that are used here, and no others.

/// Documents within documents, at most.
const DEPTH_MAX: usize = 100;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Bson {
    /// A double.
    Real(f64),
    /// A text.
    Text(String),
    /// A document.
    Doc(Doc),
    /// An array.
    List(Vec<Bson>),
    /// Binary data of any subtype.
    Bytes(Vec<u8>),
    /// A truth value.
    Bool(bool),
    /// Null.
    Null,
    /// A number of 32 or 64 bits; sent as one of 64.
    Int(i64),
    /// A kind that is not used here; its content is passed over.
    Other(u8),
}

/// A document: names and values in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Doc(pub Vec<(String, Bson)>);

impl Doc {
    /// An empty one.
    pub fn new() -> Doc {
        Doc::default()
    }

    /// The same with a further value. No name may have the character 0.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Bson>) -> Doc {
        self.push(name, value);
        self
    }

    /// Appends a value.
    pub fn push(&mut self, name: &str, value: impl Into<Bson>) {
        self.0.push((name.to_owned(), value.into()));
    }

    /// The first value of this name.
    pub fn get(&self, name: &str) -> Option<&Bson> {
        let mut pairs = self.0.iter();
        pairs.find_map(|(own, value)| (own == name).then_some(value))
    }

    /// A number of this name, whole or not.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Bson::Int(value) => Some(*value),
            Bson::Real(value) => Some(*value as i64),
            Bson::Bool(value) => Some(i64::from(*value)),
            _ => None,
        }
    }

    /// A text of this name.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Bson::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Bytes of this name.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        match self.get(name)? {
            Bson::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// A document of this name.
    pub fn doc(&self, name: &str) -> Option<&Doc> {
        match self.get(name)? {
            Bson::Doc(doc) => Some(doc),
            _ => None,
        }
    }

    /// A list of this name.
    pub fn list(&self, name: &str) -> Option<&[Bson]> {
        match self.get(name)? {
            Bson::List(list) => Some(list),
            _ => None,
        }
    }

    /// Appends it as it travels.
    pub fn write(&self, out: &mut Vec<u8>) {
        let pairs = self.0.iter().map(|(name, value)| (name.as_str(), value));
        write_all(pairs, out);
    }

    /// Reads a document, which must be all of `bytes`; `None`: it is none.
    pub fn read(bytes: &[u8]) -> Option<Doc> {
        let mut rest = bytes;
        let doc = read_doc(&mut rest, 0)?;
        rest.is_empty().then_some(doc)
    }

    /// The length of the document at the beginning of `bytes`; `None`: there is none.
    pub fn length(bytes: &[u8]) -> Option<usize> {
        let length = u32::from_le_bytes(*bytes.first_chunk::<4>()?);
        usize::try_from(length).ok().filter(|length| *length >= 5)
    }
}

macro_rules! from {
    ($($kind:ty => $variant:ident),*) => {
        $(impl From<$kind> for Bson {
            fn from(value: $kind) -> Bson {
                Bson::$variant(value.into())
            }
        })*
    };
}

from!(f64 => Real, &str => Text, String => Text, Doc => Doc, Vec<Bson> => List);
from!(&[u8] => Bytes, Vec<u8> => Bytes, bool => Bool, i64 => Int, i32 => Int);

fn write_all<'a>(pairs: impl Iterator<Item = (&'a str, &'a Bson)>, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    for (name, value) in pairs {
        let kind = match value {
            Bson::Real(_) => 1,
            Bson::Text(_) => 2,
            Bson::Doc(_) => 3,
            Bson::List(_) => 4,
            Bson::Bytes(_) => 5,
            Bson::Bool(_) => 8,
            Bson::Null | Bson::Other(_) => 10,
            Bson::Int(_) => 18,
        };
        out.push(kind);
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        write_value(value, out);
    }
    out.push(0);
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

fn write_value(value: &Bson, out: &mut Vec<u8>) {
    match value {
        Bson::Real(value) => out.extend_from_slice(&value.to_le_bytes()),
        Bson::Text(text) => {
            out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
            out.push(0);
        }
        Bson::Doc(doc) => doc.write(out),
        Bson::List(list) => {
            let names: Vec<String> = (0..list.len()).map(|n| n.to_string()).collect();
            write_all(names.iter().map(String::as_str).zip(list), out);
        }
        Bson::Bytes(bytes) => {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.push(0);
            out.extend_from_slice(bytes);
        }
        Bson::Bool(value) => out.push(u8::from(*value)),
        Bson::Null | Bson::Other(_) => {}
        Bson::Int(value) => out.extend_from_slice(&value.to_le_bytes()),
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(head)
}

fn take_u32(bytes: &mut &[u8]) -> Option<usize> {
    let head = take(bytes, 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(head)).ok()
}

fn take_eight(bytes: &mut &[u8]) -> Option<[u8; 8]> {
    take(bytes, 8)?.try_into().ok()
}

/// A text that ends with a 0.
fn take_name(bytes: &mut &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let name = String::from_utf8(take(bytes, end)?.to_vec()).ok()?;
    take(bytes, 1)?;
    Some(name)
}

/// A text behind its length.
fn take_text(bytes: &mut &[u8]) -> Option<String> {
    let length = take_u32(bytes)?.checked_sub(1)?;
    let text = String::from_utf8(take(bytes, length)?.to_vec()).ok()?;
    (take(bytes, 1)? == [0]).then_some(text)
}

fn read_doc(bytes: &mut &[u8], depth: usize) -> Option<Doc> {
    let length = Doc::length(bytes)?;
    let mut rest = take(bytes, length)?.get(4..)?;
    if depth == DEPTH_MAX {
        return None;
    }
    let mut doc = Doc::new();
    loop {
        let kind = take(&mut rest, 1)?[0];
        if kind == 0 {
            return rest.is_empty().then_some(doc);
        }
        let name = take_name(&mut rest)?;
        doc.0.push((name, read_value(kind, &mut rest, depth)?));
    }
}

fn read_value(kind: u8, rest: &mut &[u8], depth: usize) -> Option<Bson> {
    let skipped = |rest: &mut &[u8], count| take(rest, count).map(|_| Bson::Other(kind));
    Some(match kind {
        1 => Bson::Real(f64::from_le_bytes(take_eight(rest)?)),
        2 => Bson::Text(take_text(rest)?),
        3 => Bson::Doc(read_doc(rest, depth + 1)?),
        4 => {
            let doc = read_doc(rest, depth + 1)?;
            Bson::List(doc.0.into_iter().map(|(_, value)| value).collect())
        }
        5 => {
            let length = take_u32(rest)?;
            take(rest, 1)?;
            Bson::Bytes(take(rest, length)?.to_vec())
        }
        8 => Bson::Bool(take(rest, 1)?[0] != 0),
        10 => Bson::Null,
        16 => {
            let value = take(rest, 4)?.try_into().ok()?;
            Bson::Int(i64::from(i32::from_le_bytes(value)))
        }
        18 => Bson::Int(i64::from_le_bytes(take_eight(rest)?)),
        // Names of objects, dates, timestamps, decimals, texts of programs, patterns, and ends.
        7 => skipped(rest, 12)?,
        9 | 17 => skipped(rest, 8)?,
        19 => skipped(rest, 16)?,
        13 | 14 => take_text(rest).map(|_| Bson::Other(kind))?,
        11 => {
            take_name(rest)?;
            take_name(rest).map(|_| Bson::Other(kind))?
        }
        6 | 127 | 255 => Bson::Other(kind),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Doc {
        let inner = Doc::new().with("a", -0.5).with("b", Bson::Null);
        Doc::new()
            .with("text", "green")
            .with("inner", inner)
            .with("list", vec![Bson::Int(1), Bson::Bool(true)])
            .with("bytes", vec![0u8, 255])
            .with("int", i64::MIN)
    }

    #[test]
    fn documents_come_back() {
        let mut bytes = Vec::new();
        sample().write(&mut bytes);
        assert_eq!(Doc::length(&bytes), Some(bytes.len()));
        assert_eq!(Doc::read(&bytes), Some(sample()));
        // {"hello": "world"} as the specification has it.
        let known = b"\x16\0\0\0\x02hello\0\x06\0\0\0world\0\0";
        assert_eq!(Doc::read(known), Some(Doc::new().with("hello", "world")));
    }

    #[test]
    fn broken_documents_are_none() {
        let mut bytes = Vec::new();
        sample().write(&mut bytes);
        for end in 0..bytes.len() {
            assert_eq!(Doc::read(&bytes[..end]), None);
        }
        let mut prng = base_like(7);
        for _ in 0..20_000 {
            let mut broken = bytes.clone();
            let at = (prng() % bytes.len() as u64) as usize;
            broken[at] = prng() as u8;
            let _ = Doc::read(&broken);
        }
        let mut deep = Vec::new();
        let nested = (0..200).fold(Doc::new(), |doc, _| Doc::new().with("a", doc));
        nested.write(&mut deep);
        assert_eq!(Doc::read(&deep), None);
    }

    /// Numbers that follow from a seed (xorshift).
    fn base_like(mut state: u64) -> impl FnMut() -> u64 {
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        }
    }
}
