//! Statements that the session carries out itself.

use crate::Statement;
use base::Type;

pub use base::Isolation;

/// Transaction modes of BEGIN, SET TRANSACTION and their like; `None`: not mentioned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TxnModes {
    /// Level.
    pub isolation: Option<Isolation>,
    /// READ ONLY or READ WRITE.
    pub read_only: Option<bool>,
    /// DEFERRABLE or NOT DEFERRABLE.
    pub deferrable: Option<bool>,
}

/// Statements that concern the session itself.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum SessionCommand {
    Begin(TxnModes),
    /// START TRANSACTION: the same by another name.
    Start(TxnModes),
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    SetTransaction(TxnModes),
    /// SET SESSION CHARACTERISTICS
    SetSessionModes(TxnModes),
    /// `value` is `None` for DEFAULT.
    Set {
        name: String,
        value: Option<String>,
        local: bool,
    },
    /// `None`: all.
    Reset(Option<String>),
    /// `None`: all.
    ShowSetting(Option<String>),
    ShowTransactionCost,
    Discard,
    /// `None`: all.
    Deallocate(Option<String>),
    Prepare {
        name: String,
        types: Vec<Type>,
        statement: Statement,
    },
    /// `text` arguments are constant expressions already evaluated.
    Execute {
        name: String,
        args: Vec<base::Datum>,
    },
}
