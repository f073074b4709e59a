//! DEFERRABLE and INITIALLY of constraints.

use base::{SqlError, SqlState};
use bind::Binder;
use catalog::Deferral;
use sqlparser::ast::{ConstraintCharacteristics, DeferrableInitial};

/// When a constraint is checked.
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
