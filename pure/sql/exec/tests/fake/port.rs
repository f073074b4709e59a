//! The port of a statement: each operation is answered from the maps of its shard at once, and
//! every other answer is handed out late.

use super::{Cluster, Rows, State};
use base::row::RowRef;
use base::{Datum, RowBatch, ShardId, Slot, SqlError, Time, Ts};
use bind::PlanCx;
use catalog::{Catalog, Database, Sequence};
use exec::deferred::Deferred;
use exec::port::{OpAnswer, Port, SequenceAsk, Started};
use parse::show::Show;
use plan::Plan;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use txn::{LockMode, Modified, Op, OpError, OpId, OpResult, Read, ScanOp, Slots, TxnCost, Write};

/// Bytes that a statement may hold.
const MEMORY_BYTES_MAX: i64 = 32 << 20;

/// The port of one statement.
pub struct FakePort {
    catalog: Arc<Catalog>,
    database: Arc<Database>,
    state: Rc<State>,
    pending: RefCell<BTreeMap<u64, (bool, OpAnswer)>>,
    next_op: Cell<u64>,
    pub(super) emitted: RefCell<Vec<RowBatch>>,
    pub(super) copied: RefCell<Vec<u8>>,
    input: RefCell<Vec<Vec<u8>>>,
    pub(super) charged: Cell<i64>,
    clock: Cell<u64>,
    doubles: RefCell<Deferred>,
}

impl Cluster {
    /// A port for one statement, with what COPY is to read.
    pub(super) fn port(&self, input: &str) -> Rc<FakePort> {
        let catalog = self.catalog();
        // Chunks are cut in the middle of lines.
        let input = input
            .as_bytes()
            .chunks(7)
            .map(<[u8]>::to_vec)
            .rev()
            .collect();
        Rc::new(FakePort {
            database: catalog.databases[&self.database].clone(),
            catalog,
            state: self.state.clone(),
            pending: RefCell::default(),
            next_op: Cell::new(0),
            emitted: RefCell::default(),
            copied: RefCell::default(),
            input: RefCell::new(input),
            charged: Cell::new(0),
            clock: Cell::new(1_750_000_000_000_000),
            doubles: RefCell::default(),
        })
    }
}

impl FakePort {
    fn answer(&self, to: ShardId, op: Op) -> OpAnswer {
        let mut shards = self.state.shards.borrow_mut();
        let rows = &mut shards[to.index() as usize];
        let keyed = |key: &base::Key| (key.index, key.slot, key.bytes.clone());
        let done = |result| Ok(result);
        match op {
            Op::Get { key, program, .. } => {
                let program = self.travelled(&program);
                let mut batch = RowBatch::new(program.width());
                if let Some(row) = rows.get(&keyed(&key)) {
                    program.point(row, &mut batch)?;
                }
                done(OpResult::Rows {
                    batch,
                    resume: None,
                })
            }
            Op::Modify { key, program } => {
                let program = self.travelled(&program);
                let mut returning = RowBatch::new(program.width());
                let Some(row) = rows.get(&keyed(&key)).cloned() else {
                    return done(OpResult::Modified {
                        found: false,
                        written: false,
                        returning,
                    });
                };
                let written = match program.modify(&row, &mut returning)? {
                    Modified::Skipped => false,
                    Modified::Put(new) => {
                        rows.insert(keyed(&key), new);
                        true
                    }
                    Modified::Formula(formula) => {
                        let mut new = Vec::new();
                        formula.fold(&row, &mut new)?;
                        rows.insert(keyed(&key), new);
                        true
                    }
                    Modified::Delete => {
                        rows.remove(&keyed(&key));
                        true
                    }
                };
                done(OpResult::Modified {
                    found: true,
                    written,
                    returning,
                })
            }
            Op::Insert { key, row } => {
                assert!(RowRef::new(&row).validate().is_ok(), "a well-formed row");
                if rows.contains_key(&keyed(&key)) {
                    return done(OpResult::Exists);
                }
                rows.insert(keyed(&key), row.into());
                done(OpResult::Done)
            }
            Op::InsertMany(new) => {
                let mut present = Vec::new();
                for (place, row) in (0..).zip(new.iter()) {
                    assert!(RowRef::new(row.row).validate().is_ok(), "a well-formed row");
                    let key = keyed(&base::Key::new(new.index(), row.slot, row.key.to_vec()));
                    match rows.entry(key) {
                        Entry::Occupied(_) => present.push(place),
                        Entry::Vacant(entry) => drop(entry.insert(row.row.to_vec())),
                    }
                }
                done(match present.is_empty() {
                    true => OpResult::Done,
                    false => OpResult::SomeExist(present),
                })
            }
            Op::Formula { key, formula } => {
                let returning = RowBatch::new(0);
                let Some(row) = rows.get(&keyed(&key)) else {
                    return done(OpResult::Modified {
                        found: false,
                        written: false,
                        returning,
                    });
                };
                let mut new = Vec::new();
                formula.fold(row, &mut new)?;
                rows.insert(keyed(&key), new);
                done(OpResult::Modified {
                    found: true,
                    written: true,
                    returning,
                })
            }
            Op::Write { key, write } => {
                match write {
                    Write::Put(row) => {
                        rows.insert(keyed(&key), row);
                    }
                    Write::Delete => {
                        let row = rows.remove(&keyed(&key));
                        assert!(row.is_some(), "a blind delete of an absent row: {key:?}");
                    }
                    Write::Insert(_) | Write::Formula(_) => panic!("not sent as a blind write"),
                }
                done(OpResult::Done)
            }
            Op::Scan(scan) => self.scan(rows, &scan),
            Op::Clock(snapshot) => done(OpResult::Clock(snapshot.at)),
            Op::Savepoint(_) => unreachable!("the session tells shards of savepoints"),
        }
    }

    /// A program after its trip to another node.
    fn travelled(&self, program: &txn::Program) -> Arc<dyn txn::RowProgram> {
        let live = program
            .live(expr::program::decode_program)
            .expect("a program");
        if !self.next_op.get().is_multiple_of(3) {
            return live;
        }
        let mut bytes = Vec::new();
        live.encode(&mut bytes);
        expr::program::decode_program(&bytes).expect("its own encoding")
    }

    fn scan(&self, rows: &Rows, scan: &ScanOp) -> OpAnswer {
        self.state.scans.set(self.state.scans.get() + 1);
        let program = self.travelled(&scan.program);
        let fits = |slot: Slot, key: &[u8]| {
            let wanted = match scan.slots {
                Slots::All => true,
                Slots::One(one) => slot == one,
            };
            wanted && scan.range.contains(key)
        };
        let mut found: Vec<_> = rows
            .iter()
            .filter(|((i, s, k), _)| *i == scan.index && fits(*s, k))
            .collect();
        if scan.reverse {
            found.reverse();
        }
        if let Some((slot, key)) = &scan.after {
            let place = found
                .iter()
                .position(|((_, s, k), _)| s == slot && k == key);
            found.drain(..=place.expect("the row to go on from is there"));
        }
        let mut batch = RowBatch::new(program.width());
        if let Some(mut task) = program.task() {
            let mut left = None;
            for ((_, slot, key), row) in found {
                // Slots are left early as protocols do it.
                if left == Some(*slot) {
                    continue;
                }
                task.row(key, row)?;
                self.state.rows_read.set(self.state.rows_read.get() + 1);
                let is_done = task.first_rows().is_some() && !task.wants(key);
                left = is_done.then_some(*slot);
            }
            task.finish(&mut batch)?;
            return Ok(OpResult::Rows {
                batch,
                resume: None,
            });
        }
        let count = found.len();
        for (i, ((_, slot, key), row)) in found.into_iter().enumerate() {
            program.point(row, &mut batch)?;
            self.state.rows_read.set(self.state.rows_read.get() + 1);
            let full = u64::from(batch.rows) >= scan.row_limit;
            // Small batches, so that scans go on.
            if full || batch.rows >= scan.batch_rows.min(3) {
                let resume = (!full && i + 1 < count).then(|| (*slot, key.clone()));
                return Ok(OpResult::Rows { batch, resume });
            }
        }
        Ok(OpResult::Rows {
            batch,
            resume: None,
        })
    }
}

impl Port for FakePort {
    fn submit(&self, to: ShardId, planned: u64, op: Op, last: bool) -> Started {
        assert_eq!(
            planned, self.catalog.version,
            "operations carry the plan's version"
        );
        self.state.ops.set(self.state.ops.get() + 1);
        if last {
            self.state.lasts.set(self.state.lasts.get() + 1);
        }
        let id = self.next_op.get();
        self.next_op.set(id + 1);
        let answer = self.answer(to, op);
        if id.is_multiple_of(2) {
            return Started::Ready(Some(answer));
        }
        self.pending.borrow_mut().insert(id, (false, answer));
        Started::Pending(OpId(id))
    }
    fn poll_op(&self, id: OpId) -> Poll<OpAnswer> {
        let mut pending = self.pending.borrow_mut();
        let (seen, _) = pending.get_mut(&id.0).expect("a pending operation");
        if !*seen {
            *seen = true;
            return Poll::Pending;
        }
        Poll::Ready(pending.remove(&id.0).expect("seen above").1)
    }
    fn home(&self, slot: Slot) -> ShardId {
        self.catalog.placement.home(slot)
    }
    fn shards(&self) -> Arc<[ShardId]> {
        self.catalog.placement.shards().into()
    }
    fn here(&self) -> ShardId {
        self.catalog.placement.shards()[1]
    }
    fn read(&self) -> Read {
        Read::Lock(LockMode::Shared)
    }
    fn read_locking(&self, mode: LockMode) -> Read {
        Read::Lock(mode)
    }
    fn read_only(&self) -> bool {
        false
    }
    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }
    fn database(&self) -> &Arc<Database> {
        &self.database
    }
    fn txn_time(&self) -> Time {
        Time(1_750_000_000_000_000)
    }
    fn now(&self) -> Time {
        self.clock.set(self.clock.get() + 10);
        Time(self.clock.get())
    }
    fn stopwatch_ns(&self) -> u64 {
        self.clock.set(self.clock.get() + 10);
        self.clock.get() * 1000
    }

    fn unique(&self) -> u64 {
        self.state.unique.set(self.state.unique.get() + 1);
        self.state.unique.get()
    }
    fn doubles(&self) -> Option<&RefCell<Deferred>> {
        Some(&self.doubles)
    }
    fn random(&self) -> u64 {
        self.unique().wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
    fn set_config(&self, name: &str, value: Option<&str>, _: bool) -> Result<String, SqlError> {
        pg_catalog::settings::validate(name, value.unwrap_or_default())
    }
    fn setting(&self, name: &str) -> Option<String> {
        self.state.setting(name)
    }
    fn session_user(&self) -> String {
        "alice".into()
    }
    fn session_pid(&self) -> i32 {
        7
    }
    fn poll_emit(&self, batch: &mut Option<RowBatch>) -> Poll<()> {
        self.emitted.borrow_mut().extend(batch.take());
        Poll::Ready(())
    }
    fn poll_emit_copy(&self, bytes: &mut Option<Vec<u8>>) -> Poll<()> {
        let bytes = bytes.take().unwrap_or_default();
        let mut rest = &bytes[..];
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (row, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
            self.copied.borrow_mut().extend_from_slice(row);
            rest = behind;
        }
        Poll::Ready(())
    }
    fn poll_copy_data(&self) -> Poll<Result<Option<Vec<u8>>, SqlError>> {
        Poll::Ready(Ok(self.input.borrow_mut().pop()))
    }
    fn poll_nextval(
        &self,
        sequence: &Sequence,
        ticket: &mut Option<u64>,
    ) -> Poll<Result<i64, OpError>> {
        if ticket.is_none() {
            *ticket = Some(1);
            return Poll::Pending;
        }
        let mut sequences = self.state.sequences.borrow_mut();
        let first = sequence.first.unwrap_or(sequence.start);
        let next = sequences.entry(sequence.id).or_insert(first);
        if sequence.cycle && *next > sequence.max {
            *next = sequence.min;
        }
        if sequence.cycle && *next < sequence.min {
            *next = sequence.max;
        }
        let value = *next;
        if value > sequence.max {
            let (name, max) = (&sequence.name, sequence.max);
            let text = format!("nextval: reached maximum value of sequence \"{name}\" ({max})");
            let error = SqlError::new(base::SqlState(*b"2200H"), text);
            return Poll::Ready(Err(OpError::Sql(error)));
        }
        *next += sequence.increment;
        self.state.named.borrow_mut().remove(&sequence.id);
        self.state.drawn.borrow_mut().insert(sequence.id, value);
        Poll::Ready(Ok(value))
    }
    fn poll_sequence(
        &self,
        sequence: &Sequence,
        ask: SequenceAsk,
        _: &mut Option<u64>,
    ) -> Poll<Result<(i64, bool), OpError>> {
        let mut sequences = self.state.sequences.borrow_mut();
        let mut named = self.state.named.borrow_mut();
        Poll::Ready(Ok(match ask {
            SequenceAsk::Read => match sequences.get(&sequence.id) {
                None => (sequence.first.unwrap_or(sequence.start), false),
                Some(next) if named.contains(&sequence.id) => (*next, false),
                Some(next) => (*next - sequence.increment, true),
            },
            SequenceAsk::Set { value, given } => {
                let next = if given {
                    value + sequence.increment
                } else {
                    value
                };
                sequences.insert(sequence.id, next);
                match given {
                    true => named.remove(&sequence.id),
                    false => named.insert(sequence.id),
                };
                (value, given)
            }
            SequenceAsk::Forget { value, given } => {
                if given {
                    self.state.drawn.borrow_mut().insert(sequence.id, value);
                }
                (value, given)
            }
        }))
    }
    fn currval(&self, sequence: &Sequence) -> Option<i64> {
        self.state.drawn.borrow().get(&sequence.id).copied()
    }
    fn poll_yield(&self, yielded: &mut bool) -> Poll<()> {
        if core::mem::replace(yielded, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
    fn poll_sleep(&self, _: Time, _: &mut bool) -> Poll<()> {
        Poll::Ready(())
    }
    fn poll_signal(
        &self,
        _: i32,
        _: bind::rel::Signal,
        _: &mut Option<u64>,
    ) -> Poll<Result<bool, OpError>> {
        Poll::Ready(Ok(false))
    }
    fn poll_show(&self, what: Show, _: &mut Option<u64>) -> Poll<Result<RowBatch, OpError>> {
        let shows = self.state.shows.borrow();
        if let Some((_, rows)) = shows.iter().find(|(show, _)| *show == what) {
            return Poll::Ready(Ok(rows.clone()));
        }
        let mut batch = RowBatch::new(what.columns().len());
        if what == Show::Rows {
            for shard in self.state.shards.borrow().iter() {
                for table in self.database.tables.values() {
                    let own = shard.keys().filter(|(id, _, _)| *id == table.primary.id);
                    let rows = Datum::Int(own.count() as i64);
                    let (id, looked_at) = (Datum::Int(i64::from(table.id.0)), Datum::Int(0));
                    batch.push([id, rows, looked_at]);
                }
                batch.push([Datum::Null, Datum::Null, Datum::Int(0)]);
            }
        }
        Poll::Ready(Ok(batch))
    }
    fn plan(&self, statement: &parse::Statement, cx: &PlanCx<'_>) -> Result<Arc<Plan>, SqlError> {
        self.state.plans.set(self.state.plans.get() + 1);
        plan::plan(statement, cx)
    }
    fn charge(&self, bytes: i64) -> Result<(), SqlError> {
        let charged = self.charged.get() + bytes;
        if bytes > 0 && charged > MEMORY_BYTES_MAX {
            let message = "the statement needs too much memory";
            return Err(SqlError::new(base::SqlState::OUT_OF_MEMORY, message));
        }
        self.charged.set(charged);
        self.state
            .peak
            .set(self.state.peak.get().max(self.charged.get()));
        Ok(())
    }
    fn cost(&self) -> TxnCost {
        TxnCost::default()
    }
    fn snapshot(&self) -> Option<Ts> {
        None
    }
}
