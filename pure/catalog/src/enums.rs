//! Enum types, and composite ones beside them: their labels, what depends on them, and the names
//! that only the catalog knows.
//!
//! A value is stored as the place of its label, a number. Places leave gaps, so that a label that
//! comes between two others takes none of theirs and no row is written again. A column refers to
//! its type by number ([`base::Type::Enum`]), so that a type and its labels can get other names.

use crate::apply::{no_relation, skip_or_fail};
use crate::command::{Applied, CatalogError};
use crate::composite::{Attribute, AttributeChange};
use crate::desc::*;
use crate::drop_types::{Users, ended, pass_over};
use crate::names;
use crate::schemas::mark;
use crate::views::View;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::full_name::{beside, full, own, split};
use base::limits::NAME_BYTES_MAX;
use base::record::ANONYMOUS;
use base::types::UNNAMED;
use base::{SqlError, SqlState, Type};
use serde::{Deserialize, Serialize};

/// Distance of two labels that were added one behind the other. Halved by each label between
/// them, it lasts for 24 labels at the same place.
const GAP: i64 = 1 << 24;

/// An enum type.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EnumType {
    /// Its number; also its oid. The array of it has the next one.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its labels in their order.
    pub labels: Vec<Label>,
    /// Of a composite type: its attributes in their order, and there are no labels.
    pub attributes: Option<Vec<Attribute>>,
}

/// A label of an enum type.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Label {
    /// Its oid.
    pub id: u32,
    /// What values are stored as; grows along the order.
    pub place: i64,
    /// The text.
    pub text: String,
    /// ALTER TYPE adds it: shown, but not yet to be written. Every node must know a label before
    /// a row has it.
    pub adding: bool,
}

/// A change of an enum type.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "fields are named like what they describe")]
pub enum EnumChange {
    /// A new label, not yet to be written; at the end, or before (`true`) or behind another one.
    AddLabel {
        label: String,
        if_not_exists: bool,
        beside: Option<(bool, String)>,
    },
    /// The label may be written: every node knows it.
    PublishLabel { label: String },
    /// Another text for a label.
    RenameLabel { from: String, to: String },
    /// Another name for the type.
    Rename { to: String },
    /// Changes of the attributes of a composite type.
    Attributes(Vec<AttributeChange>),
}

impl EnumType {
    /// The label with this text that may be written.
    ///
    /// # Errors
    /// 22P02 if there is none.
    pub fn place_of(&self, text: &str) -> Result<i64, SqlError> {
        let mut labels = self.labels.iter();
        let found = labels.find(|label| label.text == text && !label.adding);
        found.map(|label| label.place).ok_or_else(|| {
            let name = shown(&self.name);
            let message = format!("invalid input value for enum {name}: \"{text}\"");
            SqlError::new(SqlState::INVALID_TEXT, message)
        })
    }

    /// The text of the label at a place.
    pub fn label_at(&self, place: i64) -> Option<&str> {
        let at = self
            .labels
            .binary_search_by_key(&place, |label| label.place);
        at.ok().map(|at| self.labels[at].text.as_str())
    }

    fn position(&self, text: &str) -> Result<usize, SqlError> {
        let at = self.labels.iter().position(|label| label.text == text);
        at.ok_or_else(|| {
            let message = format!("\"{text}\" is not an existing enum label");
            SqlError::new(SqlState::INVALID_PARAMETER, message)
        })
    }

    /// Another text for a label, also where it is all of a default.
    fn rename_label(
        &mut self,
        owner: &mut Database,
        from: &str,
        to: &str,
    ) -> Result<(), CatalogError> {
        check_label(to)?;
        let at = self.position(from)?;
        if self.position(to).is_ok() {
            let message = format!("enum label \"{to}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
        }
        owner.relabel(self.id, from, to);
        let literal = names::literal_with(from);
        let means = |text: &str| names::has_word(text, &literal) || names::has_item(text, from);
        if let Some(user) = owner.text_with(&means, self) {
            return Err(kept(&format!("the label \"{from}\""), &user));
        }
        self.labels[at].text = to.into();
        Ok(())
    }

    /// A place before or behind the label at a position, or behind all.
    fn free_place(&self, beside: Option<(bool, usize)>) -> Option<(usize, i64)> {
        let last = self.labels.last().map_or(0, |label| label.place);
        let at = match beside {
            None => self.labels.len(),
            Some((true, at)) => at,
            Some((false, at)) => at + 1,
        };
        if at == self.labels.len() {
            return Some((at, last.checked_add(GAP)?));
        }
        let above = self.labels[at].place;
        let below = match at.checked_sub(1) {
            Some(below) => self.labels[below].place,
            None => above.checked_sub(2 * GAP)?,
        };
        let place = below + (above - below) / 2;
        (place > below).then_some((at, place))
    }
}

/// # Errors
/// 42602 for a label that is too long.
fn check_label(label: &str) -> Result<(), CatalogError> {
    if label.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let message = format!("invalid enum label \"{label}\"");
    Err(SqlError::new(SqlState(*b"42602"), message)
        .detail(format!("Labels must be {NAME_BYTES_MAX} bytes or less.")))
}

impl Database {
    /// The enum type with this oid, or whose array has it.
    pub fn enum_by_id(&self, id: u32) -> Option<&Arc<EnumType>> {
        self.enums.values().find(|found| found.id == id)
    }

    /// The type with this oid, if users made it.
    pub fn type_by_oid(&self, oid: u32) -> Option<Type> {
        let of = |id: u32| self.enum_by_id(id).map(|found| found.ty());
        let array = || of(oid.checked_sub(1)?)?.array_of();
        of(oid).or_else(array)
    }

    /// The type of users with this name; `_name` is the array of it.
    pub fn type_named(&self, name: &str) -> Option<Type> {
        let of = |name: &str| self.enums.get(name).map(|found| found.ty());
        let (schema, last) = split(name);
        let array = || of(&full(schema, last.strip_prefix('_')?))?.array_of();
        of(name).or_else(array)
    }

    /// The text with names in place of the numbers that stand for types of users and for their
    /// values where no catalog is ([`UNNAMED`]).
    pub fn named_types(&self, text: &str) -> String {
        let [begin, end] = UNNAMED;
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(begin) {
            out.push_str(before);
            let Some((inner, behind)) = after.split_once(end) else {
                rest = after;
                continue;
            };
            let (id, place) = match inner.split_once(':') {
                Some((id, place)) => (id, place.parse::<i64>().ok()),
                None => (inner, None),
            };
            let found = id.parse().ok().and_then(|id| self.enum_by_id(id));
            match (found, place) {
                (Some(found), Some(place)) => {
                    out.push_str(found.label_at(place).unwrap_or("???"));
                }
                (Some(found), None) => out.push_str(&shown(&found.name)),
                (None, _) => out.push_str("???"),
            }
            rest = behind;
        }
        out.push_str(rest);
        out
    }

    /// The error with names in place of numbers, as [`Database::named_types`] puts them.
    pub fn named_error(&self, error: SqlError) -> SqlError {
        error.map_texts(UNNAMED[0], &|text| self.named_types(text))
    }

    /// Tables with columns of the type, and these columns.
    fn enum_columns(&self, id: u32) -> Vec<(String, String)> {
        self.columns_where(&|column| column.ty.user_id() == Some(id))
    }

    /// An expression or a view whose text has what the type has for its name or for a label:
    /// where neither the name nor a column of the type is near, it means something else.
    pub(crate) fn text_with(&self, named: &dyn Fn(&str) -> bool, of: &EnumType) -> Option<String> {
        let means =
            |text: &str, near: bool| named(text) && (near || names::has_word(text, own(&of.name)));
        let has = |table: &Table| {
            let mut columns = table.columns.iter();
            columns.any(|column| column.ty.user_id() == Some(of.id))
        };
        let of_table = |table: &Arc<Table>| {
            let near = has(table);
            let checks = table.checks.iter();
            let check = checks
                .filter(|check| means(&check.expression, near))
                .map(|check| format!("constraint {} on table {}", check.name, table.name));
            let columns = table.columns.iter().filter(|column| {
                let default = column.default.as_deref();
                default.is_some_and(|text| means(text, column.ty.user_id() == Some(of.id)))
            });
            let default = columns.map(|column| {
                let (column, table) = (&column.name, &table.name);
                format!("default value for column {column} of table {table}")
            });
            let generated = table.columns.iter().filter(|column| {
                let generated = column.generated.as_deref();
                generated.is_some_and(|text| means(text, near))
            });
            let generated = generated.map(|column| match column.of_index {
                true => format!("index on table {}", table.name),
                false => format!("column {} of table {}", column.name, table.name),
            });
            check.chain(default).chain(generated).next()
        };
        let sees = |view: &View| {
            view.uses
                .iter()
                .any(|used| match self.tables.get(&used.relation) {
                    Some(table) => has(table),
                    None => true,
                })
        };
        let view = || {
            let stored = self.stored.values().map(|stored| &stored.view);
            let mut views = self.views.values().chain(stored);
            let view = views.find(|view| means(&view.query, sees(view)))?;
            Some(format!("view {}", view.name))
        };
        self.tables.values().find_map(of_table).or_else(view)
    }

    /// Whether a new table fits to the types.
    ///
    /// # Errors
    /// 42710 for the name of a type, 42704 for a column whose type is not there any more.
    pub(crate) fn check_types(&self, table: &Table) -> Result<(), CatalogError> {
        let found = self.enums.get(&table.name);
        if found.is_some_and(|found| found.attributes.is_some()) {
            let message = format!("relation \"{}\" already exists", own(&table.name));
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
        }
        if self.enums.contains_key(&table.name) || self.domains.contains_key(&table.name) {
            return Err(type_exists(&table.name).hint(
                "A relation has an associated type of the same name, so you must use a name that \
                 doesn't conflict with any existing type.",
            ));
        }
        let mut columns = table.columns.iter();
        columns.try_for_each(|column| {
            if let Some(id) = column.domain.filter(|id| self.domain_by_id(*id).is_none()) {
                return Err(no_type(&format!("with OID {id}")));
            }
            self.check_type(column.ty)
        })
    }

    /// # Errors
    /// 42704 if a type of a column is not there any more.
    pub(crate) fn check_type(&self, ty: Type) -> Result<(), CatalogError> {
        match ty.user_id() {
            Some(id) if id != ANONYMOUS && self.enum_by_id(id).is_none() => {
                Err(no_type(&format!("with OID {id}")))
            }
            _ => Ok(()),
        }
    }
}

/// There is no such type.
pub(crate) fn no_type(name: &str) -> SqlError {
    let message = match name.starts_with("with OID") {
        true => format!("type {name} does not exist"),
        false => format!("type \"{}\" does not exist", own(name)),
    };
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

fn type_exists(name: &str) -> SqlError {
    let message = format!("type \"{name}\" already exists");
    SqlError::new(SqlState::DUPLICATE_OBJECT, message)
}

/// # Errors
/// 0A000: the text of an expression or a view names what would get another name.
pub(crate) fn kept(what: &str, user: &str) -> SqlError {
    let message = format!("renaming {what}, which {user} may use, is not supported");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .hint("Drop that first, and create it again.")
}

/// A type for people: in quotes where it needs them.
fn shown(name: &str) -> String {
    beside(name, &names::quoted(own(name)))
}

/// A type as a kept text names it.
fn kept_name(name: &str) -> String {
    let (schema, name) = split(name);
    format!("{}.{}", mark(schema), names::quoted(name))
}

impl Catalog {
    /// Another schema for a type.
    pub(crate) fn move_enum(
        &mut self,
        database: &str,
        name: &str,
        to: &str,
    ) -> Result<Applied, CatalogError> {
        let version = self.version;
        let owner = self.database_mut(database)?;
        let mut found = (**owner.enums.get(name).ok_or_else(|| no_type(name))?).clone();
        owner.retitle(name, to, &mut found)?;
        owner.touch_users(found.id, version);
        owner.enums.insert(found.name.clone(), Arc::new(found));
        Ok(Applied::default())
    }

    pub(crate) fn create_enum(
        &mut self,
        database: &str,
        name: &str,
        labels: &[String],
        attributes: Option<&[Attribute]>,
    ) -> Result<Applied, CatalogError> {
        let id = self.next_number();
        // The number of the array.
        self.next_number();
        if attributes.is_some() {
            // That of its relation: `EnumType::class_id`.
            self.next_number();
        }
        let owner = self.database_mut(database)?;
        if owner.has_type_of_users(name) {
            return Err(type_exists(name));
        }
        owner.check_attributes(attributes.unwrap_or_default())?;
        let mut created = EnumType {
            id,
            name: name.to_string(),
            labels: Vec::with_capacity(labels.len()),
            attributes: attributes.map(<[Attribute]>::to_vec),
        };
        let mut seen = BTreeSet::new();
        for (place, label) in (1..).zip(labels) {
            check_label(label)?;
            if !seen.insert(label) {
                let constraint = "pg_enum_typid_label_index";
                let message =
                    format!("duplicate key value violates unique constraint \"{constraint}\"");
                let detail = format!("Key (enumtypid, enumlabel)=({id}, {label}) already exists.");
                return Err(SqlError::new(SqlState::UNIQUE, message).detail(detail));
            }
            created.labels.push(Label {
                id: self.next_number(),
                place: place * GAP,
                text: label.clone(),
                adding: false,
            });
        }
        let owner = self.database_mut(database)?;
        owner.enums.insert(name.to_string(), Arc::new(created));
        Ok(Applied::default())
    }

    pub(crate) fn alter_enum(
        &mut self,
        database: &str,
        name: &str,
        change: &EnumChange,
    ) -> Result<Applied, CatalogError> {
        let label_id = self.next_number();
        let (mut applied, version) = (Applied::default(), self.version);
        let owner = self.database_mut(database)?;
        let of_labels = !matches!(
            change,
            EnumChange::Rename { .. } | EnumChange::Attributes(_)
        );
        let missing = || match change {
            EnumChange::Attributes(_) => no_relation(own(name)),
            _ => no_type(name),
        };
        let mut found = (**owner.enums.get(name).ok_or_else(missing)?).clone();
        if found.attributes.is_some() && of_labels {
            let message = format!("{} is not an enum", shown(name));
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        match change {
            EnumChange::AddLabel {
                label,
                if_not_exists,
                beside,
            } => {
                check_label(label)?;
                if let Ok(at) = found.position(label) {
                    if found.labels[at].adding {
                        // What a crash has cut off goes on.
                        return Ok(Applied::default());
                    }
                    let message = format!("enum label \"{label}\" already exists");
                    return skip_or_fail(*if_not_exists, SqlState::DUPLICATE_OBJECT, message);
                }
                let beside = match beside {
                    Some((before, of)) => Some((*before, found.position(of)?)),
                    None => None,
                };
                let Some((at, place)) = found.free_place(beside) else {
                    let message = format!("no room for another label at this place of \"{name}\"");
                    return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message)
                        .hint("Make a new type and change the columns to it."));
                };
                let label = Label {
                    id: label_id,
                    place,
                    text: label.clone(),
                    adding: true,
                };
                found.labels.insert(at, label);
            }
            EnumChange::PublishLabel { label } => {
                let at = found.position(label)?;
                found.labels[at].adding = false;
            }
            EnumChange::RenameLabel { from, to } => found.rename_label(owner, from, to)?,
            EnumChange::Rename { to } => {
                owner.retitle(name, &beside(name, to), &mut found)?;
            }
            EnumChange::Attributes(changes) => {
                applied = Catalog::change_attributes(owner, &mut found, changes)?;
            }
        }
        owner.touch_users(found.id, version);
        owner.enums.insert(found.name.clone(), Arc::new(found));
        Ok(applied)
    }

    pub(crate) fn drop_enums(
        &mut self,
        database: &str,
        names: &[String],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Applied, CatalogError> {
        let mut applied = Applied::default();
        let mut gone = 0;
        for name in names {
            let owner = self.database_mut(database)?;
            let Some(found) = owner.enums.get(name).cloned() else {
                pass_over(no_type(name), if_exists, &mut applied)?;
                continue;
            };
            if cascade {
                let columns = owner.enum_columns(found.id);
                self.drop_columns_of_type(database, &columns, &mut applied)?;
            }
            let owner = self.database_mut(database)?;
            owner.enum_users(&found).refuse(cascade)?;
            owner.enums.remove(name);
            gone += 1;
        }
        Ok(ended(applied, gone))
    }
}

impl Database {
    /// What depends on an enum type.
    fn enum_users(&self, dropped: &EnumType) -> Users {
        let columns = self.enum_columns(dropped.id);
        let columns = columns.iter();
        let mut users: Vec<String> = columns
            .map(|(table, column)| format!("column {column} of table {table}"))
            .collect();
        let attributes = self.attributes_with(dropped.id);
        let attributes = attributes.iter();
        users.extend(attributes.map(|(of, name)| format!("column {name} of composite type {of}")));
        let views = self.views.values().filter(|view| {
            let mut columns = view.columns.iter();
            columns.any(|column| column.ty.user_id() == Some(dropped.id))
        });
        users.extend(views.map(|view| format!("view {}", view.name)));
        let functions = self.functions_of_enum(dropped.id);
        users.extend(functions.map(|user| format!("{} {}", user.noun(), user.signature())));
        let domains = self.domains.values();
        let domains = domains.filter(|domain| domain.ty.user_id() == Some(dropped.id));
        users.extend(domains.map(|domain| format!("type {}", domain.name)));
        if users.is_empty() {
            let named = |text: &str| names::has_word(text, own(&dropped.name));
            users.extend(self.text_with(&named, dropped));
        }
        Users {
            shown: shown(&dropped.name),
            tag: "DROP TYPE",
            users,
        }
    }

    /// Plans over the columns of a type are made again when it has changed.
    fn touch_users(&mut self, id: u32, version: u64) {
        for table in self.tables.values_mut() {
            let mut columns = table.columns.iter();
            if columns.any(|column| column.ty.user_id() == Some(id)) {
                Arc::make_mut(table).changed = version;
            }
        }
    }

    /// Defaults that are nothing but the label follow it.
    fn relabel(&mut self, id: u32, from: &str, to: &str) {
        let (old, new) = (names::literal_with(from), names::literal_with(to));
        self.change_defaults(&|ty, text| {
            let rest = text.strip_prefix(old.as_str())?;
            let whole = rest.is_empty() || rest.starts_with("::");
            (ty == Type::Enum(id) && whole).then(|| format!("{new}{rest}"))
        });
    }

    /// Defaults that end with a cast to the type follow its name.
    fn retype(&mut self, from: &str, to: &str) {
        let old = format!("'::{}", kept_name(from));
        let new = format!("'::{}", kept_name(to));
        self.change_defaults(&|_, text| Some(format!("{}{new}", text.strip_suffix(&old)?)));
    }

    /// Gives a type another full name.
    fn retitle(&mut self, from: &str, to: &str, found: &mut EnumType) -> Result<(), CatalogError> {
        if self.has_type_of_users(to) {
            return Err(type_exists(to));
        }
        self.retype(from, to);
        let word = own(from);
        if let Some(user) = self.text_with(&|text| names::has_word(text, word), found)
            && !self.is_followed(from, to, found)
        {
            return Err(kept(&format!("type \"{from}\""), &user));
        }
        found.name = to.into();
        self.enums.remove(from);
        Ok(())
    }

    /// Whether a type keeps its last name and every text that has it names the new schema.
    fn is_followed(&self, from: &str, to: &str, found: &EnumType) -> bool {
        if own(from) != own(to) {
            return false;
        }
        let new = kept_name(to);
        let others = |text: &str| names::has_word(&text.replace(&new, ""), own(from));
        self.text_with(&others, found).is_none()
    }

    fn change_defaults(&mut self, change: &dyn Fn(Type, &str) -> Option<String>) {
        for table in self.tables.values_mut() {
            let changed = |column: &Column| change(column.ty, column.default.as_deref()?);
            if !table.columns.iter().any(|column| changed(column).is_some()) {
                continue;
            }
            for column in &mut Arc::make_mut(table).columns {
                if let Some(text) = changed(column) {
                    column.default = Some(text);
                }
            }
        }
    }
}
