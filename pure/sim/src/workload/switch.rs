//! A database that changes its protocol, to and fro, while histories are recorded in it.
//!
//! The clients of a history workload go on as always, and their history is judged as always; one
//! client changes the protocol of their database. An open transaction may be ended by that, and a
//! change may be cut off by a crash: then the database must be open again, and nothing be lost.

use super::histories::Histories;
use super::{Entry, Scale, Verdict, Workload};
use crate::executor::{SimCx, Task};
use base::Prng;
use std::cell::Cell;
use std::rc::Rc;
use workload::history::Kind;

pub(super) const ENTRY: Entry = Entry {
    name: "switch",
    about: "the database changes its protocol while rows are written and read",
    make: |prng, scale| Rc::new(Switch::draw(prng, scale)),
};

/// A run with fewer acknowledged changes proves nothing.
const CHANGES_MIN: u64 = 2;
/// Changes that are tried on the healed cluster, where faults let too few happen.
const MORE_MAX: u32 = 100;
/// With fewer clients than this, the one that changes the protocol also does what others do.
const CLIENTS_FEW: u32 = 3;

struct Switch {
    rows: Rc<Histories>,
    clients: u32,
    pause_us: u64,
    changes: Cell<u64>,
}

impl Switch {
    fn draw(prng: &mut Prng, scale: Scale) -> Switch {
        let kinds = [Kind::ListAppend, Kind::Register, Kind::Bank];
        let kind = kinds[prng.below(kinds.len() as u64) as usize];
        Switch {
            rows: Rc::new(Histories::draw(kind, prng, scale)),
            clients: scale.clients,
            pause_us: 1 << prng.between(14, 20),
            changes: Cell::new(0),
        }
    }

    /// Changes the protocol until the end, and until it was changed often enough.
    async fn change(&self, cx: &SimCx) {
        let mut more = 0;
        while !cx.stopping() || (self.changes.get() < CHANGES_MIN && more < MORE_MAX) {
            more += u32::from(cx.stopping());
            let Some(mut conn) = cx.connect_any().await else {
                continue;
            };
            let protocol = ["two_phase", "leap", "formula"][cx.rng().below(3) as usize];
            let alter = format!("ALTER DATABASE postgres SET (protocol = '{protocol}')");
            let result = conn.query(&alter).await;
            self.changes
                .set(self.changes.get() + u64::from(result.is_ok()));
            // 55000: a node is down.
            self.rows
                .blame
                .excuse("changing the protocol", result, &["55000"]);
            cx.pause(self.pause_us).await;
        }
    }
}

impl Workload for Switch {
    fn setup(self: Rc<Self>, cx: SimCx) -> Task<Result<(), String>> {
        Box::pin(async move { self.rows.make_tables(&cx).await })
    }

    fn client(self: Rc<Self>, cx: SimCx, client: u32) -> Task {
        Box::pin(async move {
            let also = (client > 0 || self.clients < CLIENTS_FEW).then(|| {
                let (rows, own) = (self.rows.clone(), cx.fork());
                cx.spawn(async move { rows.work(&own).await })
            });
            if client == 0 {
                self.change(&cx).await;
            }
            if let Some(also) = also {
                also.join().await;
            }
        })
    }

    fn finish(self: Rc<Self>, cx: SimCx) -> Task<Verdict> {
        Box::pin(async move {
            let read = self.rows.read_all(&cx).await;
            match self.rows.judge_after(read) {
                Verdict::Pass if self.changes.get() < CHANGES_MIN => {
                    let changes = self.changes.get();
                    Verdict::Inconclusive(format!("{changes} changes of the protocol"))
                }
                verdict => verdict,
            }
        })
    }
}
