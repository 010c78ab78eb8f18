//! Which candidates nothing else beats: no other is at least as fast with at most as much memory, and better in
//! one of the two.

/// For each (time, bytes), whether it lies on the Pareto front. Equal candidates stand together.
pub fn pareto_front(points: &[(u64, u64)]) -> Vec<bool> {
    let mut by_time: Vec<usize> = (0..points.len()).collect();
    by_time.sort_by_key(|&index| points[index]);
    let mut front = vec![false; points.len()];
    // The least memory seen so far, and at what time: only the same point again may equal it.
    let mut best: Option<(u64, u64)> = None;
    for index in by_time {
        let (time, bytes) = points[index];
        front[index] = best.is_none_or(|(at, least)| bytes < least || (bytes == least && time == at));
        if best.is_none_or(|(_, least)| bytes < least) {
            best = Some((time, bytes));
        }
    }
    front
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fast_and_small_both_count() {
        let points = [(337, 2_566), (347, 965), (350, 2_000), (347, 1_000), (337, 2_566)];
        assert_eq!(pareto_front(&points), [true, true, false, false, true]);
    }

    proptest! {
        #[test]
        fn the_front_is_what_nothing_dominates(points in prop::collection::vec((0_u64..8, 0_u64..8), 0..20)) {
            let beats = |a: (u64, u64), b: (u64, u64)| a != b && a.0 <= b.0 && a.1 <= b.1;
            let expected: Vec<bool> =
                points.iter().map(|&one| !points.iter().any(|&other| beats(other, one))).collect();
            prop_assert_eq!(pareto_front(&points), expected);
        }
    }
}
