//! DROP of objects of kinds that there are none of.

use super::view::own_parts;
use super::{simple, with_notices};
use crate::plan::DdlPlan;
use base::{SqlError, SqlState};
use bind::Binder;
use parse::absent::Absent;

/// Plans the statement: notices with IF EXISTS, else an error.
///
/// # Errors
/// 42704; 42P01 for a table that is not there.
pub(crate) fn plan(absent: &Absent, binder: &Binder<'_>) -> Result<DdlPlan, SqlError> {
    let Absent {
        tag,
        noun,
        names,
        table,
        if_exists,
    } = absent;
    let mut notices = Vec::with_capacity(names.len());
    for name in names {
        let mut state = SqlState::UNDEFINED_OBJECT;
        let message = match table {
            None => format!("{noun} \"{name}\" does not exist"),
            Some(table) => {
                let shown = table.join(".");
                let full = own_parts(table, binder);
                let known = full.is_ok_and(|full| binder.cx.database.has_relation(&full));
                if known {
                    let relation = match *noun {
                        "trigger" if !if_exists => "table",
                        _ => "relation",
                    };
                    let table = table.last().map_or("", String::as_str);
                    format!("{noun} \"{name}\" for {relation} \"{table}\" does not exist")
                } else {
                    state = SqlState::UNDEFINED_TABLE;
                    format!("relation \"{shown}\" does not exist")
                }
            }
        };
        if !if_exists {
            return Err(SqlError::new(state, message));
        }
        notices.push(format!("{message}, skipping"));
    }
    Ok(with_notices(simple(tag, Vec::new()), notices))
}
