//! Nodes that prove to each other who they are: what works as before, and who is kept out.

use crate::support::{Cluster, PROGRAM, number, patiently, rows, try_rows, wait_until};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair,
    date_time_ymd,
};
use runtime::PeersEntry;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Connections end or begin by then after files have changed.
const CHANGE_LIMIT: Duration = Duration::from_secs(60);

fn cert(folder: &Path, args: &[&str]) {
    let mut command = Command::new(PROGRAM);
    command.arg("cert").arg(folder).args(args);
    let status = command.stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{args:?}");
}

/// A cluster of three whose nodes have certificates, and the folder of those.
fn start(name: &str) -> (Cluster, PathBuf) {
    let mut cluster = Cluster::start(name, 3, 2);
    let folder = cluster.folder().join("tls");
    let file = cluster.folder().join("cluster.toml");
    cert(&folder, &["--cluster", file.to_str().unwrap()]);
    let certificates = folder.clone();
    cluster.reconfigure(|file| file.peers = Some(PeersEntry { certificates }));
    cluster.wait_connected();
    (cluster, folder)
}

/// Whether node 1 has a connection to node 3.
fn has_third(cluster: &Cluster) -> bool {
    let nodes = rows(&mut cluster.link(0, "postgres"), "SHOW NODES");
    nodes[2][3] == "up"
}

fn wait_third(cluster: &Cluster, is_there: bool) {
    let what = format!("node 3 is connected: {is_there}");
    wait_until(&what, CHANGE_LIMIT, || has_third(cluster) == is_there);
}

/// Node 1 has written this to its log.
fn wait_said(cluster: &Cluster, text: &str) {
    wait_until(text, CHANGE_LIMIT, || cluster.said(0).contains(text));
}

/// Certificate and key of node 3 with one change, signed by the authority of a folder.
fn replace_third(folder: &Path, authority: &Path, change: impl FnOnce(&mut CertificateParams)) {
    let mut own = CertificateParams::new(Vec::new()).unwrap();
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, "Trellis certificate authority");
    own.distinguished_name = names;
    let key = std::fs::read_to_string(authority.join("ca.key")).unwrap();
    let issuer = Issuer::new(own, KeyPair::from_pem(&key).unwrap());
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    std::fs::write(folder.join("node-3.key"), key.serialize_pem()).unwrap();
    std::fs::write(folder.join("node-3.crt"), certificate.pem()).unwrap();
}

#[test]
fn nodes_with_certificates_work_as_before() {
    let (mut cluster, _) = start("peers-work");
    for protocol in ["leap", "two_phase", "formula"] {
        let database = format!("d_{protocol}");
        let table = "CREATE TABLE t (id int PRIMARY KEY, v int)";
        cluster.create_as(protocol, &database, &[table]);
        for at in 0..3 {
            let mut link = cluster.link(at, &database);
            let insert = "INSERT INTO t SELECT g, 0 FROM generate_series(1, 300) g \
                          ON CONFLICT (id) DO NOTHING";
            patiently(&mut link, insert);
            patiently(&mut link, "UPDATE t SET v = v + 1");
        }
        let mut link = cluster.link(1, &database);
        assert_eq!(number(&mut link, "SELECT sum(v)::int FROM t"), 900);
        // Values that cross the pieces of TLS.
        let long = "UPDATE t SET v = length(repeat('x', 3000000)) WHERE id < 10";
        patiently(&mut link, long);
    }
    cluster.kill(2);
    wait_third(&cluster, false);
    cluster.start_all();
    cluster.wait_connected();
    let mut link = cluster.link(2, "d_leap");
    let sum = "SELECT sum(v)::int FROM t WHERE id >= 10";
    wait_until("the rows are back", CHANGE_LIMIT, || {
        try_rows(&mut link, sum).is_ok_and(|rows| rows[0][0] == "873")
    });
}

#[test]
fn others_are_kept_out() {
    let (mut cluster, folder) = start("peers-refuse");
    let door = cluster.file.nodes[0].peer;
    // A connection without TLS, one that says nothing, and a flood of such.
    let mut plain = TcpStream::connect(door).unwrap();
    plain.write_all(&[7; 64]).unwrap();
    plain.set_read_timeout(Some(CHANGE_LIMIT)).unwrap();
    let mut answer = Vec::new();
    // The end, or a reset: closed either way.
    let _ = plain.read_to_end(&mut answer);
    wait_said(&cluster, "a connection to the port of nodes is refused");
    let flood: Vec<TcpStream> = (0..300)
        .map(|_| TcpStream::connect(door).unwrap())
        .collect();
    cluster.kill(2);
    wait_third(&cluster, false);
    cluster.start_all();
    cluster.wait_connected();
    wait_said(&cluster, "too many connections open at once");
    drop(flood);
    // A certificate that is revoked while the nodes run.
    let third = folder.join("node-3.crt");
    cert(&folder, &["--revoke", third.to_str().unwrap()]);
    wait_third(&cluster, false);
    wait_said(&cluster, "Revoked");
    // A new one is as good as the first was, without a restart.
    let number = cluster.file.cluster;
    let name = format!("node-3.cluster-{number}.trellis");
    let named = |params: &mut CertificateParams| {
        let name = name.clone().try_into().unwrap();
        params.subject_alt_names = vec![rcgen::SanType::DnsName(name)];
    };
    replace_third(&folder, &folder, named);
    wait_third(&cluster, true);
    // One that has expired, and one of another authority.
    let other = cluster.folder().join("other");
    cert(&other, &["--host", "localhost"]);
    let expired = |params: &mut CertificateParams| {
        named(params);
        params.not_after = date_time_ymd(2020, 1, 1);
    };
    cluster.stop(2);
    replace_third(&folder, &folder, expired);
    cluster.spawn(2);
    cluster.wait_alone(2);
    wait_said(&cluster, "certificate expired");
    assert!(!has_third(&cluster));
    cluster.kill(2);
    replace_third(&folder, &other, named);
    cluster.spawn(2);
    cluster.wait_alone(2);
    wait_said(&cluster, "BadSignature");
    assert!(!has_third(&cluster));
    cluster.kill(2);
    // The certificate of another node: it does not even start.
    std::fs::copy(folder.join("node-2.crt"), folder.join("node-3.crt")).unwrap();
    std::fs::copy(folder.join("node-2.key"), folder.join("node-3.key")).unwrap();
    cluster.spawn(2);
    cluster.wait_ended(2);
    assert!(cluster.said(2).contains("the certificate is not for"));
    // What is right at last.
    replace_third(&folder, &folder, named);
    cluster.start_all();
    cluster.wait_connected();
}

/// Connects to an address as fast as it can, from 127.0.0.1, until it is dropped.
struct Flood {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<usize>>,
}

impl Flood {
    fn start(to: SocketAddr) -> Flood {
        let ends = Arc::new(AtomicBool::new(false));
        let run = move |ends: Arc<AtomicBool>| {
            let mut open = VecDeque::new();
            let mut count = 0;
            while !ends.load(Ordering::Relaxed) {
                match TcpStream::connect(to) {
                    Ok(stream) => {
                        open.push_back(stream);
                        count += 1;
                    }
                    // No ports are left: some come back.
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
                if open.len() > 200 {
                    open.pop_front();
                }
            }
            count
        };
        let threads = (0..2).map(|_| ends.clone());
        let threads = threads.map(|ends| std::thread::spawn(move || run(ends)));
        Flood {
            threads: threads.collect(),
            ends,
        }
    }

    /// Ends it; how many connections there were.
    fn end(mut self) -> usize {
        self.ends.store(true, Ordering::Relaxed);
        let threads = std::mem::take(&mut self.threads).into_iter();
        threads.map(|thread| thread.join().unwrap()).sum()
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_flood_from_elsewhere_keeps_no_node_out() {
    let mut cluster = Cluster::start("peers-flood", 3, 2);
    let folder = cluster.folder().join("tls");
    let file = cluster.folder().join("cluster.toml");
    cert(&folder, &["--cluster", file.to_str().unwrap()]);
    // The flood comes from another address than those of the nodes.
    cluster.reconfigure(|file| {
        for (node, last) in file.nodes.iter_mut().zip(2..) {
            node.peer.set_ip([127, 0, 0, last].into());
        }
        let certificates = folder.clone();
        file.peers = Some(PeersEntry { certificates });
    });
    cluster.wait_connected();
    let flood = Flood::start(cluster.file.nodes[0].peer);
    wait_said(&cluster, "too many connections open at once");
    cluster.kill(2);
    wait_third(&cluster, false);
    cluster.start_all();
    cluster.wait_connected();
    let database = "d";
    cluster.create_as(
        "two_phase",
        database,
        &["CREATE TABLE t (id int PRIMARY KEY)"],
    );
    for at in 0..3 {
        let mut link = cluster.link(at, database);
        let insert = format!("INSERT INTO t SELECT g * 3 + {at} FROM generate_series(1, 100) g");
        patiently(&mut link, &insert);
    }
    let count = flood.end();
    // Twice what may be open at once.
    assert!(count > 128, "{count} connections are no flood");
    wait_said(&cluster, "more connections of other nodes were refused");
    let mut link = cluster.link(1, database);
    assert_eq!(number(&mut link, "SELECT count(*)::int FROM t"), 300);
}
