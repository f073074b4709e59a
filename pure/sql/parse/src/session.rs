//! Statements that the session carries out itself.

use crate::Statement;
use base::Type;
use std::sync::Arc;

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

/// DECLARE.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// Name of the cursor.
    pub name: String,
    /// Whether it goes backward too: it is not NO SCROLL.
    pub backward: bool,
    /// Whether it outlives the transaction: it is WITH HOLD.
    pub holds: bool,
    /// The query.
    pub statement: Statement,
}

/// DO.
#[derive(Debug)]
pub struct DoBlock {
    /// What it does.
    pub program: Arc<plpgsql::Program>,
    /// The statement of each text of SQL in it.
    pub statements: Vec<Statement>,
}

/// Where FETCH and MOVE go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Over this many rows, backward if it is negative; [`i64::MAX`]: all; 0: stays.
    Forward(i64),
    /// To the row of this number, from 1; from the end if it is negative; 0: before the first.
    Absolute(i64),
    /// To the row that is this far away.
    Relative(i64),
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
    Savepoint(String),
    Release(String),
    RollBackTo(String),
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
    DiscardSequences,
    DiscardTemporary,
    /// DO in PL/pgSQL.
    Do(Arc<DoBlock>),
    /// `None`: all.
    Deallocate(Option<String>),
    Prepare {
        name: String,
        types: Vec<Type>,
        statement: Statement,
    },
    Declare(Declaration),
    /// FETCH, or MOVE if it `moves`.
    Fetch {
        name: String,
        direction: Direction,
        moves: bool,
    },
    /// `None`: all cursors.
    Close(Option<String>),
    Listen(String),
    /// `None`: all channels.
    Unlisten(Option<String>),
    Notify {
        channel: String,
        payload: String,
    },
    /// `text` arguments are constant expressions already evaluated.
    Execute {
        name: String,
        args: Vec<base::Datum>,
    },
}
