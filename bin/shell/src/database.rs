//! Which server and database a command asks.

use anyhow::Result;
use clap::Args;
use links::url::Target;
use local_cluster::{dir, login, url};
use std::path::PathBuf;

/// Where a cluster listens if nobody says otherwise.
const DEFAULT_URL: &str = "postgres://trellis@127.0.0.1:5433/postgres";

/// The arguments that name a server and a database of it.
#[derive(Args)]
pub(crate) struct DatabaseArgs {
    /// Server: `postgres://USER@HOST:PORT/DATABASE`; several HOST:PORT with commas
    #[arg(long, conflicts_with = "data")]
    url: Option<String>,
    /// Directory of a local cluster
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Database [default: the one of the URL, or postgres]
    #[arg(short, long, value_name = "NAME")]
    database: Option<String>,
}

impl DatabaseArgs {
    /// The server of the URL, of the local cluster's directory, or the one on the default ports;
    /// sessions show the name of the `program`.
    ///
    /// # Errors
    /// The URL is wrong, or the directory holds no cluster.
    pub(crate) fn target(&self, program: &'static str) -> Result<Target> {
        let text = match (&self.url, &self.data) {
            (Some(text), _) => text.clone(),
            (None, Some(data)) => url(&dir::existing(data)?.nodes, "postgres"),
            (None, None) => DEFAULT_URL.to_string(),
        };
        let mut target = Target::parse(&text)?.of_postgres()?;
        target.application_name = program;
        if let Some(data) = &self.data {
            target.password = login::password(data);
        }
        if let Some(database) = &self.database {
            target.database.clone_from(database);
        }
        Ok(target)
    }

    /// Whether a URL was given.
    pub(crate) fn has_url(&self) -> bool {
        self.url.is_some()
    }
}
