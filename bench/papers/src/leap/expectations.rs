//! What the repetition of the LEAP paper is expected to show.

use crate::expect::Wanted;

/// The five expectations.
pub(super) const WANTED: Wanted = Wanted {
    titles: &[
        "2.5 to 20 times serial two_phase at 1 to 50 % remote, never below 0.9 at 0 %",
        "locality pays, and transfers end when every row has found its node",
        "few aborts, and nobody starves",
        "linear from 4 to 64 nodes",
        "blind increments of one hot counter",
    ],
    parts: PARTS,
};

const PARTS: &str = "\
1a 9       judged   model, 1 to 50 % remote: 2.5 to 20 times serial two_phase, or more
1b 9       judged   model, 0 % remote: at least 0.9 of serial two_phase
1c 9       reported model, against interleaved two_phase, as it is
1d real    judged   cluster, 0.1 ms links, 10 % remote: above 1.5 times serial two_phase
1e real    judged   cluster, 0.1 ms links, 0 % remote: at least 0.9 of serial two_phase
1f real    reported cluster, 0.1 ms links, against interleaved two_phase, as it is
1g 10      reported model: the locality from which on leap wins against interleaved two_phase
2a 10      judged   model, 10 % remote: 90 % locality gives leap 3 times the throughput of 0 %
2b 10      reported the same at 50 % remote
2c 10      judged   model: interleaved two_phase stays flat (within 20 %)
2d 12      judged   model, 100 % locality: transfers fall under 1 % of their start
2e real    judged   cluster, 100 % locality: transfers fall under 1 % of their start
3a table1  judged   abort rate under 4 % at every point of table 1, by the server's count
3b table1  reported the same by tries of the client; distribution of tries
3c hotspot judged   nobody starves in 20 minutes of simulated hot-spot load
4a 14      judged   model, 10 % remote: leap at least 0.9 of linear from 4 to 64 nodes
5a counter judged   model, 1 ms links: 20 times what the same clients get by moving the row
5b counter reported the same with one client per node, and against one increment per move
5c real    reported cluster, 1 ms links: times what the same clients get by moving the row";
