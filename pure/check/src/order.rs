//! The order of sessions and of real time as edges, and how much of a history overlapped.

use crate::graph::{Dependency, GraphBuilder, NO_KEY};
use crate::history::{Op, Outcome};
use crate::ledger::Ledger;
use crate::level::Basis;
use crate::verdict::Exercised;
use alloc::vec::Vec;

/// Adds an edge from each transaction to the next of its process.
///
/// None leads out of a transaction whose end its client did not see: it may commit while the next
/// one runs.
pub(crate) fn link_sessions(ledger: &Ledger<'_>, graph: &mut GraphBuilder) {
    let txns = &ledger.history.txns;
    let mut members: Vec<u32> = ledger.members().collect();
    members.sort_by_key(|txn| {
        let recorded = &txns[*txn as usize];
        (recorded.process, recorded.invoked, *txn)
    });
    let mut before: Option<u32> = None;
    for txn in members {
        let (process, begun) = (txns[txn as usize].process, txns[txn as usize].invoked);
        before = before.filter(|before| txns[*before as usize].process == process);
        if let Some(before) = before
            && ledger.committed_by(before).is_some_and(|at| at <= begun)
        {
            let dependency = Dependency::Session;
            graph.edge_on(Basis::Session, before, txn, dependency, NO_KEY);
        }
        if ledger.committed_by(txn).is_some() {
            before = Some(txn);
        }
    }
}

/// Adds edges from each transaction to those that began after it had ended, but for pairs that are
/// both loose ([`crate::History::loose`]).
pub(crate) fn link_real_time(ledger: &Ledger<'_>, graph: &mut GraphBuilder) {
    let loose = &ledger.history.loose;
    let members: Vec<u32> = ledger.members().collect();
    let (held, free): (Vec<u32>, Vec<u32>) = members.iter().partition(|txn| !loose.contains(txn));
    link_in_time(ledger, graph, &members, held.clone());
    if !free.is_empty() {
        link_in_time(ledger, graph, &held, free);
    }
}

/// Adds edges from each of the transactions `from` to those of `to` that began after it had ended,
/// through joints that stand for points in time. Two edges per transaction, one between points.
fn link_in_time(ledger: &Ledger<'_>, graph: &mut GraphBuilder, from: &[u32], to: Vec<u32>) {
    let begun = |txn: u32| ledger.history.txns[txn as usize].invoked;
    let mut begins = to;
    begins.sort_by_key(|txn| begun(*txn));
    let ends = from.iter();
    let ends = ends.filter_map(|txn| Some((ledger.committed_by(*txn)?, *txn)));
    let mut ends: Vec<(u64, u32)> = ends.collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut now: Option<u32> = None;
    for txn in begins {
        let mut point = None;
        while let Some((_, ended)) = ends.next_if(|(at, _)| *at < begun(txn)) {
            let point = *point.get_or_insert_with(|| graph.joint());
            let dependency = Dependency::RealTime;
            graph.edge_on(Basis::RealTime, ended, point, dependency, NO_KEY);
        }
        if let Some(point) = point {
            if let Some(before) = now {
                graph.glue(before, point);
            }
            now = Some(point);
        }
        if let Some(now) = now {
            graph.glue(now, txn);
        }
    }
}

/// Begin and end of something, for counting overlaps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Span {
    pub(crate) begin: u64,
    /// `u64::MAX`: never known to have ended.
    pub(crate) end: u64,
}

impl Span {
    pub(crate) fn of(ledger: &Ledger<'_>, txn: u32) -> Span {
        Span {
            begin: ledger.history.txns[txn as usize].invoked,
            end: ledger.committed_by(txn).unwrap_or(u64::MAX),
        }
    }
}

/// Number of pairs of `spans` that overlap. Time n log n.
pub(crate) fn overlaps(spans: &[Span]) -> u64 {
    let mut begins: Vec<u64> = spans.iter().map(|span| span.begin).collect();
    let mut ends: Vec<u64> = spans.iter().map(|span| span.end).collect();
    begins.sort_unstable();
    ends.sort_unstable();
    let mut ended = 0;
    let mut pairs = 0;
    for (earlier, begin) in begins.iter().enumerate() {
        while ends.get(ended).is_some_and(|end| end < begin) {
            ended += 1;
        }
        // All that ended before this one began had begun before it too.
        pairs += (earlier - ended) as u64;
    }
    pairs
}

/// Counts what there was to see.
pub(crate) fn exercised(ledger: &Ledger<'_>) -> Exercised {
    let mut counts = Exercised {
        keys: ledger.key_count() as u64,
        ..Exercised::default()
    };
    let mut spans: Vec<Span> = Vec::new();
    // (key, whether it was only read, span): one for each key of each transaction.
    let mut touches: Vec<(u32, bool, Span)> = Vec::new();
    for (txn, recorded) in ledger.history.txns.iter().enumerate() {
        let txn = txn as u32;
        let writes = |op: &&Op| is_write(op);
        counts.writes += recorded.ops.iter().filter(writes).count() as u64;
        if !ledger.is_committed(txn) {
            match recorded.outcome {
                Outcome::Aborted => counts.aborted += 1,
                Outcome::Committed | Outcome::Unknown => counts.unknown += 1,
            }
            continue;
        }
        counts.committed += 1;
        counts.reads += recorded.ops.iter().filter(|op| !is_write(op)).count() as u64;
        let span = Span::of(ledger, txn);
        spans.push(span);
        let begin = touches.len();
        ledger.each_access(txn, |access| {
            touches.push((access.key(), !access.is_write(), span));
        });
        // Writes sort in front of reads: the first touch of a key says whether it was written.
        touches[begin..].sort_unstable();
        let mut kept = begin;
        for place in begin..touches.len() {
            if kept == begin || touches[kept - 1].0 != touches[place].0 {
                touches[kept] = touches[place];
                kept += 1;
            }
        }
        touches.truncate(kept);
    }
    counts.concurrent_pairs = overlaps(&spans);
    touches.sort_unstable_by_key(|(key, only_read, _)| (*key, *only_read));
    for of_key in touches.chunk_by(|a, b| a.0 == b.0) {
        let all: Vec<Span> = of_key.iter().map(|(_, _, span)| *span).collect();
        let writers = of_key.partition_point(|(_, only_read, _)| !only_read);
        let readers = &all[writers..];
        counts.conflicting_pairs += pairs(all.len()) - pairs(readers.len());
        counts.concurrent_conflicts += overlaps(&all) - overlaps(readers);
    }
    counts
}

/// Whether an operation changes something.
pub(crate) fn is_write(op: &Op) -> bool {
    matches!(
        op,
        Op::Append { .. } | Op::Write { .. } | Op::Delete { .. } | Op::Add { .. }
    )
}

fn pairs(count: usize) -> u64 {
    let count = count as u64;
    count * count.saturating_sub(1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    #[test]
    fn overlaps_are_counted_as_by_hand() {
        let mut prng = Prng::new(5);
        for _ in 0..500 {
            let spans: Vec<Span> = (0..prng.below(9))
                .map(|_| {
                    let begin = prng.below(12);
                    let end = match prng.below(5) {
                        0 => u64::MAX,
                        _ => begin + prng.below(6),
                    };
                    Span { begin, end }
                })
                .collect();
            let mut count = 0;
            for (place, a) in spans.iter().enumerate() {
                for b in &spans[..place] {
                    count += u64::from(a.begin <= b.end && b.begin <= a.end);
                }
            }
            assert_eq!(overlaps(&spans), count, "{spans:?}");
        }
    }
}
