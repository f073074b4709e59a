//! Functions that ask the session.

use super::Env;
use base::calendar::{UNIX_EPOCH_MICROS, split_timestamp};
use base::{Datum, SqlError, SqlState, Time, Timetz, Type, text};
use functions::SessionFunc;

/// What `version()` says: clients look for the leading word and the number.
const VERSION: &str = "PostgreSQL 15.0 (Trellis 0.1.0)";

pub(super) fn apply(
    func: SessionFunc,
    args: &[Datum],
    ty: Type,
    env: &Env<'_>,
) -> Result<Datum, SqlError> {
    let session = env.session;
    Ok(match func {
        SessionFunc::TxnTime => instant(session.txn_time(), ty, args),
        SessionFunc::StatementTime => instant(session.statement_time(), ty, args),
        SessionFunc::ClockTime => instant(session.now(), ty, args),
        SessionFunc::TimeOfDay => {
            let now = instant(session.now(), Type::Timestamptz(None), &[]);
            let pattern: Datum = "Dy Mon DD HH24:MI:SS.US YYYY TZ".into();
            functions::to_char::to_char(Type::Timestamptz(None), &[now, pattern])?
        }
        // 53 bits are what a float in [0, 1) holds.
        SessionFunc::Random => Datum::Float((session.random() >> 11) as f64 / (1u64 << 53) as f64),
        SessionFunc::RandomUuid => random_uuid(session.random(), session.random()),
        SessionFunc::User => session.user().into(),
        SessionFunc::SessionUser => match session.setting("session_authorization") {
            Some(user) => user.into(),
            None => session.user().into(),
        },
        SessionFunc::Database => session.database().into(),
        SessionFunc::Schema => session.catalog_function("current_schema", &[])?,
        SessionFunc::Schemas => session.catalog_function("current_schemas", args)?,
        SessionFunc::Version => VERSION.into(),
        SessionFunc::Pid => Datum::Int(i64::from(session.pid())),
        SessionFunc::Setting | SessionFunc::SettingNow => setting(args, env)?,
        SessionFunc::SetConfig => {
            let Some(name) = args[0].as_str() else {
                let message = "SET requires parameter name";
                return Err(SqlError::new(SqlState::NULL_NOT_ALLOWED, message));
            };
            let local = args[2].as_bool() == Some(true);
            session.set_config(name, args[1].as_str(), local)?.into()
        }
        SessionFunc::ClientAddr => address(session.ends().map(|ends| ends.client)),
        SessionFunc::ClientPort => session
            .ends()
            .map(|ends| i32::from(ends.client_port))
            .into(),
        SessionFunc::ServerAddr => address(session.ends().map(|ends| ends.server)),
        SessionFunc::ServerPort => session
            .ends()
            .map(|ends| i32::from(ends.server_port))
            .into(),
    })
}

/// The end of a connection; NULL if it has no address.
fn address(end: Option<String>) -> Datum {
    let address = end.and_then(|end| text::parse(Type::Inet, &end).ok());
    address.unwrap_or_default()
}

/// A point in time as a value of `ty`, rounded to the wanted number of second digits if given.
fn instant(time: Time, ty: Type, args: &[Datum]) -> Datum {
    let mut micros = time.0 as i64 - UNIX_EPOCH_MICROS;
    if let Some(Datum::Int(digits)) = args.first() {
        micros = functions::datetime::round_micros(micros, *digits);
    }
    match ty {
        Type::Date => Datum::Date(split_timestamp(micros).0),
        Type::Timetz(_) => Datum::Timetz(Timetz {
            micros: split_timestamp(micros).1,
            west: 0,
        }),
        Type::Time(_) => Datum::Time(split_timestamp(micros).1),
        _ => Datum::Timestamp(micros),
    }
}

fn setting(args: &[Datum], env: &Env<'_>) -> Result<Datum, SqlError> {
    let name = args[0]
        .as_str()
        .expect("the binder passes text")
        .to_ascii_lowercase();
    match env.session.setting(&name) {
        Some(value) => Ok(value.into()),
        None if args.get(1).and_then(Datum::as_bool) == Some(true) => Ok(Datum::Null),
        None => {
            let message = format!("unrecognized configuration parameter \"{name}\"");
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
        }
    }
}

/// A version 4 UUID.
fn random_uuid(high: u64, low: u64) -> Datum {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&high.to_be_bytes());
    bytes[8..].copy_from_slice(&low.to_be_bytes());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Datum::Uuid(bytes)
}
