//! The published table: which anomalies are visible where. Computed from what is recorded in the
//! scripts, which runs against each system keep true.

use crate::anomaly::{Anomaly, Level};
use crate::spec::Spec;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The document, from all scripts with the names of their files.
pub fn document(specs: &[(String, Spec)]) -> String {
    let mut text = String::from(HEAD);
    anomalies(specs, &mut text).expect("strings take everything");
    scripts(specs, &mut text).expect("strings take everything");
    text.push_str(TAIL);
    text
}

const HEAD: &str = "\
# Isolation

Which anomalies (Adya's names) clients can see, at which level, in which system. Each script of
`test/isolation/specs` runs in all interleavings of its steps: in the simulator, under each protocol
on one shard (`two_phase-1x1`, `leap-1x1`, `formula-1x1`) and on three nodes with two shards each
(`two_phase-3x2`, `leap-3x2`, `formula-3x2`), and against PostgreSQL 15. This page is computed from
what the scripts record
(`cargo test -p isolation` fails when it is out of date, `UPDATE=1` writes it).

## Anomalies

A cell `A of B`: the anomaly was visible in A of the B interleavings that could show it. A cell
**-** B: the level forbids the anomaly, and none of B interleavings showed it.

";

const TAIL: &str = "
An interleaving in which a session would have to take a step while it waits is impossible and not
counted; a system that waits more has fewer.

## Clocks

In the scripts the clocks of the three nodes agree. If they differ, no statement sees an earlier
state than PostgreSQL would show: a READ COMMITTED statement and a READ ONLY transaction, too, see
all that any node has answered to any client before they began
([two_phase](protocols/two_phase.md#snapshots), `test/isolation/tests/clocks_apart.rs`). A statement
that meets a commit above its snapshot begins again by itself; if the client has seen rows of it
already, it fails with 40001. Of commits that happen while such a snapshot of several nodes is
being read it may show a later one without an earlier one, if a clock is behind by more than the two
take ([ADR 0015](adr/0015-reads-of-one-statement.md)); transactions that lock what they read do not.

## Schema changes

A schema change waits for a block that has written to its table, for one second at most
(`create_index`, `drop_table`). It does not wait for a block that has only read the table. The next
statement of such a block fails after DROP TABLE: with 42P01 if it names the table, with 40001 if
there is another one of that name by then, or if it does not name it (`drop_table_read`). PostgreSQL
makes the DROP wait for readers, too, and without a limit.
";

/// Names of all recorded systems.
fn systems(specs: &[(String, Spec)]) -> BTreeSet<&str> {
    let keys = specs.iter().flat_map(|(_, spec)| spec.records.0.keys());
    keys.map(|key| key.system.as_str()).collect()
}

fn anomalies(specs: &[(String, Spec)], out: &mut String) -> std::fmt::Result {
    let systems = systems(specs);
    writeln!(out, "| anomaly | what is seen |\n|---|---|")?;
    for kind in Anomaly::ALL {
        writeln!(out, "| {kind} | {} |", kind.story())?;
    }
    writeln!(out)?;
    for level in Level::ALL {
        let (name, short) = (level.sql().to_uppercase(), level.short());
        write!(out, "### {name} ({short})\n\n| anomaly |")?;
        for system in &systems {
            write!(out, " {system} |")?;
        }
        writeln!(out, "\n|---|{}", "---|".repeat(systems.len()))?;
        for kind in Anomaly::ALL {
            write!(out, "| {kind} |")?;
            for system in &systems {
                write!(out, " {} |", cell(specs, kind, system, level))?;
            }
            writeln!(out)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn cell(specs: &[(String, Spec)], kind: Anomaly, system: &str, level: Level) -> String {
    let (mut seen, mut all) = (0, 0);
    for (_, spec) in specs {
        let asks = match kind {
            Anomaly::NotSerial => spec.serial,
            _ => spec.rules.iter().any(|rule| rule.kind == kind),
        };
        if !asks {
            continue;
        }
        for (key, section) in &spec.records.0 {
            if key.system == system && key.level == level {
                let (with, of) = section.count(kind);
                seen += with;
                all += of;
            }
        }
    }
    match (seen, all) {
        (_, 0) => "not run".to_owned(),
        (0, _) if level >= kind.forbidden_from() => format!("**-** {all}"),
        _ => format!("{seen} of {all}"),
    }
}

fn scripts(specs: &[(String, Spec)], out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Scripts\n")?;
    writeln!(
        out,
        "| script | about | anomalies it could show | interleavings |\n|---|---|---|---|"
    )?;
    for (name, spec) in specs {
        let kinds: BTreeSet<Anomaly> = spec.rules.iter().map(|rule| rule.kind).collect();
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let (title, count) = (&spec.title, spec.orders.len());
        writeln!(
            out,
            "| `{name}` | {title} | {} | {count} |",
            kinds.join(", ")
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# Lost update.
session a
  ra  select 1
final select 1
anomaly P4 when ra == [1]
---- x RC
P4: a [1] | [1]
  a b c
a [2] | [1]
  d
---- x RR
a [2] | [1]
  d e
";

    #[test]
    fn cells_count_what_is_recorded() {
        let specs = vec![("lost".to_owned(), Spec::parse(TEXT).unwrap())];
        let cell = |kind, level| cell(&specs, kind, "x", level);
        assert_eq!(cell(Anomaly::P4, Level::ReadCommitted), "3 of 4");
        assert_eq!(cell(Anomaly::P4, Level::RepeatableRead), "**-** 2");
        assert_eq!(cell(Anomaly::P4, Level::Serializable), "not run");
        assert_eq!(cell(Anomaly::G0, Level::ReadCommitted), "not run");
        let text = document(&specs);
        assert!(
            text.contains("### REPEATABLE READ (RR)\n\n| anomaly | x |"),
            "{text}"
        );
        assert!(
            text.contains("| `lost` | Lost update. | P4 | 1 |"),
            "{text}"
        );
    }
}
