//! TLS with servers of others: what each mode of a URL accepts, and what it says otherwise.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

use links::answers::Answers;
use links::link::{Link, LinkError};
use links::url::Target;
use peer::Certificates;
use servers::{Kind, Server};
use std::io::ErrorKind;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use workload::wire::Connection;

const LIMIT: Duration = Duration::from_secs(30);

fn postgres(certificates: Option<&Certificates>, more: &[&str]) -> Option<Server> {
    let settings = certificates.map(|made| {
        let (server, key) = (made.server(), made.key());
        [
            String::from("ssl=on"),
            format!("ssl_cert_file={}", server.display()),
            format!("ssl_key_file={}", key.display()),
        ]
    });
    let settings = settings.iter().flatten();
    let mut arguments: Vec<&str> = settings.flat_map(|it| ["-c", it.as_str()]).collect();
    arguments.extend(more);
    peer::start(Kind::Postgres, &arguments)
}

/// The URL of a server by this name of its host, with these parameters.
fn url(server: &Server, host: &str, database: &str, parameters: &str) -> String {
    let url = server.url(database).replace("127.0.0.1", host);
    format!("{url}?{parameters}")
}

fn connect(url: &str) -> Result<Link, LinkError> {
    let target = Target::parse(url).unwrap();
    Link::connect(&target.endpoints[0], &target, Some(LIMIT))
}

/// The cell of a query with one.
fn cell(link: &mut Link, sql: &str) -> String {
    let mut answers = Answers::new();
    link.query(sql, &mut answers).unwrap();
    answers.text(0, 0, 0).to_owned()
}

/// The version of TLS that the server sees; empty without TLS.
fn version(url: &str) -> String {
    let mut link = connect(url).unwrap();
    let sql = match url.starts_with("mysql") {
        true => {
            "SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = \
             'Ssl_version'"
        }
        false => "SELECT coalesce(version, '') FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
    };
    let version = cell(&mut link, sql);
    assert_eq!(link.stream().is_secure(), !version.is_empty());
    version
}

fn refused(url: &str) -> String {
    match connect(url) {
        Ok(_) => panic!("{url}: it is connected"),
        Err(error) => error.to_string(),
    }
}

fn root(mode: &str, file: &Path) -> String {
    match mode.starts_with("sslmode") {
        true => format!("{mode}&sslrootcert={}", file.display()),
        false => format!("{mode}&ssl-ca={}", file.display()),
    }
}

#[test]
fn each_mode_does_with_postgres_what_libpq_does() {
    let (own, other) = (Certificates::new(&["localhost"]), Certificates::new(&["x"]));
    let Some(server) = postgres(Some(&own), &[]) else {
        return;
    };
    let by = |host: &str, parameters: &str| url(&server, host, "postgres", parameters);
    for mode in ["", "sslmode=disable", "sslmode=allow"] {
        assert_eq!(version(&by("localhost", mode)), "", "{mode:?}");
    }
    for mode in ["sslmode=prefer", "sslmode=require"] {
        assert_eq!(version(&by("127.0.0.1", mode)), "TLSv1.3", "{mode}");
    }
    let (full, ca) = ("sslmode=verify-full", "sslmode=verify-ca");
    for (host, mode, file) in [
        ("localhost", full, own.root()),
        ("localhost", full, own.server()),
        ("127.0.0.1", ca, own.root()),
        ("127.0.0.1", ca, own.server()),
        ("127.0.0.1", "sslmode=require", own.root()),
    ] {
        assert_eq!(version(&by(host, &root(mode, &file))), "TLSv1.3", "{mode}");
    }
    let wrong = refused(&by("127.0.0.1", &root(full, &own.root())));
    let why = "TLS with 127.0.0.1: the server's certificate is not for 127.0.0.1";
    assert!(
        wrong.starts_with(why) && wrong.contains("localhost"),
        "{wrong}"
    );
    for mode in [full, ca, "sslmode=require"] {
        let wrong = refused(&by("localhost", &root(mode, &other.root())));
        let file = other.root().display().to_string();
        assert!(wrong.contains("is not signed by one in"), "{wrong}");
        assert!(wrong.contains(&file), "{wrong}");
    }
}

#[test]
fn a_postgres_without_tls_is_refused_where_tls_is_asked_for() {
    let Some(server) = postgres(None, &[]) else {
        return;
    };
    let by = |parameters: &str| url(&server, "127.0.0.1", "postgres", parameters);
    for mode in ["sslmode=disable", "sslmode=allow", "sslmode=prefer"] {
        assert_eq!(version(&by(mode)), "", "{mode}");
    }
    let wrong = refused(&by("sslmode=require"));
    assert_eq!(
        wrong,
        "the server has no TLS, and sslmode=require asks for it"
    );
    let other = Certificates::new(&["x"]);
    let wrong = refused(&by(&root("sslmode=verify-full", &other.root())));
    assert!(wrong.starts_with("the server has no TLS"), "{wrong}");
}

/// A server that lets nobody in without TLS, or nobody with it.
#[test]
fn the_other_way_is_tried_where_the_mode_leaves_it_open() {
    let made = Certificates::new(&["localhost"]);
    for (kind, modes, is_secure) in [
        ("hostssl", ["sslmode=allow", "sslmode=prefer"], true),
        ("hostnossl", ["sslmode=allow", "sslmode=prefer"], false),
    ] {
        let name = format!("trellis-hba-{}-{kind}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, format!("{kind} all all 127.0.0.1/32 trust\n")).unwrap();
        let setting = format!("hba_file={}", path.display());
        let server = postgres(Some(&made), &["-c", &setting]);
        std::fs::remove_file(&path).unwrap();
        let Some(server) = server else { return };
        let by = |mode: &str| url(&server, "127.0.0.1", "postgres", mode);
        for mode in modes {
            assert_eq!(!version(&by(mode)).is_empty(), is_secure, "{kind} {mode}");
        }
        let wrong = refused(&by(match is_secure {
            true => "sslmode=disable",
            false => "sslmode=require",
        }));
        assert!(wrong.contains("pg_hba.conf"), "{wrong}");
    }
}

#[test]
fn each_mode_does_with_mariadb_what_its_client_does() {
    let (own, other) = (Certificates::new(&["localhost"]), Certificates::new(&["x"]));
    let (certificate, key) = (own.server(), own.key());
    let arguments = [
        format!("--ssl-cert={}", certificate.display()),
        format!("--ssl-key={}", key.display()),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(server) = peer::start(Kind::MariaDb, &arguments) else {
        return;
    };
    let by = |host: &str, parameters: &str| url(&server, host, "mysql", parameters);
    for mode in ["", "ssl-mode=DISABLED"] {
        assert_eq!(version(&by("localhost", mode)), "", "{mode:?}");
    }
    for mode in ["ssl-mode=PREFERRED", "ssl-mode=REQUIRED"] {
        assert_eq!(version(&by("127.0.0.1", mode)), "TLSv1.3", "{mode}");
    }
    let (full, ca) = ("ssl-mode=VERIFY_IDENTITY", "ssl-mode=VERIFY_CA");
    for (host, mode) in [("localhost", full), ("127.0.0.1", ca)] {
        assert_eq!(version(&by(host, &root(mode, &own.root()))), "TLSv1.3");
    }
    let wrong = refused(&by("127.0.0.1", &root(full, &own.root())));
    assert!(wrong.contains("is not for 127.0.0.1"), "{wrong}");
    for mode in [full, ca] {
        let wrong = refused(&by("localhost", &root(mode, &other.root())));
        assert!(wrong.contains("is not signed by one in"), "{wrong}");
    }
    // With a password, and rows in both directions.
    let mut link = connect(&by("localhost", &root(full, &own.root()))).unwrap();
    link.command("CREATE USER ann@localhost IDENTIFIED BY 'secret' REQUIRE SSL")
        .unwrap();
    link.command("GRANT ALL ON *.* TO ann@localhost").unwrap();
    let as_ann = |mode: &str| by("localhost", mode).replace("root@", "ann:secret@");
    let mut link = connect(&as_ann("ssl-mode=REQUIRED")).unwrap();
    assert!(cell(&mut link, "SELECT CURRENT_USER()").starts_with("ann@"));
    assert_eq!(cell(&mut link, "SELECT DATABASE()"), "mysql");
    let wrong = refused(&as_ann("ssl-mode=DISABLED"));
    assert!(wrong.contains("Access denied"), "{wrong}");
}

#[test]
fn a_mariadb_without_tls_is_refused_where_tls_is_asked_for() {
    let Some(server) = peer::start(Kind::MariaDb, &["--skip-ssl"]) else {
        return;
    };
    let by = |parameters: &str| url(&server, "127.0.0.1", "mysql", parameters);
    assert_eq!(version(&by("ssl-mode=PREFERRED")), "");
    let wrong = refused(&by("ssl-mode=REQUIRED"));
    assert_eq!(
        wrong,
        "the server has no TLS, and ssl-mode=REQUIRED asks for it"
    );
}

/// More than any buffer holds, each way, over a connection that waits and over one that does not.
#[test]
fn large_messages_go_both_ways() {
    let made = Certificates::new(&["localhost"]);
    for versions in ["TLSv1.2", "TLSv1.3"] {
        let setting = format!("ssl_max_protocol_version={versions}");
        let Some(server) = postgres(Some(&made), &["-c", &setting]) else {
            return;
        };
        let parameters = root("sslmode=verify-full", &made.root());
        let url = url(&server, "localhost", "postgres", &parameters);
        assert_eq!(version(&url), versions);
        let mut link = connect(&url).unwrap();
        let long = "0123456789abcdef".repeat(1 << 18);
        let sql =
            format!("SELECT repeat(md5(n::text), 1000), '{long}' FROM generate_series(1, 10) n");
        let mut waited = Answers::new();
        link.query(&sql, &mut waited).unwrap();
        assert_eq!(waited.text(0, 9, 1).len(), long.len());
        let is_late = link.stream().suspend().unwrap();
        let mut suspended = Answers::new();
        {
            let mut cx = Context::from_waker(Waker::noop());
            let mut asking = pin!(Connection::simple(&mut link, &sql, &mut suspended));
            let begun = Instant::now();
            let mut pending = 0;
            while asking.as_mut().poll(&mut cx).is_pending() {
                pending += 1;
                assert!(begun.elapsed() < LIMIT, "it is stuck");
                std::thread::sleep(Duration::from_micros(200));
            }
            assert!(pending > 2, "nobody waited in the call");
        }
        for row in 0..10 {
            for column in 0..2 {
                let cells = [&waited, &suspended].map(|it| it.text(0, row, column));
                assert_eq!(cells[0], cells[1]);
            }
        }
        is_late.set();
        let mut cx = Context::from_waker(Waker::noop());
        let asking = Connection::simple(&mut link, "SELECT pg_sleep(60)", &mut suspended);
        let Poll::Ready(Err(LinkError::Io(ErrorKind::TimedOut, _))) = pin!(asking).poll(&mut cx)
        else {
            panic!("nobody waits for it any more");
        };
    }
}

/// Somebody between client and server adds bytes in clear text to the server's consent.
#[test]
fn bytes_in_clear_text_before_tls_are_not_believed() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut guest = listener.accept().unwrap().0;
        guest.read_exact(&mut [0; 8]).unwrap();
        guest
            .write_all(b"SR\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")
            .unwrap();
        let _ = guest.read(&mut [0; 64]);
    });
    let wrong = refused(&format!("postgres://ann@{address}/shop?sslmode=require"));
    assert!(wrong.contains("bytes in clear text"), "{wrong}");
    server.join().unwrap();
    // What says neither yes nor no is no server.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut guest = listener.accept().unwrap().0;
        guest.read_exact(&mut [0; 8]).unwrap();
        guest.write_all(b"HTTP/1.1 400\r\n").unwrap();
        let _ = guest.read(&mut [0; 64]);
    });
    let wrong = refused(&format!("postgres://ann@{address}/shop?sslmode=prefer"));
    assert!(wrong.contains("request for TLS"), "{wrong}");
    server.join().unwrap();
}
