//! The names that completion offers, asked of the server by a session of its own: that of the user
//! may be in a transaction that has failed, or wait.

use crate::complete::Names;
use crate::connection::{Connection, Said};
use crate::interrupts::Interrupts;
use crate::table::Rows;
use links::url::Target;
use std::time::{Duration, Instant};

/// Names are asked again after this time: others make tables, too.
const FRESH: Duration = Duration::from_secs(2);
/// Somebody waits with a finger on the key.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Names of one kind; nobody reads a longer list.
const COUNT_MAX: usize = 20_000;

/// Names of functions, but for those that read and write the values of a type: nobody calls them.
const FUNCTIONS: &str = "SELECT DISTINCT proname FROM pg_proc p \
    WHERE NOT EXISTS (SELECT 1 FROM pg_type t WHERE p.oid IN (t.typinput, t.typoutput, \
    t.typreceive, t.typsend, t.typmodin, t.typmodout))";

/// Where names come from.
#[derive(Default)]
pub(crate) struct Source {
    connection: Option<Connection>,
    names: Names,
    asked: Option<Instant>,
}

impl Source {
    /// Asks the server and database of `target`, once a name is wanted.
    pub(crate) fn new(target: &Target) -> Source {
        let mut target = target.clone();
        target.application_name = "trellis sql completion";
        // Ctrl-C is the editor's while a line is edited.
        let connection = Connection::new(target, Interrupts::default()).with_timeout(TIMEOUT);
        Source {
            connection: Some(connection),
            ..Source::default()
        }
    }

    /// The names, or those of before if the server does not answer.
    pub(crate) fn names(&mut self) -> &Names {
        if self.asked.is_none_or(|asked| asked.elapsed() > FRESH)
            && let Some(connection) = &mut self.connection
        {
            if let Some(names) = ask(connection) {
                self.names = names;
            }
            self.asked = Some(Instant::now());
        }
        &self.names
    }
}

fn ask(connection: &mut Connection) -> Option<Names> {
    let query = format!(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p', 'v') \
         AND pg_table_is_visible(oid) ORDER BY 1 \
         LIMIT {COUNT_MAX}; \
         SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
         WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v') \
         ORDER BY c.oid DESC LIMIT {COUNT_MAX}; \
         {FUNCTIONS} ORDER BY 1; \
         SELECT name FROM pg_settings ORDER BY 1; \
         SELECT datname FROM pg_database ORDER BY 1; \
         SELECT word FROM pg_get_keywords() ORDER BY 1"
    );
    let mut results: Vec<Rows> = Vec::new();
    connection
        .run(&query, &mut || Ok(None), &mut |said| {
            if let Said::Rows(rows, _) = said {
                results.push(rows);
            }
        })
        .ok()?;
    let [relations, columns, functions, settings, databases, keywords] = results.try_into().ok()?;
    Some(Names {
        relations: first(relations),
        columns: pairs(columns),
        functions: first(functions),
        settings: first(settings),
        databases: first(databases),
        keywords: first(keywords),
    })
}

fn first(rows: Rows) -> Vec<String> {
    let cells = rows
        .rows
        .into_iter()
        .filter_map(|row| row.into_iter().next()?);
    cells.collect()
}

fn pairs(rows: Rows) -> Vec<(String, String)> {
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter();
        Some((cells.next()??, cells.next()??))
    };
    rows.rows.into_iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::ProtocolKind;
    use one_shard::World;

    #[test]
    fn functions_of_types_are_not_offered() {
        let mut world = World::new(ProtocolKind::TwoPhase);
        world.connect(1);
        let mut count = |name: &str| {
            let count = format!("SELECT count(*) FROM ({FUNCTIONS}) f WHERE proname = '{name}'");
            format!("{:?}", world.must(1, &count).last)
        };
        for name in ["count", "min", "bool_and", "date_trunc"] {
            assert_eq!(count(name), "Int(1)", "{name}");
        }
        for name in [
            "int4in",
            "boolout",
            "date_recv",
            "xidsend",
            "bpchartypmodin",
        ] {
            assert_eq!(count(name), "Int(0)", "{name}");
        }
    }
}
