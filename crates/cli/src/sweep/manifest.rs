//! What a directory of results belongs to: everything on which its rows depend.
//!
//! It is written before the first row and compared before a row is added, so that the rows of two scenarios never
//! mix. A file that the scenario names is added when it is first read.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::points::Points;
use super::space::Shard;
use crate::load;
use crate::output::{Target, write_all};

/// Its name in the directory.
pub(crate) const FILE: &str = "sweep.json";
const SCHEMA: &str = "pipestep-sweep-1";

/// What a directory belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    value: Value,
}

/// The parts that must agree, and what a user calls them.
const PARTS: [(&str, &str); 6] = [
    ("version", "it was begun by another version of pipestep"),
    ("scenario", "the scenario's text has changed"),
    ("set", "the values of `--set` have changed"),
    ("keys", "the swept keys or their values have changed"),
    ("points", "the number of points has changed"),
    ("shard", "it holds another shard"),
];

impl Manifest {
    /// That of a sweep which begins now.
    pub(crate) fn new(points: &Points, set: &[String], shard: Shard, name: &str) -> Self {
        let keys: Vec<Value> = points
            .space()
            .axes()
            .iter()
            .map(|axis| {
                // Of the values line by line, without keeping them all.
                let lines = axis.values.iter().enumerate();
                let print = lines.fold(BASIS, |print, (place, value)| {
                    add_to_print(add_to_print(print, if place > 0 { "\n" } else { "" }), &value)
                });
                json!({ "key": axis.key, "values": axis.values.len(), "fingerprint": shown(print) })
            })
            .collect();
        let value = json!({
            "schema": SCHEMA,
            "version": env!("CARGO_PKG_VERSION"),
            "name": name,
            "scenario": fingerprint(points.text()),
            "set": set,
            "keys": keys,
            "points": points.space().points(),
            "shard": format!("{}/{}", shard.index, shard.of),
            "files": {},
        });
        Self { value }
    }

    /// Reads that of a directory; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, or is no such file.
    pub(crate) fn read(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let text = load::text(&path)?;
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        if value["schema"] != SCHEMA {
            bail!("`{}` is not what a sweep of this version of pipestep writes", path.display());
        }
        Ok(Some(Self { value }))
    }

    /// Writes it, whole or not at all.
    ///
    /// # Errors
    /// What the system reports.
    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        let target = Target::InDirectory(directory.to_owned(), FILE);
        write_all(&[((), target)], |(), to| Ok(writeln!(to, "{:#}", self.value)?))
    }

    /// Refuses to go on with a directory that belongs to something else.
    ///
    /// # Errors
    /// What differs.
    pub(crate) fn check_same(&self, begun: &Self, directory: &Path) -> Result<()> {
        match self.difference(begun, &PARTS) {
            None => Ok(()),
            Some(said) => {
                let shown = directory.display();
                bail!("`{shown}` holds a different sweep: {said}; write to another directory, or remove it")
            }
        }
    }

    /// Refuses a shard of another sweep.
    ///
    /// # Errors
    /// What differs.
    pub(crate) fn check_same_sweep(&self, shard: &Self, directory: &Path) -> Result<()> {
        // The last part is which shard it is.
        match self.difference(shard, &PARTS[..PARTS.len() - 1]) {
            None => Ok(()),
            Some(said) => bail!("`{}` holds a different sweep than the others: {said}", directory.display()),
        }
    }

    fn difference(&self, other: &Self, parts: &[(&str, &'static str)]) -> Option<&'static str> {
        parts.iter().find(|(part, _)| self.value[part] != other.value[part]).map(|(_, said)| *said)
    }

    /// Refuses files that have changed since their rows were computed, and takes over what is known of them.
    ///
    /// # Errors
    /// The first file that is not what it was.
    pub(crate) fn check_files(&mut self, begun: &Self, points: &Points, directory: &Path) -> Result<()> {
        let files = begun.value["files"].as_object();
        for (path, before) in files.into_iter().flatten() {
            let now = points.read(Path::new(path)).ok().map(|text| fingerprint(&text));
            if now.as_deref() != before.as_str() {
                bail!(
                    "`{}` holds a different sweep: `{path}` has changed; write to another directory, or remove it",
                    directory.display()
                );
            }
        }
        self.value["files"] = begun.value["files"].clone();
        Ok(())
    }

    /// Adds the files that have been read; whether any is new.
    pub(crate) fn add_files(&mut self, files: Vec<(String, Option<String>)>) -> bool {
        let mut changed = false;
        for (path, print) in files {
            if self.value["files"].get(&path).is_none() {
                self.value["files"][path] = json!(print);
                changed = true;
            }
        }
        // The order in which threads read them is left to chance.
        if let (true, Some(files)) = (changed, self.value["files"].as_object_mut()) {
            files.sort_keys();
        }
        changed
    }

    /// The scenario's name.
    pub(crate) fn name(&self) -> &str {
        self.value["name"].as_str().unwrap_or_default()
    }

    /// Each key with its number of values.
    pub(crate) fn keys(&self) -> Vec<(String, u64)> {
        let keys = self.value["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
        let key = |key: &Value| (key["key"].as_str().unwrap_or_default().to_owned(), key["values"].as_u64());
        keys.iter().map(key).map(|(key, values)| (key, values.unwrap_or(0))).collect()
    }

    /// How many points the whole sweep has.
    pub(crate) fn points(&self) -> u64 {
        self.value["points"].as_u64().unwrap_or(0)
    }

    /// Which of them are in the directory.
    ///
    /// # Errors
    /// A file that was changed by hand.
    pub(crate) fn shard(&self) -> Result<Shard> {
        Shard::read(self.value["shard"].as_str().unwrap_or_default()).context("`sweep.json`")
    }

    /// The same for the whole sweep, with the files of all its shards.
    pub(crate) fn whole(shards: &[Self]) -> Option<Self> {
        let mut whole = shards.first()?.clone();
        let Shard { index, of } = Shard::WHOLE;
        whole.value["shard"] = json!(format!("{index}/{of}"));
        for shard in shards {
            let files = shard.value["files"].as_object().into_iter().flatten();
            let files = files.map(|(path, print)| (path.clone(), print.as_str().map(str::to_owned)));
            whole.add_files(files.collect());
        }
        Some(whole)
    }
}

/// 64 bits that change with a text (FNV-1a): against mistakes, not against malice.
pub(crate) fn fingerprint(text: &str) -> String {
    shown(add_to_print(BASIS, text))
}

/// The fingerprint of no text.
const BASIS: u64 = 0xCBF2_9CE4_8422_2325;

/// The fingerprint of a text that goes on.
fn add_to_print(print: u64, text: &str) -> u64 {
    text.bytes().fold(print, |print, byte| (print ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}

fn shown(print: u64) -> String {
    format!("{print:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_is_the_published_one() {
        // Test vectors of the authors of FNV.
        assert_eq!(fingerprint(""), "cbf29ce484222325");
        assert_eq!(fingerprint("a"), "af63dc4c8601ec8c");
        assert_eq!(fingerprint("foobar"), "85944171f73967e8");
    }
}
