//! Machines in reserve, and jobs that go on with fewer replicas: by hand to the nanosecond, and against the
//! oracle's stock of spares.

use pipestep_engine::{Duration, Time};
use pipestep_job::{
    Activity, Detail, Estimate, FaultSource, InputError, JobInputs, JobOutcome, Mode, Ranks, Ratio, Replicas,
    Response, Shrink, SlowDetection, SlowRanks, SlowWindow, Spares, Spread, Warning, WhenOut, simulate,
};
use proptest::prelude::*;

use crate::support::{adds_up, data, queued, seconds, until};

const SHRINK: Shrink = Shrink { replicas: 4, least: 1, machines: 1, regroup: Duration::ZERO };

fn at(count: f64) -> Time {
    Time::from_nanos(seconds(count).as_nanos())
}

fn no_spares(repair: f64, shrink: Shrink) -> Spares {
    Spares { count: 0, repair: Spread::Fixed(seconds(repair)), when_out: WhenOut::Shrink(shrink) }
}

/// A thousand seconds of work, saved every ten for nothing, down for five after each failure.
fn job(failures: &[f64], spares: Spares) -> JobInputs {
    let mut job = JobInputs::of_work(seconds(1_000.0));
    job.checkpoint = Some(queued(seconds(10.0), Duration::ZERO, Duration::ZERO));
    job.faults.at = failures.iter().map(|&failure| at(failure)).collect();
    job.faults.downtime = Spread::Fixed(seconds(5.0));
    job.faults.spares = Some(spares);
    job
}

fn run(job: &JobInputs) -> JobOutcome {
    let outcome = simulate(job, 0, Detail::Full).unwrap();
    adds_up(&outcome);
    outcome
}

#[test]
fn a_job_goes_on_with_fewer_replicas_until_repair_gives_them_back() {
    let shrink = Shrink { regroup: seconds(10.0), ..SHRINK };
    let outcome = run(&job(&[105.0, 207.0], no_spares(300.0, shrink)));
    // 105 s of work, 5 of them to redo. Three of four replicas from 110 s on do 72.75 s until 207 s, 2.75 of them
    // to redo. Two of four from 212 s on do 96.5 s until the first machine is back at 405 s, three of four from
    // 415 s on 69 s until the second is at 507 s. All four do the other 664.5 s from 517 s on.
    assert_eq!(outcome.elapsed, seconds(1_181.5));
    assert_eq!(outcome.lost.redo, seconds(7.75));
    assert_eq!(outcome.lost.downtime, seconds(10.0));
    // 97 / 4 + 193 / 2 + 92 / 4 of a replica's time, and two pauses.
    assert_eq!(outcome.lost.fewer_replicas, seconds(143.75 + 20.0));
    assert_eq!(outcome.lost.straggler_nanos, 0);
    let totals = outcome.replicas.unwrap();
    assert_eq!((totals.all, totals.fewest, totals.shrunk), (4, 2, 2));
    assert_eq!(totals.short, seconds(97.0 + 193.0 + 92.0));
    let curve = [(110.0, 3), (212.0, 2), (415.0, 3), (517.0, 4)];
    assert_eq!(outcome.replica_curve, curve.map(|(from, count)| Replicas { at: at(from), count }));
    assert!(outcome.warnings.contains(&Warning::SparesRanOut { times: 2 }));
}

#[test]
fn with_too_few_replicas_left_a_job_waits() {
    let shrink = Shrink { least: 3, ..SHRINK };
    let outcome = run(&job(&[105.0, 207.0], no_spares(300.0, shrink)));
    // The second failure leaves two: until the first machine is back at 405 s there are too few.
    assert_eq!(outcome.lost.spare_wait, seconds(193.0));
    assert_eq!(outcome.lost.fewer_replicas, seconds(97.0 / 4.0 + 102.0 / 4.0));
    assert_eq!(outcome.replicas.unwrap().fewest, 3);
    // What is left of a stopped replica stands in for the next machine that is lost.
    let of_two = Shrink { machines: 2, ..SHRINK };
    let outcome = run(&job(&[105.0, 207.0], no_spares(300.0, of_two)));
    let totals = outcome.replicas.unwrap();
    assert_eq!((totals.fewest, totals.shrunk), (3, 1));
    // The first machine is back at 405 s, but one is still missing then.
    assert_eq!(totals.short, seconds(97.0 + 295.0));
    // A spare comes first.
    let outcome = run(&job(&[105.0, 207.0], Spares { count: 1, ..no_spares(300.0, SHRINK) }));
    assert_eq!(outcome.replicas.unwrap().short, seconds(193.0));
}

#[test]
fn replicas_that_come_back_during_a_save_wait_for_its_end() {
    let mut job = job(&[105.0], no_spares(51.0, SHRINK));
    let checkpoint = job.checkpoint.as_mut().unwrap();
    (checkpoint.mode, checkpoint.write) =
        (Mode::Sync, pipestep_job::Write::Time(Spread::Fixed(seconds(4.0))));
    checkpoint.requests.every = Spread::Fixed(seconds(30.0));
    let outcome = run(&job);
    // Saves at 30 to 34 s and so on; the failure goes back to 90 s of work. From 110 s on three of four replicas do
    // the next 30 s of work in 40 s; the save lasts until 154 s, and the machine is back at 156 s.
    assert_eq!(outcome.replica_curve[1], Replicas { at: at(156.0), count: 4 });
    job.faults.spares = Some(no_spares(47.0, SHRINK));
    let outcome = run(&job);
    assert_eq!(outcome.replica_curve[1], Replicas { at: at(154.0), count: 4 });
    assert_eq!(outcome.lost.fewer_replicas, seconds(10.0));
}

#[test]
fn slow_windows_and_fewer_replicas_are_told_apart() {
    let mut job = job(&[], no_spares(1e6, SHRINK));
    job.faults.at = vec![Time::ZERO];
    job.faults.downtime = Spread::ZERO;
    let factor = Ratio::new(5, 4).unwrap();
    job.stragglers.windows = vec![SlowWindow { from: Time::ZERO, to: Time::MAX, factor }];
    let outcome = run(&job);
    // Three quarters of the replicas, at four fifths of the speed.
    assert_eq!(outcome.elapsed.as_nanos(), seconds(1_000.0).as_nanos() * 5 / 3 + 1);
    let fewer = outcome.elapsed.as_nanos() / 4;
    assert!(outcome.lost.fewer_replicas.as_nanos().abs_diff(fewer) <= 1, "{:?}", outcome.lost);
    assert!((outcome.lost.straggler_nanos - 250_000_000_000).abs() <= 2, "{:?}", outcome.lost);
}

/// The share of time in which at most so many are out, of a Poisson number of them.
fn covered(mean: f64, spares: u64) -> f64 {
    let (mut term, mut sum) = ((-mean).exp(), 0.0);
    for count in 0..=spares {
        sum += term;
        term *= mean / (count + 1) as f64;
    }
    sum
}

/// The time of a run in which all nodes are there, by the spares in reserve: with repair of a fixed length the number
/// out is Poisson with a mean that grows until the first repair ends.
fn expected_cover(mean: f64, spares: u64, repairs: f64) -> f64 {
    const PARTS: u32 = 2_000;
    let start = (0..PARTS).map(|part| covered(mean * (f64::from(part) + 0.5) / f64::from(PARTS), spares));
    (start.sum::<f64>() / f64::from(PARTS) + (repairs - 1.0) * covered(mean, spares)) / repairs
}

#[test]
fn spares_cover_the_share_of_time_that_the_stock_table_says() {
    for row in data("stragglers.json")["spares"].as_array().unwrap() {
        let part = |key: &str| row[key].as_f64().unwrap();
        let (nodes, mean) = (row["nodes"].as_u64().unwrap() as u32, part("mean_out"));
        let repairs = (6_000.0 / mean).clamp(60.0, 1_500.0);
        let mut job = until(at(repairs * part("repair_days") * 86_400.0));
        let between = Spread::Exponential { mean: seconds(86_400.0 / part("failures_per_node_day")) };
        job.faults.sources = vec![FaultSource::single("node", between, nodes, true)];
        let shrink = Shrink { replicas: 1_000_000, ..SHRINK };
        for (key, share) in [("spares_p95", 0.95), ("spares_p99", 0.99), ("spares_p99_9", 0.999)] {
            let count = row[key].as_u64().unwrap();
            assert!(
                covered(mean, count) >= share && (count == 0 || covered(mean, count - 1) < share),
                "{row}"
            );
            let spares = no_spares(part("repair_days") * 86_400.0, shrink);
            job.faults.spares = Some(Spares { count: count as u32, ..spares });
            let runs: Vec<f64> = (0..40)
                .map(|run| {
                    let outcome = simulate(&job, run, Detail::Summary).unwrap();
                    adds_up(&outcome);
                    1.0 - outcome.replicas.unwrap().short.as_secs_f64() / outcome.elapsed.as_secs_f64()
                })
                .collect();
            let want = expected_cover(mean, count, repairs);
            let Estimate { mean: got, standard_error, .. } = Estimate::of(&runs).unwrap();
            assert!(standard_error <= 0.005 * want, "{key} {row}: ± {standard_error}");
            assert!(
                (got - want).abs() <= 4.0 * standard_error,
                "{key} {row}: {got} ± {standard_error}, {want}"
            );
        }
    }
}

#[test]
fn without_spares_the_job_is_slower_by_the_mean_number_of_nodes_out() {
    let (nodes, repair, horizon) = (512, 86_400.0, 400.0);
    let mut job = until(at(repair * horizon));
    let between = Spread::Exponential { mean: seconds(86_400.0 / 0.0065) };
    job.faults.sources = vec![FaultSource::single("node", between, nodes, true)];
    job.faults.spares = Some(no_spares(repair, Shrink { replicas: nodes, ..SHRINK }));
    // Saves often and for nothing, so that next to no work is done again.
    job.checkpoint = Some(queued(seconds(60.0), Duration::ZERO, Duration::ZERO));
    let runs: Vec<f64> = (0..40)
        .map(|run| {
            let outcome = simulate(&job, run, Detail::Summary).unwrap();
            adds_up(&outcome);
            f64::from(nodes) * outcome.lost.fewer_replicas.as_secs_f64() / outcome.elapsed.as_secs_f64()
        })
        .collect();
    let want = 512.0 * 0.0065 * (1.0 - 0.5 / horizon);
    let Estimate { mean, standard_error, .. } = Estimate::of(&runs).unwrap();
    assert!(standard_error <= 0.005 * want, "{standard_error}");
    assert!((mean - want).abs() <= 4.0 * standard_error, "{mean} ± {standard_error}, expected {want}");
}

#[test]
fn evicted_ranks_shrink_a_job_without_spares() {
    let mut job = job(&[], no_spares(500.0, SHRINK));
    let slow = SlowRanks {
        at: vec![at(100.0), at(200.0)],
        between: None,
        factor: Ratio::new(2, 1).unwrap(),
        lasts: None,
    };
    job.stragglers.ranks = Some(Ranks {
        count: 4,
        slow: Some(slow),
        detection: Some(SlowDetection { threshold: 0.5, window: 2 }),
        response: Response::Evict,
        ..Ranks::steady(seconds(10.0))
    });
    let outcome = run(&job);
    let evicted = outcome.stragglers.unwrap().evicted;
    let totals = outcome.replicas.unwrap();
    assert_eq!((evicted, totals.shrunk, totals.fewest), (2, 2, 2));
    assert!(
        outcome.timeline.iter().any(|span| span.activity == Activity::Regrouping)
            || totals.short > Duration::ZERO
    );
}

#[test]
fn more_replicas_needed_than_present_are_refused() {
    let refused = |shrink| job(&[], no_spares(1.0, shrink)).check();
    let few = refused(Shrink { least: 5, ..SHRINK });
    assert_eq!(few, Err(InputError::FewReplicas { least: 5, replicas: 4 }));
    assert_eq!(
        refused(Shrink { machines: 0, ..SHRINK }),
        Err(InputError::Zero { what: "faults.spares.machines_per_replica" })
    );
    assert!(matches!(refused(Shrink { replicas: 0, ..SHRINK }), Err(InputError::Zero { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_is_lost_every_second_is_accounted_for(
        job in crate::faults::any_job(),
        stock in (0_u32..3, 1_u64..4_000),
        shrink in proptest::option::of((1_u32..7, 1_u32..4, 1_u32..4, 0_u64..60)),
    ) {
        let mut job = job;
        let shrink = shrink.map(|(replicas, least, machines, regroup)| Shrink {
            replicas,
            least: least.min(replicas),
            machines,
            regroup: Duration::from_nanos(regroup),
        });
        job.faults.spares = Some(Spares {
            count: stock.0,
            repair: Spread::Fixed(Duration::from_nanos(stock.1)),
            when_out: shrink.map_or(WhenOut::Wait, WhenOut::Shrink),
        });
        let outcome = simulate(&job, 0, Detail::Full).unwrap();
        adds_up(&outcome);
        prop_assert_eq!(&outcome, &simulate(&job, 0, Detail::Full).unwrap());
        let mut end = Time::ZERO;
        for span in outcome.timeline.iter() {
            prop_assert_eq!(span.interval.start, end);
            end = span.interval.end;
        }
        prop_assert_eq!(end.since(Time::ZERO), outcome.elapsed);
        prop_assert!(outcome.lost.straggler_nanos >= -2, "{:?}", outcome.lost);
        if let (Some(shrink), Some(totals)) = (shrink, outcome.replicas) {
            prop_assert!(totals.fewest >= shrink.least && totals.fewest <= shrink.replicas);
            prop_assert!(outcome.replica_curve.iter().all(|level| level.count >= shrink.least));
        }
    }
}
