//! The input of a training job in full detail: storage, CPU, copy, step, with finite buffers between them.
//!
//! Samples are packed, next fit, into packs of so many tokens without splitting one; the rest of the last
//! pack stays empty. Each pack is read, prepared, copied to the device and consumed, each stage by a
//! resource that does one thing at a time. Buffers push back: a read waits for a host slot, a copy for a
//! device slot. Checkpoints interrupt the device, and their writes may hold the storage that reads need.
//! Everything is known beforehand here and walked once; for weeks of steps, with failures, pauses and random
//! lengths, see the `input` of [`crate::JobInputs`], which comes to the same where both apply.

use pipestep_engine::{
    Bytes, Class, Duration, EventQueue, HeapQueue, Interval, Ledger, NoCurve, Rate, Serial, Time, World, run,
};

use crate::{InputError, JobError, Sample};

/// A stretch of input and what it goes through.
#[derive(Clone, Debug, PartialEq)]
pub struct Supply {
    /// The samples, in order.
    pub samples: Vec<Sample>,
    /// Token slots of a pack.
    pub pack_tokens: u64,
    /// Bytes of a token slot on its way to the device, used or not.
    pub bytes_per_token: Bytes,
    /// Packs on the host at once, from the start of their read to the end of their copy.
    pub host_slots: u32,
    /// Packs on the device at once, from the start of their copy to the end of their step.
    pub device_slots: u32,
    /// Storage, for reads and checkpoint writes alike.
    pub storage: Rate,
    /// The copy from host to device.
    pub copy: Rate,
    /// CPU time to pack a pack, besides that of its samples.
    pub packing: Duration,
    /// The step that consumes a pack.
    pub consume: Duration,
    /// Checkpoints, if any.
    pub checkpoints: Option<SupplyCheckpoints>,
}

/// Checkpoints taken between packs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupplyCheckpoints {
    /// After every so many packs.
    pub every: u32,
    /// The device's time to copy a snapshot.
    pub snapshot: Duration,
    /// Snapshots at once, from the start of their copy to the end of their write.
    pub slots: u32,
    /// The size of one.
    pub size: Bytes,
    /// Whether writes and reads share the storage, one at a time.
    pub shared_storage: bool,
}

/// When everything happened.
#[derive(Clone, Debug, PartialEq)]
pub struct SupplyOutcome {
    /// The samples of each pack, by number.
    pub packs: Vec<Vec<usize>>,
    /// The steps, one for each pack.
    pub consumed: Vec<Interval>,
    /// The writes of the checkpoints.
    pub written: Vec<Interval>,
    /// The end of the last step.
    pub training_end: Time,
    /// The end of everything.
    pub all_durable: Time,
    /// Time of the device, until the end of training, in which it copied snapshots.
    pub snapshot_time: Duration,
    /// Time of the device, until the end of training, in which it waited for input or for a snapshot slot.
    pub device_wait: Duration,
    /// Most bytes on the host: packs as stored and as sent.
    pub host_peak: Bytes,
    /// Most bytes of packs on the device.
    pub device_peak: Bytes,
    /// Most bytes in snapshots.
    pub snapshot_peak: Bytes,
}

/// What a resource does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Read,
    Prepare,
    Copy,
    Consume,
    Snapshot,
    Write,
}

const WORKS: [Work; 6] = [Work::Read, Work::Prepare, Work::Copy, Work::Consume, Work::Snapshot, Work::Write];
/// Storage, CPU, copy, device, and a storage of its own for writes.
const RESOURCES: usize = 5;

/// Something to do, by kind and number; of two for one resource the kind's order decides, then the number.
type Job = (Work, usize);

/// The accounts of the ledger.
const HOST: usize = 0;
const DEVICE: usize = 1;
const SNAPSHOTS: usize = 2;

struct SupplyWorld<'a> {
    supply: &'a Supply,
    packs: Vec<Vec<usize>>,
    /// For each kind: how many there are.
    counts: [usize; WORKS.len()],
    resources: [Serial<Job>; RESOURCES],
    /// For each kind, by number: conditions that are not met yet.
    missing: [Vec<u8>; WORKS.len()],
    /// For each kind, by number: when it ran.
    ran: [Vec<Interval>; WORKS.len()],
    /// Three ledgers of one account each: their peaks are at different times.
    bytes: [Ledger<1, NoCurve>; 3],
}

/// Walks a stretch of input through storage, CPU, copy and step.
///
/// # Errors
/// [`JobError`] for inputs that mean nothing and for times past 64 bits.
pub fn supply(inputs: &Supply) -> Result<SupplyOutcome, JobError> {
    inputs.check()?;
    let mut world = SupplyWorld::new(inputs);
    let mut queue = HeapQueue::new();
    world.request_ready();
    world.settle(Time::ZERO, &mut queue)?;
    run(&mut world, &mut queue)?;
    world.outcome()
}

impl Supply {
    fn check(&self) -> Result<(), InputError> {
        let zero = |what| Err(InputError::Zero { what });
        if self.samples.is_empty() {
            return Err(InputError::Empty { what: "input.samples" });
        }
        if self.host_slots == 0 || self.device_slots == 0 {
            return zero("input.slots");
        }
        if self.checkpoints.is_some_and(|saves| saves.every == 0 || saves.slots == 0) {
            return zero("input.checkpoints");
        }
        match self.samples.iter().map(|sample| sample.tokens).max() {
            Some(tokens) if tokens > self.pack_tokens => {
                Err(InputError::SampleTooLong { tokens, pack: self.pack_tokens })
            }
            _ => Ok(()),
        }
    }

    /// The samples of each pack: the next one starts a pack when it does not fit into the last.
    fn packs(&self) -> Vec<Vec<usize>> {
        let mut packs: Vec<Vec<usize>> = Vec::new();
        let mut room = 0;
        for (number, sample) in self.samples.iter().enumerate() {
            match packs.last_mut() {
                Some(pack) if sample.tokens <= room => pack.push(number),
                _ => {
                    packs.push(vec![number]);
                    room = self.pack_tokens;
                }
            }
            room -= sample.tokens;
        }
        packs
    }
}

impl<'a> SupplyWorld<'a> {
    fn new(supply: &'a Supply) -> Self {
        let packs = supply.packs();
        let saves = supply.checkpoints.map_or(0, |saves| packs.len() / saves.every as usize);
        let all = packs.len();
        let counts = [all, all, all, all, saves, saves];
        let mut world = Self {
            supply,
            resources: std::array::from_fn(|_| Serial::new()),
            counts,
            missing: counts.map(|count| vec![0; count]),
            ran: counts.map(|count| vec![Interval::NEVER; count]),
            bytes: std::array::from_fn(|_| Ledger::new(NoCurve)),
            packs,
        };
        for work in WORKS {
            for number in 0..counts[work as usize] {
                for (after, then) in world.followers((work, number)) {
                    world.missing[after as usize][then] += 1;
                }
            }
        }
        world
    }

    /// What can only start when this has ended.
    fn followers(&self, (work, number): Job) -> impl Iterator<Item = Job> + use<> {
        let supply = self.supply;
        let saves = supply.checkpoints;
        let every = saves.map_or(usize::MAX, |saves| saves.every as usize);
        let next = match work {
            Work::Read => [Some((Work::Prepare, number)), None, None],
            Work::Prepare => [Some((Work::Copy, number)), None, None],
            Work::Copy => {
                let host = supply.host_slots as usize;
                [Some((Work::Consume, number)), Some((Work::Read, number + host)), None]
            }
            Work::Consume => {
                let device = supply.device_slots as usize;
                let snapshot = (number + 1).is_multiple_of(every).then_some((Work::Snapshot, number / every));
                let next = Some((Work::Consume, number + 1));
                [Some((Work::Copy, number + device)), next, snapshot]
            }
            Work::Snapshot => {
                [Some((Work::Write, number)), Some((Work::Consume, (number + 1) * every)), None]
            }
            Work::Write => {
                let slots = saves.map_or(0, |saves| saves.slots as usize);
                [Some((Work::Snapshot, number + slots)), None, None]
            }
        };
        let counts = self.counts;
        next.into_iter().flatten().filter(move |&(work, number)| number < counts[work as usize])
    }

    fn resource(&self, work: Work) -> usize {
        match work {
            Work::Read => 0,
            Work::Prepare => 1,
            Work::Copy => 2,
            Work::Consume | Work::Snapshot => 3,
            Work::Write if self.supply.checkpoints.is_some_and(|saves| saves.shared_storage) => 0,
            Work::Write => 4,
        }
    }

    fn length(&self, (work, number): Job) -> Result<Duration, JobError> {
        let supply = self.supply;
        Ok(match work {
            Work::Read => supply.storage.time_for(self.stored(number)?)?,
            Work::Prepare => self.packs[number]
                .iter()
                .try_fold(supply.packing, |sum, &sample| sum.plus(supply.samples[sample].cpu))?,
            Work::Copy => supply.copy.time_for(self.sent()?)?,
            Work::Consume => supply.consume,
            Work::Snapshot => supply.checkpoints.map_or(Duration::ZERO, |saves| saves.snapshot),
            Work::Write => supply.storage.time_for(self.saved())?,
        })
    }

    fn stored(&self, pack: usize) -> Result<Bytes, JobError> {
        let mut samples = self.packs[pack].iter();
        Ok(samples.try_fold(Bytes::ZERO, |sum, &sample| sum.plus(self.supply.samples[sample].stored))?)
    }

    fn sent(&self) -> Result<Bytes, JobError> {
        Ok(self.supply.bytes_per_token.times(self.supply.pack_tokens)?)
    }

    fn saved(&self) -> Bytes {
        self.supply.checkpoints.map_or(Bytes::ZERO, |saves| saves.size)
    }

    /// Puts everything that waits for nothing in line.
    fn request_ready(&mut self) {
        for work in WORKS {
            for number in 0..self.missing[work as usize].len() {
                if self.missing[work as usize][number] == 0 {
                    let resource = self.resource(work);
                    self.resources[resource].request((work, number));
                }
            }
        }
    }

    /// Bytes that come with the start of something (sign 1), or go with its end (−1).
    fn hold(&mut self, now: Time, (work, number): Job, starts: bool) -> Result<(), JobError> {
        let on_host = |world: &Self| Ok::<u64, JobError>(world.stored(number)?.plus(world.sent()?)?.get());
        let (account, bytes, sign) = match (work, starts) {
            (Work::Read, true) => (HOST, on_host(self)?, 1),
            (Work::Copy, false) => (HOST, on_host(self)?, -1),
            (Work::Copy, true) => (DEVICE, self.sent()?.get(), 1),
            (Work::Consume, false) => (DEVICE, self.sent()?.get(), -1),
            (Work::Snapshot, true) => (SNAPSHOTS, self.saved().get(), 1),
            (Work::Write, false) => (SNAPSHOTS, self.saved().get(), -1),
            _ => return Ok(()),
        };
        Ok(self.bytes[account].change(now, 0, sign * bytes as i64)?)
    }

    fn outcome(self) -> Result<SupplyOutcome, JobError> {
        let [_, _, _, consumed, snapshots, written] = self.ran;
        let training_end = consumed.iter().map(|interval| interval.end).max().unwrap_or(Time::ZERO);
        let all_durable =
            written.iter().map(|interval| interval.end).max().unwrap_or(Time::ZERO).max(training_end);
        let length = |sum: u64, interval: &Interval| sum + interval.length().as_nanos();
        let copied = snapshots.iter().filter(|interval| interval.end <= training_end).fold(0, length);
        let busy = consumed.iter().fold(copied, length);
        let [host, device, snapshot] = self.bytes;
        Ok(SupplyOutcome {
            packs: self.packs,
            training_end,
            all_durable,
            snapshot_time: Duration::from_nanos(copied),
            device_wait: Duration::from_nanos(training_end.as_nanos() - busy),
            host_peak: host.finish()?.0.bytes,
            device_peak: device.finish()?.0.bytes,
            snapshot_peak: snapshot.finish()?.0.bytes,
            consumed,
            written,
        })
    }
}

impl World<HeapQueue<Job>> for SupplyWorld<'_> {
    type Event = Job;
    type Error = JobError;

    /// Something has ended.
    fn handle(&mut self, now: Time, job: Job, _queue: &mut HeapQueue<Job>) -> Result<(), JobError> {
        let resource = self.resource(job.0);
        self.resources[resource].release();
        self.hold(now, job, false)?;
        for (work, number) in self.followers(job) {
            let missing = &mut self.missing[work as usize][number];
            *missing -= 1;
            if *missing == 0 {
                let resource = self.resource(work);
                self.resources[resource].request((work, number));
            }
        }
        Ok(())
    }

    /// Everything that could end at this instant has: free resources take what is in line.
    fn settle(&mut self, now: Time, queue: &mut HeapQueue<Job>) -> Result<(), JobError> {
        for resource in 0..RESOURCES {
            if let Some(job) = self.resources[resource].take() {
                let end = now.after(self.length(job)?)?;
                self.ran[job.0 as usize][job.1] = Interval { start: now, end };
                self.hold(now, job, true)?;
                queue.schedule(end, Class(0), job);
            }
        }
        Ok(())
    }
}
