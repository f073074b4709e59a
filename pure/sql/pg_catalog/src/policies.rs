//! Row security: pg_policy, pg_policies.

use super::*;
use catalog::Condition;

/// A condition as `pg_get_expr` prints it.
fn condition(cx: &CatalogCx<'_>, condition: Option<&Condition>) -> Datum {
    match condition {
        None => Datum::Null,
        Some(condition) => text(cx.kept_text(&catalog::as_key(condition.text.trim()))),
    }
}

pub(super) fn rows(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for (table, policy) in cx.database.policies() {
        out.push([
            oid(policy.id),
            text(policy.name.as_str()),
            oid(table.id.0),
            text(policy.command.letter()),
            flag(policy.permissive),
            array(policy.roles.iter().map(|role| oid(role.0))),
            condition(cx, policy.using.as_ref()),
            condition(cx, policy.check.as_ref()),
        ]);
    }
}

pub(super) fn list(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let name = |role: &::rights::RoleId| match *role {
        ::rights::RoleId::PUBLIC => "public".into(),
        role => cx.role_name(role),
    };
    for (table, policy) in cx.database.policies() {
        out.push([
            cx.schema(&table.name),
            text(own(&table.name)),
            text(policy.name.as_str()),
            text(match policy.permissive {
                true => "PERMISSIVE",
                false => "RESTRICTIVE",
            }),
            {
                let mut names: Vec<String> = policy.roles.iter().map(name).collect();
                names.sort();
                array(names.into_iter().map(text))
            },
            text(policy.command.word()),
            condition(cx, policy.using.as_ref()),
            condition(cx, policy.check.as_ref()),
        ]);
    }
}

/// Whether policies of a table concern the session's role.
pub(super) fn is_active(cx: &CatalogCx<'_>, table: u32) -> Datum {
    let table = base::TableId(table);
    flag(
        cx.catalog
            .rows_guarded(cx.database, table, cx.acting())
            .is_some(),
    )
}
