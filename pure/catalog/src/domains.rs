//! Domains: types with a default and conditions of their own. A value of a domain is one of the
//! type below it; a column keeps the number of its domain beside that type.

use crate::apply::skip_or_fail;
use crate::command::{Applied, CatalogError};
use crate::desc::*;
use crate::drop_types::{Users, ended, pass_over};
use crate::enums::no_type;
use crate::functions::Body;
use crate::names;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::full_name::{beside, own};
use base::{SqlError, SqlState, Type};
use serde::{Deserialize, Serialize};

/// Stands for the conditions of all domains of a table where one constraint is looked at.
pub const DOMAINS: &str = "$domains";

/// A domain.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Domain {
    /// Its number; also its oid. The array of it would have the next one.
    pub id: u32,
    /// Its full name.
    pub name: String,
    /// The type of its values: below all domains.
    pub ty: Type,
    /// The domain that it is over, whose conditions its values meet, too.
    pub over: Option<u32>,
    /// The default of columns that have none of their own, as kept text.
    pub default: Option<String>,
    /// No value is NULL.
    pub not_null: bool,
    /// What its values meet.
    pub checks: Vec<DomainCheck>,
}

/// A condition of a domain.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DomainCheck {
    /// Its number; also its oid.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The condition, as kept text over `value`.
    pub expression: String,
}

/// A change of a domain.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "fields are named like what they describe")]
pub enum DomainChange {
    /// Names of conditions may be empty.
    Create(Domain),
    Drop {
        names: Vec<String>,
        if_exists: bool,
        cascade: bool,
    },
    Default {
        name: String,
        default: Option<String>,
    },
    NotNull {
        name: String,
        not_null: bool,
    },
    AddCheck {
        name: String,
        check: DomainCheck,
    },
    DropCheck {
        name: String,
        constraint: String,
        if_exists: bool,
    },
    RenameCheck {
        name: String,
        from: String,
        to: String,
    },
    /// Another full name: of another schema, too.
    Rename {
        name: String,
        to: String,
    },
}

impl Domain {
    /// Its kept texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &String> {
        let checks = self.checks.iter().map(|check| &check.expression);
        checks.chain(&self.default)
    }

    /// As messages show it.
    pub fn shown(&self) -> String {
        beside(&self.name, &names::quoted(own(&self.name)))
    }

    /// Whether it has a condition of this name.
    pub fn has(&self, constraint: &str) -> bool {
        self.checks.iter().any(|check| check.name == constraint)
    }

    /// Gives a condition a name, if it has none.
    ///
    /// # Errors
    /// 42710 for the name of another one.
    pub fn named(&self, mut check: DomainCheck) -> Result<DomainCheck, CatalogError> {
        if check.name.is_empty() {
            let taken = |name: &str| self.has(name);
            check.name = names::choose(own(&self.name), &[], "check", taken);
        }
        if self.has(&check.name) {
            let (name, domain) = (&check.name, own(&self.name));
            let message = format!("constraint \"{name}\" for domain \"{domain}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
        }
        Ok(check)
    }

    /// There is no such condition.
    pub fn no_constraint(&self, constraint: &str) -> SqlError {
        let domain = own(&self.name);
        let message = format!("constraint \"{constraint}\" of domain \"{domain}\" does not exist");
        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
    }
}

impl Database {
    /// The domain of this number.
    pub fn domain_by_id(&self, id: u32) -> Option<&Arc<Domain>> {
        self.domains.values().find(|domain| domain.id == id)
    }

    /// A domain and those that it is over, the lowest one last.
    pub fn domain_and_below(&self, id: u32) -> impl Iterator<Item = &Arc<Domain>> {
        let first = self.domain_by_id(id);
        core::iter::successors(first, |domain| self.domain_by_id(domain.over?))
    }

    /// Whether a domain is this one, or over it.
    fn is_over(&self, domain: u32, id: u32) -> bool {
        self.domain_and_below(domain).any(|below| below.id == id)
    }

    /// The columns of a domain, and of those over it, as (table, column).
    pub fn domain_columns(&self, id: u32) -> Vec<(String, String)> {
        self.columns_where(&|column| column.domain.is_some_and(|own| self.is_over(own, id)))
    }

    /// Whether no value of a domain is NULL, by its own words or those of one below it.
    pub fn is_never_null(&self, id: u32) -> bool {
        self.domain_and_below(id).any(|domain| domain.not_null)
    }

    /// Whether values of a domain have conditions to meet.
    pub fn has_conditions(&self, id: u32) -> bool {
        let mut all = self.domain_and_below(id);
        all.any(|domain| domain.not_null || !domain.checks.is_empty())
    }

    /// What depends on a domain, as sentences name it.
    fn domain_users(&self, domain: &Domain) -> Vec<String> {
        let columns = self.domain_columns(domain.id);
        let columns = columns.iter();
        let mut users: Vec<String> = columns
            .map(|(table, column)| format!("column {column} of table {table}"))
            .collect();
        let over = self.domains.values();
        let over = over.filter(|other| other.over == Some(domain.id));
        users.extend(over.map(|other| format!("type {}", other.shown())));
        let casts = |text: &String| names::has_word(text, own(&domain.name));
        for table in self.tables.values() {
            let checks = table.checks.iter().map(|check| &check.expression);
            let columns = table.columns.iter();
            let texts = columns.flat_map(|column| column.default.iter().chain(&column.generated));
            if checks.chain(texts).any(casts) {
                users.push(format!("table {}", table.name));
            }
        }
        let views = self.views.values().filter(|view| casts(&view.query));
        users.extend(views.map(|view| format!("view {}", view.name)));
        let stored = self.stored.values().map(|stored| &stored.view);
        let stored = stored.filter(|view| casts(&view.query));
        users.extend(stored.map(|view| format!("materialized view {}", view.name)));
        // A body of the SQL standard keeps what it uses; one that is a text does not.
        let functions = self
            .all_functions()
            .filter(|function| match &function.body {
                Body::Text(_) => false,
                Body::Parsed { statements, .. } => statements.iter().any(casts),
            });
        users.extend(functions.map(|user| format!("{} {}", user.noun(), user.signature())));
        for (table, policy) in self.policies() {
            let name = own(&domain.name);
            let mut conditions = policy.using.iter().chain(&policy.check);
            if conditions.any(|one| names::has_word(&one.text, name)) {
                users.push(format!("policy {} on table {}", policy.name, table.name));
            }
        }
        users
    }

    /// Plans over the columns of a domain are made again when it has changed.
    fn touch_domain(&mut self, id: u32, version: u64) {
        for (name, _) in self.domain_columns(id) {
            if let Some(table) = self.tables.get_mut(&name) {
                Arc::make_mut(table).changed = version;
            }
        }
    }
}

impl Catalog {
    pub(crate) fn change_domains(
        &mut self,
        database: &str,
        change: &DomainChange,
    ) -> Result<Applied, CatalogError> {
        match change {
            DomainChange::Create(domain) => self.create_domain(database, domain),
            DomainChange::Drop {
                names,
                if_exists,
                cascade,
            } => self.drop_domains(database, names, *if_exists, *cascade),
            DomainChange::DropCheck {
                name,
                constraint,
                if_exists,
            } => self.drop_domain_check(database, name, constraint, *if_exists),
            _ => self.alter_domain(database, change),
        }
    }

    /// Removes domains and enum types, the domains first: they may be over the others.
    pub(crate) fn drop_types(
        &mut self,
        database: &str,
        names: Vec<String>,
        cascade: bool,
    ) -> Result<(), CatalogError> {
        let here = self.database_mut(database)?;
        let is_domain = |name: &String| here.domains.contains_key(name);
        let (domains, enums): (Vec<_>, Vec<_>) = names.into_iter().partition(is_domain);
        self.drop_domains(database, &domains, true, cascade)?;
        if !enums.is_empty() {
            self.drop_enums(database, &enums, false, cascade)?;
        }
        Ok(())
    }

    fn create_domain(&mut self, database: &str, domain: &Domain) -> Result<Applied, CatalogError> {
        let id = self.next_number();
        // The number of the array.
        self.next_number();
        let mut created = Domain {
            id,
            checks: Vec::new(),
            ..domain.clone()
        };
        let owner = self.database_mut(database)?;
        if owner.has_type_of_users(&domain.name) {
            return Err(exists(&domain.name));
        }
        owner.check_type(domain.ty)?;
        if let Some(below) = domain.over
            && owner.domain_by_id(below).is_none()
        {
            let message = format!("type with OID {below} does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        }
        for check in &domain.checks {
            let mut check = created.named(check.clone())?;
            check.id = self.next_number();
            created.checks.push(check);
        }
        let owner = self.database_mut(database)?;
        owner.domains.insert(domain.name.clone(), Arc::new(created));
        Ok(Applied::default())
    }

    fn drop_domains(
        &mut self,
        database: &str,
        all: &[String],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Applied, CatalogError> {
        let mut applied = Applied::default();
        let mut gone = 0;
        for name in all {
            let owner = self.database_mut(database)?;
            let Some(found) = owner.domains.get(name).cloned() else {
                if owner.enums.contains_key(name) {
                    let message = format!("\"{}\" is not a domain", own(name));
                    return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
                }
                pass_over(no_type(name), if_exists, &mut applied)?;
                continue;
            };
            if cascade {
                let columns = owner.domain_columns(found.id);
                self.drop_columns_of_type(database, &columns, &mut applied)?;
            }
            let owner = self.database_mut(database)?;
            let users = Users {
                shown: found.shown(),
                tag: "DROP DOMAIN",
                users: owner.domain_users(&found),
            };
            users.refuse(cascade)?;
            owner.domains.remove(name);
            gone += 1;
        }
        Ok(ended(applied, gone))
    }

    fn drop_domain_check(
        &mut self,
        database: &str,
        name: &str,
        constraint: &str,
        if_exists: bool,
    ) -> Result<Applied, CatalogError> {
        let version = self.version;
        let owner = self.database_mut(database)?;
        let found = owner.domains.get(name).ok_or_else(|| no_type(name))?;
        let mut found = (**found).clone();
        if !found.has(constraint) {
            let message = found.no_constraint(constraint).fields().message.clone();
            return skip_or_fail(if_exists, SqlState::UNDEFINED_OBJECT, message);
        }
        found.checks.retain(|check| check.name != constraint);
        owner.touch_domain(found.id, version);
        owner.domains.insert(name.to_string(), Arc::new(found));
        Ok(Applied::default())
    }

    fn alter_domain(
        &mut self,
        database: &str,
        change: &DomainChange,
    ) -> Result<Applied, CatalogError> {
        let number = self.next_number();
        let version = self.version;
        let owner = self.database_mut(database)?;
        let name = change.name();
        let found = owner.domains.get(name).ok_or_else(|| no_type(name))?;
        let mut found = (**found).clone();
        match change {
            DomainChange::Default { default, .. } => found.default = default.clone(),
            DomainChange::NotNull { not_null, .. } => found.not_null = *not_null,
            DomainChange::AddCheck { check, .. } => {
                let mut check = found.named(check.clone())?;
                check.id = number;
                found.checks.push(check);
            }
            DomainChange::RenameCheck { from, to, .. } => {
                if found.has(to) {
                    let domain = own(&found.name);
                    let message = format!("constraint \"{to}\" for domain {domain} already exists");
                    return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
                }
                let missing = found.no_constraint(from);
                let mut checks = found.checks.iter_mut();
                let check = checks.find(|check| check.name == *from);
                check.ok_or(missing)?.name = to.clone();
            }
            DomainChange::Rename { to, .. } => {
                if owner.has_type_of_users(to) {
                    return Err(exists(to));
                }
                let mut users = owner.domain_users(&found);
                users.retain(|user| !user.starts_with("column ") && !user.starts_with("type "));
                if let Some(user) = users.first() {
                    let shown = found.shown();
                    let message = format!("renaming type {shown}, which {user} may use, is not");
                    let state = SqlState::FEATURE_NOT_SUPPORTED;
                    return Err(SqlError::new(state, message + " supported")
                        .hint("Drop that first, and create it again."));
                }
                owner.domains.remove(name);
                found.name = to.clone();
            }
            DomainChange::Create(_)
            | DomainChange::Drop { .. }
            | DomainChange::DropCheck { .. } => {
                unreachable!("these have places of their own")
            }
        }
        owner.touch_domain(found.id, version);
        owner.domains.insert(found.name.clone(), Arc::new(found));
        Ok(Applied::default())
    }
}

impl DomainChange {
    /// The domain that is changed; empty for those that name several.
    pub(crate) fn name(&self) -> &str {
        match self {
            DomainChange::Create(domain) => &domain.name,
            DomainChange::Drop { .. } => "",
            DomainChange::Default { name, .. }
            | DomainChange::NotNull { name, .. }
            | DomainChange::AddCheck { name, .. }
            | DomainChange::DropCheck { name, .. }
            | DomainChange::RenameCheck { name, .. }
            | DomainChange::Rename { name, .. } => name,
        }
    }
}

impl Database {
    /// Whether a type, or a relation, has this name.
    pub(crate) fn has_type_of_users(&self, name: &str) -> bool {
        self.type_named(name).is_some()
            || self.domains.contains_key(name)
            || self.has_relation(name)
    }
}

fn exists(name: &str) -> SqlError {
    let message = format!("type \"{}\" already exists", own(name));
    SqlError::new(SqlState::DUPLICATE_OBJECT, message)
}
