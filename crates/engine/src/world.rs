//! The loop between a queue and a world.

use crate::{EventQueue, Time};

/// Something that reacts to events: a step, a job, a round.
pub trait World<Q: EventQueue<Self::Event>> {
    /// Everything that can happen, usually an enum, so that a reader sees it in one place.
    type Event;
    /// What stops a run.
    type Error;
    /// Whether [`World::settle`] does anything. A world whose choices never depend on what else happens at an
    /// instant says no, and [`run`] need not look for the end of each instant.
    const SETTLES: bool = true;

    /// Reacts to one event: changes the world and schedules later events (or more at this same instant).
    ///
    /// # Errors
    /// Whatever stops the run; it is returned from [`run`] as it is.
    fn handle(&mut self, now: Time, event: Self::Event, queue: &mut Q) -> Result<(), Self::Error>;

    /// Called whenever no event is left at instant `now`: the moment for choices that must see everything
    /// that ended at this instant. Events scheduled here for `now` are handled, and then it is called again.
    ///
    /// # Errors
    /// As for [`World::handle`].
    fn settle(&mut self, _now: Time, _queue: &mut Q) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Hands every event to the world, in order, until none is left; returns the instant of the last one
/// ([`Time::ZERO`] if there was none).
///
/// # Errors
/// The first error of the world.
pub fn run<Q, W>(world: &mut W, queue: &mut Q) -> Result<Time, W::Error>
where
    Q: EventQueue<W::Event>,
    W: World<Q>,
{
    let mut last = Time::ZERO;
    while let Some((now, event)) = queue.next() {
        debug_assert!(now >= last, "time runs backwards: {now} after {last}");
        last = now;
        world.handle(now, event, queue)?;
        if W::SETTLES && queue.peek_time() != Some(now) {
            world.settle(now, queue)?;
        }
    }
    Ok(last)
}
