//! Input inside the job: workers, their deliveries, the buffer, and steps that wait for it.

use pipestep_engine::{Class, Duration, EventId, EventQueue, Streams, Time};
use rand_chacha::ChaCha12Rng;

use super::storage::Use;
use super::{Event, JobWorld, Queue, class};
use crate::JobError;
use crate::input::{Input, InputTotals, ReadFrom, Replay};
use crate::outcome::Activity;

/// The state of the input of a job.
#[derive(Debug)]
pub(super) struct FeedState<'a> {
    input: &'a Input,
    rng: ChaCha12Rng,
    /// Items made and not taken.
    buffered: u64,
    /// Deliveries under way, by number, with their event unless they are being read from the storage.
    making: Vec<(u64, Option<EventId>)>,
    next_delivery: u64,
    /// The next item of the data set.
    handed_out: u64,
    /// Items in finished steps.
    trained: u64,
    /// Whether the step under way has its items.
    fed: bool,
    /// Since when a step waits, over any pause of the wait.
    waiting_since: Option<Time>,
    pub(super) totals: InputTotals,
}

/// What a worker does next for a delivery.
enum ReadTime {
    /// It reads from the shared storage.
    Shared,
    /// It reads this long from elsewhere.
    Own(Duration),
}

impl<'a> FeedState<'a> {
    pub(super) fn new(input: &'a Input, streams: Streams, run_number: u64) -> Self {
        Self {
            input,
            rng: streams.stream("input", run_number),
            buffered: 0,
            making: Vec::new(),
            next_delivery: 0,
            handed_out: 0,
            trained: 0,
            fed: false,
            waiting_since: None,
            totals: InputTotals::default(),
        }
    }

    pub(super) const fn trained(&self) -> u64 {
        self.trained
    }

    /// Whether a worker may start a delivery.
    fn may_start(&self, now: Time) -> bool {
        let under_way = self.making.len() as u64;
        let stopped: u64 = self
            .input
            .stops
            .iter()
            .filter(|stop| stop.from <= now && now < stop.to)
            .map(|stop| u64::from(stop.workers))
            .sum();
        let coming = under_way * u64::from(self.input.delivery);
        under_way + stopped < u64::from(self.input.workers)
            && self.buffered + coming < u64::from(self.input.prefetch)
    }

    /// How the next delivery is read.
    fn read_time(&self) -> Result<ReadTime, JobError> {
        let Some(read) = self.input.read else {
            return Ok(ReadTime::Own(Duration::ZERO));
        };
        if let Some(cache) = read.cache
            && self.handed_out >= cache.epoch_items
        {
            return Ok(ReadTime::Own(cache.rate.time_for(read.bytes)?));
        }
        match read.from {
            ReadFrom::Storage => Ok(ReadTime::Shared),
            ReadFrom::Rate(rate) => Ok(ReadTime::Own(rate.time_for(read.bytes)?)),
        }
    }

    fn make_time(&mut self) -> Duration {
        self.input.make.draw(&mut self.rng).unwrap_or(Duration::from_nanos(u64::MAX))
    }

    /// Takes the items of a step out of the buffer, if they are there.
    fn take_items(&mut self, now: Time) -> bool {
        let wanted = u64::from(self.input.items_per_step);
        if self.fed {
            return true;
        }
        if self.buffered < wanted {
            if self.waiting_since.is_none() {
                self.waiting_since = Some(now);
                self.totals.steps_waited += 1;
            }
            return false;
        }
        self.buffered -= wanted;
        self.fed = true;
        self.totals.steps += 1;
        if let Some(since) = self.waiting_since.take() {
            self.totals.longest_wait = self.totals.longest_wait.max(now.since(since));
        }
        true
    }

    /// A step has been done.
    pub(super) fn step_done(&mut self) {
        if self.fed {
            self.trained += u64::from(self.input.items_per_step);
            self.fed = false;
        }
    }

    /// A failure empties everything and goes back to `restored` items of the data set.
    fn roll_back(&mut self, restored: u64) -> (Replay, Vec<(u64, Option<EventId>)>) {
        let replay = Replay { handed_out: self.handed_out, trained: self.trained, restored };
        self.totals.replayed += self.handed_out.saturating_sub(restored);
        (self.handed_out, self.trained, self.buffered) = (restored, restored, 0);
        (self.fed, self.waiting_since) = (false, None);
        (replay, std::mem::take(&mut self.making))
    }
}

impl JobWorld<'_> {
    /// Plans when stopped workers go on, and starts the workers.
    pub(super) fn begin_feeding(&mut self, queue: &mut Queue) -> Result<(), JobError> {
        let Some(feed) = &self.feed else { return Ok(()) };
        for stop in feed.input.stops.iter().filter(|stop| stop.to < Time::MAX) {
            queue.schedule(stop.to, Class(0), Event::WorkersGoOn);
        }
        self.start_workers(Time::ZERO, queue)
    }

    /// Whether the next step has its input; takes it if it is there.
    pub(super) fn take_input(&mut self, now: Time, queue: &mut Queue) -> Result<bool, JobError> {
        let Some(feed) = &mut self.feed else { return Ok(true) };
        let taken = feed.take_items(now);
        self.start_workers(now, queue)?;
        Ok(taken)
    }

    /// Starts as many deliveries as workers and buffer allow, unless the job is down.
    pub(super) fn start_workers(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        if self.is_down() {
            return Ok(());
        }
        while let Some(feed) = self.feed.as_mut().filter(|feed| feed.may_start(now)) {
            let read = feed.read_time()?;
            let delivery = feed.next_delivery;
            feed.next_delivery += 1;
            feed.handed_out += u64::from(feed.input.delivery);
            feed.totals.handed_out += u64::from(feed.input.delivery);
            let event = match read {
                ReadTime::Own(reading) => {
                    let end = now.after(reading)?.after(feed.make_time())?;
                    Some(queue.schedule_movable(end, class::COMMIT, Event::Delivery(delivery)))
                }
                ReadTime::Shared => None,
            };
            feed.making.push((delivery, event));
            if event.is_none() {
                let bytes = feed.input.read.map(|read| read.bytes).unwrap_or_default();
                self.storage.read(now, Use::Input(delivery), bytes, queue)?;
            }
        }
        Ok(())
    }

    /// A delivery has been read from the storage, and is made now.
    pub(super) fn input_read(&mut self, now: Time, delivery: u64, queue: &mut Queue) -> Result<(), JobError> {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        let end = now.after(feed.make_time())?;
        if let Some(entry) = feed.making.iter_mut().find(|(number, _)| *number == delivery) {
            entry.1 = Some(queue.schedule_movable(end, class::COMMIT, Event::Delivery(delivery)));
        }
        Ok(())
    }

    /// A delivery is in the buffer.
    pub(super) fn deliver(&mut self, now: Time, delivery: u64, queue: &mut Queue) -> Result<(), JobError> {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        feed.making.retain(|&(number, _)| number != delivery);
        feed.buffered += u64::from(feed.input.delivery);
        if self.activity == Activity::InputWait && self.take_input(now, queue)? {
            return self.train(now, queue);
        }
        self.start_workers(now, queue)
    }

    /// A failure: the buffer and what is under way are lost.
    pub(super) fn roll_back_input(&mut self, now: Time, restored: u64, queue: &mut Queue) -> Option<Replay> {
        let (replay, making) = self.feed.as_mut()?.roll_back(restored);
        for (delivery, event) in making {
            match event {
                Some(id) => {
                    queue.cancel(id);
                }
                None => {
                    self.storage.cancel(now, Use::Input(delivery), queue);
                }
            }
        }
        Some(replay)
    }
}
