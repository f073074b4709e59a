//! The coordinator: asks the guard until it is answered.

use crate::guard::Answer;
use crate::{Body, Context, GlobalLock, RESEND_US, Work};
use base::TxnId;
use std::collections::BTreeMap;
use txn::{AbortReason, OpError, OpId, OpReply, OpResult, Outcome, Submitted, TxnCost};

/// A transaction that runs here.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    asks: BTreeMap<OpId, Work>,
    /// How it ended; nothing is asked any more.
    pub(crate) ended: Option<Outcome>,
    /// Answers that came while they were asked for: of the guard itself, in the same step.
    pub(crate) cost: TxnCost,
}

impl GlobalLock {
    pub(crate) fn ask(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        id: OpId,
        work: Work,
    ) -> Submitted {
        let asking = self.asking.get_mut(&txn).expect("it has begun");
        if let Some(outcome) = asking.ended.clone() {
            let reason = match &outcome {
                Outcome::Aborted(reason) => reason.clone(),
                Outcome::Committed { .. } | Outcome::Unknown => AbortReason::Requested,
            };
            let result = Err(OpError::Aborted(reason));
            return Submitted::Ready(self.reply(result, Some(outcome)));
        }
        asking.asks.insert(id, work.clone());
        match self.is_guard() {
            true => self.on_ask(cx, txn, id, work),
            false => self.send(cx, self.guard, txn, Body::Ask(id, work)),
        }
        self.set_timer(cx);
        Submitted::Pending
    }

    fn reply(&self, result: Result<OpResult, OpError>, outcome: Option<Outcome>) -> OpReply {
        let wait = self.committed;
        OpReply {
            result,
            outcome,
            wait,
        }
    }

    pub(crate) fn on_answer(&mut self, cx: &mut Context<'_>, txn: TxnId, id: OpId, answer: Answer) {
        let Some(asking) = self.asking.get_mut(&txn) else {
            return;
        };
        if asking.asks.remove(&id).is_none() {
            return;
        }
        let (result, outcome) = answer;
        let aborted = match &result {
            Err(OpError::Aborted(reason)) => Some(Outcome::Aborted(reason.clone())),
            _ => None,
        };
        asking.ended = outcome.clone().or(aborted);
        let reply = self.reply(result, outcome);
        cx.out.complete(txn, id, reply);
    }

    /// Ends a transaction without an answer of the guard.
    pub(crate) fn give_up(&mut self, cx: &mut Context<'_>, txn: TxnId, reason: AbortReason) {
        let Some(asking) = self.asking.get_mut(&txn) else {
            return;
        };
        if asking.ended.is_some() {
            return;
        }
        let asks = std::mem::take(&mut asking.asks);
        let unknown = asks.values().any(|work| work.commits);
        let outcome = match unknown {
            true => Outcome::Unknown,
            false => Outcome::Aborted(reason.clone()),
        };
        asking.ended = Some(outcome.clone());
        for (id, work) in asks {
            let reply = match work.commits {
                true => self.reply(Ok(OpResult::Done), Some(Outcome::Unknown)),
                false => self.reply(Err(OpError::Aborted(reason.clone())), Some(outcome.clone())),
            };
            cx.out.complete(txn, id, reply);
        }
    }

    pub(crate) fn roll_back(&mut self, cx: &mut Context<'_>, txn: TxnId) {
        self.give_up(cx, txn, AbortReason::Requested);
        self.drop_txn(cx, txn);
    }

    pub(crate) fn drop_txn(&mut self, cx: &mut Context<'_>, txn: TxnId) {
        match self.is_guard() {
            true => self.on_drop(cx, txn),
            false => {
                self.dropping.insert(txn);
                self.send(cx, self.guard, txn, Body::Drop);
                self.set_timer(cx);
            }
        }
    }

    /// The guard's node has a new life, which knows nothing of what runs here.
    pub(crate) fn guard_restarted(&mut self, cx: &mut Context<'_>) {
        self.dropping.clear();
        let all: Vec<TxnId> = self.asking.keys().copied().collect();
        for txn in all {
            self.give_up(cx, txn, GlobalLock::lost(self.guard));
        }
    }

    pub(crate) fn on_inquire(&mut self, cx: &mut Context<'_>, txn: TxnId) {
        let lives = self.asking.get(&txn).is_some_and(|it| it.ended.is_none());
        if !lives {
            self.drop_txn(cx, txn);
        }
    }

    pub(crate) fn has_asks(&self) -> bool {
        !self.dropping.is_empty() || self.asking.values().any(|asking| !asking.asks.is_empty())
    }

    pub(crate) fn set_timer(&mut self, cx: &Context<'_>) {
        self.timer.get_or_insert(cx.now.after(RESEND_US));
    }

    /// Says everything again that was not answered.
    pub(crate) fn resend(&mut self, cx: &mut Context<'_>) {
        let asks = |(txn, asking): (&TxnId, &Asking)| {
            let asks = asking.asks.iter();
            asks.map(|(id, work)| (*txn, Body::Ask(*id, work.clone())))
                .collect::<Vec<_>>()
        };
        let mut again: Vec<(TxnId, Body)> = self.asking.iter().flat_map(asks).collect();
        again.extend(self.dropping.iter().map(|txn| (*txn, Body::Drop)));
        if !self.is_guard() {
            for (txn, body) in again {
                self.send(cx, self.guard, txn, body);
            }
        }
    }
}
