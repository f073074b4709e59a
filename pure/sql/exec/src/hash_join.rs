//! Hash joins: the right side in memory, looked up by the keys of left rows.

use super::join::{Candidate, Joiner, Place};
use super::long::Long;
use super::source::{Rows, Source, open};
use super::{BATCH_ROWS, Charge, Cx, Slots};
use base::{Datum, RowBatch, SqlError, SqlState};
use bind::rel::JoinKind;
use expr::hashed::{Hashing, KeyTable, Linking, RowStore};
use expr::rows::datums_heap_bytes;
use expr::{Expr, eval};
use plan::step::{Step, StepOp};
use txn::OpError;

/// The right side in memory, by its keys.
pub(super) struct HashRows<'a> {
    cx: &'a Cx<'a>,
    left: Source<'a>,
    right: &'a Step,
    keys: &'a [(Expr, Expr)],
    hashing: Vec<Hashing>,
    joiner: Joiner<'a>,
    left_width: usize,
    slots: Slots,
    built: Option<Built<'a>>,
    rest: Option<(RowBatch, Place)>,
    /// The keys of left rows, if all are columns of these.
    columns: Option<Vec<usize>>,
    firsts: Firsts,
    /// Right rows of a full join of which it is known whether they have a partner.
    passed: usize,
    /// The left side has ended; unmatched right rows of a full join follow.
    ended: bool,
    charge: Charge<'a>,
}

/// What was found for some left rows of a batch at once.
#[derive(Default)]
struct Firsts {
    /// Number of the first of them in the batch.
    start: usize,
    hashes: Vec<Option<u32>>,
    /// For each the first right row that has its key, counted from 1; 0: none.
    rows: Vec<u32>,
}

struct Built<'a> {
    rows: Long<'a, RowStore>,
    /// The keys of the rows, unless they are columns of these.
    keys: Option<Long<'a, RowStore>>,
    /// Where a key is in a row of `keys`, or of `rows`.
    columns: Vec<usize>,
    /// For each key the first row that has it.
    by_key: Long<'a, KeyTable>,
    /// For each row the next one of the same key, counted from 1; 0: there is none.
    same: Long<'a, Vec<u32>>,
    /// Of a full join: which rows have a partner.
    matched: Vec<bool>,
}

impl<'a> Built<'a> {
    fn new(cx: &'a Cx<'a>, rows: RowStore, keys: Option<RowStore>, columns: Vec<usize>) -> Self {
        Built {
            rows: Long::new(cx.port, rows),
            keys: keys.map(|keys| Long::new(cx.port, keys)),
            columns,
            by_key: Long::new(cx.port, KeyTable::default()),
            same: Long::new(cx.port, Vec::new()),
            matched: Vec::new(),
        }
    }

    /// The values of a row's key.
    fn key(&self, row: usize) -> impl Iterator<Item = &Datum> {
        let rows = self.keys.as_ref().unwrap_or(&self.rows);
        let row = rows.row(row);
        self.columns.iter().map(|column| &row[*column])
    }

    fn has_key<'k>(&self, row: u32, mut key: impl Iterator<Item = &'k Datum>) -> bool {
        let mut own = self.key(row as usize);
        own.all(|own| key.next().is_some_and(|other| own.compare(other).is_eq()))
    }

    /// The candidates for the left rows of a key, from the first one on.
    fn candidates<'r>(&'r self, first: Option<u32>) -> impl Fn(usize) -> Option<Candidate<'r>> {
        move |place| {
            let number = match place {
                0 => first? as usize,
                usize::MAX => return None,
                _ => place - 1,
            };
            let next = match self.same.get(number).copied().unwrap_or(0) {
                0 => usize::MAX,
                next => next as usize,
            };
            Some(Candidate {
                next,
                number,
                row: self.rows.row(number),
            })
        }
    }
}

/// The column that an expression is.
fn column(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Column(column, _) => Some(*column as usize),
        _ => None,
    }
}

impl<'a> HashRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> HashRows<'a> {
        let StepOp::Hash {
            kind,
            left,
            right,
            keys,
            filter,
        } = &step.op
        else {
            unreachable!("opened for a hash join");
        };
        let hashing = keys.iter();
        let hashing = hashing.map(|(left, right)| Hashing::of(left.ty(), right.ty()));
        let columns = keys.iter().map(|(left, _)| column(left)).collect();
        HashRows {
            cx,
            left: open(cx, left, slots),
            right,
            keys,
            hashing: hashing.collect(),
            joiner: Joiner::new(cx, *kind, filter.as_ref(), (left.width, right.width)),
            left_width: left.width as usize,
            slots: slots.clone(),
            built: None,
            rest: None,
            columns: Some(columns).filter(|_| !keys.is_empty()).flatten(),
            firsts: Firsts::default(),
            passed: 0,
            ended: false,
            charge: Charge::new(cx.port),
        }
    }

    async fn build(&mut self) -> Result<Built<'a>, OpError> {
        let kind = self.joiner.kind;
        let only_keys = matches!(kind, JoinKind::Semi | JoinKind::Anti)
            && self.joiner.filter.is_none()
            && !self.keys.is_empty();
        if only_keys {
            return self.build_keys().await;
        }
        let columns = self.keys.iter().map(|(_, right)| column(right));
        let columns: Option<Vec<usize>> = columns.collect();
        let keys = columns.is_none().then(|| RowStore::new(self.keys.len()));
        let columns = columns.unwrap_or_else(|| (0..self.keys.len()).collect());
        let rows = RowStore::new(self.joiner.right_width);
        let mut built = Built::new(self.cx, rows, keys, columns);
        let mut source = open(self.cx, self.right, &self.slots);
        while let Some(batch) = source.next().await? {
            if let Some(keys) = &mut built.keys {
                for row in batch.iter() {
                    let key = self.right_key(row)?;
                    let held = datums_heap_bytes(&key);
                    self.charge.add(held + keys.push(key))?;
                }
            }
            let held = datums_heap_bytes(&batch.datums);
            self.charge.add(held + built.rows.append(batch))?;
        }
        if kind == JoinKind::Full {
            self.charge.add(built.rows.len())?;
            built.matched = vec![false; built.rows.len()];
        }
        self.enter(&mut built).await?;
        Ok(built)
    }

    /// Notes the keys of all rows. Without keys all have the same one.
    async fn enter(&mut self, built: &mut Built<'a>) -> Result<(), OpError> {
        let rows = built.rows.len();
        if u32::try_from(rows).is_err() {
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT, "a join has too many rows").into());
        }
        self.charge.add(rows * size_of::<u32>())?;
        let mut same = vec![0; rows];
        let mut by_key = Long::new(self.cx.port, KeyTable::for_rows(rows));
        let (mut buffer, mut grown) = (Vec::new(), 0);
        // From the last one on, so that those of a key follow each other in their order.
        for row in (0..rows).rev() {
            // NULL equals nothing.
            if let Some(hash) = self.hash(built.key(row), &mut buffer) {
                grown += by_key.note(hash, row as u32);
            }
            if row % BATCH_ROWS == 0 {
                self.charge.add(core::mem::take(&mut grown))?;
                self.cx.breathe(BATCH_ROWS).await;
            }
        }
        let mut linking = Linking::default();
        loop {
            let meets = |first: u32, row: u32| {
                let meets = built.has_key(first, built.key(row as usize));
                if meets {
                    same[row as usize] = first + 1;
                }
                meets
            };
            let (done, grown) = by_key.link(&mut linking, BATCH_ROWS, meets);
            self.charge.add(grown)?;
            if done == 0 {
                break;
            }
            self.cx.breathe(done).await;
        }
        *built.same = same;
        built.by_key = by_key;
        Ok(())
    }

    /// The right side of a semi or anti join of which only the keys matter: one row stands for
    /// all.
    async fn build_keys(&mut self) -> Result<Built<'a>, OpError> {
        let columns = (0..self.keys.len()).collect();
        let keys = RowStore::new(self.keys.len());
        let mut built = Built::new(self.cx, RowStore::new(0), Some(keys), columns);
        let mut source = open(self.cx, self.right, &self.slots);
        let mut buffer = Vec::new();
        while let Some(batch) = source.next().await? {
            for row in batch.iter() {
                let key = self.right_key(row)?;
                let Some(hash) = self.hash(key.iter(), &mut buffer) else {
                    continue;
                };
                let is_key = |other| built.has_key(other, key.iter());
                if built.by_key.find(hash, is_key).is_some() {
                    continue;
                }
                let number = built.rows.len() as u32;
                let (_, grown) = built.by_key.put(hash, number, |_| false);
                built.rows.append(RowBatch {
                    width: 0,
                    rows: 1,
                    datums: Vec::new(),
                });
                let keys = built.keys.as_mut().expect("made above");
                let held = datums_heap_bytes(&key);
                self.charge.add(held + keys.push(key) + grown)?;
            }
            self.cx.breathe(batch.rows as usize).await;
        }
        Ok(built)
    }

    /// The values of a right row's key.
    fn right_key(&self, row: &[Datum]) -> Result<Vec<Datum>, SqlError> {
        let env = self.cx.env(&self.slots);
        let keys = self.keys.iter().map(|(_, right)| eval(right, &row, &env));
        keys.collect()
    }

    /// The hash of a key; `None` if one of its values is NULL.
    #[inline]
    fn hash<'k>(&self, key: impl Iterator<Item = &'k Datum>, buffer: &mut Vec<u8>) -> Option<u32> {
        let mut sum = 0;
        for (datum, hashing) in key.zip(&self.hashing) {
            if datum.is_null() {
                return None;
            }
            sum = hashing.add(sum, datum, buffer);
        }
        Some((sum >> 32) as u32)
    }

    /// Gives the next right rows of a full join that have no partner.
    async fn unmatched(&mut self) {
        let built = self.built.as_ref().expect("built above");
        let mut work = 0;
        while self.passed < built.rows.len() && !self.joiner.is_full() {
            if !built.matched[self.passed] {
                let nulls = core::iter::repeat_n(Datum::Null, self.left_width);
                let row = built.rows.row(self.passed).iter().cloned();
                self.joiner.push(nulls.chain(row));
            }
            self.passed += 1;
            work += 1;
            if work % BATCH_ROWS == 0 {
                self.cx.breathe(BATCH_ROWS).await;
            }
        }
    }

    /// Looks the keys of left rows up from `start` on, as many as a batch of the result has.
    fn look_up(&mut self, batch: &RowBatch, start: usize, columns: &[usize]) {
        let built = self.built.as_ref().expect("built before probing");
        let end = (batch.rows as usize).min(start + BATCH_ROWS);
        let mut firsts = core::mem::take(&mut self.firsts);
        let mut buffer = Vec::new();
        firsts.start = start;
        firsts.hashes.clear();
        for i in start..end {
            let row = batch.row(i);
            let key = columns.iter().map(|column| &row[*column]);
            firsts.hashes.push(self.hash(key, &mut buffer));
        }
        let is_key = |place: usize, number: u32| {
            let row = batch.row(start + place);
            built.has_key(number, columns.iter().map(|column| &row[*column]))
        };
        built
            .by_key
            .find_all(&firsts.hashes, is_key, &mut firsts.rows);
        self.firsts = firsts;
    }

    /// The first right row that has the key of a left row. A key that is computed is so for one row
    /// at a time: that may fail, and a limit may be reached before.
    fn first_of(&mut self, batch: &RowBatch, row: usize) -> Result<Option<u32>, SqlError> {
        let Some(columns) = self.columns.take() else {
            return self.first(batch.row(row));
        };
        let place = row.checked_sub(self.firsts.start);
        if place.is_none_or(|place| place >= self.firsts.rows.len()) {
            self.look_up(batch, row, &columns);
        }
        self.columns = Some(columns);
        Ok(self.firsts.rows[row - self.firsts.start].checked_sub(1))
    }

    /// Goes on joining one left row of a batch.
    fn probe(&mut self, batch: &RowBatch, place: &mut Place) -> Result<bool, SqlError> {
        let first = self.first_of(batch, place.row)?;
        let left = batch.row(place.row);
        let built = self.built.as_mut().expect("built before probing");
        let mut matched = core::mem::take(&mut built.matched);
        let mut mark = |number: usize| {
            if let Some(is_matched) = matched.get_mut(number) {
                *is_matched = true;
            }
        };
        let finished = self.joiner.row(
            left,
            place,
            &built.candidates(first),
            &self.slots,
            &mut mark,
        );
        built.matched = matched;
        finished
    }

    /// The first right row that has the key of a left row.
    fn first(&self, left: &[Datum]) -> Result<Option<u32>, SqlError> {
        let built = self.built.as_ref().expect("built before probing");
        let env = self.cx.env(&self.slots);
        let mut buffer = Vec::new();
        if self.keys.is_empty() {
            return Ok((!built.rows.is_empty()).then_some(0));
        }
        if let [(expr, _)] = self.keys {
            let key = eval(expr, &left, &env)?;
            let one = || core::iter::once(&key);
            let hash = self.hash(one(), &mut buffer);
            return Ok(
                hash.and_then(|hash| built.by_key.find(hash, |row| built.has_key(row, one())))
            );
        }
        let keys = self.keys.iter().map(|(expr, _)| eval(expr, &left, &env));
        let key: Vec<Datum> = keys.collect::<Result<_, _>>()?;
        let hash = self.hash(key.iter(), &mut buffer);
        Ok(hash.and_then(|hash| {
            built
                .by_key
                .find(hash, |row| built.has_key(row, key.iter()))
        }))
    }
}

impl Rows for HashRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        if self.built.is_none() {
            // Without left rows only a full join needs the right ones.
            match self.left.next().await? {
                Some(batch) => self.rest = Some((batch, Place::default())),
                None if self.joiner.kind != JoinKind::Full => return Ok(None),
                None => {}
            }
            self.built = Some(self.build().await?);
        }
        while !self.ended {
            let (batch, mut place) = match self.rest.take() {
                Some(rest) => rest,
                None => match self.left.next().await? {
                    Some(batch) => (batch, Place::default()),
                    None => {
                        self.ended = true;
                        break;
                    }
                },
            };
            if place.row == 0 {
                self.firsts.rows.clear();
            }
            while place.row < batch.rows as usize
                && !self.joiner.is_full()
                && place.work < BATCH_ROWS
            {
                self.probe(&batch, &mut place)?;
            }
            let work = core::mem::take(&mut place.work);
            if place.row < batch.rows as usize {
                self.rest = Some((batch, place));
            }
            self.cx.breathe(work).await;
            if self.joiner.is_full() {
                return Ok(Some(self.joiner.take()));
            }
            if self.rest.is_none() && self.joiner.out.rows > 0 {
                return Ok(Some(self.joiner.take()));
            }
        }
        if self.joiner.out.rows > 0 {
            return Ok(Some(self.joiner.take()));
        }
        if self.joiner.kind == JoinKind::Full {
            self.unmatched().await;
        }
        let batch = self.joiner.take();
        Ok((batch.rows > 0).then_some(batch))
    }
}
