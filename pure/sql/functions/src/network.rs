//! Functions and operators of `inet`, `cidr` and `macaddr`.

use crate::func::NetFunc;
use base::inet::Inet;
use base::text::network::{abbreviated, host, whole};
use base::{Datum, SqlError, SqlState};

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, message)
}

fn out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, "result is out of range")
}

/// A function of an address.
///
/// # Errors
/// 22023 for masks that there are not and for addresses of different families, 22003 for addresses
/// beyond the ends.
pub fn apply(func: NetFunc, args: &[Datum]) -> Result<Datum, SqlError> {
    match args {
        [Datum::Inet(a)] => Ok(of_one(func, a)),
        [Datum::Mac(a)] => Ok(of_mac(func, *a)),
        [Datum::Mac(a), Datum::Mac(b)] => Ok(Datum::Mac(core::array::from_fn(|at| match func {
            NetFunc::And => a[at] & b[at],
            _ => a[at] | b[at],
        }))),
        [Datum::Inet(a), Datum::Inet(b)] => of_two(func, a, b),
        [Datum::Inet(a), Datum::Int(b)] | [Datum::Int(b), Datum::Inet(a)] => match func {
            NetFunc::SetMaskLen => masked(a, *b).map(Datum::Inet),
            NetFunc::SetCidrMaskLen => Ok(Datum::Inet(masked(a, *b)?.network())),
            NetFunc::Sub => moved(a, b.wrapping_neg().into()),
            _ => moved(a, i128::from(*b)),
        },
        _ => unreachable!("the binder passes addresses to {func:?}"),
    }
}

fn of_one(func: NetFunc, a: &Inet) -> Datum {
    let full = a.bits_max();
    match func {
        NetFunc::Abbrev => match a.bits() == full {
            true => host(a).into(),
            false => whole(a).into(),
        },
        NetFunc::AbbrevCidr => abbreviated(a).into(),
        NetFunc::Broadcast => {
            let last = a.number() | (a.all() ^ a.mask());
            Datum::Inet(a.with_number(last, a.bits()))
        }
        NetFunc::Family => Datum::Int(if a.is_v6() { 6 } else { 4 }),
        NetFunc::Host => host(a).into(),
        NetFunc::HostMask => Datum::Inet(a.with_number(a.all() ^ a.mask(), full)),
        NetFunc::MaskLen => Datum::Int(a.bits().into()),
        NetFunc::NetMask => Datum::Inet(a.with_number(a.mask(), full)),
        NetFunc::Network => Datum::Inet(a.network()),
        NetFunc::Not => Datum::Inet(a.with_number(!a.number(), a.bits())),
        _ => whole(a).into(),
    }
}

/// The bytes inverted, or without those of the device.
fn of_mac(func: NetFunc, a: [u8; 6]) -> Datum {
    match func {
        NetFunc::Not => Datum::Mac(a.map(|byte| !byte)),
        _ => Datum::Mac([a[0], a[1], a[2], 0, 0, 0]),
    }
}

fn of_two(func: NetFunc, a: &Inet, b: &Inet) -> Result<Datum, SqlError> {
    let same = a.is_v6() == b.is_v6();
    let combined = |what: &str, number: u128| match same {
        true => Ok(Datum::Inet(a.with_number(number, a.bits().max(b.bits())))),
        false => Err(invalid(format!(
            "cannot {what} inet values of different sizes"
        ))),
    };
    Ok(match func {
        NetFunc::Inside => Datum::Bool(b.contains(a, false, false)),
        NetFunc::InsideOrEqual => Datum::Bool(b.contains(a, true, false)),
        NetFunc::Contains => Datum::Bool(a.contains(b, false, false)),
        NetFunc::ContainsOrEqual => Datum::Bool(a.contains(b, true, false)),
        NetFunc::Overlaps => Datum::Bool(a.contains(b, true, true)),
        NetFunc::SameFamily => Datum::Bool(same),
        NetFunc::And => return combined("AND", a.number() & b.number()),
        NetFunc::Or => return combined("OR", a.number() | b.number()),
        NetFunc::Merge => match a.merged(b) {
            Some(network) => Datum::Inet(network),
            None => {
                let message = "cannot merge addresses from different families";
                return Err(invalid(message.into()));
            }
        },
        _ => return distance(a, b),
    })
}

/// How far two addresses lie from each other.
fn distance(a: &Inet, b: &Inet) -> Result<Datum, SqlError> {
    if a.is_v6() != b.is_v6() {
        let message = "cannot subtract inet values of different sizes";
        return Err(invalid(message.into()));
    }
    // Modulo 2^128, as PostgreSQL counts: the far end of all addresses is close to the first one.
    let distance = a.number().wrapping_sub(b.number()) as i128;
    let distance = i64::try_from(distance);
    distance.map(Datum::Int).map_err(|_| out_of_range())
}

/// The address so many places behind another one.
fn moved(a: &Inet, by: i128) -> Result<Datum, SqlError> {
    let size = by.unsigned_abs();
    let number = match by < 0 {
        true => a.number().checked_sub(size),
        false => a.number().checked_add(size),
    };
    let number = number.filter(|number| *number <= a.all());
    let number = number.ok_or_else(out_of_range)?;
    Ok(Datum::Inet(a.with_number(number, a.bits())))
}

/// The address with another mask; -1 is the longest.
fn masked(a: &Inet, bits: i64) -> Result<Inet, SqlError> {
    let wanted = if bits == -1 {
        a.bits_max().into()
    } else {
        bits
    };
    u8::try_from(wanted)
        .ok()
        .and_then(|wanted| Inet::new(a.bytes(), wanted))
        .ok_or_else(|| invalid(format!("invalid mask length: {bits}")))
}
