//! Frames of small partitions.

use crate::frame::{Edge, Exclusion, Frame, stretches};
use crate::sliding::nodes;
use base::Type;
use expr::Expr;

fn rows(parts: [core::ops::Range<usize>; 3]) -> Vec<usize> {
    parts.into_iter().flatten().collect()
}

#[test]
fn excluded_rows_are_taken_out_of_the_middle() {
    let frame = |exclusion| rows(stretches(1..7, 4, 3..6, exclusion));
    assert_eq!(frame(Exclusion::Nothing), [1, 2, 3, 4, 5, 6]);
    assert_eq!(frame(Exclusion::Current), [1, 2, 3, 5, 6]);
    assert_eq!(frame(Exclusion::Group), [1, 2, 6]);
    assert_eq!(frame(Exclusion::Ties), [1, 2, 4, 6]);
}

#[test]
fn frames_that_end_before_they_start_or_lie_elsewhere_have_no_excluded_rows() {
    let frame = |from, to, exclusion| rows(stretches(from..to, 4, 3..6, exclusion));
    assert!(frame(5, 2, Exclusion::Nothing).is_empty());
    assert_eq!(frame(0, 2, Exclusion::Group), [0, 1]);
    assert_eq!(frame(0, 2, Exclusion::Ties), [0, 1]);
    assert_eq!(frame(7, 9, Exclusion::Ties), [7, 8]);
    assert_eq!(frame(5, 9, Exclusion::Ties), [6, 7, 8]);
}

#[test]
fn nodes_of_a_tree_make_up_every_stretch() {
    for first in 0..40usize {
        for last in first..40 {
            let mut next = first;
            for (level, at) in nodes(first, last) {
                assert_eq!(at << level, next, "{first}..{last}");
                next = (at + 1) << level;
            }
            assert_eq!(next, last.max(first));
        }
    }
}

#[test]
fn edges_that_cannot_stand_together_are_refused() {
    let offset = || Expr::null(Type::Int8);
    let refused = |start: Edge, end: Option<Edge>| {
        let error = Frame::check_edges(&start, end.as_ref()).unwrap_err();
        error.fields().message.clone()
    };
    assert!(refused(Edge::Last, None).contains("start cannot be UNBOUNDED"));
    assert!(refused(Edge::First, Some(Edge::First)).contains("end cannot be UNBOUNDED"));
    assert!(refused(Edge::Following(offset()), None).contains("end with current row"));
    assert!(refused(Edge::Current, Some(Edge::Preceding(offset()))).contains("current row"));
    assert!(refused(Edge::Following(offset()), Some(Edge::Current)).contains("following row"));
    let fine = Frame::check_edges(&Edge::Preceding(offset()), Some(&Edge::Preceding(offset())));
    assert_eq!(fine, Ok(()));
}
