//! Composite types: their attributes, changes of these, and values from their texts.
//!
//! A composite type is kept beside the enum types, with attributes in place of labels. Values carry
//! the types of their fields ([`base::Record`]), so attributes stay as they are while a column has
//! such values.

use crate::command::{Applied, CatalogError};
use crate::desc::*;
use crate::drop_types::pass_over;
use crate::enums::{EnumType, kept, no_type};
use crate::names;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::full_name::own;
use base::limits::COLUMNS_MAX;
use base::record::{ANONYMOUS, RECORD_DEPTH_MAX, can_be_field, too_deep};
use base::zone::Zone;
use base::{ArrayKind, Datum, Record, SqlError, SqlState, Type, text};
use serde::{Deserialize, Serialize};

/// An attribute of a composite type.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its type, with modifiers.
    pub ty: Type,
}

/// A change of the attributes of a composite type.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "fields are named like what they describe")]
pub enum AttributeChange {
    Add(Attribute),
    Drop {
        name: String,
        if_exists: bool,
    },
    /// Another type.
    Alter(Attribute),
    Rename {
        from: String,
        to: String,
    },
}

impl EnumType {
    /// The type of its values.
    pub fn ty(&self) -> Type {
        match self.attributes {
            Some(_) => Type::Composite(self.id),
            None => Type::Enum(self.id),
        }
    }

    /// The oid of its row in pg_class, if it is a composite type.
    pub fn class_id(&self) -> Option<u32> {
        self.attributes.as_ref().map(|_| self.id + 2)
    }

    /// The record of these values, which are of the types of the attributes or become them.
    ///
    /// # Errors
    /// 22001 and its like for values that do not fit; 54001 for records that nest too deeply.
    pub fn record(&self, values: Vec<Datum>) -> Result<Datum, SqlError> {
        let attributes = self.attributes.as_deref().unwrap_or_default();
        let types: Vec<Type> = attributes.iter().map(|attribute| attribute.ty).collect();
        let record = Record::new(&types, values).ok_or_else(too_deep)?;
        Ok(Datum::Record(Box::new(record)))
    }
}

fn refused(message: String) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

impl Database {
    /// The attributes of a composite type.
    pub fn attributes_of(&self, ty: Type) -> Option<&[Attribute]> {
        match ty {
            Type::Composite(id) => self.enum_by_id(id)?.attributes.as_deref(),
            _ => None,
        }
    }

    /// The composite type of a value.
    ///
    /// # Errors
    /// 0A000 for `record`, which has no attributes of its own; 42704 if it is gone.
    pub fn composite(&self, id: u32) -> Result<(&EnumType, &[Attribute]), SqlError> {
        if id == ANONYMOUS {
            let message = "input of anonymous composite types is not implemented";
            return Err(refused(message.into()));
        }
        let found = self.enum_by_id(id);
        let attributes = found.and_then(|found| Some((&**found, found.attributes.as_deref()?)));
        attributes.ok_or_else(|| no_type(&format!("with OID {id}")))
    }

    /// Whether a text of the type means another value in another zone.
    pub fn reads_zone(&self, ty: Type) -> bool {
        match ty.element().unwrap_or(ty) {
            Type::Timetz(_) => true,
            ty if ty.has_moments() => true,
            ty => {
                let mut attributes = self.attributes_of(ty).unwrap_or_default().iter();
                attributes.any(|attribute| self.reads_zone(attribute.ty))
            }
        }
    }

    /// A value of a composite type from its text.
    ///
    /// # Errors
    /// 22P02 and what reading the fields raises.
    pub fn read_record(
        &self,
        id: u32,
        written: &str,
        zone: Option<&Zone>,
    ) -> Result<Datum, SqlError> {
        let (found, attributes) = self.composite(id)?;
        let fields = text::read_record(written, attributes.len())?;
        let values = attributes
            .iter()
            .zip(fields)
            .map(|(attribute, field)| match field {
                Some(field) => self.read_field(attribute.ty, &field, zone),
                None => Ok(Datum::Null),
            });
        found.record(values.collect::<Result<_, _>>()?)
    }

    fn read_field(&self, ty: Type, written: &str, zone: Option<&Zone>) -> Result<Datum, SqlError> {
        let label = |id: u32, label: &str| {
            let found = self.enum_by_id(id);
            let found = found.ok_or_else(|| no_type(&format!("with OID {id}")))?;
            found.place_of(label).map(Datum::Int)
        };
        match ty {
            Type::Enum(id) => label(id, written),
            Type::Composite(id) => self.read_record(id, written, zone),
            Type::Array(ArrayKind::Enum(id)) => {
                let texts = text::parse(Type::Array(ArrayKind::Text), written)?;
                texts.try_map_items(|item| match item.as_str() {
                    Some(text) => label(id, text),
                    None => Ok(Datum::Null),
                })
            }
            _ => {
                let plain = ty.without_modifiers();
                let value = match zone {
                    Some(zone) => text::parse_in(zone, plain, written)?,
                    None => text::parse(plain, written)?,
                };
                text::fit(ty, value)
            }
        }
    }

    /// # Errors
    /// 42701 for a name that is there twice, 54011 for too many attributes, 0A000 for types that
    /// they cannot have, 54001 if they nest too deeply.
    pub(crate) fn check_attributes(&self, attributes: &[Attribute]) -> Result<(), CatalogError> {
        if attributes.len() > COLUMNS_MAX {
            let message = format!("composite types can have at most {COLUMNS_MAX} attributes");
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        let mut seen = BTreeSet::new();
        for attribute in attributes {
            let Attribute { name, ty } = attribute;
            if !seen.insert(name) {
                let message = format!("column \"{name}\" specified more than once");
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
            self.check_type(*ty)?;
            let reg = matches!(ty.element().unwrap_or(*ty), Type::Reg(_));
            if reg || !can_be_field(*ty) || ty.user_id() == Some(ANONYMOUS) {
                let ty = ty.base_name();
                let message = format!("attribute \"{name}\" of type {ty} is not supported");
                return Err(refused(message));
            }
        }
        match self.depth_of(attributes) > RECORD_DEPTH_MAX {
            true => Err(too_deep()),
            false => Ok(()),
        }
    }

    fn depth_of(&self, attributes: &[Attribute]) -> u8 {
        let inner = attributes.iter().map(|attribute| {
            let inner = self.attributes_of(attribute.ty);
            inner.map_or(0, |inner| self.depth_of(inner))
        });
        1 + inner.max().unwrap_or(0)
    }

    /// Attributes of this type, as (composite type, attribute).
    pub(crate) fn attributes_with(&self, id: u32) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for one in self.enums.values() {
            for attribute in one.attributes.iter().flatten() {
                if attribute.ty.user_id() == Some(id) {
                    found.push((one.name.clone(), attribute.name.clone()));
                }
            }
        }
        found
    }

    /// # Errors
    /// 0A000 if a column, or an attribute of another type, has values of the type.
    fn check_unused(&self, of: &EnumType) -> Result<(), CatalogError> {
        let columns = self.columns_where(&|column| column.ty.user_id() == Some(of.id));
        let attributes = self.attributes_with(of.id);
        let Some((relation, name)) = columns.first().or(attributes.first()) else {
            return Ok(());
        };
        let (of, relation) = (own(&of.name), own(relation));
        let message =
            format!("cannot alter type \"{of}\" because column \"{relation}.{name}\" uses it");
        Err(refused(message).hint("Change the column to another type first."))
    }
}

impl EnumType {
    fn attribute_at(&self, name: &str) -> Result<usize, SqlError> {
        let mut attributes = self.attributes.iter().flatten();
        attributes.position(|one| one.name == name).ok_or_else(|| {
            let message = format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                own(&self.name)
            );
            SqlError::new(SqlState::UNDEFINED_COLUMN, message)
        })
    }

    fn refuse_attribute(&self, name: &str) -> Result<(), CatalogError> {
        if self.attribute_at(name).is_err() {
            return Ok(());
        }
        let of = own(&self.name);
        let message = format!("column \"{name}\" of relation \"{of}\" already exists");
        Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message))
    }

    /// # Errors
    /// 42P01 if it is no composite type.
    fn attributes_mut(&mut self) -> Result<&mut Vec<Attribute>, SqlError> {
        let message = format!("relation \"{}\" does not exist", own(&self.name));
        let none = SqlError::new(SqlState::UNDEFINED_TABLE, message);
        self.attributes.as_mut().ok_or(none)
    }
}

impl Catalog {
    /// Changes attributes; `found` is the type, which takes the place of the one before.
    pub(crate) fn change_attributes(
        owner: &mut Database,
        found: &mut EnumType,
        changes: &[AttributeChange],
    ) -> Result<Applied, CatalogError> {
        let mut applied = Applied::default();
        found.attributes_mut()?;
        for change in changes {
            match change {
                AttributeChange::Add(attribute) => {
                    found.refuse_attribute(&attribute.name)?;
                    owner.check_unused(found)?;
                    found.attributes_mut()?.push(attribute.clone());
                }
                AttributeChange::Drop { name, if_exists } => match found.attribute_at(name) {
                    Ok(at) => {
                        owner.check_unused(found)?;
                        found.attributes_mut()?.remove(at);
                    }
                    Err(missing) => pass_over(missing, *if_exists, &mut applied)?,
                },
                AttributeChange::Alter(attribute) => {
                    let at = found.attribute_at(&attribute.name)?;
                    owner.check_unused(found)?;
                    found.attributes_mut()?[at].ty = attribute.ty;
                }
                AttributeChange::Rename { from, to } => {
                    let at = found.attribute_at(from)?;
                    found.refuse_attribute(to)?;
                    let named = |text: &str| names::has_word(text, from);
                    if let Some(user) = owner.text_with(&named, found) {
                        return Err(kept(&format!("the attribute \"{from}\""), &user));
                    }
                    found.attributes_mut()?[at].name = to.clone();
                }
            }
        }
        // A type that it is made of may be one that is made of it.
        owner
            .enums
            .insert(found.name.clone(), Arc::new(found.clone()));
        let attributes = found.attributes.clone().unwrap_or_default();
        if owner.holds_itself(&attributes, found.id) {
            let message = format!(
                "composite type {} cannot be made a member of itself",
                own(&found.name)
            );
            return Err(SqlError::new(SqlState(*b"42P16"), message));
        }
        owner.check_attributes(&attributes)?;
        Ok(applied)
    }
}

impl Database {
    fn holds_itself(&self, attributes: &[Attribute], id: u32) -> bool {
        attributes.iter().any(|attribute| {
            let ty = attribute.ty.element().unwrap_or(attribute.ty);
            // The type itself is found before its attributes are looked at: this ends.
            ty == Type::Composite(id)
                || self
                    .attributes_of(ty)
                    .is_some_and(|inner| self.holds_itself(inner, id))
        })
    }
}
