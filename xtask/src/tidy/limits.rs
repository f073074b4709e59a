//! The page of limits tells the numbers of the code: its last column names the constants, as
//! `crate/file CONSTANT`, and the row shows their values.

use super::Violation;
use crate::repo::SourceFile;

pub(crate) const PAGE: &str = "docs/limits.md";

/// Checks every row of a table of the page.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return vec![Violation::new(PAGE, 0, "is missing")];
    };
    let rows = page.lines().filter(|(_, line)| {
        let ruler = line.starts_with("|--");
        line.starts_with('|') && !ruler && !line.starts_with("| what ")
    });
    let mut found = Vec::new();
    for (number, line) in rows {
        for message in check_row(files, line) {
            found.push(Violation::new(PAGE, number, message));
        }
    }
    found
}

fn check_row(files: &[SourceFile], line: &str) -> Vec<String> {
    let cells: Vec<&str> = line.trim().trim_matches('|').split('|').collect();
    let Some((places, shown)) = cells.split_last() else {
        return vec!["a row without cells".into()];
    };
    let shown = shown.join("|");
    let constants = match constants(places) {
        Ok(constants) => constants,
        Err(message) => return vec![message],
    };
    if constants.is_empty() && cells.get(1).is_some_and(|limit| limit.contains(is_digit)) {
        return vec!["a number without the constant that it comes from".into()];
    }
    let mut messages = Vec::new();
    for (place, name) in constants {
        match value_in(files, &place, &name) {
            None => messages.push(format!(
                "{place} has no constant {name} that can be computed"
            )),
            Some(value) => {
                let forms = forms(value, shown.contains("less one byte"));
                if !forms.iter().any(|form| has_number(&shown, form)) {
                    messages.push(format!(
                        "{name} is {}, which the row lacks",
                        forms.join(" or ")
                    ));
                }
            }
        }
    }
    messages
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// Places and names between the backticks of a cell.
fn constants(cell: &str) -> Result<Vec<(String, String)>, String> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted
        .map(|text| match text.split_once(' ') {
            Some((place, name)) => Ok((place.to_owned(), name.to_owned())),
            None => Err(format!("{text} without the name of a constant")),
        })
        .collect()
}

/// The value of a constant of the file `crate/file`, if it is there and a number.
fn value_in(files: &[SourceFile], place: &str, name: &str) -> Option<u64> {
    let (krate, path) = place.split_once('/')?;
    let ends = [".rs", "/mod.rs"].map(|end| format!("/{krate}/src/{path}{end}"));
    let file = files
        .iter()
        .find(|file| ends.iter().any(|end| file.path.ends_with(end)))?;
    value(&file.text, name)
}

fn value(text: &str, name: &str) -> Option<u64> {
    let (_, rest) = text.split_once(&format!("const {name}: "))?;
    let (_, rest) = rest.split_once('=')?;
    let (formula, _) = rest.split_once(';')?;
    // What holds in the release build.
    let formula = match formula.split_once("else {") {
        Some((_, release)) => release.split('}').next()?,
        None => formula,
    };
    evaluate(text, formula)
}

/// Sums, differences and shifts of numbers and of constants of the same file.
fn evaluate(text: &str, formula: &str) -> Option<u64> {
    let formula = formula.trim();
    for (sign, apply) in [
        // What binds least comes first.
        (
            "<<",
            (|left, right| left.checked_shl(right as u32)) as fn(u64, u64) -> Option<u64>,
        ),
        ("+", u64::checked_add),
        ("-", u64::checked_sub),
    ] {
        if let Some((left, right)) = split_outside(formula, sign) {
            return apply(evaluate(text, left)?, evaluate(text, right)?);
        }
    }
    if let Some(inner) = formula.strip_prefix('(') {
        return evaluate(text, inner.strip_suffix(')')?);
    }
    let digits = formula.replace('_', "");
    digits.parse().ok().or_else(|| value(text, formula))
}

/// The parts before and behind the last `sign` that is in no parentheses.
fn split_outside<'a>(formula: &'a str, sign: &str) -> Option<(&'a str, &'a str)> {
    let outside = |at: usize| {
        let before = &formula[..at];
        before.matches('(').count() == before.matches(')').count()
    };
    let (at, _) = formula.rmatch_indices(sign).find(|(at, _)| outside(*at))?;
    Some((&formula[..at], &formula[at + sign.len()..]))
}

/// How a page may write a number: with commas, or in units of memory, also as one more of which it
/// says that it is less one byte.
fn forms(value: u64, less_one: bool) -> Vec<String> {
    let digits = value.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| core::str::from_utf8(group).expect("digits"))
        .collect();
    let mut forms = vec![groups.join(",")];
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        for value in [value].into_iter().chain(less_one.then_some(value + 1)) {
            if value >> shift << shift == value && value > 0 {
                forms.push(format!("{} {unit}", value >> shift));
            }
        }
    }
    forms
}

/// Whether a text has this number, not as a part of another one.
fn has_number(text: &str, form: &str) -> bool {
    text.match_indices(form).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut behind = text[at + form.len()..].chars();
        let next = behind.next();
        let goes_on = next == Some(',') && behind.next().is_some_and(is_digit);
        let rest = &text[at + form.len()..];
        let counts_units = [" KiB", " MiB", " GiB"]
            .iter()
            .any(|unit| rest.starts_with(unit));
        !before.is_some_and(|c| is_digit(c) || c == ',' || c == '.')
            && !next.is_some_and(is_digit)
            && !goes_on
            && !counts_units
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "pub const A: usize = 18 << 20;\n\
        const B: usize = A - (2 << 20);\n\
        const C: usize = (1 << 30) - 1;\n\
        const D: u32 = if cfg!(debug_assertions) { 200 } else { 1_100 };\n\
        const F: usize = 18;\n\
        const G: usize = 1 + 1 << 10;\n";

    fn broken(row: &str) -> Vec<String> {
        let source = SourceFile::new("pure/base/src/limits.rs", SOURCE);
        check_row(&[source], row)
    }

    #[test]
    fn rows_that_tell_what_the_code_has_pass() {
        for row in [
            "| frame | 18 MiB | `base/limits A` |",
            "| program | 16 MiB; a frame has 18 MiB | `base/limits B`, `base/limits A` |",
            "| value | 1 GiB less one byte | `base/limits C` |",
            "| sum | 2 KiB | `base/limits G` |",
            "| nodes | 18 | `base/limits F` |",
            "| depth | 1,100 | `base/limits D` |",
            "| memory | a setting | |",
        ] {
            assert_eq!(broken(row), Vec::<String>::new(), "{row}");
        }
    }

    #[test]
    fn rows_that_tell_something_else_are_found() {
        for row in [
            "| frame | 14 MiB | `base/limits A` |",
            "| depth | 11,100 | `base/limits D` |",
            "| depth | 1,100,000 | `base/limits D` |",
            "| depth | 1,100 | `base/limits E` |",
            "| depth | 1,100 | `base/nowhere D` |",
            "| depth | 1,100 | `base` |",
            "| frame | 18 MiB | `base/limits F` |",
            "| frame | 0.18 | `base/limits F` |",
            "| value | 1 GiB | `base/limits C` |",
        ] {
            assert_eq!(broken(row).len(), 1, "{row}");
        }
    }
}
