//! Full names in GRANT and OWNER TO, whose parser knows only how names are written.

use super::written;
use base::SqlError;
use base::SqlState;
use bind::Binder;
use rights::{Change, Grant, ObjectKind, ObjectNames};

/// The change with full names in place of written ones.
///
/// # Errors
/// Those of names; what IF EXISTS passes over is left to the catalog.
pub(super) fn named(change: &Change, binder: &Binder<'_>) -> Result<Change, SqlError> {
    let all = |names: &[String]| {
        let names = names.iter().map(|name| written(name, binder));
        names.collect::<Result<Vec<_>, _>>()
    };
    Ok(match change {
        Change::Grant(grant) => Change::Grant(Grant {
            objects: match &grant.objects {
                ObjectNames::Relations(names) => ObjectNames::Relations(all(names)?),
                ObjectNames::Sequences(names) => ObjectNames::Sequences(all(names)?),
                other => other.clone(),
            },
            ..grant.clone()
        }),
        Change::Owner {
            kind: ObjectKind::Schema,
            name,
            if_exists,
            to,
        } => Change::Owner {
            kind: ObjectKind::Schema,
            name: pg_catalog::names::parts(name)?.pop().unwrap_or_default(),
            if_exists: *if_exists,
            to: to.clone(),
        },
        Change::Owner {
            kind,
            name,
            if_exists,
            to,
        } if *kind != ObjectKind::Database => {
            let full = match written(name, binder) {
                Err(error) if *if_exists && error.state() == SqlState::INVALID_SCHEMA => {
                    name.clone()
                }
                other => other?,
            };
            Change::Owner {
                kind: *kind,
                name: full,
                if_exists: *if_exists,
                to: to.clone(),
            }
        }
        other => other.clone(),
    })
}
