//! Access lists: what an object without one stands for.

use super::*;
use ::functions::keywords::quote_ident;
use base::{SqlError, SqlState};

/// `acldefault(kind, owner)`: the rights that everybody and the owner have at first.
///
/// # Errors
/// XX000 for a letter that stands for no kind of object.
pub(super) fn by_default(cx: &CatalogCx<'_>, kind: &str, owner: u32) -> Result<Datum, SqlError> {
    let (everybody, own) = match kind {
        "c" => ("", ""),
        "r" => ("", "arwdDxt"),
        "s" => ("", "rwU"),
        "d" => ("Tc", "CTc"),
        "f" => ("X", "X"),
        "l" | "T" => ("U", "U"),
        "L" => ("", "rw"),
        "n" => ("", "UC"),
        "p" => ("", "sA"),
        "t" => ("", "C"),
        "F" | "S" => ("", "U"),
        _ => {
            let message = format!("unrecognized object type abbreviation: {kind}");
            return Err(SqlError::new(SqlState::INTERNAL, message));
        }
    };
    let name = names::regrole_out(cx, owner);
    let name = quote_ident(&name);
    let mut list = Vec::new();
    if !everybody.is_empty() {
        list.push(text(format!("={everybody}/{name}")));
    }
    if !own.is_empty() {
        list.push(text(format!("{name}={own}/{name}")));
    }
    Ok(array(list))
}
