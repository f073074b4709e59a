//! The micro workload of the paper (section 5.3): personal, shared, public and message items.
//!
//! | items | group | written by | read by |
//! |---|---|---|---|
//! | personal | a user | that user | that user |
//! | shared | a set | every user | every user |
//! | public | a user | that user | every user |
//! | message | the receiver | the sender; then the receiver | both |
//!
//! Users are dealt among the sessions that are there at a time: each has a pool of its own, so that
//! personal items never have conflicts. An update counts in the item; the check after the run
//! compares these counts with what was acknowledged, group by group.

mod entities;
mod items;
mod messages;
mod sql;

pub use items::{Item, ItemKind, ListItems, ReadItems, UpdateItems};
pub use items::{PersonalItem, PublicItem, SharedItem};
pub use messages::{DeleteMessage, ListMessages, MessageItem, SendMessage, UpdateMessage};
pub use sql::statements;

use crate::access::Access;
use crate::distribution::{self, Ranks, letters};
use crate::document::{Problem, Section};
use crate::interaction::{Changed, Changes, Failure, Interaction, Performed, Session, dispatch};
use crate::run::{Part, Workload};
use crate::table::Table;
use base::Prng;
use entity::{Entity, Row, Schema, Value};
use workload::dike::imbalance::Access as Dealt;
use workload::stream;

/// The most users and sets.
const GROUPS_MAX: u64 = 10_000_000;
/// The most items of a group, and of an interaction.
const ITEMS_MAX: u64 = 100_000;
/// Tag of the generator of contents that are loaded.
const LOAD: u64 = 0x6d69_6372;

/// Sizes of the data and of interactions.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Users, each with a group of personal and one of public items.
    pub users: u64,
    /// Personal items, and public items, of a user.
    pub items_per_user: u64,
    /// Sets of shared items.
    pub sets: u64,
    /// Items of a set.
    pub items_per_set: u64,
    /// Messages that each user has received at the begin.
    pub messages_per_user: u64,
    /// Items that an interaction reads or writes.
    pub items_per_interaction: u64,
    /// Letters of an item.
    pub content_bytes: u64,
    /// Whether an interaction takes its items in the order of their numbers; else as drawn.
    pub sorts_items: bool,
    /// Sessions that are there at a time: among so many users are dealt.
    pub pools: u64,
}

/// The workload.
#[derive(Clone, Debug)]
pub struct Micro {
    settings: Settings,
    /// Whose public items are read, and who gets messages.
    users: Ranks,
    sets: Ranks,
    items: Ranks,
    set_items: Ranks,
}

/// Names of the interactions in the order of the dispatch, with their results.
const INTERACTIONS: [(&str, &[&str]); 14] = [
    ("UPDATE_PERSONAL", &[]),
    ("READ_PERSONAL", &[]),
    ("LIST_PERSONAL", &[]),
    ("UPDATE_SHARED", &[]),
    ("READ_SHARED", &[]),
    ("LIST_SHARED", &[]),
    ("UPDATE_PUBLIC", &[]),
    ("READ_PUBLIC", &[]),
    ("LIST_PUBLIC", &[]),
    ("SEND_MESSAGE", &[]),
    ("LIST_INBOX", &["EMPTY"]),
    ("LIST_SENT", &["EMPTY"]),
    ("UPDATE_MESSAGE", &["GONE"]),
    ("DELETE_MESSAGE", &["GONE"]),
];

impl Micro {
    /// Reads the parameters: the fields of [`Settings`], and `user_access`, `set_access` and
    /// `item_access` (`uniform`, `zipf:0.99`, `hot:0.1:0.9`). `pools` is the population's sessions.
    ///
    /// # Errors
    /// A key that is not known, a number out of its bounds, fewer users than sessions.
    pub fn read(mut section: Section<'_>, pools: u64) -> Result<Micro, Problem> {
        let mut count = |key: &str, least: u64, most: u64, usual: u64| {
            Ok::<u64, Problem>(section.count(key, least..=most)?.unwrap_or(usual))
        };
        let settings = Settings {
            users: count("users", 1, GROUPS_MAX, 10 * pools.max(100))?,
            items_per_user: count("items_per_user", 1, ITEMS_MAX, 4)?,
            sets: count("sets", 1, GROUPS_MAX, 100)?,
            items_per_set: count("items_per_set", 1, ITEMS_MAX, 40)?,
            messages_per_user: count("messages_per_user", 0, 1_000, 0)?,
            items_per_interaction: count("items_per_interaction", 1, ITEMS_MAX, 4)?,
            content_bytes: count("content_bytes", 0, 1 << 20, 100)?,
            sorts_items: section.flag("sorts_items")?.unwrap_or(false),
            pools,
        };
        if settings.users < pools {
            let text = format!("{} users are too few for {pools} sessions", settings.users);
            return Err(section.problem("users", text));
        }
        let mut dealt = |key: &str, count: u64| {
            let dealt = distribution::dealt(&mut section, key, Dealt::Uniform)?;
            Ok::<Ranks, Problem>(Ranks::new(dealt, count, dealt != Dealt::Uniform))
        };
        let users = dealt("user_access", settings.users)?;
        let sets = dealt("set_access", settings.sets)?;
        let items = dealt("item_access", settings.items_per_user)?;
        let set_items = dealt("item_access", settings.items_per_set)?;
        section.finish()?;
        Ok(Micro {
            settings,
            users,
            sets,
            items,
            set_items,
        })
    }

    /// The types of its entities.
    pub fn schema() -> Schema {
        let mut schema = Schema::new();
        let kinds = ItemKind::ALL.map(ItemKind::entity_type);
        for kind in kinds.into_iter().chain([MessageItem::TYPE]) {
            schema.add(kind).expect("the types of micro fit together");
        }
        schema
    }

    /// A user of the session's own pool.
    fn own_user(&self, session: &mut Session) -> i64 {
        let (users, pools) = (self.settings.users, self.settings.pools);
        let place = session.place % pools;
        let pool = (users - place).div_ceil(pools);
        (place + pools * session.draws.below(pool)) as i64
    }

    fn items(&self, kind: ItemKind) -> &Ranks {
        match kind {
            ItemKind::Personal | ItemKind::Public => &self.items,
            ItemKind::Shared => &self.set_items,
        }
    }

    fn items_of_group(&self, kind: ItemKind) -> u64 {
        self.items(kind).count()
    }

    fn groups(&self, kind: ItemKind) -> u64 {
        match kind {
            ItemKind::Personal | ItemKind::Public => self.settings.users,
            ItemKind::Shared => self.settings.sets,
        }
    }

    fn content(&self, prng: &mut Prng) -> String {
        letters(prng, self.settings.content_bytes as usize)
    }

    /// The rows of one group of items at the begin.
    fn rows_of(&self, kind: ItemKind, group: u64, prng: &mut Prng) -> Vec<Row> {
        let row = |item: u64| {
            let item = Item {
                group_id: group as i64,
                item_no: item as i64,
                changes: 0,
                content: self.content(prng),
            };
            item.into_row()
        };
        (0..self.items_of_group(kind)).map(row).collect()
    }
}

impl<D> Workload<D> for Micro
where
    D: Access,
    for<'a> UpdateItems<'a>: Interaction<D>,
    for<'a> ReadItems<'a>: Interaction<D>,
    for<'a> ListItems<'a>: Interaction<D>,
    for<'a> SendMessage<'a>: Interaction<D>,
    for<'a> ListMessages<'a>: Interaction<D>,
    for<'a> UpdateMessage<'a>: Interaction<D>,
    for<'a> DeleteMessage<'a>: Interaction<D>,
{
    fn interactions(&self) -> &[(&'static str, &'static [&'static str])] {
        &INTERACTIONS
    }

    fn default_table(&self) -> Table {
        Table::repeat(0, INTERACTIONS[0].0)
    }

    async fn perform(
        &self,
        interaction: usize,
        session: &mut Session,
        access: &mut D,
        changes: &mut Changes,
        now_ns: &dyn Fn() -> u64,
    ) -> Performed {
        let kind = ItemKind::ALL[(interaction / 3).min(2)];
        dispatch!(interaction, (session, access, changes, now_ns), {
            0 | 3 | 6 => UpdateItems { micro: self, kind },
            1 | 4 | 7 => ReadItems { micro: self, kind },
            2 | 5 | 8 => ListItems { micro: self, kind },
            9 => SendMessage { micro: self },
            10 | 11 => ListMessages {
                micro: self,
                is_sent: interaction == 11,
            },
            12 => UpdateMessage { micro: self },
            13 => DeleteMessage { micro: self },
        })
    }

    async fn load(&self, part: Part, access: &mut D) -> Result<(), Failure> {
        for kind in ItemKind::ALL {
            for group in part.dealt(self.groups(kind)) {
                let mut prng = stream(LOAD, &[kind as u64, group]);
                let rows = self.rows_of(kind, group, &mut prng);
                access.fill(kind.entity_type(), rows).await?;
            }
        }
        if self.settings.messages_per_user == 0 {
            return Ok(());
        }
        for receiver in part.dealt(self.settings.users) {
            let mut prng = stream(LOAD, &[u64::MAX, receiver]);
            let message = |_| {
                let message = MessageItem {
                    receiver_id: receiver as i64,
                    message_no: 0,
                    sender_id: prng.below(self.settings.users) as i64,
                    changes: 0,
                    content: self.content(&mut prng),
                };
                let mut row = message.row();
                row[1] = Value::Null;
                row
            };
            let rows = (0..self.settings.messages_per_user).map(message).collect();
            access.fill(MessageItem::TYPE, rows).await?;
        }
        Ok(())
    }

    async fn judge(
        &self,
        (kind, group): (&'static str, u64),
        changed: Changed,
        access: &mut D,
        findings: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let prefix = [Value::Int(group as i64)];
        let item = ItemKind::ALL.into_iter().find(|item| item.name() == kind);
        let entity = item.map_or(MessageItem::TYPE, ItemKind::entity_type);
        let rows = access.rows(entity, &prefix).await?;
        let (found, what) = match item {
            None => {
                let begin = self.settings.messages_per_user as i64;
                (rows.len() as i64 - begin, "messages more than at the begin")
            }
            Some(item) => {
                let wanted = self.items_of_group(item);
                if rows.len() as u64 != wanted {
                    let there = rows.len();
                    let text = format!("{kind} group {group}: {there} items, not {wanted}");
                    findings.push(text);
                }
                let changes = rows.iter().filter_map(|row| row.get(2)?.as_int());
                (changes.sum(), "changes of items")
            }
        };
        let of = format_args!("{kind} group {group}");
        findings.extend(changed.finding(of, found, what));
        Ok(())
    }
}
