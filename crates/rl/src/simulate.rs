//! One run from inputs to outcome.

use pipestep_engine::{HeapQueue, run};

use crate::inputs::Placement;
use crate::outcome::{JobOutcome, RlOutcome};
use crate::record::{NoRecord, Recorder, Span};
use crate::turns::{Jobs, Lanes};
use crate::validate::validate;
use crate::world::Rounds;
use crate::{RlError, RlInputs};

/// Simulates rounds and returns what they come to.
///
/// # Errors
/// [`RlError`]: inputs that are refused, a run that cannot go on, sums past 64 bits.
pub fn simulate(inputs: &RlInputs) -> Result<RlOutcome, RlError> {
    Ok(simulate_with::<NoRecord>(inputs)?.0)
}

/// As [`simulate`], and also returns every bar of the picture, in the order in which they ended.
///
/// # Errors
/// As for [`simulate`].
pub fn simulate_recorded(inputs: &RlInputs) -> Result<(RlOutcome, Vec<Span>), RlError> {
    simulate_with(inputs)
}

fn simulate_with<R: Recorder + Default>(inputs: &RlInputs) -> Result<(RlOutcome, R), RlError> {
    validate(inputs)?;
    if inputs.sharing.is_some() {
        return simulate_jobs(inputs);
    }
    let mut world = Rounds::new(inputs, R::default())?;
    let mut queue = HeapQueue::new();
    world.begin(&mut queue)?;
    run(&mut world, &mut queue)?;
    if !world.done {
        return Err(world.deadlock());
    }
    finish(world)
}

/// As [`simulate_with`], for jobs that share engines and trainer; what is recorded is what the first one sees.
fn simulate_jobs<R: Recorder + Default>(inputs: &RlInputs) -> Result<(RlOutcome, R), RlError> {
    let mut world = Jobs::new(inputs, R::default)?;
    let mut queue = Lanes::new(world.worlds.len());
    world.begin(&mut queue)?;
    run(&mut world, &mut queue)?;
    if let Some(stuck) = world.stuck() {
        return Err(stuck.deadlock());
    }
    let mut jobs = world.worlds.into_iter();
    let first = jobs.next().expect("the job of the inputs is always there");
    let (mut outcome, record) = finish(first)?;
    for (job, shared) in jobs.zip(inputs.sharing.iter().flat_map(|sharing| &sharing.jobs)) {
        let name = shared.name.clone();
        outcome.jobs.push(JobOutcome { name, outcome: finish(job)?.0 });
    }
    Ok((outcome, record))
}

/// What a world that is done comes to.
fn finish<R: Recorder>(mut world: Rounds<'_, R>) -> Result<(RlOutcome, R), RlError> {
    debug_assert!(
        world.every_sample_is_somewhere(),
        "a sample was lost from, or counted twice in, the books"
    );
    world.draw_open_stints();
    let mut outcome = world.tally.outcome(world.inputs);
    if let Placement::Colocated(switching) = &world.inputs.placement
        && let Some(memory) = &switching.memory
    {
        outcome.memory = Some(memory.plan()?);
    }
    Ok((outcome, world.record))
}
