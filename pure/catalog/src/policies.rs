//! Row security: which rows of a table a role sees and writes, by policies.
//!
//! It stands beside the tables, by their numbers: what makes or copies a table need not know of
//! it, and a database without an entry has no row security at all. The conditions are kept as
//! text, with what they use, as the queries of views are.

use crate::apply::{no_relation, skip_or_fail};
use crate::command::{Applied, CatalogError};
use crate::desc::*;
use crate::names;
use crate::views::{View, ViewUse};
use ::rights::{By, RoleId, RoleName, Target};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::full_name::own;
use base::{SqlError, SqlState, TableId};
use serde::{Deserialize, Serialize};

/// Most policies of a table: a statement binds all that concern it.
const POLICIES_MAX: usize = 100;

/// Row security of one table.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RowSecurity {
    /// The policies are asked.
    pub enabled: bool,
    /// The owner of the table is asked, too.
    pub forced: bool,
    /// By name.
    pub policies: Vec<Arc<Policy>>,
}

/// The statements that a policy is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum PolicyCommand {
    All,
    Select,
    Insert,
    Update,
    Delete,
}

impl PolicyCommand {
    /// As `pg_policies` shows it.
    pub fn word(self) -> &'static str {
        match self {
            PolicyCommand::All => "ALL",
            PolicyCommand::Select => "SELECT",
            PolicyCommand::Insert => "INSERT",
            PolicyCommand::Update => "UPDATE",
            PolicyCommand::Delete => "DELETE",
        }
    }

    /// As `pg_policy` has it.
    pub fn letter(self) -> &'static str {
        match self {
            PolicyCommand::All => "*",
            PolicyCommand::Select => "r",
            PolicyCommand::Insert => "a",
            PolicyCommand::Update => "w",
            PolicyCommand::Delete => "d",
        }
    }
}

/// One policy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Policy {
    /// Its number; also its oid.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// One of the permissive policies must let a row pass, and all restrictive ones.
    pub permissive: bool,
    /// The statements that it is for.
    pub command: PolicyCommand,
    /// The roles that it is for; [`RoleId::PUBLIC`] alone: everybody.
    pub roles: Vec<RoleId>,
    /// USING: rows that are there.
    pub using: Option<Condition>,
    /// WITH CHECK: rows that are written.
    pub check: Option<Condition>,
}

impl Policy {
    /// What rows that are written must meet.
    pub fn written(&self) -> Option<&Condition> {
        self.check.as_ref().or(self.using.as_ref())
    }

    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.using.iter().chain(&self.check)
    }

    /// Whether its conditions name a relation, and read this column of it.
    fn reads(&self, relation: &str, column: Option<&str>) -> bool {
        let mut all = self.conditions().flat_map(|condition| &condition.uses);
        all.any(|used| {
            let has = |column: &str| used.columns.iter().any(|own| own == column);
            used.relation == relation && column.is_none_or(has)
        })
    }
}

/// A condition of a policy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Condition {
    /// As SQL text over the table's columns.
    pub text: String,
    /// Tables and views that it names, the table of the policy included.
    pub uses: Vec<ViewUse>,
    /// It has no subquery.
    pub plain: bool,
}

impl Condition {
    /// What it has of this relation.
    pub fn use_of(&self, relation: &str) -> Option<&ViewUse> {
        self.uses.iter().find(|used| used.relation == relation)
    }
}

/// A change of a table's row security.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum PolicyChange {
    Enable(bool),
    Force(bool),
    Create {
        name: String,
        permissive: bool,
        command: PolicyCommand,
        roles: Vec<RoleName>,
        using: Option<Condition>,
        check: Option<Condition>,
    },
    /// `None` leaves what there is.
    Alter {
        name: String,
        roles: Option<Vec<RoleName>>,
        using: Option<Condition>,
        check: Option<Condition>,
    },
    Rename {
        name: String,
        to: String,
    },
    Drop {
        name: String,
        if_exists: bool,
    },
    /// Whether the foreign keys that there are now, on either side, are checked.
    Triggers(bool),
}

impl Database {
    /// Row security of a table; `None`: it has none, and no policies.
    pub fn rows_of(&self, table: TableId) -> Option<&RowSecurity> {
        self.row_security.get(&table)
    }

    /// The policies with the tables that they are of.
    pub fn policies(&self) -> impl Iterator<Item = (&Arc<Table>, &Arc<Policy>)> {
        let tables = self.tables.values();
        tables.flat_map(|table| {
            let security = self.row_security.get(&table.id).into_iter();
            let policies = security.flat_map(|security| &security.policies);
            policies.map(move |policy| (table, policy))
        })
    }

    /// The policies, of any table, whose conditions name this relation, or read this column of it.
    /// A relation as a whole is none that its own policies need.
    fn policies_using(
        &self,
        relation: &str,
        column: Option<&str>,
    ) -> impl Iterator<Item = (&Arc<Table>, &Arc<Policy>)> {
        self.policies().filter(move |(table, policy)| {
            (column.is_some() || table.name != relation) && policy.reads(relation, column)
        })
    }

    /// The policies that go with a relation, a column of it or the views over it, each with
    /// PostgreSQL's sentence; those of the tables `others` go anyway.
    pub(crate) fn policies_with(
        &self,
        (kind, relation): (&str, &str),
        column: Option<&str>,
        views: &[(Arc<View>, String)],
        others: &[String],
    ) -> Vec<(TableId, String, String)> {
        let what = match column {
            None => format!("{kind} {relation}"),
            Some(column) => format!("column {column} of {kind} {relation}"),
        };
        let mut found: Vec<(TableId, String, String)> = Vec::new();
        let mut add = |(table, policy): (&Arc<Table>, &Arc<Policy>), what: &str| {
            let known =
                |(id, name, _): &(TableId, String, String)| *id == table.id && *name == policy.name;
            if !others.contains(&table.name) && !found.iter().any(known) {
                let (policy, name) = (&policy.name, &table.name);
                let line = format!("policy {policy} on table {name} depends on {what}");
                found.push((table.id, policy.clone(), line));
            }
        };
        self.policies_using(relation, column)
            .for_each(|one| add(one, &what));
        for (view, _) in views {
            let what = format!("view {}", view.name);
            self.policies_using(&view.name, None)
                .for_each(|one| add(one, &what));
        }
        found
    }

    /// Switches the foreign keys of a table, on either side, on or off for its writers.
    fn switch_keys(&mut self, table: &str, on: bool, version: u64) -> Result<(), CatalogError> {
        let Some(found) = self.table(table).cloned() else {
            return Ok(());
        };
        for (child, key) in self.keys_around(&found) {
            let is_own = child.name == table;
            let child = self.table_mut(&child.name, version)?;
            let mut keys = child.foreign_keys.iter_mut();
            let key = keys.find(|known| known.name == key.name);
            let key = key.expect("it was just found");
            if is_own {
                key.child_off = !on;
            }
            if key.parent == table {
                key.parent_off = !on;
            }
        }
        Ok(())
    }

    pub(crate) fn remove_policies(&mut self, gone: &[(TableId, String, String)]) {
        for (table, name, _) in gone {
            if let Some(security) = self.row_security.get_mut(table) {
                security.policies.retain(|policy| policy.name != *name);
            }
        }
        self.forget_policies();
    }

    /// Forgets row security of what is no longer there, and entries that say nothing.
    pub(crate) fn forget_policies(&mut self) {
        let tables = &self.tables;
        self.row_security.retain(|id, security| {
            let says = security.enabled || security.forced || !security.policies.is_empty();
            says && tables.values().any(|table| table.id == *id)
        });
    }

    /// # Errors
    /// 0A000: a policy reads the column, whose type is to change.
    pub(crate) fn keep_type_of_policies(
        &self,
        table: &str,
        column: &str,
    ) -> Result<(), CatalogError> {
        match self.policies_using(table, Some(column)).next() {
            None => Ok(()),
            Some((of, policy)) => {
                let message = "cannot alter type of a column used in a policy definition";
                let detail = format!(
                    "policy {} on table {} depends on column \"{column}\"",
                    policy.name, of.name
                );
                let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
                Err(error.detail(detail))
            }
        }
    }

    /// Gives a relation, or a column of it, another name in the conditions of policies.
    ///
    /// # Errors
    /// 0A000 where a condition with a subquery names it.
    pub(crate) fn rename_in_policies(
        &mut self,
        relation: &str,
        column: Option<(&str, &str)>,
        to: &str,
    ) -> Result<(), CatalogError> {
        if self.row_security.is_empty() {
            return Ok(());
        }
        let from = column.map(|(from, _)| from);
        let named: Vec<(TableId, bool, String)> = self
            .policies()
            .filter(|(_, policy)| policy.reads(relation, from))
            .map(|(table, policy)| (table.id, table.name == relation, policy.name.clone()))
            .collect();
        for (table, is_own, name) in named {
            let security = self.row_security.get_mut(&table).expect("just seen");
            let mut policies = security.policies.iter_mut();
            let policy = policies.find(|policy| policy.name == name);
            let policy = Arc::make_mut(policy.expect("just seen"));
            for condition in policy.using.iter_mut().chain(&mut policy.check) {
                condition.rename(is_own, relation, column, to)?;
            }
        }
        Ok(())
    }
}

impl Condition {
    fn rename(
        &mut self,
        is_own: bool,
        relation: &str,
        column: Option<(&str, &str)>,
        to: &str,
    ) -> Result<(), CatalogError> {
        let reads = |used: &&mut ViewUse| used.relation == relation;
        let Some(used) = self.uses.iter_mut().find(reads) else {
            return Ok(());
        };
        if !self.plain || !is_own {
            let what = match column {
                None => format!("relation \"{relation}\""),
                Some((from, _)) => format!("column \"{from}\" of relation \"{relation}\""),
            };
            let message = format!("renaming {what}, which a policy uses, is not supported");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .hint("Drop the policy first, and create it again."));
        }
        match column {
            None => {
                self.text = names::renamed(&self.text, own(relation), own(to), true);
                used.relation = to.into();
            }
            Some((from, to)) => {
                self.text = names::renamed(&self.text, from, to, false);
                for name in used.visible.iter_mut().chain(&mut used.columns) {
                    if name == from {
                        *name = to.into();
                    }
                }
            }
        }
        Ok(())
    }
}

impl Catalog {
    /// The row security of a table, if it is asked for this role, and whether the role owns the
    /// table.
    pub fn rows_guarded<'d>(
        &self,
        database: &'d Database,
        table: TableId,
        role: RoleId,
    ) -> Option<(&'d RowSecurity, bool)> {
        let security = database.row_security.get(&table)?;
        if !security.enabled || self.rights.bypasses_rows(role) {
            return None;
        }
        let target = Target::Relation(table.0);
        let owner = self.owner_of_database(database);
        let is_owner = self.rights.is_owner(role, &target, owner);
        (security.forced || !is_owner).then_some((security, is_owner))
    }

    pub(crate) fn change_policy(
        &mut self,
        database: &str,
        table: &str,
        change: &PolicyChange,
        by: &By,
    ) -> Result<Applied, CatalogError> {
        let version = self.version;
        let owner = self.database_mut(database)?;
        let Some(found) = owner.table(table) else {
            if owner.has_relation(table) {
                let message = format!("\"{table}\" is not a table");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            return Err(no_relation(table));
        };
        let id = found.id;
        if owner.stored_view(table).is_some() {
            let message = match change {
                PolicyChange::Enable(_) | PolicyChange::Force(_) | PolicyChange::Triggers(_) => {
                    return owner.check_not_stored(table).map(|()| Applied::default());
                }
                _ => format!("\"{table}\" is not a table"),
            };
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        let applied = match change {
            PolicyChange::Enable(on) => {
                owner.row_security.entry(id).or_default().enabled = *on;
                Applied::default()
            }
            PolicyChange::Force(on) => {
                owner.row_security.entry(id).or_default().forced = *on;
                Applied::default()
            }
            PolicyChange::Triggers(on) => {
                owner.switch_keys(table, *on, version)?;
                Applied::default()
            }
            PolicyChange::Create { .. } => self.create_policy(database, (table, id), change, by)?,
            PolicyChange::Alter { .. } => self.alter_policy(database, (table, id), change, by)?,
            PolicyChange::Rename { name, to } => {
                self.rename_policy(database, (table, id), name, to)?
            }
            PolicyChange::Drop { name, if_exists } => {
                if let Err(error) = self.policy_mut(database, (table, id), name) {
                    if !if_exists {
                        return Err(error);
                    }
                    let message = missing(name, table, "relation");
                    return skip_or_fail(true, error.state(), message);
                }
                let security = self.security_mut(database, id)?;
                security.policies.retain(|policy| policy.name != *name);
                Applied::default()
            }
        };
        self.database_mut(database)?.forget_policies();
        Ok(Applied {
            table: Some(id),
            ..applied
        })
    }

    fn alter_policy(
        &mut self,
        database: &str,
        table: (&str, TableId),
        change: &PolicyChange,
        by: &By,
    ) -> Result<Applied, CatalogError> {
        let PolicyChange::Alter {
            name,
            roles,
            using,
            check,
        } = change
        else {
            unreachable!("called for what is altered only");
        };
        let (roles, notices) = match roles {
            Some(roles) => {
                let (roles, notices) = self.policy_roles(roles, by)?;
                (Some(roles), notices)
            }
            None => (None, Vec::new()),
        };
        self.check_uses(database, using.iter().chain(check))?;
        let policy = self.policy_mut(database, table, name)?;
        check_parts(policy.command, using.is_some(), check.is_some(), true)?;
        policy.roles = roles.unwrap_or_else(|| policy.roles.clone());
        policy.using = using.clone().or(policy.using.take());
        policy.check = check.clone().or(policy.check.take());
        Ok(Applied {
            notices,
            ..Applied::default()
        })
    }

    fn rename_policy(
        &mut self,
        database: &str,
        (table, id): (&str, TableId),
        name: &str,
        to: &str,
    ) -> Result<Applied, CatalogError> {
        self.policy_mut(database, (table, id), name)?;
        let security = self.security_mut(database, id)?;
        if security.policies.iter().any(|policy| policy.name == to) {
            return Err(exists(to, table));
        }
        self.policy_mut(database, (table, id), name)?.name = to.into();
        let security = self.security_mut(database, id)?;
        security.policies.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Applied::default())
    }

    fn create_policy(
        &mut self,
        database: &str,
        (table, id): (&str, TableId),
        change: &PolicyChange,
        by: &By,
    ) -> Result<Applied, CatalogError> {
        let PolicyChange::Create {
            name,
            permissive,
            command,
            roles,
            using,
            check,
        } = change
        else {
            unreachable!("called for what is new only");
        };
        check_parts(*command, using.is_some(), check.is_some(), false)?;
        let (roles, notices) = self.policy_roles(roles, by)?;
        self.check_uses(database, using.iter().chain(check))?;
        let security = self.security_mut(database, id)?;
        if security.policies.iter().any(|policy| policy.name == *name) {
            return Err(exists(name, table));
        }
        if security.policies.len() >= POLICIES_MAX {
            let message = format!("tables can have at most {POLICIES_MAX} policies");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message));
        }
        let number = self.next_number();
        let security = self.security_mut(database, id)?;
        security.policies.push(Arc::new(Policy {
            id: number,
            name: name.clone(),
            permissive: *permissive,
            command: *command,
            roles,
            using: using.clone(),
            check: check.clone(),
        }));
        security.policies.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Applied {
            notices,
            ..Applied::default()
        })
    }

    fn security_mut(
        &mut self,
        database: &str,
        table: TableId,
    ) -> Result<&mut RowSecurity, CatalogError> {
        let database = self.database_mut(database)?;
        Ok(database.row_security.entry(table).or_default())
    }

    fn policy_mut(
        &mut self,
        database: &str,
        (table, id): (&str, TableId),
        name: &str,
    ) -> Result<&mut Policy, CatalogError> {
        let security = self.security_mut(database, id)?;
        let mut policies = security.policies.iter_mut();
        let found = policies.find(|policy| policy.name == name);
        let found = found.ok_or_else(|| {
            SqlError::new(SqlState::UNDEFINED_OBJECT, missing(name, table, "table"))
        })?;
        Ok(Arc::make_mut(found))
    }

    /// The roles that a policy names, each once; PUBLIC stands for all others.
    fn policy_roles(
        &self,
        roles: &[RoleName],
        by: &By,
    ) -> Result<(Vec<RoleId>, Vec<String>), CatalogError> {
        if roles.contains(&RoleName::Public) {
            let mut notices = Vec::new();
            if roles.len() > 1 {
                notices.push("ignoring specified roles other than PUBLIC".to_string());
            }
            return Ok((Vec::from([RoleId::PUBLIC]), notices));
        }
        let mut found = Vec::new();
        for role in roles {
            let id = self.rights.resolve(role, by)?;
            if !found.contains(&id) {
                found.push(id);
            }
        }
        Ok((found, Vec::new()))
    }

    /// What the conditions name may have changed since they were bound.
    fn check_uses<'c>(
        &mut self,
        database: &str,
        conditions: impl Iterator<Item = &'c Condition>,
    ) -> Result<(), CatalogError> {
        let database = self.database_mut(database)?;
        let mut uses = conditions.flat_map(|condition| &condition.uses);
        uses.try_for_each(|used| database.check_use(used))
    }

    /// Takes a role out of the policies that DROP OWNED leaves.
    pub(crate) fn revoke_policies(&mut self, database: &str, roles: &[RoleId]) {
        let Ok(database) = self.database_mut(database) else {
            return;
        };
        for security in database.row_security.values_mut() {
            for policy in &mut security.policies {
                if policy.roles.iter().any(|role| roles.contains(role)) {
                    let policy = Arc::make_mut(policy);
                    policy.roles.retain(|role| !roles.contains(role));
                }
            }
            security.policies.retain(|policy| !policy.roles.is_empty());
        }
        database.forget_policies();
    }
}

/// # Errors
/// 42601 for a condition that a policy of this kind cannot have.
fn check_parts(
    command: PolicyCommand,
    using: bool,
    check: bool,
    altered: bool,
) -> Result<(), CatalogError> {
    let message = match command {
        PolicyCommand::Select | PolicyCommand::Delete if check && altered => {
            "only USING expression allowed for SELECT, DELETE"
        }
        PolicyCommand::Select | PolicyCommand::Delete if check => {
            "WITH CHECK cannot be applied to SELECT or DELETE"
        }
        PolicyCommand::Insert if using && altered => {
            "only WITH CHECK expression allowed for INSERT"
        }
        PolicyCommand::Insert if using => "only WITH CHECK expression allowed for INSERT",
        _ => return Ok(()),
    };
    Err(SqlError::new(SqlState::SYNTAX, message))
}

fn missing(name: &str, table: &str, kind: &str) -> String {
    format!("policy \"{name}\" for {kind} \"{table}\" does not exist")
}

fn exists(name: &str, table: &str) -> SqlError {
    let message = format!("policy \"{name}\" for table \"{table}\" already exists");
    SqlError::new(SqlState::DUPLICATE_OBJECT, message)
}
