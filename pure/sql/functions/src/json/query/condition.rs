//! Conditions of paths: true, false or unknown (`None`).

use super::value::{Item, View, number};
use super::walk::{Failure, Frame, Outcome, Walk};
use crate::regex::Regex;
use base::SqlError;
use json::Kind;
use json::path::{Binary, Head, Node, Pattern};
use std::cmp::Ordering;

/// The regular expressions that a path has used so far.
#[derive(Default)]
pub(super) struct Patterns<'p>(Vec<(&'p Pattern, Option<Regex>)>);

/// The regular expression of a pattern; `None`: it is a plain text.
///
/// # Errors
/// 2201B, 0A000.
pub(super) fn compile(pattern: &Pattern) -> Result<Option<Regex>, SqlError> {
    let text = match pattern.quoted {
        true if !pattern.ignore_case => return Ok(None),
        true => quoted(&pattern.text),
        false => pattern.text.clone(),
    };
    let mut regex = Regex::new(&text, pattern.ignore_case)?;
    if !pattern.quoted {
        regex.set_lines(!pattern.dot_all, pattern.multi_line);
    }
    Ok(Some(regex))
}

/// An expression that matches a text.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if !c.is_alphanumeric() && c != '_' {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// What stands of an error where unknown is an answer.
fn or_unknown<T>(result: Outcome<T>) -> Outcome<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Failure::Soft(_)) => Ok(None),
        Err(hard) => Err(hard),
    }
}

impl<'p> Walk<'p> {
    /// Whether a condition is met. Soft errors inside of it are nobody's.
    pub(super) fn condition(&mut self, node: &'p Node, frame: Frame<'_>) -> Outcome<Option<bool>> {
        let passed = self.passed.take();
        let met = self.is_met(node, frame);
        self.passed = passed;
        met
    }

    fn is_met(&mut self, node: &'p Node, frame: Frame<'_>) -> Outcome<Option<bool>> {
        self.work(1)?;
        match &node.head {
            Head::Binary(Binary::And, left, right) => {
                let left = self.condition(left, frame)?;
                if left == Some(false) {
                    return Ok(left);
                }
                let right = self.condition(right, frame)?;
                Ok(if right == Some(true) { left } else { right })
            }
            Head::Binary(Binary::Or, left, right) => {
                let left = self.condition(left, frame)?;
                if left == Some(true) {
                    return Ok(left);
                }
                let right = self.condition(right, frame)?;
                Ok(if right == Some(false) { left } else { right })
            }
            Head::Not(of) => Ok(self.condition(of, frame)?.map(|value| !value)),
            Head::IsUnknown(of) => Ok(Some(self.condition(of, frame)?.is_none())),
            Head::Exists(of) => {
                let calls = self.calls();
                let found = or_unknown(self.exists(of, frame))?;
                self.set_calls(calls);
                Ok(found)
            }
            Head::Binary(op, left, right) => {
                let sides = (&**left, Some((&**right, true)));
                self.predicate(sides, frame, |walk, left, right| {
                    walk.compare(*op, left, right.unwrap_or(View::Null))
                })
            }
            Head::StartsWith(left, right) => {
                let sides = (&**left, Some((&**right, false)));
                self.predicate(sides, frame, |_, left, right| {
                    let start = right.map_or(Ok(None), View::string)?;
                    let both = left.string()?.zip(start);
                    Ok(both.map(|(text, start)| text.starts_with(&*start)))
                })
            }
            Head::LikeRegex(of, pattern) => {
                self.predicate((of, None), frame, |walk, text, _| match text.string()? {
                    Some(text) => walk.matches(pattern, &text).map(Some),
                    None => Ok(None),
                })
            }
            // The grammar has no other conditions.
            _ => Ok(None),
        }
    }

    /// Whether a predicate holds for any pair of items of its sides. The right one says whether
    /// its arrays are taken apart.
    fn predicate(
        &mut self,
        (left, right): (&'p Node, Option<(&'p Node, bool)>),
        frame: Frame<'_>,
        holds: impl Fn(&mut Self, View<'_>, Option<View<'_>>) -> Outcome<Option<bool>>,
    ) -> Outcome<Option<bool>> {
        let calls = self.calls();
        let Some(left) = or_unknown(self.operand(left, frame, true))? else {
            self.set_calls(calls);
            return Ok(None);
        };
        let right: Option<Vec<Item>> = match right {
            None => None,
            Some((right, unwrap)) => match or_unknown(self.operand(right, frame, unwrap))? {
                Some(items) => Some(items),
                None => {
                    self.set_calls(calls);
                    return Ok(None);
                }
            },
        };
        let (mut failed, mut found) = (false, false);
        for item in &left {
            let count = right.as_ref().map_or(1, Vec::len);
            for i in 0..count {
                let other = right.as_ref().map(|right| right[i].view());
                self.work(1)?;
                match holds(self, item.view(), other)? {
                    None if !self.is_lax() => return Ok(None),
                    None => failed = true,
                    Some(true) if self.is_lax() => return Ok(Some(true)),
                    Some(true) => found = true,
                    Some(false) => {}
                }
            }
        }
        Ok(match (found, failed) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        })
    }

    fn compare(&mut self, op: Binary, left: View<'_>, right: View<'_>) -> Outcome<Option<bool>> {
        let (kinds, moments) = ((left.kind(), right.kind()), (left, right));
        let order = match (kinds, moments) {
            ((Some(Kind::Null), Some(Kind::Null)), _) => Ordering::Equal,
            ((Some(Kind::Null), _) | (_, Some(Kind::Null)), _) => {
                return Ok(Some(op == Binary::NotEqual));
            }
            (_, (View::Moment(left), View::Moment(right))) => {
                match left.compare(right, self.zone)? {
                    Some(order) => order,
                    None => return Ok(None),
                }
            }
            ((Some(a), Some(b)), _) if a == b && a.is_scalar() => {
                self.work((left.bytes() + right.bytes()) / 64)?;
                match scalar_order(a, left, right)? {
                    Some(order) => order,
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(match op {
            Binary::Equal => order.is_eq(),
            Binary::NotEqual => order.is_ne(),
            Binary::Less => order.is_lt(),
            Binary::LessOrEqual => order.is_le(),
            Binary::Greater => order.is_gt(),
            _ => order.is_ge(),
        }))
    }

    fn matches(&mut self, pattern: &'p Pattern, text: &str) -> Outcome<bool> {
        self.work(1 + text.len().saturating_mul(1 + pattern.text.len()) / 64)?;
        let known = |(known, _): &(&Pattern, _)| core::ptr::eq(*known, pattern);
        let at = match self.patterns.0.iter().position(known) {
            Some(at) => at,
            None => {
                self.patterns.0.push((pattern, compile(pattern)?));
                self.patterns.0.len() - 1
            }
        };
        Ok(match &self.patterns.0[at].1 {
            Some(regex) => regex.is_match(text)?,
            None => text.contains(&*pattern.text),
        })
    }
}

/// The order of two scalars of one kind.
fn scalar_order(kind: Kind, left: View<'_>, right: View<'_>) -> Outcome<Option<Ordering>> {
    Ok(match kind {
        Kind::Number => {
            let (left, right) = (number(left)?, number(right)?);
            left.zip(right).map(|(left, right)| left.compare(&right))
        }
        Kind::String => {
            let (left, right) = (left.string()?, right.string()?);
            left.zip(right).map(|(left, right)| left.cmp(&right))
        }
        _ => {
            let is_true = |view: View<'_>| view.json().is_some_and(|value| value.is_true());
            Some(is_true(left).cmp(&is_true(right)))
        }
    })
}
