//! Why ranks are idle, what sets the makespan, what would help: facts of the headline, and rules for any step.

use pipestep_engine::{Duration, Interval, Time};
use pipestep_schedule::{Op, Options, Plan, Rank, find};
use pipestep_step::{
    CAUSES, Cause, Chosen, CriticalPath, Delay, Element, IdleInterval, Inputs, Outcome, PathKind, balanced,
    idle_by_cause, idle_intervals, makespan, simulate, what_if, with_faster,
};
use proptest::prelude::*;

use crate::cases::{MS, any_step, orders};
use crate::headline::{headline, run};

fn ms(from: u64, to: u64) -> Interval {
    Interval { start: Time::from_nanos(from * MS), end: Time::from_nanos(to * MS) }
}

/// The place of the operation that the text names.
fn place(outcome: &Outcome, text: &str) -> usize {
    let op: Op = text.parse().unwrap();
    outcome.record.orders.all().iter().position(|&other| other == op).unwrap()
}

fn idle(schedule: &str) -> (Outcome, Vec<IdleInterval>) {
    let outcome = run(schedule);
    let intervals = idle_intervals(&headline(), &outcome.record, Chosen::Before);
    (outcome, intervals)
}

#[test]
fn rank_3_waits_from_93_to_95_ms_for_the_activation_that_leaves_rank_2_at_94_ms() {
    let (outcome, intervals) = idle("1f1b");
    let found = intervals.iter().find(|one| one.rank == Rank(3) && one.interval == ms(93, 95)).unwrap();
    assert_eq!(found.next, Some(place(&outcome, "3F2")));
    assert_eq!(found.waits_for, Some(place(&outcome, "2F2")));
    let parts: Vec<_> = found.parts.iter().map(|part| (part.interval, part.cause, part.delay)).collect();
    let cause = Cause::Activation;
    assert_eq!(parts, [(ms(93, 94), cause, Some(Delay::Making)), (ms(94, 95), cause, Some(Delay::Transfer))]);
}

#[test]
fn rank_0_holds_forwards_back_while_it_waits_for_its_first_gradient() {
    let (outcome, intervals) = idle("1f1b");
    let found = intervals.iter().find(|one| one.rank == Rank(0)).unwrap();
    assert_eq!(found.interval, ms(40, 106));
    assert_eq!(found.next, Some(place(&outcome, "0B0")));
    assert_eq!(found.waits_for, Some(place(&outcome, "1B0")));
    let ready = Some(place(&outcome, "0F4"));
    assert!(found.parts.iter().all(|part| part.cause == Cause::OrderList && part.ready == ready));
    let last = found.parts.last().unwrap();
    assert_eq!((last.interval, last.delay), (ms(105, 106), Some(Delay::Transfer)));
}

#[test]
fn the_ends_of_a_step_are_warm_up_and_cool_down() {
    let (_, intervals) = idle("1f1b");
    let causes = idle_by_cause(4, &intervals);
    let of = |rank: usize, cause: Cause| causes[rank][cause as usize].as_nanos() / MS;
    assert_eq!((0..4).map(|rank| of(rank, Cause::WarmUp)).collect::<Vec<_>>(), [0, 11, 22, 33]);
    // The last operations of ranks 1 to 3 end 21, 42, 63 ms before the last gradient; the update takes 1 of them.
    assert_eq!((0..4).map(|rank| of(rank, Cause::CoolDown)).collect::<Vec<_>>(), [0, 20, 41, 62]);
    assert_eq!((0..4).map(|rank| of(rank, Cause::UpdateBarrier)).collect::<Vec<_>>(), [0, 1, 1, 1]);
    let mut inputs = headline();
    inputs.update_after = pipestep_step::UpdateAfter::Own;
    let outcome = simulate(&inputs, plan("1f1b", &inputs)).unwrap();
    let causes = idle_by_cause(4, &idle_intervals(&inputs, &outcome.record, Chosen::Before));
    assert_eq!(causes[3][Cause::Update as usize], Duration::from_nanos(MS));
    assert_eq!(causes[3][Cause::UpdateBarrier as usize], Duration::ZERO);
}

fn plan(schedule: &str, inputs: &Inputs) -> Plan {
    Plan::Fixed(orders(schedule, inputs).unwrap())
}

#[test]
fn a_message_that_waits_for_its_link_names_the_one_that_has_it() {
    let mut inputs = headline();
    let mut costs = inputs.costs().clone();
    for stage in &mut costs.stages {
        stage.activation.time = Duration::from_nanos(15 * MS);
    }
    inputs = inputs.with_costs(costs).unwrap();
    let outcome = simulate(&inputs, plan("fill-drain", &inputs)).unwrap();
    let intervals = idle_intervals(&inputs, &outcome.record, Chosen::Before);
    // Rank 1 runs F0 from 25 to 35 ms. 0F1 was made at 20 ms, but 0F0 has the link until 25 ms.
    let found = intervals.iter().find(|one| one.next == Some(place(&outcome, "1F1"))).unwrap();
    assert_eq!((found.interval, found.parts.len()), (ms(35, 40), 1));
    assert_eq!(found.parts[0].delay, Some(Delay::Transfer));
    // Rank 2 starts at 50 ms, ends F0 at 60, and sees the same; the first message waits behind nothing.
    let warm_up = intervals.iter().find(|one| one.next == Some(place(&outcome, "1F0"))).unwrap();
    let delays: Vec<_> = warm_up.parts.iter().map(|part| part.delay.unwrap()).collect();
    assert_eq!(delays, [Delay::Making, Delay::Transfer]);
    // On a shared link 1F0's activation stands behind those that rank 0 made before it.
    inputs.links = pipestep_step::Links::Shared;
    let outcome = simulate(&inputs, plan("fill-drain", &inputs)).unwrap();
    let intervals = idle_intervals(&inputs, &outcome.record, Chosen::Before);
    let first = intervals.iter().find(|one| one.next == Some(place(&outcome, "2F0"))).unwrap();
    let behind: Vec<_> = first
        .parts
        .iter()
        .filter_map(|part| match part.delay {
            Some(Delay::LinkBusy(place)) => {
                Some((part.interval, outcome.record.orders.all()[place].to_string()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(behind, [(ms(35, 40), "0F1".to_owned()), (ms(40, 55), "0F2".to_owned())]);
}

#[test]
fn what_1f1b_loses_to_fill_drain_is_exposed_transfers() {
    let inputs = headline();
    let (one, fill) = (run("1f1b"), run("fill-drain"));
    assert_eq!(one.summary.makespan.since(fill.summary.makespan), Duration::from_nanos(10 * MS));
    for outcome in [&one, &fill] {
        let free = what_if(&inputs, &outcome.record.orders, 10).unwrap().free_transfers;
        assert_eq!(free, Time::from_nanos(331 * MS));
    }
    let on_path = |outcome: &Outcome| {
        let path = CriticalPath::new(&inputs, &outcome.record);
        path.by_kind(&outcome.record)[PathKind::Transfer as usize].as_nanos() / MS
    };
    assert_eq!((on_path(&one), on_path(&fill)), (16, 6));
}

#[test]
fn a_pipeline_of_one_micro_batch_has_one_critical_path_through_everything() {
    let shape = pipestep_schedule::Shape::new(3, 1, 1, pipestep_schedule::Placement::Loop).unwrap();
    let inputs = headline();
    let mut costs = inputs.costs().clone();
    costs.stages.truncate(3);
    costs.ranks.truncate(3);
    costs.setup = Duration::from_nanos(2 * MS);
    let inputs = Inputs::new(shape, costs).unwrap();
    let outcome = simulate(&inputs, plan("1f1b", &inputs)).unwrap();
    let path = CriticalPath::new(&inputs, &outcome.record);
    let at = |text| place(&outcome, text);
    let elements: Vec<_> = path.steps.iter().map(|step| step.element).collect();
    let (op, sent) = (Element::Operation, Element::Message);
    assert_eq!(
        elements,
        [
            Element::Setup,
            op(at("0F0")),
            sent(at("0F0")),
            op(at("1F0")),
            sent(at("1F0")),
            op(at("2F0")),
            op(at("2B0")),
            sent(at("2B0")),
            op(at("1B0")),
            sent(at("1B0")),
            op(at("0B0")),
            Element::Update(Rank(0)),
        ]
    );
    assert_eq!((path.count, path.transfers.0), (1, path.transfers.1));
    let kinds = path.by_kind(&outcome.record).map(|length| length.as_nanos() / MS);
    assert_eq!(kinds, [2, 30, 60, 0, 0, 0, 4, 1, 0]);
}

#[test]
fn ties_are_counted_and_counting_stops() {
    // Without transfers every rank of fill-drain works without a pause: wherever the path goes down, it is as long.
    let free = headline().with_free_transfers();
    let outcome = simulate(&free, plan("fill-drain", &free)).unwrap();
    let path = CriticalPath::new(&free, &outcome.record);
    // Down three steps at any of 8 micro-batches, and up again: C(10, 3) ways each.
    assert_eq!(path.count, 120 * 120);
    let shape = pipestep_schedule::Shape::new(4, 1, 64, pipestep_schedule::Placement::Loop).unwrap();
    let many = Inputs::new(shape, free.costs().clone()).unwrap();
    let outcome = simulate(&many, plan("fill-drain", &many)).unwrap();
    assert_eq!(CriticalPath::new(&many, &outcome.record).count, CriticalPath::MOST);
}

#[test]
fn a_slow_stage_is_what_helps_and_balancing_does_too() {
    let inputs = headline();
    let mut costs = inputs.costs().clone();
    costs.stages[3].forward = Duration::from_nanos(14 * MS);
    costs.stages[3].backward = Duration::from_nanos(28 * MS);
    let inputs = inputs.with_costs(costs).unwrap();
    let outcome = simulate(&inputs, plan("1f1b", &inputs)).unwrap();
    let found = what_if(&inputs, &outcome.record.orders, 10).unwrap();
    let gains: Vec<u64> = found
        .faster
        .iter()
        .map(|faster| outcome.summary.makespan.since(faster.makespan).as_nanos() / 1_000)
        .collect();
    // 10 % of 8 x 42 ms on the slow rank, 10 % of one way down and up on the others.
    assert_eq!(gains, [3_000, 3_000, 3_000, 33_600]);
    assert!(found.balanced < outcome.summary.makespan);
    let even = balanced(&inputs).unwrap();
    assert!(even.costs().stages.iter().all(|stage| stage.forward.as_nanos() == 11 * MS));
    let unchanged = what_if(&inputs, &outcome.record.orders, 0).unwrap();
    assert!(unchanged.faster.iter().all(|faster| faster.makespan == outcome.summary.makespan));
}

#[test]
fn a_memory_limit_holds_forwards_back() {
    let inputs = headline();
    let shape = inputs.shape();
    let two = inputs.costs().stages.iter().map(|stage| 2 * stage.saved.get()).collect();
    let weights = inputs.costs().weights(shape, Some(two));
    let plan = find("greedy").unwrap().plan(shape, &weights, &Options::default()).unwrap();
    let outcome = simulate(&inputs, plan).unwrap();
    let intervals = idle_intervals(&inputs, &outcome.record, Chosen::Online);
    let causes = idle_by_cause(4, &intervals);
    for (rank, sums) in outcome.summary.ranks.iter().zip(&causes) {
        assert_eq!(sums.iter().map(|sum| sum.as_nanos()).sum::<u64>(), rank.idle.as_nanos());
    }
    assert!(causes[0][Cause::MemoryLimit as usize] > Duration::from_nanos(50 * MS), "{causes:?}");
    assert!(causes.iter().all(|sums| sums[Cause::OrderList as usize] == Duration::ZERO));
    let path = CriticalPath::new(&inputs, &outcome.record);
    check_path(&outcome, &path).unwrap();
}

/// Every step of a path starts when the one before it ends, from 0 to the makespan.
fn check_path(outcome: &Outcome, path: &CriticalPath) -> Result<(), TestCaseError> {
    let mut now = Time::ZERO;
    for step in &path.steps {
        prop_assert_eq!(step.interval.start, now);
        now = step.interval.end;
    }
    prop_assert_eq!(now, outcome.summary.makespan);
    let sum: u64 = path.by_kind(&outcome.record).iter().map(|length| length.as_nanos()).sum();
    prop_assert_eq!(sum, outcome.summary.makespan.as_nanos());
    let transfers = path.by_kind(&outcome.record)[PathKind::Transfer as usize];
    prop_assert!(path.count >= 1 && path.transfers.0 <= transfers && transfers <= path.transfers.1);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn causes_add_up_to_the_idle_time((name, inputs) in any_step()) {
        let Some(orders) = orders(name, &inputs) else { return Ok(()) };
        let outcome = simulate(&inputs, Plan::Fixed(orders)).unwrap();
        let intervals = idle_intervals(&inputs, &outcome.record, Chosen::Before);
        for one in &intervals {
            prop_assert!(one.interval.start < one.interval.end);
            let mut at = one.interval.start;
            for part in &one.parts {
                prop_assert!(part.interval.start == at && part.interval.end > at);
                at = part.interval.end;
                let waits = matches!(part.cause, Cause::Activation | Cause::Gradient | Cause::OrderList);
                // With lists given beforehand there is nothing to wait for but an input.
                prop_assert_eq!(waits || part.cause == Cause::WarmUp, part.delay.is_some());
                prop_assert_eq!(part.cause == Cause::OrderList, part.ready.is_some());
            }
            prop_assert_eq!(at, one.interval.end);
            if let Some(maker) = one.waits_for {
                prop_assert_eq!(outcome.record.messages.get(maker).end, one.interval.end);
            }
        }
        let sums: Vec<[Duration; CAUSES]> = idle_by_cause(inputs.shape().ranks(), &intervals);
        for (rank, causes) in outcome.summary.ranks.iter().zip(sums) {
            prop_assert_eq!(causes.iter().map(|sum| sum.as_nanos()).sum::<u64>(), rank.idle.as_nanos());
        }
    }

    #[test]
    fn critical_paths_are_as_long_as_the_step((name, inputs) in any_step()) {
        let Some(orders) = orders(name, &inputs) else { return Ok(()) };
        let outcome = simulate(&inputs, Plan::Fixed(orders)).unwrap();
        let path = CriticalPath::new(&inputs, &outcome.record);
        check_path(&outcome, &path)?;
        prop_assert!(path.steps.iter().all(|step| !matches!(step.element, Element::Held(_))));
    }

    #[test]
    fn changed_steps_are_the_steps_that_they_say((name, inputs) in any_step()) {
        let Some(orders) = orders(name, &inputs) else { return Ok(()) };
        let found = what_if(&inputs, &orders, 25).unwrap();
        let outcome = simulate(&inputs, Plan::Fixed(orders.clone())).unwrap();
        prop_assert_eq!(found.free_transfers, outcome.summary.zero_transfer_makespan);
        prop_assert_eq!(makespan(&inputs, &orders).unwrap(), outcome.summary.makespan);
        let work = |inputs: &Inputs| inputs.costs().stages.iter().map(|stage| {
            [stage.forward, stage.backward, stage.input_gradient, stage.weight_gradient].map(Duration::as_nanos)
        }).fold([0; 4], |sums: [u64; 4], one| [0, 1, 2, 3].map(|kind| sums[kind] + one[kind]));
        prop_assert_eq!(work(&balanced(&inputs).unwrap()), work(&inputs));
        for faster in &found.faster {
            let changed = with_faster(&inputs, faster.stage.unwrap(), 25).unwrap();
            prop_assert_eq!(faster.makespan, makespan(&changed, &orders).unwrap());
        }
    }
}
