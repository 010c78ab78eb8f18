//! Timing lists that say when sends and receives are posted (`compute_comms` files).
//!
//! Rule 2 lets a message start as soon as it is made and its link is free. Here a message also waits for its posts:
//!
//! * posting takes no time and happens when the rank comes to it in its list;
//! * each ordered pair of ranks is a channel on which messages go in the order of their posts, so one whose receive
//!   is posted late holds up those behind it;
//! * a message starts when it is posted at both ends, those before it on its channel are over (with unlimited
//!   links: have started), and its link is free;
//! * a wait for a send ends when that message has arrived.
//!
//! What that costs shows as [`crate::Cause::PostOrder`]. Gathering and reducing parameters takes no time here.

use pipestep_engine::{
    Class, EventQueue, HeapQueue, Interval, Overflow, Recorder, Time, Timeline, World, run,
};
use pipestep_schedule::csv::{CommsOrders, CommsStep, Message};
use pipestep_schedule::{Kind, MicroBatch, Op, Orders, Rank, Stage};

use crate::graph::Makers;
use crate::log::{MessageLog, MessageSink};
use crate::rows::{NONE, Rows};
use crate::simulate::finish;
use crate::times::Tally;
use crate::{Arbitration, Inputs, Outcome, StepError, Times};

/// When each message was posted, by the place of the operation that made it; [`Time::MAX`] where there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posts {
    /// By its sender.
    pub sends: Vec<Time>,
    /// By its receiver.
    pub receives: Vec<Time>,
}

/// Simulates a step whose lists say when messages are posted.
///
/// # Errors
/// [`StepError`] if the orders are not right for the step, or the lists wait for one another.
pub fn simulate_comms(
    inputs: &Inputs,
    orders: &Orders,
    comms: &CommsOrders,
) -> Result<(Outcome, Posts), StepError> {
    orders.validate(inputs.shape())?;
    let ran = run_comms(inputs, orders, comms)?;
    let free = run_comms(&inputs.with_free_transfers(), orders, comms)?;
    let outcome = finish(inputs, &ran.times, orders.clone(), ran.ops, &ran.messages, free.times.makespan)?;
    Ok((outcome, ran.posts))
}

/// The makespan of such a step.
///
/// # Errors
/// As for [`simulate_comms`].
pub fn makespan_of_comms(inputs: &Inputs, orders: &Orders, comms: &CommsOrders) -> Result<Time, StepError> {
    Ok(run_comms(inputs, orders, comms)?.times.makespan)
}

/// What a run leaves.
struct Ran {
    times: Times,
    ops: Timeline,
    messages: MessageLog,
    posts: Posts,
}

fn run_comms(inputs: &Inputs, orders: &Orders, comms: &CommsOrders) -> Result<Ran, StepError> {
    let rows = Rows::new(inputs);
    let mut world = CommsWorld::new(inputs, &rows, orders, comms);
    let mut queue = HeapQueue::new();
    queue.schedule(Time::ZERO.after(inputs.costs().setup)?, Class(0), Event::Begin);
    run(&mut world, &mut queue)?;
    let stuck = world.ranks.iter().zip(&comms.lists).position(|(state, list)| state.step < list.len());
    if let Some(rank) = stuck {
        return Err(StepError::Stuck { rank: Rank(rank as u16), ran: world.ranks[rank].step });
    }
    let times = Times::new(inputs, world.ranks.iter().map(|state| state.tally));
    Ok(Ran { times, ops: world.ops, messages: world.messages, posts: world.posts })
}

/// Everything that can happen.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Setup is over.
    Begin,
    /// A rank's operation (or pair) is over.
    RankEnds(Rank),
    /// The message of the operation at this place has arrived.
    MessageEnds(u32),
}

/// One rank on its way through its list.
#[derive(Clone, Copy, Debug)]
struct RankState {
    /// The action that it has come to.
    step: usize,
    /// How many operations of that action have run.
    ran: usize,
    /// How many operations run now: none, one, or a pair.
    running: usize,
    tally: Tally,
}

/// The messages from one rank to another.
#[derive(Clone, Debug, Default)]
struct Channel {
    /// The places of their makers, in the order of their posts.
    order: Vec<u32>,
    /// How many have started.
    started: usize,
}

struct CommsWorld<'a> {
    inputs: &'a Inputs,
    rows: &'a Rows,
    orders: &'a Orders,
    comms: &'a CommsOrders,
    makers: Makers,
    ranks: Vec<RankState>,
    /// By number of the pair of ranks.
    channels: Vec<Channel>,
    /// By link: whether a message is on it.
    busy: Vec<bool>,
    arrived: Vec<bool>,
    posts: Posts,
    awake: Vec<Rank>,
    ops: Timeline,
    messages: MessageLog,
}

impl<'a> CommsWorld<'a> {
    fn new(inputs: &'a Inputs, rows: &'a Rows, orders: &'a Orders, comms: &'a CommsOrders) -> Self {
        let (places, setup) = (orders.all().len(), inputs.costs().setup.as_nanos());
        let state = RankState { step: 0, ran: 0, running: 0, tally: Tally::new(setup) };
        let mut world = Self {
            inputs,
            rows,
            orders,
            comms,
            makers: Makers::new(inputs.shape(), orders),
            ranks: vec![state; comms.lists.len()],
            channels: vec![Channel::default(); rows.pairs.len()],
            busy: vec![false; rows.links],
            arrived: vec![false; places],
            posts: Posts { sends: vec![Time::MAX; places], receives: vec![Time::MAX; places] },
            awake: Vec::new(),
            ops: Timeline::new(places),
            messages: MessageLog::new(),
        };
        for step in comms.lists.iter().flatten() {
            if let &CommsStep::Message { message, stage, micro_batch } = step
                && matches!(message, Message::SendForward | Message::SendBackward)
                && let Some(maker) = world.maker_of(message, stage, micro_batch)
            {
                let pair = world.rows.of(world.op(maker)).pair;
                if pair != NONE {
                    world.channels[pair as usize].order.push(maker as u32);
                }
            }
        }
        world
    }

    fn op(&self, place: usize) -> Op {
        self.orders.all()[place]
    }

    /// The operation that makes what an action of a stage posts or waits for.
    fn maker_of(&self, message: Message, stage: Stage, micro_batch: MicroBatch) -> Option<usize> {
        let shape = self.inputs.shape();
        let (kind, stage) = match message {
            Message::SendForward | Message::WaitSendForward => (Kind::Forward, stage),
            Message::SendBackward | Message::WaitSendBackward => (Kind::Backward, stage),
            Message::ReceiveForward => (Kind::Forward, shape.previous(stage)?),
            Message::ReceiveBackward => (Kind::Backward, shape.next(stage)?),
        };
        self.makers.find(Op::new(kind, stage, micro_batch))
    }

    /// Lets a rank do everything that it can do now.
    fn advance(&mut self, now: Time, rank: Rank, queue: &mut HeapQueue<Event>) {
        let comms = self.comms;
        let list = &comms.lists[rank.index()];
        while self.ranks[rank.index()].running == 0
            && let Some(step) = list.get(self.ranks[rank.index()].step)
        {
            let goes_on = match step {
                CommsStep::Run(range) if self.ranks[rank.index()].ran < range.len() => {
                    let place = self.orders.range(rank).start + range.start + self.ranks[rank.index()].ran;
                    if !self.start(now, rank, place, queue) {
                        return;
                    }
                    continue;
                }
                CommsStep::Run(_) | CommsStep::Parameters { .. } => true,
                &CommsStep::Message { message, stage, micro_batch } => {
                    let maker = self.maker_of(message, stage, micro_batch);
                    maker.is_none_or(|maker| self.post(now, message, maker))
                }
            };
            if !goes_on {
                return;
            }
            let state = &mut self.ranks[rank.index()];
            (state.step, state.ran) = (state.step + 1, 0);
        }
    }

    /// Posts, or finds out whether a send is over; returns whether the rank goes on.
    fn post(&mut self, now: Time, message: Message, maker: usize) -> bool {
        match message {
            Message::SendForward | Message::SendBackward => self.posts.sends[maker] = now,
            Message::ReceiveForward | Message::ReceiveBackward => self.posts.receives[maker] = now,
            Message::WaitSendForward | Message::WaitSendBackward => return self.arrived[maker],
        }
        true
    }

    /// Starts the operation at a place, and its partner if they run as one; returns whether the inputs are there.
    fn start(&mut self, now: Time, rank: Rank, place: usize, queue: &mut HeapQueue<Event>) -> bool {
        let (costs, op) = (self.inputs.costs(), self.op(place));
        let pair =
            op.paired.then(|| costs.pair_duration(self.inputs.shape(), op, self.op(place + 1))).flatten();
        let running = if pair.is_some() { 2 } else { 1 };
        if (place..place + running).any(|place| !self.has_input(place)) {
            return false;
        }
        let length = pair.unwrap_or_else(|| costs.duration(op)).as_nanos();
        // Inputs::new keeps the sum of all times below 2^63 ns, so this cannot overflow.
        let (start, end) = (now.as_nanos(), now.as_nanos() + length);
        let interval = Interval { start: now, end: Time::from_nanos(end) };
        (place..place + running).for_each(|place| self.ops.record(place, interval));
        let state = &mut self.ranks[rank.index()];
        state.running = running;
        state.tally.run(start, end);
        queue.schedule(interval.end, Class(0), Event::RankEnds(rank));
        true
    }

    /// Whether what an operation needs from another rank has arrived.
    fn has_input(&self, place: usize) -> bool {
        let op = self.op(place);
        let maker = self.makers.of(self.inputs.shape(), op);
        maker.is_none_or(|maker| self.rows.of(self.op(maker)).pair == NONE || self.arrived[maker])
    }

    /// Starts every message that can start now.
    fn start_messages(&mut self, now: Time, queue: &mut HeapQueue<Event>) {
        while let Some(pair) = self.next_channel() {
            let channel = &mut self.channels[pair];
            let maker = channel.order[channel.started] as usize;
            channel.started += 1;
            let (row, op) = (self.rows.of(self.op(maker)), self.op(maker));
            let length = self.inputs.costs().scaled(row.message, op.micro_batch);
            let end = Time::from_nanos(now.as_nanos() + length);
            if row.link != NONE {
                self.busy[row.link as usize] = true;
            }
            self.messages.sent(row.pair, maker, Interval { start: now, end });
            queue.schedule(end, Class(0), Event::MessageEnds(maker as u32));
        }
    }

    /// The channel whose next message may start now; of several the one that the arbitration prefers.
    fn next_channel(&self) -> Option<usize> {
        let posted =
            |maker: usize| self.posts.sends[maker] != Time::MAX && self.posts.receives[maker] != Time::MAX;
        let ready = (0..self.channels.len()).filter_map(|pair| {
            let channel = &self.channels[pair];
            let maker = *channel.order.get(channel.started)? as usize;
            let op = self.op(maker);
            let link = self.rows.of(op).link;
            let free = link == NONE || !self.busy[link as usize];
            let made = match self.inputs.arbitration {
                Arbitration::Fifo => self.ops.get(maker).end,
                Arbitration::ByStage => Time::ZERO,
            };
            let key = (made, op.kind.sends_gradient(), op.stage, op.micro_batch);
            (free && posted(maker)).then_some((key, pair))
        });
        ready.min().map(|(_, pair)| pair)
    }
}

impl World<HeapQueue<Event>> for CommsWorld<'_> {
    type Event = Event;
    type Error = Overflow;

    fn handle(&mut self, _now: Time, event: Event, _queue: &mut HeapQueue<Event>) -> Result<(), Overflow> {
        match event {
            Event::Begin => self.awake.extend((0..self.ranks.len() as u16).rev().map(Rank)),
            Event::RankEnds(rank) => {
                let state = &mut self.ranks[rank.index()];
                state.ran += state.running;
                state.running = 0;
                self.awake.push(rank);
            }
            Event::MessageEnds(maker) => {
                let row = self.rows.of(self.op(maker as usize));
                if row.link != NONE {
                    self.busy[row.link as usize] = false;
                }
                self.arrived[maker as usize] = true;
                let (from, to) = self.rows.pairs[row.pair as usize];
                self.awake.extend([from, to]);
            }
        }
        Ok(())
    }

    fn settle(&mut self, now: Time, queue: &mut HeapQueue<Event>) -> Result<(), Overflow> {
        while let Some(rank) = self.awake.pop() {
            self.advance(now, rank, queue);
        }
        // What a rank started and ended at once comes before any link's choice.
        if queue.peek_time() != Some(now) {
            self.start_messages(now, queue);
        }
        Ok(())
    }
}
