//! Schedule files: PyTorch's own, its verdict on odd ones, and round trips.

use std::fs;
use std::path::PathBuf;

use pipestep_schedule::csv::{CsvError, Expected, compute_comms, compute_only, read};
use pipestep_schedule::{Chunks, Options, Plan, Rank, Shape, Weights, all};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{of_class, plan, shape_of, text};

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "it", "data", "pytorch_csv"].iter().collect()
}

fn json(name: &str) -> Vec<Value> {
    serde_json::from_str(&fs::read_to_string(folder().join(name)).unwrap()).unwrap()
}

fn number(case: &Value, key: &str) -> usize {
    case[key].as_u64().unwrap() as usize
}

/// Every file that PyTorch wrote, against our schedule of the same class and against the reader.
#[test]
fn pytorchs_own_files_are_read_and_written() {
    for case in json("index.json") {
        let name = case["file"].as_str().unwrap();
        let format = case["format"].as_str().unwrap();
        if format == "simulated_steps" {
            continue;
        }
        let (schedule, options) = of_class(case["schedule"].as_str().unwrap());
        let shape = shape_of(
            schedule,
            number(&case, "pp"),
            number(&case, "stages_per_rank"),
            number(&case, "microbatches"),
        );
        let orders = plan(schedule, &shape, &Weights::unit(&shape), options).unwrap();
        let theirs = fs::read_to_string(folder().join(name)).unwrap();
        let file = read(&theirs, &Expected::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(file.orders, orders, "{name}");
        assert_eq!(file.shape.micro_batches(), shape.micro_batches(), "{name}");
        assert_eq!(file.comms.is_some(), format == "compute_comms", "{name}");
        if format == "compute_comms" {
            assert_eq!(compute_comms(&orders, &shape).unwrap(), theirs, "{name}");
        } else {
            let without_idle = |line: &str| {
                line.split(',').filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(",") + "\r\n"
            };
            let expected: String = theirs.lines().map(without_idle).collect();
            assert_eq!(compute_only(&orders), expected, "{name}");
        }
    }
}

/// Files that PyTorch loads and we refuse, each with what we say: they could not run, or have no meaning.
const STRICTER: [(&str, &str); 6] = [
    ("mb_from_one", "row 1, column 2: `0F2` names micro-batch 2, but there are 2, numbered from 0"),
    ("overlap_empty", "row 1, column 3: `()OVERLAP_F_B` has no parts"),
    ("duplicate_forward_last_stage", "row 2, column 2: `1F0` stands in the list twice"),
    (
        "double_backward_one_mb",
        "row 1, column 4: `0I0` comes after the full backward of the same micro-batch",
    ),
    ("comms_missing_recv", "row 2, column 1: `1F0` has no `1RECV_F0` before it"),
    (
        "comms_crossed_order",
        "deadlock: row 1, column 5: `0B0` waits for `1B0`; row 2, column 4: `1F1` waits for `0F1`",
    ),
];

/// What we say about files that PyTorch refuses too.
const REFUSED: [(&str, &str); 21] = [
    ("overlap_inner_chain", "deadlock: row 1, column 3: `(0F1;1B0;0B0)OVERLAP_F_B` waits for `1B0`"),
    (
        "bare_stage_overlap",
        "row 1, column 3: `0OVERLAP_F_B` is no action: `OVERLAP_F_B` stands after a bracket",
    ),
    ("duplicate_forward_first_stage", "row 1, column 2: `0F0` stands in the list twice"),
    ("blank_line_at_end", "row 3 holds no action: every row is a rank, a blank line too"),
    ("header_row", "row 1, column 1: `Rank 0` is no action"),
    ("comment_row", "row 1, column 1: `# schedule` is no action"),
    ("utf8_bom", "row 1 starts with a byte order mark"),
    ("lower_case", "row 1, column 1: `0f0` is no action: write `F` in upper case"),
    ("no_microbatch", "row 1, column 1: `0F` has no micro-batch"),
    ("too_few_rows", "expected one row for each of 2 ranks, found 1 rows"),
    ("too_many_rows", "expected one row for each of 2 ranks, found 3 rows"),
    ("stage_out_of_range", "row 2, column 1: `2F0` names stage 2, but there are 2, numbered from 0"),
    ("missing_forward", "row 1: `0F1` is missing"),
    ("forward_only", "row 1: `0B0` is missing"),
    ("missing_weight", "row 1: `0W0` is missing"),
    ("weight_before_input", "row 1, column 3: `0W0` comes before its input-gradient backward"),
    ("backward_before_forward", "row 1, column 1: `0B0` comes before its forward"),
    ("stage_on_two_ranks", "row 2, column 1: `1F0` is of stage 1, which row 1 has"),
    (
        "cross_rank_deadlock",
        "deadlock: row 1, column 2: `0B0` waits for `1B0`; row 2, column 2: `1F1` waits for `0F1`",
    ),
    (
        "comms_old_style_no_waits",
        "row 1, column 2: `0SEND_F0` is never waited for: write `0WAIT_SEND_F0` after it",
    ),
    (
        "comms_reduce_without_wait",
        "row 1, column 11: `0REDUCE_GRAD` is never waited for: write `0WAIT_REDUCE_GRAD`",
    ),
];

#[test]
fn odd_files_get_pytorchs_verdict_or_a_stricter_one() {
    for case in json("edge/verdicts.json") {
        let name = case["file"].as_str().unwrap();
        let expected = Expected {
            ranks: Some(number(&case, "pp")),
            stages: Some(number(&case, "num_stages")),
            micro_batches: Some(number(&case, "microbatches")),
        };
        let file = read(&fs::read_to_string(folder().join("edge").join(name)).unwrap(), &expected);
        let stem = name.trim_end_matches(".csv");
        let said = |list: &[(&str, &'static str)]| {
            list.iter().find(|(known, _)| *known == stem).map(|&(_, said)| said)
        };
        let loads = case["torch_loads"] == true;
        let stricter = said(&STRICTER).filter(|_| loads);
        match file {
            Ok(file) => {
                assert!(loads && stricter.is_none(), "{name} is accepted");
                let orders = case["orders"].as_array().unwrap();
                let cells = |row: &Value| -> Vec<String> {
                    let row = row.as_array().unwrap().iter();
                    row.flat_map(|cell| parts(cell.as_str().unwrap())).collect()
                };
                for (rank, row) in orders.iter().enumerate() {
                    let ours: Vec<String> =
                        file.orders.rank(Rank(rank as u16)).iter().map(ToString::to_string).collect();
                    assert_eq!(ours, cells(row), "{name}");
                }
            }
            Err(error) => {
                let expected = if loads { stricter } else { said(&REFUSED) };
                let text = error.to_string();
                match expected {
                    Some(expected) => assert!(text.starts_with(expected), "{name}: {text}"),
                    // The formats mixed in one file, and idle cells in the wrong one.
                    None => assert!(!loads && name.starts_with("comms_"), "{name}: {text}"),
                }
            }
        }
    }
}

/// The operations of a cell, brackets undone.
fn parts(cell: &str) -> Vec<String> {
    match cell.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((inside, _)) => inside.split(';').map(|part| part.trim().to_owned()).collect(),
        None => vec![cell.to_owned()],
    }
}

/// A file is read without knowing what to expect; the errors of a real one name the place.
#[test]
fn shapes_are_taken_from_the_file() {
    let file =
        read("0F0,0F1,3F0,3F1,3B0,3B1,0B0,0B1\n1F0,2F0,1F1,2F1,2B0,1B0,2B1,1B1\n", &Expected::default());
    let shape = file.unwrap().shape;
    assert_eq!((shape.ranks(), shape.stages(), shape.micro_batches(), shape.chunks()), (2, 4, 2, 2));
    for (text, expected) in [
        ("", "the file is empty: expected one row for each rank"),
        ("0F0,0B0\n2F0,2B0", "stage 1 is in no row"),
        (
            "0F0,0B0\n1F0,1B0,1F400000000",
            "row 2, column 3: `1F400000000` names micro-batch 400000000, more than",
        ),
        (
            "0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0\n1F0,1RECV_F0,1B0,1SEND_B0,1WAIT_SEND_B0",
            "row 2, column 1: `1F0` has no",
        ),
        (
            "0F0,0SEND_F0,0WAIT_SEND_F0,0F1,0SEND_F1,0WAIT_SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n\
             1RECV_F1,1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0,1F1,1B1,1SEND_B1,1WAIT_SEND_B1",
            "row 1, column 2: `0SEND_F0` is not received in the order in which it is sent (row 1 to row 2)",
        ),
        (
            "0F0,0SEND_F0,0WAIT_SEND_F0,0F1,0SEND_F1,0WAIT_SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n\
             1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1WAIT_SEND_B1",
            "deadlock: row 1, column 6: `0WAIT_SEND_F1` waits for `1RECV_F1`; \
             row 2, column 5: `1WAIT_SEND_B0` waits for `0RECV_B0`",
        ),
    ] {
        let error = read(text, &Expected::default()).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
    let error = read("0F0,0X0\n", &Expected::default()).unwrap_err();
    assert!(matches!(error, CsvError::Cell { row: 1, column: 2, .. }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// What is written is read back: every schedule with one copy of the model and an order of its own.
    #[test]
    fn files_round_trip(ranks in 1_u64..6, micro_batches in 1_u64..10, wish in 1_u64..4) {
        for schedule in all().iter().filter(|schedule| !schedule.entry().uses_weights) {
            let entry = schedule.entry();
            let chunks = match entry.chunks {
                Chunks::Exactly(count) => u64::from(count),
                Chunks::Any => wish,
                Chunks::Even => 2 * wish,
            };
            let Ok(shape) = Shape::new(ranks, chunks, micro_batches, entry.placement) else { continue };
            let planned = schedule.plan(&shape, &Weights::unit(&shape), &Options::default());
            let (1, Ok(Plan::Fixed(orders))) = (shape.copies(), planned) else { continue };
            let file = read(&compute_only(&orders), &Expected::default()).unwrap();
            prop_assert_eq!(text(&file.orders), text(&orders));
            prop_assert_eq!(&file.orders, &orders);
            let comms = read(&compute_comms(&orders, &shape).unwrap(), &Expected::default()).unwrap();
            prop_assert_eq!(&comms.orders, &orders);
            if shape.messages() > 0 {
                let comms = comms.comms.unwrap();
                let ends = (0..ranks as u16).flat_map(|from| (0..ranks as u16).map(move |to| (from, to)));
                for (from, to) in ends.filter(|(from, to)| from != to) {
                    let (sends, receives) = comms.channel(&shape, Rank(from), Rank(to));
                    prop_assert_eq!(sends, receives);
                }
            }
        }
    }

    /// Whatever a file holds, reading it ends with orders that can run or with an error that says where.
    #[test]
    fn no_text_breaks_the_reader(
        cells in prop::collection::vec(
            prop_oneof![
                "[0-2][FBIW][0-2]",
                "[0-2](SEND_F|RECV_F|SEND_B|RECV_B|WAIT_SEND_F|WAIT_SEND_B)[0-1]",
                "[0-2](UNSHARD|RESHARD|REDUCE_GRAD|WAIT_REDUCE_GRAD)",
                "\\([0-1][FBIW][0-1];[0-1][FBIW][0-1]\\)OVERLAP_F_B",
                "[0-9FBIW();,\"\r\n ]{0,6}",
                Just("\n".to_owned()),
            ],
            0..24,
        ),
    ) {
        if let Ok(file) = read(&cells.join(","), &Expected::default()) {
            prop_assert_eq!(file.orders.validate(&file.shape), Ok(()));
        }
    }
}
