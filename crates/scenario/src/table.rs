//! The macro that declares one table of the format: its keys, their types and documentation, what is required.
//!
//! From one declaration come the struct that holds the table as it was written, its reading with unknown and
//! missing keys reported, and its JSON schema.

use crate::diagnostic::{Diagnostic, Span};
use crate::read::{Place, Problems, closest, join};
use crate::tree::{Item, Node, Table};

/// Declares a table: `Name requires [keys] { key: Type = "example", ... }`.
macro_rules! table {
    (
        $(#[$meta:meta])*
        $name:ident requires [$($required:ident),*] {
            $( $(#[$doc:meta])* $field:ident : $type:ty = $example:literal, )*
        }
        $(with $rest:ident : $rest_type:ty)?
    ) => {
        $(#[$meta])*
        #[derive(schemars::JsonSchema)]
        #[schemars(deny_unknown_fields, extend("required" = [$(stringify!($required)),*] as [&str; _]))]
        pub(crate) struct $name {
            $( $(#[$doc])* #[schemars(default)] pub(crate) $field: $crate::read::Key<$type>, )*
            $( #[schemars(skip)] pub(crate) $rest: $rest_type, )?
        }

        impl $crate::read::FromItem for $name {
            fn from_item(
                item: &$crate::tree::Item,
                place: &$crate::read::Place<'_>,
                problems: &mut $crate::read::Problems,
            ) -> Option<Self> {
                let table = $crate::table::open(item, place, problems)?;
                // Only its own: to list those of all tables below takes longer than all else in a point of a sweep.
                #[allow(unused_mut, reason = "only a table with further keys adds to them")]
                let mut keys = vec![$(stringify!($field).to_owned()),*];
                $( <$rest_type as $crate::table::Rest>::list_keys("", &mut keys); )?
                $crate::table::check_keys(table, &keys, place, problems);
                let examples = [$((stringify!($field), $example)),*];
                let required: &[&str] = &[$(stringify!($required)),*];
                $crate::table::check_required(item.span, table, required, &examples, place, problems);
                Some(Self {
                    $( $field: $crate::read::read_key(
                        table, stringify!($field), $example, place, problems,
                    ), )*
                    $( $rest: <$rest_type as $crate::table::Rest>::read(table, place, problems), )?
                })
            }

            fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                generator.subschema_for::<Self>()
            }

            fn list_keys(path: &str, keys: &mut Vec<String>) {
                $( <$type as $crate::read::FromItem>::list_keys(
                    &$crate::read::join(path, stringify!($field)), keys,
                ); )*
                $( <$rest_type as $crate::table::Rest>::list_keys(path, keys); )?
            }
        }
    };
}
pub(crate) use table;

/// Keys of a table that are not known when the format is written down: options of schedules.
pub(crate) trait Rest: Sized {
    /// Reads those of them that are there.
    fn read(table: &Table, place: &Place<'_>, problems: &mut Problems) -> Self;

    /// All of them, dotted.
    fn list_keys(path: &str, keys: &mut Vec<String>);
}

/// The table in `item`, or `None` after reporting that it is none.
pub(crate) fn open<'a>(item: &'a Item, place: &Place<'_>, problems: &mut Problems) -> Option<&'a Table> {
    if let Node::Table(table) = &item.node {
        return Some(table);
    }
    let message = format!("`{}`: expected a table, found {}", place.path, item.describe());
    problems.push(Diagnostic::new(item.span, message).help(format!("begin it with `[{}]`", place.path)));
    None
}

/// Reports every key of `table` that is the first part of none of `known`.
pub(crate) fn check_keys(table: &Table, known: &[String], place: &Place<'_>, problems: &mut Problems) {
    let mut first_parts: Vec<&str> = known.iter().map(|key| key.split('.').next().unwrap_or(key)).collect();
    first_parts.dedup();
    for entry in &table.entries {
        if !first_parts.contains(&entry.key.as_str()) {
            let is_table = matches!(entry.item.node, Node::Table(_));
            problems.push(unknown_key(&entry.key, entry.key_span, is_table, &first_parts, place));
        }
    }
}

fn unknown_key(key: &str, span: Span, is_table: bool, known: &[&str], place: &Place<'_>) -> Diagnostic {
    let at_top = place.path.is_empty();
    let message = match (at_top, is_table) {
        (true, true) => format!("unknown table `[{key}]`"),
        (true, false) => format!("unknown key `{key}`"),
        (false, _) => format!("unknown key `{key}` in `[{}]`", place.path),
    };
    let problem = Diagnostic::new(span, message);
    if let Some(near) = closest(key, known.iter().copied()) {
        return problem.help(format!("did you mean `{near}`?"));
    }
    let mut everywhere = Vec::new();
    <crate::format::File as crate::read::FromItem>::list_keys("", &mut everywhere);
    let elsewhere = everywhere.iter().filter_map(|path| path.rsplit_once('.'));
    let homes: Vec<String> = elsewhere
        .filter(|&(table, name)| name == key && table != place.path)
        .map(|(table, _)| format!("`[{table}]`"))
        .collect();
    // A parameter of distributions is at home in too many places to help.
    match ((1..=5).contains(&homes.len()), at_top) {
        (true, _) => problem.help(format!("`{key}` is a key of {}", homes.join(" and "))),
        (false, true) => {
            let tables = known.iter().filter(|&&name| name != "name");
            let tables: Vec<String> = tables.map(|name| format!("`[{name}]`")).collect();
            problem.help(format!("the tables are {}", tables.join(", ")))
        }
        (false, false) => problem.help(format!("its keys are {}", known.join(", "))),
    }
}

/// Reports every required key that is not there.
pub(crate) fn check_required(
    span: Span,
    table: &Table,
    required: &[&str],
    examples: &[(&str, &str)],
    place: &Place<'_>,
    problems: &mut Problems,
) {
    for &key in required {
        if table.get(key).is_none() {
            let example = examples.iter().find(|&&(name, _)| name == key);
            let example = example.map_or("...", |&(_, example)| example);
            let message = format!("`[{}]` needs `{key}`", place.path);
            let help = match example {
                // A table inside the table.
                "" => format!("begin it with `[{}]`", join(place.path, key)),
                example => format!("write `{key} = {example}`"),
            };
            problems.push(Diagnostic::new(span, message).help(help));
        }
    }
}

/// Whether `path` names a value of the format.
pub(crate) fn is_known(path: &str) -> bool {
    let mut keys = Vec::new();
    <crate::format::File as crate::read::FromItem>::list_keys("", &mut keys);
    keys.iter().any(|key| key == path)
}

/// All dotted keys of the format that begin with `path`.
pub(crate) fn known_keys() -> Vec<String> {
    let mut keys = Vec::new();
    <crate::format::File as crate::read::FromItem>::list_keys("", &mut keys);
    debug_assert!(keys.contains(&join("pipeline", "ranks")));
    keys
}
