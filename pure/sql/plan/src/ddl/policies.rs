//! CREATE, ALTER and DROP POLICY; ALTER TABLE .. ROW LEVEL SECURITY, and .. TRIGGER ALL.

use super::simple;
use super::view::own_parts;
use crate::plan::DdlPlan;
use base::full_name::{own, schema_of};
use base::limits::VIEW_BYTES_MAX;
use base::{SqlError, SqlState};
use bind::{Binder, query_of, unsupported};
use catalog::{Command, Condition, PolicyChange, Table, mark};
use functions::keywords::quote_ident;
use parse::{PolicyParts, PolicyStatement, PolicyWords};
use rights::RoleName;
use sqlparser::ast;

pub(super) fn plan(
    statement: &PolicyStatement,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let PolicyStatement {
        tag,
        table,
        if_exists,
        changes,
    } = statement;
    let full = own_parts(table, binder)?;
    let found = binder.cx.database.table(&full).cloned();
    let drops = |change: &PolicyWords| match change {
        PolicyWords::Drop { name: _, if_exists } => *if_exists,
        _ => false,
    };
    let passes = *if_exists || changes.iter().all(drops);
    if passes && !binder.cx.database.has_relation(&full) {
        let name = table.join(".");
        let notice = format!("relation \"{name}\" does not exist, skipping");
        return Ok(DdlPlan {
            notices: vec![notice],
            ..simple(tag, Vec::new())
        });
    }
    let mut commands = Vec::with_capacity(changes.len());
    for change in changes {
        commands.push(Command::Policy {
            database: binder.cx.database.name.clone(),
            table: full.clone(),
            change: bound(change, found.as_deref(), binder)?,
        });
    }
    Ok(simple(tag, commands))
}

/// The change with bound conditions. Without a table the catalog refuses it.
fn bound(
    change: &PolicyWords,
    table: Option<&Table>,
    binder: &mut Binder<'_>,
) -> Result<PolicyChange, SqlError> {
    Ok(match change {
        PolicyWords::Enable(on) => PolicyChange::Enable(*on),
        PolicyWords::Force(on) => PolicyChange::Force(*on),
        PolicyWords::Triggers(on) => {
            if table.is_some_and(Table::has_keys) {
                // The triggers of foreign keys are PostgreSQL's own.
                let denied = "permission denied: \"RI_ConstraintTrigger\" is a system trigger";
                binder.need_for_change(|binder| binder.need_superuser(denied));
            }
            PolicyChange::Triggers(*on)
        }
        PolicyWords::Create {
            name,
            permissive,
            command,
            parts,
        } => {
            let (using, check) = conditions(parts, table, binder)?;
            PolicyChange::Create {
                name: name.clone(),
                permissive: *permissive,
                command: *command,
                roles: parts.roles.clone().unwrap_or(vec![RoleName::Public]),
                using,
                check,
            }
        }
        PolicyWords::Alter { name, parts } => {
            let (using, check) = conditions(parts, table, binder)?;
            PolicyChange::Alter {
                name: name.clone(),
                roles: parts.roles.clone(),
                using,
                check,
            }
        }
        PolicyWords::Rename { name, to } => PolicyChange::Rename {
            name: name.clone(),
            to: to.clone(),
        },
        PolicyWords::Drop { name, if_exists } => PolicyChange::Drop {
            name: name.clone(),
            if_exists: *if_exists,
        },
    })
}

type Conditions = (Option<Condition>, Option<Condition>);

fn conditions(
    parts: &PolicyParts,
    table: Option<&Table>,
    binder: &mut Binder<'_>,
) -> Result<Conditions, SqlError> {
    let PolicyParts {
        roles: _,
        using,
        check,
    } = parts;
    let Some(table) = table else {
        return Ok((None, None));
    };
    let mut one = |text: &Option<String>| {
        let text = text.as_deref();
        text.map(|text| condition(text, table, binder)).transpose()
    };
    Ok((one(using)?, one(check)?))
}

/// Binds a condition as that of a query over the table, whose text is kept as that of a view is.
fn condition(text: &str, table: &Table, binder: &mut Binder<'_>) -> Result<Condition, SqlError> {
    let (schema, name) = (mark(schema_of(&table.name)), quote_ident(own(&table.name)));
    let before = format!("SELECT 1 FROM {schema}.{name} WHERE ");
    let parsed = parse::parse(&format!("{before}({text})")).map_err(|error| error.at(0))?;
    let [statement] = parsed.as_slice() else {
        return Err(unsupported("this condition of a policy"));
    };
    let query = query_of(statement).ok_or_else(|| unsupported("this condition of a policy"))?;
    let view = binder.new_view(statement, query).map_err(of_policy)?;
    let kept = view.text.strip_prefix(&before).map(str::trim);
    let kept = kept.and_then(|kept| kept.strip_prefix('(')?.strip_suffix(')'));
    let kept = kept.ok_or_else(|| unsupported("this condition of a policy"))?;
    let kept = bare(kept)?;
    if kept.len() > VIEW_BYTES_MAX {
        let message =
            format!("the condition of a policy cannot be longer than {VIEW_BYTES_MAX} bytes");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message));
    }
    let lower = kept.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let plain = !words.any(|word| matches!(word, "select" | "values" | "table" | "with"));
    Ok(Condition {
        text: kept.into(),
        uses: view.uses,
        plain,
    })
}

/// The condition without parentheses around the whole. What stands behind the condition would be
/// none of it.
fn bare(mut text: &str) -> Result<&str, SqlError> {
    loop {
        text = text.trim();
        let parsed = parse::expression(text).map_err(|error| error.at(0))?;
        let inner = match parsed {
            ast::Expr::Nested(_) => text
                .strip_prefix('(')
                .and_then(|text| text.strip_suffix(')')),
            _ => None,
        };
        match inner {
            Some(inner) => text = inner,
            None => return Ok(text),
        }
    }
}

/// The error of a condition in PostgreSQL's words for policies.
fn of_policy(error: SqlError) -> SqlError {
    let message = &error.fields().message;
    let words = message
        .replace(
            "are not allowed in WHERE",
            "are not allowed in policy expressions",
        )
        .replace("argument of WHERE", "argument of POLICY");
    match words == *message {
        true => error.at(0),
        false => SqlError::new(error.state(), words),
    }
}
