//! Functions that ask the session.

use super::*;
use functions::SessionFunc;

const fn s(name: &'static str, args: &'static [Arg], ret: Type, func: SessionFunc) -> Entry {
    f(name, args, ret, Func::Session(func))
}

const NAMES: Type = Type::Array(ArrayKind::Name);

/// Entries of this family.
pub(super) static TABLE: &[Entry] = &[
    s("now", &[], Type::Timestamptz(None), SessionFunc::TxnTime),
    s(
        "transaction_timestamp",
        &[],
        Type::Timestamptz(None),
        SessionFunc::TxnTime,
    ),
    s(
        "current_timestamp",
        &[],
        Type::Timestamptz(None),
        SessionFunc::TxnTime,
    ),
    s(
        "current_timestamp",
        &[I4],
        Type::Timestamptz(None),
        SessionFunc::TxnTime,
    ),
    s(
        "localtimestamp",
        &[],
        Type::Timestamp(None),
        SessionFunc::TxnTime,
    ),
    s(
        "localtimestamp",
        &[I4],
        Type::Timestamp(None),
        SessionFunc::TxnTime,
    ),
    s("current_date", &[], Type::Date, SessionFunc::TxnTime),
    s(
        "statement_timestamp",
        &[],
        Type::Timestamptz(None),
        SessionFunc::StatementTime,
    ),
    s(
        "clock_timestamp",
        &[],
        Type::Timestamptz(None),
        SessionFunc::ClockTime,
    ),
    s("timeofday", &[], Type::Text, SessionFunc::TimeOfDay),
    s("random", &[], Type::Float8, SessionFunc::Random),
    s("gen_random_uuid", &[], Type::Uuid, SessionFunc::RandomUuid),
    s("current_user", &[], Type::Name, SessionFunc::User),
    s("session_user", &[], Type::Name, SessionFunc::User),
    s("current_role", &[], Type::Name, SessionFunc::User),
    s("user", &[], Type::Name, SessionFunc::User),
    s("getpgusername", &[], Type::Name, SessionFunc::User),
    s("current_database", &[], Type::Name, SessionFunc::Database),
    s("current_catalog", &[], Type::Name, SessionFunc::Database),
    s("current_schema", &[], Type::Name, SessionFunc::Schema),
    s("current_schemas", &[BOOL], NAMES, SessionFunc::Schemas),
    s("version", &[], Type::Text, SessionFunc::Version),
    s("pg_backend_pid", &[], Type::Int4, SessionFunc::Pid),
    s("current_setting", &[TXT], Type::Text, SessionFunc::Setting),
    s(
        "current_setting",
        &[TXT, BOOL],
        Type::Text,
        SessionFunc::Setting,
    ),
    s(
        "set_config",
        &[TXT, TXT, BOOL],
        Type::Text,
        SessionFunc::SetConfig,
    ),
    s("inet_server_addr", &[], Type::Text, SessionFunc::ServerAddr),
    s("inet_server_port", &[], Type::Int4, SessionFunc::ServerPort),
    s("inet_client_addr", &[], Type::Text, SessionFunc::ClientAddr),
    s("inet_client_port", &[], Type::Int4, SessionFunc::ClientPort),
    f("nextval", &[TXT], Type::Int8, Func::NextVal),
    f("nextval", &[OID], Type::Int8, Func::NextVal),
    f("pg_sleep", &[F8], Type::Text, Func::Sleep),
];
