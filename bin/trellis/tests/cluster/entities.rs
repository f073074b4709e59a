//! The entity stores of the benchmark on Trellis, under each protocol: the conformance suite, and
//! nodes killed under load.

use crate::support::Cluster;
use entity::conformance::Verdict;
use std::time::Duration;
use stores::{Options, conformance, crash};

const PROTOCOLS: [&str; 3] = ["two_phase", "leap", "formula"];

fn conforms(url: &str, mapping: &str, is_optimistic: bool) {
    let options = Options {
        mapping: Some(mapping.to_owned()),
        timeout: Duration::from_secs(60),
        ..Options::default()
    };
    let (store, verdicts) = conformance::judge(url, options, is_optimistic).unwrap();
    assert!(store.product.starts_with("Trellis"), "{store:?}");
    assert!(store.is_durable, "{store:?}");
    for (check, verdict) in verdicts {
        if let Verdict::Failed(why) = verdict {
            panic!("{store:?}, {check}: {why}");
        }
    }
}

#[test]
fn entities_conform_under_each_protocol() {
    let cluster = Cluster::start("entities", 3, 1);
    for protocol in PROTOCOLS {
        let database = format!("of_{protocol}");
        cluster.create_as(protocol, &database, &[]);
        let url = cluster.url(&database);
        conforms(&url, "tables", true);
        conforms(&url, "tables-lock", false);
    }
}

#[test]
fn nodes_killed_under_load_keep_acknowledged_entities() {
    let mut cluster = Cluster::start("entitieskill", 3, 1);
    for protocol in PROTOCOLS {
        let database = format!("of_{protocol}");
        cluster.create_as(protocol, &database, &[]);
        let url = cluster.url(&database);
        let mut victim = 0;
        let aftermath = crash::under_load(&url, Some("tables"), || {
            cluster.kill(victim);
            std::thread::sleep(Duration::from_millis(100));
            cluster.spawn(victim);
            cluster.wait_ready(victim);
            victim += 1;
        });
        let findings = aftermath.unwrap().findings();
        assert!(findings.is_empty(), "{protocol}: {}", findings.join("\n"));
    }
}

#[test]
fn all_nodes_killed_at_once_keep_acknowledged_entities() {
    let mut cluster = Cluster::start("entitieskillall", 3, 1);
    for protocol in PROTOCOLS {
        let database = format!("of_{protocol}");
        cluster.create_as(protocol, &database, &[]);
        let url = cluster.url(&database);
        let aftermath = crash::under_load(&url, Some("tables-lock"), || {
            (0..3).for_each(|at| cluster.kill(at));
            cluster.start_all();
        });
        let findings = aftermath.unwrap().findings();
        assert!(findings.is_empty(), "{protocol}: {}", findings.join("\n"));
    }
}
