//! Jobs for this crate's tests: the textbook's checkpoints, and a job of weeks.

use pipestep_engine::{Bytes, Duration, Rate, Time};
use pipestep_job::{
    Backlog, Checkpoint, Detail, FaultSource, JobInputs, JobOutcome, Mode, Recovery, Requests, Spread,
    Trigger, Write, simulate,
};

use super::{JobTarget, JobView};

/// A simulated job with what a view of it needs.
pub(crate) struct JobSample {
    pub(crate) inputs: JobInputs,
    pub(crate) target: JobTarget,
    pub(crate) outcome: JobOutcome,
    pub(crate) runs: Vec<JobOutcome>,
}

pub(crate) const fn seconds(count: u64) -> Duration {
    Duration::from_nanos(count * 1_000_000_000)
}

impl JobSample {
    /// 112 GB every 20 s on the clock, half a second of staging, two buffers, 60 s; failures at these seconds.
    pub(crate) fn seed(gigabytes_a_second: u64, failures: &[u64]) -> Self {
        let mut inputs = JobInputs::of_work(seconds(60));
        inputs.checkpoint = Some(Checkpoint {
            mode: Mode::Async {
                staging: Duration::from_nanos(500_000_000),
                backlog: Backlog::Block { buffers: 2 },
                buffer: None,
            },
            size: Some(Bytes::new(112_000_000_000)),
            write: Write::Rate(Rate::per_second(gigabytes_a_second * 1_000_000_000).expect("not zero")),
            requests: Requests {
                trigger: Trigger::Wall,
                first: None,
                every: Spread::Fixed(seconds(20)),
                count: None,
            },
            commit_delay: Duration::ZERO,
            near: None,
        });
        inputs.faults.at = failures.iter().map(|&at| Time::from_nanos(at * 1_000_000_000)).collect();
        Self::of(inputs, 1)
    }

    /// Thirty days with a failure every three hours, saves every half hour, and so many runs.
    pub(crate) fn weeks(runs: u64) -> Self {
        let mut inputs = Self::seed(7, &[]).inputs;
        inputs.work = Some(seconds(30 * 86_400));
        let checkpoint = inputs.checkpoint.as_mut().expect("the seed's job saves");
        checkpoint.requests.trigger = Trigger::Work;
        checkpoint.requests.every = Spread::Fixed(seconds(1_800));
        let between = Spread::Exponential { mean: seconds(16_384 * 10_800) };
        inputs.faults.sources = vec![FaultSource::single("device", between, 16_384, true)];
        inputs.faults.downtime = Spread::Fixed(seconds(600));
        inputs.faults.recovery = Recovery::Fixed(Spread::Fixed(seconds(120)));
        Self::of(inputs, runs)
    }

    pub(crate) fn of(inputs: JobInputs, runs: u64) -> Self {
        let outcome = simulate(&inputs, 0, Detail::Full).unwrap();
        let runs = if runs > 1 { 0..runs } else { 0..0 };
        let runs = runs.map(|run| simulate(&inputs, run, Detail::Summary).unwrap()).collect();
        Self { inputs, target: JobTarget::default(), outcome, runs }
    }

    pub(crate) fn view(&self) -> JobView<'_> {
        JobView {
            name: "A job",
            inputs: &self.inputs,
            target: &self.target,
            outcome: &self.outcome,
            runs: &self.runs,
        }
    }
}
