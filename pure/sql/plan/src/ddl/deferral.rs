//! DEFERRABLE and INITIALLY of constraints.

use base::{SqlError, SqlState};
use bind::{Binder, unsupported};
use catalog::Deferral;
use sqlparser::ast::{ConstraintCharacteristics, DeferrableInitial};

/// Keys are checked as rows are written.
pub(super) fn check_immediate(
    characteristics: &Option<ConstraintCharacteristics>,
    binder: &Binder<'_>,
) -> Result<(), SqlError> {
    let Some(ConstraintCharacteristics {
        // Without SET CONSTRAINTS nothing is ever put off.
        deferrable: _,
        initially,
        enforced,
    }) = characteristics
    else {
        return Ok(());
    };
    binder.no(enforced.is_some(), "ENFORCED")?;
    match initially {
        Some(DeferrableInitial::Deferred) => Err(unsupported("INITIALLY DEFERRED of a key")
            .hint("Foreign keys can be deferred; primary keys and unique constraints cannot.")),
        Some(DeferrableInitial::Immediate) | None => Ok(()),
    }
}

/// When a foreign key is checked.
pub(super) fn deferral(
    characteristics: &Option<ConstraintCharacteristics>,
    binder: &Binder<'_>,
) -> Result<Deferral, SqlError> {
    let Some(ConstraintCharacteristics {
        deferrable,
        initially,
        enforced,
    }) = characteristics
    else {
        return Ok(Deferral::Never);
    };
    binder.no(enforced.is_some(), "ENFORCED")?;
    match (deferrable, initially) {
        (Some(false), Some(DeferrableInitial::Deferred)) => Err(SqlError::new(
            SqlState::SYNTAX,
            "constraint declared INITIALLY DEFERRED must be DEFERRABLE",
        )),
        (_, Some(DeferrableInitial::Deferred)) => Ok(Deferral::Initial),
        (Some(true), _) => Ok(Deferral::Possible),
        _ => Ok(Deferral::Never),
    }
}
