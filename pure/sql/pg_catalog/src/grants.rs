//! Rows and functions about roles, owners and privileges.

use super::*;
use ::rights::{Acl, AclItem, ObjectKind, Privileges, Role, RoleId, Target};
use base::{SqlError, SqlState};
use catalog::View;
use std::collections::BTreeSet;

impl CatalogCx<'_> {
    /// The name of a role. The one that every cluster has goes by the name of a session that acts
    /// as it.
    pub(super) fn role_name(&self, id: RoleId) -> String {
        match id {
            RoleId::OWNER if self.is_nameless() => self.user.to_owned(),
            id => self.catalog.rights.name(id),
        }
    }

    /// Whether no role has the name of the session's user.
    fn is_nameless(&self) -> bool {
        self.catalog.rights.named(self.user).is_none()
    }

    /// The role of a name, as the session says it.
    pub(super) fn role_named(&self, name: &str) -> Option<RoleId> {
        let own = if self.is_nameless() { self.user } else { "" };
        self.catalog.rights.find(name, own).ok()
    }

    /// The role as which the session acts.
    pub fn acting(&self) -> RoleId {
        self.catalog.rights.acting(self.user)
    }

    /// Whether that role may do what the owner of an object may, by the owner's number.
    pub fn acts_for(&self, owner: i64) -> bool {
        let owner = u32::try_from(owner).map_or(RoleId::OWNER, RoleId);
        let database_owner = self.database_owner();
        self.catalog
            .rights
            .is_member(self.acting(), owner, database_owner)
    }

    fn database_owner(&self) -> RoleId {
        self.catalog.owner_of_database(self.database)
    }

    /// Owner of a relation, an index included.
    pub(super) fn owner(&self, id: u32) -> RoleId {
        let tables = self.database.tables.values();
        let of_index = tables.flat_map(|table| {
            let table = &**table;
            let own = table.indexes().filter(move |index| index.id.0 == id);
            own.map(move |_| table.id.0)
        });
        let known = self
            .catalog
            .rights
            .objects
            .contains_key(&Target::Relation(id));
        let id = match known {
            true => id,
            false => of_index.into_iter().next().unwrap_or(id),
        };
        self.catalog.rights.owner(&Target::Relation(id))
    }

    fn texts(&self, acl: Option<&Acl>) -> Datum {
        match acl {
            None => Datum::Null,
            Some(acl) => {
                let texts = acl.texts(&|role| quoted(&self.role_name(role)));
                array(texts.into_iter().map(text))
            }
        }
    }

    /// `relacl`, `datacl`, `nspacl`.
    pub(super) fn acl(&self, target: &Target) -> Datum {
        self.texts(self.catalog.rights.acl(target).as_ref())
    }

    /// `attacl` of the column that is shown there.
    pub(super) fn column_acl(&self, relation: u32, shown_at: u16) -> Datum {
        let object = self.catalog.rights.objects.get(&Target::Relation(relation));
        let object = object.filter(|object| !object.columns.is_empty());
        let mut tables = self.database.tables.values();
        let table = object.and_then(|_| tables.find(|table| table.id.0 == relation));
        let place = table.and_then(|table| table.place_of(shown_at));
        let place = place.map_or(shown_at, |place| place as u16);
        self.texts(object.and_then(|object| object.columns.get(&place)))
    }

    /// All roles, those without an entry of their own included.
    fn all_roles(&self) -> Vec<(RoleId, String, Option<&Role>)> {
        let rights = &self.catalog.rights;
        let entry = |id: RoleId| rights.roles.get(&id).map(|role| &**role);
        let mut all: Vec<(RoleId, String, Option<&Role>)> = [RoleId::OWNER, RoleId::DATABASE_OWNER]
            .map(|id| (id, self.role_name(id), entry(id)))
            .into();
        let others = rights
            .roles
            .values()
            .filter(|role| role.id != RoleId::OWNER);
        all.extend(others.map(|role| (role.id, role.name.clone(), Some(&**role))));
        all
    }

    fn config(&self, role: RoleId, database: u32) -> Datum {
        match self.catalog.rights.settings.get(&(role, database)) {
            None => Datum::Null,
            Some(values) => array(values.iter().map(|(n, v)| text(format!("{n}={v}")))),
        }
    }

    /// The roles whose privileges the session has.
    fn enabled(&self) -> BTreeSet<RoleId> {
        self.catalog
            .rights
            .groups(self.acting(), self.database_owner())
    }
}

/// A name in an item of a list, which needs quotes if it is no plain word.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name.chars().all(plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// Switches of a role: super, inherit, createrole, createdb, login, replication, bypassrls.
fn switches(id: RoleId, role: Option<&Role>) -> [bool; 7] {
    match role {
        Some(role) => [
            role.superuser,
            role.inherit,
            role.create_role,
            role.create_db,
            role.login,
            false,
            role.bypass_rls,
        ],
        None => {
            let able = id == RoleId::OWNER;
            [able, true, able, able, able, able, able]
        }
    }
}

fn limit(role: Option<&Role>) -> Datum {
    int(role.map_or(-1, |role| role.connection_limit))
}

fn until(role: Option<&Role>) -> Datum {
    let until = role.and_then(|role| role.valid_until);
    until.map_or(Datum::Null, Datum::Timestamp)
}

pub(super) fn authid(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for (id, name, role) in cx.all_roles() {
        let mut row = vec![oid(id.0), text(name)];
        row.extend(switches(id, role).map(flag));
        let password = role.and_then(|role| role.password.clone());
        row.extend([limit(role), optional(password), until(role)]);
        out.push(row);
    }
}

pub(super) fn roles(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for (id, name, role) in cx.all_roles() {
        let mut row = vec![text(name)];
        let [head @ .., bypass] = switches(id, role);
        row.extend(head.map(flag));
        row.extend([limit(role), text("********"), until(role)]);
        row.extend([flag(bypass), cx.config(id, 0), oid(id.0)]);
        out.push(row);
    }
}

fn logins(cx: &CatalogCx<'_>, out: &mut RowBatch, password: impl Fn(Option<&Role>) -> Datum) {
    for (id, name, role) in cx.all_roles() {
        let [superuser, _, _, creates, login, replicates, bypass] = switches(id, role);
        if !login {
            continue;
        }
        let mut row = vec![text(name), oid(id.0)];
        row.extend([creates, superuser, replicates, bypass].map(flag));
        row.extend([password(role), until(role), cx.config(id, 0)]);
        out.push(row);
    }
}

pub(super) fn users(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    logins(cx, out, |_| text("********"));
}

pub(super) fn shadow(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    logins(cx, out, |role| {
        optional(role.and_then(|role| role.password.clone()))
    });
}

pub(super) fn groups(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for (id, name, role) in cx.all_roles() {
        if switches(id, role)[4] {
            continue;
        }
        let roles = cx.catalog.rights.roles.values();
        let members = roles.filter(|role| role.memberships.iter().any(|own| own.of == id));
        let members = array(members.map(|role| oid(role.id.0)));
        out.push([text(name), oid(id.0), members]);
    }
}

pub(super) fn members(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for role in cx.catalog.rights.roles.values() {
        for own in &role.memberships {
            let [of, grantor] = [own.of, own.grantor].map(|id| oid(id.0));
            out.push([of, oid(role.id.0), grantor, flag(own.admin)]);
        }
    }
}

pub(super) fn settings(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for (role, database) in cx.catalog.rights.settings.keys() {
        out.push([oid(*database), oid(role.0), cx.config(*role, *database)]);
    }
}

pub(super) fn defaults(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let here = cx.database.id.0;
    let all = cx.catalog.rights.defaults.iter().enumerate();
    for (at, ((database, role, schema, kind), acl)) in all {
        if *database != here {
            continue;
        }
        let kind = match kind {
            ObjectKind::Sequence => 'S',
            ObjectKind::Function => 'f',
            _ => 'r',
        };
        out.push([
            oid(1 + at as u32),
            oid(role.0),
            oid(*schema),
            letter(kind),
            cx.texts(Some(acl)),
        ]);
    }
}

pub(super) fn enabled_roles(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for role in cx.enabled() {
        out.push([text(cx.role_name(role))]);
    }
}

pub(super) fn applicable_roles(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for id in cx.enabled() {
        let role = cx.catalog.rights.roles.get(&id);
        for own in role.into_iter().flat_map(|role| &role.memberships) {
            out.push([
                text(cx.role_name(id)),
                text(cx.role_name(own.of)),
                yes_no(own.admin),
            ]);
        }
    }
}

/// Items that the session may see, with the name of each grantee and whether it may grant on.
fn seen(
    cx: &CatalogCx<'_>,
    owner: RoleId,
    items: &[AclItem],
    push: &mut dyn FnMut(Datum, Datum, Privileges, Privileges),
) {
    let enabled = cx.enabled();
    for item in items {
        let public = item.grantee == RoleId::PUBLIC;
        if !public && !enabled.contains(&item.grantee) && !enabled.contains(&item.grantor) {
            continue;
        }
        let grantee = if public {
            "PUBLIC".into()
        } else {
            cx.role_name(item.grantee)
        };
        let options = match item.grantee == owner {
            true => item.privileges,
            false => item.options,
        };
        let grantor = text(cx.role_name(item.grantor));
        push(grantor, text(grantee), item.privileges, options);
    }
}

/// Tables and views, with their owner and the privileges on them.
fn granted<'c>(cx: &CatalogCx<'c>) -> Vec<(&'c str, u32, RoleId, Acl)> {
    let relations = cx.database.relations();
    let found = relations.filter(|(_, kind, _)| *kind != ObjectKind::Sequence);
    let all = found.map(|(name, kind, id)| {
        let target = Target::Relation(id);
        let owner = cx.catalog.rights.owner(&target);
        let acl = cx.catalog.rights.acl(&target);
        (
            name,
            id,
            owner,
            acl.unwrap_or_else(|| kind.first_acl(owner)),
        )
    });
    all.collect()
}

pub(super) fn table_privileges(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for (name, _, owner, acl) in granted(cx) {
        seen(cx, owner, &acl.0, &mut |grantor, grantee, all, options| {
            for (one, _, word) in all.each() {
                out.push([
                    grantor.clone(),
                    grantee.clone(),
                    text(cx.database.name.as_str()),
                    cx.schema(name),
                    text(own(name)),
                    text(word),
                    yes_no(options.has(one)),
                    yes_no(one == Privileges::SELECT),
                ]);
            }
        });
    }
}

/// `information_schema.usage_privileges` and `role_usage_grants`, of sequences and domains.
pub(super) fn usage_privileges(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let sequences = cx.database.sequences.values();
    let sequences = sequences.map(|one| (&one.name, one.id.0, "SEQUENCE", ObjectKind::Sequence));
    let domains = cx.database.domains.values();
    let domains = domains.map(|one| (&one.name, one.id, "DOMAIN", ObjectKind::Type));
    for (name, id, word, kind) in sequences.chain(domains) {
        let target = Target::Relation(id);
        let owner = cx.catalog.rights.owner(&target);
        let acl = cx.catalog.rights.acl(&target);
        let acl = acl.unwrap_or_else(|| kind.first_acl(owner));
        seen(cx, owner, &acl.0, &mut |grantor, grantee, all, options| {
            if all.has(Privileges::USAGE) {
                out.push([
                    grantor,
                    grantee,
                    text(cx.database.name.as_str()),
                    cx.schema(name),
                    text(own(name)),
                    text(word),
                    text("USAGE"),
                    yes_no(options.has(Privileges::USAGE)),
                ]);
            }
        });
    }
}

/// `information_schema.routine_privileges`, of functions of users.
pub(super) fn routine_privileges(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for function in cx.database.all_functions() {
        let target = Target::Relation(function.id);
        let owner = cx.catalog.rights.owner(&target);
        let acl = cx.catalog.rights.acl(&target);
        let acl = acl.unwrap_or_else(|| function.kind().first_acl(owner));
        let [database, schema, specific] = routines::specific(cx, function);
        seen(cx, owner, &acl.0, &mut |grantor, grantee, all, options| {
            if !all.has(Privileges::EXECUTE) {
                return;
            }
            out.push([
                grantor,
                grantee,
                database.clone(),
                schema.clone(),
                specific.clone(),
                database.clone(),
                schema.clone(),
                text(own(&function.name)),
                text("EXECUTE"),
                yes_no(options.has(Privileges::EXECUTE)),
            ]);
        });
    }
}

pub(super) fn column_privileges(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for (name, id, owner, acl) in granted(cx) {
        let object = cx.catalog.rights.objects.get(&Target::Relation(id));
        for (place, column) in columns_of(cx, name) {
            let own = object.and_then(|object| object.columns.get(&place));
            let items = acl.0.iter().chain(own.into_iter().flat_map(|acl| &acl.0));
            let items: Vec<AclItem> = items.copied().collect();
            seen(cx, owner, &items, &mut |grantor, grantee, all, options| {
                for (one, _, word) in all.and(ObjectKind::Column.all()).each() {
                    out.push([
                        grantor.clone(),
                        grantee.clone(),
                        text(cx.database.name.as_str()),
                        cx.schema(name),
                        text(base::full_name::own(name)),
                        text(column),
                        text(word),
                        yes_no(options.has(one)),
                    ]);
                }
            });
        }
    }
}

fn columns_of<'c>(cx: &CatalogCx<'c>, relation: &str) -> Vec<(u16, &'c str)> {
    let named = |view: &'c View| {
        let columns = view.columns.iter().enumerate();
        let columns = columns.map(|(at, column)| (at as u16, column.name.as_str()));
        columns.collect()
    };
    let database: &'c Database = cx.database;
    match (database.tables.get(relation), database.views.get(relation)) {
        (Some(table), _) => {
            let columns = table.shown().into_iter();
            let columns = columns.map(|at| (at, table.column_at(at).name.as_str()));
            columns.collect()
        }
        (None, view) => view.map(|view| named(view)).unwrap_or_default(),
    }
}

/// Whether this is one of `has_..._privilege` and `pg_has_role`.
pub(super) fn is_asked(name: &str) -> bool {
    name.starts_with("has_") || name == "pg_has_role"
}

/// An object that a function asks about, or the answer at once.
enum Asked {
    Object(Target, ObjectKind, RoleId),
    Answer(Datum),
}

/// Computes one of the functions of [`is_asked`].
///
/// # Errors
/// 42704 and its like for what does not exist, 22023 for an unknown privilege.
pub(super) fn privilege(cx: &CatalogCx<'_>, name: &str, args: &[Datum]) -> Result<Datum, SqlError> {
    let of_column = name == "has_column_privilege";
    let with_user = args.len() > if of_column { 3 } else { 2 };
    let role = match (with_user, args) {
        (true, [user, ..]) if name != "pg_has_role" && user.as_str() == Some("public") => {
            RoleId::PUBLIC
        }
        (true, [user, ..]) => role_of(cx, user)?,
        _ => cx.acting(),
    };
    let args = if with_user { &args[1..] } else { args };
    let (Some(object), Some(wanted)) = (args.first(), args.last().and_then(Datum::as_str)) else {
        return Ok(Datum::Null);
    };
    if name == "pg_has_role" {
        return has_role(cx, role, role_of(cx, object)?, wanted);
    }
    let (target, kind, owner) = match asked(cx, name, object, (role, wanted))? {
        Asked::Object(target, kind, owner) => (target, kind, owner),
        Asked::Answer(answer) => return Ok(answer),
    };
    let is_column = name.contains("column");
    let checked = if is_column { ObjectKind::Column } else { kind };
    let wanted = parsed(wanted, checked)?;
    let has = held(cx, role, (&target, kind), owner);
    let whole = wanted.iter().any(|(one, option)| has(*one, *option));
    let place = match of_column {
        true => place_of(cx, &target, &args[1])?,
        false => None,
    };
    let rights = &cx.catalog.rights;
    let object = rights.objects.get(&target).filter(|_| is_column && !whole);
    let Some(object) = object else {
        return Ok(flag(whole));
    };
    let groups = rights.groups(role, owner);
    let of = |acl: &Acl| {
        let (own, options) = (acl.privileges(&groups), acl.options(&groups));
        let has = |option: bool| if option { options } else { own };
        wanted.iter().any(|(one, option)| has(*option).has(*one))
    };
    Ok(flag(match of_column {
        true => place
            .and_then(|place| object.columns.get(&place))
            .is_some_and(of),
        false => object.columns.values().any(of),
    }))
}

/// The object that a function names.
fn asked(
    cx: &CatalogCx<'_>,
    name: &str,
    object: &Datum,
    (role, wanted): (RoleId, &str),
) -> Result<Asked, SqlError> {
    let number = object.as_int().map(|id| u32::try_from(id).unwrap_or(0));
    let text = object.as_str().unwrap_or_default();
    match name {
        "has_database_privilege" => {
            let mut databases = cx.catalog.databases.values();
            let found = databases.find(|one| match number {
                Some(id) => one.id.0 == id,
                None => one.name == text,
            });
            match found {
                Some(found) => {
                    let owner = cx.catalog.owner_of_database(found);
                    let target = Target::Database(found.id.0);
                    Ok(Asked::Object(target, ObjectKind::Database, owner))
                }
                None if number.is_some() => Ok(Asked::Answer(Datum::Null)),
                None => {
                    let message = format!("database \"{text}\" does not exist");
                    Err(SqlError::new(SqlState::INVALID_DATABASE, message))
                }
            }
        }
        "has_schema_privilege" => {
            let quoted = ::functions::keywords::quote_ident(text);
            let schema = number.map_or_else(|| names::regnamespace_in(cx, &quoted), Ok)?;
            let mut own = cx.database.schemas.iter();
            if let Some((name, _)) = own.find(|(_, number)| **number == schema) {
                let target = Target::Schema(cx.database.id.0, name.clone());
                return Ok(Asked::Object(
                    target,
                    ObjectKind::Schema,
                    cx.database_owner(),
                ));
            }
            let wanted = parsed(wanted, ObjectKind::Schema)?;
            let usage = wanted.iter().any(|(one, _)| *one == Privileges::USAGE);
            let all = cx.catalog.rights.is_superuser(role);
            Ok(Asked::Answer(flag(usage || all)))
        }
        "has_table_privilege"
        | "has_sequence_privilege"
        | "has_any_column_privilege"
        | "has_column_privilege" => {
            let id = number.map_or_else(|| names::regclass_in(cx, text), Ok)?;
            asked_relation(cx, name, id, (role, wanted))
        }
        "has_type_privilege" => {
            if number.is_none() {
                functions::resolved(cx, base::Reg::Type, text)?;
            }
            for part in wanted.split(',') {
                let upper = part.trim().to_ascii_uppercase();
                if !matches!(upper.as_str(), "USAGE" | "USAGE WITH GRANT OPTION") {
                    return Err(unrecognized(part.trim()));
                }
            }
            Ok(Asked::Answer(flag(true)))
        }
        "has_function_privilege" => asked_function(cx, (number, text), wanted),
        _ => asked_shared(cx, name, (number, text), (role, wanted)),
    }
}

/// Objects that the system alone has: everybody may use languages; superusers may do the rest.
fn asked_shared(
    cx: &CatalogCx<'_>,
    function: &str,
    (number, text): (Option<u32>, &str),
    (role, wanted): (RoleId, &str),
) -> Result<Asked, SqlError> {
    let (noun, words, known): (_, &[&str], &[(u32, &str)]) = match function {
        "has_language_privilege" => {
            let known = &[(12, "internal"), (13, "c"), (14, "sql")];
            ("language", &["USAGE"], known)
        }
        "has_tablespace_privilege" => {
            let known = &[(1663, "pg_default"), (1664, "pg_global")];
            ("tablespace", &["CREATE"], known)
        }
        "has_server_privilege" => ("server", &["USAGE"], &[]),
        "has_foreign_data_wrapper_privilege" => ("foreign-data wrapper", &["USAGE"], &[]),
        // The settings of all sessions are in files.
        _ => ("", &["SET", "ALTER SYSTEM"], &[]),
    };
    let found = match number {
        Some(id) => known.iter().find(|(own, _)| *own == id),
        None => known.iter().find(|(_, own)| *own == text),
    };
    let is_parameter = noun.is_empty();
    if found.is_none() && number.is_none() && !is_parameter {
        let message = format!("{noun} \"{text}\" does not exist");
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
    }
    let mut any = false;
    for part in wanted.split(',') {
        let upper = part.trim().to_ascii_uppercase();
        let word = upper.strip_suffix(" WITH GRANT OPTION");
        let plain = word.is_none() && noun == "language";
        let trusted = found.is_none_or(|(_, name)| *name == "sql");
        any |= plain && trusted;
        if !words.contains(&word.unwrap_or(&upper).trim_end()) {
            return Err(unrecognized(part.trim()));
        }
    }
    let answer = match found.is_none() && !is_parameter {
        true => Datum::Null,
        false => flag(any || cx.catalog.rights.is_superuser(role)),
    };
    Ok(Asked::Answer(answer))
}

fn asked_function(
    cx: &CatalogCx<'_>,
    (number, text): (Option<u32>, &str),
    wanted: &str,
) -> Result<Asked, SqlError> {
    let id = match number {
        Some(id) => id,
        None => match functions::resolved(cx, base::Reg::Procedure, text)?.as_int() {
            Some(id) => u32::try_from(id).unwrap_or(0),
            None => return Ok(Asked::Answer(Datum::Null)),
        },
    };
    if let Some(own) = cx.routine(id) {
        let target = Target::Relation(own.id);
        let kind = ObjectKind::Function;
        return Ok(Asked::Object(target, kind, cx.database_owner()));
    }
    parsed(wanted, ObjectKind::Function)?;
    // Everybody may call those of the system.
    Ok(Asked::Answer(match procs::by_oid(id).is_some() {
        true => flag(true),
        false => Datum::Null,
    }))
}

fn asked_relation(
    cx: &CatalogCx<'_>,
    name: &str,
    id: u32,
    (role, wanted): (RoleId, &str),
) -> Result<Asked, SqlError> {
    let kind = match name {
        "has_sequence_privilege" => ObjectKind::Sequence,
        _ => ObjectKind::Table,
    };
    if let Some(system) = all().find(|table| table.oid == id) {
        let hidden = matches!(system.name, "pg_authid" | "pg_shadow");
        let wanted = parsed(wanted, kind)?;
        let reads = wanted.iter().any(|(one, _)| *one == Privileges::SELECT);
        let all = cx.catalog.rights.is_superuser(role);
        return Ok(Asked::Answer(flag(all || reads && !hidden)));
    }
    let mut known = cx.database.relations();
    Ok(match known.any(|(_, _, relation)| relation == id) {
        true => Asked::Object(Target::Relation(id), kind, cx.database_owner()),
        false => Asked::Answer(Datum::Null),
    })
}

/// The place of a column that is given by number or name.
fn place_of(cx: &CatalogCx<'_>, target: &Target, column: &Datum) -> Result<Option<u16>, SqlError> {
    let relation = names::relation_name(cx, target_id(target)).unwrap_or_default();
    if let Some(number) = column.as_int() {
        let shown_at = u16::try_from(number - 1).ok();
        let table = cx.database.tables.get(&*relation);
        let place = table.and_then(|table| table.place_of(shown_at?));
        return Ok(place.map(|place| place as u16).or(shown_at));
    }
    let column = column.as_str().unwrap_or_default();
    let columns = columns_of(cx, &relation);
    let found = columns.iter().find(|(_, name)| *name == column);
    match found {
        Some((place, _)) => Ok(Some(*place)),
        None => {
            let message = format!("column \"{column}\" of relation \"{relation}\" does not exist");
            Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message))
        }
    }
}

fn target_id(target: &Target) -> u32 {
    match target {
        Target::Relation(id) | Target::Database(id) | Target::Schema(id, _) => *id,
    }
}

/// Whether a role has a privilege on an object, or may grant it.
fn held<'c>(
    cx: &CatalogCx<'c>,
    role: RoleId,
    (target, kind): (&Target, ObjectKind),
    database_owner: RoleId,
) -> impl Fn(Privileges, bool) -> bool + use<'c> {
    let rights = &cx.catalog.rights;
    let all = rights.is_owner(role, target, database_owner);
    let superuser = rights.is_superuser(role);
    let has = rights.privileges(role, (target, kind), database_owner);
    let owner = rights.owner(target);
    let acl = rights.acl(target).unwrap_or_else(|| kind.first_acl(owner));
    let options = acl.options(&rights.groups(role, database_owner));
    move |one, option| match option {
        true => all || options.has(one),
        false => superuser || has.has(one),
    }
}

fn role_of(cx: &CatalogCx<'_>, name: &Datum) -> Result<RoleId, SqlError> {
    if let Some(id) = name.as_int() {
        return Ok(RoleId(u32::try_from(id).unwrap_or(u32::MAX)));
    }
    let name = name.as_str().unwrap_or_default();
    cx.role_named(name).ok_or_else(|| {
        let message = format!("role \"{name}\" does not exist");
        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
    })
}

fn has_role(cx: &CatalogCx<'_>, role: RoleId, of: RoleId, wanted: &str) -> Result<Datum, SqlError> {
    let (rights, owner) = (&cx.catalog.rights, cx.database_owner());
    let mut any = rights.is_superuser(role);
    for word in wanted.split(',') {
        let word = word.trim().to_ascii_uppercase();
        any |= match word.as_str() {
            "USAGE" => rights.groups(role, owner).contains(&of),
            "MEMBER" => rights.all_groups(role, owner).contains(&of),
            "USAGE WITH ADMIN OPTION"
            | "USAGE WITH GRANT OPTION"
            | "MEMBER WITH ADMIN OPTION"
            | "MEMBER WITH GRANT OPTION" => rights.roles.get(&role).is_some_and(|role| {
                let mut own = role.memberships.iter();
                own.any(|own| own.of == of && own.admin)
            }),
            _ => return Err(unrecognized(word.as_str())),
        };
    }
    Ok(flag(any))
}

fn unrecognized(word: &str) -> SqlError {
    let message = format!("unrecognized privilege type: \"{word}\"");
    SqlError::new(SqlState::INVALID_PARAMETER, message)
}

/// A list of privileges, each with whether WITH GRANT OPTION stands behind it.
fn parsed(text: &str, kind: ObjectKind) -> Result<Vec<(Privileges, bool)>, SqlError> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let part = part.trim();
        let upper = part.to_ascii_uppercase();
        let (word, option) = match upper.strip_suffix(" WITH GRANT OPTION") {
            Some(word) => (word.trim(), true),
            None => (upper.as_str(), false),
        };
        let found = Privileges::of_word(word).filter(|one| kind.all().has(*one));
        all.push((found.ok_or_else(|| unrecognized(part))?, option));
    }
    Ok(all)
}
