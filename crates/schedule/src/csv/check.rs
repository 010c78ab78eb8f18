//! Whether the communication actions of a `compute_comms` file can do their work.

use std::collections::{BTreeMap, BTreeSet};

use super::action::{Message, Parameters};
use super::comms::{CommsOrders, CommsStep, Post};
use super::error::CsvError;
use super::read::Cells;
use crate::{Kind, MicroBatch, Op, Orders, Rank, Shape, Stage};

/// Checks the waits and reductions of each row, that what is needed is received, that both ends of each channel
/// post the same messages in the same order, and that the rows do not wait for one another.
pub(super) fn check_comms(
    comms: &CommsOrders,
    orders: &Orders,
    shape: &Shape,
    cells: &Cells,
) -> Result<(), CsvError> {
    for (rank, steps) in comms.lists.iter().enumerate() {
        check_row(steps, orders, shape, Rank(rank as u16))
            .map_err(|(place, reason)| cells.at(rank, place, reason))?;
    }
    check_channels(comms, shape, cells)?;
    check_waiting(comms, orders, shape, cells)
}

/// A row so far.
#[derive(Default)]
struct Row {
    /// Sends that nothing has waited for, with their places.
    sent: BTreeMap<Post, usize>,
    /// All posts, whether waited for or not.
    posted: BTreeSet<(Message, Post)>,
    done: BTreeSet<(Kind, Stage, MicroBatch)>,
    reducing: Option<(Stage, usize)>,
}

/// What is wrong with a step: its place and the reason.
type Wrong = (usize, String);

fn check_row(steps: &[CommsStep], orders: &Orders, shape: &Shape, rank: Rank) -> Result<(), Wrong> {
    let mut row = Row::default();
    for (place, step) in steps.iter().enumerate() {
        let checked = match step {
            CommsStep::Run(range) => {
                orders.rank(rank)[range.clone()].iter().try_for_each(|&op| row.run(shape, op))
            }
            &CommsStep::Message { message, stage, micro_batch } => {
                row.message(shape, rank, place, message, stage, micro_batch)
            }
            &CommsStep::Parameters { action, stage } => row.parameters(shape, rank, place, action, stage),
        };
        checked.map_err(|reason| (place, reason))?;
    }
    if let Some((post, &place)) = row.sent.first_key_value() {
        let wait = if post.forward { Message::WaitSendForward } else { Message::WaitSendBackward };
        let text = text(wait, post.sender, post.micro_batch);
        return Err((place, format!("is never waited for: write `{text}` after it")));
    }
    match row.reducing {
        None => Ok(()),
        Some((stage, place)) => {
            Err((place, format!("is never waited for: write `{stage}WAIT_REDUCE_GRAD` after it")))
        }
    }
}

fn text(message: Message, stage: Stage, micro_batch: MicroBatch) -> String {
    format!("{stage}{}{micro_batch}", message.name())
}

impl Row {
    /// An operation needs its inputs from other ranks received before.
    fn run(&mut self, shape: &Shape, op: Op) -> Result<(), String> {
        let (from, message) = match op.kind {
            Kind::Forward => (shape.previous(op.stage), Message::ReceiveForward),
            Kind::Backward | Kind::InputGradient => (shape.next(op.stage), Message::ReceiveBackward),
            Kind::WeightGradient => (None, Message::ReceiveBackward),
        };
        self.done.insert((op.kind, op.stage, op.micro_batch));
        let remote = from.filter(|&from| shape.rank_of(from) != shape.rank_of(op.stage));
        let post = Post::new(shape, message, op.stage, op.micro_batch);
        match (remote, post) {
            (Some(_), Some(post)) if !self.posted.contains(&(message, post)) => {
                Err(format!("has no `{}` before it", text(message, op.stage, op.micro_batch)))
            }
            _ => Ok(()),
        }
    }

    fn message(
        &mut self,
        shape: &Shape,
        rank: Rank,
        place: usize,
        message: Message,
        stage: Stage,
        micro_batch: MicroBatch,
    ) -> Result<(), String> {
        check_stage(shape, rank, stage)?;
        if micro_batch.index() >= shape.micro_batches() {
            return Err(format!("names micro-batch {micro_batch}, but there are {}", shape.micro_batches()));
        }
        let post = Post::new(shape, message, stage, micro_batch);
        let crosses = |post: &Post| {
            let receiver = post.receiver(shape);
            receiver.is_some_and(|to| shape.rank_of(to) != shape.rank_of(post.sender))
        };
        let Some(post) = post.filter(crosses) else {
            return Err("has no other rank at the other end".into());
        };
        match message {
            Message::WaitSendForward | Message::WaitSendBackward => match self.sent.remove(&post) {
                Some(_) => Ok(()),
                None => {
                    Err("waits for a send that is not posted before it, or was waited for already".into())
                }
            },
            _ if !self.posted.insert((message, post)) => Err("is posted twice".into()),
            Message::SendForward | Message::SendBackward => {
                let ran = |kind| self.done.contains(&(kind, stage, micro_batch));
                let computed = if post.forward {
                    ran(Kind::Forward)
                } else {
                    ran(Kind::Backward) || ran(Kind::InputGradient)
                };
                self.sent.insert(post, place);
                if computed { Ok(()) } else { Err("is posted before there is anything to send".into()) }
            }
            Message::ReceiveForward | Message::ReceiveBackward => Ok(()),
        }
    }

    fn parameters(
        &mut self,
        shape: &Shape,
        rank: Rank,
        place: usize,
        action: Parameters,
        stage: Stage,
    ) -> Result<(), String> {
        check_stage(shape, rank, stage)?;
        match (action, self.reducing) {
            (Parameters::Unshard | Parameters::Reshard, _) => Ok(()),
            (Parameters::ReduceGradient, None) => {
                self.reducing = Some((stage, place));
                Ok(())
            }
            (Parameters::ReduceGradient, Some((other, _))) => {
                Err(format!("comes while the reduction of stage {other} is not waited for"))
            }
            (Parameters::WaitReduceGradient, Some((other, _))) if other == stage => {
                self.reducing = None;
                Ok(())
            }
            (Parameters::WaitReduceGradient, _) => {
                Err("waits for a reduction that has not been started".into())
            }
        }
    }
}

fn check_stage(shape: &Shape, rank: Rank, stage: Stage) -> Result<(), String> {
    if stage.index() >= shape.stages() {
        return Err(format!("names stage {stage}, but there are {}", shape.stages()));
    }
    let owner = shape.rank_of(stage);
    if owner == rank { Ok(()) } else { Err(format!("is of stage {stage}, which row {} has", owner.0 + 1)) }
}

/// Both ends of each channel have to post the same messages in the same order.
fn check_channels(comms: &CommsOrders, shape: &Shape, cells: &Cells) -> Result<(), CsvError> {
    type Posts = Vec<(Post, usize, usize)>;
    let mut channels: BTreeMap<(Rank, Rank), (Posts, Posts)> = BTreeMap::new();
    for (rank, steps) in comms.lists.iter().enumerate() {
        for (place, step) in steps.iter().enumerate() {
            let &CommsStep::Message { message, stage, micro_batch } = step else { continue };
            let post = Post::new(shape, message, stage, micro_batch);
            let Some((post, to)) = post.and_then(|post| Some((post, post.receiver(shape)?))) else {
                continue;
            };
            let (sends, receives) =
                channels.entry((shape.rank_of(post.sender), shape.rank_of(to))).or_default();
            match message {
                Message::SendForward | Message::SendBackward => sends.push((post, rank, place)),
                Message::ReceiveForward | Message::ReceiveBackward => receives.push((post, rank, place)),
                Message::WaitSendForward | Message::WaitSendBackward => {}
            }
        }
    }
    for ((from, to), (sends, receives)) in channels {
        for index in 0..sends.len().max(receives.len()) {
            match (sends.get(index), receives.get(index)) {
                (Some((sent, ..)), Some((received, ..))) if sent == received => {}
                (Some(&(sent, rank, place)), received) => {
                    let reason = match received {
                        Some(_) if receives.iter().any(|(post, ..)| *post == sent) => {
                            "is not received in the order in which it is sent"
                        }
                        _ => "is never received",
                    };
                    return Err(cells.at(
                        rank,
                        place,
                        format!("{reason} (row {} to row {})", from.0 + 1, to.0 + 1),
                    ));
                }
                (None, Some(&(_, rank, place))) => {
                    return Err(cells.at(rank, place, format!("is never sent by row {}", from.0 + 1)));
                }
                (None, None) => {}
            }
        }
    }
    Ok(())
}

/// Runs the rows without times: an operation waits for its inputs, a wait for the receive at the other end.
fn check_waiting(comms: &CommsOrders, orders: &Orders, shape: &Shape, cells: &Cells) -> Result<(), CsvError> {
    let mut done = vec![0_u8; shape.stages() * shape.micro_batches()];
    let mut receives: BTreeSet<Post> = BTreeSet::new();
    let mut position = vec![0; comms.lists.len()];
    let missing = |rank: usize, step: &CommsStep, done: &[u8], receives: &BTreeSet<Post>| match *step {
        CommsStep::Run(ref range) => {
            let group = &orders.rank(Rank(rank as u16))[range.clone()];
            let waiting = group.iter().find(|&&op| !crate::deadlock::has_inputs(shape, done, op));
            waiting.map(|op| format!("the inputs of {op}"))
        }
        CommsStep::Message {
            message: message @ (Message::WaitSendForward | Message::WaitSendBackward),
            stage,
            micro_batch,
        } => {
            let post = Post::new(shape, message, stage, micro_batch)?;
            let receive = if post.forward { Message::ReceiveForward } else { Message::ReceiveBackward };
            let receiver = post.receiver(shape)?;
            (!receives.contains(&post)).then(|| text(receive, receiver, micro_batch))
        }
        _ => None,
    };
    loop {
        let mut progress = false;
        for (rank, steps) in comms.lists.iter().enumerate() {
            while let Some(step) = steps.get(position[rank]) {
                if missing(rank, step, &done, &receives).is_some() {
                    break;
                }
                match *step {
                    CommsStep::Run(ref range) => {
                        for &op in &orders.rank(Rank(rank as u16))[range.clone()] {
                            crate::deadlock::mark(shape, &mut done, op);
                        }
                    }
                    CommsStep::Message {
                        message: message @ (Message::ReceiveForward | Message::ReceiveBackward),
                        stage,
                        micro_batch,
                    } => receives.extend(Post::new(shape, message, stage, micro_batch)),
                    _ => {}
                }
                position[rank] += 1;
                progress = true;
            }
        }
        if !progress {
            break;
        }
    }
    let stuck = comms.lists.iter().enumerate().filter_map(|(rank, steps)| {
        let step = steps.get(position[rank])?;
        let waits_for = missing(rank, step, &done, &receives)?;
        Some(cells.stuck(rank, position[rank], waits_for))
    });
    let stuck: Vec<_> = stuck.collect();
    if stuck.is_empty() { Ok(()) } else { Err(CsvError::Deadlock { cells: stuck }) }
}
