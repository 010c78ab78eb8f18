//! Turns orders into `compute_comms`: PyTorch adds parameters, reductions, sends, receives and waits by four rules.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use super::action::{Message, Parameters};
use super::comms::{CommsOrders, CommsStep, Post, brackets};
use crate::{Deadlock, Kind, Op, Orders, Rank, Shape, Stage};

/// How many different stages of a row are kept gathered ahead.
const ACTIVE_STAGES: usize = 3;

/// The communication that PyTorch adds to orders, in the places where it adds it.
///
/// # Errors
/// [`Deadlock`] if the orders cannot run.
pub fn lower_orders(orders: &Orders, shape: &Shape) -> Result<CommsOrders, Deadlock> {
    crate::deadlock::check(orders, shape)?;
    let rows = (0..orders.ranks() as u16).map(|rank| {
        let list = orders.rank(Rank(rank));
        with_reductions(list, shape, with_parameters(list, &brackets(orders, Rank(rank)))).into()
    });
    let mut lists = with_messages(orders, shape, rows.collect());
    for (rank, list) in lists.iter_mut().enumerate() {
        *list = with_waits(orders.rank(Rank(rank as u16)), std::mem::take(list));
    }
    Ok(CommsOrders { lists })
}

/// Rule 1: a stage is gathered when it is among the next three of its row, and dropped when it is not any more.
fn with_parameters(list: &[Op], brackets: &[Range<usize>]) -> Vec<CommsStep> {
    let mut steps = Vec::with_capacity(brackets.len() + 8);
    let mut active: BTreeSet<Stage> = BTreeSet::new();
    for bracket in brackets {
        let mut next: Vec<Stage> = Vec::with_capacity(ACTIVE_STAGES);
        for op in &list[bracket.start..] {
            if !next.contains(&op.stage) {
                next.push(op.stage);
                if next.len() == ACTIVE_STAGES {
                    break;
                }
            }
        }
        let gone: Vec<Stage> = active.iter().copied().filter(|stage| !next.contains(stage)).collect();
        for stage in gone {
            active.remove(&stage);
            steps.push(CommsStep::Parameters { action: Parameters::Reshard, stage });
        }
        for stage in next {
            if active.insert(stage) {
                steps.push(CommsStep::Parameters { action: Parameters::Unshard, stage });
            }
        }
        steps.push(CommsStep::Run(bracket.clone()));
    }
    let last = active.into_iter().map(|stage| CommsStep::Parameters { action: Parameters::Reshard, stage });
    steps.extend(last);
    steps
}

/// Rule 2: a stage's gradients are reduced after its last `B` or `W`.
fn with_reductions(list: &[Op], shape: &Shape, steps: Vec<CommsStep>) -> Vec<CommsStep> {
    let mut left = vec![0_usize; shape.stages()];
    for op in list {
        left[op.stage.index()] += usize::from(matches!(op.kind, Kind::Backward | Kind::WeightGradient));
    }
    let mut all = Vec::with_capacity(steps.len() + 8);
    for step in steps {
        let range = if let CommsStep::Run(range) = &step { range.clone() } else { 0..0 };
        all.push(step);
        for op in &list[range] {
            if matches!(op.kind, Kind::Backward | Kind::WeightGradient) {
                left[op.stage.index()] -= 1;
                if left[op.stage.index()] == 0 {
                    for action in [Parameters::ReduceGradient, Parameters::WaitReduceGradient] {
                        all.push(CommsStep::Parameters { action, stage: op.stage });
                    }
                }
            }
        }
    }
    all
}

/// Rule 3: the ranks are walked round and round, one ready action of each per turn. After an operation whose
/// neighbour is on another rank its send is posted, and at that moment the receive on the neighbour's rank.
fn with_messages(orders: &Orders, shape: &Shape, mut rows: Vec<VecDeque<CommsStep>>) -> Vec<Vec<CommsStep>> {
    let mut lists: Vec<Vec<CommsStep>> = vec![Vec::new(); rows.len()];
    let mut done = vec![0_u8; shape.stages() * shape.micro_batches()];
    loop {
        let mut progress = false;
        for rank in 0..rows.len() {
            let list = orders.rank(Rank(rank as u16));
            let ops = match rows[rank].front() {
                Some(CommsStep::Run(range)) => &list[range.clone()],
                Some(_) => &[],
                None => continue,
            };
            if !ops.iter().all(|&op| crate::deadlock::has_inputs(shape, &done, op)) {
                continue;
            }
            lists[rank].extend(rows[rank].pop_front());
            for &op in ops {
                crate::deadlock::mark(shape, &mut done, op);
            }
            for &op in ops {
                post(shape, op, &mut lists);
            }
            progress = true;
        }
        if !progress {
            // All rows are used up: orders that can run never stop before.
            return lists;
        }
    }
}

fn post(shape: &Shape, op: Op, lists: &mut [Vec<CommsStep>]) {
    let (to, send, receive) = match op.kind {
        Kind::Forward => (shape.next(op.stage), Message::SendForward, Message::ReceiveForward),
        Kind::Backward | Kind::InputGradient => {
            (shape.previous(op.stage), Message::SendBackward, Message::ReceiveBackward)
        }
        Kind::WeightGradient => return,
    };
    let from = shape.rank_of(op.stage);
    if let Some(to) = to.filter(|&to| shape.rank_of(to) != from) {
        for (message, stage) in [(send, op.stage), (receive, to)] {
            let step = CommsStep::Message { message, stage, micro_batch: op.micro_batch };
            lists[shape.rank_of(stage).index()].push(step);
        }
    }
}

/// Rule 4: a sent activation is waited for right after the backward of its stage and micro-batch, all sent gradients
/// at the end of the row.
fn with_waits(list: &[Op], steps: Vec<CommsStep>) -> Vec<CommsStep> {
    let sent: BTreeSet<Post> = steps
        .iter()
        .filter_map(|step| match *step {
            CommsStep::Message { message: Message::SendForward, stage, micro_batch } => {
                Some(Post { sender: stage, forward: true, micro_batch })
            }
            _ => None,
        })
        .collect();
    let mut all = Vec::with_capacity(2 * steps.len());
    let mut at_end = Vec::new();
    for step in steps {
        let mut waits = Vec::new();
        match &step {
            CommsStep::Run(range) => {
                for op in list[range.clone()].iter().filter(|op| op.kind.sends_gradient()) {
                    let post = Post { sender: op.stage, forward: true, micro_batch: op.micro_batch };
                    let (stage, micro_batch) = (op.stage, op.micro_batch);
                    let message = Message::WaitSendForward;
                    waits.extend(sent.contains(&post).then_some(CommsStep::Message {
                        message,
                        stage,
                        micro_batch,
                    }));
                }
            }
            &CommsStep::Message { message: Message::SendBackward, stage, micro_batch } => {
                at_end.push(CommsStep::Message { message: Message::WaitSendBackward, stage, micro_batch });
            }
            _ => {}
        }
        all.push(step);
        all.append(&mut waits);
    }
    all.append(&mut at_end);
    all
}
