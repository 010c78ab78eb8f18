//! Orders as the text of a schedule file, as PyTorch writes it: commas, CRLF, no idle cells.

use super::action::Action;
use super::comms::{CommsOrders, CommsStep, brackets};
use super::lower::lower_orders;
use crate::{Deadlock, Op, Orders, Rank, Shape};

/// The `compute_only` file of orders: one row a rank.
pub fn compute_only(orders: &Orders) -> String {
    let row = |rank| {
        let list = orders.rank(Rank(rank));
        let cells = brackets(orders, Rank(rank)).into_iter().map(|range| bracket(&list[range]).to_string());
        cells.collect::<Vec<_>>().join(",")
    };
    rows((0..orders.ranks() as u16).map(row))
}

/// The `compute_comms` file of orders, with the actions that PyTorch 2.15 adds, in the places where it adds them.
///
/// # Errors
/// [`Deadlock`] if the orders cannot run.
pub fn compute_comms(orders: &Orders, shape: &Shape) -> Result<String, Deadlock> {
    lower_orders(orders, shape).map(|comms| comms_text(&comms, orders))
}

/// The text of orders with their communication.
fn comms_text(comms: &CommsOrders, orders: &Orders) -> String {
    rows(comms.lists.iter().enumerate().map(|(rank, steps)| {
        let list = orders.rank(Rank(rank as u16));
        let cells = steps.iter().map(|step| match step {
            CommsStep::Run(range) => bracket(&list[range.clone()]).to_string(),
            &CommsStep::Message { message, stage, micro_batch } => {
                Action::Message(message, stage, micro_batch).to_string()
            }
            &CommsStep::Parameters { action, stage } => Action::Parameters(action, stage).to_string(),
        });
        cells.collect::<Vec<_>>().join(",")
    }))
}

/// What a bracket of operations is written as.
fn bracket(ops: &[Op]) -> Action {
    match ops {
        [op] => Action::Run(*op),
        ops => Action::Bracket(ops.to_vec()),
    }
}

fn rows(rows: impl Iterator<Item = String>) -> String {
    rows.flat_map(|row| [row, "\r\n".into()]).collect()
}
