//! Access lists: what an object without one stands for, and what one says.

use super::*;
use ::functions::keywords::quote_ident;
use ::rights::Privileges;
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

/// One privilege that an item of an access list gives.
struct Given {
    grantor: u32,
    /// 0: everybody.
    grantee: u32,
    word: &'static str,
    with_option: bool,
}

/// A column of the rows of `aclexplode` or `_pg_expandarray`, as an array.
///
/// # Errors
/// 22P02 for a text that is no item of an access list, 42704 for one of a role that is not there.
pub(super) fn column_of_rows(
    cx: &CatalogCx<'_>,
    (function, column): (&str, &str),
    list: &Datum,
) -> Result<Datum, SqlError> {
    let items = list.as_array().unwrap_or_default();
    if function == "_pg_expandarray" {
        return Ok(array((1..=items.len()).map(int)));
    }
    let mut values = Vec::new();
    for item in items.iter().filter_map(Datum::as_str) {
        values.extend(given(cx, item)?.into_iter().map(|one| match column {
            "grantor" => oid(one.grantor),
            "grantee" => oid(one.grantee),
            "privilege_type" => text(one.word),
            _ => flag(one.with_option),
        }));
    }
    Ok(array(values))
}

/// What an item of an access list gives: `grantee=privileges/grantor`.
fn given(cx: &CatalogCx<'_>, item: &str) -> Result<Vec<Given>, SqlError> {
    let malformed = || {
        let message = format!("invalid input syntax for type aclitem: \"{item}\"");
        SqlError::new(SqlState::INVALID_TEXT, message)
    };
    let role = |name: &str| {
        cx.role_named(name).map(|role| role.0).ok_or_else(|| {
            let message = format!("role \"{name}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_OBJECT, message)
        })
    };
    let (grantee, rest) = role_of_item(item).ok_or_else(malformed)?;
    let rest = rest.strip_prefix('=').ok_or_else(malformed)?;
    let (letters, grantor) = rest.split_once('/').ok_or_else(malformed)?;
    let (grantor, behind) = role_of_item(grantor).ok_or_else(malformed)?;
    if !behind.is_empty() {
        return Err(malformed());
    }
    let grantee = match grantee.as_str() {
        "" => 0,
        name => role(name)?,
    };
    let grantor = role(&grantor)?;
    let mut all: Vec<Given> = Vec::new();
    for letter in letters.chars() {
        match (letter, all.last_mut()) {
            ('*', Some(last)) => last.with_option = true,
            _ => {
                let mut known = Privileges(u16::MAX).each();
                let (_, _, word) = known
                    .find(|(_, own, _)| *own == letter)
                    .ok_or_else(malformed)?;
                all.push(Given {
                    grantor,
                    grantee,
                    word,
                    with_option: false,
                });
            }
        }
    }
    Ok(all)
}

/// The name at the beginning of a text, without quotes, and what stands behind it; `None`: its
/// quotes do not end.
fn role_of_item(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(['=', '/']).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut name = String::new();
    let mut rest = quoted;
    loop {
        let (head, tail) = rest.split_once('"')?;
        name.push_str(head);
        match tail.strip_prefix('"') {
            Some(next) => {
                name.push('"');
                rest = next;
            }
            None => return Some((name, tail)),
        }
    }
}
