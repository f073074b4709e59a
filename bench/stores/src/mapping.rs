//! How entities lie in a store.

use std::fmt;

/// How entities lie in a store, and how transactions keep out of each other's way there.
///
/// | name | stores | entities |
/// |---|---|---|
/// | `tables` | PostgreSQL, MySQL | a table per type |
/// | `tables-lock` | PostgreSQL, MySQL | the same |
/// | `packed` | all | a group is one cell, row, hash, value, column or document |
/// | `packed-lock` | PostgreSQL, MySQL | a group is one row |
/// | `packed-lua` | Redis | a group is one hash |
/// | `rows` | memory, Redis, etcd | each record is a key |
/// | `rows` | Cassandra, HBase | each record is a row, or a column |
/// | `nested` | MongoDB | a group is one document, an entity a document within it |
///
/// Transactions in `tables` are serializable as the server does that; in `tables-lock` and
/// `packed-lock` reads lock their rows. All others are optimistic: in `packed` and `nested` the
/// version of the group must be the same at the commit (in `packed-lua` a script in the server
/// compares it), in `rows` each record that was read; on Cassandra and HBase it is the version of
/// the group there, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// `tables`.
    Tables,
    /// `tables-lock`.
    TablesLock,
    /// `packed`.
    Packed,
    /// `packed-lock`.
    PackedLock,
    /// `packed-lua`.
    PackedLua,
    /// `rows`.
    Rows,
    /// `nested`.
    Nested,
}

/// What is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A map of this process: `memory:`.
    Memory,
    /// `postgres://`, whoever speaks its protocol.
    Postgres,
    /// `mysql://`, whoever speaks its protocol.
    MySql,
    /// `redis://`.
    Redis,
    /// `etcd://`.
    Etcd,
    /// `cassandra://`.
    Cassandra,
    /// `hbase://`.
    HBase,
    /// `mongodb://`, whoever speaks its protocol.
    Mongo,
}

impl Mapping {
    /// All of them.
    pub const ALL: [Mapping; 7] = [
        Mapping::Tables,
        Mapping::TablesLock,
        Mapping::Packed,
        Mapping::PackedLock,
        Mapping::PackedLua,
        Mapping::Rows,
        Mapping::Nested,
    ];

    /// As in experiments.
    pub fn name(self) -> &'static str {
        match self {
            Mapping::Tables => "tables",
            Mapping::TablesLock => "tables-lock",
            Mapping::Packed => "packed",
            Mapping::PackedLock => "packed-lock",
            Mapping::PackedLua => "packed-lua",
            Mapping::Rows => "rows",
            Mapping::Nested => "nested",
        }
    }
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Kind {
    /// What messages call it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Memory => "memory:",
            Kind::Postgres => "postgres://",
            Kind::MySql => "mysql://",
            Kind::Redis => "redis://",
            Kind::Etcd => "etcd://",
            Kind::Cassandra => "cassandra://",
            Kind::HBase => "hbase://",
            Kind::Mongo => "mongodb://",
        }
    }

    /// What it can do, the default first.
    pub fn mappings(self) -> &'static [Mapping] {
        match self {
            Kind::Memory => &[Mapping::Rows, Mapping::Packed],
            Kind::Postgres | Kind::MySql => &[
                Mapping::Tables,
                Mapping::TablesLock,
                Mapping::Packed,
                Mapping::PackedLock,
            ],
            Kind::Redis => &[Mapping::Packed, Mapping::PackedLua, Mapping::Rows],
            Kind::Etcd => &[Mapping::Rows, Mapping::Packed],
            Kind::Cassandra | Kind::HBase => &[Mapping::Packed, Mapping::Rows],
            Kind::Mongo => &[Mapping::Packed, Mapping::Nested],
        }
    }

    /// The mapping of this name, or its default.
    ///
    /// # Errors
    /// It cannot do this one, as a sentence that names those that it can.
    pub fn mapping(self, name: Option<&str>) -> Result<Mapping, String> {
        let known = self.mappings();
        let Some(name) = name else {
            return Ok(known[0]);
        };
        let found = known.iter().find(|mapping| mapping.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|mapping| mapping.name()).collect();
            let is_other = Mapping::ALL.iter().any(|mapping| mapping.name() == name);
            let why = match is_other {
                true => "cannot be used with",
                false => "is not known; use one of those of",
            };
            format!(
                "the mapping {name:?} {why} {}: {}",
                self.name(),
                names.join(", ")
            )
        })
    }
}

/// A hash that never changes: FNV-1a of 64 bits.
pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Which of `servers` servers has a group. Every client must list the servers in the same order.
pub fn server_of(group: &[u8], servers: usize) -> usize {
    let hash = hash_of(group);
    // The low bits of short keys are alike.
    ((hash ^ (hash >> 32)) % servers.max(1) as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_that_a_store_cannot_do_is_refused_by_name() {
        assert_eq!(Kind::Redis.mapping(None), Ok(Mapping::Packed));
        assert_eq!(Kind::Redis.mapping(Some("rows")), Ok(Mapping::Rows));
        let refused = Kind::Redis.mapping(Some("tables")).unwrap_err();
        assert_eq!(
            refused,
            "the mapping \"tables\" cannot be used with redis://: packed, packed-lua, rows"
        );
        let unknown = Kind::Memory.mapping(Some("tabels")).unwrap_err();
        assert!(unknown.contains("is not known"), "{unknown}");
    }

    #[test]
    fn groups_are_dealt_evenly_and_for_ever() {
        let mut counts = [0; 3];
        for number in 0u32..30_000 {
            counts[server_of(&number.to_be_bytes(), 3)] += 1;
        }
        assert!(
            counts.iter().all(|count| (9_500..10_500).contains(count)),
            "{counts:?}"
        );
        assert_eq!(server_of(b"a group", 3), server_of(b"a group", 3));
        assert_eq!(server_of(b"", 0), 0);
    }
}
