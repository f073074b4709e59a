//! What the repetition of Dike's evaluation is expected to show.

use crate::expect::Wanted;

/// The five expectations.
pub(super) const WANTED: Wanted = Wanted {
    titles: &[
        "distribution is what was asked for",
        "distributed transactions cost throughput",
        "contention is what was asked for, without blocking",
        "faults are proven and undone, and cost what they cost",
        "data and work lie as they were asked to",
    ],
    parts: PARTS,
};

const PARTS: &str = "\
1a 17    judged   three nodes: no transaction with another degree, all ratios in their intervals
1b 14    judged   TPC-C's own NewOrders: under 12 % on several nodes, for 3 to 15
1c nine  judged   the same on nine nodes with degrees 3 and 5, at a low rate
2a 19ab  judged   three nodes: less throughput at 100 % distributed than at the lowest ratio
2b 20    judged   model, 3 to 15 nodes, nothing distributed: scalability (equation 3) 0.9 or more
2c 20    reported model, the least scalability by protocol and share
2d 19cd  reported distributed queries: throughput with degrees 2 and 3 over that with degree 1
2e 19ef  reported three nodes, throughput without binding and without broadcast over that with both
3a 17    judged   mean of each phase within 10 % of the target as the server says, leap aside
3b 16    judged   blocking takes longer the more are to compete
3c 21    judged   most competitors: less throughput than without contention, on every server
4a 22    judged   every exception proven and undone
5a 23-24 judged   uniform data: the fullest node has less than 1.2 times the even share
5b 23-24 reported data by Zipf with exponent 1.5: the fullest node
5c 23-24 reported messages for a change of any two rows, and of rows always changed together";
