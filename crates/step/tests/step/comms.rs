//! Lists that say when sends and receives are posted: what is posted early changes nothing, what is posted late
//! costs what the causes say.

use pipestep_engine::{Duration, Time};
use pipestep_schedule::csv::{CommsOrders, CommsStep, Expected, Message, lower_orders, read};
use pipestep_schedule::{Kind, Op, Orders, Plan, Rank};
use pipestep_step::{
    Cause, Chosen, Costs, CriticalPath, Element, FifoStep, Inputs, RankCost, idle_by_cause, idle_intervals,
    simulate, simulate_comms,
};
use proptest::prelude::*;

use crate::cases::{MS, any_step, message, orders, stage};

/// Two ranks, F 10 ms, B 20 ms, transfers 1 ms, no update.
fn run(text: &str) -> (Inputs, pipestep_step::Outcome, pipestep_step::Posts) {
    let file = read(text, &Expected::default()).unwrap();
    let stages = vec![stage(10 * MS, 20 * MS, 1, message(MS, 1)); file.shape.stages()];
    let ranks = vec![RankCost::default(); file.shape.ranks()];
    let inputs = Inputs::new(file.shape, Costs { stages, ranks, ..Costs::default() }).unwrap();
    let (outcome, posts) = simulate_comms(&inputs, &file.orders, &file.comms.unwrap()).unwrap();
    (inputs, outcome, posts)
}

fn at(outcome: &pipestep_step::Outcome, op: &str) -> (u64, u64) {
    let op: Op = op.parse().unwrap();
    let place = outcome.record.orders.all().iter().position(|&other| other == op).unwrap();
    let ran = outcome.record.ops.get(place);
    (ran.start.as_nanos() / MS, ran.end.as_nanos() / MS)
}

/// Rank 0 runs both forwards and then both backwards.
const FIRST: &str = "0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0RECV_B1,0B0,0WAIT_SEND_F0,0B1,0WAIT_SEND_F1\n";

#[test]
fn receives_that_are_posted_in_time_cost_nothing() {
    let (inputs, outcome, _) = run(&format!(
        "{FIRST}1RECV_F0,1RECV_F1,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1WAIT_SEND_B0,1WAIT_SEND_B1\n"
    ));
    assert_eq!((at(&outcome, "1F0"), at(&outcome, "1F1")), ((11, 21), (41, 51)));
    assert_eq!(outcome.summary.makespan, Time::from_nanos(92 * MS));
    let causes = idle_by_cause(2, &idle_intervals(&inputs, &outcome.record, Chosen::Before));
    assert!(causes.iter().all(|sums| sums[Cause::PostOrder as usize] == Duration::ZERO));
}

#[test]
fn a_receive_that_is_posted_late_delays_its_transfer() {
    // The receive of 1F1 stands after 1B0, at 41 ms: its transfer, which was hidden, is exposed.
    let (inputs, outcome, posts) = run(&format!(
        "{FIRST}1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1WAIT_SEND_B0,1WAIT_SEND_B1\n"
    ));
    assert_eq!((at(&outcome, "1F1"), at(&outcome, "0B1")), ((42, 52), (73, 93)));
    let intervals = idle_intervals(&inputs, &outcome.record, Chosen::Before);
    let causes = idle_by_cause(2, &intervals);
    assert_eq!(causes[1][Cause::PostOrder as usize], Duration::from_nanos(MS));
    let late = intervals.iter().find(|one| one.interval.start == Time::from_nanos(41 * MS)).unwrap();
    assert_eq!(posts.receives[late.waits_for.unwrap()], Time::from_nanos(41 * MS));
    assert_eq!(posts.sends[late.waits_for.unwrap()], Time::from_nanos(20 * MS));
    // The critical path comes to the late message by way of the operation after which it is received.
    let path = CriticalPath::with_posts(&inputs, &outcome.record, &posts);
    let text = |element| match element {
        Element::Operation(place) => outcome.record.orders.all()[place].to_string(),
        Element::Message(place) => format!("{} sent", outcome.record.orders.all()[place]),
        other => format!("{other:?}"),
    };
    let elements: Vec<String> = path.steps.iter().map(|step| text(step.element)).collect();
    let expected = ["0F0", "0F0 sent", "1F0", "1B0", "0F1 sent", "1F1", "1B1", "1B1 sent", "0B1"];
    assert_eq!((elements, path.count), (expected.map(String::from).to_vec(), 1));
}

#[test]
fn a_rank_that_waits_for_a_send_is_held_up_by_whoever_receives_late() {
    // Rank 0 waits for its second send before it goes on; rank 1 posts that receive only after 1B0, at 41 ms.
    let (inputs, outcome, posts) =
        run("0F0,0SEND_F0,0F1,0SEND_F1,0WAIT_SEND_F0,0WAIT_SEND_F1,0F2,0SEND_F2,0WAIT_SEND_F2,\
         0RECV_B0,0B0,0RECV_B1,0B1,0RECV_B2,0B2\n\
         1RECV_F0,1F0,1B0,1RECV_F1,1F1,1RECV_F2,1SEND_B0,1B1,1SEND_B1,1F2,1B2,1SEND_B2,\
         1WAIT_SEND_B0,1WAIT_SEND_B1,1WAIT_SEND_B2\n");
    assert_eq!((at(&outcome, "1F1"), at(&outcome, "0F2")), ((42, 52), (42, 52)));
    let intervals = idle_intervals(&inputs, &outcome.record, Chosen::Before);
    let first = intervals.iter().find(|one| one.rank == Rank(0)).unwrap();
    assert_eq!((first.interval.start.as_nanos(), first.interval.end.as_nanos()), (20 * MS, 42 * MS));
    let [part] = first.parts[..] else { panic!("{:?}", first.parts) };
    assert_eq!((part.cause, part.delay), (Cause::PostOrder, None));
    check_sums(&inputs, (&outcome, &posts)).unwrap();
}

#[test]
fn operations_may_run_in_another_order_than_their_inputs_come() {
    // The input of 1F0 comes first, at 11 ms, and that of 1F1 at 21 ms.
    let (_, outcome, _) =
        run("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B1,0RECV_B0,0B1,0B0,0WAIT_SEND_F0,0WAIT_SEND_F1\n\
         1RECV_F0,1RECV_F1,1F1,1F0,1B1,1SEND_B1,1B0,1SEND_B0,1WAIT_SEND_B1,1WAIT_SEND_B0\n");
    assert_eq!((at(&outcome, "1F1"), at(&outcome, "1F0")), ((21, 31), (31, 41)));
}

/// Every receive at the very start of its rank's list, every send right after what it sends, no waits.
fn eager(inputs: &Inputs, orders: &Orders) -> CommsOrders {
    let (shape, costs) = (inputs.shape(), inputs.costs());
    let ranks = (0..shape.ranks() as u16).map(Rank);
    let mut lists: Vec<Vec<CommsStep>> = vec![Vec::new(); shape.ranks()];
    for rank in ranks.clone() {
        for sent in in_order_of_ends(inputs, orders.rank(rank)) {
            if let Some((to, _)) = costs.message(shape, sent) {
                let message = if sent.kind == Kind::Forward {
                    Message::ReceiveForward
                } else {
                    Message::ReceiveBackward
                };
                let step = CommsStep::Message { message, stage: to, micro_batch: sent.micro_batch };
                lists[shape.rank_of(to).index()].push(step);
            }
        }
    }
    for rank in ranks {
        let list = orders.rank(rank);
        let mut place = 0;
        while place < list.len() {
            let length = if joined(inputs, list, place) { 2 } else { 1 };
            lists[rank.index()].push(CommsStep::Run(place..place + length));
            for sent in in_order_of_ends(inputs, &list[place..place + length]) {
                if costs.message(shape, sent).is_some() {
                    let message =
                        if sent.kind == Kind::Forward { Message::SendForward } else { Message::SendBackward };
                    let (stage, micro_batch) = (sent.stage, sent.micro_batch);
                    lists[rank.index()].push(CommsStep::Message { message, stage, micro_batch });
                }
            }
            place += length;
        }
    }
    CommsOrders { lists }
}

fn joined(inputs: &Inputs, list: &[Op], place: usize) -> bool {
    let rank = inputs.shape().rank_of(list[place].stage);
    list[place].paired && inputs.costs().ranks[rank.index()].overlapped_pair.is_some()
}

/// The list, with the forward first where two end together.
fn in_order_of_ends(inputs: &Inputs, list: &[Op]) -> Vec<Op> {
    let mut ops = list.to_vec();
    for place in 0..list.len() {
        if joined(inputs, list, place) {
            ops[place..place + 2].sort_by_key(|op| op.kind);
        }
    }
    ops
}

fn check_sums(
    inputs: &Inputs,
    (outcome, posts): (&pipestep_step::Outcome, &pipestep_step::Posts),
) -> Result<(), TestCaseError> {
    let intervals = idle_intervals(inputs, &outcome.record, Chosen::Before);
    let causes = idle_by_cause(inputs.shape().ranks(), &intervals);
    for (rank, sums) in outcome.summary.ranks.iter().zip(causes) {
        prop_assert_eq!(sums.iter().map(|sum| sum.as_nanos()).sum::<u64>(), rank.idle.as_nanos());
    }
    let paths = [
        CriticalPath::new(inputs, &outcome.record),
        CriticalPath::with_posts(inputs, &outcome.record, posts),
    ];
    for path in paths {
        let length: u64 = path.by_kind(&outcome.record).iter().map(|length| length.as_nanos()).sum();
        prop_assert_eq!(length, outcome.summary.makespan.as_nanos());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn posts_that_are_early_change_nothing_and_late_ones_never_help((name, inputs) in any_step()) {
        let Some(orders) = orders(name, &inputs) else { return Ok(()) };
        let eager = eager(&inputs, &orders);
        let (early, posts) = simulate_comms(&inputs, &orders, &eager).unwrap();
        check_sums(&inputs, (&early, &posts))?;
        let lowered = lower_orders(&orders, inputs.shape()).unwrap();
        let (late, posts) = simulate_comms(&inputs, &orders, &lowered).unwrap();
        check_sums(&inputs, (&late, &posts))?;
        if FifoStep::new(&inputs).is_some() {
            let plain = simulate(&inputs, Plan::Fixed(orders)).unwrap();
            prop_assert_eq!(&early, &plain);
            prop_assert!(late.summary.makespan >= plain.summary.makespan);
        }
    }
}
