//! Functions over rows: values of composite types.

use crate::func::RowFunc;
use base::record::too_deep;
use base::{Datum, Record, SqlError};

/// Computes a function of values; those of [`RowFunc::Make`] are taken out of `args`.
///
/// # Errors
/// 54001 for rows that nest too deeply.
pub fn apply(func: &RowFunc, args: &mut [Datum]) -> Result<Datum, SqlError> {
    if let RowFunc::Make(types) = func {
        let values = args.iter_mut().map(core::mem::take);
        let record = Record::new(types, values.collect());
        return Ok(Datum::Record(Box::new(record.ok_or_else(too_deep)?)));
    }
    Ok(match (func, &args[..]) {
        (RowFunc::Field(at), [Datum::Record(record)]) => {
            let value = record.values().get(usize::from(*at));
            value.cloned().unwrap_or_default()
        }
        (RowFunc::Field(_) | RowFunc::Make(_), _) => Datum::Null,
        (RowFunc::IsNull(negated), [Datum::Record(record)]) => {
            let mut values = record.values().iter();
            values.all(|value| value.is_null() != *negated).into()
        }
        (RowFunc::IsNull(negated), _) => Datum::Bool(!negated),
    })
}
