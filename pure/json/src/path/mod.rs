//! Paths into JSON (`jsonpath`): text to tree and back.
//!
//! What a path leads to is computed where numbers, moments and regular expressions are known, not
//! here. The text form of a path is its normal form: reading it gives the same tree.

mod lexer;
mod parse;
mod show;
#[cfg(test)]
mod tests;

use crate::JsonError;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// Deepest nesting of a path, where each step behind another counts as one level. It bounds the
/// stack of everything that walks a path.
pub const PATH_DEPTH_MAX: usize = 256;

/// Most parentheses, subscripts, filters and signs in one another.
pub const PATH_NESTED_MAX: usize = 64;

/// The level that `last` stands for in `.**{last}`.
pub const LAST_LEVEL: u32 = u32::MAX;

/// A path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// Whether structural errors are errors: `strict`.
    pub strict: bool,
    /// What it computes.
    pub root: Node,
}

/// Where a part of a path begins, and the steps from there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// The items at its start.
    pub head: Head,
    /// What is done with them, one step after the other.
    pub steps: Vec<Step>,
}

/// The start of a part of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Head {
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number in the form in which JSON keeps it.
    Number(String),
    /// A string.
    Text(String),
    /// `$name`
    Variable(String),
    /// Two operands.
    Binary(Binary, Box<Node>, Box<Node>),
    /// `-x` if negative, else `+x`.
    Sign {
        /// Whether it is `-`.
        negative: bool,
        /// The operand.
        of: Box<Node>,
    },
    /// `!(condition)`
    Not(Box<Node>),
    /// `(condition) is unknown`
    IsUnknown(Box<Node>),
    /// `exists (path)`
    Exists(Box<Node>),
    /// `path starts with "text"`, or with a variable.
    StartsWith(Box<Node>, Box<Node>),
    /// `path like_regex "pattern" flag "flags"`
    LikeRegex(Box<Node>, Pattern),
}

/// A regular expression with its flags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// The expression.
    pub text: String,
    /// `i`
    pub ignore_case: bool,
    /// `s`: the dot matches line ends.
    pub dot_all: bool,
    /// `m`: `^` and `$` match at line ends.
    pub multi_line: bool,
    /// `x`, which counts only beside `q`, where it means nothing.
    pub extended: bool,
    /// `q`: the expression is a plain text.
    pub quoted: bool,
}

/// Operators with two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Binary {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

impl Binary {
    /// Its sign.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Binary::Or => "||",
            Binary::And => "&&",
            Binary::Equal => "==",
            Binary::NotEqual => "!=",
            Binary::Less => "<",
            Binary::LessOrEqual => "<=",
            Binary::Greater => ">",
            Binary::GreaterOrEqual => ">=",
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::Div => "/",
            Binary::Mod => "%",
        }
    }

    /// Whether it computes a number.
    #[must_use]
    pub fn is_arithmetic(self) -> bool {
        matches!(
            self,
            Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::Mod
        )
    }
}

/// A step of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// `.key`
    Key(String),
    /// `.*`
    AnyKey,
    /// `[*]`
    AnyItem,
    /// `[i, j to k]`
    Items(Vec<(Node, Option<Node>)>),
    /// `.**{first to last}`
    Any {
        /// The first level, 0 for the item itself.
        first: u32,
        /// The last level.
        last: u32,
    },
    /// `? (condition)`
    Filter(Box<Node>),
    /// `.method()`
    Method(Method),
    /// `.datetime(template)`
    Datetime(Option<String>),
}

/// Methods without arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Method {
    Abs,
    Ceiling,
    Double,
    Floor,
    KeyValue,
    Size,
    Type,
}

impl Method {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Method::Abs => "abs",
            Method::Ceiling => "ceiling",
            Method::Double => "double",
            Method::Floor => "floor",
            Method::KeyValue => "keyvalue",
            Method::Size => "size",
            Method::Type => "type",
        }
    }
}

impl Node {
    fn of(head: Head) -> Node {
        Node {
            head,
            steps: Vec::new(),
        }
    }

    /// The parts of its head.
    fn operands(&self) -> impl Iterator<Item = &Node> {
        let (first, second) = match &self.head {
            Head::Binary(_, left, right) | Head::StartsWith(left, right) => {
                (Some(&**left), Some(&**right))
            }
            Head::Sign { of, .. }
            | Head::Not(of)
            | Head::IsUnknown(of)
            | Head::Exists(of)
            | Head::LikeRegex(of, _) => (Some(&**of), None),
            Head::Root
            | Head::Current
            | Head::Last
            | Head::Null
            | Head::Bool(_)
            | Head::Number(_)
            | Head::Text(_)
            | Head::Variable(_) => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// Calls `see` with each regular expression of the path, until one is refused.
    ///
    /// # Errors
    /// What `see` gives.
    pub fn each_pattern<E>(
        &self,
        see: &mut impl FnMut(&Pattern) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Head::LikeRegex(_, pattern) = &self.head {
            see(pattern)?;
        }
        for operand in self.operands() {
            operand.each_pattern(see)?;
        }
        for step in &self.steps {
            match step {
                Step::Filter(condition) => condition.each_pattern(see)?,
                Step::Items(items) => {
                    for (from, to) in items {
                        from.each_pattern(see)?;
                        to.iter().try_for_each(|to| to.each_pattern(see))?;
                    }
                }
                Step::Key(_)
                | Step::AnyKey
                | Step::AnyItem
                | Step::Any { .. }
                | Step::Method(_)
                | Step::Datetime(_) => {}
            }
        }
        Ok(())
    }

    /// Refuses `@` outside of filters and `last` outside of subscripts.
    fn check(&self, in_filter: bool, in_subscript: bool) -> Result<(), JsonError> {
        match self.head {
            Head::Current if !in_filter => {
                return Err(syntax("@ is not allowed in root expressions"));
            }
            Head::Last if !in_subscript => {
                return Err(syntax("LAST is allowed only in array subscripts"));
            }
            _ => {}
        }
        for operand in self.operands() {
            operand.check(in_filter, in_subscript)?;
        }
        for step in &self.steps {
            match step {
                Step::Filter(condition) => condition.check(true, in_subscript)?,
                Step::Items(items) => {
                    for (from, to) in items {
                        from.check(in_filter, true)?;
                        to.iter().try_for_each(|to| to.check(in_filter, true))?;
                    }
                }
                Step::Key(_)
                | Step::AnyKey
                | Step::AnyItem
                | Step::Any { .. }
                | Step::Method(_)
                | Step::Datetime(_) => {}
            }
        }
        Ok(())
    }
}

impl Path {
    /// The path of a text.
    ///
    /// # Errors
    /// 42601 for what is no path, 22P02 for an empty text, 22P02 and 22P05 for escapes that stand
    /// for no character, 22003 for numbers out of range, 54001 if it nests too deeply.
    pub fn parse(text: &str) -> Result<Path, JsonError> {
        let path = parse::parse(text)?;
        path.root.check(false, false)?;
        Ok(path)
    }
}

/// 42601
fn syntax(message: impl Into<String>) -> JsonError {
    JsonError::new("42601", message)
}

fn too_deep() -> JsonError {
    let mut error = JsonError::new("54001", "stack depth limit exceeded");
    error.detail = alloc::format!(
        "A jsonpath may have {PATH_NESTED_MAX} parentheses in one another and {PATH_DEPTH_MAX} \
         steps or operators."
    );
    error
}
