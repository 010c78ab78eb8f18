//! Orders together with the posts of sends and receives, the waits, and the handling of parameters.

use std::ops::Range;

use super::action::{Message, Parameters};
use crate::{MicroBatch, Orders, Rank, Shape, Stage};

/// Every rank's list of operations and communication actions.
///
/// How such a list runs: a send or a receive is only posted, which takes no time. An operation starts when the
/// tensors it needs have been received. Each ordered pair of ranks is a channel on which messages go one after the
/// other in the order of their posts, which is the same at both ends; a message starts when both its send and its
/// receive are posted. A wait ends when its send has completed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommsOrders {
    /// By rank.
    pub lists: Vec<Vec<CommsStep>>,
}

/// One action of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommsStep {
    /// Run the operations at these places of the rank's list, which start together.
    Run(Range<usize>),
    /// Post a send or a receive, or wait for a send; the stage is this rank's.
    Message {
        /// What is posted or waited for.
        message: Message,
        /// The stage on this rank.
        stage: Stage,
        /// The micro-batch.
        micro_batch: MicroBatch,
    },
    /// Gather, drop or reduce.
    Parameters {
        /// What is done.
        action: Parameters,
        /// The stage.
        stage: Stage,
    },
}

impl CommsOrders {
    /// The posts on the channel from one rank to another: sends in the order of the sender's list, and receives in
    /// the order of the receiver's, each as the sending stage, whether it is an activation, and the micro-batch.
    pub fn channel(&self, shape: &Shape, from: Rank, to: Rank) -> (Vec<Post>, Vec<Post>) {
        let posts = |rank: Rank, wanted: [Message; 2]| -> Vec<Post> {
            let posts = self.lists[rank.index()].iter().filter_map(|step| match *step {
                CommsStep::Message { message, stage, micro_batch } if wanted.contains(&message) => {
                    Post::new(shape, message, stage, micro_batch)
                }
                _ => None,
            });
            let on_channel = |post: &Post| {
                let receiver =
                    if post.forward { shape.next(post.sender) } else { shape.previous(post.sender) };
                let ends = (shape.rank_of(post.sender), receiver.map(|stage| shape.rank_of(stage)));
                ends == (from, Some(to))
            };
            posts.filter(on_channel).collect()
        };
        let sends = posts(from, [Message::SendForward, Message::SendBackward]);
        (sends, posts(to, [Message::ReceiveForward, Message::ReceiveBackward]))
    }
}

/// One message on a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Post {
    /// The stage that sends it.
    pub sender: Stage,
    /// Whether it is an activation, and not a gradient.
    pub forward: bool,
    /// Its micro-batch.
    pub micro_batch: MicroBatch,
}

impl Post {
    /// The message that an action is about; `None` if the stage has no neighbour on that side.
    pub(super) fn new(
        shape: &Shape,
        message: Message,
        stage: Stage,
        micro_batch: MicroBatch,
    ) -> Option<Self> {
        let sender = match message {
            Message::ReceiveForward => shape.previous(stage)?,
            Message::ReceiveBackward => shape.next(stage)?,
            _ => stage,
        };
        Some(Self { sender, forward: message.is_forward(), micro_batch })
    }

    /// The stage that receives it.
    pub(super) fn receiver(self, shape: &Shape) -> Option<Stage> {
        if self.forward { shape.next(self.sender) } else { shape.previous(self.sender) }
    }
}

/// The brackets of a rank's list: ranges of places that start together, singles included.
pub(super) fn brackets(orders: &Orders, rank: Rank) -> Vec<Range<usize>> {
    let list = orders.rank(rank);
    let mut ranges = Vec::with_capacity(list.len());
    let mut place = 0;
    while let Some(op) = list.get(place) {
        let end = (place + 1 + usize::from(op.paired)).min(list.len());
        ranges.push(place..end);
        place = end;
    }
    ranges
}
