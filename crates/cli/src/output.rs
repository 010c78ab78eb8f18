//! Where results go: standard output, files that appear whole or not at all, directories.
//!
//! Targets are checked before the long work ([`check`]) and written after it ([`write_all`]): every file first
//! under another name beside its target, then all are renamed. Devices and pipes are written to as they are.
//! This is the only module that prints.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Where one result goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// `-`.
    Stdout,
    /// A file in a directory that exists.
    File(PathBuf),
    /// A file of this name in a directory that is made if it is not there.
    InDirectory(PathBuf, &'static str),
}

/// The two standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Output,
    Error,
}

impl Target {
    /// What a path on the command line stands for.
    pub(crate) fn from_argument(path: &Path) -> Self {
        if path.as_os_str() == "-" { Self::Stdout } else { Self::File(path.to_owned()) }
    }

    fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Stdout => None,
            Self::File(path) => Some(path.clone()),
            Self::InDirectory(directory, name) => Some(directory.join(name)),
        }
    }
}

/// Results with their targets, as far as they were asked for: several `files` in a directory, `single` ones by path.
pub(crate) fn targets<'a, T>(
    directory: Option<&Path>,
    files: impl IntoIterator<Item = (T, &'static str)>,
    single: impl IntoIterator<Item = (T, Option<&'a Path>)>,
) -> Vec<(T, Target)> {
    let mut found = Vec::new();
    if let Some(directory) = directory {
        let target = |name| Target::InDirectory(directory.to_owned(), name);
        found.extend(files.into_iter().map(|(result, name)| (result, target(name))));
    }
    let at = |(result, path): (T, Option<&Path>)| Some((result, Target::from_argument(path?)));
    found.extend(single.into_iter().filter_map(at));
    found
}

/// Prints to standard output, now.
///
/// # Errors
/// Whatever the system reports; a closed pipe too.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.context("cannot write to standard output")
}

/// Prints lines to standard error. If that is closed there is nobody left to tell.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether a stream is a terminal whose user wants colours (<https://no-color.org>).
pub(crate) fn takes_colours(stream: Stream) -> bool {
    let is_terminal = match stream {
        Stream::Output => io::stdout().is_terminal(),
        Stream::Error => io::stderr().is_terminal(),
    };
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    is_terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

/// Refuses, before any work is done, what cannot be written afterwards.
///
/// # Errors
/// The first target that is a directory, lies in none, may not be written to, or is named twice.
pub(crate) fn check<'a>(targets: impl IntoIterator<Item = &'a Target>) -> Result<()> {
    let mut seen: Vec<&Target> = Vec::new();
    for target in targets {
        if seen.contains(&target) {
            match target.path() {
                None => bail!("only one result can go to standard output"),
                Some(path) => bail!("`{}` is named for two results", path.display()),
            }
        }
        seen.push(target);
        match target {
            Target::File(path) => check_file(path)?,
            Target::InDirectory(directory, name) if check_directory(directory)? => {
                check_file(&directory.join(name))?;
            }
            Target::Stdout | Target::InDirectory(..) => {}
        }
    }
    Ok(())
}

/// Whether a directory is there already; an error if it is not and cannot be made.
fn check_directory(directory: &Path) -> Result<bool> {
    let shown = directory.display();
    if directory.as_os_str() == "-" {
        bail!("`--out` takes a directory; only a single result can go to `-`");
    }
    for ancestor in directory.ancestors() {
        let ancestor = or_here(ancestor);
        match fs::metadata(ancestor) {
            Ok(found) if !found.is_dir() => {
                let name = ancestor.display();
                bail!("cannot write to the directory `{shown}`: `{name}` is a file");
            }
            Ok(_) => {
                probe(ancestor).with_context(|| format!("cannot write to the directory `{shown}`"))?;
                return Ok(ancestor == directory);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot write to the directory `{shown}`"));
            }
        }
    }
    bail!("cannot write to the directory `{shown}`: none of its parents exists")
}

fn check_file(path: &Path) -> Result<()> {
    let shown = path.display();
    let cannot = || format!("cannot write `{shown}`");
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => bail!("{}: expected a file, found a directory", cannot()),
        Ok(found) if found.is_file() => {
            // A file that may not be written to is not replaced either.
            OpenOptions::new().write(true).open(path).with_context(cannot)?;
            let path = fs::canonicalize(path).with_context(cannot)?;
            probe(parent(&path)).with_context(cannot)
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if !parent(path).is_dir() {
                bail!("{}: there is no directory `{}`", cannot(), parent(path).display());
            }
            probe(parent(path)).with_context(cannot)
        }
        Err(error) => Err(error).with_context(cannot),
    }
}

/// Makes a file in a directory and removes it again.
fn probe(directory: &Path) -> io::Result<()> {
    Temporary::new_in(directory).map(drop)
}

fn parent(path: &Path) -> &Path {
    or_here(path.parent().unwrap_or(path))
}

/// `.` for the empty path, which is what the parent of a plain name is.
fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Writes every result with `write`. Files appear together once all are complete; standard output comes last, so
/// that a reader who goes away takes no file with him.
///
/// # Errors
/// The first target that cannot be written. No file has been changed then.
pub(crate) fn write_all<T: Copy>(
    wanted: &[(T, Target)],
    write: impl Fn(T, &mut dyn Write) -> Result<()>,
) -> Result<()> {
    let mut finished: Vec<(Temporary, PathBuf)> = Vec::new();
    for (result, target) in wanted {
        let Some(path) = target.path() else { continue };
        let cannot = || format!("cannot write `{}`", path.display());
        if let Target::InDirectory(directory, _) = target {
            fs::create_dir_all(directory).with_context(cannot)?;
        }
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            let device = OpenOptions::new().write(true).open(&path).with_context(cannot)?;
            write_buffered(device, |to| write(*result, to)).with_context(cannot)?;
            continue;
        }
        let path = fs::canonicalize(&path).unwrap_or(path.clone());
        let temporary = Temporary::new_in(parent(&path)).with_context(cannot)?;
        write_buffered(&temporary.file, |to| write(*result, to)).with_context(cannot)?;
        finished.push((temporary, path));
    }
    for (temporary, path) in finished {
        let shown = path.display().to_string();
        temporary.become_file(&path).with_context(|| format!("cannot write `{shown}`"))?;
    }
    for (result, _) in wanted.iter().filter(|(_, target)| *target == Target::Stdout) {
        let written = write_buffered(io::stdout().lock(), |to| write(*result, to));
        written.context("cannot write to standard output")?;
    }
    Ok(())
}

fn write_buffered(to: impl Write, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut to = BufWriter::new(to);
    write(&mut to)?;
    Ok(to.flush()?)
}

/// Removes what a process that was killed left half-written in a directory that nobody else is writing to.
///
/// # Errors
/// What the system reports.
pub(crate) fn remove_leftovers(directory: &Path) -> Result<()> {
    let cannot = || format!("cannot tidy up `{}`", directory.display());
    for entry in fs::read_dir(directory).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(".pipestep-") && name.ends_with(".tmp") {
            fs::remove_file(entry.path()).with_context(cannot)?;
        }
    }
    Ok(())
}

/// A file beside its target, removed unless it becomes the target.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    fn new_in(directory: &Path) -> io::Result<Self> {
        for attempt in 0_u32.. {
            let name = format!(".pipestep-{}-{attempt}.tmp", std::process::id());
            let path = directory.join(OsString::from(name));
            match File::create_new(&path) {
                Ok(file) => return Ok(Self { path, file }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Takes the target's name, and the permissions of what had it before.
    fn become_file(self, target: &Path) -> io::Result<()> {
        if let Ok(before) = fs::metadata(target) {
            self.file.set_permissions(before.permissions())?;
        }
        fs::rename(&self.path, target)
    }
}

impl Drop for Temporary {
    /// After a rename there is nothing left under this name.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
