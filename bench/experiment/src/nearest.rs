//! Which known word was meant.

/// The known word that is nearest to this one, if it is near enough to be meant.
pub(crate) fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    // Of long words nobody means more than a few letters otherwise.
    let short: String = word.chars().take(64).collect();
    let most = (short.chars().count() / 3).clamp(1, 3);
    let far = known
        .into_iter()
        .map(|other| (distance(&short, other), other));
    far.filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, other)| other)
}

/// Letters that are inserted, left out, changed or exchanged with the next one.
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.to_lowercase().chars().collect();
    let to: Vec<char> = to.to_lowercase().chars().collect();
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for (at, row) in rows.iter_mut().enumerate() {
        row[0] = at;
    }
    rows[0] = (0..=to.len()).collect();
    for i in 1..=from.len() {
        for j in 1..=to.len() {
            let changed = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut best = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not() {
        let known = ["threads", "sessions", "think_time", "kind", "rate"];
        for (word, meant) in [
            ("thraeds", Some("threads")),
            ("Threads", Some("threads")),
            ("thinktime", Some("think_time")),
            ("session", Some("sessions")),
            ("rat", Some("rate")),
            ("kinds", Some("kind")),
            ("warehouses", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
