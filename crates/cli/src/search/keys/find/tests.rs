//! What a search over keys finds is what trying everything one after the other finds, over random small problems.

use std::fmt::Write as _;

use pipestep_job::Detail;
use pipestep_rl::RlInputs;
use pipestep_scenario::{Objective, Scenario, SearchSpace};

use super::*;
use crate::search::keys::space::{name, sets};

/// `SplitMix64`: enough chance for problems.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (word ^ (word >> 31)) % limit
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A job with failures, and two or three keys to vary.
fn job_problem(seed: u64) -> String {
    let mut random = Random(seed);
    let mut text = format!("[job]\nwork = \"{} s\"\n", 1_000 + random.below(5_000));
    let _ = writeln!(text, "[checkpoint]\nwrite_time = \"{} s\"\nevery = \"100 s\"", 1 + random.below(30));
    let _ = writeln!(text, "staging = \"{} s\"\ntrigger = \"work\"", 1 + random.below(5));
    let _ = writeln!(text, "[faults]\nmtbf = \"{} s\"", 500 + random.below(2_000));
    let _ = writeln!(text, "recovery = \"{} s\"\nseed = {}", random.below(90), random.below(9));
    let _ = writeln!(text, "[search]\nruns = {}", 2 + random.below(5));
    let _ =
        writeln!(text, "objective = \"{}\"\n[search.vary]", random.pick(&["job-time", "useful-fraction"]));
    let every =
        random.pick(&["\"50 s..800 s*2\"", "[\"60 s\", \"7 min\", \"200 s\"]", "\"100 s..400 s:100 s\""]);
    let _ = writeln!(text, "\"checkpoint.every\" = {every}");
    if random.below(2) == 0 {
        let _ = writeln!(text, "\"checkpoint.buffers\" = [1, 2]");
    }
    if random.below(2) == 0 {
        let _ = writeln!(text, "\"checkpoint.backlog\" = [\"skip\", \"block\", \"replace\"]");
    }
    text
}

/// Rounds of RL with devices to split, and keys to vary.
fn rl_problem(seed: u64) -> String {
    let mut random = Random(seed);
    let mode = random.pick(&["sync", "one-step-off", "async", "partial"]);
    let batch = 4 + random.below(6);
    let mut text =
        format!("[rl]\nmode = \"{mode}\"\nbatch = {batch}\nrounds = 3\nseed = {}\n", random.below(9));
    let _ =
        writeln!(text, "[rl.rollout]\nengines = 2\nslots = {}\ntoken_time = \"10 ms\"", 2 + random.below(3));
    text += "lengths = { distribution = \"lognormal\", median = 50, sigma = 0.7, cap = 400 }\n";
    let _ = writeln!(text, "[rl.update]\ntime = \"{} ms\"", 200 + random.below(2_000));
    let _ = writeln!(text, "[rl.sync]\ntime = \"{} ms\"", random.below(300));
    text += "[rl.prices]\nengine = 2\ntrainer = 5\n";
    let objective = random.pick(&["samples-per-second", "tokens-per-second", "cost-per-sample"]);
    let _ = writeln!(text, "[search]\nobjective = \"{objective}\"\nruns = {}", 1 + random.below(4));
    let _ = writeln!(text, "[search.split]\ndevices = {}", 3 + random.below(4));
    text += "parts = [{ name = \"rollout\", each = { \"rl.rollout.engines\" = 1 } },\n\
             { name = \"training\", each = { \"rl.update.speed\" = \"1/3\", \"rl.prices.trainer\" = 2 } }]\n";
    if mode == "async" {
        text += "[search.vary]\n\"rl.staleness\" = [0, 1, \"1/2\"]\n";
    } else if mode != "one-step-off" {
        let _ = writeln!(text, "[search.vary]\n\"rl.launch\" = [{batch}, {}, 2]", batch + 2);
    }
    text
}

/// Every setting, one after the other: the mean of its runs, or nothing where it is not legal.
fn one_by_one(evaluator: &Evaluator, space: &KeySpace, subject: Subject) -> Vec<Option<f64>> {
    let run = |scenario: &Scenario, run: u64| -> Option<f64> {
        if let Some(job) = &scenario.job {
            let outcome = pipestep_job::simulate(&job.inputs(None).ok()?, run, Detail::Full).ok()?;
            let elapsed = outcome.elapsed.as_nanos() as f64;
            return Some(match subject.objective {
                Objective::UsefulFraction => outcome.useful.as_nanos() as f64 / elapsed,
                _ => elapsed,
            });
        }
        let inputs = scenario.rl.as_ref()?.inputs(None).ok()?;
        let seed = inputs.seed + run;
        let outcome = pipestep_rl::simulate(&RlInputs { seed, ..inputs }).ok()?;
        Some(match subject.objective {
            Objective::TokensPerSecond => outcome.useful_tokens_per_s,
            Objective::CostPerSample => outcome.cost?.per_thousand_samples,
            _ => outcome.useful_samples_per_s,
        })
    };
    let setting = |number: u64| -> Option<f64> {
        let scenario = evaluator.read(overrides(&space.setting(number)).collect()).ok()?;
        let runs: Option<Vec<f64>> =
            (0..u64::from(subject.runs)).map(|number| run(&scenario, number)).collect();
        let runs = runs?;
        Some(runs.iter().sum::<f64>() / runs.len() as f64)
    };
    (0..space.settings).map(setting).collect()
}

struct Problem {
    evaluator: Evaluator,
    space: KeySpace,
    subject: Subject,
}

impl Problem {
    fn new(text: &str) -> Self {
        let evaluator = Evaluator::of_text(text);
        let written: SearchSpace = evaluator.space().expect("it is right");
        let space = KeySpace::new(&written.vary, written.split.as_ref()).expect("few").expect("some");
        let scenario = evaluator.written().expect("it is right");
        let subject = Subject::new(&scenario, written.objective, written.runs).expect("it has that part");
        Self { evaluator, space, subject }
    }

    fn found(&self, shown: usize) -> FoundKeys {
        let progress = Progress::new(0, self.space.settings, true);
        find(&self.evaluator, &self.space, self.subject, shown, progress)
    }
}

/// The numbers of the legal settings that were asked for, best first.
fn ranking(means: &[Option<f64>], subject: Subject) -> Vec<usize> {
    let mut legal: Vec<usize> = (0..means.len()).filter(|&number| means[number].is_some()).collect();
    let loss = |number: usize| {
        let mean = means[number].expect("it is legal");
        if subject.is_lowest() { mean } else { -mean }
    };
    legal.sort_by(|&one, &other| loss(one).total_cmp(&loss(other)));
    legal
}

#[test]
fn the_ranking_is_that_of_trying_everything() {
    let (mut closer, mut refused) = (0, 0);
    for seed in 0..120 {
        for text in [job_problem(seed), rl_problem(seed)] {
            let problem = Problem::new(&text);
            let means = one_by_one(&problem.evaluator, &problem.space, problem.subject);
            let found = problem.found(2);
            let asked_for = found.order.iter().copied().filter(|&index| !found.tried[index].is_between);
            assert_eq!(
                asked_for.collect::<Vec<_>>(),
                ranking(&means, problem.subject),
                "seed {seed}:\n{text}"
            );
            for (number, mean) in means.iter().enumerate() {
                assert_eq!(found.measured(number).map(Measured::mean), *mean, "setting {number}:\n{text}");
            }
            // What lies between is only ever better.
            let best = found.measured(found.order[0]).expect("it is legal").mean();
            let on_grid = means[ranking(&means, problem.subject)[0]].expect("it is legal");
            assert!(if problem.subject.is_lowest() { best <= on_grid } else { best >= on_grid });
            closer += found.tried.iter().filter(|tried| tried.is_between).count();
            refused += means.iter().filter(|mean| mean.is_none()).count();
        }
    }
    assert!(closer > 100 && refused > 20, "{closer} between, {refused} refused");
}

#[test]
fn the_best_interval_of_many_failures_is_that_of_the_exact_formula() {
    // Failures of 10,000 s and saves of 20 s: 612 s is best (`pipestep_job::closed_form::exact_interval`).
    let text = "[job]\nwork = \"20 d\"\n[checkpoint]\nmode = \"sync\"\nwrite_time = \"20 s\"\nevery = \"100 s\"\n\
                trigger = \"work\"\n[faults]\nmtbf = \"10000 s\"\n[search]\nruns = 60\n[search.vary]\n\
                \"checkpoint.every\" = \"100 s..6400 s*2\"\n";
    let problem = Problem::new(text);
    let found = problem.found(1);
    let exact = pipestep_job::closed_form::exact_interval(20.0, 10_000.0);
    let curve = found.curve(found.order[0], 0, "checkpoint.every").expect("it has a minimum");
    assert!((curve.lowest / 1e9 / exact - 1.0).abs() < 0.05, "{curve:?} against {exact}");
    // And nothing nearer to it than the grid can be told apart from the best.
    let (low, high) = found.span(found.order[0], 0).expect("it is flat round the best");
    assert!(low / 1e9 < exact && exact < high / 1e9, "{low} {high}");
    assert!(found.tried.len() > 7, "nothing was tried between");
}

#[test]
fn memory_that_does_not_suffice_refuses_a_setting() {
    let text = "[rl]\nmode = \"sync\"\nbatch = 4\nrounds = 2\nplacement = \"colocated\"\n\
                [rl.rollout]\nengines = 1\nslots = 4\ntoken_time = \"1 ms\"\nlengths = 10\n\
                [rl.update]\ntime = \"1 s\"\n[rl.sync]\ntime = \"0 s\"\n\
                [rl.memory]\ncapacity = \"80 GB\"\nitems = [{ name = \"KV\", bytes = \"50 GB\", held = \"rollout\" },\n\
                { name = \"state\", bytes = \"40 GB\", held = \"training\" }]\n\
                [search.vary]\n\"rl.memory.capacity\" = [\"45 GB\", \"80 GB\"]\n";
    let problem = Problem::new(text);
    let found = problem.found(1);
    assert_eq!((found.order.as_slice(), problem.subject.runs), (&[1][..], 1));
    let reason = found.tried[0].outcome.as_ref().expect_err("45 GB are too few");
    assert!(reason.contains("changing phase needs 50.00 GB of the 45.00 GB of a device"), "{reason}");
}

#[test]
fn the_same_length_in_another_unit_is_not_tried_again() {
    let text = "[job]\nwork = \"1000 s\"\n[checkpoint]\nwrite_time = \"1 s\"\nevery = \"60 s\"\n\
                [search.vary]\n\"checkpoint.every\" = \"1 min..16 min*4\"\n";
    let problem = Problem::new(text);
    let mut found = problem.found(1);
    let (before, setting) = (found.tried.len(), found.tried[0].setting.clone());
    let mut same = setting[0].clone();
    (same.sets, same.label) = (vec!["checkpoint.every=60 s".to_owned()], "every 60 s".to_owned());
    assert!(found.attempt_new(&problem.evaluator, &setting, 0, vec![same]).is_empty());
    assert_eq!((found.tried.len(), name(&setting).as_str()), (before, "every 1 min"));
    assert_eq!(sets(&setting), ["checkpoint.every=1 min"]);
}
