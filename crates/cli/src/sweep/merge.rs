//! `--merge`: the shards of a sweep, woven into what one machine would have written.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::fields::point_of;
use super::manifest::Manifest;
use super::space::Shard;
use super::store::{RESULTS, Store, begun};
use crate::sweep::store::Begun;

/// Rows that are written at one go.
const AT_ONCE: usize = 1_024;

/// Writes the rows of all shards to `to`, in point order.
///
/// # Errors
/// Shards of different sweeps, missing or unfinished ones; what the system reports.
pub(crate) fn merge(shards: &[PathBuf], to: &Path, if_begun: Begun) -> Result<Manifest> {
    let mut manifests = Vec::new();
    for directory in shards {
        let manifest = Manifest::read(directory)?;
        manifests.push(manifest.with_context(|| format!("`{}` holds no sweep", directory.display()))?);
    }
    let whole = Manifest::whole(&manifests).context("name the directories of the shards")?;
    let mut readers = readers(shards, &manifests, &whole)?;
    if let Some(before) = begun(to, if_begun)? {
        whole.check_same(&before, to)?;
    }
    whole.write(to)?;
    let mut store = Store::open(to, &readers[0].1.clone(), Shard::WHOLE)?;
    let there = store.written();
    let mut batch = Vec::new();
    for point in 0..whole.points() {
        let of = readers.len() as u64;
        let (reader, _) = &mut readers[(point % of) as usize];
        let mut line = String::new();
        reader
            .lines
            .read_line(&mut line)
            .with_context(|| format!("cannot read `{}`", reader.path.display()))?;
        if !line.ends_with('\n') || point_of(line.as_bytes()) != Some(point) {
            bail!("`{}` has no row of point {point}: is that shard done?", reader.path.display());
        }
        if point >= there {
            batch.push((point, line));
        }
        if batch.len() == AT_ONCE {
            store.add(std::mem::take(&mut batch))?;
        }
    }
    store.add(batch)?;
    store.finish()?;
    Ok(whole)
}

/// An open `results.csv`.
struct Reader {
    path: PathBuf,
    lines: BufReader<File>,
}

/// The results of each shard, in the order of the shards, with their header.
fn readers(shards: &[PathBuf], manifests: &[Manifest], whole: &Manifest) -> Result<Vec<(Reader, String)>> {
    let mut by_index: Vec<(u64, Reader, String)> = Vec::new();
    let of = manifests[0].shard()?.of;
    for (directory, manifest) in shards.iter().zip(manifests) {
        whole.check_same_sweep(manifest, directory)?;
        let shard = manifest.shard()?;
        if shard.of != of || by_index.iter().any(|(index, ..)| *index == shard.index) {
            bail!(
                "`{}` is shard {}/{}, which does not go with the others",
                directory.display(),
                shard.index,
                shard.of
            );
        }
        let path = directory.join(RESULTS);
        let cannot = || format!("cannot read `{}`", path.display());
        let mut lines = BufReader::new(File::open(&path).with_context(cannot)?);
        let mut header = String::new();
        lines.read_line(&mut header).with_context(cannot)?;
        by_index.push((shard.index, Reader { path: path.clone(), lines }, header));
    }
    by_index.sort_by_key(|(index, ..)| *index);
    if let Some(missing) = (1..=of).find(|index| by_index.iter().all(|(there, ..)| there != index)) {
        bail!("shard {missing}/{of} is missing: name the directories of all {of} shards");
    }
    Ok(by_index.into_iter().map(|(_, reader, header)| (reader, header)).collect())
}
