//! SQL text of indexes and constraints, as `pg_get_indexdef` and `pg_get_constraintdef` print it.

use super::constraints::Constraint;
use super::*;
use ::functions::keywords::quote_ident;
use catalog::{Action, Column, Deferral};

/// Names of columns by position, quoted where needed, joined by commas.
fn column_list(table: &Table, columns: impl IntoIterator<Item = u16>) -> String {
    let names: Vec<String> = columns
        .into_iter()
        .map(|at| quote_ident(&table.columns[at as usize].name).into_owned())
        .collect();
    names.join(", ")
}

/// `CREATE INDEX ...`. With `pretty` the schema is left out if the table's name alone means it.
pub(super) fn index(
    cx: &CatalogCx<'_>,
    table: &Table,
    (index, primary): (&Index, bool),
    pretty: bool,
) -> String {
    let unique = if index.unique || primary {
        "UNIQUE "
    } else {
        ""
    };
    let name = match pretty {
        true => cx.shown_name(&table.name, Database::has_relation),
        false => cx.qualified(&table.name),
    };
    let keys: Vec<String> = index
        .columns
        .iter()
        .enumerate()
        .map(|(at, key)| {
            let name = key_text(table, key.column, pretty);
            let class = index.classes.get(at).and_then(Option::as_deref);
            let class = class.map_or_else(String::new, |class| format!(" {class}"));
            let order = match (key.descending, key.nulls_first) {
                (false, false) => "",
                (false, true) => " NULLS FIRST",
                (true, true) => " DESC",
                (true, false) => " DESC NULLS LAST",
            };
            format!("{name}{class}{order}")
        })
        .collect();
    let mut text = format!(
        "CREATE {unique}INDEX {} ON {name} USING btree ({})",
        quote_ident(&index.name),
        keys.join(", ")
    );
    if !index.included.is_empty() {
        let included = column_list(table, index.included.iter().copied());
        text += &format!(" INCLUDE ({included})");
    }
    if index.nulls_equal {
        text += " NULLS NOT DISTINCT";
    }
    if let Some(condition) = predicate(table, index) {
        let condition = match pretty {
            true => self::pretty(&condition).into(),
            false => condition,
        };
        text += &format!(" WHERE {condition}");
    }
    cx.kept_text(&text)
}

/// What an index is on at a key column. What is no call of a function stands between parentheses,
/// beside those that it has by itself if it is not printed `pretty`.
fn key_text(table: &Table, column: u16, pretty: bool) -> String {
    let described = &table.columns[usize::from(column)];
    match described.of_index {
        true => match table.key_text(column) {
            text if text.starts_with('(') && !pretty => format!("({text})"),
            text => text,
        },
        false => quote_ident(&described.name).into_owned(),
    }
}

/// The condition of a partial index.
pub(super) fn predicate(table: &Table, index: &Index) -> Option<String> {
    let column = &table.columns[usize::from(index.predicate?)];
    column.generated.as_deref().map(catalog::as_key)
}

/// An expression without the parentheses around it.
pub(super) fn pretty(text: &str) -> &str {
    let Some(inner) = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'))
    else {
        return text;
    };
    let mut depth = 0i32;
    for c in inner.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            // Parentheses in a text may stand for nothing.
            '\'' => return text,
            _ => {}
        }
        if depth < 0 {
            return text;
        }
    }
    inner
}

/// The expressions of an index, as pg_index has them.
pub(super) fn expressions(table: &Table, index: &Index) -> Option<String> {
    let keys = index.columns.iter().map(|key| key.column);
    let computed = keys.filter(|column| table.columns[usize::from(*column)].of_index);
    let texts: Vec<String> = computed.map(|column| table.key_text(column)).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// One key column of an index, without its direction; empty for a number that there is not.
pub(super) fn index_column(table: &Table, index: &Index, number: i64, pretty: bool) -> String {
    let keys = index.columns.iter().map(|key| key.column);
    let mut all = keys.chain(index.included.iter().copied());
    let found = usize::try_from(number - 1).ok().and_then(|at| all.nth(at));
    found.map_or_else(String::new, |column| key_text(table, column, pretty))
}

/// A default as PostgreSQL prints it: string constants with their type, negative numbers as such
/// constants; anything else as it was written.
pub(super) fn default(column: &Column, text: &str) -> String {
    if column.generated.is_some() {
        return catalog::as_key(text);
    }
    let inner = |text: &str| Some(text.strip_prefix('\'')?.strip_suffix('\'')?.to_owned());
    let is_string = |inner: &String| !inner.replace("''", "").contains('\'');
    if inner(text).as_ref().is_some_and(is_string) {
        let name = match column.ty {
            Type::Char(_) => "bpchar".into(),
            ty => ty.base_name(),
        };
        return format!("{text}::{name}");
    }
    let digits = text.strip_prefix('-').unwrap_or_default();
    match digits.parse::<i64>() {
        Ok(number) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            let name = if i32::try_from(-number).is_ok() {
                "integer"
            } else {
                "bigint"
            };
            format!("'{text}'::{name}")
        }
        _ => text.to_owned(),
    }
}

/// The words of a referential action.
pub(super) fn action(action: Action) -> &'static str {
    match action {
        Action::NoAction => "NO ACTION",
        Action::Restrict => "RESTRICT",
        Action::Cascade => "CASCADE",
        Action::SetNull => "SET NULL",
        Action::SetDefault => "SET DEFAULT",
    }
}

/// What follows `CONSTRAINT name` in a table definition.
pub(super) fn constraint(
    cx: &CatalogCx<'_>,
    table: &Table,
    constraint: Constraint<'_>,
    pretty: bool,
) -> String {
    let mut text = match constraint {
        Constraint::Primary(..) | Constraint::Unique(_) => {
            let columns = column_list(table, constraint.columns(table));
            let nulls = match constraint {
                Constraint::Unique(index) if index.nulls_equal => " NULLS NOT DISTINCT",
                _ => "",
            };
            format!("{}{nulls} ({columns})", constraint.kind())
        }
        Constraint::Check(_, check) if pretty => {
            format!("CHECK ({})", cx.kept_text(&check.expression))
        }
        Constraint::Check(_, check) => {
            format!("CHECK (({}))", cx.kept_text(&check.expression))
        }
        Constraint::Foreign(_, key) => {
            let mut text = format!(
                "FOREIGN KEY ({}) REFERENCES {}",
                column_list(table, key.columns.iter().copied()),
                cx.shown_name(&key.parent, Database::has_relation),
            );
            if let Some(parent) = cx.database.tables.get(&key.parent) {
                let columns = column_list(parent, key.parent_columns.iter().copied());
                text += &format!("({columns})");
            }
            if key.match_full {
                text += " MATCH FULL";
            }
            for (event, choice) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
                if choice != Action::NoAction {
                    text += &format!(" ON {event} {}", action(choice));
                }
            }
            text
        }
    };
    text += match constraint.deferral() {
        Deferral::Never => "",
        Deferral::Possible => " DEFERRABLE",
        Deferral::Initial => " DEFERRABLE INITIALLY DEFERRED",
    };
    if !constraint.is_valid() {
        text += " NOT VALID";
    }
    text
}
