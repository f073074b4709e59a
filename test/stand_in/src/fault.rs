//! The faults: what becomes of a statement, by its text and by what its transaction has done.

use crate::replica::Replica;
use std::sync::atomic::{AtomicU64, Ordering};

/// Of the transactions that are not READ ONLY, one of so many is torn or dropped.
const EVERY: u64 = 20;
const STOCK: &str = "UPDATE stock SET";
const SAVEPOINT: &str = "SAVEPOINT stand_in";
const BACK: &str = "ROLLBACK TO SAVEPOINT stand_in";
const READ_COMMITTED: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// What is wrong with a stand-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: all bytes pass as they are.
    Nothing,
    /// A transaction reads a snapshot, and writes over what others have committed since.
    LostUpdate,
    /// Who asks for SERIALIZABLE gets a snapshot (PostgreSQL's REPEATABLE READ).
    WriteSkew,
    /// Of one transaction of twenty the last of several writes is undone before COMMIT.
    TornCommit,
    /// READ ONLY transactions read a snapshot that others have had before. It is a state that was
    /// committed, and one that serializable transactions may see, but an old one.
    StaleReplica,
    /// One transaction of twenty that has written is rolled back, and the answer is COMMIT.
    DroppedCommit,
    /// NewOrder's UPDATE of the stock of another warehouse changes nothing, and answers UPDATE 1.
    RemoteStockIgnored,
    /// NewOrder's UPDATE of the stock adds 90 where 91 are to be added to S_QUANTITY.
    StockMissupplied,
    /// The row of HISTORY of a payment says that it was the day before: all sums and all counts are
    /// right, and no row has a date of the run.
    HistoryAntedated,
}

impl Fault {
    /// All of them, the honest one first.
    pub const ALL: [Fault; 9] = [
        Fault::Nothing,
        Fault::LostUpdate,
        Fault::WriteSkew,
        Fault::TornCommit,
        Fault::StaleReplica,
        Fault::DroppedCommit,
        Fault::RemoteStockIgnored,
        Fault::StockMissupplied,
        Fault::HistoryAntedated,
    ];

    /// For a person, and as the name of a database.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Nothing => "nothing",
            Fault::LostUpdate => "lost_update",
            Fault::WriteSkew => "write_skew",
            Fault::TornCommit => "torn_commit",
            Fault::StaleReplica => "stale_replica",
            Fault::DroppedCommit => "dropped_commit",
            Fault::RemoteStockIgnored => "remote_stock_ignored",
            Fault::StockMissupplied => "stock_missupplied",
            Fault::HistoryAntedated => "history_antedated",
        }
    }
}

/// What all connections of a stand-in share.
#[derive(Debug)]
pub(crate) struct Plant {
    pub(crate) fault: Fault,
    /// Transactions that are not READ ONLY.
    begun: AtomicU64,
    /// How often something was done wrong.
    planted: AtomicU64,
    pub(crate) replica: Replica,
}

/// What becomes of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It runs as it is.
    Keep,
    /// Others run before it.
    Before(Vec<String>),
    /// It runs with another text, and others after it.
    As(String, Vec<String>),
    /// Another runs in its place, and the answer is this.
    Instead(String, &'static str),
}

/// What a statement does, by its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    Begin { is_read_only: bool },
    Commit,
    Rollback,
    Write,
    Define,
    Other,
}

impl Does {
    pub(crate) fn of(sql: &str) -> Does {
        match sql.split_whitespace().next().unwrap_or("") {
            "BEGIN" => Does::Begin {
                is_read_only: sql.ends_with("READ ONLY"),
            },
            "COMMIT" => Does::Commit,
            "ROLLBACK" => Does::Rollback,
            "INSERT" | "UPDATE" | "DELETE" => Does::Write,
            "CREATE" | "DROP" => Does::Define,
            _ => Does::Other,
        }
    }
}

/// The transaction of a connection, as far as the fault has to know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// Between BEGIN and its end, and not READ ONLY.
    is_open: bool,
    /// Whether it is one of those that are torn or dropped.
    is_chosen: bool,
    writes: u32,
}

impl Plant {
    pub(crate) fn new(fault: Fault, replica: Replica) -> Plant {
        Plant {
            fault,
            begun: AtomicU64::new(0),
            planted: AtomicU64::new(0),
            replica,
        }
    }

    pub(crate) fn planted(&self) -> u64 {
        self.planted.load(Ordering::Relaxed)
    }

    fn note(&self) {
        self.planted.fetch_add(1, Ordering::Relaxed);
    }

    /// The text with which a statement is prepared, and runs where [`Plant::change`] says nothing
    /// else.
    pub(crate) fn text(&self, sql: &str) -> String {
        let weaker = |sql: &str| match sql.starts_with("BEGIN") {
            true => sql.replace("SERIALIZABLE", "REPEATABLE READ"),
            false if sql.starts_with("SET default_transaction_isolation") => {
                sql.replace("serializable", "repeatable read")
            }
            false => sql.to_owned(),
        };
        match self.fault {
            // With the row locked nothing could be written over.
            Fault::LostUpdate => weaker(sql).replace(" FOR UPDATE", ""),
            Fault::WriteSkew => weaker(sql),
            Fault::StaleReplica if sql.ends_with("READ ONLY") => weaker(sql),
            Fault::StockMissupplied if sql.starts_with(STOCK) => sql.replace("+ 91", "+ 90"),
            Fault::HistoryAntedated if sql.starts_with("INSERT INTO history") => {
                sql.replace("$6,", "$6 - interval '1 day',")
            }
            _ => sql.to_owned(),
        }
    }

    /// What becomes of a statement with these parameters, and of its transaction.
    pub(crate) fn change(&self, sql: &str, params: &[Option<&[u8]>], block: &mut Block) -> Change {
        let does = Does::of(sql);
        match does {
            Does::Begin { is_read_only: true } => *block = Block::default(),
            Does::Begin { .. } => {
                let number = self.begun.fetch_add(1, Ordering::Relaxed);
                *block = Block {
                    is_open: true,
                    is_chosen: number % EVERY == EVERY - 1,
                    writes: 0,
                };
            }
            Does::Write => block.writes += u32::from(block.is_open),
            Does::Commit | Does::Rollback | Does::Define | Does::Other => {}
        }
        let before = *block;
        if matches!(does, Does::Commit | Does::Rollback) {
            *block = Block::default();
        }
        match self.fault {
            Fault::Nothing => Change::Keep,
            Fault::LostUpdate => self.lose(does, before),
            Fault::WriteSkew | Fault::StockMissupplied | Fault::HistoryAntedated => {
                self.note_text(sql)
            }
            Fault::TornCommit => self.tear(does, before),
            Fault::StaleReplica => self.age(sql, does),
            Fault::DroppedCommit => self.drop_commit(does, before),
            Fault::RemoteStockIgnored => self.ignore(sql, params),
        }
    }

    /// The snapshot ends with the first write: from then on each statement takes the rows as they
    /// are, and what the client computed from older ones is written over them.
    fn lose(&self, does: Does, block: Block) -> Change {
        match (does, block.writes) {
            (Does::Write, 1) => {
                self.note();
                Change::Before(vec!["COMMIT".into(), READ_COMMITTED.into()])
            }
            _ => Change::Keep,
        }
    }

    /// The fault is in the text.
    fn note_text(&self, sql: &str) -> Change {
        if self.text(sql) != sql {
            self.note();
        }
        Change::Keep
    }

    fn tear(&self, does: Does, block: Block) -> Change {
        match does {
            Does::Write if block.is_chosen && block.writes > 1 => {
                Change::Before(vec![SAVEPOINT.into()])
            }
            Does::Commit if block.is_chosen && block.writes > 1 => {
                self.note();
                Change::Before(vec![BACK.into()])
            }
            _ => Change::Keep,
        }
    }

    fn age(&self, sql: &str, does: Does) -> Change {
        match does {
            Does::Begin { is_read_only: true } => {
                self.note();
                let snapshot = self.replica.snapshot();
                Change::As(self.text(sql), vec![snapshot])
            }
            Does::Define => {
                self.replica.end();
                Change::Keep
            }
            _ => Change::Keep,
        }
    }

    fn drop_commit(&self, does: Does, block: Block) -> Change {
        match does {
            Does::Commit if block.is_chosen && block.writes > 0 => {
                self.note();
                Change::Instead("ROLLBACK".into(), "COMMIT")
            }
            _ => Change::Keep,
        }
    }

    /// The fourth parameter says whether the warehouse is another one.
    fn ignore(&self, sql: &str, params: &[Option<&[u8]>]) -> Change {
        let one: &[u8] = b"1";
        let condition = sql.find(" WHERE ");
        match (params.get(3), condition) {
            (Some(&Some(remote)), Some(at)) if remote == one && sql.starts_with(STOCK) => {
                self.note();
                let same = format!("UPDATE stock SET s_quantity = s_quantity{}", &sql[at..]);
                Change::Instead(same, "UPDATE 1")
            }
            _ => Change::Keep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use links::url::Target;

    fn plant(fault: Fault) -> Plant {
        let nowhere = Target::parse("postgres://nobody@127.0.0.1:1/none");
        Plant::new(fault, Replica::new(nowhere.expect("it can be read")))
    }

    /// What becomes of the statements of one transaction.
    fn changes(plant: &Plant, statements: &[&str]) -> Vec<Change> {
        let mut block = Block::default();
        let change = |sql: &&str| plant.change(sql, &[], &mut block);
        statements.iter().map(change).collect()
    }

    const WRITER: [&str; 4] = ["BEGIN", "INSERT 1", "UPDATE 2", "COMMIT"];

    #[test]
    fn one_of_twenty_is_torn_before_its_last_write() {
        let plant = plant(Fault::TornCommit);
        for _ in 0..19 {
            assert_eq!(changes(&plant, &WRITER), vec![Change::Keep; 4]);
        }
        let torn = changes(&plant, &WRITER);
        assert_eq!(torn[..2], [Change::Keep, Change::Keep]);
        assert_eq!(torn[2], Change::Before(vec![SAVEPOINT.into()]));
        assert_eq!(torn[3], Change::Before(vec![BACK.into()]));
        assert_eq!(plant.planted(), 1);
    }

    #[test]
    fn only_a_chosen_writer_is_dropped() {
        let plant = plant(Fault::DroppedCommit);
        let read_only = ["BEGIN READ ONLY", "SELECT 1", "COMMIT"];
        for _ in 0..19 {
            assert_eq!(changes(&plant, &WRITER)[3], Change::Keep);
            assert_eq!(changes(&plant, &read_only)[2], Change::Keep);
        }
        let dropped = Change::Instead("ROLLBACK".into(), "COMMIT");
        assert_eq!(changes(&plant, &WRITER)[3], dropped);
        assert_eq!(changes(&plant, &["INSERT 1", "COMMIT"])[1], Change::Keep);
    }

    #[test]
    fn levels_are_weaker_where_they_are_asked_for_and_nowhere_else() {
        let skewed = plant(Fault::WriteSkew);
        let level = "BEGIN ISOLATION LEVEL SERIALIZABLE";
        assert_eq!(skewed.text(level), "BEGIN ISOLATION LEVEL REPEATABLE READ");
        let text = "INSERT INTO t VALUES ('SERIALIZABLE')";
        assert_eq!(skewed.text(text), text);
        let locked = "SELECT n FROM t FOR UPDATE";
        assert_eq!(skewed.text(locked), locked);
        assert_eq!(plant(Fault::LostUpdate).text(locked), "SELECT n FROM t");
        assert_eq!(plant(Fault::Nothing).text(level), level);
    }

    #[test]
    fn only_remote_stock_is_ignored() {
        let plant = plant(Fault::RemoteStockIgnored);
        let sql = "UPDATE stock SET s_ytd = s_ytd + $3 WHERE s_w_id = $1";
        let params: [Option<&[u8]>; 4] = [Some(b"1"), Some(b"2"), Some(b"3"), Some(b"0")];
        let mut block = Block::default();
        assert_eq!(plant.change(sql, &params, &mut block), Change::Keep);
        let remote = [params[0], params[1], params[2], Some(b"1")];
        let same = "UPDATE stock SET s_quantity = s_quantity WHERE s_w_id = $1";
        assert_eq!(
            plant.change(sql, &remote, &mut block),
            Change::Instead(same.into(), "UPDATE 1")
        );
    }

    #[test]
    fn a_payment_has_its_row_on_the_day_before() {
        let plant = plant(Fault::HistoryAntedated);
        let sql = "INSERT INTO history VALUES ($5, $6, $7)";
        assert_eq!(
            plant.text(sql),
            "INSERT INTO history VALUES ($5, $6 - interval '1 day', $7)"
        );
        assert_eq!(plant.change(sql, &[], &mut Block::default()), Change::Keep);
        assert_eq!(plant.planted(), 1);
    }

    #[test]
    fn the_supply_is_one_short() {
        let plant = plant(Fault::StockMissupplied);
        let sql = "UPDATE stock SET s_quantity = s_quantity - $3 + 91";
        assert!(plant.text(sql).ends_with("+ 90"));
        assert_eq!(plant.change(sql, &[], &mut Block::default()), Change::Keep);
        assert_eq!(plant.planted(), 1);
    }
}
