//! What the repetition of the paper of Rubato DB is expected to show.

use crate::expect::Wanted;

/// The six expectations.
pub(super) const WANTED: Wanted = Wanted {
    titles: &[
        "one hot row costs formula nothing: 100 times two_phase, 2 times leap",
        "TPC-C with remote guests: 1.1 times the others, few deaths",
        "linear from 1 to 16 nodes, and 25,000 terminals are served in time",
        "pgbench: sums add up, few transactions fail, two_phase is not faster",
        "records of YCSB: throughput grows with the nodes",
        "reads without locks: never slower than reads with locks, and faster where rows are hot",
    ],
    parts: PARTS,
};

const PARTS: &str = "\
1a hot     judged   model, 1 ms links and flushes: 100 times two_phase without the early answer
1b hot     judged   model: 20 times two_phase with the early answer
1c hot     judged   model: 2 times leap
1d hot     judged   model, one node, 64 writers of one counter: not below two_phase
1e real    reported cluster, 1 ms links: times two_phase without and with the early answer, leap
2a 7       judged   model, 10 % remote, 16 nodes, all of TPC-C: 1.1 times interleaved two_phase
2b 7       judged   model, the same: 1.1 times leap
2c 7       judged   model, the same: deaths per 100 commits at most those of two_phase
2d 7       judged   model, with keying and think times: at most 0.05 deaths per 100 commits
2e 7       judged   model, 30 % remote: at least half of the throughput with nothing remote
2f 7       reported model, the same load of NewOrder and Payment alone
2g real    reported cluster, 10 % remote: times two_phase and leap
3a table2  judged   model, 10 % remote: 15 times from 1 to 16 nodes (the paper: 12.6)
3b 6       judged   model, 25,000 terminals of one node: every transaction within 0.6 s
4a pgbench judged   three nodes, 16 clients: sums and history agree after every run
4b pgbench judged   under 1 % failed transactions in every run of formula
4c pgbench judged   throughput of formula at least that of two_phase in every kind of run
5a 9       judged   model, 95 % reads: throughput rises with every number of nodes
5b 10      judged   model, 50 % reads: the same
5c 9       reported model, 95 % reads: times two_phase and leap with 12 nodes
5d 10      reported model, 50 % reads: the same
5e peers   reported one node, 95 and 50 % reads: times the other protocols and single servers
6a policies judged  model, 5 to 1,000 rows a node: optimistic reads nowhere slower than pessimistic
6b policies judged  model, 10 rows a node: at least 1.1 times as fast
6c policies reported model, 5, 10, 30, 100 and 1,000 rows: optimistic reads against the others
6d policies reported model, the same: deaths per 100 commits";
