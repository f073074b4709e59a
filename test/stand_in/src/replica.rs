//! The snapshot of a stale replica: exported by a connection that does nothing else, imported by
//! READ ONLY transactions.
//!
//! It is taken as SERIALIZABLE READ ONLY DEFERRABLE, so that it is one that fits into a serial
//! order: the fault is its age and nothing else. How old it gets is counted in uses, not in time.

use links::answers::Answers;
use links::link::{Link, LinkError};
use links::url::Target;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

/// Transactions that see one snapshot.
const USES: u32 = 40;
/// How long the server may take for a new one.
const PATIENCE: Duration = Duration::from_secs(20);
const BEGIN: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE";

/// The snapshot that is in use, and how it is taken.
#[derive(Debug)]
pub(crate) struct Replica {
    target: Target,
    held: Mutex<Held>,
    /// Taken for reading while a transaction imports, for writing while the snapshot is renewed.
    import: RwLock<()>,
}

#[derive(Debug, Default)]
struct Held {
    link: Option<Link>,
    /// The statement that imports the snapshot.
    import: String,
    uses_left: u32,
}

impl Replica {
    pub(crate) fn new(target: Target) -> Replica {
        Replica {
            target,
            held: Mutex::default(),
            import: RwLock::default(),
        }
    }

    /// The statement that imports the snapshot. It works as long as [`Replica::hold`] is held.
    pub(crate) fn snapshot(&self) -> String {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.uses_left = held.uses_left.saturating_sub(1);
        held.import.clone()
    }

    /// The rows that are there now are to be seen: a table was made or dropped.
    pub(crate) fn end(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.uses_left = 0;
    }

    /// Renews the snapshot where it has been used enough, and keeps it from being renewed.
    pub(crate) fn hold(&self) -> RwLockReadGuard<'_, ()> {
        {
            let _import = self.import.write().unwrap_or_else(PoisonError::into_inner);
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            if held.uses_left == 0 {
                // Without one the import fails, and its transaction with it: the test sees that.
                *held = renewed(held.link.take(), &self.target).unwrap_or_default();
            }
        }
        self.import.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn renewed(link: Option<Link>, target: &Target) -> Result<Held, LinkError> {
    let mut link = match link {
        Some(mut link) => {
            link.command("COMMIT")?;
            link
        }
        None => Link::connect_any(target, Some(PATIENCE))?,
    };
    link.command(BEGIN)?;
    let mut answers = Answers::new();
    link.query("SELECT pg_export_snapshot()", &mut answers)?;
    let import = format!("SET TRANSACTION SNAPSHOT '{}'", answers.text(0, 0, 0));
    Ok(Held {
        link: Some(link),
        import,
        uses_left: USES,
    })
}
