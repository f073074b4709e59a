//! Runs one attempt at a planned transaction and notes what it wrote and saw.

use super::plan::{Plan, Step};
use super::tables::{Statement, statements, table_of};
use super::{Kind, Shape};
use crate::wire::{
    self, Answers, Connection, Done, Ending, Failure, Isolation, ParamType, Session,
};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use check::{Op, Outcome, Txn};

/// One client's connection with what its transactions need.
#[derive(Debug)]
pub struct Client<C: Connection> {
    session: Session<C>,
    shape: Shape,
    statements: Vec<(String, Vec<ParamType>)>,
}

/// What became of one attempt.
#[derive(Debug)]
pub struct Attempt<E> {
    /// What it wrote, whatever became of it, and what it saw, in its own order.
    pub ops: Vec<Op>,
    /// How it ended.
    pub result: Result<Done, Failure<E>>,
}

impl<E> Attempt<E> {
    /// The transaction for a history. `invoked` and `completed` are when it was begun and when its
    /// outcome was known, by one clock.
    pub fn record(&self, process: u32, invoked: u64, completed: u64) -> Txn {
        let mut txn = Txn::begin(process, invoked);
        txn.ops = self.ops.clone();
        match &self.result {
            Ok(done) if done.ending == Ending::Committed => {
                txn.end(Outcome::Committed, completed);
            }
            Ok(_) | Err(Failure::Aborted(_) | Failure::Conflict(_) | Failure::Lost(_)) => {
                txn.end(Outcome::Aborted, completed);
            }
            // When, or whether, it took place is unknown.
            Err(Failure::Unknown(_) | Failure::Wrong(_)) => {}
        }
        txn
    }
}

/// An attempt under way.
struct Run<'a> {
    plan: &'a Plan,
    /// Gives a value that was never given before.
    next_value: &'a mut dyn FnMut() -> u64,
    /// Operations so far, in order; `None`: a read whose answer has not come.
    noted: Vec<Option<Op>>,
}

impl Run<'_> {
    fn note(&mut self, ops: impl IntoIterator<Item = Op>) {
        self.noted.extend(ops.into_iter().map(Some));
    }
}

/// A statement with its parameters.
struct Call {
    statement: Statement,
    params: Vec<Param>,
}

enum Param {
    Int(i64),
    Text(String),
}

/// Makes the tables of a shape, after dropping those of an earlier run.
///
/// # Errors
/// The connection broke, or a statement was refused.
pub async fn create<C: Connection>(link: &mut C, shape: &Shape) -> Result<(), C::Error> {
    for sql in super::tables::create(shape) {
        wire::command(link, &sql).await?;
    }
    Ok(())
}

impl<C: Connection> Client<C> {
    /// Prepares the statements, and sets the level of what runs without BEGIN.
    ///
    /// # Errors
    /// The connection broke, or a statement was refused.
    pub async fn open(mut link: C, shape: &Shape) -> Result<Client<C>, C::Error> {
        let level = shape.isolation.sql().to_lowercase();
        let set = format!("SET default_transaction_isolation = '{level}'");
        wire::command(&mut link, &set).await?;
        let statements = statements(shape);
        Ok(Client {
            session: Session::open(link, &statements).await?,
            shape: *shape,
            statements,
        })
    }

    /// The connection.
    pub fn link(&mut self) -> &mut C {
        self.session.link()
    }

    /// Runs one attempt. `next_value` gives a value that was never given before. On return no
    /// transaction is open, unless the connection is lost.
    pub async fn attempt(
        &mut self,
        plan: &Plan,
        next_value: &mut dyn FnMut() -> u64,
    ) -> Attempt<C::Error> {
        let mut run = Run {
            plan,
            next_value,
            noted: Vec::new(),
        };
        let result = match plan.is_block {
            false => self.statement(&mut run).await,
            true if plan.is_pipelined => self.pipeline(&mut run).await,
            true => self.block(&mut run).await,
        };
        let noted = run.noted;
        let result = match result {
            Ok(()) => Ok(Done {
                ending: match plan.rolls_back {
                    true => Ending::RolledBack,
                    false => Ending::Committed,
                },
                units: noted.len() as u64,
                skipped: 0,
            }),
            // Both inserted the row that neither had found.
            Err(Failure::Aborted(error)) if error.sqlstate == "23505" => {
                Err(Failure::Conflict("inserted by another"))
            }
            Err(Failure::Wrong(text)) => Err(self.session.wrong(text).await),
            Err(failure) => Err(failure),
        };
        Attempt {
            ops: noted.into_iter().flatten().collect(),
            result,
        }
    }

    /// A single statement that commits by itself.
    async fn statement(&mut self, run: &mut Run<'_>) -> Result<(), Failure<C::Error>> {
        let plan = run.plan;
        let (call, write) = self.call(&plan.steps[0], run.next_value);
        run.note(write);
        self.session.commits_itself();
        self.send(&[call], plan.is_simple).await?;
        self.note_seen(run, &plan.steps[0])
    }

    /// Everything up to COMMIT at once.
    async fn pipeline(&mut self, run: &mut Run<'_>) -> Result<(), Failure<C::Error>> {
        let plan = run.plan;
        let mut calls = vec![Call::plain(self.begin(plan))];
        // Where the answer of each step will be, and the place of its operation among all.
        let mut reads = Vec::new();
        for step in &plan.steps {
            calls.extend(self.blind_calls(step, run));
            if !step.writes() {
                run.noted.push(None);
            }
            if step.shows() {
                reads.push((step, calls.len() - 1, run.noted.len() - 1));
            }
        }
        if plan.rolls_back {
            calls.push(Call::plain(Statement::Rollback));
        } else {
            calls.push(Call::plain(Statement::Commit));
            self.session.commits_block();
        }
        self.send(&calls, plan.is_simple).await?;
        // From behind, because a step may have seen several things.
        for (step, answer, at) in reads.into_iter().rev() {
            let seen = self.seen(step, answer)?;
            run.noted.splice(at..=at, seen.into_iter().map(Some));
        }
        Ok(())
    }

    /// One statement after the other.
    async fn block(&mut self, run: &mut Run<'_>) -> Result<(), Failure<C::Error>> {
        let plan = run.plan;
        let begin = Call::plain(self.begin(plan));
        self.send(&[begin], plan.is_simple).await?;
        for step in &plan.steps {
            match *step {
                Step::Write { key } => {
                    let value = (run.next_value)();
                    run.note([self.write_op(key, value)]);
                    self.write(plan, key, value).await?;
                }
                Step::Transfer {
                    from,
                    to,
                    amount,
                    is_blind: false,
                } => {
                    self.add_by_reading(run, from, -amount).await?;
                    self.add_by_reading(run, to, amount).await?;
                }
                Step::Relink { at } => self.relink(run, at).await?,
                _ => {
                    for call in self.blind_calls(step, run) {
                        self.send(&[call], plan.is_simple).await?;
                        if step.writes() && !step.shows() {
                            self.must_change_one()?;
                        }
                    }
                    self.note_seen(run, step)?;
                }
            }
        }
        let end = match plan.rolls_back {
            true => Statement::Rollback,
            false => Statement::Commit,
        };
        if end == Statement::Commit {
            self.session.commits_block();
        }
        self.send(&[Call::plain(end)], plan.is_simple).await
    }

    fn begin(&self, plan: &Plan) -> Statement {
        match plan.is_read_only {
            true => Statement::BeginReadOnly,
            false => Statement::Begin,
        }
    }

    /// Sends statements up to one Sync, or as one query string.
    async fn send(&mut self, calls: &[Call], is_simple: bool) -> Result<(), Failure<C::Error>> {
        if is_simple {
            let texts: Vec<String> = calls.iter().map(|call| self.literal(call)).collect();
            return self.session.simple(&texts.join("; ")).await;
        }
        for call in calls {
            let mut bind = self.session.bind(call.statement.number());
            for param in &call.params {
                bind = match param {
                    Param::Int(value) => bind.big(*value),
                    Param::Text(text) => bind.text(text),
                };
            }
            bind.send();
        }
        self.session.round().await
    }

    fn literal(&self, call: &Call) -> String {
        let (sql, types) = &self.statements[call.statement.number()];
        let texts: Vec<String> = call.params.iter().map(Param::to_text).collect();
        let params: Vec<Option<&[u8]>> = texts.iter().map(|text| Some(text.as_bytes())).collect();
        wire::literal(sql, types, &params)
    }

    /// The statement of a step that is one, and what it writes.
    fn call(&self, step: &Step, next_value: &mut dyn FnMut() -> u64) -> (Call, Option<Op>) {
        let int = |value: u32| Param::Int(i64::from(value));
        match *step {
            Step::Write { key } => {
                let value = next_value();
                let call = self.keyed(Statement::Upsert(table_of(key)), key, value);
                (call, Some(self.write_op(key, value)))
            }
            Step::Add { key, delta } => {
                let call = Call::new(Statement::Add, vec![int(key), Param::Int(delta)]);
                let key = u64::from(key);
                (call, Some(Op::Add { key, delta }))
            }
            Step::Take { key, amount } => {
                let call = Call::new(Statement::Take, vec![int(key), Param::Int(amount)]);
                // As long as nobody has said that it was refused.
                let (key, delta) = (u64::from(key), -amount);
                (call, Some(Op::Add { key, delta }))
            }
            Step::Read { key } => {
                let statement = match self.shape.has_ranges() {
                    true => Statement::Select(table_of(key)),
                    false => Statement::One,
                };
                (Call::new(statement, vec![int(key)]), None)
            }
            Step::Range { low, high } => {
                let statement = Statement::Range(table_of(low));
                (Call::new(statement, vec![int(low), int(high)]), None)
            }
            Step::All => (Call::plain(Statement::All), None),
            Step::Transfer { .. } | Step::Relink { .. } => {
                unreachable!("these are several statements")
            }
        }
    }

    /// The statements of a step that needs none of their answers; notes what they write.
    fn blind_calls(&self, step: &Step, run: &mut Run<'_>) -> Vec<Call> {
        let steps = match *step {
            Step::Transfer {
                from, to, amount, ..
            } => [(from, -amount), (to, amount)]
                .map(|(key, delta)| Step::Add { key, delta })
                .to_vec(),
            other => vec![other],
        };
        let call = |step: &Step| {
            let (call, write) = self.call(step, run.next_value);
            run.note(write);
            call
        };
        steps.iter().map(call).collect()
    }

    fn write_op(&self, key: u32, value: u64) -> Op {
        let key = u64::from(key);
        match self.shape.kind {
            Kind::ListAppend => Op::Append { key, value },
            _ => Op::Write { key, value },
        }
    }

    fn keyed(&self, statement: Statement, key: u32, value: u64) -> Call {
        let value = match self.shape.kind {
            Kind::ListAppend => Param::Text(value.to_string()),
            _ => Param::Int(value as i64),
        };
        Call::new(statement, vec![Param::Int(i64::from(key)), value])
    }

    /// Table 0 in one statement, the others by looking first.
    async fn write(&mut self, plan: &Plan, key: u32, value: u64) -> Result<(), Failure<C::Error>> {
        let table = table_of(key);
        if table > 0 {
            let update = self.keyed(Statement::Update(table), key, value);
            self.send(&[update], plan.is_simple).await?;
            match self.session.answers.affected(0) {
                0 => {}
                1 => return Ok(()),
                more => return Err(Failure::Wrong(format!("{more} rows have key {key}"))),
            }
        }
        let statement = match table {
            0 => Statement::Upsert(table),
            _ => Statement::Insert(table),
        };
        let insert = self.keyed(statement, key, value);
        self.send(&[insert], plan.is_simple).await?;
        self.must_change_one()
    }

    fn must_change_one(&self) -> Result<(), Failure<C::Error>> {
        match self.session.answers.affected(0) {
            1 => Ok(()),
            rows => Err(Failure::Wrong(format!(
                "a statement for one row changed {rows}"
            ))),
        }
    }

    /// Reads one of the fixed rows.
    async fn one(&mut self, run: &mut Run<'_>, key: u32) -> Result<i64, Failure<C::Error>> {
        let statement = match run.plan.locks_reads {
            true => Statement::OneLocked,
            false => Statement::One,
        };
        let call = Call::new(statement, vec![Param::Int(i64::from(key))]);
        self.send(&[call], run.plan.is_simple).await?;
        let value = self.session.answers.int(0, 0, 0);
        let value = value.ok_or_else(|| Failure::Wrong(format!("row {key} is not there")))?;
        let key = u64::from(key);
        run.note([Op::ReadCounter { key, value }]);
        Ok(value)
    }

    /// Changes a row from what was read to something else, which adds to it if nobody comes
    /// between.
    async fn set(
        &mut self,
        run: &mut Run<'_>,
        key: u32,
        (old, new): (i64, i64),
    ) -> Result<(), Failure<C::Error>> {
        run.note([Op::Add {
            key: u64::from(key),
            delta: new - old,
        }]);
        let params = vec![Param::Int(i64::from(key)), Param::Int(new)];
        let call = Call::new(Statement::Set, params);
        self.send(&[call], run.plan.is_simple).await?;
        self.must_change_one()
    }

    /// Adds to a row by a read and a write: an addition only if nobody comes between.
    async fn add_by_reading(
        &mut self,
        run: &mut Run<'_>,
        key: u32,
        delta: i64,
    ) -> Result<(), Failure<C::Error>> {
        let value = self.one(run, key).await?;
        self.set(run, key, (value, value + delta)).await
    }

    /// Makes consecutive rows a, b, c, d to a, c, b, d. Four places are needed, so a ring has five.
    async fn relink(&mut self, run: &mut Run<'_>, a: u32) -> Result<(), Failure<C::Error>> {
        let b = self.place(run, a).await?;
        let c = self.place(run, b).await?;
        let d = self.place(run, c).await?;
        for (at, old, new) in [(a, b, c), (c, d, b), (b, c, d)] {
            let change = (i64::from(old), i64::from(new));
            self.set(run, at, change).await?;
        }
        Ok(())
    }

    async fn place(&mut self, run: &mut Run<'_>, at: u32) -> Result<u32, Failure<C::Error>> {
        let next = u32::try_from(self.one(run, at).await?).ok();
        let next = next.filter(|&next| next < self.shape.keys);
        next.ok_or_else(|| Failure::Wrong(format!("place {at} is followed by no place")))
    }

    /// Notes what the answer of a step shows. Of one that writes, that stands in the place of what
    /// was noted when it was sent.
    fn note_seen(&self, run: &mut Run<'_>, step: &Step) -> Result<(), Failure<C::Error>> {
        if step.shows() {
            let seen = self.seen(step, 0)?;
            if step.writes() {
                run.noted.pop();
            }
            run.note(seen);
        }
        Ok(())
    }

    fn seen(&self, step: &Step, answer: usize) -> Result<Vec<Op>, Failure<C::Error>> {
        seen(&self.shape, step, &self.session.answers, answer).map_err(Failure::Wrong)
    }
}

impl Call {
    fn new(statement: Statement, params: Vec<Param>) -> Call {
        Call { statement, params }
    }

    fn plain(statement: Statement) -> Call {
        Call::new(statement, Vec::new())
    }
}

impl Param {
    fn to_text(&self) -> String {
        match self {
            Param::Int(value) => value.to_string(),
            Param::Text(text) => text.clone(),
        }
    }
}

/// Reads the rows of an answer. An error says what they should have been.
fn seen(shape: &Shape, step: &Step, answers: &Answers, at: usize) -> Result<Vec<Op>, String> {
    let (kind, rows) = (shape.kind, answers.rows(at));
    let int = |row: usize, column: usize| {
        let value = answers.int(at, row, column);
        value.ok_or_else(|| format!("\"{}\" is no number", answers.text(at, row, column)))
    };
    match *step {
        Step::Read { key } if rows > 1 => Err(format!("{rows} rows have key {key}")),
        Step::Read { key: row } => {
            let key = u64::from(row);
            let is_there = rows == 1;
            Ok(vec![match kind {
                Kind::ListAppend => Op::ReadList {
                    key,
                    values: match is_there {
                        true => list(answers.text(at, 0, 0))?,
                        false => Vec::new(),
                    },
                },
                Kind::Register | Kind::Phantom => Op::Read {
                    key,
                    value: is_there.then(|| int(0, 0)).transpose()?.map(|v| v as u64),
                },
                _ if !is_there => return Err(format!("row {key} is not there")),
                _ => Op::ReadCounter {
                    key,
                    value: int(0, 0)?,
                },
            }])
        }
        Step::Range { low, high } => {
            let (low, high) = (u64::from(low), u64::from(high));
            let keys = (0..rows).map(|row| int(row, 0).map(|key| key as u64));
            let keys: Vec<u64> = keys.collect::<Result<_, _>>()?;
            let in_order = keys.windows(2).all(|pair| pair[0] < pair[1]);
            if !in_order || keys.iter().any(|key| !(low..=high).contains(key)) {
                return Err(format!("{low} to {high} gave {keys:?}"));
            }
            let rows = keys.into_iter().enumerate();
            Ok(vec![if kind == Kind::ListAppend {
                let lists = rows.map(|(row, key)| Ok((key, list(answers.text(at, row, 1))?)));
                Op::ReadLists {
                    low,
                    high,
                    seen: lists.collect::<Result<_, String>>()?,
                }
            } else {
                let values = rows.map(|(row, key)| Ok((key, int(row, 1)? as u64)));
                Op::ReadRange {
                    low,
                    high,
                    seen: values.collect::<Result<_, String>>()?,
                }
            }])
        }
        Step::All => {
            let rows = (0..rows).map(|row| Ok((int(row, 0)? as u64, int(row, 1)?)));
            seen_all(shape, rows.collect::<Result<_, String>>()?)
        }
        Step::Take { key, amount } => taken(u64::from(key), amount, answers.tag(at)),
        Step::Write { .. } | Step::Add { .. } => Ok(Vec::new()),
        Step::Transfer { .. } | Step::Relink { .. } => Ok(Vec::new()),
    }
}

/// A read of all rows. The rows of accounts and places are judged together; of counters each must
/// be there once.
fn seen_all(shape: &Shape, rows: Vec<(u64, i64)>) -> Result<Vec<Op>, String> {
    let counter = |&(key, value): &(u64, i64)| Op::ReadCounter { key, value };
    let mut counters: Vec<Op> = rows.iter().map(counter).collect();
    match shape.kind {
        Kind::Counter | Kind::HotCounter | Kind::Stock => {
            let mut keys: Vec<u64> = rows.iter().map(|(key, _)| *key).collect();
            keys.sort_unstable();
            if !keys.iter().copied().eq(0..u64::from(shape.keys)) {
                let keys_max = shape.keys - 1;
                return Err(format!(
                    "all rows are 0 to {keys_max}, the answer has {keys:?}"
                ));
            }
            Ok(counters)
        }
        Kind::HotPair => {
            counters.push(Op::ReadTable { rows });
            Ok(counters)
        }
        Kind::Bank | Kind::Ring => Ok(vec![Op::ReadTable { rows }]),
        Kind::ListAppend | Kind::Register | Kind::Phantom => {
            unreachable!("they are read by ranges")
        }
    }
}

/// A take from a row by its command tag: whether enough was left, and what was taken.
fn taken(key: u64, amount: i64, tag: &str) -> Result<Vec<Op>, String> {
    let compare = |at_least| Op::Compare {
        key,
        bound: amount,
        at_least,
    };
    let delta = -amount;
    match tag {
        "UPDATE 1" => Ok(vec![compare(true), Op::Add { key, delta }]),
        "UPDATE 0" => Ok(vec![compare(false)]),
        _ => Err(format!("a statement that takes of one row said \"{tag}\"")),
    }
}

/// A list as it is stored: values with commas between.
fn list(text: &str) -> Result<Vec<u64>, String> {
    let values = text.split(',').map(str::parse::<u64>);
    let values = values.collect::<Result<_, _>>();
    values.map_err(|_| format!("\"{text}\" is no list"))
}

/// The shape of a client that reads everything at the end: in blocks that lock what they read, so
/// that nothing which was acknowledged is hidden by a clock.
pub fn final_shape(shape: &Shape) -> Shape {
    Shape {
        isolation: Isolation::Serializable,
        ..*shape
    }
}

/// The plans that read everything at the end, for a client of [`final_shape`]; `end` is above the
/// number of every transaction.
pub fn final_reads(shape: &Shape, end: u64) -> Vec<Plan> {
    let steps = match shape.has_ranges() {
        true => shape
            .ranges(end)
            .into_iter()
            .map(|(low, high)| Step::Range { low, high })
            .collect(),
        false => vec![Step::All],
    };
    let plan = |step| Plan {
        number: end,
        steps: vec![step],
        is_block: true,
        is_read_only: false,
        is_simple: false,
        is_pipelined: false,
        rolls_back: false,
        locks_reads: false,
    };
    steps.into_iter().map(plan).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(kind: Kind) -> Shape {
        Shape::new(kind, 1, Isolation::Serializable)
    }

    fn answers(rows: &[&[&str]]) -> Answers {
        let mut answers = Answers::new();
        for row in rows {
            answers.push_cells(row.iter().map(|cell| Some(cell.as_bytes())));
        }
        answers.finish_statement(b"SELECT");
        answers
    }

    #[test]
    fn lists_are_read_as_they_are_stored() {
        assert_eq!(list("7"), Ok(vec![7]));
        assert_eq!(list("7,12,3"), Ok(vec![7, 12, 3]));
        assert!(list("").is_err() && list("7,,3").is_err() && list("x").is_err());
        let read = Step::Read { key: 4 };
        let found = seen(&shape(Kind::ListAppend), &read, &answers(&[&["1,2"]]), 0).unwrap();
        let values = vec![1, 2];
        assert_eq!(found, [Op::ReadList { key: 4, values }]);
        let found = seen(&shape(Kind::ListAppend), &read, &answers(&[]), 0).unwrap();
        let values = vec![];
        assert_eq!(found, [Op::ReadList { key: 4, values }]);
    }

    #[test]
    fn a_take_shows_whether_enough_was_left() {
        let take = Step::Take { key: 4, amount: 3 };
        let said = |tag: &[u8]| {
            let mut answers = Answers::new();
            answers.finish_statement(tag);
            seen(&shape(Kind::Stock), &take, &answers, 0)
        };
        let compare = |at_least| Op::Compare {
            key: 4,
            bound: 3,
            at_least,
        };
        let taken = Op::Add { key: 4, delta: -3 };
        assert_eq!(said(b"UPDATE 1"), Ok(vec![compare(true), taken]));
        assert_eq!(said(b"UPDATE 0"), Ok(vec![compare(false)]));
        assert!(said(b"UPDATE 2").is_err() && said(b"SELECT 1").is_err());
    }

    #[test]
    fn a_read_of_all_counters_has_each_once() {
        let shape = Shape {
            keys: 2,
            ..shape(Kind::Stock)
        };
        let all = |rows: &[&[&str]]| seen(&shape, &Step::All, &answers(rows), 0);
        let counter = |key, value| Op::ReadCounter { key, value };
        let found = all(&[&["1", "7"], &["0", "5"]]);
        assert_eq!(found, Ok(vec![counter(1, 7), counter(0, 5)]));
        assert!(all(&[&["0", "5"]]).is_err());
        assert!(all(&[&["0", "5"], &["0", "5"]]).is_err());
    }

    #[test]
    fn wrong_rows_are_told_and_not_recorded() {
        let read = Step::Read { key: 4 };
        let twice = answers(&[&["1"], &["2"]]);
        assert!(seen(&shape(Kind::Register), &read, &twice, 0).is_err());
        assert!(seen(&shape(Kind::Counter), &read, &answers(&[]), 0).is_err());
        let range = Step::Range { low: 3, high: 5 };
        for rows in [&[&["6", "1"][..]][..], &[&["4", "1"], &["3", "1"]]] {
            assert!(seen(&shape(Kind::Register), &range, &answers(rows), 0).is_err());
        }
        let found = seen(&shape(Kind::Register), &range, &answers(&[&["4", "9"]]), 0).unwrap();
        let seen = vec![(4, 9)];
        assert_eq!(
            found,
            [Op::ReadRange {
                low: 3,
                high: 5,
                seen
            }]
        );
    }
}
