//! Groups: the responses to one prompt, which are trained on together or not at all.
//!
//! One idea: a group lives in a numbered place that is used again; its samples carry that number, and the group
//! counts where each of them is, so that it knows when it is complete, and when nothing refers to it any more. A
//! single response is a group of one.
//!
//! What a group does when a member ends, is scored or lost is in [`crate::conduct`], [`crate::train`] and
//! [`crate::launch`].

use crate::response::{NOBODY, Sample};

/// What became of a group that will not be trained on, or has been handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Not needed: the batch is full. Also a complete group's members that end after it was.
    Surplus,
    /// Scored and not kept.
    Filtered,
    /// Its weights are too old.
    Stale,
    /// Lost in a restart.
    Lost,
    /// Too many of its members were interrupted.
    Interrupted,
}

/// One group.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupState {
    /// The first place in the list of its responses, rivals included.
    pub(crate) first: u32,
    /// Members launched that have not ended.
    pub(crate) alive: u32,
    /// Members that have ended.
    pub(crate) ended: u32,
    /// Of these, the ones that count: at most as many as the group needs.
    pub(crate) taken: u32,
    /// Members that have ended and are neither scored nor gone.
    pub(crate) under_way: u32,
    /// Members that are scored and wait for the others; not used where there are none.
    pub(crate) scored: Vec<Sample>,
    /// Oldest weights among the members that have ended.
    pub(crate) oldest: u32,
    /// Certain to be trained on.
    pub(crate) credited: bool,
    /// Complete, but beyond a full batch: the next round starts with it.
    pub(crate) carried: bool,
    /// Why it is gone, if it is.
    pub(crate) gone: Option<Fate>,
    live: bool,
}

/// All groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    places: Vec<GroupState>,
    free: Vec<u32>,
    /// Groups of which some member has yet to be generated.
    pub(crate) open: u64,
    /// Groups whose members have all been generated and are being scored.
    pub(crate) unscored: u64,
}

impl Groups {
    /// A new group, without members; its number.
    pub(crate) fn add(&mut self) -> u32 {
        self.open += 1;
        let number = self.free.pop().unwrap_or_else(|| {
            self.places.push(GroupState::default());
            (self.places.len() - 1) as u32
        });
        let group = &mut self.places[number as usize];
        // The vector is empty, and keeps its memory.
        (group.alive, group.ended, group.taken, group.under_way) = (0, 0, 0, 0);
        (group.credited, group.carried, group.gone) = (false, false, None);
        (group.oldest, group.first, group.live) = (u32::MAX, NOBODY, true);
        number
    }

    /// The group of this number, which is in use.
    pub(crate) fn at(&mut self, number: u32) -> &mut GroupState {
        &mut self.places[number as usize]
    }

    /// The same, to read.
    pub(crate) fn get(&self, number: u32) -> &GroupState {
        &self.places[number as usize]
    }

    /// Frees the place of a group that is gone and that no member refers to any more.
    pub(crate) fn forget(&mut self, number: u32) {
        let group = &mut self.places[number as usize];
        if group.live && group.gone.is_some() && group.alive == 0 && group.under_way == 0 {
            debug_assert!(group.scored.is_empty() && group.first == NOBODY, "a group leaves nothing behind");
            group.live = false;
            self.free.push(number);
        }
    }

    /// Numbers of the groups that are neither gone nor certain to be trained on.
    pub(crate) fn unsettled(&self) -> Vec<u32> {
        let wanted = |group: &GroupState| group.live && group.gone.is_none() && !group.credited;
        (0..self.places.len() as u32).filter(|&number| wanted(&self.places[number as usize])).collect()
    }

    /// Numbers of the groups that are not gone.
    pub(crate) fn present(&self) -> Vec<u32> {
        let wanted = |group: &GroupState| group.live && group.gone.is_none();
        (0..self.places.len() as u32).filter(|&number| wanted(&self.places[number as usize])).collect()
    }

    /// Samples that are scored and wait for the rest of their group.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Sample> {
        self.places.iter().flat_map(|group| &group.scored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_once_nothing_refers_to_it() {
        let mut groups = Groups::default();
        let first = groups.add();
        groups.at(first).alive = 1;
        groups.at(first).gone = Some(Fate::Surplus);
        groups.forget(first);
        let second = groups.add();
        assert_ne!(first, second, "a member still runs");
        groups.at(first).alive = 0;
        groups.forget(first);
        groups.forget(first);
        assert_eq!(groups.add(), first);
        assert_ne!(groups.add(), first, "freed once");
        assert!(groups.at(first).gone.is_none() && groups.at(first).oldest == u32::MAX);
    }
}
