//! The parts of the documentation that are made from the code are what the code says. `UPDATE_DOCS=1` writes
//! them anew.

use std::fmt::Write as _;
use std::fs;

use pipestep_schedule::Entry;
use serde_json::Value;

use crate::root;

const BEGIN: &str = "<!-- generated: begin -->\n";
const END: &str = "<!-- generated: end -->\n";

#[test]
fn the_scenario_reference_is_the_schema() {
    check("docs/scenario.md", &scenario_reference(&pipestep_scenario::schema()));
}

#[test]
fn the_schedule_table_is_the_registry() {
    check("docs/schedules.md", &schedule_table());
}

/// Compares the generated part of a file with what it should be, or replaces it.
fn check(file: &str, wanted: &str) {
    let path = root().join(file);
    let text = fs::read_to_string(&path).expect("it is part of the repository");
    let (before, rest) = text.split_once(BEGIN).expect("it has a generated part");
    let (found, after) = rest.split_once(END).expect("the generated part ends");
    if found == wanted {
        return;
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, [before, BEGIN, wanted, END, after].concat()).expect("writable");
        return;
    }
    let differs = found.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
    panic!("{file} is not what the code says (UPDATE_DOCS=1 writes it anew); first difference: {differs:?}");
}

/// A section for each table of the format, in the order in which the file may hold them.
fn scenario_reference(schema: &Value) -> String {
    let mut text = String::from("## At the top\n\n");
    let mut tables = Vec::new();
    text += &keys(schema, schema, "", &mut tables);
    let mut done = 0;
    while let Some((path, table)) = tables.get(done).cloned() {
        done += 1;
        let heading = path.trim_end_matches(".*");
        let (opens, closes) = if is_list(&table) { ("[[", "]]") } else { ("[", "]") };
        let _ = write!(text, "\n## `{opens}{heading}{closes}`\n\n");
        let table = tables_in(schema, &table);
        if let Some(about) = table["description"].as_str() {
            let _ = write!(text, "{}\n\n", one_line(about));
        }
        text += &keys(schema, table, &path, &mut tables);
    }
    text
}

fn is_list(schema: &Value) -> bool {
    schema["type"] == "array"
}

/// The table itself, or the one that a list has many of.
fn tables_in<'a>(schema: &'a Value, table: &'a Value) -> &'a Value {
    if is_list(table) { resolve(schema, &table["items"]) } else { table }
}

/// The keys of one table; tables in it are put on the list.
fn keys(schema: &Value, table: &Value, path: &str, tables: &mut Vec<(String, Value)>) -> String {
    let mut text = String::from("| key | value | meaning |\n| --- | --- | --- |\n");
    let required: Vec<&str> =
        table["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (key, value) in table["properties"].as_object().into_iter().flatten() {
        let about = one_line(value["description"].as_str().unwrap_or_default());
        let resolved = resolve(schema, value);
        let inner = [path, key].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".");
        let shown = if tables_in(schema, resolved).get("properties").is_some() {
            tables.push((inner.clone(), resolved.clone()));
            let what = if is_list(resolved) { "list of tables" } else { "table" };
            format!("{what}, [below](#{})", inner.replace('.', ""))
        } else {
            kind(resolved)
        };
        let must = if required.contains(&key.as_str()) { " **required**" } else { "" };
        let _ = writeln!(text, "| `{key}`{must} | {shown} | {} |", about.replace('|', "\\|"));
    }
    text
}

fn resolve<'a>(schema: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    reference.and_then(|pointer| schema.pointer(pointer)).unwrap_or(value)
}

/// What may be written, in a word or two; the page explains them.
fn kind(value: &Value) -> String {
    if let Some(words) = value["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        return words.join(" ");
    }
    if let Some(kinds) = value["anyOf"].as_array() {
        let mut names: Vec<String> = kinds.iter().map(kind).collect();
        names.dedup();
        return names.join(" or ");
    }
    match value["type"].as_str() {
        Some("array") => match kind(&value["items"]) {
            words if words.contains('`') => format!("list of {words}"),
            _ => "list".to_owned(),
        },
        Some("integer") => "whole number".to_owned(),
        Some("number") => "number".to_owned(),
        Some("boolean") => "`true` `false`".to_owned(),
        Some("object") => "table".to_owned(),
        _ => match value["pattern"].as_str() {
            None => "text".to_owned(),
            Some(pattern) if pattern.contains(r"\d{4}") => "date".to_owned(),
            Some(pattern) if pattern.contains("/s") => "rate".to_owned(),
            Some(pattern) if pattern.contains("ms") => "time".to_owned(),
            Some(pattern) if pattern.contains('B') => "bytes".to_owned(),
            Some(_) => "fraction".to_owned(),
        },
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn schedule_table() -> String {
    let mut text = String::from(
        "| schedule | what it is | takes | peak | bubble | source |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    let entries = pipestep_schedule::all().iter().map(|schedule| schedule.entry());
    for entry in entries.clone() {
        let cells = [
            names(entry),
            entry.summary.to_owned(),
            entry.constraints.to_owned(),
            format!("`{}`", entry.memory),
            format!("`{}`", entry.bubble),
            entry.source.to_owned(),
        ];
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text += "\nOptions are keys of `[pipeline]`, and flags of `schedule show` and `schedule export`:\n\n";
    text += "| schedule | option | meaning | values | default |\n| --- | --- | --- | --- | --- |\n";
    for entry in entries {
        for option in entry.options {
            let values = match option.choices {
                [] => "whole number".to_owned(),
                words => words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(" "),
            };
            let cells = [entry.name, option.name, option.meaning, &values, option.default];
            let _ = writeln!(text, "| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
        }
    }
    text
}

/// The name, and in brackets what else is accepted.
fn names(entry: &Entry) -> String {
    let aliases: Vec<String> = entry.aliases.iter().map(|alias| format!("`{alias}`")).collect();
    match aliases.as_slice() {
        [] => format!("`{}`", entry.name),
        aliases => format!("`{}` ({})", entry.name, aliases.join(", ")),
    }
}
