//! TPC-C as the benchmark runs it, on a small database, with its twelve conditions at the end.
//!
//! One or two warehouses with 40 items and ten districts of four customers: not a scale of the
//! specification, but every transaction, statement and condition is. Beside the conditions the
//! database must have gained what was acknowledged, and at most the unknown ones more.

use super::blame::{Blame, is_excusable, patiently};
use super::histories::CLOCKS_APART_US;
use super::wire::{LinkError, SimLink};
use super::{Entry, Scale, Verdict, Workload};
use crate::executor::{SimCx, Task};
use base::Prng;
use std::cell::Cell;
use std::rc::Rc;
use workload::tpcc::check::{Ledger, check, read_ledger};
use workload::tpcc::input::Terminal;
use workload::tpcc::random::Constants;
use workload::tpcc::rows::{Chunk, Content};
use workload::tpcc::schema::{self, SchemaOptions, Table};
use workload::tpcc::{self, Kind, sql, transactions};
use workload::wire::{self, Ending, Failure, Isolation, Session};

pub(super) const ENTRY: Entry = Entry {
    name: "tpcc",
    about: "TPC-C on a small database, with its 12 conditions",
    make: |prng, scale| Rc::new(Tpcc::draw(prng, scale)),
};

/// A run with fewer acknowledged transactions proves nothing.
const COMMITTED_MIN: u64 = 5;
/// Attempts of one transaction before the client goes on with another.
const ATTEMPTS_MAX: u32 = 20;

/// Attempts to read everything after the faults, 50 ms apart.
const JUDGE_ATTEMPTS_MAX: u32 = 60;

/// What became of the transactions of one kind.
#[derive(Clone, Copy, Default)]
struct Count {
    /// Acknowledged, in units of what the ledger counts.
    acknowledged: u64,
    unknown: u64,
}

struct Tpcc {
    content: Content,
    run: Constants,
    seed: u64,
    isolation: Isolation,
    pause_us: u64,
    before: Cell<Ledger>,
    counts: [Cell<Count>; 5],
    blame: Blame,
}

impl Tpcc {
    fn draw(prng: &mut Prng, _scale: Scale) -> Tpcc {
        let seed = prng.next_u64();
        let constants = Constants::for_load(seed);
        Tpcc {
            content: Content {
                scale: tpcc::Scale {
                    warehouses: 1 + prng.below(2) as u32,
                    items: 40,
                    customers: 4,
                    orders: 4,
                    skew: tpcc::Skew::NONE,
                },
                seed,
                constants,
                now_us: 1_600_000_000_000_000,
            },
            run: Constants::for_run(seed, constants.c_last),
            seed,
            isolation: match prng.below(4) {
                0 => Isolation::ReadCommitted,
                1 => Isolation::RepeatableRead,
                _ => Isolation::Serializable,
            },
            pause_us: 1 << prng.between(15, 18),
            before: Cell::default(),
            counts: Default::default(),
            blame: Blame::default(),
        }
    }

    async fn load(&self, cx: &SimCx) -> Result<(), String> {
        patiently(cx, async |link| self.fill(link).await).await?;
        // Until no clock is behind what has been loaded.
        cx.sleep(CLOCKS_APART_US).await;
        patiently(cx, async |link| {
            self.before.set(read_locked(link).await?);
            Ok(())
        })
        .await
    }

    async fn fill(&self, link: &mut SimLink) -> Result<(), LinkError> {
        for table in Table::ALL.iter().rev() {
            let drop = format!("DROP TABLE IF EXISTS {}", table.name());
            wire::command(link, &drop).await?;
        }
        let options = SchemaOptions {
            placement: true,
            binding: true,
            broadcast: true,
            foreign_keys: false,
        };
        for statement in schema::create_all(&options) {
            wire::command(link, &statement).await?;
        }
        let mut bytes = Vec::new();
        for chunk in Chunk::all(&self.content.scale) {
            bytes.clear();
            let rows = chunk.write(&self.content, &mut bytes);
            let copy = format!("COPY {} FROM STDIN", chunk.table.name());
            let data = String::from_utf8_lossy(&bytes);
            let copied = link.copy_in(&copy, &data).await?;
            if copied != rows {
                self.blame
                    .accuse(format!("{copy} counted {copied} of {rows} rows"));
            }
        }
        Ok(())
    }

    async fn open(&self, cx: &SimCx) -> Option<Session<SimLink>> {
        let link = SimLink::connect(cx, cx.any_node()).await.ok()?;
        let session = Session::open(link, &sql::all(self.isolation)).await;
        self.blame.prepared(session)
    }

    fn count(&self, kind: Kind, acknowledged: u64, unknown: u64) {
        let cell = &self.counts[kind.number()];
        let mut count = cell.get();
        count.acknowledged += acknowledged;
        count.unknown += unknown;
        cell.set(count);
    }

    async fn work(&self, cx: &SimCx, number: u32) {
        let mut terminal = Terminal::new(self.content.scale, self.run, self.seed, number);
        while !cx.stopping() {
            let Some(mut session) = self.open(cx).await else {
                cx.sleep(50_000).await;
                continue;
            };
            while !cx.stopping() && self.transact(cx, &mut session, &mut terminal).await {
                cx.pause(self.pause_us).await;
            }
        }
    }

    /// The next transaction of a terminal. Tells whether the connection can be used further.
    async fn transact(
        &self,
        cx: &SimCx,
        session: &mut Session<SimLink>,
        terminal: &mut Terminal,
    ) -> bool {
        let input = terminal.draw();
        for _ in 0..ATTEMPTS_MAX {
            match transactions::execute(session, &input).await {
                Ok(done) => {
                    if done.ending == Ending::Committed {
                        self.count(input.kind(), done.units, 0);
                    }
                    return true;
                }
                Err(Failure::Aborted(error)) => {
                    if !is_excusable(&error.sqlstate) {
                        self.blame.accuse(format!("{input:?}: {error}"));
                        return true;
                    }
                }
                Err(Failure::Conflict(_)) => {}
                Err(Failure::Wrong(text)) => {
                    self.blame.accuse(text);
                    return true;
                }
                Err(Failure::Lost(_)) => return false,
                Err(Failure::Unknown(_)) => {
                    self.count(input.kind(), 0, 1);
                    return false;
                }
            }
            if cx.stopping() {
                return true;
            }
        }
        true
    }

    async fn judge(&self, cx: &SimCx) -> Result<Verdict, String> {
        let mut after = self.before.get();
        for node in 1..=cx.nodes() {
            let link = SimLink::connect(cx, node).await;
            let mut link = link.map_err(|error| format!("node {node}: {error}"))?;
            let scale = self.content.scale;
            let checked = check(&mut link, scale, BEGIN_LOCKING).await;
            let verifier = checked.map_err(|error| format!("node {node}: {error}"))?;
            for (at, condition) in verifier.conditions().iter().enumerate() {
                if condition.failures > 0 {
                    let first = condition.counterexample.as_deref().unwrap_or("");
                    let number = at + 1;
                    return Ok(Verdict::Fail(format!("condition {number}: {first}")));
                }
            }
            let ledger = read_locked(&mut link).await;
            after = ledger.map_err(|error| format!("node {node}: {error}"))?;
        }
        Ok(self.reconcile(after))
    }

    /// Compares what the database gained with what was acknowledged.
    fn reconcile(&self, after: Ledger) -> Verdict {
        let before = self.before.get();
        let of = |kind: Kind| self.counts[kind.number()].get();
        // A delivery of which nobody knows may have delivered in each district.
        for (kind, gain, most) in [
            (Kind::NewOrder, after.orders - before.orders, 1),
            (Kind::Payment, after.payments - before.payments, 1),
            (Kind::Delivery, after.deliveries - before.deliveries, 10),
        ] {
            let count = of(kind);
            let low = count.acknowledged as i64;
            let high = low + most * count.unknown as i64;
            if !(low..=high).contains(&gain) {
                let name = kind.name();
                return Verdict::Fail(format!("{name}: {gain} gained, {low} to {high} expected"));
            }
        }
        let committed: u64 = Kind::TPCC.iter().map(|&kind| of(kind).acknowledged).sum();
        if committed < COMMITTED_MIN {
            return Verdict::Inconclusive(format!("{committed} transactions acknowledged"));
        }
        Verdict::Pass
    }
}

/// Opens a transaction that locks what it reads, so that no clock hides what was acknowledged.
const BEGIN_LOCKING: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE";

async fn read_locked(link: &mut SimLink) -> Result<Ledger, LinkError> {
    wire::command(link, BEGIN_LOCKING).await?;
    let ledger = read_ledger(link).await?;
    wire::command(link, "COMMIT").await?;
    Ok(ledger)
}

impl Workload for Tpcc {
    fn setup(self: Rc<Self>, cx: SimCx) -> Task<Result<(), String>> {
        Box::pin(async move { self.load(&cx).await })
    }

    fn client(self: Rc<Self>, cx: SimCx, client: u32) -> Task {
        Box::pin(async move { self.work(&cx, client).await })
    }

    fn finish(self: Rc<Self>, cx: SimCx) -> Task<Verdict> {
        Box::pin(async move {
            if let Some(text) = self.blame.take() {
                return Verdict::Fail(text);
            }
            // What the faults have left undecided may be in the way for a moment.
            let mut attempts = 0;
            loop {
                match self.judge(&cx).await {
                    Ok(verdict) => return verdict,
                    Err(text) if attempts == JUDGE_ATTEMPTS_MAX => return Verdict::Fail(text),
                    Err(_) => attempts += 1,
                }
                cx.sleep(50_000).await;
            }
        })
    }
}
