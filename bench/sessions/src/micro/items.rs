//! Personal, shared and public items: the same columns, with other groups and other users.

use super::Micro;
use crate::interaction::{Changes, Plan, Session};
use entity::{Entity, EntityType, Row, Value};

/// An item that only its user reads and writes.
#[derive(Clone, Debug, PartialEq, Entity)]
pub struct PersonalItem {
    /// Whose it is.
    #[id]
    #[group]
    pub user_id: i64,
    /// Counted from 0 for each user.
    #[id]
    pub item_no: i64,
    /// How often it was updated.
    pub changes: i64,
    /// Letters.
    pub content: String,
}

/// An item that every user reads and writes.
#[derive(Clone, Debug, PartialEq, Entity)]
pub struct SharedItem {
    /// The set that it belongs to.
    #[id]
    #[group]
    pub set_id: i64,
    /// Counted from 0 for each set.
    #[id]
    pub item_no: i64,
    /// How often it was updated.
    pub changes: i64,
    /// Letters.
    pub content: String,
}

/// An item that its user writes and every user reads.
#[derive(Clone, Debug, PartialEq, Entity)]
pub struct PublicItem {
    /// Whose it is.
    #[id]
    #[group]
    pub user_id: i64,
    /// Counted from 0 for each user.
    #[id]
    pub item_no: i64,
    /// How often it was updated.
    pub changes: i64,
    /// Letters.
    pub content: String,
}

/// Which items an interaction is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// [`PersonalItem`].
    Personal,
    /// [`SharedItem`].
    Shared,
    /// [`PublicItem`].
    Public,
}

impl ItemKind {
    /// All of them.
    pub const ALL: [ItemKind; 3] = [ItemKind::Personal, ItemKind::Shared, ItemKind::Public];

    /// The type of its entities.
    pub fn entity_type(self) -> &'static EntityType {
        match self {
            ItemKind::Personal => PersonalItem::TYPE,
            ItemKind::Shared => SharedItem::TYPE,
            ItemKind::Public => PublicItem::TYPE,
        }
    }

    /// The name of that type.
    pub fn name(self) -> &'static str {
        match self {
            ItemKind::Personal => "personal_item",
            ItemKind::Shared => "shared_item",
            ItemKind::Public => "public_item",
        }
    }

    /// The column of the group.
    pub fn group_column(self) -> &'static str {
        match self {
            ItemKind::Personal | ItemKind::Public => "user_id",
            ItemKind::Shared => "set_id",
        }
    }
}

/// An item of any kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The user or the set.
    pub group_id: i64,
    /// Counted from 0 for each group.
    pub item_no: i64,
    /// How often it was updated.
    pub changes: i64,
    /// Letters.
    pub content: String,
}

impl Item {
    /// As a row of its type.
    pub fn into_row(self) -> Row {
        vec![
            Value::Int(self.group_id),
            Value::Int(self.item_no),
            Value::Int(self.changes),
            Value::Text(self.content),
        ]
    }
}

/// Items of one group.
#[derive(Clone, Debug)]
pub struct Items {
    /// The user or the set.
    pub group: i64,
    /// Their numbers, each once.
    pub numbers: Vec<i64>,
    /// What an update writes into each.
    pub content: String,
}

/// Whose items an interaction takes.
fn group_of(micro: &Micro, kind: ItemKind, is_update: bool, session: &mut Session) -> i64 {
    match (kind, is_update) {
        (ItemKind::Personal, _) | (ItemKind::Public, true) => micro.own_user(session),
        (ItemKind::Public, false) => micro.users.draw(&mut session.draws) as i64,
        (ItemKind::Shared, _) => micro.sets.draw(&mut session.draws) as i64,
    }
}

fn items_of(micro: &Micro, kind: ItemKind, is_update: bool, session: &mut Session) -> Items {
    let group = group_of(micro, kind, is_update, session);
    let wanted = micro.settings.items_per_interaction as usize;
    let draws = &mut session.draws;
    let drawn = micro.items(kind).draw_distinct(draws, wanted);
    let mut numbers: Vec<i64> = drawn.into_iter().map(|number| number as i64).collect();
    if micro.settings.sorts_items {
        numbers.sort_unstable();
    }
    let content = match is_update {
        true => micro.content(draws),
        false => String::new(),
    };
    Items {
        group,
        numbers,
        content,
    }
}

/// Updates some items of one group in one transaction: counts in each, and replaces its content.
#[derive(Clone, Copy, Debug)]
pub struct UpdateItems<'a> {
    /// Sizes.
    pub micro: &'a Micro,
    /// Which.
    pub kind: ItemKind,
}

impl Plan for UpdateItems<'_> {
    type Param = Items;
    type Answer = ();

    fn prepare(&self, session: &mut Session) -> Option<Items> {
        Some(items_of(self.micro, self.kind, true, session))
    }

    fn complete(&self, _: &Items, (): (), _: &mut Session) -> &'static str {
        ""
    }

    fn note(&self, param: &Items, answer: Option<&()>, changes: &mut Changes) {
        let change = param.numbers.len() as i64;
        changes.note(
            self.kind.name(),
            param.group as u64,
            change,
            answer.is_some(),
        );
    }
}

/// Reads some items of one group in one transaction.
#[derive(Clone, Copy, Debug)]
pub struct ReadItems<'a> {
    /// Sizes.
    pub micro: &'a Micro,
    /// Which.
    pub kind: ItemKind,
}

impl Plan for ReadItems<'_> {
    type Param = Items;
    /// How many were found.
    type Answer = usize;

    fn prepare(&self, session: &mut Session) -> Option<Items> {
        Some(items_of(self.micro, self.kind, false, session))
    }

    fn complete(&self, _: &Items, _: usize, _: &mut Session) -> &'static str {
        ""
    }
}

/// Reads all items of one group.
#[derive(Clone, Copy, Debug)]
pub struct ListItems<'a> {
    /// Sizes.
    pub micro: &'a Micro,
    /// Which.
    pub kind: ItemKind,
}

impl Plan for ListItems<'_> {
    /// The user or the set.
    type Param = i64;
    /// How many were found.
    type Answer = usize;

    fn prepare(&self, session: &mut Session) -> Option<i64> {
        Some(group_of(self.micro, self.kind, false, session))
    }

    fn complete(&self, _: &i64, _: usize, _: &mut Session) -> &'static str {
        ""
    }
}
