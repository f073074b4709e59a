//! `postgres://user:password@host:port,host:port/database`: where the database is, and which wire
//! it speaks. `mysql://` is for MySQL, MariaDB and what speaks their protocol.

use crate::tls::Tls;
use std::fmt;

/// A server that accepts connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A name or an address.
    pub host: String,
    /// That of the wire where the URL names none.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// `postgres://`; port 5432, user `postgres`, and the user's name as the database.
    #[default]
    Postgres,
    /// `mysql://`; port 3306, user `root`, and no database.
    MySql,
    /// `redis://`; port 6379, no database, and no SQL: only workloads that say so.
    Redis,
    /// `etcd://`; port 2379, no accounts, no database, and no SQL.
    Etcd,
    /// `cassandra://`; port 9042, user `cassandra`, a keyspace as the database, and no SQL.
    Cassandra,
    /// `hbase://`; port 9090 of its Thrift 2 gateway, no accounts, a table as the database, and no
    /// SQL.
    HBase,
    /// `mongodb://`; port 27017, no accounts, and no SQL.
    Mongo,
}

impl Wire {
    fn port(self) -> u16 {
        match self {
            Wire::Postgres => 5432,
            Wire::MySql => 3306,
            Wire::Redis => 6379,
            Wire::Etcd => 2379,
            Wire::Cassandra => 9042,
            Wire::HBase => 9090,
            Wire::Mongo => 27017,
        }
    }

    /// Whether it takes SQL.
    pub fn has_sql(self) -> bool {
        match self {
            Wire::Postgres | Wire::MySql => true,
            Wire::Redis | Wire::Etcd | Wire::Cassandra | Wire::HBase | Wire::Mongo => false,
        }
    }

    fn user(self) -> &'static str {
        match self {
            Wire::Postgres => "postgres",
            Wire::MySql => "root",
            Wire::Redis => "default",
            Wire::Cassandra => "cassandra",
            Wire::Etcd | Wire::HBase | Wire::Mongo => "",
        }
    }
}

/// A parsed URL. Several endpoints are nodes of one database; terminals are spread over them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// By the URL's scheme.
    pub wire: Wire,
    /// One or more.
    pub endpoints: Vec<Endpoint>,
    /// That of the wire where the URL names none.
    pub user: String,
    /// For the authentication that the server asks for.
    pub password: Option<String>,
    /// That of the wire where the URL names none; empty: no database.
    pub database: String,
    /// Whether its connections are encrypted.
    pub tls: Tls,
    /// How the server's lists of sessions call this client.
    pub application_name: &'static str,
}

/// What is wrong with a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlError {
    /// It does not begin with the scheme of a wire.
    Scheme,
    /// A port is not a number in 1 to 65535.
    Port,
    /// A percent sign is not followed by two hexadecimal digits of UTF-8 text.
    Escape,
    /// A parameter after `?` asks for what this client does not do.
    Parameter(String),
    /// A parameter is there more than once.
    Twice(String),
    /// What is said of TLS cannot be done, as a sentence.
    Tls(String),
    /// What is to be done is not for this wire.
    Wire,
    /// What is to be done takes SQL.
    Sql,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UrlError::Parameter(text) => {
                return write!(
                    f,
                    "the URL's parameter {text:?} is not known: there are sslmode=disable, allow, \
                 prefer, require, verify-ca, verify-full and sslrootcert=FILE (mysql: \
                 ssl-mode=DISABLED, PREFERRED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY and \
                 ssl-ca=FILE)"
                );
            }
            UrlError::Twice(name) => return write!(f, "the URL's parameter {name} is said twice"),
            UrlError::Tls(text) => return f.write_str(text),
            UrlError::Scheme => {
                "the URL does not begin with postgres:// or mysql://, as \
                 postgres://trellis@127.0.0.1:5433/shop does"
            }
            UrlError::Port => "a port in the URL is not a number from 1 to 65535",
            UrlError::Escape => "a percent escape in the URL is not valid",
            UrlError::Sql => "this needs a server with SQL: postgres:// or mysql://",
            UrlError::Wire => "this needs a server that speaks the PostgreSQL wire: postgres://",
        })
    }
}

impl std::error::Error for UrlError {}

impl Target {
    /// Reads a URL, and the file of certificates that it names. Parameters after `?` are about
    /// TLS ([`crate::tls`]); every other setting is an option of its own.
    pub fn parse(url: &str) -> Result<Target, UrlError> {
        let schemes = [
            ("postgres://", Wire::Postgres),
            ("postgresql://", Wire::Postgres),
            ("mysql://", Wire::MySql),
            ("redis://", Wire::Redis),
            ("etcd://", Wire::Etcd),
            ("cassandra://", Wire::Cassandra),
            ("hbase://", Wire::HBase),
            ("mongodb://", Wire::Mongo),
        ];
        let mut known = schemes.into_iter();
        let known = known.find_map(|(scheme, wire)| Some((wire, url.strip_prefix(scheme)?)));
        let (wire, rest) = known.ok_or(UrlError::Scheme)?;
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let parameters = parameters.split('&').filter(|it| !it.is_empty());
        let parameters = parameters.map(|it| {
            let (name, value) = it.split_once('=').unwrap_or((it, ""));
            Ok((unescape(name)?, unescape(value)?))
        });
        let tls = Tls::of_parameters(wire, &parameters.collect::<Result<Vec<_>, _>>()?)?;
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (account, hosts) = match authority.rsplit_once('@') {
            Some((account, hosts)) => (Some(account), hosts),
            None => (None, authority),
        };
        let (user, password) = match account.map(|a| a.split_once(':').unwrap_or((a, ""))) {
            Some((user, "")) => (unescape(user)?, None),
            Some((user, password)) => (unescape(user)?, Some(unescape(password)?)),
            None => (String::from(wire.user()), None),
        };
        let endpoints = hosts
            .split(',')
            .map(|host| endpoint(host, wire))
            .collect::<Result<Vec<_>, _>>()?;
        let database = match (database, wire) {
            ("", Wire::Postgres) => user.clone(),
            (name, _) => unescape(name)?,
        };
        Ok(Target {
            wire,
            endpoints,
            user,
            password,
            database,
            tls,
            application_name: "trellis bench",
        })
    }
}

impl Target {
    /// The same, if it takes SQL.
    ///
    /// # Errors
    /// [`UrlError::Sql`].
    pub fn of_sql(self) -> Result<Target, UrlError> {
        match self.wire.has_sql() {
            true => Ok(self),
            false => Err(UrlError::Sql),
        }
    }

    /// The same, if it speaks the PostgreSQL wire.
    ///
    /// # Errors
    /// [`UrlError::Wire`].
    pub fn of_postgres(self) -> Result<Target, UrlError> {
        match self.wire {
            Wire::Postgres => Ok(self),
            _ => Err(UrlError::Wire),
        }
    }
}

fn endpoint(text: &str, wire: Wire) -> Result<Endpoint, UrlError> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        None => wire.port(),
        Some(port) => port.parse().ok().filter(|&p| p > 0).ok_or(UrlError::Port)?,
    };
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Ok(Endpoint {
        host: unescape(host)?,
        port,
    })
}

fn unescape(text: &str) -> Result<String, UrlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = tail;
            continue;
        }
        let digits = tail.get(..2).and_then(|d| std::str::from_utf8(d).ok());
        let value = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
        bytes.push(value.ok_or(UrlError::Escape)?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| UrlError::Escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_and_short_urls_are_read() {
        let target =
            Target::parse("postgres://ann:p%40ss@a:1,b,[::1]:3/shop?sslmode=disable").unwrap();
        let tls = Target::parse("postgres://a/b?sslmode=require&other=5").unwrap_err();
        assert_eq!(tls, UrlError::Parameter(String::from("other=5")));
        let escaped = Target::parse("postgres://a/b?sslmode=verify-ca&sslrootcert=%2Fno%20file");
        let error = escaped.unwrap_err().to_string();
        assert!(error.starts_with("/no file: "), "{error}");
        let shown: Vec<String> = target.endpoints.iter().map(Endpoint::to_string).collect();
        assert_eq!(shown, ["a:1", "b:5432", "[::1]:3"]);
        assert_eq!(
            (target.user.as_str(), target.database.as_str()),
            ("ann", "shop")
        );
        assert_eq!(target.password.as_deref(), Some("p@ss"));
        let short = Target::parse("postgresql://").unwrap();
        assert_eq!(short.endpoints[0].to_string(), "127.0.0.1:5432");
        assert_eq!(
            (short.user.as_str(), short.database.as_str()),
            ("postgres", "postgres")
        );
    }

    #[test]
    fn the_scheme_names_the_wire() {
        let target = Target::parse("mysql://127.0.0.1/shop").unwrap();
        assert_eq!((target.wire, target.endpoints[0].port), (Wire::MySql, 3306));
        assert_eq!(
            (target.user.as_str(), target.database.as_str()),
            ("root", "shop")
        );
        assert_eq!(Target::parse("mysql://a").unwrap().database, "");
        let refused = Target::parse("mysql://a").unwrap().of_postgres();
        assert_eq!(refused, Err(UrlError::Wire));
        assert_eq!(Target::parse("postgres://a").unwrap().wire, Wire::Postgres);
        let target = Target::parse("cassandra://h1,h2:7/shop").unwrap();
        let ports: Vec<u16> = target.endpoints.iter().map(|it| it.port).collect();
        assert_eq!((target.wire, ports), (Wire::Cassandra, vec![9042, 7]));
        assert_eq!(target.database, "shop");
        let target = Target::parse("hbase://h/shop").unwrap();
        assert_eq!((target.wire, target.endpoints[0].port), (Wire::HBase, 9090));
        assert_eq!(target.of_sql(), Err(UrlError::Sql));
    }

    #[test]
    fn bad_urls_say_what_is_wrong() {
        assert_eq!(Target::parse("http://a/b"), Err(UrlError::Scheme));
        assert_eq!(Target::parse("postgres://a:0/b"), Err(UrlError::Port));
        assert_eq!(Target::parse("postgres://a:x/b"), Err(UrlError::Port));
        assert_eq!(Target::parse("postgres://a%4/b"), Err(UrlError::Escape));
        assert_eq!(Target::parse("postgres://%ff@a/b"), Err(UrlError::Escape));
    }
}
