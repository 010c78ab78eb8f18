//! Options of schedules as flags: `--backward-order forward` for the option `backward_order`.
//!
//! The registry says which there are; nothing here names one. Values are not checked here: they become values of
//! `[pipeline]`, whose reader has the better words.

use std::collections::BTreeMap;

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use pipestep_schedule::OptionSpec;

/// The options that were typed, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScheduleOptions(pub(crate) BTreeMap<&'static str, String>);

/// Every option of every schedule, by name.
fn all_options() -> BTreeMap<&'static str, &'static OptionSpec> {
    let entries = pipestep_schedule::all().iter().map(|schedule| schedule.entry());
    let options = entries.flat_map(|entry| entry.options);
    options.map(|spec| (spec.name, spec)).collect()
}

/// `--backward-order` for `backward_order`, without the dashes in front.
fn flag(name: &str) -> String {
    name.replace('_', "-")
}

impl Args for ScheduleOptions {
    fn augment_args(command: Command) -> Command {
        all_options().into_values().fold(command, |command, spec| {
            let takers = pipestep_schedule::all()
                .iter()
                .map(|schedule| schedule.entry())
                .filter(|entry| entry.options.iter().any(|option| option.name == spec.name));
            let takers: Vec<&str> = takers.map(|entry| entry.name).collect();
            let value_name = match spec.choices {
                [] => "N".to_owned(),
                words => words.join("|"),
            };
            let help = format!("{}: {}; default {}", takers.join(", "), spec.meaning, spec.default);
            command.arg(Arg::new(spec.name).long(flag(spec.name)).value_name(value_name).help(help))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ScheduleOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut options = Self::default();
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for name in all_options().into_keys() {
            if let Some(value) = matches.get_one::<String>(name) {
                self.0.insert(name, value.clone());
            }
        }
        Ok(())
    }
}

impl ScheduleOptions {
    /// Each option with the flag it was typed as.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, String, &str)> {
        self.0.iter().map(|(name, value)| (*name, format!("--{}", flag(name)), value.as_str()))
    }
}
