//! How many nodes the keys of a transaction touch on average.
//!
//! Keys are drawn without replacement, one of them is the home key, and each key is the home key
//! equally often. `sizes` are the numbers of keys on each node. The paper's equation 2 draws with
//! replacement and no home: [`with_replacement`] is here to be printed beside.

/// Numbers of nodes that are closer than this are the same.
const EXACT: f64 = 1e-9;

/// The expected number of nodes that `count` distinct keys touch, the home key among them. `count`
/// is at least 1 and at most the number of keys.
pub fn nodes_touched(sizes: &[u64], count: u64) -> f64 {
    let keys: u64 = sizes.iter().sum();
    let mut nodes = 0.0;
    for home in sizes.iter().filter(|size| **size > 0) {
        let others = sizes
            .iter()
            .map(|size| 1.0 - missed(keys - 1, *size, count - 1));
        let on_home = 1.0 - missed(keys - 1, *home, count - 1);
        let of_home = 1.0 + others.sum::<f64>() - on_home;
        nodes += of_home * *home as f64 / keys as f64;
    }
    nodes
}

/// The probability that none of `drawn` distinct keys out of `keys` is one of `size` certain ones.
fn missed(keys: u64, size: u64, drawn: u64) -> f64 {
    if size > keys {
        return 0.0;
    }
    let mut probability = 1.0;
    for already in 0..drawn {
        let left = (keys - already) as f64;
        let others = keys as f64 - size as f64 - already as f64;
        probability *= (others / left).max(0.0);
    }
    probability
}

/// The keys that touch `degree` nodes on average: so many, and one more with this probability.
/// `None`: all keys together touch fewer.
pub fn keys_for(sizes: &[u64], degree: f64) -> Option<(u64, f64)> {
    let keys: u64 = sizes.iter().sum();
    let (mut low, mut high) = (1, keys);
    if degree < 1.0 || keys == 0 || nodes_touched(sizes, keys) < degree - EXACT {
        return None;
    }
    // More keys never touch fewer nodes.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match nodes_touched(sizes, middle) < degree - EXACT {
            true => low = middle,
            false => high = middle,
        }
    }
    let (fewer, more) = (nodes_touched(sizes, low), nodes_touched(sizes, high));
    if degree >= more - EXACT {
        return Some((high, 0.0));
    }
    Some((low, ((degree - fewer) / (more - fewer)).clamp(0.0, 1.0)))
}

/// Equation 2 of the paper: the nodes that `count` keys touch that are drawn with replacement.
pub fn with_replacement(sizes: &[u64], count: u32) -> f64 {
    let keys: u64 = sizes.iter().sum();
    let of_node = |size: &u64| {
        let others = 1.0 - *size as f64 / keys as f64;
        1.0 - (0..count).fold(1.0, |product, _| product * others)
    };
    sizes.iter().map(of_node).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// All ways to place `keys` keys on `nodes` nodes.
    fn placements(nodes: usize, keys: u64) -> Vec<Vec<u64>> {
        if nodes == 1 {
            return Vec::from([Vec::from([keys])]);
        }
        let mut all = Vec::new();
        for first in 0..=keys {
            for rest in placements(nodes - 1, keys - first) {
                all.push(core::iter::once(first).chain(rest).collect());
            }
        }
        all
    }

    /// The mean over all homes and all sets of other keys.
    fn brute_force(sizes: &[u64], count: u64) -> f64 {
        let homes: Vec<usize> = sizes
            .iter()
            .enumerate()
            .flat_map(|(node, size)| (0..*size).map(move |_| node))
            .collect();
        let (mut sum, mut cases) = (0u64, 0u64);
        for home in 0..homes.len() {
            for set in 0u32..1 << homes.len() {
                if set & (1 << home) == 0 || u64::from(set.count_ones()) != count {
                    continue;
                }
                let chosen = (0..homes.len()).filter(|key| set & (1 << key) != 0);
                let nodes = chosen.fold(0u32, |nodes, key| nodes | 1 << homes[key]);
                sum += u64::from(nodes.count_ones());
                cases += 1;
            }
        }
        sum as f64 / cases as f64
    }

    #[test]
    fn the_formula_is_the_mean_of_all_cases() {
        for nodes in 1..=4 {
            for keys in 1..=8 {
                for sizes in placements(nodes, keys) {
                    for count in 1..=keys {
                        let (formula, mean) =
                            (nodes_touched(&sizes, count), brute_force(&sizes, count));
                        assert!((formula - mean).abs() < 1e-9, "{sizes:?} {count}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_keys_touch_what_was_asked_for() {
        for sizes in [
            Vec::from([20; 9]),
            Vec::from([2; 3]),
            Vec::from([100, 1, 1, 40]),
        ] {
            let all = nodes_touched(&sizes, sizes.iter().sum());
            for tenth in 10..=(all * 10.0) as u64 {
                let degree = tenth as f64 / 10.0;
                let (keys, one_more) = keys_for(&sizes, degree).expect("all keys touch more");
                let fewer = nodes_touched(&sizes, keys);
                let more = match one_more > 0.0 {
                    true => nodes_touched(&sizes, keys + 1),
                    false => fewer,
                };
                let mean = fewer * (1.0 - one_more) + more * one_more;
                assert!((mean - degree).abs() < 1e-9, "{sizes:?} {degree}: {mean}");
            }
            assert_eq!(keys_for(&sizes, sizes.len() as f64 + 0.1), None);
        }
        assert_eq!(keys_for(&[5, 5], 2.0), Some((6, 0.0)));
    }

    /// Three nodes with two keys each, three keys: the paper says 2.11 and it is 2.40.
    #[test]
    fn the_papers_equation_says_too_little() {
        assert!((nodes_touched(&[2; 3], 3) - 2.4).abs() < 1e-12);
        assert!((with_replacement(&[2; 3], 3) - 19.0 / 9.0).abs() < 1e-12);
        // It never reaches the number of nodes.
        assert!(with_replacement(&[20; 9], 180) < 9.0);
        assert!((nodes_touched(&[20; 9], 180) - 9.0).abs() < 1e-12);
    }
}
