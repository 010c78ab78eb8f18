//! How small a micro-batch has to be for a step that does not fit its budget to fit.

use pipestep_report::SmallerMicroBatch;
use pipestep_scenario::{Override, Scenario, StepScenario};

use crate::simulated::{Keep, Simulated};
use crate::{args, load};

/// Larger micro-batches than this are not made smaller one sequence at a time.
const LARGEST: u64 = 1 << 16;

/// The largest micro-batch that fits, if the step's own does not and could be smaller. Sizes are tried by
/// simulation, as the scenario would be with them: nothing else changes. `None` too where a smaller one cannot run.
pub(crate) fn smaller_micro_batch(
    typed: &args::Scenario,
    scenario: &Scenario,
    simulated: &Simulated,
) -> Option<SmallerMicroBatch> {
    let step = scenario.step.as_ref().filter(|_| simulated.view().fits() == Some(false))?;
    let size = step.sequences_per_micro_batch.filter(|size| (2..=LARGEST).contains(size))?;
    let sizes: Vec<u64> = (1..size).filter(|&size| divides(step, size)).collect();
    // No size needs more memory than a larger one, so the largest that fits is found by halving.
    let (mut fitting, mut unknown) = (0, sizes.len());
    while fitting < unknown {
        let middle = fitting.midpoint(unknown);
        let set = Override::set(format!("model.micro_batch_size={}", sizes[middle]));
        let smaller =
            load::scenario(typed, &[set]).and_then(|smaller| Simulated::new(&smaller, Keep::Summary));
        if smaller.ok()?.view().fits() == Some(false) {
            unknown = middle;
        } else {
            fitting = middle + 1;
        }
    }
    Some(SmallerMicroBatch { size, fits: fitting.checked_sub(1).map(|last| sizes[last]) })
}

/// Whether the global batch, if there is one, divides into micro-batches of this size.
fn divides(step: &StepScenario, size: u64) -> bool {
    let at_once = size * u64::from(step.data_parallel);
    step.global_batch.is_none_or(|batch| batch.is_multiple_of(at_once))
}
