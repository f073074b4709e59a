//! Who may log in: passwords, TLS, roles that come and go while the server runs.

use crate::commands::{Running, stderr, stdout, trellis};
use crate::local::{Local, stop};
use crate::support::{ANSWER_LIMIT, Folder, PROGRAM, READY_LIMIT, free_ports, wait_until};
use links::link::{Link, LinkError};
use links::url::Target;
use peer::Certificates;
use runtime::{AccessEntry, Loopback};
use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};

/// `trellis role` in the cluster's directory.
pub(crate) fn role(local: &Local, args: &[&str], password: &str) {
    let mut command = Command::new(PROGRAM);
    command.arg("role").args(args);
    command.arg("--file").arg(local.data().join("roles"));
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // A command that needs no password does not read one.
    let _ = writeln!(input, "{password}");
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// Starts the cluster anew with rules of access.
pub(crate) fn with_access(local: &mut Local, access: AccessEntry) {
    stop(&local.data());
    local.child.wait().unwrap();
    let mut file = local.file();
    file.access = Some(access);
    file.write(&local.data().join("cluster.toml")).unwrap();
    let log = File::create(local.log()).unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("start").arg("--data").arg(local.data());
    command.env("TRELLIS_LOG", "info").stdin(Stdio::null());
    command.stdout(log.try_clone().unwrap()).stderr(log);
    local.child = command.spawn().unwrap();
    wait_until("the welcome", READY_LIMIT, || local.says("Ctrl-C stops"));
}

/// Logs in at the first node: `account` is `role:password`, `query` what follows `?` in a URL.
pub(crate) fn log_in(local: &Local, account: &str, query: &str) -> Result<Link, LinkError> {
    let address = local.file().nodes[0].sql;
    let port = address.port();
    let url = format!("postgres://{account}@localhost:{port}/postgres?{query}");
    let target = Target::parse(&url).unwrap();
    Link::connect(&target.endpoints[0], &target, Some(ANSWER_LIMIT))
}

fn works(local: &Local, account: &str, query: &str) {
    let mut link = log_in(local, account, query).unwrap();
    let answers = link.command("SELECT 1");
    assert!(answers.is_ok(), "{answers:?}");
}

/// The login is refused with this SQLSTATE and message.
fn refused(local: &Local, account: &str, query: &str, sqlstate: &str, message: &str) {
    match log_in(local, account, query) {
        Err(LinkError::Server(error)) => {
            assert_eq!((&*error.sqlstate, &*error.message), (sqlstate, message));
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("{account} was let in"),
    }
}

fn failed(role: &str) -> String {
    format!("password authentication failed for user \"{role}\"")
}

#[test]
fn passwords_and_tls() {
    let mut local = Local::start("access");
    let certificates = Certificates::new(&["localhost"]);
    role(&local, &["alice"], "correct horse");
    role(&local, &["bob"], "p\u{e4}sswort");
    let access = AccessEntry {
        roles: local.data().join("roles"),
        certificate: Some(certificates.server()),
        key: Some(certificates.key()),
        loopback: Loopback::Password,
        ..AccessEntry::default()
    };
    with_access(&mut local, access);
    let root = certificates.root();
    let verified = format!("sslmode=verify-full&sslrootcert={}", root.display());
    for query in ["sslmode=disable", "sslmode=require", &verified] {
        works(&local, "alice:correct%20horse", query);
        works(&local, "bob:p%C3%A4sswort", query);
        refused(&local, "alice:wrong", query, "28P01", &failed("alice"));
        refused(&local, "alice:", query, "28P01", &failed("alice"));
        refused(&local, "carol:any", query, "28P01", &failed("carol"));
    }
    // Large answers and statements cross the pieces of TLS.
    let mut link = log_in(&local, "alice:correct%20horse", "sslmode=require").unwrap();
    let long = "x".repeat(3 << 20);
    let sum = format!("SELECT length('{long}'), repeat('y', 5000000) FROM generate_series(1, 3)");
    assert!(link.command(&sum).is_ok());
    // A running server reads the roles again.
    role(&local, &["alice"], "battery staple");
    refused(
        &local,
        "alice:correct%20horse",
        &verified,
        "28P01",
        &failed("alice"),
    );
    works(&local, "alice:battery%20staple", &verified);
    role(&local, &["bob", "--drop"], "");
    refused(
        &local,
        "bob:p%C3%A4sswort",
        &verified,
        "28P01",
        &failed("bob"),
    );
    role(&local, &["carol"], "any");
    works(&local, "carol:any", &verified);
    // Half a file locks nobody out.
    std::fs::write(local.data().join("roles"), "carol SCRAM-SHA").unwrap();
    works(&local, "carol:any", &verified);
    assert!(
        local.says("the roles stay as they were"),
        "{}",
        local.said()
    );
    assert!(local.says("login refused"), "{}", local.said());
}

#[test]
fn a_new_cluster_has_a_first_role_and_tells_where_its_password_is() {
    let folder = Folder::new("first-role");
    let data = folder.path().join("cluster");
    let port = free_ports(1);
    let text = port.to_string();
    let running = Running::start(&data, &["--shards", "1", "--port", &text, "--password"]);
    let login = |account: &str| {
        let url = format!("postgres://{account}@127.0.0.1:{port}/postgres");
        let target = Target::parse(&url).unwrap();
        Link::connect(&target.endpoints[0], &target, Some(ANSWER_LIMIT))
    };
    let passwords = std::fs::read_to_string(data.join("pgpass")).unwrap();
    let prefix = format!("127.0.0.1:{port}:*:trellis:");
    let password = passwords
        .lines()
        .find_map(|line| line.strip_prefix(&prefix));
    let password = password.expect("a line for the node");
    let mut link = login(&format!("trellis:{password}")).unwrap();
    link.command("CREATE ROLE another LOGIN").unwrap();
    for account in ["trellis:wrong", "trellis", "postgres"] {
        assert!(
            matches!(login(account), Err(LinkError::Server(_))),
            "{account}"
        );
    }
    // The commands read the file.
    let status = trellis(&["status", "--data", &running.data]);
    assert!(status.status.success(), "{}", stderr(&status));
    let answer = trellis(&["sql", "--data", &running.data, "-c", "SELECT current_user"]);
    assert!(stdout(&answer).contains("trellis"), "{}", stderr(&answer));
}

#[test]
fn clients_on_this_machine_may_be_trusted() {
    let mut local = Local::start("access-trust");
    role(&local, &["alice"], "secret");
    let access = AccessEntry {
        roles: local.data().join("roles"),
        certificate: None,
        key: None,
        loopback: Loopback::Trust,
        ..AccessEntry::default()
    };
    with_access(&mut local, access);
    works(&local, "anybody", "sslmode=disable");
    let tls = log_in(&local, "anybody", "sslmode=require");
    assert!(
        matches!(tls, Err(LinkError::Tls(_))),
        "no certificate, no TLS"
    );
}
