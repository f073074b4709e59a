//! A round: statements that travel together up to one Sync.
//!
//! What a transaction may put into one round is what does not depend on an answer of that round.

use super::Prepared;
use crate::dialect::Dialect;
use crate::tpcc::text::{push_cents, push_int, push_timestamp};
use alloc::vec::Vec;

/// The length that stands for NULL.
const NULL: [u8; 4] = [0xff; 4];

/// One statement of a round.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Which.
    pub statement: Prepared,
    start: usize,
    end: usize,
}

/// Statements with their parameters, in the order in which they are sent.
///
/// Parameters are text behind their length, as in the wire's Bind message; `-1` is NULL.
#[derive(Clone, Debug, Default)]
pub struct Round {
    bytes: Vec<u8>,
    bound: Vec<Bound>,
}

impl Round {
    /// Begins a statement; give its parameters in order, then `send`.
    pub fn bind(&mut self, statement: Prepared) -> Bind<'_> {
        Bind {
            start: self.bytes.len(),
            missing: statement.params,
            statement,
            round: self,
        }
    }

    /// The statements.
    pub fn bound(&self) -> &[Bound] {
        &self.bound
    }

    /// How many requests the round takes: one, but on MySQL, whose protocol has no rounds, one for
    /// each statement.
    pub fn requests(&self, dialect: Dialect) -> u64 {
        match dialect {
            Dialect::Postgres => 1,
            Dialect::MySql => self.bound.len() as u64,
        }
    }

    /// A statement's parameters in the form of the Bind message: each behind its length.
    pub fn param_bytes(&self, bound: &Bound) -> &[u8] {
        &self.bytes[bound.start..bound.end]
    }

    /// A statement's parameters one by one.
    pub fn params(&self, bound: &Bound) -> Vec<Option<&[u8]>> {
        let mut rest = self.param_bytes(bound);
        let mut params = Vec::with_capacity(usize::from(bound.statement.params));
        while let Some((length, tail)) = rest.split_first_chunk::<4>() {
            if *length == NULL {
                params.push(None);
                rest = tail;
                continue;
            }
            let (param, tail) = tail.split_at(u32::from_be_bytes(*length) as usize);
            params.push(Some(param));
            rest = tail;
        }
        params
    }

    /// Forgets everything, for the next round.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bound.clear();
    }
}

/// The parameters of one statement of a round. Every parameter must be given, in order.
#[must_use = "a statement is part of the round only after `send`"]
#[derive(Debug)]
pub struct Bind<'a> {
    round: &'a mut Round,
    statement: Prepared,
    start: usize,
    missing: u16,
}

impl Bind<'_> {
    fn param(mut self, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        assert!(self.missing > 0, "more parameters than the statement has");
        self.missing -= 1;
        let out = &mut self.round.bytes;
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        write(out);
        let length = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        self
    }

    /// An integer.
    pub fn int(self, value: u32) -> Self {
        self.big(i64::from(value))
    }

    /// Integers, such as those of a key.
    pub fn ints(self, values: &[u32]) -> Self {
        values.iter().fold(self, |bind, value| bind.int(*value))
    }

    /// An integer of eight bytes, or a negative one.
    pub fn big(self, value: i64) -> Self {
        self.param(|out| push_int(value, out))
    }

    /// Money.
    pub fn cents(self, value: i64) -> Self {
        self.param(|out| push_cents(value, out))
    }

    /// A text.
    pub fn text(self, value: &str) -> Self {
        self.param(|out| out.extend_from_slice(value.as_bytes()))
    }

    /// A time, in microseconds since 1970.
    pub fn time(self, unix_us: u64) -> Self {
        self.param(|out| push_timestamp(unix_us, out))
    }

    /// NULL.
    pub fn null(mut self) -> Self {
        assert!(self.missing > 0, "more parameters than the statement has");
        self.missing -= 1;
        self.round.bytes.extend_from_slice(&NULL);
        self
    }

    /// Puts the statement into the round.
    pub fn send(self) {
        assert_eq!(self.missing, 0, "fewer parameters than the statement has");
        let end = self.round.bytes.len();
        self.round.bound.push(Bound {
            statement: self.statement,
            start: self.start,
            end,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_again() {
        let mut round = Round::default();
        let statement = |number, params| Prepared { number, params };
        round.bind(statement(3, 2)).int(7).text("").send();
        round.bind(statement(4, 0)).send();
        round.bind(statement(5, 1)).cents(-105).send();
        round.bind(statement(6, 3)).null().text("a").null().send();
        let requests = [Dialect::Postgres, Dialect::MySql].map(|it| round.requests(it));
        assert_eq!(requests, [1, 4]);
        let all: Vec<_> = round
            .bound()
            .iter()
            .map(|bound| (bound.statement.number, round.params(bound)))
            .collect();
        assert_eq!(all[0], (3, vec![Some(&b"7"[..]), Some(&b""[..])]));
        assert_eq!(all[1], (4, vec![]));
        assert_eq!(all[2], (5, vec![Some(&b"-1.05"[..])]));
        assert_eq!(all[3], (6, vec![None, Some(&b"a"[..]), None]));
    }
}
