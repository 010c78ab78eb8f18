//! The files that a scenario names: schedules, model configurations, lists of measured lengths.
//!
//! The library opens nothing. Its caller hands in a reader, and what was read becomes one more source that
//! diagnostics can point into. Paths are relative to the scenario's file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Source, Span};
use crate::read::Problems;

/// Reads the whole of a text file: `std::fs::read_to_string`, or whatever stands for it.
pub type ReadFile<'a> = dyn Fn(&Path) -> io::Result<String> + 'a;

/// A reader for texts that name no files: it refuses each.
///
/// # Errors
/// Always.
pub fn no_files(_: &Path) -> io::Result<String> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "no file can be read here"))
}

/// Reads files, and keeps what was read for diagnostics.
pub(crate) struct Files<'a> {
    read: &'a ReadFile<'a>,
    folder: PathBuf,
    /// The number of the first file among the sources.
    first: usize,
    opened: Vec<Source>,
}

/// A file that was read.
pub(crate) struct Opened {
    /// All of it.
    pub text: Arc<str>,
    /// Its number among the sources.
    pub source: usize,
}

impl Opened {
    /// A place in it, in bytes.
    pub(crate) fn span(&self, start: usize, end: usize) -> Span {
        Span { source: self.source, start, end }
    }
}

impl<'a> Files<'a> {
    /// For a scenario called `file_name`, with `first` sources before the first file.
    pub(crate) fn new(read: &'a ReadFile<'a>, file_name: &str, first: usize) -> Self {
        let folder = Path::new(file_name).parent().unwrap_or(Path::new(""));
        Self { read, folder: folder.to_owned(), first, opened: Vec::new() }
    }

    /// Reads the file that the value at `span` of the key `path` names; `None` after reporting why not.
    pub(crate) fn open(
        &mut self,
        name: &str,
        path: &str,
        span: Span,
        problems: &mut Problems,
    ) -> Option<Opened> {
        let full = self.folder.join(name);
        match (self.read)(&full) {
            Ok(text) => {
                let text: Arc<str> = text.into();
                let source = self.first + self.opened.len();
                self.opened.push(Source { name: full.display().to_string(), text: Arc::clone(&text) });
                Some(Opened { text, source })
            }
            Err(error) => {
                let message = format!("`{path}`: cannot read `{}`: {error}", full.display());
                let problem = Diagnostic::new(span, message);
                problems.push(match error.kind() {
                    io::ErrorKind::NotFound => problem.help("paths are relative to the scenario's file"),
                    _ => problem,
                });
                None
            }
        }
    }

    /// What was read.
    pub(crate) fn into_sources(self) -> Vec<Source> {
        self.opened
    }
}
