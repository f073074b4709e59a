//! Which server is being measured, and what it counts about itself.

use crate::answers::Answers;
use crate::error::{DriveError, While};
use crate::link::{Link, LinkError};
use crate::url::Target;
use std::collections::BTreeMap;
use std::time::Duration;
use workload::dialect::{Dialect, MYSQL_MODE};
use workload::wire::Isolation;

/// The identity of a server.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// What `SELECT version()` says, or the parameter `server_version`.
    pub version: String,
    /// Whether it is Trellis: then placement clauses and counters are used.
    pub is_trellis: bool,
    /// The SQL that it takes.
    pub dialect: Dialect,
    /// The transaction protocol of the database, where the server tells.
    pub protocol: Option<String>,
    /// Nodes of the cluster, where the server tells.
    pub nodes: Option<u64>,
}

impl Server {
    /// Product and release, as a title names them: `Trellis 0.1.0 (leap)`, `PostgreSQL 15.3`.
    /// Trellis calls itself a PostgreSQL in its version, because clients look for that.
    pub fn name(&self) -> String {
        let own = self.version.split_once("(Trellis ").map(|(_, rest)| rest);
        if let Some(release) = own.and_then(|rest| rest.split(')').next()) {
            return match &self.protocol {
                Some(protocol) => format!("Trellis {release} ({protocol})"),
                None => format!("Trellis {release}"),
            };
        }
        if self.dialect == Dialect::MySql {
            // `10.11.6-MariaDB-0+deb12u1`, `8.0.36`.
            let release = self.version.split('-').next().unwrap_or("");
            let product = match self.version.contains("MariaDB") {
                true => "MariaDB",
                false => "MySQL",
            };
            return format!("{product} {release}");
        }
        // `PostgreSQL 15.3 (Debian 15.3-1) on x86_64, compiled by ...`.
        let words: Vec<&str> = self.version.split_whitespace().take(2).collect();
        words.join(" ").trim_end_matches(',').to_string()
    }

    /// Connects to the first endpoint that answers and asks which server it is.
    pub fn reach(target: &Target, timeout: Option<Duration>) -> Result<(Link, Server), DriveError> {
        let link = Link::connect_any(target, timeout);
        let mut link = link.during("connecting")?;
        let server = Server::identify(&mut link).during("asking the server for its version")?;
        Ok((link, server))
    }

    /// Asks the server. What it does not answer stays unknown.
    pub fn identify(link: &mut Link) -> Result<Server, LinkError> {
        let mut answers = Answers::new();
        let version = match link.query("SELECT version()", &mut answers) {
            Ok(()) => answers.text(0, 0, 0).to_string(),
            Err(LinkError::Server(_)) => link.server_version().to_string(),
            Err(error) => return Err(error),
        };
        let is_trellis = version.contains("Trellis") || link.server_version().contains("Trellis");
        let mut server = Server {
            version,
            is_trellis,
            dialect: match link {
                Link::Postgres(_) => Dialect::Postgres,
                Link::MySql(_) => Dialect::MySql,
            },
            ..Server::default()
        };
        if is_trellis {
            server.protocol = first_cell(link, "SHOW protocol")?;
            match link.query("SHOW NODES", &mut answers) {
                Ok(()) => server.nodes = Some(answers.rows(0) as u64),
                Err(LinkError::Server(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(server)
    }
}

/// Settings for the sessions of a run on PostgreSQL.
///
/// Its serializable level locks a table as a whole when a plan scans it, and for a table of a few
/// pages a scan is what the planner takes; then nearly every transaction conflicts with every
/// other. Its manual (13.2.3) advises to make index scans cheaper; for keyed statements this comes
/// to the same. Without it most attempts of NewOrder abort at SERIALIZABLE, and a comparison would
/// not be fair (numbers in docs/benchmark/tpcc.md).
pub const POSTGRES_SETTINGS: &str = "SET enable_seqscan = off";

impl Server {
    /// Applies the settings above where they are for; a server that does not know them goes on
    /// without. On MySQL a session says its level here, and not in BEGIN; `None`: the server's own.
    pub fn tune(&self, link: &mut Link, isolation: Option<Isolation>) -> Result<(), LinkError> {
        if self.is_trellis {
            return Ok(());
        }
        if self.dialect == Dialect::MySql {
            link.command(MYSQL_MODE)?;
            let Some(level) = isolation.map(Isolation::sql) else {
                return Ok(());
            };
            return link.command(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
        }
        match link.command(POSTGRES_SETTINGS) {
            Err(LinkError::Server(_)) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn first_cell(link: &mut Link, sql: &str) -> Result<Option<String>, LinkError> {
    let mut answers = Answers::new();
    match link.query(sql, &mut answers) {
        Ok(()) => Ok(answers
            .cell(0, 0, 0)
            .map(|c| String::from_utf8_lossy(c).into_owned())),
        Err(LinkError::Server(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Counters by name, of the whole cluster. Empty where the server has none.
pub type Counters = BTreeMap<String, i64>;

/// Reads the counters of the cluster from the first node that answers.
pub fn read_counters(target: &Target) -> Counters {
    let mut nodes = target.endpoints.iter();
    nodes
        .find_map(|endpoint| read_node(endpoint, target))
        .unwrap_or_default()
}

fn read_node(endpoint: &crate::url::Endpoint, target: &Target) -> Option<Counters> {
    let mut link = Link::connect(endpoint, target, Some(Duration::from_secs(10))).ok()?;
    let mut answers = Answers::new();
    let result = link.query("SHOW COUNTERS", &mut answers);
    link.close();
    result.ok()?;
    let rows = 0..answers.rows(0);
    rows.map(|row| Some((answers.text(0, row, 0).to_string(), answers.int(0, row, 1)?)))
        .collect()
}

/// What was counted between two readings, for names in both.
pub fn difference(before: &Counters, after: &Counters) -> Counters {
    let both = after
        .iter()
        .filter_map(|(name, now)| Some((name.clone(), now - before.get(name)?)));
    both.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_that_of_the_product() {
        let name = |version: &str, protocol: Option<&str>| {
            let server = Server {
                version: version.into(),
                protocol: protocol.map(String::from),
                ..Server::default()
            };
            server.name()
        };
        let trellis = "PostgreSQL 15.0 (Trellis 0.1.0)";
        assert_eq!(name(trellis, Some("leap")), "Trellis 0.1.0 (leap)");
        assert_eq!(name("15.0 (Trellis 0.1.0)", None), "Trellis 0.1.0");
        let postgres = "PostgreSQL 15.3 (Debian 15.3-1) on x86_64, compiled by gcc, 64-bit";
        assert_eq!(name(postgres, None), "PostgreSQL 15.3");
        assert_eq!(name("YDB 24", None), "YDB 24");
        let mysql = |version: &str| {
            let server = Server {
                version: version.into(),
                dialect: Dialect::MySql,
                ..Server::default()
            };
            server.name()
        };
        assert_eq!(mysql("10.11.6-MariaDB-0+deb12u1"), "MariaDB 10.11.6");
        assert_eq!(mysql("8.0.36"), "MySQL 8.0.36");
    }

    #[test]
    fn only_names_in_both_readings_have_a_difference() {
        let before = Counters::from([(String::from("a"), 3), (String::from("b"), 1)]);
        let after = Counters::from([(String::from("a"), 10), (String::from("c"), 1)]);
        assert_eq!(
            difference(&before, &after),
            Counters::from([(String::from("a"), 7)])
        );
    }
}
