//! Which engine is the emptiest of those that take responses.
//!
//! One idea: a tree of minima over the engines, in one array; a change of one engine renews the minima above it,
//! and the emptiest of all stands at the top. Of two that are as empty the lower number is taken.

/// Engines by how many of their slots are taken.
#[derive(Clone, Debug)]
pub(crate) struct Emptiest {
    /// The leaves are the upper half, an engine each; node `n` is the lesser of nodes `2n` and `2n + 1`.
    nodes: Vec<u64>,
}

/// Of an engine that takes nothing.
const CLOSED: u64 = u64::MAX;

impl Emptiest {
    /// So many engines, all empty.
    pub(crate) fn new(engines: u32) -> Self {
        let leaves = (engines.max(1) as usize).next_power_of_two();
        let mut tree = Self { nodes: vec![CLOSED; 2 * leaves] };
        for engine in 0..engines {
            tree.put(engine, Some(0));
        }
        tree
    }

    /// An engine has so many slots taken; `None`: it takes nothing.
    pub(crate) fn put(&mut self, engine: u32, taken: Option<u32>) {
        let mut node = self.nodes.len() / 2 + engine as usize;
        let key = taken.map_or(CLOSED, |taken| u64::from(taken) << 32 | u64::from(engine));
        self.nodes[node] = key;
        while node > 1 {
            let least = self.nodes[node].min(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == least {
                break;
            }
            self.nodes[node] = least;
        }
    }

    /// The emptiest, and how many of its slots are taken.
    pub(crate) fn first(&self) -> Option<(u32, u32)> {
        let least = self.nodes[1];
        // Truncated to the engine's half on purpose.
        (least != CLOSED).then_some((least as u32, (least >> 32) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_number_of_the_emptiest_is_first() {
        for engines in [1, 2, 3, 5, 8, 13] {
            let mut tree = Emptiest::new(engines);
            let mut taken: Vec<Option<u32>> = vec![Some(0); engines as usize];
            for step in 0..200_u32 {
                let engine = (step * 7 + step / 3) % engines;
                let now = (step % 5 != 0).then_some(step * 13 % 11);
                taken[engine as usize] = now;
                tree.put(engine, now);
                let open = taken.iter().enumerate().filter_map(|(at, taken)| Some((taken.as_ref()?, at)));
                let least = open.min().map(|(&taken, at)| (at as u32, taken));
                assert_eq!(tree.first(), least);
            }
        }
    }
}
