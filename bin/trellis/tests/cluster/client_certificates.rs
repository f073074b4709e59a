//! Clients that show a certificate, and rules which proof is asked of whom.

use crate::commands::{stderr, trellis};
use crate::local::Local;
use crate::support::{ANSWER_LIMIT, Folder, PROGRAM, READY_LIMIT, wait_until};
use runtime::AccessEntry;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ALL_VERSIONS, ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned,
    SupportedProtocolVersion,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

fn cert(folder: &Path, args: &[&str]) {
    let mut command = Command::new(PROGRAM);
    command.arg("cert").arg(folder).args(args);
    let status = command.stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{args:?}");
}

/// What the server says to a startup message: the first message behind the login, as
/// `SQLSTATE message` if it is an error, `in` if the client is let in, `password` if it is asked
/// for one, or what TLS says.
struct Client<'a> {
    local: &'a Local,
    tls: PathBuf,
}

impl Client<'_> {
    fn log_in(&self, role: &str, database: &str, shown: Option<&str>) -> String {
        self.connect(&self.config(shown, ALL_VERSIONS), role, database)
            .0
    }

    fn config(
        &self,
        shown: Option<&str>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_file(self.tls.join("ca.crt")).unwrap();
        roots.add(root).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        Arc::new(match shown {
            None => config.with_no_client_auth(),
            Some(file) => {
                let chain = CertificateDer::from_pem_file(self.tls.join(format!("{file}.crt")));
                let key = PrivateKeyDer::from_pem_file(self.tls.join(format!("{file}.key")));
                config
                    .with_client_auth_cert(vec![chain.unwrap()], key.unwrap())
                    .unwrap()
            }
        })
    }

    /// What the server says, and whether the whole handshake was made.
    fn connect(&self, config: &Arc<ClientConfig>, role: &str, database: &str) -> (String, bool) {
        let mut stream = TcpStream::connect(self.local.file().nodes[0].sql).unwrap();
        let limit = Some(ANSWER_LIMIT);
        stream.set_read_timeout(limit).unwrap();
        stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).unwrap();
        let mut agreed = [0];
        stream.read_exact(&mut agreed).unwrap();
        assert_eq!(&agreed, b"S");
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(config.clone(), name).unwrap();
        let mut stream = StreamOwned::new(session, stream);
        let said = answer(&mut stream, role, database);
        let kind = stream.conn.handshake_kind();
        (said, kind.is_none_or(|kind| kind != HandshakeKind::Resumed))
    }

    fn log_in_plainly(&self, role: &str, database: &str) -> String {
        let stream = TcpStream::connect(self.local.file().nodes[0].sql).unwrap();
        let limit = Some(ANSWER_LIMIT);
        stream.set_read_timeout(limit).unwrap();
        answer(stream, role, database)
    }
}

fn answer(mut stream: impl Read + Write, role: &str, database: &str) -> String {
    let mut startup = vec![0, 3, 0, 0];
    for text in ["user", role, "database", database, ""] {
        startup.extend_from_slice(text.as_bytes());
        startup.push(0);
    }
    let length = (startup.len() as u32 + 4).to_be_bytes();
    let sent = stream.write_all(&[&length, &*startup].concat());
    let mut head = [0; 5];
    let got = sent.and_then(|()| stream.read_exact(&mut head));
    if let Err(error) = got {
        return error.to_string();
    }
    let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize - 4;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    match head[0] {
        b'R' if body == [0; 4] => "in".to_owned(),
        b'R' => "password".to_owned(),
        b'E' => {
            let fields = body.split(|byte| *byte == 0);
            let field = |kind: u8| {
                let mut all = fields.clone();
                let field = all.find(|field| field.first() == Some(&kind)).unwrap();
                String::from_utf8(field[1..].to_vec()).unwrap()
            };
            format!("{} {}", field(b'C'), field(b'M'))
        }
        kind => panic!("{kind}"),
    }
}

#[test]
fn certificates_and_rules() {
    let mut local = Local::start("client-certificates");
    let tls = local.data().join("tls");
    cert(
        &tls,
        &[
            "--host",
            "localhost",
            "--role",
            "alice",
            "--role",
            "bob",
            "--role",
            "carol",
            "--role",
            "erin",
        ],
    );
    let other = local.data().join("other");
    cert(&other, &["--role", "alice"]);
    for end in ["crt", "key"] {
        let from = other.join(format!("alice.{end}"));
        std::fs::copy(from, tls.join(format!("foreign.{end}"))).unwrap();
    }
    for role in ["alice", "bob", "dave"] {
        crate::access::role(&local, &[role], "secret");
    }
    let rules = local.data().join("rules");
    let text = "# database role address proof\n\
                postgres alice,carol,erin all cert\n\
                postgres bob 127.0.0.0/8 scram\n\
                all bob all reject\n";
    std::fs::write(&rules, text).unwrap();
    let access = AccessEntry {
        roles: local.data().join("roles"),
        certificate: Some(tls.join("server.crt")),
        key: Some(tls.join("server.key")),
        rules: Some(rules.clone()),
        client_authority: Some(tls.join("ca.crt")),
        client_revoked: None,
        ..AccessEntry::default()
    };
    crate::access::with_access(&mut local, access);
    let client = Client { local: &local, tls };
    let log_in = |role, database, shown| client.log_in(role, database, shown);
    let no_certificate = "28000 connection requires a valid client certificate";
    let wrong = "28000 certificate authentication failed for user \"alice\"";
    assert_eq!(log_in("alice", "postgres", Some("alice")), "in");
    assert_eq!(log_in("alice", "postgres", None), no_certificate);
    assert_eq!(client.log_in_plainly("alice", "postgres"), no_certificate);
    assert_eq!(log_in("alice", "postgres", Some("bob")), wrong);
    let unknown = "28000 role \"carol\" does not exist";
    assert_eq!(log_in("carol", "postgres", Some("carol")), unknown);
    // No session goes on on another connection: that would bring a certificate that has expired.
    for version in [&TLS12, &TLS13] {
        let config = client.config(Some("alice"), &[version]);
        for _ in 0..3 {
            let (said, whole) = client.connect(&config, "alice", "postgres");
            assert_eq!((&*said, whole), ("in", true), "{version:?}");
        }
    }
    // Roles of the catalog need not stand in the file.
    let unknown = "28000 role \"erin\" does not exist";
    assert_eq!(log_in("erin", "postgres", Some("erin")), unknown);
    let mut link = crate::access::log_in(&local, "bob:secret", "sslmode=require").unwrap();
    let made = "CREATE ROLE erin LOGIN VALID UNTIL '2020-01-01'";
    assert!(link.command(made).is_ok());
    assert_eq!(log_in("erin", "postgres", Some("erin")), "in");
    assert_eq!(
        log_in("erin", "postgres", Some("alice")),
        wrong.replace("alice", "erin")
    );
    assert!(link.command("DROP ROLE erin").is_ok());
    assert_eq!(log_in("erin", "postgres", Some("erin")), unknown);
    // A certificate of others ends the connection, as in PostgreSQL.
    let foreign = log_in("alice", "postgres", Some("foreign"));
    assert!(foreign.contains("received fatal alert"), "{foreign}");
    assert_eq!(log_in("bob", "postgres", None), "password");
    assert_eq!(log_in("bob", "postgres", Some("bob")), "password");
    assert_eq!(client.log_in_plainly("bob", "postgres"), "password");
    let rejects = "28000 pg_hba.conf rejects connection for host \"127.0.0.1\", user \"bob\", \
                   database \"other\", ";
    assert_eq!(
        log_in("bob", "other", None),
        format!("{rejects}SSL encryption")
    );
    let plainly = client.log_in_plainly("bob", "other");
    assert_eq!(plainly, format!("{rejects}no encryption"));
    let none = "28000 no pg_hba.conf entry for host \"127.0.0.1\", user \"dave\", database \
                \"postgres\", SSL encryption";
    assert_eq!(log_in("dave", "postgres", None), none);
    // Rules are read again; half a file locks nobody out.
    std::fs::write(&rules, format!("{text}all dave all scram\n")).unwrap();
    assert_eq!(log_in("dave", "postgres", None), "password");
    std::fs::write(&rules, "all dave").unwrap();
    assert_eq!(log_in("dave", "postgres", None), "password");
    wait_until("the warning", READY_LIMIT, || {
        local.says("the rules stay as they were")
    });
    // So is the server's certificate.
    cert(&client.tls, &["--host", "elsewhere"]);
    let elsewhere = log_in("bob", "postgres", None);
    assert!(elsewhere.contains("not valid for name"), "{elsewhere}");
}

#[test]
fn a_revoked_certificate_is_refused() {
    let mut local = Local::start("client-revoked");
    let tls = local.data().join("tls");
    cert(
        &tls,
        &["--host", "localhost", "--role", "alice", "--role", "bob"],
    );
    let first = tls.join("bob.crt");
    cert(&tls, &["--revoke", first.to_str().unwrap()]);
    for role in ["alice", "bob"] {
        crate::access::role(&local, &[role], "secret");
    }
    let rules = local.data().join("rules");
    std::fs::write(&rules, "all all all cert\n").unwrap();
    let access = AccessEntry {
        roles: local.data().join("roles"),
        certificate: Some(tls.join("server.crt")),
        key: Some(tls.join("server.key")),
        rules: Some(rules),
        client_authority: Some(tls.join("ca.crt")),
        client_revoked: Some(tls.join("revoked.crl")),
        ..AccessEntry::default()
    };
    crate::access::with_access(&mut local, access);
    let client = Client {
        local: &local,
        tls: tls.clone(),
    };
    let revoked = client.log_in("bob", "postgres", Some("bob"));
    assert!(revoked.contains("received fatal alert"), "{revoked}");
    assert_eq!(client.log_in("alice", "postgres", Some("alice")), "in");
    let second = tls.join("alice.crt");
    cert(&tls, &["--revoke", second.to_str().unwrap()]);
    let revoked = client.log_in("alice", "postgres", Some("alice"));
    assert!(revoked.contains("received fatal alert"), "{revoked}");
    cert(&tls, &["--role", "alice"]);
    assert_eq!(client.log_in("alice", "postgres", Some("alice")), "in");
}

#[test]
fn a_wrong_command_writes_nothing() {
    let folder = Folder::new("cert-names");
    let tls = folder.path().join("tls");
    let run = |args: &[&str]| {
        let tls = tls.to_str().unwrap();
        let output = trellis(&[&["cert", tls], args].concat());
        (output.status.success(), stderr(&output))
    };
    let missing = folder.path().join("none");
    let missing = missing.to_str().unwrap();
    let wrong: [&[&str]; 8] = [
        &["--role", "ca"],
        &["--role", "alice", "--role", "Server"],
        &["--host", "localhost", "--role", "node-12"],
        &["--role", ""],
        &["--role", "a/b"],
        &["--host", "not a name\u{e4}"],
        &["--role", "alice", "--cluster", missing],
        &["--role", "alice", "--revoke", missing],
    ];
    for args in wrong {
        let (done, said) = run(args);
        assert!(!done && !said.is_empty(), "{args:?}");
        assert!(!tls.exists(), "{args:?} has written something");
    }
    assert!(run(&["--role", "ca"]).1.contains("ca.key"));
    assert!(run(&["--role", "node-x", "--role", "cab"]).0);
}
