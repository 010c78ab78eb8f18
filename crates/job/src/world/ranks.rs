//! The ranks that a step waits for: how long the next step takes, what it is worth, and who is noticed.
//!
//! Without jitter all steps between two changes are alike and make one bundle; with it each step is drawn.

use std::borrow::Cow;

use pipestep_engine::{Duration, Streams, Time};
use rand_chacha::ChaCha12Rng;

use super::lifetimes::Lifetimes;
use crate::Spread;
use crate::inputs::JobInputs;
use crate::jitter::how_many;
use crate::outcome::StragglerTotals;
use crate::stragglers::{Jitter, Ranks, Response, SlowDetection};

/// Steps in a bundle of steps that are alike for good.
const BUNDLE: u64 = 1 << 20;

/// A step, or a bundle of steps that are alike, drawn and not yet done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// How long it takes with no slow window.
    pub(super) length: Duration,
    /// How many steps it stands for.
    pub(super) steps: u64,
    /// Gradients that count, of `of`.
    pub(super) gradients: u32,
    /// All ranks.
    pub(super) of: u32,
    /// Healthy ranks that are taken for slow at its end.
    pub(super) false_alarms: u32,
}

/// A rank that is slow.
#[derive(Clone, Debug)]
struct Slow {
    id: u64,
    factor: f64,
    streak: u32,
    noticed: bool,
    /// Computing time left of a gradient that no step waits for, and in how many steps it was not ready.
    late: Option<Late>,
}

#[derive(Clone, Copy, Debug)]
struct Late {
    left: f64,
    age: u32,
}

/// The state of the ranks of a job.
#[derive(Debug)]
pub(super) struct RankState<'a> {
    pub(super) ranks: Cow<'a, Ranks>,
    /// Most steps in a bundle.
    most: u64,
    jitter: ChaCha12Rng,
    lengths: ChaCha12Rng,
    fixed: Vec<Time>,
    next_fixed: usize,
    /// Ranks that are slow from the start, and when they no longer are.
    first_heals: Vec<(u64, Duration)>,
    lifetimes: Option<Lifetimes>,
    slow: Vec<Slow>,
    next_id: u64,
    /// Ranks that do nothing any more.
    idle: u32,
    /// How many healthy ranks have been suspect for one, two, ... steps in a row.
    streaks: Vec<u32>,
    /// The probability that a healthy rank is suspect in a step.
    suspect: f64,
    pub(super) totals: StragglerTotals,
}

impl<'a> RankState<'a> {
    /// The ranks of a job; one that never varies if only its input has steps, `None` if nothing does.
    pub(super) fn new(inputs: &'a JobInputs, streams: Streams, run_number: u64) -> Option<Self> {
        let ranks = match (&inputs.stragglers.ranks, &inputs.input) {
            (Some(ranks), _) => Cow::Borrowed(ranks),
            (None, Some(input)) => Cow::Owned(Ranks::steady(input.step)),
            (None, None) => return None,
        };
        let bundle = if inputs.input.is_some() { 1 } else { BUNDLE };
        let slow = ranks.slow.as_ref();
        let mut fixed = slow.map_or_else(Vec::new, |slow| slow.at.clone());
        fixed.sort_unstable();
        let lifetimes = slow.and_then(|slow| slow.between).map(|between| {
            let rng = streams.stream("slow ranks", run_number);
            Lifetimes::new(between, ranks.count, rng)
        });
        let window = ranks.detection.map_or(1, |detection| detection.window);
        let suspect =
            ranks.detection.map_or(0.0, |detection| ranks.jitter.upper_tail(1.0 + detection.threshold));
        let mut state = Self {
            ranks,
            most: bundle,
            jitter: streams.stream("jitter", run_number),
            lengths: streams.stream("slow rank lengths", run_number),
            fixed,
            next_fixed: 0,
            first_heals: Vec::new(),
            lifetimes,
            slow: Vec::new(),
            next_id: 0,
            idle: 0,
            streaks: vec![0; window.saturating_sub(1) as usize],
            suspect,
            totals: StragglerTotals::default(),
        };
        // Who is slow from the start is so in the first step.
        while state.fixed.get(state.next_fixed) == Some(&Time::ZERO) {
            state.next_fixed += 1;
            let heals = state.become_slow().and_then(|(id, lasts)| Some((id, lasts?)));
            state.first_heals.extend(heals);
        }
        Some(state)
    }

    /// Ranks that are slow from the start, and for how long.
    pub(super) fn take_first_heals(&mut self) -> Vec<(u64, Duration)> {
        std::mem::take(&mut self.first_heals)
    }

    /// When the first rank becomes slow at random.
    pub(super) fn first_random(&mut self) -> Option<Time> {
        self.lifetimes.as_mut().and_then(Lifetimes::first)
    }

    /// When the next rank becomes slow at random.
    pub(super) fn next_random(&mut self, now: Time) -> Option<Time> {
        self.lifetimes.as_mut().and_then(|lifetimes| lifetimes.renew(now))
    }

    /// When the next rank becomes slow at a fixed instant.
    pub(super) fn next_fixed(&mut self) -> Option<Time> {
        let at = self.fixed.get(self.next_fixed).copied();
        self.next_fixed += 1;
        at
    }

    /// A rank becomes slow; returns its name and how long it stays so, if that ends by itself.
    pub(super) fn become_slow(&mut self) -> Option<(u64, Option<Duration>)> {
        let inputs = self.ranks.slow.as_ref()?;
        if self.slow.len() as u64 + u64::from(self.idle) >= u64::from(self.ranks.count) {
            return None;
        }
        self.totals.became_slow += 1;
        self.next_id += 1;
        self.slow.push(Slow {
            id: self.next_id,
            factor: inputs.factor.as_f64(),
            streak: 0,
            noticed: false,
            late: None,
        });
        let lasts = inputs.lasts.and_then(|lasts: Spread| lasts.draw(&mut self.lengths));
        Some((self.next_id, lasts))
    }

    /// A slow rank is fast again; returns whether it was still there.
    pub(super) fn heal(&mut self, id: u64) -> bool {
        let before = self.slow.len();
        self.slow.retain(|rank| rank.id != id);
        self.slow.len() < before
    }

    /// Whether steps differ from each other although nothing changes.
    pub(super) fn varies(&self) -> bool {
        self.ranks.jitter != Jitter::None || self.slow.iter().any(|rank| rank.late.is_some())
    }

    /// Draws the next step, or the next bundle.
    pub(super) fn next_step(&mut self) -> Step {
        let mut steps = 1;
        let (slowest, false_alarms) = match self.ranks.response {
            Response::Drop { slowest } => (self.all_but(slowest), 0),
            _ => self.slowest(),
        };
        if !self.varies() {
            steps = self.bundle();
        }
        let all = self.ranks.count;
        let compute = self.compute();
        let mut length = self.ranks.overhead.as_nanos() as f64 + compute * slowest.max(0.0);
        let missing = match self.ranks.response {
            Response::Drop { slowest } => slowest.min(all),
            Response::Stale { bound } => self.run_late(&mut length, bound),
            _ => 0,
        };
        let nanos = (length.round() as u64).max(1).saturating_mul(steps);
        Step { length: Duration::from_nanos(nanos), steps, gradients: all - missing, of: all, false_alarms }
    }

    /// Mean computing time of a rank that does its own share.
    fn compute(&self) -> f64 {
        self.ranks.step.as_nanos().saturating_sub(self.ranks.overhead.as_nanos()) as f64
    }

    /// How much more than its own share each working rank does.
    fn load(&self) -> f64 {
        f64::from(self.ranks.count) / f64::from(self.working())
    }

    fn working(&self) -> u32 {
        self.ranks.count - self.idle
    }

    fn healthy(&self) -> u32 {
        self.working() - self.slow.len() as u32
    }

    /// The slowest rank that a step waits for, and how many healthy ranks are noticed at its end.
    fn slowest(&mut self) -> (f64, u32) {
        let load = self.load();
        let (healthy, jitter) = (self.healthy(), self.ranks.jitter);
        let mut slowest = 0.0_f64;
        let mut noticed = 0;
        if healthy > 0 {
            let noise = match self.ranks.detection {
                Some(_) if self.suspect > 0.0 => {
                    let (above, alarms) = self.suspects(healthy);
                    noticed = alarms;
                    jitter.largest_given(healthy, above, self.suspect, &mut self.jitter)
                }
                _ => jitter.largest(healthy, &mut self.jitter),
            };
            slowest = load + noise - 1.0;
        }
        for rank in self.slow.iter_mut().filter(|rank| rank.late.is_none()) {
            let time = load * rank.factor;
            slowest = slowest.max(time);
            if jitter != Jitter::None {
                rank.watch(time - load, 1, self.ranks.detection);
            }
        }
        (slowest, noticed)
    }

    /// Moves the streaks of the healthy ranks on by a step: how many are suspect, and how many of them
    /// noticed.
    fn suspects(&mut self, healthy: u32) -> (u32, u32) {
        let streaking: u32 = self.streaks.iter().sum();
        let fresh = how_many(healthy.saturating_sub(streaking), self.suspect, &mut self.jitter);
        let (mut above, mut carried) = (fresh, fresh);
        for place in 0..self.streaks.len() {
            let go_on = how_many(self.streaks[place], self.suspect, &mut self.jitter);
            self.streaks[place] = carried;
            carried = go_on;
            above += go_on;
        }
        (above, carried)
    }

    /// The slowest rank when a step does not wait for the slowest so many.
    fn all_but(&mut self, dropped: u32) -> f64 {
        let load = self.load();
        let (healthy, jitter, wanted) = (self.healthy(), self.ranks.jitter, dropped + 1);
        let mut times: Vec<f64> =
            jitter.top(healthy, wanted, &mut self.jitter).map(|noise| load + noise - 1.0).collect();
        times.extend(self.slow.iter().map(|rank| load * rank.factor));
        times.sort_by(|a, b| b.total_cmp(a));
        times.get(dropped as usize).copied().unwrap_or(0.0)
    }

    /// Steps that are alike: until a slow rank is noticed, or for good.
    fn bundle(&mut self) -> u64 {
        let Some(detection) = self.ranks.detection else { return self.most };
        let load = self.load();
        let suspect = |rank: &Slow| load * (rank.factor - 1.0) > detection.threshold && !rank.noticed;
        let left = |rank: &Slow| u64::from(detection.window.saturating_sub(rank.streak).max(1));
        self.slow
            .iter()
            .filter(|rank| suspect(rank))
            .map(left)
            .min()
            .map_or(self.most, |left| left.min(self.most))
    }

    /// So many of the steps of `step` have been done.
    pub(super) fn count_done(&mut self, step: &Step, done: u64) {
        self.totals.steps += done;
        self.totals.gradients_lost += u64::from(step.of - step.gradients) * done;
    }

    /// Alike steps have been done: their slow ranks have been watched as often.
    pub(super) fn watch_bundle(&mut self, steps: u64) {
        if self.varies() {
            return;
        }
        let load = self.load();
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        for rank in &mut self.slow {
            rank.watch(load * (rank.factor - 1.0), steps, self.ranks.detection);
        }
    }

    /// Lets the ranks that no step waits for compute on during a step of `length`, which grows if a gradient
    /// would be later than `bound`; returns how many gradients the step goes without.
    fn run_late(&mut self, length: &mut f64, bound: u32) -> u32 {
        let (load, compute, overhead) = (self.load(), self.compute(), self.ranks.overhead.as_nanos() as f64);
        for rank in &mut self.slow {
            let Some(late) = &mut rank.late else { continue };
            if late.left <= 0.0 {
                late.left = compute * load * rank.factor;
                late.age = 0;
            }
            if late.age >= bound {
                *length = length.max(late.left + overhead);
            }
        }
        let mut missing = 0;
        for late in self.slow.iter_mut().filter_map(|rank| rank.late.as_mut()) {
            late.left -= *length - overhead;
            if late.left <= 0.5 {
                late.left = 0.0;
                self.totals.count_late(late.age);
            } else {
                late.age += 1;
                missing += 1;
            }
        }
        missing
    }

    /// Whether ranks have been noticed that nothing has been done about; forgets the question.
    pub(super) fn take_noticed(&mut self) -> u32 {
        let mut noticed = 0;
        let window = self.ranks.detection.map_or(u32::MAX, |detection| detection.window);
        for rank in self.slow.iter_mut().filter(|rank| !rank.noticed && rank.streak >= window) {
            rank.noticed = true;
            noticed += 1;
        }
        self.totals.noticed += u64::from(noticed);
        noticed
    }

    /// Writes down what the lengths of the steps to come, and when a rank is noticed, depend on, as long as nothing
    /// is drawn.
    pub(super) fn write_state(&self, state: &mut Vec<u64>) {
        let window = self.ranks.detection.map_or(0, |detection| detection.window);
        state.extend([u64::from(self.idle), self.slow.len() as u64]);
        for rank in &self.slow {
            let streak = rank.streak.min(window);
            state.extend([rank.factor.to_bits(), u64::from(streak), u64::from(rank.noticed)]);
        }
    }

    /// Replaces the noticed ranks by healthy ones.
    pub(super) fn replace_noticed(&mut self) {
        self.slow.retain(|rank| !rank.noticed);
    }

    /// No step waits for the noticed ranks from now on.
    pub(super) fn let_noticed_be_late(&mut self) {
        for rank in self.slow.iter_mut().filter(|rank| rank.noticed && rank.late.is_none()) {
            rank.late = Some(Late { left: 0.0, age: 0 });
        }
    }

    /// Takes the noticed ranks, and `healthy` ones noticed by mistake, out of work as long as one is left.
    pub(super) fn take_out_noticed(&mut self, healthy: u32) {
        let noticed = self.slow.iter().filter(|rank| rank.noticed).count() as u32;
        let most = self.working() - 1;
        let slow_out = noticed.min(most);
        // One of them may have become slow since the step was drawn.
        let healthy_out = healthy.min(most - slow_out).min(self.healthy());
        for _ in 0..slow_out {
            if let Some(place) = self.slow.iter().position(|rank| rank.noticed) {
                self.slow.remove(place);
            }
        }
        self.idle += slow_out + healthy_out;
        self.totals.taken_out += u64::from(slow_out + healthy_out);
    }

    /// A restart forgets who was suspect.
    pub(super) fn forget_streaks(&mut self) {
        self.streaks.fill(0);
        for rank in &mut self.slow {
            rank.streak = 0;
            rank.late = rank.late.map(|_| Late { left: 0.0, age: 0 });
        }
    }
}

impl Slow {
    /// The rank was this much slower than the mean in so many steps.
    fn watch(&mut self, excess: f64, steps: u32, detection: Option<SlowDetection>) {
        match detection {
            Some(detection) if excess > detection.threshold => {
                self.streak = self.streak.saturating_add(steps);
            }
            _ => self.streak = 0,
        }
    }
}
