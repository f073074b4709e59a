//! What every store must show: named checks over anything that opens connections.
//!
//! ```text
//! for check in Check::ALL {
//!     match check.run(&mut bed).await { Verdict::Passed => .., .. }
//! }
//! ```
//!
//! The store is empty at first and has the tables of [`schema`]. Checks use ids of their own, so
//! that they may share it, but run on it once. Interleavings are drawn from a fixed seed: a store
//! whose futures are ready at the first poll sees the same calls in the same order each time.
//!
//! | check | finds |
//! |---|---|
//! | [`Check::Crud`] | values that do not come back, entities created twice |
//! | [`Check::GeneratedKeys`] | generated ids that two clients got |
//! | [`Check::InnerIndex`] | an index of the group that lags behind its transaction |
//! | [`Check::OuterIndex`] | an index outside of the group that misses entities, or keeps others |
//! | [`Check::DanglingEntry`] | entries whose entity does not exist, shown to readers |
//! | [`Check::LostUpdate`] | two transactions that both changed what they had read |
//! | [`Check::Phantom`] | a transaction that missed an entity created in what it had read |
//! | [`Check::RetryBudget`] | too many or too few attempts, effects of a failed one |
//! | [`Check::LostAnswer`] | a commit done twice, or not at all, after its answer was lost |
//! | [`Check::Atomicity`] | one part of a transaction without the other |
//! | [`Check::Stopped`] | an effect of a transaction that its task has stopped |
//! | [`Check::Immutable`] | a column that was changed though it must not be |
//! | [`Check::Range`] | wrong order, bounds or limits of ranges |
//! | [`Check::FreshRead`] | a read that misses what was acknowledged before it |
//! | [`Check::Scope`] | an entity that was touched outside of the transaction's group |
//! | [`Check::SeveralGroups`] | a transaction on several groups done by half, or not refused |

mod crud;
mod indexes;
mod interleave;
mod kinds;
mod outcomes;
mod ranges;
mod transactions;

pub use interleave::{OthersFirst, interleave};
pub use kinds::{Item, Lot, Note, Offer, schema};

use crate::client::Client;
use crate::db::{EntityDb, Failure};
use crate::memory::Loss;
use crate::policy::{BackOff, NoWait, Policy, Shape};
use alloc::format;
use alloc::string::String;
use core::fmt::Debug;
use core::future::Future;

/// Who opens connections to the store that is checked.
pub trait Bed {
    /// A connection.
    type Db: EntityDb;

    /// A further connection to the same store.
    ///
    /// # Errors
    /// What keeps it from being opened.
    fn open(&mut self) -> impl Future<Output = Result<Self::Db, Failure>>;

    /// A number that no client of this store ever had.
    fn client(&mut self) -> u64;

    /// Arranges that the next commit of this connection that writes answers `Unknown`. `false`:
    /// nobody can.
    fn lose_next(&mut self, db: &mut Self::Db, loss: Loss) -> bool {
        let _ = (db, loss);
        false
    }

    /// Whether a transaction never waits for another one that has read what it changes. Else two
    /// open transactions of one thread would wait for ever, and checks that need them are skipped.
    fn is_optimistic(&self) -> bool {
        true
    }
}

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The store does what it must.
    Passed,
    /// What it did instead.
    Failed(String),
    /// Why the check does not apply to this store.
    Skipped(String),
}

/// A check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "the table of the module says what each one finds"
)]
pub enum Check {
    Crud,
    GeneratedKeys,
    InnerIndex,
    OuterIndex,
    DanglingEntry,
    LostUpdate,
    Phantom,
    RetryBudget,
    LostAnswer,
    Atomicity,
    Stopped,
    Immutable,
    Range,
    FreshRead,
    Scope,
    SeveralGroups,
}

impl Check {
    /// All of them, in the order in which they are run.
    pub const ALL: [Check; 16] = [
        Check::Crud,
        Check::GeneratedKeys,
        Check::InnerIndex,
        Check::OuterIndex,
        Check::DanglingEntry,
        Check::LostUpdate,
        Check::Phantom,
        Check::RetryBudget,
        Check::LostAnswer,
        Check::Atomicity,
        Check::Stopped,
        Check::Immutable,
        Check::Range,
        Check::FreshRead,
        Check::Scope,
        Check::SeveralGroups,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Check::Crud => "crud",
            Check::GeneratedKeys => "generated-keys",
            Check::InnerIndex => "inner-index",
            Check::OuterIndex => "outer-index",
            Check::DanglingEntry => "dangling-entry",
            Check::LostUpdate => "lost-update",
            Check::Phantom => "phantom",
            Check::RetryBudget => "retry-budget",
            Check::LostAnswer => "lost-answer",
            Check::Atomicity => "atomicity",
            Check::Stopped => "stopped",
            Check::Immutable => "immutable",
            Check::Range => "range",
            Check::FreshRead => "fresh-read",
            Check::Scope => "scope",
            Check::SeveralGroups => "several-groups",
        }
    }

    /// Runs the check on a store.
    pub async fn run<B: Bed>(self, bed: &mut B) -> Verdict {
        let result = match self {
            Check::Crud => crud::crud(bed).await,
            Check::GeneratedKeys => crud::generated_keys(bed).await,
            Check::InnerIndex => indexes::inner_index(bed).await,
            Check::OuterIndex => indexes::outer_index(bed).await,
            Check::DanglingEntry => indexes::dangling_entry(bed).await,
            Check::LostUpdate => transactions::lost_update(bed).await,
            Check::Phantom => transactions::phantom(bed).await,
            Check::RetryBudget => outcomes::retry_budget(bed).await,
            Check::LostAnswer => outcomes::lost_answer(bed).await,
            Check::Atomicity => transactions::atomicity(bed).await,
            Check::Stopped => transactions::stopped(bed).await,
            Check::Immutable => crud::immutable(bed).await,
            Check::Range => ranges::range(bed).await,
            Check::FreshRead => transactions::fresh_read(bed).await,
            Check::Scope => transactions::scope(bed).await,
            Check::SeveralGroups => transactions::several_groups(bed).await,
        };
        match result {
            Ok(()) => Verdict::Passed,
            Err(Ended::Failed(words)) => Verdict::Failed(words),
            Err(Ended::Skipped(words)) => Verdict::Skipped(words.into()),
        }
    }
}

/// Why a check ends early.
enum Ended {
    Failed(String),
    Skipped(&'static str),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Ended {
        Ended::Failed(format!("an operation failed: {failure}"))
    }
}

type Shown<T = ()> = Result<T, Ended>;

/// A client whose waits take no time.
type Checked<D> = Client<D, NoWait>;

async fn client<B: Bed>(bed: &mut B) -> Shown<Checked<B::Db>> {
    let db = bed.open().await?;
    let name = bed.client();
    Ok(Client::new(db, NoWait::default(), POLICY, name, name))
}

/// Many attempts: a check that needs fewer sets its own.
const POLICY: Policy = Policy {
    attempts: 1000,
    total_us: 60_000_000,
    back_off: BackOff {
        shape: Shape::Constant,
        base_us: 100,
        cap_us: 100,
        jitter_percent: 0,
    },
};

/// Fails the check if the values differ.
fn same<T: PartialEq + Debug>(what: &str, found: T, wanted: T) -> Shown {
    if found == wanted {
        return Ok(());
    }
    Err(Ended::Failed(format!("{what}: {found:?}, not {wanted:?}")))
}

/// Fails the check if a result is not of the wanted kind.
fn fails<T: Debug>(
    what: &str,
    result: Result<T, Failure>,
    is_wanted: impl FnOnce(&Failure) -> bool,
) -> Shown {
    match &result {
        Err(failure) if is_wanted(failure) => Ok(()),
        _ => Err(Ended::Failed(format!("{what}: {result:?}"))),
    }
}
