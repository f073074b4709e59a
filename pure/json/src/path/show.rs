//! Tree to text.

use super::{Binary, Head, LAST_LEVEL, Node, Path, Pattern, Step};
use crate::write_string;
use alloc::string::String;
use core::fmt::{self, Display, Write};

impl Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        if self.strict {
            out.push_str("strict ");
        }
        self.root.show(true, &mut out);
        f.write_str(&out)
    }
}

impl Node {
    /// How strongly its operator binds.
    fn priority(&self) -> u8 {
        match &self.head {
            Head::Binary(op, ..) => match op {
                Binary::Or => 0,
                Binary::And => 1,
                Binary::Equal
                | Binary::NotEqual
                | Binary::Less
                | Binary::LessOrEqual
                | Binary::Greater
                | Binary::GreaterOrEqual => 2,
                Binary::Add | Binary::Sub => 3,
                Binary::Mul | Binary::Div | Binary::Mod => 4,
            },
            Head::StartsWith(..) => 2,
            Head::Sign { .. } => 5,
            _ => 6,
        }
    }

    /// Writes an operand, in parentheses if it does not bind more strongly.
    fn show_operand(&self, operand: &Node, out: &mut String) {
        operand.show(operand.priority() <= self.priority(), out);
    }

    fn show(&self, brackets: bool, out: &mut String) {
        let is_operation = matches!(
            self.head,
            Head::Binary(..) | Head::Sign { .. } | Head::StartsWith(..) | Head::LikeRegex(..)
        );
        let is_number = matches!(self.head, Head::Number(_));
        let has_steps = !self.steps.is_empty();
        let brackets = is_operation && (brackets || has_steps) || is_number && has_steps;
        if brackets {
            out.push('(');
        }
        self.show_head(out);
        if brackets {
            out.push(')');
        }
        for step in &self.steps {
            step.show(out);
        }
    }

    fn show_head(&self, out: &mut String) {
        match &self.head {
            Head::Root => out.push('$'),
            Head::Current => out.push('@'),
            Head::Last => out.push_str("last"),
            Head::Null => out.push_str("null"),
            Head::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Head::Number(number) => out.push_str(number),
            Head::Text(text) => write_string(text, out),
            Head::Variable(name) => {
                out.push('$');
                write_string(name, out);
            }
            Head::Binary(op, left, right) => {
                self.show_operand(left, out);
                out.push(' ');
                out.push_str(op.sign());
                out.push(' ');
                self.show_operand(right, out);
            }
            Head::Sign { negative, of } => {
                out.push(if *negative { '-' } else { '+' });
                self.show_operand(of, out);
            }
            Head::Not(of) => {
                out.push_str("!(");
                of.show(false, out);
                out.push(')');
            }
            Head::IsUnknown(of) => {
                out.push('(');
                of.show(false, out);
                out.push_str(") is unknown");
            }
            Head::Exists(of) => {
                out.push_str("exists (");
                of.show(false, out);
                out.push(')');
            }
            Head::StartsWith(left, right) => {
                self.show_operand(left, out);
                out.push_str(" starts with ");
                self.show_operand(right, out);
            }
            Head::LikeRegex(of, pattern) => {
                self.show_operand(of, out);
                out.push_str(" like_regex ");
                pattern.show(out);
            }
        }
    }
}

impl Pattern {
    fn show(&self, out: &mut String) {
        write_string(&self.text, out);
        let flags = [
            (self.ignore_case, 'i'),
            (self.dot_all, 's'),
            (self.multi_line, 'm'),
            (self.extended, 'x'),
            (self.quoted, 'q'),
        ];
        if flags.iter().any(|(is_set, _)| *is_set) {
            out.push_str(" flag \"");
            let set = flags.iter().filter(|(is_set, _)| *is_set);
            out.extend(set.map(|(_, flag)| *flag));
            out.push('"');
        }
    }
}

impl Step {
    fn show(&self, out: &mut String) {
        match self {
            Step::Key(key) => {
                out.push('.');
                write_string(key, out);
            }
            Step::AnyKey => out.push_str(".*"),
            Step::AnyItem => out.push_str("[*]"),
            Step::Items(items) => {
                out.push('[');
                for (i, (from, to)) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    from.show(false, out);
                    if let Some(to) = to {
                        out.push_str(" to ");
                        to.show(false, out);
                    }
                }
                out.push(']');
            }
            Step::Any { first, last } => show_levels(*first, *last, out),
            Step::Filter(condition) => {
                out.push_str("?(");
                condition.show(false, out);
                out.push(')');
            }
            Step::Method(method) => {
                out.push('.');
                out.push_str(method.name());
                out.push_str("()");
            }
            Step::Datetime(template) => {
                out.push_str(".datetime(");
                if let Some(template) = template {
                    write_string(template, out);
                }
                out.push(')');
            }
        }
    }
}

fn show_levels(first: u32, last: u32, out: &mut String) {
    out.push_str(".**");
    let level = |level: u32, out: &mut String| {
        let _ = match level {
            LAST_LEVEL => out.write_str("last"),
            other => write!(out, "{other}"),
        };
    };
    if (first, last) == (0, LAST_LEVEL) {
        return;
    }
    out.push('{');
    level(first, out);
    if first != last {
        out.push_str(" to ");
        level(last, out);
    }
    out.push('}');
}
