//! The connection of a session: its number, its addresses, and the backend number by which clients
//! name it.

use crate::limits::Seats;
use base::ShardId;
use expr::Ends;

/// A connection of one shard; never used twice there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnId(pub u32);

/// What the host knows of a client's connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Link {
    /// Addresses of the connection; `None`: it has none.
    pub ends: Option<Ends>,
    /// Number of connections that the node accepts; 0: no limit.
    pub connections_max: u32,
    /// Statements that take this long are told to the host; `None`: as the session's setting says.
    pub log_min_us: Option<u64>,
    /// Whether the node has that many connections without this one: it is refused (53300).
    pub is_refused: bool,
    /// The sessions of the node by role and database.
    pub seats: Seats,
    /// Whether the host wants to know of logins and changes.
    pub audits: bool,
}

/// Number of connections that a node accepts unless its host says otherwise; shown by the setting.
pub fn connections_default() -> u32 {
    let setting = pg_catalog::settings::lookup("max_connections");
    let default = setting.and_then(|setting| setting.default.parse().ok());
    default.expect("the setting has a number")
}

/// Low bits of a backend number, which come from the connection; those of the shard lie above.
const CONN_BITS: u32 = 21;

/// The backend number of a session: leads to the session's shard in the whole cluster.
/// Connections repeat after two million on one shard, so the number names the session that lives.
pub fn pid_of(shard: ShardId, conn: ConnId) -> i32 {
    (i32::from(shard.0 as i16) << CONN_BITS) | (conn.0 & ((1 << CONN_BITS) - 1)) as i32
}

/// The shard of a backend number; `None`: it is no backend number.
pub fn pid_shard(pid: i32) -> Option<ShardId> {
    (pid > 0).then_some(ShardId((pid >> CONN_BITS) as u16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::NodeId;

    #[test]
    fn a_backend_number_tells_its_shard() {
        for (node, index, conn) in [(1, 0, 128), (3, 2, u32::MAX), (64, 15, 1)] {
            let shard = ShardId::new(NodeId(node), index);
            assert_eq!(pid_shard(pid_of(shard, ConnId(conn))), Some(shard));
        }
        assert_eq!(pid_shard(0), None);
        assert_eq!(pid_shard(-5), None);
    }
}
