//! The protocol on the test bed.

use base::{IndexId, Key, NodeId, Position, ShardId, Time, Ts, TxnId};
use bed::Subject;
use core::fmt;
use formula::{Formula, Message};
use journal::CheckpointTables;
use store::Store;
use two_phase::Settings;
use two_phase::message::{Body, Finish, Finished};
use txn::LockTable;
use txn::{
    Cx, Doubt, OpId, OpReply, PendingRow, Protocol, Submission, Submitted, TxnCost, TxnOptions,
};

/// The protocol as a type of this crate, so that it can be the subject of the bed.
pub(crate) struct Tested(Formula);

impl fmt::Display for Tested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Protocol for Tested {
    type Message = Message;
    type Cursor = ();

    const CLOCKS_SUFFICE: bool = Formula::CLOCKS_SUFFICE;

    fn kind(message: &Message) -> &'static str {
        Formula::kind(message)
    }
    fn recover(
        &mut self,
        cx: &mut Cx<'_, Message>,
        tables: &mut CheckpointTables,
        moving: &dyn Fn(IndexId) -> bool,
    ) {
        self.0.recover(cx, tables, moving);
    }
    fn begin(&mut self, cx: &mut Cx<'_, Message>, txn: TxnId, options: TxnOptions) {
        self.0.begin(cx, txn, options);
    }
    fn submit(&mut self, cx: &mut Cx<'_, Message>, submission: Submission) -> Submitted {
        self.0.submit(cx, submission)
    }
    fn commit(&mut self, cx: &mut Cx<'_, Message>, txn: TxnId, id: OpId) -> Submitted {
        self.0.commit(cx, txn, id)
    }
    fn abort(&mut self, cx: &mut Cx<'_, Message>, txn: TxnId) -> OpReply {
        self.0.abort(cx, txn)
    }
    fn each_written(&self, txn: TxnId, f: &mut dyn FnMut(ShardId)) {
        self.0.each_written(txn, f);
    }
    fn cost(&self, txn: TxnId) -> Option<TxnCost> {
        self.0.cost(txn)
    }
    fn forget(&mut self, txn: TxnId) -> Option<TxnCost> {
        self.0.forget(txn)
    }
    fn on_message(&mut self, cx: &mut Cx<'_, Message>, from: ShardId, message: Message) {
        self.0.on_message(cx, from, message);
    }
    fn on_durable(&mut self, cx: &mut Cx<'_, Message>, durable: Position) {
        self.0.on_durable(cx, durable);
    }
    fn awaits_durable(&self) -> bool {
        self.0.awaits_durable()
    }
    fn on_tick(&mut self, cx: &mut Cx<'_, Message>) {
        self.0.on_tick(cx);
    }
    fn on_peer(&mut self, cx: &mut Cx<'_, Message>, node: NodeId, incarnation: u32) {
        self.0.on_peer(cx, node, incarnation);
    }
    fn on_peer_down(&mut self, cx: &mut Cx<'_, Message>, node: NodeId) {
        self.0.on_peer_down(cx, node);
    }
    fn deadline(&self) -> Option<Time> {
        self.0.deadline()
    }
    fn checkpoint_may_begin(&mut self) -> bool {
        self.0.checkpoint_may_begin()
    }
    fn checkpoint_begin(&mut self, tables: &mut CheckpointTables) -> Option<()> {
        self.0.checkpoint_begin(tables)
    }
    fn checkpoint_may_end(&self) -> bool {
        self.0.checkpoint_may_end()
    }
    fn is_quiet(&self, indexes: &[IndexId]) -> bool {
        self.0.is_quiet(indexes)
    }
    fn doubts(&self, now: Time) -> Vec<Doubt> {
        self.0.doubts(now)
    }
    fn pending_rows(&self, wants: &dyn Fn(&Key) -> bool, count: usize) -> Vec<PendingRow> {
        self.0.pending_rows(wants, count)
    }
    fn waiting_count(&self) -> usize {
        self.0.waiting_count()
    }
    fn may_be_awaited(&self, txn: TxnId) -> bool {
        self.0.may_be_awaited(txn)
    }
    fn set_slice(&mut self, units: u64) {
        self.0.set_slice(units);
    }
    fn is_idle(&self) -> bool {
        self.0.is_idle()
    }
    fn locks(&self) -> Option<&LockTable> {
        self.0.locks()
    }
    fn each_snapshot(&self, f: &mut dyn FnMut(IndexId, Ts)) {
        self.0.each_snapshot(f);
    }
    fn validate(&self, store: &Store) {
        self.0.validate(store);
    }
    fn validate_open(&self, most: usize) -> bool {
        self.0.validate_open(most)
    }
}

impl Subject for Tested {
    type Settings = Settings;
    type Fault = ();

    const PASSES_BOUNDS: bool = false;
    const ODD_IDS: bool = true;

    fn new(shard: ShardId) -> Tested {
        Tested(Formula::new(shard))
    }
    fn set(&mut self, settings: &Settings) {
        self.0.set_settings(*settings);
    }
    fn plant(&mut self, _: Option<()>) {}
    fn describe(message: &Message) -> String {
        let what = match &message.body {
            Body::Request(request) => {
                let end = match &request.finish {
                    Finish::No => "",
                    Finish::Prepare(_) => " +prepare",
                    Finish::Commit(_) => " +commit",
                };
                let op = if request.op.is_some() { " op" } else { "" };
                format!("Request {}{op}{end}", request.seq)
            }
            Body::Reply(reply) => {
                let result = match &reply.result {
                    Ok(_) => "ok".to_string(),
                    Err(error) => format!("{error:?}"),
                };
                let end = match &reply.finished {
                    Finished::Open => "",
                    Finished::Vote(vote) if vote.durable => " prepared",
                    Finished::Vote(_) => " voted",
                    Finished::Committed { .. } => " committed",
                };
                format!("Reply {:?} {result}{end}", reply.to)
            }
            Body::Decide(decide) if decide.commit_ts.is_some() => "Decide commit".to_string(),
            Body::Decide(_) => "Decide abort".to_string(),
            other => {
                let name = format!("{other:?}");
                let end = name.find([' ', '(']).unwrap_or(name.len());
                name[..end].to_string()
            }
        };
        format!("t{} {what}", message.txn.counter / 2)
    }
}
