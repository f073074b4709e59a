//! Large objects: functions by which a client reads and writes long values in pieces.
//!
//! An object is a row of `pg_largeobject_metadata` with its number and owner, and its bytes are
//! rows of `pg_largeobject`: pages of 2 KiB, of which those that nobody has written are absent and
//! read as zeros. A call runs statements of its own over both tables, in the transaction of the
//! statement that it is part of; so objects are as transactional as rows.
//!
//! A descriptor is where a client stands in an object. The transaction has them, and they end with
//! it. Whoever writes locks the object's first row, so there is one writer at a time. One call
//! reads or writes at most [`CALL_BYTES_MAX`].

use super::point::{self, Prepared};
use super::scan::rows_of;
use super::source::open;
use super::{Charge, Cx, Local, first_values, statement};
use crate::port::OpFuture;
use base::types::ArrayKind;
use base::{Datum, RowBatch, SqlError, SqlState, Tag, Type};
use bind::PlanCx;
use bind::objects::ObjectCall;
use catalog::objects::{OWN_PATH, PAGE_BYTES};
use core::cell::RefCell;
use expr::{SessionFacts, zoned};
use plan::PlanKind;
use plan::step::{Action, PointOp};
use txn::{OpError, Savepoint};

/// Most bytes that one call reads or writes: they are one value, which is copied in a step.
pub const CALL_BYTES_MAX: u64 = 8 << 20;
/// End of the largest object, as in PostgreSQL.
const OBJECT_BYTES_MAX: u64 = i32::MAX as u64 * PAGE_BYTES as u64;
/// Most descriptors of a transaction.
const DESCRIPTORS_MAX: usize = 4_096;
/// Most pages that one statement of a call reads or writes.
const PAGES_AT_ONCE: usize = 256;
/// Flags of `lo_open`.
const READ: i64 = 0x4_0000;
const WRITE: i64 = 0x2_0000;
/// Numbers of objects that the server chooses begin here, as those of other objects do, and stay
/// below what a signed integer of 32 bits holds.
const FIRST_NUMBER: u64 = 16_384;

/// Where a client stands in an object.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    object: i64,
    writes: bool,
    at: u64,
    /// The newest savepoint when it was opened.
    under: u32,
}

/// The descriptors of a transaction, by their numbers; most transactions have none.
#[derive(Default, Debug)]
pub struct Descriptors {
    open: Vec<Option<Descriptor>>,
    /// The newest savepoint.
    newest: u32,
}

impl Descriptors {
    /// The transaction sets a savepoint or goes back to one.
    pub fn save(&mut self, savepoint: Savepoint) {
        match savepoint {
            Savepoint::Set { number, within } => {
                // The savepoints between have been released.
                for open in self.open.iter_mut().flatten() {
                    open.under = open.under.min(within);
                }
                self.newest = number;
            }
            Savepoint::Renew { .. } => {}
            Savepoint::RollBackTo(number) => {
                self.open
                    .iter_mut()
                    .for_each(|open| _ = open.take_if(|open| open.under >= number));
                self.newest = number;
            }
        }
    }

    fn get(&self, number: i64) -> Option<Descriptor> {
        let at = usize::try_from(number).ok()?;
        *self.open.get(at)?
    }

    fn add(&mut self, mut new: Descriptor) -> Result<i64, SqlError> {
        new.under = self.newest;
        let free = self.open.iter().position(Option::is_none);
        let at = free.unwrap_or(self.open.len());
        if at >= DESCRIPTORS_MAX {
            let message = "too many descriptors of large objects are open";
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message)
                .hint("Close some by lo_close, or end the transaction."));
        }
        match self.open.get_mut(at) {
            Some(place) => *place = Some(new),
            None => self.open.push(Some(new)),
        }
        Ok(at as i64)
    }
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, message)
}

fn undefined(message: String) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

/// Makes the call; NULL if an argument is. Boxed, for it is long and other calls are not.
pub(super) fn call<'a>(
    cx: &'a Cx<'_>,
    call: ObjectCall,
    args: &'a [Datum],
) -> Local<'a, Result<Datum, OpError>> {
    Box::pin(called(cx, call, args))
}

async fn called(cx: &Cx<'_>, call: ObjectCall, args: &[Datum]) -> Result<Datum, OpError> {
    if args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    if call.writes() && cx.port.read_only() {
        return Err(read_only(&format!("{}()", call.name())).into());
    }
    let number = |at: usize| args.get(at).and_then(Datum::as_int).unwrap_or(0);
    let bytes = |at: usize| match args.get(at) {
        Some(Datum::Bytes(bytes)) => &bytes[..],
        _ => &[],
    };
    let objects = Objects { cx };
    let answer = match call {
        ObjectCall::Creat => objects.create(0).await?,
        ObjectCall::Create => objects.create(number(0)).await?,
        ObjectCall::FromBytes => {
            let object = objects.create(number(0)).await?;
            objects.write(object, 0, bytes(1)).await?;
            object
        }
        ObjectCall::Open => objects.open(number(0), number(1)).await?,
        ObjectCall::Close => objects.close(number(0))?,
        ObjectCall::Read => return objects.read_on(number(0), number(1)).await,
        ObjectCall::Write => objects.write_on(number(0), bytes(1)).await?,
        ObjectCall::Seek(wide) => {
            let place = objects.seek(number(0), number(1), number(2)).await?;
            narrowed(place, wide, "lo_lseek", number(0))?
        }
        ObjectCall::Tell(wide) => {
            let place = objects.descriptor(number(0))?.at as i64;
            narrowed(place, wide, "lo_tell", number(0))?
        }
        ObjectCall::Truncate => objects.truncate(number(0), number(1)).await?,
        ObjectCall::Unlink => objects.unlink(number(0)).await?,
        ObjectCall::Get => return objects.get(args).await,
        ObjectCall::Put => {
            let at = target(number(1))?;
            objects.may_use(number(0), true).await?;
            objects.write(number(0), at, bytes(2)).await?;
            return Ok(Datum::Text("".into()));
        }
    };
    Ok(Datum::Int(answer))
}

fn read_only(function: &str) -> SqlError {
    let message = format!("cannot execute {function} in a read-only transaction");
    SqlError::new(SqlState::READ_ONLY_TXN, message)
}

/// A position for a function whose result may have 32 bits only.
fn narrowed(place: i64, wide: bool, name: &str, descriptor: i64) -> Result<i64, SqlError> {
    if wide || place <= i64::from(i32::MAX) {
        return Ok(place);
    }
    let message = format!("{name} result out of range for large-object descriptor {descriptor}");
    Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message))
}

/// A position that an object may have.
fn target(at: i64) -> Result<u64, SqlError> {
    let place = u64::try_from(at).ok().filter(|at| *at <= OBJECT_BYTES_MAX);
    place.ok_or_else(|| invalid(format!("invalid large object seek target: {at}")))
}

/// The number of bytes of one call.
fn piece(bytes: u64) -> Result<u64, SqlError> {
    if bytes <= CALL_BYTES_MAX {
        return Ok(bytes);
    }
    let message = format!("{bytes} bytes of a large object are too many for one call");
    Err(SqlError::new(SqlState::PROGRAM_LIMIT, message)
        .detail(format!(
            "A call may read or write at most {CALL_BYTES_MAX} bytes."
        ))
        .hint("Use several calls: loread and lowrite, or lo_get and lo_put with a position."))
}

/// What calls do, by statements of their own.
struct Objects<'a, 'p> {
    cx: &'a Cx<'p>,
}

impl Objects<'_, '_> {
    fn descriptors(&self, changed: bool) -> Result<&RefCell<Descriptors>, SqlError> {
        self.cx.port.descriptors(changed).ok_or_else(|| {
            let message = "the transaction of this statement has no descriptors";
            SqlError::new(SqlState::INTERNAL, message)
        })
    }

    fn descriptor(&self, number: i64) -> Result<Descriptor, SqlError> {
        let found = self.descriptors(false)?.borrow().get(number);
        found.ok_or_else(|| undefined(format!("invalid large-object descriptor: {number}")))
    }

    /// Sets or closes a descriptor.
    fn put(&self, number: i64, descriptor: Option<Descriptor>) -> Result<(), SqlError> {
        let mut all = self.descriptors(true)?.borrow_mut();
        let at = usize::try_from(number).ok();
        if let Some(place) = at.and_then(|at| all.open.get_mut(at)) {
            *place = descriptor;
        }
        Ok(())
    }

    fn is_made(&self) -> bool {
        self.cx.port.database().keeps_objects()
    }

    /// Makes an object; 0: with a number that no other has.
    async fn create(&self, wanted: i64) -> Result<i64, OpError> {
        if wanted != 0 {
            if !self.insert(wanted).await? {
                let constraint = "pg_largeobject_metadata_oid_index";
                let message =
                    format!("duplicate key value violates unique constraint \"{constraint}\"");
                return Err(SqlError::new(SqlState::UNIQUE, message)
                    .detail(format!("Key (oid)=({wanted}) already exists."))
                    .table("pg_largeobject_metadata")
                    .constraint(constraint)
                    .into());
            }
            return Ok(wanted);
        }
        loop {
            let numbers = i32::MAX as u64 - FIRST_NUMBER;
            let number = FIRST_NUMBER + self.cx.port.random() % numbers;
            if self.insert(number as i64).await? {
                return Ok(number as i64);
            }
        }
    }

    async fn insert(&self, object: i64) -> Result<bool, OpError> {
        let owner = self
            .cx
            .facts
            .with_catalog(None, |catalog| catalog.acting().0);
        let text = "INSERT INTO pg_largeobject_metadata (oid, lomowner) VALUES ($1, $2) \
                    ON CONFLICT (oid) DO NOTHING";
        let params = [Datum::Int(object), Datum::Int(i64::from(owner))];
        let tag = self.run(text, &[Type::Oid, Type::Oid], &params).await?.0;
        Ok(matches!(tag, Tag::Insert(1)))
    }

    /// The owner of an object, which is locked if it is to be changed; `None`: there is none.
    async fn owner(&self, object: i64, locks: bool) -> Result<Option<i64>, OpError> {
        if !self.is_made() {
            return Ok(None);
        }
        let text = match locks {
            true => "SELECT lomowner FROM pg_largeobject_metadata WHERE oid = $1 FOR UPDATE",
            false => "SELECT lomowner FROM pg_largeobject_metadata WHERE oid = $1",
        };
        let (_, rows) = self.run(text, &[Type::Oid], &[Datum::Int(object)]).await?;
        let first = rows.first().and_then(|row| row.first());
        Ok(first.and_then(Datum::as_int))
    }

    /// Whether the session's role owns an object, which must be there.
    async fn is_owner(&self, object: i64, locks: bool) -> Result<bool, OpError> {
        let Some(owner) = self.owner(object, locks).await? else {
            return Err(undefined(format!("large object {object} does not exist")).into());
        };
        let owns = |catalog: &pg_catalog::CatalogCx<'_>| catalog.acts_for(owner);
        Ok(self.cx.facts.with_catalog(None, owns))
    }

    /// # Errors
    /// 42704, 42501.
    async fn may_use(&self, object: i64, writes: bool) -> Result<(), OpError> {
        if self.is_owner(object, writes).await? {
            return Ok(());
        }
        let message = format!("permission denied for large object {object}");
        Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message).into())
    }

    async fn open(&self, object: i64, mode: i64) -> Result<i64, OpError> {
        let writes = mode & WRITE != 0;
        if mode & (READ | WRITE) == 0 {
            let message = format!("invalid flags for opening a large object: {mode}");
            return Err(invalid(message).into());
        }
        if writes && self.cx.port.read_only() {
            return Err(read_only("lo_open(INV_WRITE)").into());
        }
        self.may_use(object, false).await?;
        let new = Descriptor {
            object,
            writes,
            at: 0,
            under: 0,
        };
        Ok(self.descriptors(true)?.borrow_mut().add(new)?)
    }

    fn close(&self, number: i64) -> Result<i64, SqlError> {
        self.descriptor(number)?;
        self.put(number, None)?;
        Ok(0)
    }

    async fn read_on(&self, number: i64, wanted: i64) -> Result<Datum, OpError> {
        let mut open = self.descriptor(number)?;
        let wanted = u64::try_from(wanted).unwrap_or(0);
        let bytes = self.read(open.object, open.at, Some(wanted)).await?;
        open.at += bytes.len() as u64;
        self.put(number, Some(open))?;
        Ok(Datum::Bytes(bytes.into()))
    }

    fn writable(&self, number: i64) -> Result<Descriptor, SqlError> {
        let open = self.descriptor(number)?;
        if open.writes {
            return Ok(open);
        }
        let message = format!("large object descriptor {number} was not opened for writing");
        Err(SqlError::new(SqlState::OBJECT_NOT_READY, message))
    }

    async fn write_on(&self, number: i64, bytes: &[u8]) -> Result<i64, OpError> {
        let mut open = self.writable(number)?;
        // Removed by others meanwhile, it is gone.
        self.owner(open.object, true).await?;
        self.write(open.object, open.at, bytes).await?;
        open.at += bytes.len() as u64;
        self.put(number, Some(open))?;
        Ok(bytes.len() as i64)
    }

    async fn seek(&self, number: i64, offset: i64, whence: i64) -> Result<i64, OpError> {
        let mut open = self.descriptor(number)?;
        let from = match whence {
            0 => 0,
            1 => open.at,
            2 => self.length(open.object).await?,
            _ => return Err(invalid(format!("invalid whence setting: {whence}")).into()),
        };
        open.at = target((from as i64).saturating_add(offset))?;
        self.put(number, Some(open))?;
        Ok(open.at as i64)
    }

    /// The end of the last page.
    async fn length(&self, object: i64) -> Result<u64, OpError> {
        let text = "SELECT pageno, length(data) FROM pg_largeobject WHERE loid = $1 \
                    ORDER BY pageno DESC LIMIT 1";
        let (_, rows) = self.run(text, &[Type::Oid], &[Datum::Int(object)]).await?;
        let number = |at: usize| rows.first().and_then(|row| row.get(at)?.as_int());
        let (page, bytes) = (number(0).unwrap_or(0), number(1).unwrap_or(0));
        Ok(page as u64 * PAGE_BYTES as u64 + bytes as u64)
    }

    async fn get(&self, args: &[Datum]) -> Result<Datum, OpError> {
        let number = |at: usize| args.get(at).and_then(Datum::as_int);
        let object = number(0).unwrap_or(0);
        self.may_use(object, false).await?;
        let (at, wanted) = match (number(1), number(2)) {
            (Some(at), Some(wanted)) => {
                let wanted = u64::try_from(wanted)
                    .map_err(|_| invalid("requested length cannot be negative".into()))?;
                (target(at)?, Some(wanted))
            }
            _ => (0, None),
        };
        let bytes = self.read(object, at, wanted).await?;
        Ok(Datum::Bytes(bytes.into()))
    }

    /// The bytes from `at` on, at most `wanted`. Pages that are not there are zeros.
    async fn read(&self, object: i64, at: u64, wanted: Option<u64>) -> Result<Vec<u8>, OpError> {
        if !self.is_made() {
            return Ok(Vec::new());
        }
        let rest = self.length(object).await?.saturating_sub(at);
        let bytes = piece(rest.min(wanted.unwrap_or(rest)))?;
        if bytes == 0 {
            return Ok(Vec::new());
        }
        self.cx.facts.room(bytes as usize)?;
        let mut out = vec![0; bytes as usize];
        let (mut first, end) = (page_of(at), page_of(at + bytes - 1));
        while first <= end {
            let last = end.min(first + PAGES_AT_ONCE as i64 - 1);
            for (page, data) in self.pages(object, (first, last), false).await? {
                let begin = page as u64 * PAGE_BYTES as u64;
                let (from, into) = match begin < at {
                    true => ((at - begin) as usize, 0),
                    false => (0, (begin - at) as usize),
                };
                let Some(source) = data.get(from..) else {
                    continue;
                };
                let count = source.len().min(out.len().saturating_sub(into));
                out[into..into + count].copy_from_slice(&source[..count]);
            }
            first = last + 1;
        }
        Ok(out)
    }

    /// The pages of a range that are there, in order. Those that are to be written are locked, and
    /// the newest ones whatever the isolation level.
    async fn pages(
        &self,
        object: i64,
        (first, last): (i64, i64),
        locks: bool,
    ) -> Result<Vec<(i64, Box<[u8]>)>, OpError> {
        let text = match locks {
            true => {
                "SELECT pageno, data FROM pg_largeobject WHERE loid = $1 AND pageno >= $2 \
                 AND pageno <= $3 ORDER BY pageno FOR UPDATE"
            }
            false => {
                "SELECT pageno, data FROM pg_largeobject WHERE loid = $1 AND pageno >= $2 \
                 AND pageno <= $3 ORDER BY pageno"
            }
        };
        let types = [Type::Oid, Type::Int4, Type::Int4];
        let params = [object, first, last].map(Datum::Int);
        let (_, rows) = self.run(text, &types, &params).await?;
        let pages = rows.into_iter().filter_map(|row| {
            let mut row = row.into_iter();
            match (row.next()?, row.next()?) {
                (Datum::Int(page), Datum::Bytes(data)) => Some((page, data)),
                _ => None,
            }
        });
        Ok(pages.collect())
    }

    /// Writes bytes at a position. The caller has locked the object.
    async fn write(&self, object: i64, at: u64, bytes: &[u8]) -> Result<(), OpError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = at + bytes.len() as u64;
        if end > OBJECT_BYTES_MAX {
            let message = format!("invalid large object write request size: {}", bytes.len());
            return Err(invalid(message).into());
        }
        piece(bytes.len() as u64)?;
        let (first, last) = (page_of(at), page_of(end - 1));
        let mut edges = self.pages(object, (first, first), true).await?;
        if last > first {
            edges.extend(self.pages(object, (last, last), true).await?);
        }
        let mut numbers = Vec::new();
        let mut pages = Vec::new();
        let mut rest = bytes;
        for page in first..=last {
            let begin = page as u64 * PAGE_BYTES as u64;
            let from = at.saturating_sub(begin) as usize;
            let (part, behind) = rest.split_at(rest.len().min(PAGE_BYTES - from));
            rest = behind;
            let old = edges.iter().find(|(number, _)| *number == page);
            let mut data = old.map_or_else(Vec::new, |(_, data)| data.to_vec());
            data.resize(data.len().max(from + part.len()), 0);
            data[from..from + part.len()].copy_from_slice(part);
            numbers.push(Datum::Int(page));
            pages.push(Datum::Bytes(data.into()));
            if pages.len() == PAGES_AT_ONCE || page == last {
                self.put_pages(object, &mut numbers, &mut pages).await?;
            }
        }
        Ok(())
    }

    async fn put_pages(
        &self,
        object: i64,
        numbers: &mut Vec<Datum>,
        pages: &mut Vec<Datum>,
    ) -> Result<(), OpError> {
        let text = "INSERT INTO pg_largeobject (loid, pageno, data) \
                    SELECT $1, new.pageno, new.data FROM unnest($2, $3) AS new(pageno, data) \
                    ON CONFLICT (loid, pageno) DO UPDATE SET data = excluded.data";
        let types = [
            Type::Oid,
            Type::Array(ArrayKind::Int4),
            Type::Array(ArrayKind::Bytea),
        ];
        let array = |items: &mut Vec<Datum>| Datum::Array(core::mem::take(items).into());
        let params = [Datum::Int(object), array(numbers), array(pages)];
        self.run(text, &types, &params).await.map(drop)
    }

    async fn truncate(&self, number: i64, length: i64) -> Result<i64, OpError> {
        let open = self.writable(number)?;
        let within = |end: &u64| *end <= OBJECT_BYTES_MAX;
        let length = u64::try_from(length)
            .ok()
            .filter(within)
            .ok_or_else(|| invalid(format!("invalid large object truncation target: {length}")))?;
        self.owner(open.object, true).await?;
        let last = page_of(length);
        let text = "DELETE FROM pg_largeobject WHERE loid = $1 AND pageno > $2";
        let params = [Datum::Int(open.object), Datum::Int(last)];
        self.run(text, &[Type::Oid, Type::Int4], &params).await?;
        let mut data = match self.pages(open.object, (last, last), true).await?.pop() {
            Some((_, data)) => data.into_vec(),
            None => Vec::new(),
        };
        data.resize((length % PAGE_BYTES as u64) as usize, 0);
        let mut page = (vec![Datum::Int(last)], vec![Datum::Bytes(data.into())]);
        self.put_pages(open.object, &mut page.0, &mut page.1)
            .await?;
        Ok(0)
    }

    async fn unlink(&self, object: i64) -> Result<i64, OpError> {
        if !self.is_owner(object, true).await? {
            let message = format!("must be owner of large object {object}");
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message).into());
        }
        for text in [
            "DELETE FROM pg_largeobject WHERE loid = $1",
            "DELETE FROM pg_largeobject_metadata WHERE oid = $1",
        ] {
            self.run(text, &[Type::Oid], &[Datum::Int(object)]).await?;
        }
        for open in &mut self.descriptors(true)?.borrow_mut().open {
            open.take_if(|open| open.object == object);
        }
        Ok(1)
    }

    /// Runs a statement about the tables of large objects. Gives its rows.
    async fn run(
        &self,
        text: &str,
        types: &[Type],
        params: &[Datum],
    ) -> Result<(Tag, Vec<Vec<Datum>>), OpError> {
        let port = self.cx.port;
        let statements = parse::parse(text)?;
        let parsed = statements.first().expect("the text is a statement");
        let plan = port.plan(
            parsed,
            &PlanCx {
                catalog: port.catalog(),
                database: port.database(),
                param_types: types,
                param_names: &[],
                zone: zoned::of_setting(None),
                path: OWN_PATH,
                viewer: bind::Viewer::default(),
                rows: &|_| None,
                values: &|_| None,
                paths: Default::default(),
            },
        )?;
        let PlanKind::Run(run) = &plan.kind else {
            unreachable!("the text is a statement about rows");
        };
        let cx = Cx::new(port, run, false).with_parts(run);
        let mut rows = Vec::new();
        let tag = match &run.action {
            Action::Query(step) => {
                let slots = first_values(&cx, run, params).await?;
                let mut charge = Charge::new(port);
                let mut source = open(&cx, step, &slots);
                while let Some(batch) = source.next().await? {
                    let count = batch.rows as usize;
                    take(&batch, &mut rows, &mut charge)?;
                    cx.breathe(count).await;
                }
                Tag::Count("SELECT", rows.len() as u64)
            }
            Action::Point(point) if matches!(point.op, PointOp::Get { .. }) => {
                let slots = first_values(&cx, run, params).await?;
                if let Some(Prepared { to, op }) = point::prepare(&cx, point, &slots)? {
                    let answer = OpFuture::start(port, to, run.planned, op, false).await;
                    take(&rows_of(answer)?, &mut rows, &mut Charge::new(port))?;
                }
                Tag::Count("SELECT", rows.len() as u64)
            }
            _ => Box::pin(statement(&cx, run, params, false)).await?,
        };
        Ok((tag, rows))
    }
}

/// Appends the rows of a batch.
fn take(
    batch: &RowBatch,
    rows: &mut Vec<Vec<Datum>>,
    charge: &mut Charge<'_>,
) -> Result<(), SqlError> {
    for row in batch.iter() {
        let bytes = row.iter().map(expr::rows::datum_heap_bytes).sum::<usize>();
        charge.add(bytes + size_of::<Vec<Datum>>())?;
        rows.push(row.to_vec());
    }
    Ok(())
}

/// The page that has the byte at a position.
fn page_of(at: u64) -> i64 {
    (at / PAGE_BYTES as u64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(all: &mut Descriptors, object: i64) -> i64 {
        let new = Descriptor {
            object,
            writes: false,
            at: 0,
            under: 0,
        };
        all.add(new).expect("there is room")
    }

    #[test]
    fn descriptors_have_the_lowest_free_numbers() {
        let mut all = Descriptors::default();
        assert_eq!([1, 2, 3].map(|object| opened(&mut all, object)), [0, 1, 2]);
        all.open[1] = None;
        assert_eq!([4, 5].map(|object| opened(&mut all, object)), [1, 3]);
        for number in [-1, 4, i64::MAX, i64::MIN] {
            assert!(all.get(number).is_none(), "{number}");
        }
        while all.open.len() < DESCRIPTORS_MAX {
            opened(&mut all, 9);
        }
        let one_more = *all.open[0].as_ref().expect("it is open");
        let refused = all.add(one_more).expect_err("there are too many");
        assert_eq!(refused.state(), SqlState::PROGRAM_LIMIT);
    }

    #[test]
    fn going_back_to_a_savepoint_closes_what_was_opened_behind_it() {
        let set = |number, within| Savepoint::Set { number, within };
        let mut all = Descriptors::default();
        let before = opened(&mut all, 1);
        all.save(set(1, 0));
        let behind = opened(&mut all, 2);
        all.save(set(2, 1));
        let last = opened(&mut all, 3);
        all.save(Savepoint::RollBackTo(2));
        let open = |all: &Descriptors| [before, behind, last].map(|at| all.get(at).is_some());
        assert_eq!(open(&all), [true, true, false]);
        // The second one is released, and another one set: what it had belongs to the first.
        let again = opened(&mut all, 4);
        assert_eq!(again, last);
        all.save(set(3, 1));
        all.save(Savepoint::RollBackTo(3));
        assert_eq!(open(&all), [true, true, true]);
        all.save(Savepoint::RollBackTo(1));
        assert_eq!(open(&all), [true, false, false]);
    }

    #[test]
    fn limits_of_positions_and_pieces() {
        assert_eq!(target(0).expect("a position"), 0);
        assert_eq!(
            target(OBJECT_BYTES_MAX as i64).expect("the end"),
            OBJECT_BYTES_MAX
        );
        assert!(target(-1).is_err() && target(OBJECT_BYTES_MAX as i64 + 1).is_err());
        assert!(piece(CALL_BYTES_MAX).is_ok() && piece(CALL_BYTES_MAX + 1).is_err());
        assert!(narrowed(i64::from(i32::MAX), false, "lo_tell", 0).is_ok());
        assert!(narrowed(i64::from(i32::MAX) + 1, false, "lo_tell", 0).is_err());
        assert!(narrowed(i64::MAX, true, "lo_tell", 0).is_ok());
        assert_eq!((page_of(2_047), page_of(2_048)), (0, 1));
    }
}
