//! The rows of a finished sweep as Parquet, with the types that its columns have.
//!
//! It is made at the end, from `results.csv` alone. So a sweep that was resumed or merged from shards has the same
//! file as any other. Columns are those of the CSV, in their order; what is empty there is null here, peaks by rank are
//! a list, and a swept key has a type of its own where all of its values are numbers or truth values.
//!
//! Deliberately absent: Arrow. Writing columns needs none of it.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use csv::StringRecord;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;

use super::fields::{FIRST, Kind, LAST};
use super::manifest::Manifest;
use super::store::read_finished;
use crate::output::{Target, write_all};

/// Its name in the directory.
const FILE: &str = "results.parquet";
/// Rows that are kept in memory at a time.
const GROUP: usize = 1 << 14;

/// A column: what it is called and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    name: String,
    kind: Kind,
}

/// Writes `results.parquet` beside the `results.csv` of a finished sweep, whole or not at all.
///
/// # Errors
/// The sweep is not done; what the system reports.
pub(crate) fn write(directory: &Path, manifest: &Manifest) -> Result<()> {
    let columns = columns(directory, manifest)?;
    let target = Target::InDirectory(directory.to_owned(), FILE);
    write_all(&[((), target)], |(), to| write_to(directory, &columns, GROUP, to))
}

/// All columns; the type of a swept key is the narrowest that all of its values have.
fn columns(directory: &Path, manifest: &Manifest) -> Result<Vec<Column>> {
    let keys = manifest.keys();
    let mut kinds: Vec<Option<Kind>> = vec![None; keys.len()];
    let mut reader = read_finished(directory)?;
    let mut record = StringRecord::new();
    while reader.read_record(&mut record)? {
        for (kind, value) in kinds.iter_mut().zip(record.iter().skip(1)) {
            *kind = Some(common(*kind, kind_of(value)));
        }
    }
    let column = |name: String, kind| Column { name, kind };
    let first = std::iter::once(column(FIRST.to_owned(), Kind::Whole));
    let swept = keys.into_iter().zip(kinds).map(|((key, _), kind)| column(key, kind.unwrap_or(Kind::Text)));
    let last = LAST.into_iter().map(|(name, kind)| column(name.to_owned(), kind));
    Ok(first.chain(swept).chain(last).collect())
}

/// What a value is on its own.
fn kind_of(value: &str) -> Kind {
    if matches!(value, "true" | "false") {
        Kind::Truth
    } else if value.parse::<i64>().is_ok() {
        Kind::Whole
    } else if value.parse::<f64>().is_ok_and(f64::is_finite) {
        Kind::Real
    } else {
        Kind::Text
    }
}

/// What values of two kinds are together.
fn common(before: Option<Kind>, next: Kind) -> Kind {
    match (before, next) {
        (None, next) => next,
        (Some(before), next) if before == next => next,
        (Some(Kind::Whole | Kind::Real), Kind::Whole | Kind::Real) => Kind::Real,
        _ => Kind::Text,
    }
}

fn write_to(directory: &Path, columns: &[Column], group: usize, to: &mut dyn Write) -> Result<()> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        // The version of pipestep is in `sweep.json`; that of a library is nobody's business.
        .set_created_by("pipestep".to_owned())
        .build();
    let encoded = Encoded::default();
    let schema = Arc::new(schema(columns)?);
    let mut writer = SerializedFileWriter::new(encoded.clone(), schema, Arc::new(properties))?;
    let mut reader = read_finished(directory)?;
    let mut records = reader.records();
    loop {
        let rows: Vec<StringRecord> = records.by_ref().take(group).collect::<Result<_, _>>()?;
        if rows.is_empty() {
            break;
        }
        let mut row_group = writer.next_row_group()?;
        for (place, column) in columns.iter().enumerate() {
            let cells: Vec<&str> = rows.iter().map(|row| row.get(place).unwrap_or_default()).collect();
            write_column(&mut row_group, column.kind, &cells)
                .with_context(|| format!("the column `{}`", column.name))?;
        }
        row_group.close()?;
        encoded.drain_to(to)?;
    }
    writer.close()?;
    Ok(encoded.drain_to(to)?)
}

/// Every column may be null but the number of the point and whether it was simulated.
fn schema(columns: &[Column]) -> Result<Type> {
    let field = |Column { name, kind }: &Column| {
        let how = if name == FIRST || name == "simulated" { "required" } else { "optional" };
        match kind {
            Kind::Text => format!("{how} binary {name} (STRING);"),
            Kind::Whole => format!("{how} int64 {name};"),
            Kind::Real => format!("{how} double {name};"),
            Kind::Truth => format!("{how} boolean {name};"),
            Kind::Wholes => {
                format!("{how} group {name} (LIST) {{ repeated group list {{ required int64 element; }} }}")
            }
        }
    };
    let fields: Vec<String> = columns.iter().map(field).collect();
    Ok(parse_message_type(&format!("message sweep {{ {} }}", fields.join(" ")))?)
}

/// Writes one column of a group of rows.
fn write_column(group: &mut SerializedRowGroupWriter<'_, Encoded>, kind: Kind, cells: &[&str]) -> Result<()> {
    match kind {
        Kind::Text => put::<ByteArrayType>(group, cells, |cell| Some(ByteArray::from(cell))),
        Kind::Whole => put::<Int64Type>(group, cells, |cell| cell.parse().ok()),
        Kind::Real => put::<DoubleType>(group, cells, |cell| cell.parse().ok()),
        Kind::Truth => put::<BoolType>(group, cells, |cell| cell.parse().ok()),
        Kind::Wholes => put_lists(group, cells),
    }
}

/// Cells that are empty are null.
fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Encoded>,
    cells: &[&str],
    read: impl Fn(&str) -> Option<T::T>,
) -> Result<()> {
    let there = |cell: &&str| !cell.is_empty();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(there(cell))).collect();
    let values = cells
        .iter()
        .filter(|cell| there(cell))
        .map(|cell| read(cell).with_context(|| format!("`{cell}` does not fit; `results.csv` has it")));
    let values: Vec<T::T> = values.collect::<Result<_>>()?;
    let mut column = group.next_column()?.context("internal error: a column without a place")?;
    // A required column has no levels, and ignores them.
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    Ok(column.close()?)
}

/// Cells with several numbers are lists; those that are empty are null.
fn put_lists(group: &mut SerializedRowGroupWriter<'_, Encoded>, cells: &[&str]) -> Result<()> {
    let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for cell in cells {
        if cell.is_empty() {
            defined.push(0);
            repeated.push(0);
        }
        for (place, number) in cell.split_whitespace().enumerate() {
            values.push(
                number
                    .parse::<i64>()
                    .with_context(|| format!("`{number}` does not fit; `results.csv` has it"))?,
            );
            defined.push(2);
            repeated.push(i16::from(place > 0));
        }
    }
    let mut column = group.next_column()?.context("internal error: a column without a place")?;
    column.typed::<Int64Type>().write_batch(&values, Some(&defined), Some(&repeated))?;
    Ok(column.close()?)
}

/// What has been encoded and not yet written: the writer of Parquet keeps its target, which has to be one that another
/// thread could have, to itself.
#[derive(Clone, Debug, Default)]
struct Encoded(Arc<Mutex<Vec<u8>>>);

impl Encoded {
    fn drain_to(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        to.write_all(&bytes)?;
        bytes.clear();
        Ok(())
    }
}

impl Write for Encoded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    #[test]
    fn rows_come_in_groups_and_nothing_is_lost_between() {
        let place = tempfile::tempdir().expect("there is room");
        let header = LAST.iter().fold("point,a.b".to_owned(), |line, (name, _)| line + "," + name);
        let row = |point: u64| {
            let cells = LAST.iter().map(|(name, kind)| match kind {
                _ if *name == "simulated" => "true".to_owned(),
                Kind::Wholes if point != 1 => format!("{point} 2 3"),
                Kind::Whole => point.to_string(),
                _ => String::new(),
            });
            format!("{point},{point}.5,{}\n", cells.collect::<Vec<_>>().join(","))
        };
        let text: String = std::iter::once(header + "\n").chain((0..7).map(row)).collect();
        fs::write(place.path().join("results.csv"), text).expect("there is room");
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        let mut columns = vec![column(FIRST, Kind::Whole), column("a.b", Kind::Real)];
        columns.extend(LAST.iter().map(|&(name, kind)| column(name, kind)));
        for (group, groups) in [(1, 7), (3, 3), (7, 1), (100, 1)] {
            let path = place.path().join(FILE);
            let mut file = File::create(&path).expect("there is room");
            write_to(place.path(), &columns, group, &mut file).expect("it is right");
            let file = File::open(&path).expect("it was just written");
            let reader = SerializedFileReader::new(file).expect("it is Parquet");
            assert_eq!(reader.num_row_groups(), groups);
            let rows: Vec<_> =
                reader.get_row_iter(None).expect("rows").collect::<Result<_, _>>().expect("whole");
            let points: Vec<i64> = rows.iter().map(|row| row.get_long(0).expect("a number")).collect();
            assert_eq!(points, (0..7).collect::<Vec<i64>>());
            assert!(rows[1].get_list(13).is_err(), "an empty cell is null");
            assert_eq!(rows[6].get_list(13).expect("a list").len(), 3);
        }
        let wrong = fs::read_to_string(place.path().join("results.csv")).expect("it is there");
        fs::write(place.path().join("results.csv"), wrong.replace("6.5", "many")).expect("there is room");
        let error = write_to(place.path(), &columns, 9, &mut Vec::new()).expect_err("no number");
        assert!(format!("{error:#}").contains("the column `a.b`: `many`"), "{error:#}");
    }

    #[test]
    fn a_key_has_the_narrowest_type_of_its_values() {
        let of =
            |values: &[&str]| values.iter().fold(None, |before, value| Some(common(before, kind_of(value))));
        assert_eq!(of(&["1", "-2"]), Some(Kind::Whole));
        assert_eq!(of(&["1", "2.5", "3"]), Some(Kind::Real));
        assert_eq!(of(&["true", "false"]), Some(Kind::Truth));
        assert_eq!(of(&["10 ms", "20 ms"]), Some(Kind::Text));
        assert_eq!(of(&["1", "true"]), Some(Kind::Text));
        assert_eq!(of(&["1", "nan"]), Some(Kind::Text));
        assert_eq!(of(&[]), None);
    }
}
