//! One drawn run in full, for what explains it.

use pipestep_engine::Duration;
use pipestep_schedule::Plan;

use super::Replicas;
use super::draw::Draw;
use crate::online::{record_orders, record_policy};
use crate::simulate::finish;
use crate::{Inputs, Links, Outcome, StepError};

impl Replicas<'_> {
    /// One run in full, and the inputs with its updates, for what explains it. What it would take with something
    /// changed is a run of the same number with the changed inputs: the draws are the same.
    ///
    /// # Errors
    /// [`StepError`] if the plan is not right for the step, deadlocks, or its lengths add up to too much.
    pub fn outcome(self, plan: Plan, run: u64) -> Result<(Inputs, Outcome), StepError> {
        let drawn = Draw::new(self, run)?;
        let mut costs = self.inputs.costs().clone();
        for (rank, &update) in costs.ranks.iter_mut().zip(&drawn.updates) {
            rank.update = Duration::from_nanos(update);
        }
        let inputs = self.inputs.with_checked_costs(costs);
        let (times, orders, ops, messages) = match plan {
            Plan::Online(policy) => record_policy(&inputs, &drawn, policy)?,
            Plan::Fixed(orders) => {
                let (times, ops, messages) = record_orders(&inputs, &drawn, &orders)?;
                (times, orders, ops, messages)
            }
        };
        let mut free = self.inputs.with_free_transfers();
        free.links = Links::Unlimited; // a message of no length never queues
        let free = Replicas { inputs: &free, jitter: self.jitter }.of_orders(&orders, run..run + 1)?;
        let outcome = finish(&inputs, &times, orders, ops, &messages, free[0])?;
        Ok((inputs, outcome))
    }
}
