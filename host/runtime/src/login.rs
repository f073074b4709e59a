//! The gate of a connection: before a session hears of a client, the client has proved who it is.
//!
//! ```text
//! startup message ──> no rules, or trusted            ──> the session
//!                 ├─> without TLS from elsewhere      ──> refused (28000)
//!                 ├─> a rule rejects it, or none fits ──> refused (28000)
//!                 ├─> a certificate with its name     ──> the session, or refused (28000)
//!                 └─> SASL: mechanisms, two messages  ──> the session, or refused (28P01)
//! ```

use crate::access::{Access, Loopback};
use crate::rules::Method;
use base::calendar::UNIX_EPOCH_MICROS;
use base::{SqlError, SqlState, Time};
use catalog::Catalog;
use scram::{Binding, Exchange, NONCE_BYTES, Refused, Verifier};
use wire::ClientMessage;
use wire::authentication::{initial_response, sasl, sasl_continue, sasl_final};

/// How far a client has come.
#[derive(Debug, Default)]
pub(crate) enum Gate {
    /// It has not said who it is.
    #[default]
    Closed,
    /// It is to prove who it is.
    Asked(Box<Login>),
}

impl Gate {
    /// The role that wants in, as far as it is known.
    pub(crate) fn role(&self) -> &str {
        match self {
            Gate::Closed => "",
            Gate::Asked(login) => &login.role,
        }
    }
}

/// A login under way.
#[derive(Debug)]
pub(crate) struct Login {
    exchange: Exchange,
    /// The first message has been answered.
    begun: bool,
    /// The role exists.
    exists: bool,
    /// It was found in the catalog, and may be dropped before the login is done: a name that no
    /// role has could do everything.
    of_catalog: bool,
    pub(crate) role: String,
    /// For the session, when the login is done.
    startup: ClientMessage,
}

/// How the client reaches the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way<'a> {
    pub(crate) encrypted: bool,
    /// For whom the certificate is that it has shown.
    pub(crate) certified: Option<&'a str>,
    /// Its address; `None`: it has gone.
    pub(crate) from: Option<&'a std::net::IpAddr>,
}

/// What the catalog says of a role that wants in.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// There is such a role. Whether it may log in at all is said by the session.
    pub(crate) exists: bool,
    /// What is kept of its password; `None`: nothing, or there is no such role.
    pub(crate) verifier: Option<Verifier>,
    /// Its password is not good any more.
    pub(crate) has_expired: bool,
}

impl Known {
    /// The role of a startup message as `catalog` has it, at `now`.
    pub(crate) fn of(catalog: &Catalog, startup: &ClientMessage, now: Time) -> Known {
        let name = role_of(startup);
        let mut roles = catalog.rights.roles.values();
        let Some(role) = roles.find(|role| role.name == name) else {
            return Known::default();
        };
        let now = now.0 as i64 - UNIX_EPOCH_MICROS;
        Known {
            exists: true,
            verifier: role
                .password
                .as_deref()
                .and_then(|text| Verifier::parse(text).ok()),
            has_expired: role.valid_until.is_some_and(|until| until < now),
        }
    }
}

/// What follows from a message.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Send this and wait.
    Ask(Gate, Vec<u8>),
    /// Send this, and hand the startup message to the session.
    Enter(Vec<u8>, ClientMessage),
    /// Say why, and close.
    Refuse(SqlError),
}

/// Judges a startup message.
pub(crate) fn on_startup(
    access: Option<&mut Access>,
    way: Way<'_>,
    startup: ClientMessage,
    known: Known,
    nonce: impl FnOnce() -> Option<[u8; NONCE_BYTES]>,
) -> Verdict {
    let (Some(access), ClientMessage::Startup { parameters }) = (access, &startup) else {
        // The session says what is wrong with a message that is none.
        return Verdict::Enter(Vec::new(), startup);
    };
    let value = |wanted| last_of(parameters, wanted).to_owned();
    let role = value("user");
    let is_near = way.from.is_some_and(std::net::IpAddr::is_loopback);
    if is_near && access.loopback == Loopback::Trust {
        return Verdict::Enter(Vec::new(), startup);
    }
    let database = Some(value("database")).filter(|name| !name.is_empty());
    let database = database.unwrap_or_else(|| role.clone());
    let whom = || whom(way, &role, &database);
    if !is_near && !way.encrypted {
        let error = unauthorized(format!("no pg_hba.conf entry for {}", whom()));
        return Verdict::Refuse(
            error.hint("Clients on other machines need TLS (sslmode=require)."),
        );
    }
    match access.method(&database, &role, way.from.copied()) {
        None => {
            let message = format!("no pg_hba.conf entry for {}", whom());
            return Verdict::Refuse(unauthorized(message));
        }
        Some(Method::Reject) => {
            let message = format!("pg_hba.conf rejects connection for {}", whom());
            return Verdict::Refuse(unauthorized(message));
        }
        Some(Method::Cert) => return on_certificate(access, way, &role, startup, &known),
        Some(Method::Scram) => {}
    }
    let Some(nonce) = nonce() else {
        let message = "no random bytes for a login";
        return Verdict::Refuse(SqlError::new(SqlState::CANNOT_CONNECT_NOW, message));
    };
    let of_catalog = known.verifier.is_some();
    let (verifier, exists) = match known.verifier {
        Some(verifier) => (verifier, true),
        None => access.verifier(&role),
    };
    let exists = exists && !known.has_expired;
    let binding = match way.encrypted {
        true => access.binding.clone(),
        false => Binding::None,
    };
    let offer = sasl(Exchange::mechanisms(&binding));
    let login = Login {
        exchange: Exchange::new(verifier, binding, nonce),
        begun: false,
        exists,
        of_catalog,
        role,
        startup,
    };
    Verdict::Ask(Gate::Asked(Box::new(login)), offer)
}

/// Judges a client that is to have a certificate with the name of its role.
fn on_certificate(
    access: &mut Access,
    way: Way<'_>,
    role: &str,
    startup: ClientMessage,
    known: &Known,
) -> Verdict {
    let message = match way.certified {
        None => "connection requires a valid client certificate".to_owned(),
        Some(name) if name != role => {
            tracing::warn!(name, role, "the certificate is not for this role");
            format!("certificate authentication failed for user \"{role}\"")
        }
        Some(_) if !known.exists && !access.verifier(role).1 => {
            format!("role \"{role}\" does not exist")
        }
        Some(_) => {
            let from = way.from.map(ToString::to_string);
            tracing::info!(from, role, "login by certificate");
            return Verdict::Enter(Vec::new(), startup);
        }
    };
    Verdict::Refuse(unauthorized(message))
}

/// A client as PostgreSQL names it in its messages.
fn whom(way: Way<'_>, role: &str, database: &str) -> String {
    let host = way.from.map(ToString::to_string).unwrap_or_default();
    let encryption = match way.encrypted {
        true => "SSL encryption",
        false => "no encryption",
    };
    format!("host \"{host}\", user \"{role}\", database \"{database}\", {encryption}")
}

fn unauthorized(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_AUTHORIZATION, message.into())
}

/// The role of a startup message.
pub(crate) fn role_of(startup: &ClientMessage) -> &str {
    match startup {
        ClientMessage::Startup { parameters } => last_of(parameters, "user"),
        _ => "",
    }
}

fn last_of<'a>(parameters: &'a [(String, String)], wanted: &str) -> &'a str {
    let mut all = parameters.iter().filter(|(name, _)| name == wanted);
    all.next_back().map_or("", |(_, value)| value)
}

/// Judges a message of a login; `known` looks at the catalog again.
pub(crate) fn on_password(
    gate: Gate,
    body: &[u8],
    known: impl FnOnce(&ClientMessage) -> Known,
) -> Verdict {
    let Gate::Asked(mut login) = gate else {
        return Verdict::Refuse(violation("invalid frontend message type 112", ""));
    };
    let answer = if login.begun {
        login.exchange.last(body)
    } else {
        match initial_response(body) {
            Some((mechanism, data)) => login.exchange.first(&mechanism, &data),
            None => Err(Refused::Malformed("The message is not complete.")),
        }
    };
    match answer {
        Ok(answer) if !login.begun => {
            login.begun = true;
            Verdict::Ask(Gate::Asked(login), sasl_continue(&answer))
        }
        Ok(answer) if login.exists && (!login.of_catalog || known(&login.startup).exists) => {
            Verdict::Enter(sasl_final(&answer), login.startup)
        }
        Ok(_) | Err(Refused::Proof) => {
            let message = format!("password authentication failed for user \"{}\"", login.role);
            Verdict::Refuse(SqlError::new(SqlState::INVALID_PASSWORD, message))
        }
        Err(Refused::Mechanism) => Verdict::Refuse(violation(
            "client selected an invalid SASL authentication mechanism",
            "",
        )),
        Err(Refused::Malformed(detail)) => {
            Verdict::Refuse(violation("malformed SCRAM message", detail))
        }
        Err(Refused::Binding) => {
            let message = "SCRAM channel binding negotiation error";
            let error = SqlError::new(SqlState::INVALID_AUTHORIZATION, message);
            Verdict::Refuse(error.detail(
                "What the client's proof is bound to is not what this server has. Somebody may be \
                 between the two.",
            ))
        }
    }
}

/// A message that has no place in a login.
pub(crate) fn unexpected() -> SqlError {
    violation("expected SASL response, got another message", "")
}

fn violation(message: &str, detail: &str) -> SqlError {
    let error = SqlError::new(SqlState::PROTOCOL_VIOLATION, message);
    match detail {
        "" => error,
        detail => error.detail(detail),
    }
}
