//! Random clients and coordinators against one session: nothing panics, nothing hangs, no
//! transaction is forgotten, and the coordinator is only told what makes sense.

use base::{
    Datum, IndexId, Key, Position, Prng, RowBatch, ShardId, Slot, SqlError, SqlState, Time, Ts,
};
use catalog::Catalog;
use session::Away;
use session::message::{Done, FromTxn, StatementNo, ToTxn, TxnHandle};
use session::{ConnId, Leftovers, Preparation, PreparationResult};
use session::{PlanCache, Session, SessionCx, Statistics};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use txn::{AbortReason, Counters, OpError, Outcome};
use wire::{ClientMessage, Format, Reply, Tag};

const HERE: ShardId = ShardId(0);
const TEXTS: &[&str] = &[
    "select 1",
    "select 1; select 2",
    "select 1; begin; select 2",
    "begin",
    "begin; select 1",
    "commit",
    "rollback",
    "begin read only; select 1; commit",
    "selec 1",
    "set lock_timeout = '1s'",
    "set application_name = 'x'",
    "select 1; set application_name = 'y'; select 2",
    "show lock_timeout",
    "discard all",
    "vacuum",
    "",
    "prepare p as select 1",
    "deallocate p",
    "commit; begin; select 1; commit and chain",
];

/// A query string; one of 16 has 16 KiB more of text.
fn text(prng: &mut Prng) -> String {
    let text = TEXTS[prng.below(TEXTS.len() as u64) as usize];
    match prng.below(16) {
        0 => text.replacen(' ', &format!("{:16384}", ""), 1),
        _ => text.to_owned(),
    }
}

/// One statement at the fake coordinator.
struct Running {
    credit: u32,
    autocommit: bool,
    batches: u32,
}

/// One transaction at the fake coordinator.
#[derive(Default)]
struct Txn {
    last: StatementNo,
    running: BTreeMap<StatementNo, Running>,
    committing: bool,
}

struct World {
    prng: Prng,
    session: Session,
    catalog: Arc<Catalog>,
    plans: PlanCache,
    statistics: Statistics,
    counters: Counters,
    away: Away,
    now: Time,
    /// Long texts that the session has given away.
    preparations: Vec<Preparation>,
    prepared: Vec<PreparationResult>,
    /// Long texts whose sessions did not want them any more when their turn came.
    left_out: u64,
    txns: BTreeMap<TxnHandle, Txn>,
    replies: Vec<Reply>,
    /// How often of 100 a statement ends in each bad way.
    die_percent: u64,
    fail_percent: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut prng = Prng::new(seed);
        let database = catalog::Database {
            id: base::DatabaseId(16_384),
            name: "shop".to_owned(),
            protocol: catalog::ProtocolKind::TwoPhase,
            execution: catalog::Execution::Interleaved,
            tables: BTreeMap::new(),
            sequences: BTreeMap::new(),
            switching: None,
            comments: BTreeMap::new(),
            views: Default::default(),
            enums: Default::default(),
            stored: Default::default(),
            blocks: Vec::new(),
            schemas: [("public".into(), 2200)].into(),
            functions: Default::default(),
            domains: Default::default(),
            row_security: Default::default(),
            connection_limit: -1,
        };
        let databases = [("shop".to_owned(), Arc::new(database))].into();
        let placement = catalog::Placement::new(1, 1);
        let catalog = Catalog {
            version: 1,
            placement,
            databases,
            ..Catalog::default()
        };
        let (die_percent, fail_percent) = (prng.below(40), prng.below(30));
        World {
            prng,
            session: Session::new(ConnId(1), 1, session::Link::default()),
            catalog: Arc::new(catalog),
            plans: PlanCache::new(4),
            statistics: Statistics::default(),
            counters: Counters::default(),
            away: Away::default(),
            now: Time(1_800_000_000_000_000),
            preparations: Vec::new(),
            prepared: Vec::new(),
            left_out: 0,
            txns: BTreeMap::new(),
            replies: Vec::new(),
            die_percent,
            fail_percent,
        }
    }

    fn call(&mut self, call: impl FnOnce(&mut Session, &mut SessionCx<'_>)) {
        let (mut replies, mut ddl) = (Vec::new(), VecDeque::new());
        let mut to_txn = VecDeque::new();
        let mut cx = SessionCx {
            now: self.now,
            here: HERE,
            catalog: &self.catalog,
            accepting: true,
            replies: &mut replies,
            to_txn: &mut to_txn,
            ddl: &mut ddl,
            plans: &mut self.plans,
            statistics: &mut self.statistics,
            counters: &mut self.counters,
            away: &self.away,
            quiesced: &[],
            preparations: &mut self.preparations,
            leftovers: &Leftovers::default(),
            barrier: session::barrier::let_through,
            told: &mut Vec::new(),
            claim_memory: &mut |_| true,
        };
        call(&mut self.session, &mut cx);
        assert!(ddl.is_empty(), "no statement here changes the schema");
        self.replies
            .extend(replies.into_iter().map(|(_, reply, _)| reply));
        for (shard, handle, message) in to_txn {
            assert_eq!(shard, HERE);
            self.told(handle, message);
        }
    }

    fn told(&mut self, handle: TxnHandle, message: ToTxn) {
        if let ToTxn::Run(run) = &message {
            if run.begin.is_some() {
                assert!(
                    self.txns.insert(handle, Txn::default()).is_none(),
                    "begins once"
                );
            }
            if run.begin.as_ref().is_some_and(|begin| begin.attempt > 1) {
                assert!(
                    run.begin
                        .as_ref()
                        .and_then(|begin| begin.priority_ts)
                        .is_some(),
                    "keeps its place"
                );
            }
        }
        // A transaction may have died between two messages.
        let Some(txn) = self.txns.get_mut(&handle) else {
            return;
        };
        assert!(!txn.committing, "nothing follows Commit: {message:?}");
        match message {
            ToTxn::Run(run) => {
                assert_eq!(run.statement, txn.last + 1, "statements are numbered");
                assert!(
                    run.credit > 0 || self.replies.len() > 1,
                    "something may be sent"
                );
                txn.last = run.statement;
                let batches = self.prng.below(8) as u32;
                let running = Running {
                    credit: run.credit,
                    autocommit: run.autocommit,
                    batches,
                };
                txn.running.insert(run.statement, running);
            }
            ToTxn::Credit(number, batches) => {
                if let Some(running) = txn.running.get_mut(&number) {
                    running.credit += batches;
                    assert!(
                        running.credit <= session::CREDIT_BATCHES,
                        "credit is bounded"
                    );
                }
            }
            ToTxn::Close(number) => drop(txn.running.remove(&number)),
            ToTxn::Cancel(error) => {
                if let Some((number, running)) = txn.running.pop_first() {
                    self.end(
                        handle,
                        number,
                        running.autocommit,
                        Err(OpError::Sql(error)),
                        None,
                    );
                }
            }
            ToTxn::Commit => txn.committing = true,
            ToTxn::Rollback => drop(self.txns.remove(&handle)),
            ToTxn::CopyData(..) => panic!("nothing is copied here"),
        }
    }

    fn end(
        &mut self,
        handle: TxnHandle,
        number: StatementNo,
        autocommit: bool,
        result: Result<Tag, OpError>,
        outcome: Option<Outcome>,
    ) {
        if autocommit || matches!(result, Err(OpError::Aborted(_))) {
            self.txns.remove(&handle);
        }
        let (wait, priority_ts) = (Position(0), Ts(7));
        let done = Done {
            result,
            outcome,
            cost: None,
            wait,
            priority_ts,
            effects: None,
        };
        self.call(|session, cx| session.on_txn(cx, handle, FromTxn::Done(number, done)));
    }

    /// Lets the coordinator say one thing; false if it has nothing to say.
    fn coordinator(&mut self) -> bool {
        let Some((handle, txn)) = self.txns.iter_mut().next() else {
            return false;
        };
        let handle = *handle;
        let dies = self.prng.below(100) < self.die_percent;
        let die = AbortReason::Die {
            key: Key::new(IndexId(1), Slot(0), vec![]),
            holder: base::TxnId {
                shard: HERE,
                incarnation: 1,
                counter: 1,
            },
        };
        if txn.committing {
            let outcome = if dies {
                Outcome::Aborted(die)
            } else {
                Outcome::Committed { commit_ts: Ts(9) }
            };
            self.txns.remove(&handle);
            let ended = FromTxn::Ended {
                outcome,
                wait: Position(0),
                cost: None,
            };
            self.call(|session, cx| session.on_txn(cx, handle, ended));
            return true;
        }
        let able = |running: &Running| running.batches == 0 || running.credit > 0;
        let Some((number, running)) = txn.running.iter_mut().find(|(_, running)| able(running))
        else {
            return false;
        };
        let number = *number;
        if running.batches > 0 {
            running.batches -= 1;
            running.credit -= 1;
            let mut batch = RowBatch::new(1);
            (0..=self.prng.below(2)).for_each(|_| batch.push([Datum::Int(1)]));
            let rows = FromTxn::Rows(number, batch, Position(0));
            self.call(|session, cx| session.on_txn(cx, handle, rows));
            return true;
        }
        let autocommit = running.autocommit;
        txn.running.remove(&number);
        let commit_ts = Ts(8);
        if dies {
            self.end(handle, number, autocommit, Err(OpError::Aborted(die)), None);
        } else if self.prng.below(100) < self.fail_percent {
            let error = SqlError::new(SqlState::UNIQUE, "duplicate key");
            self.end(handle, number, autocommit, Err(OpError::Sql(error)), None);
        } else {
            let outcome = autocommit.then_some(Outcome::Committed { commit_ts });
            self.end(
                handle,
                number,
                autocommit,
                Ok(Tag::Count("SELECT", 1)),
                outcome,
            );
        }
        true
    }

    /// A whole pipeline, a query string, or anything at all.
    fn client(&mut self) {
        match self.prng.below(10) {
            0..=2 => {
                let text = text(&mut self.prng);
                self.say(ClientMessage::Query(text));
            }
            3..=6 => self.pipeline(),
            _ => self.anything(),
        }
    }

    fn say(&mut self, message: ClientMessage) {
        self.call(|session, cx| session.on_client(cx, message));
    }

    /// Parse, then Bind and Execute a few times, then Sync.
    fn pipeline(&mut self) {
        self.say(ClientMessage::Sync);
        let text = if self.prng.below(4) == 0 {
            "begin"
        } else {
            "select 1"
        }
        .to_owned();
        self.say(ClientMessage::Parse {
            name: String::new(),
            text,
            types: vec![],
        });
        for _ in 0..=self.prng.below(3) {
            self.say(ClientMessage::Bind {
                portal: String::new(),
                statement: String::new(),
                formats: vec![],
                params: vec![],
                result_formats: vec![Format::Binary],
            });
            let rows_max = self.prng.below(4) as u32;
            self.say(ClientMessage::Execute {
                portal: String::new(),
                rows_max,
            });
        }
        self.say(ClientMessage::Sync);
    }

    fn anything(&mut self) {
        let name = |prng: &mut Prng| ["", "a", "b"][prng.below(3) as usize].to_owned();
        let prng = &mut self.prng;
        let message = match prng.below(16) {
            0 | 1 => ClientMessage::Query(text(prng)),
            2 | 3 => ClientMessage::Parse {
                name: name(prng),
                text: text(prng),
                types: vec![],
            },
            4..=6 => ClientMessage::Bind {
                portal: name(prng),
                statement: name(prng),
                formats: vec![],
                params: vec![],
                result_formats: vec![Format::Binary],
            },
            7..=9 => ClientMessage::Execute {
                portal: name(prng),
                rows_max: prng.below(4) as u32,
            },
            10 => ClientMessage::DescribePortal(name(prng)),
            11 => ClientMessage::DescribeStatement(name(prng)),
            12 => ClientMessage::ClosePortal(name(prng)),
            13 => ClientMessage::CloseStatement(name(prng)),
            14 => ClientMessage::Flush,
            _ => ClientMessage::Sync,
        };
        self.say(message);
    }

    /// Parses or plans one of the long texts, or brings one back, in any order; false if there is
    /// none.
    fn prepare(&mut self) -> bool {
        if let Some(result) = self.prepared.pop() {
            self.call(|session, cx| session.on_prepared(cx, result));
            return true;
        }
        if self.preparations.is_empty() {
            return false;
        }
        let at = self.prng.below(self.preparations.len() as u64) as usize;
        // Some come back although they are not wanted any more, others are left out then.
        match self.preparations.swap_remove(at).run() {
            Some(result) => self.prepared.push(result),
            None => self.left_out += 1,
        }
        true
    }

    /// Everything that can happen without the client happens.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            if self.coordinator() || self.prepare() {
                continue;
            }
            if let Some(at) = self.session.deadline() {
                self.now = self.now.max(at);
                self.call(|session, cx| session.on_tick(cx));
            } else if self.txns.values().any(|txn| !txn.running.is_empty()) {
                let before = self.replies.len();
                self.call(|session, cx| session.on_drained(cx));
                if !self.coordinator() && self.replies.len() == before {
                    return;
                }
            } else {
                return;
            }
        }
        panic!("the session never comes to rest");
    }
}

#[test]
fn random_clients_and_coordinators() {
    let (mut retries, mut suspended, mut conflicts, mut left_out) = (0, 0, 0, 0);
    for seed in 0..4000 {
        let mut world = World::new(seed);
        let parameters = vec![
            ("user".to_owned(), "a".to_owned()),
            ("database".to_owned(), "shop".to_owned()),
        ];
        world.call(|session, cx| session.on_client(cx, ClientMessage::Startup { parameters }));
        for _ in 0..60 {
            match world.prng.below(10) {
                0..=5 => world.client(),
                6..=8 => {
                    let first = world.prng.below(2) == 0;
                    let _ = first && world.prepare() || world.coordinator();
                }
                _ if world.prng.below(8) == 0 => world.call(|session, cx| session.on_cancel(cx, 1)),
                _ => world.settle(),
            }
        }
        world.settle();
        retries += world.counters.server_retries;
        left_out += world.left_out;
        for reply in world.replies.drain(..) {
            match reply {
                Reply::PortalSuspended => suspended += 1,
                Reply::Error(_, error) if error.is_retryable() => conflicts += 1,
                _ => {}
            }
        }
        world.call(|session, cx| session.on_client(cx, ClientMessage::Sync));
        world.settle();
        let last = world.replies.last();
        assert!(
            matches!(last, Some(Reply::Ready(_))),
            "seed {seed}: {last:?} ends a pipeline"
        );
        assert!(
            world.txns.len() <= 1,
            "seed {seed} leaves transactions behind"
        );
        assert_ne!(
            world.session.describe().state,
            "active",
            "seed {seed} hangs"
        );
    }
    let all = [retries, suspended, conflicts];
    assert!(
        all.iter().all(|count| *count > 500),
        "the runs meet what they are for: {all:?}"
    );
    assert!(left_out > 50, "cancelled in time: {left_out}");
}
