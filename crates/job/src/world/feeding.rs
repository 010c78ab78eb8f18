//! Input inside the job: deliveries on their way through readers and workers, the buffer, the copy to the device,
//! and steps that wait.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use pipestep_engine::{Bytes, Class, Duration, EventId, EventQueue, Streams, Time};
use rand_chacha::ChaCha12Rng;

use super::buffer::BufferCurve;
use super::packer::{Pack, Packer};
use super::storage::{StorageState, Use};
use super::{Event, JobWorld, Queue, class};
use crate::JobError;
use crate::input::{Input, InputTotals, PackPoint, ReadFrom, Replay};
use crate::outcome::{Activity, Detail};

/// A delivery that is being read, or waits for a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) number: u64,
    /// What its samples add to the time to make it.
    pub(super) cpu: Duration,
    /// The end of its read, unless the shared storage knows it.
    pub(super) end: Option<(Time, EventId)>,
}

/// How far the input has come: what a checkpoint holds of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fed {
    pub(super) items: u64,
    pub(super) packer: PackPoint,
}

/// The state of the input of a job.
#[derive(Debug)]
pub(super) struct FeedState<'a> {
    pub(super) input: &'a Input,
    rng: ChaCha12Rng,
    pub(super) packer: Option<Packer<'a>>,
    /// Deliveries being read, by the order of their starts.
    pub(super) reading: Vec<Delivery>,
    /// Deliveries read that wait for a worker.
    pub(super) read: VecDeque<Delivery>,
    /// Deliveries being made, by when they are done; where workers read for themselves, from the start of that.
    pub(super) making: BinaryHeap<Reverse<(Time, u64)>>,
    /// The event of the first of those, and when it is.
    pub(super) next_made: Option<(Time, EventId)>,
    /// Items in the buffer, those being copied included.
    pub(super) buffered: u64,
    /// The end of the copy under way.
    pub(super) copying: Option<(Time, EventId)>,
    /// Copied items that wait for their step, in steps.
    pub(super) on_device: u32,
    pub(super) next_delivery: u64,
    /// The next item of the data set.
    pub(super) handed_out: u64,
    /// Items in finished steps.
    pub(super) trained: u64,
    /// Whether the step under way has its items.
    pub(super) fed: bool,
    /// Since when a step waits, over any pause of the wait.
    waiting_since: Option<Time>,
    pub(super) curve: BufferCurve,
    pub(super) totals: InputTotals,
}

impl<'a> FeedState<'a> {
    pub(super) fn new(input: &'a Input, streams: Streams, run_number: u64, detail: Detail) -> Self {
        let packer = input.packing.as_ref().map(|packing| Packer::new(packing, streams, run_number));
        Self {
            input,
            rng: streams.stream("input", run_number),
            packer,
            reading: Vec::new(),
            read: VecDeque::new(),
            making: BinaryHeap::new(),
            next_made: None,
            buffered: 0,
            copying: None,
            on_device: 0,
            next_delivery: 0,
            handed_out: 0,
            trained: 0,
            fed: false,
            waiting_since: None,
            curve: BufferCurve::new(detail),
            totals: InputTotals::default(),
        }
    }

    /// What a checkpoint taken now holds of the input.
    pub(super) fn fed(&self) -> Fed {
        let packer = self.packer.as_ref().map(Packer::trained).unwrap_or_default();
        Fed { items: self.trained, packer }
    }

    /// Items on the host: on their way, in the buffer, or being copied.
    pub(super) fn on_host(&self) -> u64 {
        let under_way = (self.reading.len() + self.read.len() + self.making.len()) as u64;
        self.buffered + under_way * u64::from(self.input.delivery)
    }

    /// Workers that start nothing now.
    pub(super) fn stopped(&self, now: Time) -> usize {
        let stops = self.input.stops.iter().filter(|stop| stop.from <= now && now < stop.to);
        stops.map(|stop| stop.workers as usize).sum()
    }

    /// Whether a delivery may be begun: there is room on the host, and somebody to read it.
    pub(super) fn may_begin(&self, now: Time) -> bool {
        let somebody = match self.input.readers {
            Some(readers) => self.reading.len() < readers as usize,
            None => self.has_worker(now, self.making.len() + self.reading.len()),
        };
        somebody && self.on_host() < u64::from(self.input.prefetch)
    }

    fn has_worker(&self, now: Time, busy: usize) -> bool {
        busy + self.stopped(now) < self.input.workers as usize
    }

    /// Whether everything has been read once and there is a local copy of it.
    pub(super) fn is_cached(&self) -> bool {
        let cache = self.input.read.and_then(|read| read.cache);
        cache.is_some_and(|cache| self.handed_out >= cache.epoch_items)
    }

    /// How long a delivery of so many bytes is read, from the local copy or not; `None` from the shared storage.
    pub(super) fn read_time(&self, bytes: Bytes, is_cached: bool) -> Result<Option<Duration>, JobError> {
        let Some(read) = self.input.read else { return Ok(Some(Duration::ZERO)) };
        let rate = match (read.cache, read.from) {
            (Some(cache), _) if is_cached => cache.rate,
            (_, ReadFrom::Storage) => return Ok(None),
            (_, ReadFrom::Rate(rate)) => rate,
        };
        Ok(Some(rate.time_for(bytes)?))
    }

    /// Whether all deliveries take the same time but for their reads, and workers read for themselves.
    pub(super) const fn is_regular(&self) -> bool {
        let input = self.input;
        input.make.fixed().is_some() && input.readers.is_none() && input.packing.is_none()
    }

    /// A worker starts a delivery, which takes so long besides what its samples add.
    fn make(&mut self, from: Time, number: u64, cpu: Duration) -> Result<(), JobError> {
        let made = self.input.make.draw(&mut self.rng).unwrap_or(Duration::from_nanos(u64::MAX));
        self.making.push(Reverse((from.after(made.plus(cpu)?)?, number)));
        Ok(())
    }

    /// Starts to read the next delivery, or has a worker read and make it.
    fn begin_delivery(
        &mut self,
        now: Time,
        storage: &mut StorageState,
        queue: &mut Queue,
    ) -> Result<(), JobError> {
        // Whether it is cached is a matter of the items before it.
        let is_cached = self.is_cached();
        let (number, bytes, cpu) = self.hand_out();
        let Some(reading) = self.read_time(bytes, is_cached)? else {
            self.reading.push(Delivery { number, cpu, end: None });
            return storage.read(now, Use::Input(number), bytes, queue);
        };
        let end = now.after(reading)?;
        if self.input.readers.is_none() {
            return self.make(end, number, cpu);
        }
        let id = queue.schedule_movable(end, class::COMMIT, Event::InputRead(number));
        self.reading.push(Delivery { number, cpu, end: Some((end, id)) });
        Ok(())
    }

    /// Takes the next delivery from the data set: its number, its bytes, and what its samples add to its making.
    fn hand_out(&mut self) -> (u64, Bytes, Duration) {
        let number = self.next_delivery;
        self.next_delivery += 1;
        let items = self.input.delivery;
        self.handed_out += u64::from(items);
        self.totals.handed_out += u64::from(items);
        let whole = self.input.read.map_or(0, |read| read.bytes.get());
        let Some(packer) = &mut self.packer else { return (number, Bytes::new(whole), Duration::ZERO) };
        let totals = &mut self.totals.packed;
        let packs = (0..items).fold(Pack::default(), |sum, _| sum.and(packer.pack(totals)));
        (number, Bytes::new(whole.saturating_add(packs.stored)), packs.cpu_time())
    }

    /// Whether the items of a step may be copied to the device.
    fn may_copy(&self) -> bool {
        let Some(copy) = self.input.copy else { return false };
        let in_use = self.on_device + u32::from(self.fed);
        self.copying.is_none() && in_use < copy.slots && self.buffered >= u64::from(self.input.items_per_step)
    }

    /// Whether the items of a step are where it takes them from.
    fn has_items(&self) -> bool {
        match self.input.copy {
            Some(_) => self.on_device > 0,
            None => self.buffered >= u64::from(self.input.items_per_step),
        }
    }

    /// Takes the items of a step, if they are there.
    fn take_items(&mut self, now: Time) -> bool {
        if self.fed {
            return true;
        }
        if !self.has_items() {
            self.waiting_since.get_or_insert(now);
            return false;
        }
        if self.input.copy.is_some() {
            self.on_device -= 1;
        } else {
            self.change_buffer(now, 0, u64::from(self.input.items_per_step));
        }
        self.fed = true;
        self.totals.steps += 1;
        if let Some(since) = self.waiting_since.take() {
            self.totals.steps_waited += 1;
            self.totals.longest_wait = self.totals.longest_wait.max(now.since(since));
        }
        true
    }

    /// Items come into the buffer, and leave it.
    pub(super) fn change_buffer(&mut self, now: Time, more: u64, fewer: u64) {
        self.buffered = self.buffered + more - fewer;
        self.curve.level(now, self.buffered);
    }

    /// A step has been done.
    pub(super) fn step_done(&mut self) {
        if !self.fed {
            return;
        }
        let items = self.input.items_per_step;
        self.trained += u64::from(items);
        self.fed = false;
        if let Some(packer) = &mut self.packer {
            packer.count_trained(items);
        }
    }

    /// A failure empties everything and goes back to `restored`.
    fn roll_back(&mut self, now: Time, restored: Fed) -> Replay {
        let packer = self.packer.as_mut().map(|packer| {
            packer.restore(restored.packer);
            restored.packer
        });
        let replay =
            Replay { handed_out: self.handed_out, trained: self.trained, restored: restored.items, packer };
        self.totals.replayed += self.handed_out.saturating_sub(restored.items);
        (self.handed_out, self.trained) = (restored.items, restored.items);
        self.change_buffer(now, 0, self.buffered);
        (self.on_device, self.fed, self.waiting_since) = (0, false, None);
        self.making.clear();
        self.read.clear();
        replay
    }
}

impl JobWorld<'_> {
    /// Plans when workers stop and go on, and starts them.
    pub(super) fn begin_feeding(&mut self, queue: &mut Queue) -> Result<(), JobError> {
        let Some(feed) = &self.feed else { return Ok(()) };
        let edges = feed.input.stops.iter().flat_map(|stop| [stop.from, stop.to]);
        for edge in edges.filter(|&edge| edge < Time::MAX) {
            queue.schedule(edge, Class(0), Event::WorkersChange);
        }
        self.feed_on(Time::ZERO, queue)
    }

    /// Whether the next step has its input; takes it if it is there.
    pub(super) fn take_input(&mut self, now: Time, queue: &mut Queue) -> Result<bool, JobError> {
        let Some(feed) = &mut self.feed else { return Ok(true) };
        let taken = feed.take_items(now);
        self.feed_on(now, queue)?;
        Ok(taken)
    }

    /// Starts whatever can be started, unless the job is down: the copy, workers, readers.
    pub(super) fn feed_on(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        self.start_feeding(now, queue)?;
        self.await_made(queue);
        Ok(())
    }

    /// The same, but for the event of the workers.
    fn start_feeding(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        if self.is_down() {
            return Ok(());
        }
        let Some(feed) = &mut self.feed else { return Ok(()) };
        if feed.may_copy() {
            let end = now.after(feed.input.copy.map_or(Duration::ZERO, |copy| copy.time))?;
            feed.copying = Some((end, queue.schedule_movable(end, class::COMMIT, Event::Copied)));
        }
        while feed.has_worker(now, feed.making.len()) {
            let Some(delivery) = feed.read.pop_front() else { break };
            feed.make(now, delivery.number, delivery.cpu)?;
        }
        while feed.may_begin(now) {
            feed.begin_delivery(now, &mut self.storage, queue)?;
        }
        Ok(())
    }

    /// Moves the one event of the workers to the first of their deliveries.
    pub(super) fn await_made(&mut self, queue: &mut Queue) {
        let Some(feed) = &mut self.feed else { return };
        let first = feed.making.peek().map(|&Reverse((end, _))| end);
        if first == feed.next_made.map(|(end, _)| end) {
            return;
        }
        if let Some((_, id)) = feed.next_made.take() {
            queue.cancel(id);
        }
        feed.next_made = first.map(|end| (end, queue.schedule_movable(end, class::COMMIT, Event::Delivery)));
    }

    /// A delivery has been read; its worker makes it, or the next one that is free does.
    pub(super) fn input_read(&mut self, now: Time, number: u64, queue: &mut Queue) -> Result<(), JobError> {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        let Some(place) = feed.reading.iter().position(|delivery| delivery.number == number) else {
            return Ok(());
        };
        let delivery = feed.reading.remove(place);
        if feed.input.readers.is_some() {
            feed.read.push_back(delivery);
            return self.feed_on(now, queue);
        }
        feed.make(now, number, delivery.cpu)?;
        self.await_made(queue);
        Ok(())
    }

    /// A delivery is in the buffer; and so, one after another, are those after it before anything else happens.
    pub(super) fn deliver(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        feed.next_made = None;
        let mut now = now;
        loop {
            let Some(feed) = &mut self.feed else { return Ok(()) };
            feed.making.pop();
            feed.change_buffer(now, u64::from(feed.input.delivery), 0);
            if self.activity == Activity::InputWait && feed.has_items() {
                break;
            }
            self.start_feeding(now, queue)?;
            match self.next_alone(queue) {
                Some(next) => now = next,
                None => break,
            }
            self.count_event(now)?;
        }
        self.await_made(queue);
        self.go_on_fed(now, queue)?;
        self.pass_rounds(now, queue)
    }

    /// The end of the next delivery, if nothing else happens before or with it. Where rounds of deliveries can be
    /// passed over, none is taken by itself.
    fn next_alone(&self, queue: &Queue) -> Option<Time> {
        let feed = self.feed.as_ref().filter(|feed| !feed.is_regular())?;
        let &Reverse((end, _)) = feed.making.peek()?;
        queue.peek_time().is_none_or(|other| end < other).then_some(end)
    }

    /// The items of a step are on the device.
    pub(super) fn copied(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        feed.copying = None;
        feed.change_buffer(now, 0, u64::from(feed.input.items_per_step));
        feed.on_device += 1;
        self.go_on_fed(now, queue)
    }

    /// There is more input than before: a step that waits for it may go on.
    fn go_on_fed(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        if self.activity == Activity::InputWait && self.take_input(now, queue)? {
            return self.train(now, queue);
        }
        self.feed_on(now, queue)
    }

    /// A failure: the buffer and what is under way are lost.
    pub(super) fn roll_back_input(&mut self, now: Time, restored: Fed, queue: &mut Queue) -> Option<Replay> {
        let feed = self.feed.as_mut()?;
        let reading = std::mem::take(&mut feed.reading);
        let copying = feed.copying.take().map(|(_, id)| id);
        let made = feed.next_made.take().map(|(_, id)| id);
        for id in [copying, made].into_iter().flatten() {
            queue.cancel(id);
        }
        let replay = feed.roll_back(now, restored);
        for delivery in reading {
            match delivery.end {
                Some((_, id)) => {
                    queue.cancel(id);
                }
                None => {
                    self.storage.cancel(now, Use::Input(delivery.number), queue);
                }
            }
        }
        Some(replay)
    }
}
