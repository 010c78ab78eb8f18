//! A queue for worlds in which every owner waits for one event.

use crate::{Class, EventQueue, Time};

/// Nothing pending: past every key.
const EMPTY: u64 = u64::MAX;

/// No owner.
const NOBODY: usize = usize::MAX;

/// A queue for worlds in which every owner has at most one event pending, its next one, and all happen before
/// [`OwnerQueue::END`]. Of several owners at one instant the lowest comes first, whatever the class; an event is the
/// number of its owner.
///
/// A tree in which every owner has a leaf of its own and every node holds the least key of its two children. An
/// event costs one walk from a leaf to the root, without a branch that depends on times: which of a few ranks ends
/// next is just what a processor can't predict, and a heap asks that several times an event.
#[derive(Clone, Debug)]
pub struct OwnerQueue {
    /// `time << 16 | owner`. The root is node 1, the children of node `i` are `2 * i` and `2 * i + 1`.
    nodes: Vec<u64>,
    /// The leaf of owner 0.
    leaves: usize,
    /// The leaf of the event that was handed out last, whose key is still there: mostly the same owner gets another
    /// event, and one walk does for both.
    stale: usize,
}

impl OwnerQueue {
    /// The first instant that is too late: 2^48 ns, 78 hours.
    pub const END: Time = Time::from_nanos(1 << 48);

    /// A queue without owners.
    pub fn new() -> Self {
        Self { nodes: vec![EMPTY; 2], leaves: 1, stale: NOBODY }
    }

    /// Forgets all pending events and makes room for owners `0..owners`; keeps the memory.
    pub fn reset(&mut self, owners: usize) {
        self.leaves = owners.next_power_of_two();
        self.nodes.clear();
        self.nodes.resize(2 * self.leaves, EMPTY);
        self.stale = NOBODY;
    }

    /// Sets a leaf.
    #[inline]
    fn set(&mut self, leaf: usize, key: u64) {
        let (mut node, mut least) = (leaf, key);
        self.nodes[node] = key;
        while node > 1 {
            least = least.min(self.nodes[node ^ 1]);
            node /= 2;
            self.nodes[node] = least;
        }
    }
}

impl Default for OwnerQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl EventQueue<u16> for OwnerQueue {
    #[inline]
    fn schedule(&mut self, at: Time, _class: Class, owner: u16) {
        debug_assert!(at < Self::END, "{at} is too late for this queue");
        let leaf = self.leaves + usize::from(owner);
        debug_assert!(leaf == self.stale || self.nodes[leaf] == EMPTY, "owner {owner} waits already");
        if leaf == self.stale {
            self.stale = NOBODY;
        }
        self.set(leaf, at.as_nanos() << 16 | u64::from(owner));
    }

    #[inline]
    fn next(&mut self) -> Option<(Time, u16)> {
        if self.stale != NOBODY {
            self.set(self.stale, EMPTY);
        }
        let key = self.nodes[1];
        if key == EMPTY {
            self.stale = NOBODY;
            return None;
        }
        self.stale = self.leaves + usize::from(key as u16);
        Some((Time::from_nanos(key >> 16), key as u16))
    }

    #[inline]
    fn peek_time(&self) -> Option<Time> {
        let mut key = self.nodes[1];
        if self.stale != NOBODY {
            // The least of all but the one that is handed out.
            let (mut node, mut least) = (self.stale, EMPTY);
            while node > 1 {
                least = least.min(self.nodes[node ^ 1]);
                node /= 2;
            }
            key = least;
        }
        (key != EMPTY).then(|| Time::from_nanos(key >> 16))
    }
}
