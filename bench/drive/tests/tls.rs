//! Whole loads and runs over TLS: by the client whose connections are waited for by its loop.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

mod support;

use drive::report;
use drive::run::RunnerOptions;
use drive::tpcc::{self, LoadOptions, RunOptions};
use links::view::Silent;
use peer::Certificates;
use servers::Kind;
use std::time::Duration;
use support::run_until;
use workload::tpcc::Scale;

/// Loads and runs with these parameters of TLS.
fn load_and_run(url: &str) {
    let load = LoadOptions {
        scale: Scale::reduced(2),
        ..LoadOptions::new(url, 2)
    };
    tpcc::load(&load, &mut Silent).unwrap();
    let options = RunOptions {
        runner: RunnerOptions {
            clients: 4,
            warmup: Duration::from_millis(200),
            length: Duration::from_secs(2),
            ..RunnerOptions::default()
        },
        ..RunOptions::new(url)
    };
    let run = run_until(&options, |run| run.committed() > 20);
    assert!(run.passed(), "{}", report::table(&run));
    assert!(run.committed() > 20, "{}", report::table(&run));
}

#[test]
fn postgres_is_loaded_and_measured_over_tls_alone() {
    let made = Certificates::new(&["localhost"]);
    let hba = std::env::temp_dir().join(format!("trellis-hba-run-{}", std::process::id()));
    std::fs::write(&hba, "hostssl all all 127.0.0.1/32 trust\n").unwrap();
    let settings = [
        String::from("ssl=on"),
        format!("ssl_cert_file={}", made.server().display()),
        format!("ssl_key_file={}", made.key().display()),
        format!("hba_file={}", hba.display()),
        String::from("max_pred_locks_per_transaction=256"),
    ];
    let arguments = settings.iter().flat_map(|it| ["-c", it.as_str()]);
    let server = peer::start(Kind::Postgres, &arguments.collect::<Vec<_>>());
    std::fs::remove_file(&hba).unwrap();
    let Some(server) = server else { return };
    let url = server.url("postgres").replace("127.0.0.1", "localhost");
    let refused = tpcc::load(&LoadOptions::new(&url, 1), &mut Silent);
    assert!(refused.is_err(), "the server lets nobody in without TLS");
    let root = made.root();
    let parameters = format!("sslmode=verify-full&sslrootcert={}", root.display());
    load_and_run(&format!("{url}?{parameters}"));
}

#[test]
fn mariadb_is_loaded_and_measured_over_tls_alone() {
    let made = Certificates::new(&["localhost"]);
    let arguments = [
        format!("--ssl-cert={}", made.server().display()),
        format!("--ssl-key={}", made.key().display()),
        String::from("--require-secure-transport=ON"),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(server) = peer::start(Kind::MariaDb, &arguments) else {
        return;
    };
    let url = server.url("test").replace("127.0.0.1", "localhost");
    let refused = tpcc::load(&LoadOptions::new(&url, 1), &mut Silent);
    assert!(refused.is_err(), "the server lets nobody in without TLS");
    let root = made.root();
    let parameters = format!("ssl-mode=VERIFY_IDENTITY&ssl-ca={}", root.display());
    load_and_run(&format!("{url}?{parameters}"));
}
