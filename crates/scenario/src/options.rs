//! Options of schedules, written as keys of `[pipeline]`.
//!
//! Which there are, and what they take, the registry of schedules says; nothing here names one.

use std::collections::BTreeMap;

use pipestep_schedule::{OptionSpec, Schedule};

use crate::diagnostic::Span;
use crate::read::{FromItem, Place, Problems, choose, join};
use crate::table::Rest;
use crate::tree::{Item, Table};

/// The options that were written, by name, each with its number and where its key stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct WrittenOptions(pub BTreeMap<String, (u64, Span)>);

/// Every option of every schedule, with the schedules that take it.
pub(crate) fn all_options() -> BTreeMap<&'static str, (OptionSpec, Vec<&'static str>)> {
    let mut options = BTreeMap::new();
    for schedule in pipestep_schedule::all() {
        for spec in schedule.entry().options {
            let (_, takers) = options.entry(spec.name).or_insert_with(|| (*spec, Vec::new()));
            takers.push(schedule.entry().name);
        }
    }
    options
}

/// Whether a schedule takes an option.
pub(crate) fn takes(schedule: &dyn Schedule, option: &str) -> bool {
    schedule.entry().options.iter().any(|spec| spec.name == option)
}

impl Rest for WrittenOptions {
    fn read(table: &Table, place: &Place<'_>, problems: &mut Problems) -> Self {
        let mut written = BTreeMap::new();
        for (name, (spec, _)) in all_options() {
            if let Some(entry) = table.get(name)
                && let Some(value) = read_option(&entry.item, &spec, place, problems)
            {
                written.insert(name.to_owned(), (value, entry.key_span));
            }
        }
        Self(written)
    }

    fn list_keys(path: &str, keys: &mut Vec<String>) {
        keys.extend(all_options().keys().map(|name| join(path, name)));
    }
}

fn read_option(item: &Item, spec: &OptionSpec, inside: &Place<'_>, problems: &mut Problems) -> Option<u64> {
    let path = join(inside.path, spec.name);
    match spec.choices.first() {
        Some(word) => {
            let example = format!("\"{word}\"");
            let place = Place { path: &path, example: &example };
            choose(item, &place, spec.choices.iter().copied(), problems).map(|number| number as u64)
        }
        None => u64::from_item(item, &Place { path: &path, example: "4" }, problems),
    }
}
