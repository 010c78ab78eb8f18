//! When each rank wants to be looked at next: a tournament tree, in which ties go to the lowest rank.

/// A time that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// Times are below two to this power, which leaves room for the number of a rank beside them.
pub(super) const TIME_BITS: u32 = 48;

/// One time for each rank, and the earliest of them at once.
pub(super) struct Alarms {
    /// The winner of each match, root at 1; the leaves are the ranks' own. An entry is a time with its rank in the
    /// lowest bits, so that the smallest entry is the earliest time of the lowest rank.
    tree: Vec<u64>,
    leaves: usize,
}

impl Alarms {
    /// No alarm set.
    pub(super) fn new(ranks: usize) -> Self {
        let leaves = ranks.next_power_of_two();
        Self { tree: vec![NEVER; 2 * leaves], leaves }
    }

    /// The earliest time and its rank.
    pub(super) fn first(&self) -> Option<(u64, usize)> {
        let entry = self.tree[1];
        let rank = entry & ((1 << (u64::BITS - TIME_BITS)) - 1);
        (entry != NEVER).then_some((entry >> (u64::BITS - TIME_BITS), rank as usize))
    }

    /// Sets a rank's time.
    pub(super) fn set(&mut self, rank: usize, time: u64) {
        let entry = if time == NEVER { NEVER } else { time << (u64::BITS - TIME_BITS) | rank as u64 };
        self.climb(self.leaves + rank, entry);
    }

    /// Sets a rank's time unless it has an earlier one.
    pub(super) fn bring_forward(&mut self, rank: usize, time: u64) {
        let entry = time << (u64::BITS - TIME_BITS) | rank as u64;
        if entry < self.tree[self.leaves + rank] {
            self.climb(self.leaves + rank, entry);
        }
    }

    fn climb(&mut self, mut node: usize, mut entry: u64) {
        while self.tree[node] != entry {
            self.tree[node] = entry;
            if node == 1 {
                return;
            }
            entry = entry.min(self.tree[node ^ 1]);
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_time_comes_first_and_ties_go_to_the_lowest_rank() {
        let mut alarms = Alarms::new(5);
        assert_eq!(alarms.first(), None);
        for (rank, time) in [(3, 7), (1, 9), (4, 7)] {
            alarms.set(rank, time);
        }
        assert_eq!(alarms.first(), Some((7, 3)));
        alarms.set(3, NEVER);
        assert_eq!(alarms.first(), Some((7, 4)));
        alarms.bring_forward(1, 2);
        alarms.bring_forward(1, 5);
        assert_eq!(alarms.first(), Some((2, 1)));
        alarms.set(1, 8);
        alarms.set(4, 10);
        assert_eq!(alarms.first(), Some((8, 1)));
    }
}
