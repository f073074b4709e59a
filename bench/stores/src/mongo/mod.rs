//! Groups of records on MongoDB, and on what speaks its protocol: a document per group.
//!
//! | form | the document has |
//! |---|---|
//! | [`crate::grouped::Cells`] | all records as bytes, behind the head |
//! | [`crate::grouped::Rows`] | each entity as a document with columns; the rest as bytes |
//!
//! A document is read as a whole. A change is one update of it whose filter has the version that
//! was read; it sets the paths of the entities that have changed.
//!
//! | name | content |
//! |---|---|
//! | `_id` | the group's key in hexadecimal digits, ordered as the key is |
//! | `v` | the version |
//! | `h` | the head; of cells all records, too |
//! | `e` | by type and ids the entities, of which `_stamp` is that of the creation |
//! | `x` | by key the other records |

mod document;

use crate::grouped::{Change, Grouped, Part, Whole};
use crate::kv::{lost, unknown};
use crate::line::{Broken, Line, Wire};
use crate::spread::each_server;
use document::{changes, digits, group_of, head_of, read, whole};
use entity::kv::Record;
use entity::{Failure, Schema};
use links::bson::{Bson, Doc};
use links::link::LinkError;
use links::mongo::Mongo;
use links::url::{Endpoint, Target};
use std::sync::Arc;
use std::time::Duration;

/// Groups of a page of a range, at most.
const PAGE_GROUPS_MAX: usize = 256;
/// The collection.
const GROUPS: &str = "entity_group";

/// One client's connection to a server.
#[derive(Debug)]
pub struct MongoGroups {
    line: Line<Mongo>,
    schema: Arc<Schema>,
    is_durable: bool,
}

impl MongoGroups {
    /// Connects to all servers of a target, each of which has a part of the groups. `timeout`
    /// bounds every wait.
    ///
    /// # Errors
    /// `Lost`.
    pub async fn open(
        target: &Target,
        schema: Arc<Schema>,
        timeout: Duration,
    ) -> Result<Vec<MongoGroups>, Failure> {
        let mut servers = Vec::new();
        for target in each_server(target) {
            let mut server = MongoGroups {
                line: Line::new(target, timeout, 0),
                schema: schema.clone(),
                is_durable: false,
            };
            // Others take the wish for a journal, and do not say what they do about it.
            server.is_durable = server.version().await?.starts_with("MongoDB");
            servers.push(server);
        }
        Ok(servers)
    }

    /// Deletes everything.
    ///
    /// # Errors
    /// `Lost`, `Refused`.
    pub async fn clear(&mut self) -> Result<(), Failure> {
        match self.run(Doc::new().with("drop", GROUPS), lost).await {
            // There is no such collection.
            Err(Failure::Refused(text)) if text.ends_with("(MG26)") => Ok(()),
            dropped => dropped.map(drop),
        }
    }

    /// Product and release.
    ///
    /// # Errors
    /// `Lost`, `Refused`.
    pub async fn version(&mut self) -> Result<String, Failure> {
        let version = self.line.link()?.version().await;
        self.line.answered(version, lost)
    }

    async fn run(&mut self, command: Doc, broken: Broken) -> Result<Doc, Failure> {
        let answer = self.line.link()?.command(command).await;
        self.line.answered(answer, broken)
    }

    /// The documents with a filter, ordered by group.
    async fn find(&mut self, filter: Doc, limit: usize) -> Result<Vec<Doc>, Failure> {
        let limit = limit as i64;
        let mut command = Doc::new().with("find", GROUPS).with("filter", filter);
        if limit > 1 {
            command.push("sort", Doc::new().with("_id", 1));
        }
        command.push("limit", limit);
        command.push("batchSize", limit);
        command.push("singleBatch", true);
        command.push("readConcern", Doc::new().with("level", "majority"));
        let mut reply = self.run(command, lost).await?;
        let cursor = reply.0.iter_mut().find(|(name, _)| name == "cursor");
        let Some((_, Bson::Doc(cursor))) = cursor else {
            return Err(strange());
        };
        let batch = cursor.0.iter_mut().find(|(name, _)| name == "firstBatch");
        let Some((_, Bson::List(batch))) = batch else {
            return Err(strange());
        };
        let docs = std::mem::take(batch).into_iter().map(|doc| match doc {
            Bson::Doc(doc) => Ok(doc),
            _ => Err(strange()),
        });
        docs.collect()
    }
}

impl Grouped for MongoGroups {
    fn reads_whole(&self) -> bool {
        true
    }

    fn has_order(&self) -> bool {
        true
    }

    async fn range(&mut self, from: &[u8], to: &[u8], limit: usize) -> Result<Vec<Whole>, Failure> {
        let (mut from, mut groups) = (from.to_vec(), Vec::new());
        while groups.len() < limit {
            let count = PAGE_GROUPS_MAX.min(limit - groups.len()).max(2);
            let part = Doc::new()
                .with("$gte", digits(&from))
                .with("$lt", digits(to));
            let docs = self.find(Doc::new().with("_id", part), count).await?;
            let is_last = docs.len() < count;
            for doc in docs {
                let (group, mut records) = (group_of(&doc)?, Vec::new());
                read(&self.schema, &doc, &mut records)?;
                // A document has its fields in the order in which they came.
                records.sort();
                // The next group's key, if there is one.
                from = [&group[..], &[0]].concat();
                groups.push((group, head_of(&doc)?, records));
            }
            if is_last {
                break;
            }
        }
        groups.truncate(limit);
        Ok(groups)
    }

    async fn read(
        &mut self,
        group: &[u8],
        _: Part<'_>,
        _: Option<&[u8]>,
        found: &mut Vec<Record>,
    ) -> Result<Vec<u8>, Failure> {
        let filter = Doc::new().with("_id", digits(group));
        match self.find(filter, 1).await?.pop() {
            Some(doc) => {
                read(&self.schema, &doc, found)?;
                head_of(&doc)
            }
            None => Ok(Vec::new()),
        }
    }

    async fn change(&mut self, group: &[u8], change: &Change<'_>) -> Result<bool, Failure> {
        let command = match change.version {
            0 => {
                let docs = vec![Bson::Doc(whole(&self.schema, group, change)?)];
                let insert = Doc::new().with("insert", GROUPS);
                insert.with("documents", docs)
            }
            version => {
                let filter = Doc::new().with("_id", digits(group));
                let update = Doc::new()
                    .with("q", filter.with("v", version as i64))
                    .with("u", changes(&self.schema, change)?)
                    .with("multi", false)
                    .with("upsert", false);
                let updates = vec![Bson::Doc(update)];
                Doc::new().with("update", GROUPS).with("updates", updates)
            }
        };
        let concern = Doc::new().with("w", "majority").with("j", true);
        let command = command.with("writeConcern", concern);
        match self.run(command, unknown).await?.int("n") {
            Some(1) => Ok(true),
            Some(0) => Ok(false),
            _ => Err(strange()),
        }
    }

    fn is_durable(&self) -> bool {
        self.is_durable
    }

    fn round_trips(&self) -> u64 {
        self.line.round_trips
    }
}

fn strange() -> Failure {
    Failure::Refused(String::from(
        "a reply of MongoDB that is none to the command",
    ))
}

impl Wire for Mongo {
    fn connect(
        endpoint: &Endpoint,
        target: &Target,
        timeout: Duration,
    ) -> Result<Mongo, LinkError> {
        Mongo::connect(endpoint, target, Some(timeout))
    }

    fn failure_of(error: &LinkError, broken: Broken) -> Failure {
        let LinkError::Server(refused) = error else {
            return broken(error);
        };
        match refused.sqlstate.as_str() {
            // The group was made by somebody else; two writes at a time.
            "MG11000" => Failure::conflict("version"),
            "MG112" => Failure::conflict("busy"),
            _ if refused.message.contains("database is locked") => Failure::conflict("busy"),
            // Written, but not as safely as it was asked for.
            "MGWC" => broken(error),
            // Not reached in time, ends, is not the primary or no more.
            "MG6" | "MG7" | "MG50" | "MG89" | "MG91" | "MG189" | "MG262" | "MG9001" | "MG10107"
            | "MG11600" | "MG11602" | "MG13435" | "MG13436" => broken(error),
            number => Failure::Refused(format!("{} ({number})", refused.message)),
        }
    }
}
