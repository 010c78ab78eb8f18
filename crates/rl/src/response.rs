//! The responses that are being generated, and the samples they become.
//!
//! One idea: a response lives in a numbered place that is used again; a [`Ticket`] names the place and how
//! often it has changed hands, so that events and heaps may hold on to tickets that have lost their meaning.

use pipestep_engine::Time;

/// Names one stint of a response; worthless once that stint is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    pub(crate) place: u32,
    pub(crate) turn: u32,
}

/// The end of a list of responses.
pub(crate) const NOBODY: u32 = u32::MAX;

/// Where a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// In line for a slot.
    Waiting,
    /// In a slot, computing keys and values.
    Prefill,
    /// In a slot, from the next iteration on (or held there while the engine stands still).
    Joining,
    /// Decoding since iteration `since` of its engine.
    Decoding {
        /// That iteration.
        since: u64,
    },
}

/// A response being generated.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is set and cleared by itself, named at its field")]
pub(crate) struct Response {
    /// Number of its sample, in order of launch.
    pub(crate) sample: u64,
    /// Its group's number.
    pub(crate) group: u32,
    /// Tokens it will have.
    pub(crate) length: u64,
    /// Tokens it had at the start of this stint.
    pub(crate) done: u64,
    /// Whether it has ever decoded, so that there are keys and values to lose.
    pub(crate) begun: bool,
    /// Whether keys and values must be computed before it decodes.
    pub(crate) needs_prefill: bool,
    /// Whether its interruption is not scheduled, because it fell into a time of standing still.
    pub(crate) spared: bool,
    /// Updates in the weights of its first token.
    pub(crate) version: u32,
    /// When it was first given a slot.
    pub(crate) launched: Time,
    /// When this stint began, for the picture.
    pub(crate) stint: Time,
    pub(crate) engine: u32,
    /// Which slot of the engine, for the picture.
    pub(crate) lane: u32,
    pub(crate) stage: Stage,
    /// Next in the ring of its rivals; itself when it has none.
    pub(crate) rival: u32,
    /// Its neighbours in the list of its group's responses, or [`NOBODY`].
    before: u32,
    after: u32,
    turn: u32,
    live: bool,
}

/// A response that has ended and waits to be scored and trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) number: u64,
    pub(crate) group: u32,
    pub(crate) tokens: u64,
    pub(crate) version: u32,
    pub(crate) launched: Time,
    pub(crate) finished: Time,
}

/// All places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Responses {
    places: Vec<Response>,
    free: Vec<u32>,
}

impl Responses {
    /// Puts in a new response, waiting, and returns its ticket.
    pub(crate) fn add(&mut self, sample: u64, group: u32, length: u64) -> Ticket {
        let fresh = Response {
            sample,
            group,
            length,
            done: 0,
            begun: false,
            needs_prefill: true,
            spared: false,
            version: 0,
            launched: Time::MAX,
            stint: Time::MAX,
            engine: 0,
            lane: 0,
            stage: Stage::Waiting,
            rival: 0,
            before: NOBODY,
            after: NOBODY,
            turn: 0,
            live: true,
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(fresh);
            (self.places.len() - 1) as u32
        });
        let turn = self.places[place as usize].turn + 1;
        self.places[place as usize] = Response { rival: place, turn, ..fresh };
        Ticket { place, turn }
    }

    /// The response of a ticket, if the ticket is still good.
    pub(crate) fn get(&self, ticket: Ticket) -> Option<&Response> {
        self.places
            .get(ticket.place as usize)
            .filter(|response| response.live && response.turn == ticket.turn)
    }

    /// The response in a place that is known to be in use.
    pub(crate) fn at(&mut self, place: u32) -> &mut Response {
        &mut self.places[place as usize]
    }

    /// The same, to read.
    pub(crate) fn read(&self, place: u32) -> &Response {
        &self.places[place as usize]
    }

    /// Voids all tickets of a response and gives a new one.
    pub(crate) fn renew(&mut self, place: u32) -> Ticket {
        let response = &mut self.places[place as usize];
        response.turn += 1;
        Ticket { place, turn: response.turn }
    }

    /// Puts a response at the head of its group's list.
    pub(crate) fn enlist(&mut self, place: u32, first: &mut u32) {
        if let Some(other) = self.places.get_mut(*first as usize) {
            other.before = place;
        }
        self.places[place as usize].after = *first;
        *first = place;
    }

    /// Takes a response out of its group's list.
    pub(crate) fn delist(&mut self, place: u32, first: &mut u32) {
        let Response { before, after, .. } = self.places[place as usize];
        match self.places.get_mut(before as usize) {
            Some(other) => other.after = after,
            None => *first = after,
        }
        if let Some(other) = self.places.get_mut(after as usize) {
            other.before = before;
        }
    }

    /// The places of a group's list.
    pub(crate) fn listed(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let inside = move |place: u32| (place != NOBODY).then_some(place);
        std::iter::successors(inside(first), move |&place| inside(self.places[place as usize].after))
    }

    /// Takes a response out of its ring of rivals and frees its place.
    pub(crate) fn remove(&mut self, place: u32) -> Response {
        let removed = self.places[place as usize];
        let mut before = place;
        while self.places[before as usize].rival != place {
            before = self.places[before as usize].rival;
        }
        self.places[before as usize].rival = removed.rival;
        let response = &mut self.places[place as usize];
        response.live = false;
        response.turn += 1;
        self.free.push(place);
        removed
    }

    /// Places in use, by rising sample number (and place, among rivals).
    pub(crate) fn live(&self) -> Vec<u32> {
        let mut places: Vec<u32> =
            (0..self.places.len() as u32).filter(|&place| self.places[place as usize].live).collect();
        places.sort_unstable_by_key(|&place| (self.places[place as usize].sample, place));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_void_once_its_place_changes_hands() {
        let mut responses = Responses::default();
        let first = responses.add(0, 0, 10);
        assert!(responses.get(first).is_some());
        responses.remove(first.place);
        assert!(responses.get(first).is_none());
        let second = responses.add(1, 1, 10);
        assert_eq!(second.place, first.place, "places are used again");
        assert!(responses.get(first).is_none());
        let renewed = responses.renew(second.place);
        assert!(responses.get(second).is_none());
        assert!(responses.get(renewed).is_some());
    }

    #[test]
    fn a_list_forgets_who_leaves_it() {
        let mut responses = Responses::default();
        let mut first = NOBODY;
        let places: Vec<u32> = (0..3).map(|_| responses.add(0, 0, 1).place).collect();
        for &place in &places {
            responses.enlist(place, &mut first);
        }
        let listed = |responses: &Responses, first| responses.listed(first).collect::<Vec<_>>();
        assert_eq!(listed(&responses, first), [places[2], places[1], places[0]]);
        responses.delist(places[1], &mut first);
        assert_eq!(listed(&responses, first), [places[2], places[0]]);
        responses.delist(places[2], &mut first);
        responses.delist(places[0], &mut first);
        assert_eq!(listed(&responses, first), [0; 0]);
    }

    #[test]
    fn a_ring_of_rivals_closes_behind_the_one_that_leaves() {
        let mut responses = Responses::default();
        let places: Vec<u32> = (0..3).map(|_| responses.add(7, 0, 1).place).collect();
        for (index, &place) in places.iter().enumerate() {
            responses.at(place).rival = places[(index + 1) % 3];
        }
        responses.remove(places[1]);
        assert_eq!(responses.at(places[0]).rival, places[2]);
        responses.remove(places[0]);
        assert_eq!(responses.at(places[2]).rival, places[2]);
    }
}
