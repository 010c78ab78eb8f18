//! One run from inputs to outcome.

use pipestep_engine::{HeapQueue, run};

use crate::inputs::Placement;
use crate::outcome::RlOutcome;
use crate::record::{NoRecord, Recorder, Span};
use crate::validate::validate;
use crate::world::Rounds;
use crate::{RlError, RlInputs};

/// Simulates rounds and returns what they come to.
///
/// # Errors
/// [`RlError`]: inputs that are refused, a run that cannot go on, sums past 64 bits.
pub fn simulate(inputs: &RlInputs) -> Result<RlOutcome, RlError> {
    Ok(simulate_with(inputs, NoRecord)?.0)
}

/// As [`simulate`], and also returns every bar of the picture, in the order in which they ended.
///
/// # Errors
/// As for [`simulate`].
pub fn simulate_recorded(inputs: &RlInputs) -> Result<(RlOutcome, Vec<Span>), RlError> {
    simulate_with(inputs, Vec::new())
}

fn simulate_with<R: Recorder>(inputs: &RlInputs, record: R) -> Result<(RlOutcome, R), RlError> {
    validate(inputs)?;
    let mut world = Rounds::new(inputs, record)?;
    let mut queue = HeapQueue::new();
    world.begin(&mut queue)?;
    run(&mut world, &mut queue)?;
    if !world.done {
        return Err(world.deadlock());
    }
    debug_assert!(
        world.every_sample_is_somewhere(),
        "a sample was lost from, or counted twice in, the books"
    );
    world.draw_open_stints();
    let mut outcome = world.tally.outcome(inputs);
    if let Placement::Colocated(switching) = &inputs.placement
        && let Some(memory) = &switching.memory
    {
        outcome.memory = Some(memory.plan()?);
    }
    Ok((outcome, world.record))
}
