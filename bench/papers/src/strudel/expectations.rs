//! What the repetition of Strudel's demonstration is expected to show.

use crate::expect::Wanted;

/// The nine expectations.
pub(super) const WANTED: Wanted = Wanted {
    titles: &[
        "updates without conflicts cost the same on any number of servers",
        "packed groups fall behind as they grow, and meet rows where they are small",
        "conflicts cost optimistic and locking transactions as in the paper",
        "back-off is worth tuning",
        "the auction grows with its users, and own SQL is not behind entities",
        "storing a bid takes longer than selling on key-value stores, and not on SQL",
        "more servers come without a pause where nothing is loaded again",
        "larger groups are loaded faster",
        "components are small, and workloads share most of their lines",
    ],
    parts: PARTS,
};

const PARTS: &str = "\
1a 9        judged   routed stores: round trips of an interaction, most over least, at most 1.25
1b 9        reported server CPU of an interaction over 1, 3 and 5 servers: most over least
1c 9        reported interactions a second with one server
2a 10       judged   groups of 400, one store: rows at least 1.25 times packed
2b 10       judged   groups of 4, one store: rows at most 1.2 times packed
2c 10       judged   a crossover: packed ahead of some store's rows at 4 items, and behind at 400
2d 10       reported locking over running again, at 4, 40 and 400 items
3a 11       judged   packed, run again: shared groups of 400 at most 0.9 of one's own
3b 11       judged   packed, run again: shared groups of 40 within a third of those of 400
3c 11       judged   locking: shared groups of 400 at least 0.75 of one's own
3d 11       judged   locked rows: shared groups of 40 slower than those of 400
3e 11       reported Trellis, interactions a second: one's own, shared 400, shared 40
4a back-off judged   the best back-off at least 1.2 times the worst on some store
4b back-off reported the best of each store, and how many times the worst
5a 12       judged   48 users do more than 1.5 times what 4 do, on every store
5b 12       judged   4 users: own SQL at least as fast as entities on every server
6a 13       judged   key-value stores, the paper's three transactions: at least 1.2 times as long
6b 13       judged   SQL servers, entities: less than 1.2 times as long
6c 13       reported key-value stores that fold the three into one
6d 13       reported Trellis, entities
7a elasticity judged Trellis: answers go on within 2 s when clients come through three nodes
7b elasticity reported routed stores: seconds without answers while all data are loaded again
8a bulk     judged   groups of 40 over groups of 4, items a second: more than 1 on every store
9a table1   judged   key-value layer at most 2,000 lines, each adapter at most 600
9b table2   judged   auction: at least 60 % of each program is shared";
