//! A serial resource: one job at a time, the others wait in line.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A resource that serves one job at a time without interruption, with a waiting line.
///
/// The arbitration rule is the order of `J`: when the resource falls free, the least waiting job is taken.
/// For first come, first served, put the time of arrival first in the job's order; for any other rule, put
/// its key there. The order must be total over distinct jobs, or results would depend on the line's insides.
#[derive(Clone, Debug)]
pub struct Serial<J: Ord> {
    waiting: BinaryHeap<Reverse<J>>,
    busy: bool,
}

impl<J: Ord> Serial<J> {
    /// A free resource with nobody waiting.
    pub const fn new() -> Self {
        Self { waiting: BinaryHeap::new(), busy: false }
    }

    /// Puts a job in line. Nothing starts yet: see [`Serial::take`].
    pub fn request(&mut self, job: J) {
        self.waiting.push(Reverse(job));
    }

    /// If the resource is free and somebody waits, takes the least job and becomes busy with it.
    pub fn take(&mut self) -> Option<J> {
        if self.busy {
            return None;
        }
        let Reverse(job) = self.waiting.pop()?;
        self.busy = true;
        Some(job)
    }

    /// Ends the job in service.
    pub fn release(&mut self) {
        debug_assert!(self.busy, "released a resource that was not busy");
        self.busy = false;
    }

    /// Whether a job is in service.
    pub const fn is_busy(&self) -> bool {
        self.busy
    }

    /// How many jobs wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

impl<J: Ord> Default for Serial<J> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_job_at_a_time_and_the_least_first() {
        let mut link = Serial::new();
        link.request((5, 'a'));
        assert_eq!(link.take(), Some((5, 'a')));
        link.request((3, 'b'));
        link.request((2, 'c'));
        assert_eq!(link.take(), None);
        link.release();
        assert_eq!(link.take(), Some((2, 'c')));
        assert!(link.is_busy());
        assert_eq!(link.waiting(), 1);
    }
}
