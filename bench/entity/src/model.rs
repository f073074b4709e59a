//! Types of entities: columns, ids, groups, generated ids and indexes.
//!
//! A type is either derived from a Rust struct ([`crate::Entity`]) or made at run time, for
//! workloads that are data only. Both are the same to a store.
//!
//! Invariants, checked by [`EntityType::check`] and, for derived types, by the compiler:
//!
//! * the ids are the first columns, at least one, none nullable, none [`Kind::Real`];
//! * the ids of the group are some of the ids;
//! * at most one id is generated, and it is an integer;
//! * the columns of an index are immutable, not nullable and not [`Kind::Real`].

use crate::value::{Kind, Value};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

pub use alloc::borrow::Cow;

/// One column of an entity type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Lower-case letters, digits and `_`, at most [`NAME_BYTES_MAX`] bytes.
    pub name: Cow<'static, str>,
    /// What its values are.
    pub kind: Kind,
    /// Whether [`Value::Null`] is one of them.
    pub nullable: bool,
    /// Whether it is set at creation and never changed: ids, columns of indexes, and what else the
    /// type says.
    pub immutable: bool,
}

/// A secondary key by which entities are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// As a column's name; unique in its type.
    pub name: Cow<'static, str>,
    /// Positions of its columns in [`EntityType::columns`], in the order of the key.
    pub columns: Cow<'static, [usize]>,
}

/// A type of entities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityType {
    /// As a column's name; unique in a [`Schema`].
    pub name: Cow<'static, str>,
    /// The name of the group's root type: the own name, or the parent's `group_name`. Types with
    /// the same one share their groups.
    pub group_name: Cow<'static, str>,
    /// The ids first, in the order of the key.
    pub columns: Cow<'static, [Column]>,
    /// Number of ids; at least 1.
    pub id_count: usize,
    /// Positions of the ids that name the group, in the order of the group's key.
    pub group: Cow<'static, [usize]>,
    /// Position of the id that the store generates; `None`: all ids come from the client.
    pub generated: Option<usize>,
    /// Secondary keys.
    pub indexes: Cow<'static, [Index]>,
}

/// Longest name of a type, a column or an index, in bytes: what every SQL server takes, prefixes
/// included.
pub const NAME_BYTES_MAX: usize = 40;

/// Most columns of a type, and most columns of a key.
pub const COLUMNS_MAX: usize = 100;

/// Longest text or bytes in an id or in a column of an index.
pub const KEY_BYTES_MAX: usize = 255;

impl EntityType {
    /// The ids.
    pub fn ids(&self) -> &[Column] {
        &self.columns[..self.id_count]
    }

    /// Whether the index is part of the entity's group: its columns contain the ids of the group.
    /// Then it is read and changed in the same transaction as the entities; else readers may see
    /// entries of entities that do not exist, and pass over them.
    pub fn is_in_group(&self, index: usize) -> bool {
        let columns = &self.indexes[index].columns;
        self.group.iter().all(|id| columns.contains(id))
    }

    /// Whether an index is outside of the group.
    pub fn has_outer_index(&self) -> bool {
        (0..self.indexes.len()).any(|index| !self.is_in_group(index))
    }

    /// Whether the generated id is one of those that name the group.
    pub fn generates_group(&self) -> bool {
        self.generated.is_some_and(|id| self.group.contains(&id))
    }

    /// The position of the index of this name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.indexes.iter().position(|index| index.name == name)
    }

    /// Whether two types can share a group: the ids that name it are of the same kinds.
    pub fn shares_group(&self, other: &EntityType) -> bool {
        let kinds = |t: &EntityType| -> Vec<Kind> {
            t.group.iter().map(|&id| t.columns[id].kind).collect()
        };
        kinds(self) == kinds(other)
    }

    /// The values of the group's key among the values of an id or a row.
    pub fn group_of<'a>(&'a self, id: &'a [Value]) -> impl Iterator<Item = &'a Value> {
        self.group.iter().map(|&position| &id[position])
    }

    /// Checks the invariants of a type that was made at run time.
    ///
    /// # Errors
    /// What is wrong, in words that name the type and the column.
    pub fn check(&self) -> Result<(), String> {
        let name = &self.name;
        check_name("type", name)?;
        check_name("group", &self.group_name)?;
        self.check_columns()?;
        if self.id_count == 0 || self.id_count > self.columns.len() {
            return Err(format!("type \"{name}\" has no ids"));
        }
        for id in self.ids() {
            check_key(name, id)?;
        }
        if self.group.is_empty() {
            return Err(format!("type \"{name}\" has no group ids"));
        }
        for (n, id) in self.group.iter().enumerate() {
            if *id >= self.id_count || self.group[..n].contains(id) {
                return Err(format!(
                    "type \"{name}\": the ids of the group must be different ids of the type"
                ));
            }
        }
        if let Some(id) = self.generated
            && (id >= self.id_count || self.columns[id].kind != Kind::Int)
        {
            return Err(format!(
                "type \"{name}\": the generated id must be an id of kind int"
            ));
        }
        self.check_indexes()
    }

    fn check_columns(&self) -> Result<(), String> {
        let name = &self.name;
        if self.columns.len() > COLUMNS_MAX {
            return Err(format!(
                "type \"{name}\" has more than {COLUMNS_MAX} columns"
            ));
        }
        for (n, column) in self.columns.iter().enumerate() {
            check_name("column", &column.name)?;
            if self.columns[..n].iter().any(|c| c.name == column.name) {
                return Err(format!(
                    "type \"{name}\" has two columns \"{}\"",
                    column.name
                ));
            }
        }
        Ok(())
    }

    fn check_indexes(&self) -> Result<(), String> {
        let name = &self.name;
        for (n, index) in self.indexes.iter().enumerate() {
            check_name("index", &index.name)?;
            if self.indexes[..n].iter().any(|i| i.name == index.name) {
                return Err(format!(
                    "type \"{name}\" has two indexes \"{}\"",
                    index.name
                ));
            }
            if index.columns.is_empty() {
                return Err(format!(
                    "index \"{}\" of type \"{name}\" has no columns",
                    index.name
                ));
            }
            for (m, &column) in index.columns.iter().enumerate() {
                if index.columns[..m].contains(&column) {
                    return Err(format!(
                        "index \"{}\" of type \"{name}\" has a column twice",
                        index.name
                    ));
                }
                let Some(column) = self.columns.get(column) else {
                    return Err(format!(
                        "index \"{}\" of type \"{name}\" has a column that the type lacks",
                        index.name
                    ));
                };
                check_key(name, column)?;
            }
        }
        Ok(())
    }

    /// Checks that a row fits the columns, the generated id apart.
    ///
    /// # Errors
    /// What is wrong, in words that name the type and the column.
    pub fn check_row(&self, row: &[Value]) -> Result<(), String> {
        if row.len() != self.columns.len() {
            return Err(format!(
                "a row of type \"{}\" has {} values, not {}",
                self.name,
                self.columns.len(),
                row.len()
            ));
        }
        self.check_values(self.columns.iter().zip(row))?;
        let is_key = |n: &usize| {
            *n < self.id_count || self.indexes.iter().any(|index| index.columns.contains(n))
        };
        let keys = (0..row.len()).filter(|&n| is_long(&row[n])).find(is_key);
        keys.map_or(Ok(()), |n| Err(self.too_long(&self.columns[n])))
    }

    fn too_long(&self, column: &Column) -> String {
        format!(
            "column \"{}\" of type \"{}\" is part of a key, and has at most {KEY_BYTES_MAX} bytes",
            column.name, self.name
        )
    }

    /// Checks that values fit the first columns: an id, or the first part of one.
    ///
    /// # Errors
    /// What is wrong, in words that name the type and the column.
    pub fn check_id(&self, id: &[Value], is_whole: bool) -> Result<(), String> {
        if id.len() > self.id_count || (is_whole && id.len() != self.id_count) {
            return Err(format!(
                "an id of type \"{}\" has {} values, not {}",
                self.name,
                self.id_count,
                id.len()
            ));
        }
        self.check_values(self.columns.iter().zip(id))?;
        let long = id.iter().position(is_long);
        long.map_or(Ok(()), |n| Err(self.too_long(&self.columns[n])))
    }

    /// Checks the key of an index.
    ///
    /// # Errors
    /// What is wrong, in words that name the type and the column.
    pub fn check_key(&self, index: usize, key: &[Value]) -> Result<(), String> {
        let Some(index) = self.indexes.get(index) else {
            return Err(format!("type \"{}\" has no such index", self.name));
        };
        if index.columns.len() != key.len() {
            return Err(format!(
                "a key of index \"{}\" of type \"{}\" has {} values, not {}",
                index.name,
                self.name,
                index.columns.len(),
                key.len()
            ));
        }
        let columns = index.columns.iter().map(|&column| &self.columns[column]);
        self.check_values(columns.zip(key))?;
        let long = key.iter().position(is_long);
        long.map_or(Ok(()), |n| {
            Err(self.too_long(&self.columns[index.columns[n]]))
        })
    }

    fn check_values<'a>(
        &self,
        values: impl Iterator<Item = (&'a Column, &'a Value)>,
    ) -> Result<(), String> {
        for (column, value) in values {
            let fits = match value {
                Value::Null => column.nullable,
                Value::Real(value) => column.kind == Kind::Real && value.is_finite(),
                Value::Text(text) => column.kind == Kind::Text && !text.contains('\0'),
                value => value.kind() == Some(column.kind),
            };
            if !fits {
                return Err(format!(
                    "column \"{}\" of type \"{}\" is {}, and cannot be {value}",
                    column.name,
                    self.name,
                    column.kind.name()
                ));
            }
        }
        Ok(())
    }
}

fn is_long(value: &Value) -> bool {
    match value {
        Value::Text(text) => text.len() > KEY_BYTES_MAX,
        Value::Bytes(bytes) => bytes.len() > KEY_BYTES_MAX,
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Real(_) => false,
    }
}

fn check_name(what: &str, name: &str) -> Result<(), String> {
    let mut bytes = name.bytes();
    let starts = bytes.next().is_some_and(|b| b.is_ascii_lowercase());
    let fits = bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if starts && fits && name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    Err(format!(
        "\"{name}\" cannot name a {what}: a lower-case letter, then lower-case letters, digits \
         and _, at most {NAME_BYTES_MAX} bytes"
    ))
}

fn check_key(name: &str, column: &Column) -> Result<(), String> {
    let problem = if column.nullable {
        "is nullable"
    } else if column.kind == Kind::Real {
        "is real"
    } else if !column.immutable {
        "can be changed"
    } else {
        return Ok(());
    };
    Err(format!(
        "column \"{}\" of type \"{name}\" {problem}, and cannot be an id or a column of an index",
        column.name
    ))
}

/// The types that a workload uses: what a store is opened with.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    types: Vec<Arc<EntityType>>,
}

impl Schema {
    /// No types yet.
    pub fn new() -> Schema {
        Schema::default()
    }

    /// Adds a type.
    ///
    /// # Errors
    /// The type breaks an invariant, its name is taken by another type, or its group has another
    /// key than that of a type of the same group. The words say which.
    pub fn add(&mut self, kind: &EntityType) -> Result<(), String> {
        kind.check()?;
        for other in &self.types {
            if **other == *kind {
                return Ok(());
            }
            if other.name == kind.name {
                return Err(format!("two different types are named \"{}\"", kind.name));
            }
            if other.group_name == kind.group_name && !other.shares_group(kind) {
                return Err(format!(
                    "types \"{}\" and \"{}\" share a group, but their group ids differ in kind",
                    other.name, kind.name
                ));
            }
        }
        self.types.push(Arc::new(kind.clone()));
        Ok(())
    }

    /// All types, in the order in which they were added.
    pub fn types(&self) -> &[Arc<EntityType>] {
        &self.types
    }

    /// The position of the type of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.types.iter().position(|kind| kind.name == name)
    }
}

/// The group's name of a type that was derived.
///
/// Panics, when the program is built, for a type that was made at run time.
pub const fn static_group_name(kind: &'static EntityType) -> &'static str {
    match &kind.group_name {
        Cow::Borrowed(name) => name,
        Cow::Owned(_) => panic!("the parent's type is not derived"),
    }
}

/// [`EntityType::shares_group`] of types that were derived, for the compiler.
pub const fn shares_static_group(a: &'static EntityType, b: &'static EntityType) -> bool {
    let (Cow::Borrowed(of_a), Cow::Borrowed(of_b)) = (&a.group, &b.group) else {
        return false;
    };
    let (Cow::Borrowed(columns_a), Cow::Borrowed(columns_b)) = (&a.columns, &b.columns) else {
        return false;
    };
    if of_a.len() != of_b.len() {
        return false;
    }
    let mut n = 0;
    while n < of_a.len() {
        if columns_a[of_a[n]].kind as u8 != columns_b[of_b[n]].kind as u8 {
            return false;
        }
        n += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &'static str, kind: Kind) -> Column {
        Column {
            name: name.into(),
            kind,
            nullable: false,
            immutable: name != "note",
        }
    }

    fn valid() -> EntityType {
        EntityType {
            name: "thing".into(),
            group_name: "thing".into(),
            columns: Cow::Owned(alloc::vec![
                column("id", Kind::Int),
                column("part", Kind::Text),
                column("note", Kind::Text),
                column("color", Kind::Int),
            ]),
            id_count: 2,
            group: Cow::Borrowed(&[1]),
            generated: Some(0),
            indexes: Cow::Owned(alloc::vec![Index {
                name: "color".into(),
                columns: Cow::Borrowed(&[3]),
            }]),
        }
    }

    #[test]
    fn types_made_at_run_time_are_checked() {
        assert_eq!(valid().check(), Ok(()));
        type Change = fn(&mut EntityType);
        let changes: [(Change, &str); 14] = [
            (|t| t.name = "Thing".into(), "cannot name a type"),
            (|t| t.group_name = "".into(), "cannot name a group"),
            (|t| t.id_count = 0, "no ids"),
            (|t| t.id_count = 5, "no ids"),
            (|t| t.columns.to_mut()[0].nullable = true, "is nullable"),
            (|t| t.columns.to_mut()[1].kind = Kind::Real, "is real"),
            (
                |t| t.columns.to_mut()[3].immutable = false,
                "can be changed",
            ),
            (|t| t.columns.to_mut()[3].name = "id".into(), "two columns"),
            (|t| t.group = Cow::Borrowed(&[]), "no group ids"),
            (|t| t.group = Cow::Borrowed(&[2]), "different ids"),
            (|t| t.group = Cow::Borrowed(&[1, 1]), "different ids"),
            (|t| t.generated = Some(1), "of kind int"),
            (
                |t| t.indexes.to_mut()[0].columns = Cow::Borrowed(&[9]),
                "lacks",
            ),
            (
                |t| t.indexes.to_mut()[0].columns = Cow::Borrowed(&[]),
                "no columns",
            ),
        ];
        for (change, words) in changes {
            let mut kind = valid();
            change(&mut kind);
            let problem = kind.check().unwrap_err();
            assert!(problem.contains(words), "{problem}");
        }
    }

    #[test]
    fn types_of_a_schema_fit_together() {
        let mut schema = Schema::new();
        schema.add(&valid()).unwrap();
        schema.add(&valid()).unwrap();
        assert_eq!(schema.types().len(), 1);
        let mut other = valid();
        other.generated = None;
        assert!(schema.add(&other).unwrap_err().contains("named"));
        other.name = "other".into();
        other.group = Cow::Borrowed(&[0]);
        assert!(schema.add(&other).unwrap_err().contains("differ in kind"));
        other.group_name = "other".into();
        schema.add(&other).unwrap();
        assert_eq!(schema.position("other"), Some(1));
    }

    #[test]
    fn rows_must_fit_their_type() {
        let kind = valid();
        let row =
            |id: Value, part: Value, note: Value| kind.check_row(&[id, part, note, Value::Int(1)]);
        let text = |length: usize| Value::Text("x".repeat(length));
        assert_eq!(row(Value::Int(1), text(255), text(9_999)), Ok(()));
        assert!(row(Value::Null, text(1), text(1)).is_err());
        assert!(row(Value::Int(1), text(256), text(1)).is_err());
        assert!(row(Value::Int(1), text(1), Value::Real(1.0)).is_err());
        assert!(row(Value::Int(1), text(1), Value::from("a\0b")).is_err());
        assert!(kind.check_row(&[]).is_err());
        assert!(kind.check_id(&[Value::Int(1)], true).is_err());
        assert_eq!(kind.check_id(&[Value::Int(1)], false), Ok(()));
        assert!(kind.check_key(0, &[]).is_err() && kind.check_key(1, &[]).is_err());
    }
}
