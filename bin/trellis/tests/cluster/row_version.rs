//! `xmin` as a token of optimistic concurrency, as object-relational mappers use it.

use crate::support::{Cluster, number, rows, rows_patiently};
use std::sync::Arc;

const CLIENTS: usize = 6;
const CHANGES: i64 = 40;

/// Each client computes the new value itself, from a row that it has read before, with another
/// node than the next client: an update that went by a stale token would lose somebody's.
#[test]
fn a_stale_version_changes_nothing() {
    let cluster = Arc::new(Cluster::start("version", 3, 1));
    for protocol in ["two_phase", "leap"] {
        let table = "CREATE TABLE counter (id int PRIMARY KEY, n int NOT NULL)";
        let row = "INSERT INTO counter VALUES (1, 0), (2, 0)";
        cluster.create_as(protocol, protocol, &[table, row]);
        let clients = (0..CLIENTS).map(|client| {
            let cluster = cluster.clone();
            std::thread::spawn(move || count_up(&cluster, protocol, client))
        });
        let clients: Vec<_> = clients.collect();
        for client in clients {
            client.join().unwrap();
        }
        let mut link = cluster.link(0, protocol);
        let wanted = CLIENTS as i64 * CHANGES;
        let sum = number(&mut link, "SELECT sum(n) FROM counter");
        assert_eq!(sum, wanted, "{protocol}");
    }
}

fn count_up(cluster: &Cluster, protocol: &str, client: usize) {
    let mut link = cluster.link(client % 3, protocol);
    link.command("SET default_transaction_isolation = 'read committed'")
        .unwrap();
    let id = 1 + client % 2;
    let mut changes = 0;
    let mut known = None;
    while changes < CHANGES {
        let (version, n) = known.take().unwrap_or_else(|| {
            let read = format!("SELECT xmin, n FROM counter WHERE id = {id}");
            let row = rows_patiently(&mut link, &read).remove(0);
            (row[0].clone(), row[1].parse::<i64>().unwrap())
        });
        let changed = rows_patiently(
            &mut link,
            &format!(
                "UPDATE counter SET n = {} WHERE id = {id} AND xmin = '{version}' \
                 RETURNING xmin, n",
                n + 1
            ),
        );
        if let Some(row) = changed.first() {
            changes += 1;
            // What RETURNING gives is the token for the next change.
            known = Some((row[0].clone(), row[1].parse().unwrap()));
        }
    }
}

#[test]
fn every_node_sees_the_same_version_of_a_row() {
    let cluster = Cluster::start("sameversion", 2, 2);
    for protocol in ["two_phase", "leap"] {
        let tables = [
            "CREATE TABLE t (id int PRIMARY KEY, b bool, f real, d float8, n numeric, \
             v varchar(9), \
             c char(4), y bytea, day date, at timestamptz, u uuid, i interval, a int[])",
            "CREATE TABLE bare (a int, b text)",
        ];
        cluster.create_as(protocol, protocol, &tables);
        let (mut here, mut there) = (cluster.link(0, protocol), cluster.link(1, protocol));
        let insert = "INSERT INTO t SELECT g, g % 2 = 0, g / 3.0, -g / 7.0, g * 1.50, g, 'x', \
                      decode('00ff', 'hex'), '2026-01-01', '2026-01-01 00:00:00+00', \
                      '00000000-0000-0000-0000-00000000000a', '1 month', ARRAY[g, NULL] \
                      FROM generate_series(1, 50) g RETURNING id, xmin";
        let mut written = rows(&mut here, insert);
        written.sort_by_key(|row| row[0].parse::<i64>().unwrap());
        let read = "SELECT id, xmin FROM t ORDER BY id";
        assert_eq!(rows(&mut here, read), written, "{protocol}");
        assert_eq!(rows(&mut there, read), written, "{protocol}");
        let same = "UPDATE t SET n = n + 0, v = v || '' WHERE id <= 25 RETURNING id, xmin";
        let mut unchanged = rows_patiently(&mut there, same);
        unchanged.sort_by_key(|row| row[0].parse::<i64>().unwrap());
        assert_eq!(unchanged, written[..25], "{protocol}: values are the same");
        let other = "UPDATE t SET f = f + 1 WHERE id = 7 RETURNING id, xmin";
        let changed = rows_patiently(&mut there, other);
        assert_ne!(changed[0], written[6], "{protocol}");
        assert_eq!(rows_patiently(&mut here, read)[6], changed[0], "{protocol}");

        let bare =
            "INSERT INTO bare SELECT g % 3, 'x' FROM generate_series(1, 30) g RETURNING ctid";
        let mut places = rows(&mut here, bare);
        let mut found = rows_patiently(&mut there, "SELECT ctid FROM bare");
        places.sort();
        found.sort();
        assert_eq!(places, found, "{protocol}");
        let pair = format!("SELECT count(*) FROM bare WHERE ctid = '{}'", places[0][0]);
        assert_eq!(number(&mut there, &pair), 1, "{protocol}");
        let twins = "DELETE FROM bare x USING bare y WHERE x.a = y.a AND x.ctid > y.ctid";
        there.command(twins).unwrap();
        let left = "SELECT count(*) FROM bare";
        assert_eq!(number(&mut there, left), 3, "{protocol}");
    }
}
