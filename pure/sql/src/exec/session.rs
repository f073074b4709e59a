//! The session as expressions see it.

use crate::expr::SessionFacts;
use crate::pg_catalog::{self, CatalogCx};
use crate::port::Port;
use base::{Datum, RowBatch, SqlError, Time};

/// Facts that the port gives.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a>(pub(super) &'a dyn Port);

impl Facts<'_> {
    /// Runs `use_cx` with what the system catalog is computed from.
    pub(super) fn with_catalog<T>(
        &self,
        sessions: Option<&RowBatch>,
        use_cx: impl FnOnce(&CatalogCx<'_>) -> T,
    ) -> T {
        let port = self.0;
        let user = port.session_user();
        use_cx(&CatalogCx {
            catalog: port.catalog(),
            database: port.database(),
            user: &user,
            txn_time: port.txn_time(),
            setting: &|name| port.setting(name),
            size_bytes: &|_| None,
            sessions,
        })
    }
}

impl SessionFacts for Facts<'_> {
    fn txn_time(&self) -> Time {
        self.0.txn_time()
    }
    fn now(&self) -> Time {
        self.0.now()
    }
    fn user(&self) -> String {
        self.0.session_user()
    }
    fn database(&self) -> String {
        self.0.database().name.clone()
    }
    fn pid(&self) -> i32 {
        self.0.session_pid()
    }
    fn setting(&self, name: &str) -> Option<String> {
        self.0.setting(name)
    }
    fn random(&self) -> u64 {
        self.0.random()
    }
    fn unique(&self) -> u64 {
        self.0.unique()
    }
    fn catalog_function(&self, name: &str, args: &[Datum]) -> Result<Datum, SqlError> {
        self.with_catalog(None, |cx| pg_catalog::functions::call(cx, name, args))
    }
}
