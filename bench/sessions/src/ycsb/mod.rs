//! YCSB's workloads A to F over entities: each record is an entity and a group of its own.
//!
//! | mix | interactions | keys |
//! |---|---|---|
//! | A | 50 % READ, 50 % UPDATE | Zipf |
//! | B | 95 % READ, 5 % UPDATE | Zipf |
//! | C | READ | Zipf |
//! | D | 95 % READ, 5 % INSERT | the latest |
//! | E | 95 % SCAN, 5 % INSERT | Zipf; a scan of 1 to 100 records, evenly |
//! | F | 50 % READ, 50 % READ_MODIFY_WRITE | Zipf |
//! | M | MULTI_STEP: transactions of several steps | Zipf |
//!
//! Other than in YCSB, UPDATE is a transaction that reads the record first: an entity is written
//! whole, and each record counts its updates for the check. Hot records are scattered over the
//! keys, which are numbers.

mod entities;
mod sql;
mod steps;

pub use sql::statements;
pub use steps::{Op, Step, Steps};

use crate::access::{Access, first_number};
use crate::distribution::{Ranks, dealt, letters};
use crate::document::{Problem, Section};
use crate::interaction::{
    Changed, Changes, Failure, Interaction, Performed, Plan, Session, dispatch,
};
use crate::run::{Needs, Part, Workload};
use crate::table::Table;
use base::Prng;
use entity::{Entity, Schema, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use workload::dike::imbalance::Access as Dealt;
use workload::stream;

/// The most records.
const RECORDS_MAX: u64 = 10_000_000;
/// Fields of a record.
const FIELDS: u64 = 10;
/// Tag of the generator of records that are loaded.
const LOAD: u64 = 0x7963_7362;

const READ: usize = 0;
const UPDATE: usize = 1;
const INSERT: usize = 2;
const SCAN: usize = 3;
const MODIFY: usize = 4;
const STEPS: usize = 5;
/// How keys are drawn without `key_access`.
const USUAL: Dealt = Dealt::Zipf { exponent: 0.99 };
/// Updates of a record, in [`Changes`].
const UPDATED: &str = "usertable";

const INTERACTIONS: [(&str, &[&str]); 6] = [
    ("READ", &["MISSING"]),
    ("UPDATE", &["MISSING"]),
    ("INSERT", &[]),
    ("SCAN", &[]),
    ("READ_MODIFY_WRITE", &["MISSING"]),
    ("MULTI_STEP", &[]),
];

/// A record.
#[derive(Clone, Debug, PartialEq, Entity)]
pub struct Usertable {
    /// From 0.
    #[id]
    #[group]
    pub ycsb_key: i64,
    /// How often it was updated.
    pub changes: i64,
    /// Letters, as all further ones.
    pub field0: String,
    /// See `field0`.
    pub field1: String,
    /// See `field0`.
    pub field2: String,
    /// See `field0`.
    pub field3: String,
    /// See `field0`.
    pub field4: String,
    /// See `field0`.
    pub field5: String,
    /// See `field0`.
    pub field6: String,
    /// See `field0`.
    pub field7: String,
    /// See `field0`.
    pub field8: String,
    /// See `field0`.
    pub field9: String,
}

impl Usertable {
    fn new(key: i64, prng: &mut Prng, length: usize) -> Usertable {
        let mut field = || letters(prng, length);
        Usertable {
            ycsb_key: key,
            changes: 0,
            field0: field(),
            field1: field(),
            field2: field(),
            field3: field(),
            field4: field(),
            field5: field(),
            field6: field(),
            field7: field(),
            field8: field(),
            field9: field(),
        }
    }

    fn field_mut(&mut self, field: u64) -> &mut String {
        match field {
            0 => &mut self.field0,
            1 => &mut self.field1,
            2 => &mut self.field2,
            3 => &mut self.field3,
            4 => &mut self.field4,
            5 => &mut self.field5,
            6 => &mut self.field6,
            7 => &mut self.field7,
            8 => &mut self.field8,
            _ => &mut self.field9,
        }
    }
}

/// The workload.
#[derive(Clone, Debug)]
pub struct Ycsb {
    mix: char,
    records: u64,
    keys: Ranks,
    is_latest: bool,
    field_bytes: usize,
    scan_max: u64,
    /// Steps of a MULTI_STEP, and operations of a step.
    steps: u64,
    step_ops: u64,
    /// The next key that is inserted, and keys below which all are there.
    next: Arc<AtomicU64>,
    there: Arc<AtomicU64>,
}

impl Ycsb {
    /// Reads `mix` (A to F, or M), `records` (10000), `field_bytes` (100), `scan_max` (100),
    /// `key_access` (`zipf:0.99`), `steps` (3) and `operations_per_step` (3).
    ///
    /// # Errors
    /// A key that is not known, or a number out of its bounds.
    pub fn read(mut section: Section<'_>) -> Result<Ycsb, Problem> {
        let mix = match section.text("mix")?.unwrap_or("A") {
            mix @ ("A" | "B" | "C" | "D" | "E" | "F" | "M") => mix.chars().next().unwrap_or('A'),
            other => {
                let text = format!("{other:?} is none of A, B, C, D, E, F, M");
                return Err(section.problem("mix", text));
            }
        };
        let records = section.count("records", 1..=RECORDS_MAX)?.unwrap_or(10_000);
        let field_bytes = section.count("field_bytes", 0..=1 << 20)?.unwrap_or(100);
        let scan_max = section.count("scan_max", 1..=100_000)?.unwrap_or(100);
        let steps = section.count("steps", 1..=1_000)?.unwrap_or(3);
        let step_ops = section
            .count("operations_per_step", 1..=1_000)?
            .unwrap_or(3);
        let dealt = dealt(&mut section, "key_access", USUAL)?;
        section.finish()?;
        let is_latest = mix == 'D';
        Ok(Ycsb {
            mix,
            records,
            keys: Ranks::new(dealt, records, dealt != Dealt::Uniform && !is_latest),
            is_latest,
            field_bytes: field_bytes as usize,
            scan_max,
            steps,
            step_ops,
            next: Arc::new(AtomicU64::new(records)),
            there: Arc::new(AtomicU64::new(records)),
        })
    }

    /// The types of its entities.
    pub fn schema() -> Schema {
        let mut schema = Schema::new();
        schema
            .add(Usertable::TYPE)
            .expect("the type is well formed");
        schema
    }

    fn key(&self, session: &mut Session) -> i64 {
        let rank = self.keys.draw(&mut session.draws);
        match self.is_latest {
            true => (self.there.load(Ordering::Relaxed) - 1).saturating_sub(rank) as i64,
            false => rank as i64,
        }
    }

    fn change(&self, session: &mut Session) -> Change {
        let key = self.key(session);
        Change {
            key,
            field: session.draws.below(FIELDS),
            content: letters(&mut session.draws, self.field_bytes),
        }
    }
}

/// Reads a record.
#[derive(Clone, Copy, Debug)]
pub struct Read<'a>(&'a Ycsb);

impl Plan for Read<'_> {
    /// The key.
    type Param = i64;
    /// Whether it was found.
    type Answer = bool;

    fn prepare(&self, session: &mut Session) -> Option<i64> {
        Some(self.0.key(session))
    }

    fn complete(&self, _: &i64, answer: bool, _: &mut Session) -> &'static str {
        found(answer)
    }
}

fn found(is_found: bool) -> &'static str {
    match is_found {
        true => "",
        false => "MISSING",
    }
}

/// A new content of one field.
#[derive(Clone, Debug)]
pub struct Change {
    key: i64,
    field: u64,
    content: String,
}

/// Replaces a field of a record.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    ycsb: &'a Ycsb,
    /// The record is an answer of its own: READ_MODIFY_WRITE.
    reads: bool,
}

impl Plan for Update<'_> {
    type Param = Change;
    /// Whether it was found.
    type Answer = bool;

    fn prepare(&self, session: &mut Session) -> Option<Change> {
        Some(self.ycsb.change(session))
    }

    fn complete(&self, _: &Change, answer: bool, _: &mut Session) -> &'static str {
        found(answer)
    }

    fn note(&self, param: &Change, answer: Option<&bool>, changes: &mut Changes) {
        if answer != Some(&false) {
            changes.note(UPDATED, param.key as u64, 1, answer.is_some());
        }
    }
}

/// Inserts the next record.
#[derive(Clone, Copy, Debug)]
pub struct Insert<'a>(&'a Ycsb);

impl Plan for Insert<'_> {
    type Param = Usertable;
    type Answer = ();

    fn prepare(&self, session: &mut Session) -> Option<Usertable> {
        let key = self.0.next.fetch_add(1, Ordering::Relaxed);
        Some(Usertable::new(
            key as i64,
            &mut session.draws,
            self.0.field_bytes,
        ))
    }

    fn complete(&self, param: &Usertable, (): (), _: &mut Session) -> &'static str {
        let key = param.ycsb_key as u64;
        self.0.there.fetch_max(key + 1, Ordering::Relaxed);
        ""
    }

    fn note(&self, param: &Usertable, answer: Option<&()>, changes: &mut Changes) {
        changes.note("inserted", param.ycsb_key as u64, 1, answer.is_some());
    }
}

/// Reads records with neighbouring keys.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a>(&'a Ycsb);

impl Plan for Scan<'_> {
    /// The first key, and how many.
    type Param = (i64, i64);
    /// How many were found.
    type Answer = usize;

    fn prepare(&self, session: &mut Session) -> Option<(i64, i64)> {
        let key = self.0.key(session);
        Some((key, session.draws.below(self.0.scan_max) as i64 + 1))
    }

    fn complete(&self, _: &(i64, i64), _: usize, _: &mut Session) -> &'static str {
        ""
    }
}

impl<D> Workload<D> for Ycsb
where
    D: Access,
    for<'a> Read<'a>: Interaction<D>,
    for<'a> Update<'a>: Interaction<D>,
    for<'a> Insert<'a>: Interaction<D>,
    for<'a> Scan<'a>: Interaction<D>,
    for<'a> Steps<'a>: Interaction<D>,
{
    fn interactions(&self) -> &[(&'static str, &'static [&'static str])] {
        &INTERACTIONS
    }

    fn default_table(&self) -> Table {
        let parts: &[(usize, f64)] = match self.mix {
            'A' => &[(READ, 0.5), (UPDATE, 0.5)],
            'B' => &[(READ, 0.95), (UPDATE, 0.05)],
            'C' => &[(READ, 1.0)],
            'D' => &[(READ, 0.95), (INSERT, 0.05)],
            'E' => &[(SCAN, 0.95), (INSERT, 0.05)],
            'M' => &[(STEPS, 1.0)],
            _ => &[(READ, 0.5), (MODIFY, 0.5)],
        };
        let parts = parts.iter().map(|(at, p)| (*at, INTERACTIONS[*at].0, *p));
        Table::mix(&parts.collect::<Vec<_>>())
    }

    fn needs(&self, interaction: usize) -> Needs {
        match interaction {
            SCAN => Needs::RangesOverGroups,
            STEPS => Needs::SeveralGroups,
            _ => Needs::Nothing,
        }
    }

    async fn perform(
        &self,
        interaction: usize,
        session: &mut Session,
        access: &mut D,
        changes: &mut Changes,
        now_ns: &dyn Fn() -> u64,
    ) -> Performed {
        dispatch!(interaction, (session, access, changes, now_ns), {
            READ => Read(self),
            INSERT => Insert(self),
            SCAN => Scan(self),
            STEPS => Steps(self),
            UPDATE | MODIFY => Update {
                ycsb: self,
                reads: interaction == MODIFY,
            },
        })
    }

    async fn load(&self, part: Part, access: &mut D) -> Result<(), Failure> {
        for key in part.dealt(self.records) {
            let mut prng = stream(LOAD, &[key]);
            let record = Usertable::new(key as i64, &mut prng, self.field_bytes);
            access.fill(Usertable::TYPE, vec![record.row()]).await?;
        }
        Ok(())
    }

    async fn judge(
        &self,
        (kind, key): (&'static str, u64),
        changed: Changed,
        access: &mut D,
        findings: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let id = [Value::Int(key as i64)];
        let rows = access.rows(Usertable::TYPE, &id).await?;
        let (what, found) = match kind {
            "inserted" => ("records", rows.len() as i64),
            _ => ("updates", first_number(&rows, 1)),
        };
        findings.extend(changed.finding(format_args!("key {key}"), found, what));
        Ok(())
    }
}
