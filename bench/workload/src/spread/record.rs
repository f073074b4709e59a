//! Records of a kilobyte, read or changed one at a time by statements that commit by themselves:
//! the two loads of YCSB in the evaluation of Rubato DB (section 5.5), its workloads B and A.
//!
//! A record has ten fields of 100 bytes. A read wants all of them, an update changes one. The
//! record is drawn by Zipf's law with the exponent 1 (YCSB: 0.99) among those of its part, and
//! ranks are scattered over the part.

use crate::wire::{Connection, Done, Failure, ParamType, Session};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use base::Prng;

/// Fields of a record.
pub const FIELDS: u32 = 10;
/// Bytes of a field.
pub const FIELD_BYTES: usize = 100;

/// The statement that makes the table.
pub(super) fn table() -> String {
    let fields: String = (0..FIELDS)
        .map(|field| format!("field{field} text NOT NULL, "))
        .collect();
    format!("CREATE TABLE record (part integer, k integer, {fields}PRIMARY KEY (part, k))")
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Operation {
    part: u32,
    row: u32,
    /// The field that is changed; `None`: all are read.
    field: Option<u32>,
}

impl Operation {
    /// An operation on one of `rows` records of a part, a read in `read_percent` of 100 cases.
    pub(super) fn draw(prng: &mut Prng, part: u32, rows: u32, read_percent: u64) -> Operation {
        let is_read = prng.below(100) < read_percent;
        Operation {
            part,
            row: scatter(rank(prng, u64::from(rows)), u64::from(rows)) as u32,
            field: (!is_read).then(|| prng.below(u64::from(FIELDS)) as u32),
        }
    }

    pub(super) fn key(self) -> (u32, u32) {
        (self.part, self.row)
    }

    pub(super) fn field(self) -> Option<u32> {
        self.field
    }

    /// 0 for a read, 1 for an update.
    pub(super) fn kind(self) -> usize {
        usize::from(self.field.is_some())
    }
}

/// A rank in `1..=count`, each with a probability in proportion to 1 over the rank.
///
/// Ranks from a power of two up to the next all have about the same weight together: one of these
/// spans is drawn, a rank in it, and the rank is kept with the probability that is left. A rank is
/// kept in more than one of four cases.
fn rank(prng: &mut Prng, count: u64) -> u64 {
    let spans = u64::from(u64::BITS - count.leading_zeros());
    loop {
        let first = 1 << prng.below(spans);
        let rank = first + prng.below(first);
        if rank <= count && prng.below(rank) < first {
            return rank;
        }
    }
}

/// The row of a rank, in `0..count`: neighbours in rank are far from each other.
fn scatter(rank: u64, count: u64) -> u64 {
    // A step without a common divisor reaches every row once.
    let mut step = count / 2 + count / 8 + 1;
    while gcd(step, count) != 1 {
        step += 1;
    }
    (rank - 1) * step % count
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

/// The read first, then an update of each field.
pub(super) fn statements() -> Vec<(String, Vec<ParamType>)> {
    use ParamType::{Int, Text};
    let read = "SELECT * FROM record WHERE part = $1 AND k = $2".to_string();
    let update = |field| {
        let sql = format!("UPDATE record SET field{field} = $3 WHERE part = $1 AND k = $2");
        (sql, vec![Int, Int, Text])
    };
    let mut all = vec![(read, vec![Int, Int])];
    all.extend((0..FIELDS).map(update));
    all
}

/// The records of a part in the form of COPY.
pub(super) fn rows(part: u32, rows: u32, out: &mut Vec<u8>) {
    let fields = format!("\t{}", "x".repeat(FIELD_BYTES)).repeat(FIELDS as usize);
    for row in 0..rows {
        out.extend_from_slice(format!("{part}\t{row}{fields}\n").as_bytes());
    }
}

/// One attempt.
pub(super) async fn execute<C: Connection>(
    session: &mut Session<C>,
    operation: Operation,
) -> Result<Done, Failure<C::Error>> {
    let Operation { part, row, field } = operation;
    let found = match field {
        None => {
            session.bind(0).int(part).int(row).send();
            session.round().await?;
            session.answers.rows(0) as u64
        }
        Some(field) => {
            let value = "y".repeat(FIELD_BYTES);
            session.commits_itself();
            let bind = session.bind(1 + field as usize).int(part).int(row);
            bind.text(&value).send();
            session.round().await?;
            session.answers.affected(0)
        }
    };
    match found {
        1 => Ok(Done::committed(1)),
        other => {
            let text = format!("{other} records have part {part} and key {row}");
            Err(Failure::Wrong(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_the_weights_of_the_law() {
        let mut prng = Prng::new(1);
        let mut counts = [0u64; 1_001];
        for _ in 0..200_000 {
            counts[rank(&mut prng, 1_000) as usize] += 1;
        }
        let harmonic: f64 = (1..=1_000).map(|rank| 1.0 / f64::from(rank)).sum();
        for at in [1, 2, 3, 10, 100] {
            let expected = 200_000.0 / harmonic / at as f64;
            let seen = counts[at] as f64;
            let away = (seen - expected) * (seen - expected) / expected;
            assert!(away < 16.0, "rank {at}: {seen} instead of {expected}");
        }
        assert!(counts[1_000] > 0 && counts[0] == 0);
    }

    #[test]
    fn every_rank_has_a_row_of_its_own() {
        for count in [1, 2, 16, 999, 1_000] {
            let mut rows: Vec<u64> = (1..=count).map(|rank| scatter(rank, count)).collect();
            rows.sort_unstable();
            assert_eq!(rows, (0..count).collect::<Vec<u64>>());
        }
    }
}
