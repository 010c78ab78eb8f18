//! `pipestep sweep`: a scenario at every point of a space, resumable, in shards if wanted.

use std::path::Path;
use std::thread;

use anyhow::{Context, Result};
use pipestep_scenario::{Override, Sweep};

use crate::sweep::{
    Begun, Manifest, Points, Progress, Shard, Space, Store, begun, draw, header, merge, run as run_points,
};
use crate::{Ending, args, load, output};

/// If none of so many points at the beginning can be read, it is the scenario that is wrong.
const LOOKED_AT: u64 = 256;

/// Begins or resumes the sweep, and draws it when it is whole.
pub(crate) fn run(typed: &args::Sweep) -> Result<Ending> {
    output::check([&output::Target::InDirectory(typed.out.clone(), "sweep.json")])?;
    let if_begun = if typed.resume { Begun::Resume } else { Begun::Refuse };
    if !typed.merge.is_empty() {
        let manifest = merge(&typed.merge, &typed.out, if_begun)?;
        return finish(typed, &manifest);
    }
    let path = typed.path.as_deref().context("name a scenario, or `--merge` the directories of shards")?;
    let shard = typed.shard.as_deref().map_or(Ok(Shard::WHOLE), Shard::read)?;
    let (points, name) = points(typed, path)?;
    let mut manifest = Manifest::new(&points, &typed.set, shard, &name);
    if let Some(before) = begun(&typed.out, if_begun)? {
        manifest.check_same(&before, &typed.out)?;
        manifest.check_files(&before, &points, &typed.out)?;
    }
    manifest.add_files(points.files_read());
    manifest.write(&typed.out)?;

    let mut store = Store::open(&typed.out, &header(points.space())?, shard)?;
    let count = shard.count(points.space().points());
    if store.finished() > 0 && !typed.quiet {
        output::complain(&format!("{} of {count} points are there already", store.finished()));
    }
    let progress = Progress::new(store.finished(), count, typed.quiet);
    let jobs = typed.jobs.map_or_else(cores, usize::from);
    run_points(&points, shard, &mut store, &mut manifest, &typed.out, jobs, progress)?;
    store.finish()?;
    if shard != Shard::WHOLE {
        if !typed.quiet {
            let (Shard { index, of }, out) = (shard, typed.out.display());
            output::print(&format!(
                "{name}: shard {index}/{of}, {count} points in {out}; `pipestep sweep --merge` puts shards together\n"
            ))?;
        }
        return Ok(Ending::Done);
    }
    finish(typed, &manifest)
}

/// Draws a whole sweep and says what it shows.
fn finish(typed: &args::Sweep, manifest: &Manifest) -> Result<Ending> {
    let drawn = draw(&typed.out, manifest)?;
    #[cfg(feature = "parquet")]
    crate::sweep::write_parquet(&typed.out, manifest)?;
    if !typed.quiet {
        output::print(&drawn.text)?;
    }
    Ok(if drawn.none_fits { Ending::DoesNotFit } else { Ending::Done })
}

/// The points that were asked for, and the scenario's name.
fn points(typed: &args::Sweep, path: &Path) -> Result<(Points, String)> {
    let text = load::text(path)?;
    let overrides: Vec<Override> = typed.set.iter().map(Override::set).collect();
    let written = Sweep::read(&text, &path.display().to_string(), &overrides)?;
    let space = Space::new(&written, &typed.vary, &typed.set)?;
    let points = Points::new(text, path, &typed.set, space);
    let mut first_error = None;
    for point in 0..points.space().points().min(LOOKED_AT) {
        match points.scenario(point) {
            Ok(scenario) => return Ok((points, scenario.name)),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.context("internal error: a space without points")?.into())
}

/// How many threads run at once where nothing is said.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
