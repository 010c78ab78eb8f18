//! Input inside the job: deliveries on their way through readers and workers, the buffer, the copy to the device,
//! and steps that wait.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use pipestep_engine::{Bytes, Class, Duration, EventId, EventQueue, Streams, Time};
use rand_chacha::ChaCha12Rng;

use super::buffer::BufferCurve;
use super::packer::{Pack, Packer};
use super::storage::Use;
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
    /// The event of the first of those.
    pub(super) next_made: Option<EventId>,
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

    fn make_time(&mut self, cpu: Duration) -> Result<Duration, JobError> {
        let made = self.input.make.draw(&mut self.rng).unwrap_or(Duration::from_nanos(u64::MAX));
        Ok(made.plus(cpu)?)
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

    /// Takes the items of a step, if they are there.
    fn take_items(&mut self, now: Time) -> bool {
        if self.fed {
            return true;
        }
        let wanted = u64::from(self.input.items_per_step);
        let is_there = if self.input.copy.is_some() { self.on_device > 0 } else { self.buffered >= wanted };
        if !is_there {
            if self.waiting_since.is_none() {
                self.waiting_since = Some(now);
                self.totals.steps_waited += 1;
            }
            return false;
        }
        if self.input.copy.is_some() {
            self.on_device -= 1;
        } else {
            self.change_buffer(now, 0, wanted);
        }
        self.fed = true;
        self.totals.steps += 1;
        if let Some(since) = self.waiting_since.take() {
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
        if self.is_down() {
            return Ok(());
        }
        if let Some(feed) = self.feed.as_mut().filter(|feed| feed.may_copy()) {
            let end = now.after(feed.input.copy.map_or(Duration::ZERO, |copy| copy.time))?;
            feed.copying = Some((end, queue.schedule_movable(end, class::COMMIT, Event::Copied)));
        }
        while let Some(feed) = self.feed.as_mut().filter(|feed| feed.has_worker(now, feed.making.len())) {
            let Some(delivery) = feed.read.pop_front() else { break };
            let end = now.after(feed.make_time(delivery.cpu)?)?;
            self.make_until(end, delivery.number, queue);
        }
        while self.feed.as_ref().is_some_and(|feed| feed.may_begin(now)) {
            self.begin_delivery(now, queue)?;
        }
        Ok(())
    }

    fn begin_delivery(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        // Whether it is cached is a matter of the items before it.
        let is_cached = feed.is_cached();
        let (number, bytes, cpu) = feed.hand_out();
        let Some(reading) = feed.read_time(bytes, is_cached)? else {
            feed.reading.push(Delivery { number, cpu, end: None });
            return self.storage.read(now, Use::Input(number), bytes, queue);
        };
        if feed.input.readers.is_some() {
            let end = now.after(reading)?;
            let id = queue.schedule_movable(end, class::COMMIT, Event::InputRead(number));
            feed.reading.push(Delivery { number, cpu, end: Some((end, id)) });
            return Ok(());
        }
        let end = now.after(reading)?.after(feed.make_time(cpu)?)?;
        self.make_until(end, number, queue);
        Ok(())
    }

    /// A worker has started a delivery that is done at `end`.
    fn make_until(&mut self, end: Time, number: u64, queue: &mut Queue) {
        let Some(feed) = &mut self.feed else { return };
        feed.making.push(Reverse((end, number)));
        if feed.making.peek() == Some(&Reverse((end, number))) {
            self.await_made(queue);
        }
    }

    /// Moves the one event of the workers to the first of their deliveries.
    pub(super) fn await_made(&mut self, queue: &mut Queue) {
        let Some(feed) = &mut self.feed else { return };
        if let Some(id) = feed.next_made.take() {
            queue.cancel(id);
        }
        let first = feed.making.peek().map(|&Reverse((end, _))| end);
        feed.next_made = first.map(|end| queue.schedule_movable(end, class::COMMIT, Event::Delivery));
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
        let end = now.after(feed.make_time(delivery.cpu)?)?;
        self.make_until(end, number, queue);
        Ok(())
    }

    /// A delivery is in the buffer.
    pub(super) fn deliver(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        feed.making.pop();
        feed.next_made = None;
        feed.change_buffer(now, u64::from(feed.input.delivery), 0);
        self.await_made(queue);
        self.go_on_fed(now, queue)?;
        self.pass_rounds(now, queue)
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
        for id in [copying, feed.next_made.take()].into_iter().flatten() {
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
