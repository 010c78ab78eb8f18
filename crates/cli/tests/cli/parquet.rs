//! `results.parquet` has the rows of `results.csv`, with types, and is the same however the sweep came about.

use std::fs::{self, File};
use std::path::Path;

use parquet::basic::Type as Physical;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use crate::sweep::{assert_same, place, run};

fn open(directory: &Path) -> SerializedFileReader<File> {
    let file = File::open(directory.join("results.parquet")).expect("it was written");
    SerializedFileReader::new(file).expect("it is Parquet")
}

/// A field as the CSV has it.
fn as_in_csv(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Bool(value) => value.to_string(),
        Field::Long(value) => value.to_string(),
        Field::Double(value) => value.to_string(),
        Field::Str(value) => value.clone(),
        Field::ListInternal(list) => list.elements().iter().map(as_in_csv).collect::<Vec<_>>().join(" "),
        other => panic!("no column holds {other:?}"),
    }
}

#[test]
fn parquet_has_the_rows_of_the_csv() {
    let place = place();
    let at = place.path();
    let vary = ["--vary", "time.forward=10 ms,11 ms", "--vary", "time.weight_gradient_fraction=0,0.5"];
    assert_eq!(
        run(at, &[&["sweep", "small.toml", "--out", "all", "--quiet"], &vary[..]].concat()).0,
        Some(0)
    );
    let mut csv = csv::Reader::from_path(at.join("all/results.csv")).expect("it is there");
    let header: Vec<String> = csv.headers().expect("a header").iter().map(str::to_owned).collect();
    let rows: Vec<csv::StringRecord> = csv.records().collect::<Result<_, _>>().expect("it is whole");

    let reader = open(&at.join("all"));
    let read: Vec<_> = reader.get_row_iter(None).expect("rows").collect::<Result<_, _>>().expect("whole");
    assert_eq!((read.len(), rows.len()), (192, 192));
    for (typed, text) in read.iter().zip(&rows) {
        let typed: Vec<(String, String)> =
            typed.get_column_iter().map(|(name, field)| (name.clone(), as_in_csv(field))).collect();
        let text: Vec<(String, String)> =
            header.iter().cloned().zip(text.iter().map(str::to_owned)).collect();
        assert_eq!(typed, text);
    }
    let schema = reader.metadata().file_metadata().schema_descr();
    let column = |name: &str| {
        let found = schema.columns().iter().find(|column| column.path().parts()[0] == name);
        found.unwrap_or_else(|| panic!("{name}")).physical_type()
    };
    for (name, expected) in [
        ("pipeline.micro_batches", Physical::INT64),
        ("time.weight_gradient_fraction", Physical::DOUBLE),
        ("time.forward", Physical::BYTE_ARRAY),
        ("makespan_ns", Physical::INT64),
        ("peak_bytes_by_rank", Physical::INT64),
        ("utilisation", Physical::DOUBLE),
        ("fits", Physical::BOOLEAN),
        ("reason", Physical::BYTE_ARRAY),
    ] {
        assert_eq!(column(name), expected, "{name}");
    }
}

#[test]
fn resumed_and_merged_sweeps_have_the_same_file() {
    let place = place();
    let at = place.path();
    let sweep =
        |more: &[&str]| assert_eq!(run(at, &[&["sweep", "small.toml", "--quiet"], more].concat()).0, Some(0));
    sweep(&["--out", "whole"]);
    for shard in ["1/2", "2/2"] {
        sweep(&["--shard", shard, "--out", &shard[..1]]);
        assert!(!at.join(&shard[..1]).join("results.parquet").exists(), "a shard is no whole");
    }
    assert_eq!(run(at, &["sweep", "--merge", "1", "2", "--out", "merged", "--quiet"]).0, Some(0));
    assert_same(&at.join("whole"), &at.join("merged"));
    // As if it had been killed half-way.
    fs::create_dir(at.join("half")).expect("there is room");
    fs::copy(at.join("whole/sweep.json"), at.join("half/sweep.json")).expect("it is there");
    let rows = fs::read_to_string(at.join("whole/results.csv")).expect("it is there");
    fs::write(at.join("half/results.csv"), &rows[..rows.len() / 2]).expect("there is room");
    sweep(&["--out", "half", "--resume"]);
    assert_same(&at.join("whole"), &at.join("half"));
}
