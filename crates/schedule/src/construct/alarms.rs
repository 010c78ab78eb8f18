//! When each rank wants to be looked at next: a tournament tree, in which ties go to the lowest rank.

/// A time that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// One time for each rank, and the earliest of them at once.
pub(super) struct Alarms {
    /// The winner of each match, root at 1; the leaves are the ranks' own times.
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
        let time = self.tree[1];
        if time == NEVER {
            return None;
        }
        let mut node = 1;
        while node < self.leaves {
            node = 2 * node + usize::from(self.tree[2 * node] != time);
        }
        Some((time, node - self.leaves))
    }

    /// Sets a rank's time.
    pub(super) fn set(&mut self, rank: usize, time: u64) {
        let mut node = self.leaves + rank;
        self.tree[node] = time;
        while node > 1 {
            node /= 2;
            let winner = self.tree[2 * node].min(self.tree[2 * node + 1]);
            if self.tree[node] == winner {
                return;
            }
            self.tree[node] = winner;
        }
    }

    /// Sets a rank's time unless it has an earlier one.
    pub(super) fn bring_forward(&mut self, rank: usize, time: u64) {
        if time < self.tree[self.leaves + rank] {
            self.set(rank, time);
        }
    }
}
