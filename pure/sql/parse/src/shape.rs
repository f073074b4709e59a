//! The shape of a text: the statement with parameters in place of its literals, so that texts which
//! differ in their values alone share one plan.
//!
//! Only literals that stand where a parameter of the same type means the same are taken out. The
//! scan looks at what stands before them; [`values`](super::values) at the parsed shape.

use base::Type;

/// Texts of more bytes have no shape: they are bulk loads, and no text comes twice.
pub const SHAPE_BYTES_MAX: usize = 4 << 10;
/// Texts with more literals have none.
const LITERALS_MAX: usize = 64;

/// A literal that was taken out of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Literal {
    /// Bytes of the text, quotes included.
    start: u32,
    end: u32,
    /// The type that the literal has: of a number by its size, `Unknown` of a string.
    pub ty: Type,
}

/// A statement without its literals.
#[derive(Default, Debug)]
pub struct Shape {
    /// The text with `$1`, `$2`, ... in place of the literals.
    pub text: String,
    /// The literals, in the order of the parameters.
    pub literals: Vec<Literal>,
}

impl Shape {
    /// Takes the literals out of a text. Returns whether there are some; else the shape is of no
    /// use. A text that has parameters, comments, dollar quotes, prefixed strings, or a second
    /// statement has none.
    pub fn read(&mut self, text: &str) -> bool {
        self.text.clear();
        self.literals.clear();
        if text.len() > SHAPE_BYTES_MAX || !begins_well(text) {
            return false;
        }
        let mut scan = Scan {
            text,
            at: 0,
            copied: 0,
            before: Before::Other,
            into: self,
        };
        scan.run().is_some() && !self.literals.is_empty()
    }

    /// The value of a literal of `text`, as a parameter in text form has it.
    pub fn value(text: &str, literal: &Literal) -> String {
        let value = &text[literal.start as usize..literal.end as usize];
        match literal.ty {
            Type::Unknown => value[1..value.len() - 1].replace("''", "'"),
            _ => value.to_string(),
        }
    }

    /// The text with the literals of `kept` in their places, and parameters for the others.
    pub fn with_literals(&self, text: &str, kept: &[bool]) -> String {
        let mut out = String::with_capacity(text.len());
        let (mut copied, mut number) = (0, 0);
        for (literal, kept) in self.literals.iter().zip(kept) {
            if *kept {
                continue;
            }
            number += 1;
            out.push_str(&text[copied..literal.start as usize]);
            push_parameter(&mut out, number);
            copied = literal.end as usize;
        }
        out.push_str(text[copied..].trim_end_matches([';', ' ', '\t', '\n', '\r', '\x0c']));
        out
    }
}

fn push_parameter(out: &mut String, number: usize) {
    out.push('$');
    if number >= 10 {
        out.push(char::from(b'0' + (number / 10) as u8));
    }
    out.push(char::from(b'0' + (number % 10) as u8));
}

/// Whether it may be a statement whose literals are values.
fn begins_well(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
    let words = ["select", "insert", "update", "delete", "with"];
    let is = |word: &&str| {
        text.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    words.iter().any(is)
}

/// What stands before a literal.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// An operator, a parenthesis, a comma, BETWEEN or AND: the literal may be a value.
    Value,
    Other,
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    /// Bytes of the text that the shape has.
    copied: usize,
    before: Before,
    into: &'t mut Shape,
}

impl Scan<'_> {
    /// `None`: the text has no shape.
    fn run(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' => self.at += 1,
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => self.word()?,
                b'0'..=b'9' => self.number()?,
                b'\'' => self.string()?,
                b'"' => self.name()?,
                b';' => return self.end(),
                b'$' | b'\0' => return None,
                b'.' if bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit) => return None,
                b'-' if bytes.get(self.at + 1) == Some(&b'-') => return None,
                b'/' if bytes.get(self.at + 1) == Some(&b'*') => return None,
                b'=' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'(' | b',' => {
                    self.at += 1;
                    self.before = Before::Value;
                }
                _ => {
                    self.at += 1;
                    self.before = Before::Other;
                }
            }
        }
        self.end()
    }

    /// The end of the statement: nothing but white space may follow.
    fn end(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let rest = &bytes[self.at..];
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' | b';');
        if !rest.iter().all(blank) {
            return None;
        }
        let kept = self.text[self.copied..self.at].trim_end_matches([' ', '\t', '\n', '\r']);
        self.into.text.push_str(kept);
        Some(())
    }

    fn word(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let continues = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | 0x80..);
        while bytes.get(self.at).is_some_and(continues) {
            self.at += 1;
        }
        // A prefix of a literal (`E'..'`, `U&"..."`), or a name with a dollar.
        if matches!(bytes.get(self.at), Some(b'\'' | b'$' | b'&')) {
            return None;
        }
        let word = &bytes[start..self.at];
        self.before = match word.len() {
            3 if word.eq_ignore_ascii_case(b"and") => Before::Value,
            7 if word.eq_ignore_ascii_case(b"between") => Before::Value,
            _ => Before::Other,
        };
        Some(())
    }

    fn name(&mut self) -> Option<()> {
        let rest = &self.text[self.at + 1..];
        self.at += 1 + rest.find('"')? + 1;
        self.before = Before::Other;
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let digits = |at: &mut usize| {
            while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
                *at += 1;
            }
        };
        digits(&mut self.at);
        let whole = bytes.get(self.at) != Some(&b'.');
        if !whole {
            self.at += 1;
            digits(&mut self.at);
        }
        let next = bytes.get(self.at);
        if next.is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.' | 0x80..)) {
            return None;
        }
        let value = &self.text[start..self.at];
        let ty = match whole {
            true if value.parse::<i32>().is_ok() => Type::Int4,
            true if value.parse::<i64>().is_ok() => Type::Int8,
            // Digits enough for any numeric: larger ones are the planner's to refuse.
            _ if value.len() <= 30 => Type::Numeric(None),
            _ => return None,
        };
        self.literal(start, ty)
    }

    fn string(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        loop {
            let rest = &bytes[self.at + 1..];
            self.at += 1 + rest.iter().position(|byte| *byte == b'\'')? + 1;
            if bytes.get(self.at) != Some(&b'\'') {
                break;
            }
        }
        // It may go on in the next line.
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c');
        if bytes[self.at..].iter().find(|byte| !blank(byte)) == Some(&b'\'') {
            return None;
        }
        self.literal(start, Type::Unknown)
    }

    /// A literal from `start` up to here.
    fn literal(&mut self, start: usize, ty: Type) -> Option<()> {
        let before = core::mem::replace(&mut self.before, Before::Other);
        if before == Before::Other {
            return Some(());
        }
        let shape = &mut *self.into;
        if shape.literals.len() == LITERALS_MAX {
            return None;
        }
        shape.text.push_str(&self.text[self.copied..start]);
        shape.literals.push(Literal {
            start: start as u32,
            end: self.at as u32,
            ty,
        });
        push_parameter(&mut shape.text, shape.literals.len());
        self.copied = self.at;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Option<(String, Vec<String>)> {
        let mut shape = Shape::default();
        let values = |shape: &Shape| {
            let literals = shape.literals.iter();
            literals
                .map(|literal| format!("{} {:?}", Shape::value(text, literal), literal.ty))
                .collect()
        };
        shape
            .read(text)
            .then(|| (shape.text.clone(), values(&shape)))
    }

    #[test]
    fn literals_that_may_be_values_are_taken_out() {
        for (text, wanted, values) in [
            (
                "SELECT a FROM t WHERE id=5 and b = 'it''s' LIMIT 10 ;",
                "SELECT a FROM t WHERE id=$1 and b = $2 LIMIT 10",
                &["5 Int4", "it's Unknown"][..],
            ),
            (
                "update t set a = a + -4052 where id between 3000000000 and 1.50",
                "update t set a = a + -$1 where id between $2 and $3",
                &["4052 Int4", "3000000000 Int8", "1.50 Numeric(None)"],
            ),
            (
                "insert into \"T\" values (1,'',DATE '2020-01-01')",
                "insert into \"T\" values ($1,$2,DATE '2020-01-01')",
                &["1 Int4", " Unknown"],
            ),
        ] {
            let found = shape(text).expect("it has a shape");
            assert_eq!(found.0, wanted);
            assert_eq!(found.1, values, "{text}");
        }
    }

    #[test]
    fn texts_with_other_forms_have_no_shape() {
        for text in [
            "SELECT 1 WHERE a = $1",
            "SELECT a FROM t WHERE b = E'\\n'",
            "SELECT a FROM t WHERE b = 'a'\n'b'",
            "SELECT a FROM t WHERE b = 5 -- all",
            "SELECT a FROM t /* 1 */ WHERE b = 5",
            "SELECT a FROM t WHERE b = 5; SELECT 1",
            "SELECT a FROM t WHERE b = 5e3",
            "SELECT a FROM t WHERE b = .5",
            "SELECT a FROM t WHERE b = 'open",
            "SELECT a FROM t WHERE b = $$x$$",
            "SELECT a FROM t LIMIT 10",
            "SET a = 5",
            "",
        ] {
            assert_eq!(shape(text), None, "{text}");
        }
    }

    #[test]
    fn literals_can_be_put_back() {
        let text = "SELECT a FROM t WHERE a = 5 AND b = 'x' AND c = 7;  ";
        let mut shape = Shape::default();
        assert!(shape.read(text));
        assert_eq!(
            shape.with_literals(text, &[false, true, false]),
            "SELECT a FROM t WHERE a = $1 AND b = 'x' AND c = $2"
        );
        assert_eq!(shape.with_literals(text, &[false; 3]), shape.text);
    }
}
