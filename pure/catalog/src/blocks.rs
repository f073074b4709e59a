//! Schema changes of open transaction blocks (docs/adr/0037-schema-changes-in-blocks.md).
//!
//! A change takes effect at once, for everybody. What it has replaced stays in the catalog as an
//! image until the block ends:
//!
//! ```text
//! CREATE TABLE b   image: there was no b            ROLLBACK: b goes
//! DROP TABLE a     image: a as it was; rows kept    ROLLBACK: a is back   COMMIT: its rows go
//! ```
//!
//! Invariants: nobody but the block changes what it has images of; rows of a key space stay while
//! an image or the block's transaction may need them; a column has its place for ever, also one
//! whose ADD COLUMN was undone.

use crate::alter::TableAction;
use crate::command::{Applied, CatalogError, Command};
use crate::desc::*;
use crate::domains::Domain;
use crate::enums::EnumType;
use crate::functions::Function;
use crate::policies::RowSecurity;
use crate::stored::StoredView;
use crate::table_locks::TableLock;
use crate::views::View;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::full_name::{is_temporary, is_temporary_name};
use base::{IndexId, SqlError, SqlState, TableId, Type};
use rights::{Acl, By, Object, ObjectKind, Rights, Role, RoleId, SettingValues, Target};
use serde::{Deserialize, Serialize};

/// Most images of one block.
pub const IMAGES_MAX: usize = 10_000;

/// Who asks for a change of the schema.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Asker {
    /// Whose rights are asked.
    pub by: By,
    /// Backend number of the session; 0: none.
    pub session: i32,
    /// The change belongs to the session's open block: the number of images that the newest
    /// savepoint keeps. `None`: it is no part of a block.
    pub block: Option<u32>,
}

/// What becomes of the changes of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BlockChange {
    /// Its transaction is about to commit: if its session dies, the changes stay.
    End,
    /// They stay.
    Settle,
    /// They are undone.
    RollBack,
    /// All but those behind the first images are undone.
    RollBackTo(u32),
}

/// The schema changes of a session's open block in a database.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OpenBlock {
    /// Backend number of the session.
    pub session: i32,
    /// See [`BlockChange::End`].
    pub ending: bool,
    /// What was there before, oldest first.
    images: Vec<Image>,
    /// Key spaces that no table has any more, with the version of the last change of their table.
    kept: BTreeMap<IndexId, u64>,
    /// Tables that the block has made, with the version that did.
    made: BTreeMap<TableId, u64>,
    /// Types of all columns that tables have had.
    places: BTreeMap<TableId, Vec<Type>>,
    /// The key space of the row that says whether the transaction has committed; `None`: nothing
    /// depends on that.
    pub marker: Option<IndexId>,
}

/// An object as it was; `None`: it was not there.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Image {
    Table(String, Option<Arc<Table>>),
    Sequence(String, Option<Sequence>),
    Comment(Commented, Option<String>),
    View(String, Option<Arc<View>>),
    Enum(String, Option<Arc<EnumType>>),
    Domain(String, Option<Arc<Domain>>),
    /// All functions of a name.
    Function(String, Option<Vec<Arc<Function>>>),
    Schema(String, Option<u32>),
    RowSecurity(TableId, Option<RowSecurity>),
    Stored(String, Option<StoredView>),
    Role(RoleId, Option<Arc<Role>>),
    Object(Target, Option<Object>),
    Settings((RoleId, u32), Option<SettingValues>),
    Defaults((u32, RoleId, u32, ObjectKind), Option<Acl>),
    /// A lock of a table, since this version of the catalog.
    Lock(TableId, TableLock, u64),
    /// The block's transaction writes what the new schema of the table needs of its rows.
    Fills(TableId),
}

impl Image {
    fn is_same_object(&self, other: &Image) -> bool {
        match (self, other) {
            (Image::Table(a, _), Image::Table(b, _))
            | (Image::Sequence(a, _), Image::Sequence(b, _))
            | (Image::View(a, _), Image::View(b, _))
            | (Image::Enum(a, _), Image::Enum(b, _))
            | (Image::Domain(a, _), Image::Domain(b, _))
            | (Image::Function(a, _), Image::Function(b, _))
            | (Image::Schema(a, _), Image::Schema(b, _))
            | (Image::Stored(a, _), Image::Stored(b, _)) => a == b,
            (Image::Comment(a, _), Image::Comment(b, _)) => a == b,
            (Image::RowSecurity(a, _), Image::RowSecurity(b, _)) => a == b,
            (Image::Role(a, _), Image::Role(b, _)) => a == b,
            (Image::Object(a, _), Image::Object(b, _)) => a == b,
            (Image::Settings(a, _), Image::Settings(b, _)) => a == b,
            (Image::Defaults(a, _), Image::Defaults(b, _)) => a == b,
            _ => false,
        }
    }

    /// Whether the object concerns one session alone, so that others may change it beside a block.
    fn is_private(&self) -> bool {
        match self {
            Image::Table(name, _) | Image::Sequence(name, _) => {
                is_temporary_name(name) || crate::objects::is_own_table(name)
            }
            Image::Schema(_, number) => number.is_none_or(is_temporary),
            Image::Comment(..) | Image::Object(..) | Image::Lock(..) | Image::Fills(_) => true,
            Image::View(..)
            | Image::Enum(..)
            | Image::Domain(..)
            | Image::Function(..)
            | Image::RowSecurity(..)
            | Image::Stored(..)
            | Image::Role(..)
            | Image::Settings(..)
            | Image::Defaults(..) => false,
        }
    }

    /// Whether it is one of the whole cluster.
    fn is_of_cluster(&self) -> bool {
        matches!(
            self,
            Image::Role(..) | Image::Object(..) | Image::Settings(..) | Image::Defaults(..)
        )
    }
}

/// Tells the entries that `after` has changed, as they were.
fn differing<K: Ord + Clone, V: Clone>(
    (before, after): (&BTreeMap<K, V>, &BTreeMap<K, V>),
    same: impl Fn(&V, &V) -> bool,
    mut told: impl FnMut(K, Option<V>),
) {
    for (key, value) in before {
        if !after.get(key).is_some_and(|other| same(value, other)) {
            told(key.clone(), Some(value.clone()));
        }
    }
    for key in after.keys().filter(|key| !before.contains_key(key)) {
        told(key.clone(), None);
    }
}

fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}

/// What differs between two states of a database. Each field is named, so that a new one is not
/// forgotten; [`Database::is_alike`] compares those without images.
fn images(before: &Database, after: &Database) -> Vec<Image> {
    let Database {
        id: _,
        name: _,
        protocol: _,
        execution: _,
        switching: _,
        connection_limit: _,
        blocks: _,
        tables,
        sequences,
        comments,
        views,
        enums,
        schemas,
        functions,
        row_security,
        stored,
        domains,
    } = before;
    let mut found = Vec::new();
    differing((tables, &after.tables), Arc::ptr_eq, |k, v| {
        found.push(Image::Table(k, v));
    });
    differing((sequences, &after.sequences), PartialEq::eq, |k, v| {
        found.push(Image::Sequence(k, v));
    });
    differing((comments, &after.comments), PartialEq::eq, |k, v| {
        found.push(Image::Comment(k, v));
    });
    differing((views, &after.views), PartialEq::eq, |k, v| {
        found.push(Image::View(k, v));
    });
    differing((enums, &after.enums), PartialEq::eq, |k, v| {
        found.push(Image::Enum(k, v));
    });
    differing((domains, &after.domains), PartialEq::eq, |k, v| {
        found.push(Image::Domain(k, v));
    });
    differing((functions, &after.functions), PartialEq::eq, |k, v| {
        found.push(Image::Function(k, v));
    });
    differing((schemas, &after.schemas), PartialEq::eq, |k, v| {
        found.push(Image::Schema(k, v));
    });
    differing(
        (row_security, &after.row_security),
        PartialEq::eq,
        |k, v| {
            found.push(Image::RowSecurity(k, v));
        },
    );
    differing((stored, &after.stored), PartialEq::eq, |k, v| {
        found.push(Image::Stored(k, v));
    });
    found
}

/// What differs between two states of roles and privileges.
fn images_of_rights(before: &Arc<Rights>, after: &Arc<Rights>) -> Vec<Image> {
    let mut found = Vec::new();
    if Arc::ptr_eq(before, after) {
        return found;
    }
    let pair = (&before.roles, &after.roles);
    differing(pair, PartialEq::eq, |k, v| found.push(Image::Role(k, v)));
    let pair = (&before.objects, &after.objects);
    differing(pair, PartialEq::eq, |k, v| found.push(Image::Object(k, v)));
    let pair = (&before.settings, &after.settings);
    differing(pair, PartialEq::eq, |k, v| {
        found.push(Image::Settings(k, v))
    });
    let pair = (&before.defaults, &after.defaults);
    differing(pair, PartialEq::eq, |k, v| {
        found.push(Image::Defaults(k, v))
    });
    found
}

/// Key spaces of a database's tables and sequences, with the version of the table's last change.
fn spaces(database: &Database) -> BTreeMap<IndexId, u64> {
    let tables = database.tables.values();
    let indexes = tables.flat_map(|table| table.indexes().map(|index| (index.id, table.changed)));
    let sequences = database.sequences.values();
    indexes
        .chain(sequences.map(|sequence| (sequence.id, 0)))
        .collect()
}

impl Command {
    /// Whether rows written by plans that did not know of the change are right all the same.
    fn is_soft(&self) -> bool {
        match self {
            Command::AlterTable { actions, .. } => actions.iter().all(|action| match action {
                TableAction::AddColumn { column, .. } => {
                    !column.not_null && column.default.is_none() && column.generated.is_none()
                }
                TableAction::AddSequence(_)
                | TableAction::DropColumn { .. }
                | TableAction::SetDefault { .. }
                | TableAction::DropNotNull { .. }
                | TableAction::DropExpression { .. }
                | TableAction::AlterIdentity { .. }
                | TableAction::DropIdentity { .. }
                | TableAction::RenameColumn { .. }
                | TableAction::RenameTable { .. }
                | TableAction::RenameConstraint { .. }
                | TableAction::DropConstraint { .. } => true,
                TableAction::CheckNotNull { .. }
                | TableAction::SetType { .. }
                | TableAction::SetIdentity { .. }
                | TableAction::AddForeignKey(_)
                | TableAction::AddCheck(_)
                | TableAction::AddIndex(_)
                | TableAction::Publish
                | TableAction::Undo => false,
            }),
            Command::DropIndex { .. }
            | Command::RetireIndex { .. }
            | Command::DropConstraint { .. }
            | Command::DropTable { .. }
            | Command::DropStored { .. }
            | Command::RenameRelation { .. }
            | Command::Comment { .. }
            | Command::Schema { .. }
            | Command::Rights { .. } => true,
            _ => false,
        }
    }

    /// Tables whose rows written before the change are not known to be right after it: a block
    /// that has written to them cannot go on. By full names.
    pub fn hardens(&self) -> Vec<&str> {
        if self.is_soft() {
            return Vec::new();
        }
        match self {
            Command::AlterTable { table, actions, .. } => {
                let keys = actions.iter().filter_map(TableAction::foreign_key);
                let parents = keys.map(|key| key.parent.as_str());
                core::iter::once(table.as_str()).chain(parents).collect()
            }
            Command::AddForeignKey {
                table, foreign_key, ..
            } => Vec::from([table.as_str(), foreign_key.parent.as_str()]),
            Command::AddCheck { table, .. }
            | Command::CreateIndex { table, .. }
            | Command::SetPrimaryKey { table, .. }
            | Command::Freeze { table, .. } => Vec::from([table.as_str()]),
            Command::CreateTable { table, .. } => {
                let keys = table.foreign_keys.iter();
                let parents = keys.map(|key| key.parent.as_str());
                parents.filter(|parent| *parent != table.name).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl OpenBlock {
    pub(crate) fn new(session: i32) -> OpenBlock {
        OpenBlock {
            session,
            ending: false,
            images: Vec::new(),
            kept: BTreeMap::new(),
            made: BTreeMap::new(),
            places: BTreeMap::new(),
            marker: None,
        }
    }

    /// Notes that the block fills the table. `marker`: a key space, if it has none yet.
    pub(crate) fn note_fill(&mut self, table: TableId, marker: impl FnOnce() -> IndexId) {
        if !self.fills(table) {
            self.images.push(Image::Fills(table));
        }
        let marker = *self.marker.get_or_insert_with(marker);
        self.kept.insert(marker, 0);
    }

    /// Whether the block's transaction writes what the new schema of the table needs of its rows:
    /// nobody else can read them by that schema before it has committed.
    pub fn fills(&self, table: TableId) -> bool {
        let mut images = self.images.iter();
        images.any(|image| matches!(image, Image::Fills(of) if *of == table))
    }

    /// Version of the table before the block changed it, if it has.
    pub fn changed_before(&self, id: TableId) -> Option<u64> {
        self.images.iter().find_map(|image| match image {
            Image::Table(_, Some(table)) if table.id == id => Some(table.changed),
            _ => None,
        })
    }

    /// Number of images, locks of tables among them.
    pub fn image_count(&self) -> usize {
        self.images.len()
    }

    pub(crate) fn images(&self) -> impl Iterator<Item = &Image> {
        self.images.iter()
    }

    /// Notes locks that the block does not have yet.
    pub(crate) fn note_locks(&mut self, tables: &[TableId], mode: TableLock, version: u64) {
        let same = self.locks().filter(|(_, held, _)| *held == mode);
        let known: BTreeSet<TableId> = same.map(|(table, ..)| table).collect();
        let new = tables.iter().filter(|table| !known.contains(table));
        let new = new.map(|table| Image::Lock(*table, mode, version));
        self.images.extend(new);
    }

    /// Whether the block has made the table.
    pub fn has_made(&self, table: TableId) -> bool {
        self.made.contains_key(&table)
    }

    /// Whether the block has made the type of this full name.
    pub fn has_made_type(&self, name: &str) -> bool {
        let is_it = |image: &Image| matches!(image, Image::Enum(of, None) if of == name);
        self.images.iter().any(is_it)
    }

    /// Key spaces that no table has, with the version of the last change of their table.
    pub fn kept(&self) -> impl Iterator<Item = (IndexId, u64)> {
        self.kept.iter().map(|(id, changed)| (*id, *changed))
    }

    /// Whether the block has an image of the table of this name.
    pub(crate) fn has_image_of(&self, name: &str) -> bool {
        let is_it = |image: &Image| matches!(image, Image::Table(of, _) if of == name);
        self.images.iter().any(is_it)
    }

    /// Notes what a command has replaced, unless the images behind the first `keep` have it.
    fn note(&mut self, found: Vec<Image>, keep: u32) {
        for image in found {
            let keep = (keep as usize).min(self.images.len());
            let mut newest = self.images[keep..].iter();
            if !newest.any(|known| known.is_same_object(&image)) {
                self.images.push(image);
            }
        }
    }

    /// Notes tables that are new, places of columns, and key spaces that are gone.
    fn note_tables(&mut self, before: &Database, after: &Database) {
        let known: BTreeSet<TableId> = before.tables.values().map(|table| table.id).collect();
        let is_changed = |table: &&Arc<Table>| {
            let earlier = before.tables.get(&table.name);
            !earlier.is_some_and(|earlier| Arc::ptr_eq(earlier, table))
        };
        for table in after.tables.values().filter(is_changed) {
            if !known.contains(&table.id) {
                self.made.entry(table.id).or_insert(table.changed);
            }
            let places = self.places.entry(table.id).or_default();
            let types = table.columns.iter().skip(places.len());
            places.extend(types.map(|column| column.ty));
        }
        let here = spaces(after);
        let gone = spaces(before).into_iter();
        self.kept
            .extend(gone.filter(|(id, _)| !here.contains_key(id)));
        self.kept.retain(|id, _| !here.contains_key(id));
    }
}

impl Database {
    /// The open block of a session that has changed the schema.
    pub fn block_of(&self, session: i32) -> Option<&OpenBlock> {
        self.blocks.iter().find(|block| block.session == session)
    }

    /// The session whose open block has changed this table, other than `session`: until that block
    /// ends nobody else may write to the table.
    pub fn shut_by(&self, table: &Table, session: i32) -> Option<i32> {
        let mut others = self.blocks.iter().filter(|it| it.session != session);
        let shut = |block: &&OpenBlock| block.has_image_of(&table.name);
        others.find(shut).map(|block| block.session)
    }

    /// The session whose open block fills one of these tables, other than `session`.
    pub fn filled_by(&self, tables: impl Iterator<Item = TableId>, session: i32) -> Option<i32> {
        let mut tables = tables;
        let others = self.blocks.iter().filter(|it| it.session != session);
        let others: Vec<&OpenBlock> = others.filter(|it| it.marker.is_some()).collect();
        if others.is_empty() {
            return None;
        }
        tables.find_map(|table| {
            let mut others = others.iter();
            others.find(|block| block.fills(table)).map(|it| it.session)
        })
    }

    fn put_back(
        &mut self,
        image: Image,
        places: &BTreeMap<TableId, Vec<Type>>,
        version: Option<u64>,
    ) {
        match image {
            Image::Table(name, Some(table)) => {
                let mut next = (*table).clone();
                let known = next.columns.len();
                let later = places.get(&table.id).map_or(&[][..], |all| &all[..]);
                for (place, ty) in later.iter().enumerate().skip(known) {
                    next.columns.push(Column::dropped(place as u16, *ty));
                }
                let present = self.tables.values().find(|other| other.id == table.id);
                next.changed = match (version, present) {
                    (Some(version), _) => version,
                    (None, Some(present)) => present.changed.max(next.changed),
                    (None, None) => next.changed,
                };
                self.tables.retain(|_, other| other.id != table.id);
                self.tables.insert(name, Arc::new(next));
            }
            Image::Table(name, None) => {
                self.tables.remove(&name);
            }
            Image::Sequence(name, was) => put(&mut self.sequences, name, was),
            Image::Comment(of, was) => put(&mut self.comments, of, was),
            Image::View(name, was) => put(&mut self.views, name, was),
            Image::Enum(name, was) => put(&mut self.enums, name, was),
            Image::Domain(name, was) => put(&mut self.domains, name, was),
            Image::Function(name, was) => put(&mut self.functions, name, was),
            Image::Schema(name, was) => put(&mut self.schemas, name, was),
            Image::RowSecurity(table, was) => put(&mut self.row_security, table, was),
            Image::Stored(name, was) => put(&mut self.stored, name, was),
            Image::Lock(..) | Image::Fills(_) => {}
            Image::Role(..) | Image::Object(..) | Image::Settings(..) | Image::Defaults(..) => {
                unreachable!("images of the cluster are put back by the catalog")
            }
        }
    }
}

fn put_back_rights(rights: &mut Rights, image: Image) {
    match image {
        Image::Role(id, was) => put(&mut rights.roles, id, was),
        Image::Object(target, was) => put(&mut rights.objects, target, was),
        Image::Settings(of, was) => put(&mut rights.settings, of, was),
        Image::Defaults(of, was) => put(&mut rights.defaults, of, was),
        _ => unreachable!("images of a database are put back by it"),
    }
}

impl Catalog {
    /// As [`Catalog::apply_by`]. A change of an open block can be undone with it.
    ///
    /// # Errors
    /// Also 0A000 for what a block cannot undo.
    pub fn apply_for(
        &self,
        command: &Command,
        asker: &Asker,
        database: &str,
    ) -> Result<(Catalog, Applied), CatalogError> {
        let (mut next, applied) = self.apply_by(command, &asker.by)?;
        if let Command::LockTables {
            database,
            session,
            tables,
            mode,
            fills,
            within_us: _,
        } = command
        {
            next.lock_tables((database, *session), tables, (*mode, *fills))?;
        }
        let is_lock = matches!(command, Command::LockTables { .. });
        let is_change =
            !is_lock && applied.skipped.is_none() && !matches!(command, Command::Block { .. });
        if let (Some(keep), true) = (asker.block, is_change) {
            next.note_change(self, (command, database), asker.session, keep)?;
        }
        next.count_blocks();
        Ok((next, applied))
    }

    pub(crate) fn count_blocks(&mut self) {
        let databases = self.databases.values();
        self.open_blocks = databases.map(|database| database.blocks.len() as u32).sum();
    }

    fn note_change(
        &mut self,
        before: &Catalog,
        (command, name): (&Command, &str),
        session: i32,
        keep: u32,
    ) -> Result<(), CatalogError> {
        let (Some(earlier), Some(later)) = (before.databases.get(name), self.databases.get(name))
        else {
            return Err(not_undone());
        };
        let others = before.databases.iter().filter(|(other, _)| *other != name);
        let is_same = |(other, content): (&String, &Arc<Database>)| {
            let next = self.databases.get(other);
            next.is_some_and(|next| Arc::ptr_eq(next, content))
        };
        if before.databases.len() != self.databases.len()
            || !others.into_iter().all(is_same)
            || !earlier.is_alike(later)
        {
            return Err(not_undone());
        }
        let mut found = images(earlier, later);
        found.extend(images_of_rights(&before.rights, &self.rights));
        let earlier = earlier.clone();
        let database = self.database_mut(name)?;
        if database.block_of(session).is_none() {
            database.blocks.push(OpenBlock::new(session));
        }
        let at = database.blocks.iter().position(|it| it.session == session);
        let mut block = database.blocks.remove(at.expect("just made"));
        block.note(found, keep);
        block.note_tables(&earlier, database);
        let earlier_of = |id: TableId| earlier.tables.values().find(|table| table.id == id);
        for table in database.tables.values_mut() {
            // Nobody else has written to a table that the block has made.
            let known = block.made.get(&table.id).copied();
            let soft = command.is_soft().then(|| earlier_of(table.id)).flatten();
            let changed = known.or(soft.map(|earlier| earlier.changed));
            if let Some(changed) = changed.filter(|changed| *changed != table.changed) {
                Arc::make_mut(table).changed = changed;
            }
        }
        database.blocks.push(block);
        Ok(())
    }

    /// Ends the changes of a block, or undoes some of them.
    pub(crate) fn change_block(
        &mut self,
        database: &str,
        session: i32,
        change: BlockChange,
    ) -> Result<Applied, CatalogError> {
        let version = self.version;
        let Some(owner) = self.databases.get_mut(database) else {
            return Ok(Applied::default());
        };
        let at = owner.blocks.iter().position(|it| it.session == session);
        let Some(at) = at else {
            return match change {
                BlockChange::End | BlockChange::Settle => Err(undone()),
                BlockChange::RollBack | BlockChange::RollBackTo(_) => Ok(Applied::default()),
            };
        };
        let owner = Arc::make_mut(owner);
        let mut block = owner.blocks.remove(at);
        let mut applied = Applied::default();
        let (keep, changed) = match change {
            BlockChange::End => {
                block.ending = true;
                owner.blocks.push(block);
                return Ok(applied);
            }
            BlockChange::Settle => {
                applied.dropped = block.kept.into_keys().collect();
                return Ok(applied);
            }
            BlockChange::RollBack => (0, Some(version)),
            BlockChange::RollBackTo(keep) => (keep as usize, None),
        };
        let before = owner.clone();
        let keep = keep.min(block.images.len());
        let rights = Arc::make_mut(&mut self.rights);
        for image in block.images.split_off(keep).into_iter().rev() {
            match image.is_of_cluster() {
                true => put_back_rights(rights, image),
                false => owner.put_back(image, &block.places, changed),
            }
        }
        let here = spaces(owner);
        let gone = spaces(&before).into_iter();
        block.kept.extend(gone);
        block.kept.retain(|id, _| !here.contains_key(id));
        match change {
            BlockChange::RollBackTo(_) => owner.blocks.push(block),
            _ => applied.dropped = block.kept.into_keys().collect(),
        }
        Ok(applied)
    }

    /// The session whose open block stands in the way of these commands of another one.
    pub fn blocked_by<'a>(
        &self,
        commands: impl Iterator<Item = &'a Command> + Clone,
        asker: &Asker,
    ) -> Option<i32> {
        let mut ends = commands.clone();
        if self.open_blocks == 0 || ends.all(|it| matches!(it, Command::Block { .. })) {
            return None;
        }
        let mut next = self.clone();
        for command in commands {
            // A command that fails tells its error itself.
            next = next.apply_by(command, &asker.by).ok()?.0;
        }
        let of_rights = images_of_rights(&self.rights, &next.rights);
        let is_own = |block: &OpenBlock| block.session == asker.session;
        for (name, content) in &self.databases {
            let others = content.blocks.iter();
            let others = others.filter(|block| !(is_own(block) && asker.block.is_some()));
            let others: Vec<&OpenBlock> = others.collect();
            let Some(first) = others.first() else {
                continue;
            };
            let Some(later) = next.databases.get(name) else {
                return Some(first.session);
            };
            let mut found = images(content, later);
            let is_locked = |block: &OpenBlock, image: &Image| match image {
                Image::Table(_, Some(table)) => block.locks().any(|(of, ..)| of == table.id),
                _ => false,
            };
            let is_private = content.is_alike(later) && found.iter().all(Image::is_private);
            found.extend(of_rights.iter().cloned());
            for block in others {
                if !is_own(block) && found.iter().any(|image| is_locked(block, image)) {
                    return Some(block.session);
                }
                if block.only_locks() {
                    continue;
                }
                // What a session makes for itself may use a type that a block has changed.
                let meets = |image: &Image| {
                    let mut known = block.images.iter();
                    known.any(|known| known.is_same_object(image))
                };
                let is_type = |it: &Image| matches!(it, Image::Enum(..) | Image::Domain(..));
                let types = block.images.iter().any(is_type);
                let changes = found.iter().any(|image| !image.is_of_cluster());
                let free = is_own(block) || (is_private && !types) || !changes;
                if !free || found.iter().any(meets) {
                    return Some(block.session);
                }
            }
        }
        None
    }
}

impl Database {
    /// Whether everything is alike of which no images are made.
    fn is_alike(&self, other: &Database) -> bool {
        let facts = |it: &Database| (it.id, it.protocol, it.execution, it.connection_limit);
        self.name == other.name && facts(self) == facts(other) && self.switching == other.switching
    }
}

fn not_undone() -> SqlError {
    let message = "this schema change cannot be undone and is not supported in a transaction block";
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .hint("Run the statement outside of a block.")
}

fn undone() -> SqlError {
    let message = "the schema changes of the transaction were undone";
    SqlError::new(SqlState::OBJECT_NOT_READY, message)
        .detail("The node of the session was out of reach for the node that orders schema changes.")
        .hint("Run the whole transaction again.")
}
