//! The session as expressions see it.

use crate::port::Port;
use base::{Datum, RowBatch, SqlError, Time};
use core::cell::{Cell, OnceCell};
use expr::SessionFacts;
use pg_catalog::CatalogCx;
use std::collections::BTreeMap;

/// Facts that the port gives.
pub(super) struct Facts<'a> {
    port: &'a dyn Port,
    /// Bytes by key space; asked for before statements that use them.
    sizes: OnceCell<BTreeMap<u32, i64>>,
    /// Bytes of long values that were made for the row that is computed now.
    made_bytes: Cell<i64>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(port: &'a dyn Port) -> Facts<'a> {
        Facts {
            port,
            sizes: OnceCell::new(),
            made_bytes: Cell::new(0),
        }
    }

    /// The values that were made are gone, or are charged elsewhere.
    #[inline]
    pub(super) fn release(&self) {
        let made = self.made_bytes.get();
        if made > 0 {
            self.made_bytes.set(0);
            let given_back = self.port.charge(-made);
            debug_assert!(given_back.is_ok(), "giving memory back cannot fail");
        }
    }

    /// Takes the answer to `Show::Sizes`.
    pub(super) fn take_sizes(&self, answer: &RowBatch) {
        let mut sizes = BTreeMap::new();
        for row in answer.iter() {
            if let [Datum::Int(index), Datum::Int(bytes)] = row
                && let Ok(index) = u32::try_from(*index)
            {
                *sizes.entry(index).or_insert(0) += bytes;
            }
        }
        // A statement that runs another one asks twice; the first answer stays.
        let _ = self.sizes.set(sizes);
    }
}

impl Facts<'_> {
    /// Whose policies concern the rows of a statement that is planned now.
    pub(super) fn viewer(&self) -> bind::Viewer {
        let user = self.port.session_user();
        bind::Viewer {
            role: self.port.catalog().rights.acting(&user),
            row_security: self.port.setting("row_security").as_deref() != Some("off"),
            checks_bodies: true,
            checks_keys: self.port.setting("session_replication_role").as_deref()
                != Some("replica"),
        }
    }

    /// Runs `use_cx` with what the system catalog is computed from.
    pub(super) fn with_catalog<T>(
        &self,
        told: Option<&RowBatch>,
        use_cx: impl FnOnce(&CatalogCx<'_>) -> T,
    ) -> T {
        let port = self.port;
        let sizes = self.sizes.get();
        let user = port.session_user();
        use_cx(&CatalogCx {
            catalog: port.catalog(),
            database: port.database(),
            user: &user,
            pid: port.session_pid(),
            txn_time: port.txn_time(),
            setting: &|name| port.setting(name),
            size_bytes: &|index| sizes?.get(&index).copied(),
            told,
        })
    }
}

impl Drop for Facts<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

impl SessionFacts for Facts<'_> {
    fn txn_time(&self) -> Time {
        self.port.txn_time()
    }
    fn now(&self) -> Time {
        self.port.now()
    }
    fn user(&self) -> String {
        self.port.session_user()
    }
    fn database(&self) -> String {
        self.port.database().name.clone()
    }
    fn pid(&self) -> i32 {
        self.port.session_pid()
    }
    fn ends(&self) -> Option<expr::Ends> {
        self.port.session_ends()
    }
    fn setting(&self, name: &str) -> Option<String> {
        self.port.setting(name)
    }
    fn set_config(&self, name: &str, value: Option<&str>, local: bool) -> Result<String, SqlError> {
        self.port.set_config(name, value, local)
    }
    fn random(&self) -> u64 {
        self.port.random()
    }
    fn unique(&self) -> u64 {
        self.port.unique()
    }
    fn room(&self, bytes: usize) -> Result<(), SqlError> {
        self.port.charge(bytes as i64)?;
        self.made_bytes.set(self.made_bytes.get() + bytes as i64);
        Ok(())
    }
    fn catalog_function(&self, name: &str, args: &[Datum]) -> Result<Datum, SqlError> {
        self.with_catalog(None, |cx| pg_catalog::functions::call(cx, name, args))
    }
}
