//! CREATE ROLE, GRANT and their like: roles, owners, privileges.

use super::Kind;
use super::words::Words;
use base::{Datum, SqlError, SqlState, Type};
use rights::{Change, Grant, ObjectKind, ObjectNames, Password, Privileges, RoleName, RoleOption};
use sqlparser::tokenizer::Token;

/// A statement about roles and rights.
#[derive(Debug)]
pub struct RightsStatement {
    /// Its command tag.
    pub tag: &'static str,
    /// What it asks for.
    pub change: Change,
}

impl super::Statement {
    /// Its text with stars in place of passwords; if one is written in an unusual way, a sentence
    /// in place of the text.
    pub fn without_passwords(&self) -> String {
        if !self.has_password() {
            return self.text().into();
        }
        let source = self.source();
        let tokens = super::lexer::tokens(source).unwrap_or_default();
        let mut edits = Vec::new();
        let mut walk = super::source::Walk::new(&source.0);
        for pair in tokens.windows(2) {
            let [word, value] = pair else { continue };
            let is_option = matches!(&word.token, Token::Word(word)
                if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("password"));
            if !is_option || !matches!(value.token, Token::EscapedStringLiteral(_)) {
                continue;
            }
            walk.to(value.span.start);
            if !source.0[walk.byte..].starts_with('\'') {
                edits.clear();
                break;
            }
            let stars = super::Edit::Literal("'***'".into());
            edits.push((value.span.start, stars));
        }
        match edits.is_empty() {
            true => "(a statement with a password)".into(),
            false => self.edited(&edits),
        }
    }

    /// Whether its text has a password in it.
    pub fn has_password(&self) -> bool {
        match self.kind() {
            Kind::Rights(statement) => statement.change.passwords().next().is_some(),
            _ => false,
        }
    }
}

/// Parses the statement if it is one about roles or rights.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    let kinds = ["ROLE", "USER", "GROUP"];
    let of_role = |words: &Words<'_>| kinds.iter().any(|kind| words.is_at(1, kind));
    let found = match words.peek() {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        _ => return Ok(None),
    };
    let (tag, change) = match found.as_str() {
        "CREATE" if of_role(words) => ("CREATE ROLE", create(words)?),
        "ALTER" if of_role(words) => alter(words)?,
        "DROP" if of_role(words) => ("DROP ROLE", drop_roles(words)?),
        "DROP" if words.is(&["DROP", "OWNED"]) => ("DROP OWNED", drop_owned(words)?),
        "REASSIGN" => ("REASSIGN OWNED", reassign(words)?),
        "GRANT" | "REVOKE" => {
            let (tag, change, routines) = grant(words, found == "GRANT")?;
            if let (Change::Grant(grant), Some(of)) = (&change, routines) {
                words.expect_end()?;
                return Ok(Some(super::routines::grant_of(of, grant.clone())));
            }
            (tag, change)
        }
        "ALTER" if words.is(&["ALTER", "DEFAULT", "PRIVILEGES"]) => {
            ("ALTER DEFAULT PRIVILEGES", defaults(words)?)
        }
        "ALTER" => match alter_owner(words)? {
            Some(found) => found,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    words.expect_end()?;
    Ok(Some(Kind::Rights(Box::new(RightsStatement {
        tag,
        change,
    }))))
}

/// The name of a new role.
fn new_name(words: &mut Words<'_>) -> Result<String, SqlError> {
    let at = words.at;
    match role(words)? {
        RoleName::Named(name) => Ok(name),
        RoleName::Public => Err(reserved("public")),
        RoleName::Current | RoleName::Session => {
            let word = match &words.tokens[at].token {
                Token::Word(word) => word.value.to_ascii_uppercase(),
                _ => String::new(),
            };
            let message = format!("{word} cannot be used as a role name here");
            Err(SqlError::new(SqlState::RESERVED_NAME, message))
        }
    }
}

fn reserved(name: &str) -> SqlError {
    let message = format!("role name \"{name}\" is reserved");
    SqlError::new(SqlState::RESERVED_NAME, message)
}

pub(super) fn role(words: &mut Words<'_>) -> Result<RoleName, SqlError> {
    if words.take_any(&["CURRENT_USER", "CURRENT_ROLE"]).is_some() {
        return Ok(RoleName::Current);
    }
    if words.take(&["SESSION_USER"]) {
        return Ok(RoleName::Session);
    }
    if let Token::Word(word) = words.peek()
        && word.quote_style.is_none()
        && functions::keywords::is_reserved(&word.value)
    {
        return Err(words.unexpected());
    }
    match words.identifier()? {
        name if name == "public" => Ok(RoleName::Public),
        name if name == "none" => Err(reserved("none")),
        name => Ok(RoleName::Named(name)),
    }
}

/// Roles of GRANT, where GROUP may stand before each.
fn grantees(words: &mut Words<'_>) -> Result<Vec<RoleName>, SqlError> {
    list(words, |words| {
        words.take(&["GROUP"]);
        role(words)
    })
}

fn list<T>(
    words: &mut Words<'_>,
    one: impl Fn(&mut Words<'_>) -> Result<T, SqlError>,
) -> Result<Vec<T>, SqlError> {
    let mut all = vec![one(words)?];
    while words.take_token(&Token::Comma) {
        all.push(one(words)?);
    }
    Ok(all)
}

fn names(words: &mut Words<'_>) -> Result<Vec<String>, SqlError> {
    list(words, |words| words.identifier())
}

fn role_names(words: &mut Words<'_>) -> Result<Vec<String>, SqlError> {
    list(words, new_name)
}

fn create(words: &mut Words<'_>) -> Result<Change, SqlError> {
    let is_user = words.is_at(1, "USER");
    words.at += 2;
    let name = new_name(words)?;
    let mut options = options(words, true)?;
    if is_user
        && !options
            .iter()
            .any(|option| matches!(option, RoleOption::Login(_)))
    {
        options.push(RoleOption::Login(true));
    }
    Ok(Change::CreateRole { name, options })
}

/// Options that are a word, or the same word behind NO.
type Switch = fn(bool) -> RoleOption;
const SWITCHES: [(&str, &str, Switch); 6] = [
    ("SUPERUSER", "NOSUPERUSER", RoleOption::Superuser),
    ("CREATEDB", "NOCREATEDB", RoleOption::CreateDb),
    ("CREATEROLE", "NOCREATEROLE", RoleOption::CreateRole),
    ("INHERIT", "NOINHERIT", RoleOption::Inherit),
    ("LOGIN", "NOLOGIN", RoleOption::Login),
    ("BYPASSRLS", "NOBYPASSRLS", RoleOption::BypassRls),
];

fn options(words: &mut Words<'_>, is_new: bool) -> Result<Vec<RoleOption>, SqlError> {
    words.take(&["WITH"]);
    let mut options: Vec<RoleOption> = Vec::new();
    while !words.at_end() {
        let at = words.at;
        let switch = SWITCHES.iter().find_map(|(on, off, option)| {
            let word = words.take_any(&[on, off])?;
            Some(option(word == *on))
        });
        let option = match switch {
            Some(option) => Some(option),
            None => other_option(words, is_new)?,
        };
        let Some(option) = option else { continue };
        let same =
            |other: &RoleOption| core::mem::discriminant(other) == core::mem::discriminant(&option);
        if options.iter().any(same) {
            let message = "conflicting or redundant options";
            let place = words.source.position(words.tokens[at].span.start);
            return Err(SqlError::new(SqlState::SYNTAX, message).at(place));
        }
        options.push(option);
    }
    Ok(options)
}

fn other_option(words: &mut Words<'_>, is_new: bool) -> Result<Option<RoleOption>, SqlError> {
    if words.take(&["NOREPLICATION"]) {
        return Ok(None);
    }
    if words.is(&["REPLICATION"]) {
        let error = words.unsupported("REPLICATION");
        return Err(error.hint("There are no replication connections: leave the word out."));
    }
    if words.take(&["CONNECTION", "LIMIT"]) {
        return connection_limit(words).map(|limit| Some(RoleOption::ConnectionLimit(limit)));
    }
    if words.is(&["UNENCRYPTED"]) {
        let error = SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "UNENCRYPTED PASSWORD is no longer supported",
        );
        return Err(
            error.hint("Remove UNENCRYPTED to store the password in encrypted form instead.")
        );
    }
    if words.take(&["PASSWORD"]) || words.take(&["ENCRYPTED", "PASSWORD"]) {
        let password = match words.take(&["NULL"]) {
            true => None,
            false => Some(words.string()?).filter(|text| !text.is_empty()),
        };
        return Ok(Some(RoleOption::Password(password.map(Password))));
    }
    if words.take(&["VALID", "UNTIL"]) {
        return valid_until(words).map(Some);
    }
    if is_new {
        if words.take(&["SYSID"]) {
            words.value()?;
            return Ok(None);
        }
        if words.take(&["IN", "ROLE"]) || words.take(&["IN", "GROUP"]) {
            return Ok(Some(RoleOption::MemberOf(role_names(words)?)));
        }
        if words.take(&["ADMIN"]) {
            return Ok(Some(RoleOption::Admins(grantees(words)?)));
        }
    }
    if is_new && words.take_any(&["ROLE", "USER"]).is_some() {
        return Ok(Some(RoleOption::Members(grantees(words)?)));
    }
    match words.peek() {
        Token::Word(word) if word.quote_style.is_none() => {
            let message = format!("unrecognized role option \"{}\"", word.value.to_lowercase());
            let place = words.source.position(words.tokens[words.at].span.start);
            Err(SqlError::new(SqlState::SYNTAX, message).at(place))
        }
        _ => Err(words.unexpected()),
    }
}

/// The number behind CONNECTION LIMIT.
pub(super) fn connection_limit(words: &mut Words<'_>) -> Result<i32, SqlError> {
    let at = words.at;
    let text = words.value()?;
    let limit: i32 = text.parse().map_err(|_| {
        words.at = at;
        words.unexpected()
    })?;
    if limit < -1 {
        let message = format!("invalid connection limit: {limit}");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
    }
    Ok(limit)
}

fn valid_until(words: &mut Words<'_>) -> Result<RoleOption, SqlError> {
    let text = words.string()?;
    if text.trim().eq_ignore_ascii_case("infinity") {
        return Ok(RoleOption::ValidUntil(None));
    }
    match base::text::parse(Type::Timestamptz(None), &text)? {
        Datum::Timestamp(micros) => Ok(RoleOption::ValidUntil(Some(micros))),
        _ => Err(words.unexpected()),
    }
}

fn alter(words: &mut Words<'_>) -> Result<(&'static str, Change), SqlError> {
    let is_group = words.is_at(1, "GROUP");
    words.at += 2;
    if words.take(&["ALL"]) {
        return Ok(("ALTER ROLE", setting(words, None)?));
    }
    let role = role(words)?;
    if let (RoleName::Named(from), true) = (&role, words.take(&["RENAME", "TO"])) {
        let (from, to) = (from.clone(), new_name(words)?);
        return Ok(("ALTER ROLE", Change::RenameRole { from, to }));
    }
    if is_group {
        let added = words.take_any(&["ADD", "DROP"]);
        let added = added.ok_or_else(|| words.unexpected())?;
        words.expect(&["USER"])?;
        let of = match role {
            RoleName::Named(name) => vec![name],
            _ => return Err(words.unexpected()),
        };
        let change = Change::Members {
            is_grant: added == "ADD",
            of,
            roles: grantees(words)?,
            admin: false,
        };
        return Ok(("ALTER ROLE", change));
    }
    if words.is(&["IN", "DATABASE"]) || words.is(&["SET"]) || words.is(&["RESET"]) {
        return Ok(("ALTER ROLE", setting(words, Some(role))?));
    }
    let options = options(words, false)?;
    Ok(("ALTER ROLE", Change::AlterRole { role, options }))
}

/// `[IN DATABASE d] SET name TO value`, `RESET name`, `RESET ALL`.
fn setting(words: &mut Words<'_>, role: Option<RoleName>) -> Result<Change, SqlError> {
    let database = match words.take(&["IN", "DATABASE"]) {
        true => Some(words.identifier()?),
        false => None,
    };
    let (name, value) = super::commands::kept_setting(words)?;
    Ok(Change::Setting {
        role,
        database,
        name,
        value,
    })
}

fn drop_roles(words: &mut Words<'_>) -> Result<Change, SqlError> {
    words.at += 2;
    let if_exists = words.take(&["IF", "EXISTS"]);
    let roles = list(words, |words| match role(words)? {
        RoleName::Named(name) => Ok(RoleName::Named(name)),
        _ => {
            let message = "cannot use special role specifier in DROP ROLE";
            Err(SqlError::new(SqlState::INVALID_PARAMETER, message))
        }
    })?;
    Ok(Change::DropRoles { roles, if_exists })
}

fn drop_owned(words: &mut Words<'_>) -> Result<Change, SqlError> {
    words.expect(&["DROP", "OWNED", "BY"])?;
    let roles = list(words, role)?;
    let behavior = words.take_any(&["CASCADE", "RESTRICT"]);
    Ok(Change::DropOwned {
        roles,
        cascade: behavior == Some("CASCADE"),
    })
}

fn reassign(words: &mut Words<'_>) -> Result<Change, SqlError> {
    words.expect(&["REASSIGN", "OWNED", "BY"])?;
    let roles = list(words, role)?;
    words.expect(&["TO"])?;
    let to = role(words)?;
    Ok(Change::Reassign { roles, to })
}

/// Privileges with their columns, as words: of a membership each is the name of a role.
type Listed = Vec<(String, bool, Vec<String>)>;

/// A GRANT, and the functions that it names.
type Granted = (&'static str, Change, Option<Vec<super::RoutineName>>);

fn grant(words: &mut Words<'_>, is_grant: bool) -> Result<Granted, SqlError> {
    words.at += 1;
    let admin_only = !is_grant && words.take(&["ADMIN", "OPTION", "FOR"]);
    let option_only = !is_grant && words.take(&["GRANT", "OPTION", "FOR"]);
    let all = words.is(&["ALL"]);
    let listed = listed(words)?;
    if admin_only || !words.is(&["ON"]) {
        if listed.is_empty() || all || listed.iter().any(|(_, _, columns)| !columns.is_empty()) {
            return Err(words.unexpected());
        }
        words.expect(&[if is_grant { "TO" } else { "FROM" }])?;
        let roles = grantees(words)?;
        let admin = match is_grant {
            true => words.take(&["WITH", "ADMIN", "OPTION"]),
            false => admin_only,
        };
        granted_by(words)?;
        words.take_any(&["CASCADE", "RESTRICT"]);
        let tag = if is_grant {
            "GRANT ROLE"
        } else {
            "REVOKE ROLE"
        };
        let of = listed.into_iter().map(|(name, ..)| name).collect();
        let change = Change::Members {
            is_grant,
            of,
            roles,
            admin,
        };
        return Ok((tag, change, None));
    }
    words.expect(&["ON"])?;
    let privileges = privileges(words, listed)?;
    let routines = super::routines::granted(words)?;
    let objects = match routines {
        Some(_) => ObjectNames::Routines(Vec::new()),
        None => objects(words)?,
    };
    words.expect(&[if is_grant { "TO" } else { "FROM" }])?;
    let roles = grantees(words)?;
    let option = match is_grant {
        true => words.take(&["WITH", "GRANT", "OPTION"]),
        false => option_only,
    };
    granted_by(words)?;
    let behavior = match is_grant {
        true => None,
        false => words.take_any(&["CASCADE", "RESTRICT"]),
    };
    let tag = if is_grant { "GRANT" } else { "REVOKE" };
    let grant = Grant {
        is_grant,
        privileges,
        objects,
        roles,
        option,
        cascade: behavior == Some("CASCADE"),
    };
    Ok((tag, Change::Grant(grant), routines))
}

fn granted_by(words: &mut Words<'_>) -> Result<(), SqlError> {
    match words.is(&["GRANTED", "BY"]) {
        true => Err(words.unsupported("GRANTED BY")),
        false => Ok(()),
    }
}

fn listed(words: &mut Words<'_>) -> Result<Listed, SqlError> {
    if words.take(&["ALL"]) {
        words.take(&["PRIVILEGES"]);
        return Ok(match words.peek() {
            Token::LParen => {
                let columns = super::commands::identifiers(words)?;
                vec![("ALL".into(), true, columns)]
            }
            _ => Vec::new(),
        });
    }
    list(words, |words| {
        let plain = matches!(words.peek(), Token::Word(word) if word.quote_style.is_none());
        let name = words.identifier()?;
        let columns = match words.peek() {
            Token::LParen => super::commands::identifiers(words)?,
            _ => Vec::new(),
        };
        Ok((name, plain, columns))
    })
}

fn privileges(
    words: &Words<'_>,
    listed: Listed,
) -> Result<Vec<(Privileges, Vec<String>)>, SqlError> {
    let mut all = Vec::new();
    for (name, plain, columns) in listed {
        let word = name.to_ascii_uppercase();
        let found = match word.as_str() {
            "ALL" if plain => Some(Privileges::NONE),
            word if plain => Privileges::of_word(word),
            _ => None,
        };
        match found {
            Some(privilege) => all.push((privilege, columns)),
            None if matches!(word.as_str(), "SET" | "SYSTEM") => {
                return Err(words.unsupported("GRANT ON PARAMETER"));
            }
            None => {
                let message = format!("unrecognized privilege type \"{name}\"");
                return Err(SqlError::new(SqlState::SYNTAX, message));
            }
        }
    }
    Ok(all)
}

/// Kinds of objects that have no privileges here.
const OTHERS: [&str; 7] = [
    "LANGUAGE",
    "LARGE",
    "FOREIGN",
    "TABLESPACE",
    "TYPE",
    "DOMAIN",
    "PARAMETER",
];

fn objects(words: &mut Words<'_>) -> Result<ObjectNames, SqlError> {
    if words.take(&["ALL", "TABLES", "IN", "SCHEMA"]) {
        return Ok(ObjectNames::All(ObjectKind::Table, names(words)?));
    }
    if words.take(&["ALL", "SEQUENCES", "IN", "SCHEMA"]) {
        return Ok(ObjectNames::All(ObjectKind::Sequence, names(words)?));
    }
    if words.is(&["ALL"]) {
        words.at += 1;
        let kind = words.take_any(&["FUNCTIONS", "PROCEDURES", "ROUTINES"]);
        let kind = kind.ok_or_else(|| words.unexpected())?;
        words.expect(&["IN", "SCHEMA"])?;
        return Ok(ObjectNames::AllRoutines {
            functions: kind != "PROCEDURES",
            procedures: kind != "FUNCTIONS",
            schemas: names(words)?,
        });
    }
    if words.take(&["SEQUENCE"]) {
        return Ok(ObjectNames::Sequences(relations(words)?));
    }
    if words.take(&["DATABASE"]) {
        return Ok(ObjectNames::Databases(names(words)?));
    }
    if words.take(&["SCHEMA"]) {
        return Ok(ObjectNames::Schemas(names(words)?));
    }
    let is_other =
        |kind: &&&str| words.is_at(0, kind) && matches!(words.peek_at(1), Token::Word(_));
    if let Some(kind) = OTHERS.iter().find(is_other) {
        let error = words.unsupported(&format!("GRANT ON {kind}"));
        return Err(
            error.hint("Tables, sequences, schemas, databases and functions have privileges.")
        );
    }
    words.take(&["TABLE"]);
    Ok(ObjectNames::Relations(relations(words)?))
}

fn relations(words: &mut Words<'_>) -> Result<Vec<String>, SqlError> {
    list(words, super::comment::own_name)
}

fn defaults(words: &mut Words<'_>) -> Result<Change, SqlError> {
    words.expect(&["ALTER", "DEFAULT", "PRIVILEGES"])?;
    let (mut roles, mut schemas) = (Vec::new(), Vec::new());
    loop {
        if words.take(&["FOR", "ROLE"]) || words.take(&["FOR", "USER"]) {
            roles = list(words, role)?;
        } else if words.take(&["IN", "SCHEMA"]) {
            schemas = names(words)?;
        } else {
            break;
        }
    }
    let is_grant = words.is(&["GRANT"]);
    if words.take_any(&["GRANT", "REVOKE"]).is_none() {
        return Err(words.unexpected());
    }
    let option_only = !is_grant && words.take(&["GRANT", "OPTION", "FOR"]);
    let listed = listed(words)?;
    if listed.iter().any(|(_, _, columns)| !columns.is_empty()) {
        let message = "default privileges cannot be set for columns";
        return Err(SqlError::new(SqlState::INVALID_GRANT, message));
    }
    let privileges = privileges(words, listed)?;
    words.expect(&["ON"])?;
    let kinds = ["TABLES", "SEQUENCES", "FUNCTIONS", "ROUTINES"];
    let kind = match words.take_any(&kinds) {
        Some("TABLES") => ObjectKind::Table,
        Some("SEQUENCES") => ObjectKind::Sequence,
        Some(_) => ObjectKind::Function,
        None => {
            let error = words.unsupported("ALTER DEFAULT PRIVILEGES of this kind");
            return Err(error.hint("Tables, sequences and functions have default privileges."));
        }
    };
    words.expect(&[if is_grant { "TO" } else { "FROM" }])?;
    let grantees = grantees(words)?;
    let option = match is_grant {
        true => words.take(&["WITH", "GRANT", "OPTION"]),
        false => option_only,
    };
    let behavior = match is_grant {
        true => None,
        false => words.take_any(&["CASCADE", "RESTRICT"]),
    };
    let grant = Grant {
        is_grant,
        privileges,
        objects: ObjectNames::ToCome(kind),
        roles: grantees,
        option,
        cascade: behavior == Some("CASCADE"),
    };
    Ok(Change::Defaults {
        roles,
        schemas,
        grant,
    })
}

/// ALTER ... OWNER TO of anything that has an owner, and ALTER DATABASE ... SET of a setting.
fn alter_owner(words: &mut Words<'_>) -> Result<Option<(&'static str, Change)>, SqlError> {
    let kinds = [
        ("TABLE", ObjectKind::Table, "ALTER TABLE"),
        ("VIEW", ObjectKind::View, "ALTER VIEW"),
        ("SEQUENCE", ObjectKind::Sequence, "ALTER SEQUENCE"),
        ("INDEX", ObjectKind::Index, "ALTER INDEX"),
        ("DATABASE", ObjectKind::Database, "ALTER DATABASE"),
    ];
    let kind = kinds.iter().find(|(word, ..)| words.is_at(1, word));
    let Some((_, kind, tag)) = kind.copied() else {
        return Ok(None);
    };
    let start = words.at;
    words.at += 2;
    let if_exists = kind != ObjectKind::Database && words.take(&["IF", "EXISTS"]);
    words.take(&["ONLY"]);
    let at = words.at;
    let parts = super::comment::name(words);
    let database = match (&parts, kind) {
        (Ok(parts), ObjectKind::Database) => parts.first().cloned(),
        _ => None,
    };
    if let Some(database) = database
        && is_setting(words)
    {
        let (name, value) = super::commands::kept_setting(words)?;
        let change = Change::Setting {
            role: None,
            database: Some(database),
            name,
            value,
        };
        return Ok(Some((tag, change)));
    }
    if parts.is_err() || !words.take(&["OWNER", "TO"]) {
        words.at = start;
        return Ok(None);
    }
    let to = role(words)?;
    if words.peek() == &Token::Comma {
        let error = words.unsupported("OWNER TO among other actions");
        return Err(error.hint("Give the table its owner in a statement of its own."));
    }
    let end = core::mem::replace(&mut words.at, at);
    let name = match kind {
        ObjectKind::Database => words.identifier()?,
        _ => super::comment::own_name(words)?,
    };
    words.at = end;
    let change = Change::Owner {
        kind,
        name,
        if_exists,
        to,
    };
    Ok(Some((tag, change)))
}

/// Whether SET or RESET of a setting follows, rather than of the database's protocol.
fn is_setting(words: &Words<'_>) -> bool {
    words.is(&["RESET"])
        || words.is(&["SET"]) && words.peek_at(1) != &Token::LParen && !words.is_at(1, "PROTOCOL")
}
