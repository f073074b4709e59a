//! Functions that ask the session.

use super::*;
use functions::SessionFunc;

/// Functions of this family.
pub(super) static TABLE: &[Function] = table! {
    "now" "transaction_timestamp": Func::Session(SessionFunc::TxnTime) => () TSTZ;
    "current_timestamp": Func::Session(SessionFunc::TxnTime) => () TSTZ, (I4) TSTZ;
    "current_time": Func::Session(SessionFunc::TxnTime) => () TIMETZ, (I4) TIMETZ;
    "localtimestamp": Func::Session(SessionFunc::TxnTime) => () TS, (I4) TS;
    "localtime": Func::Session(SessionFunc::TxnTime) => () TIME, (I4) TIME;
    "current_date": Func::Session(SessionFunc::TxnTime) => () DATE;
    "statement_timestamp": Func::Session(SessionFunc::StatementTime) => () TSTZ;
    "clock_timestamp": Func::Session(SessionFunc::ClockTime) => () TSTZ;
    "timeofday": Func::Session(SessionFunc::TimeOfDay) => () TXT;
    "random": Func::Session(SessionFunc::Random) => () F8;
    "gen_random_uuid" "uuid_generate_v4": Func::Session(SessionFunc::RandomUuid) => () UUID;
    "current_user" "current_role" "user" "getpgusername":
        Func::Session(SessionFunc::User) => () NAME;
    "session_user": Func::Session(SessionFunc::SessionUser) => () NAME;
    "current_database" "current_catalog": Func::Session(SessionFunc::Database) => () NAME;
    "current_schema": Func::Session(SessionFunc::Schema) => () NAME;
    "current_schemas": Func::Session(SessionFunc::Schemas) => (BOOL) NAMES;
    "version": Func::Session(SessionFunc::Version) => () TXT;
    "pg_backend_pid": Func::Session(SessionFunc::Pid) => () I4;
    "current_setting": Func::Session(SessionFunc::Setting) => (TXT) TXT, (TXT, BOOL) TXT;
    "set_config": Func::Session(SessionFunc::SetConfig) => (TXT, TXT, BOOL) TXT;
    "inet_server_addr": Func::Session(SessionFunc::ServerAddr) => () INET;
    "inet_server_port": Func::Session(SessionFunc::ServerPort) => () I4;
    "inet_client_addr": Func::Session(SessionFunc::ClientAddr) => () INET;
    "inet_client_port": Func::Session(SessionFunc::ClientPort) => () I4;
    "nextval": Func::NextVal => (TXT) I8, (OID) I8;
    "pg_sleep": Func::Sleep => (F8) TXT;
};
