//! Errors of a scenario: a message, the place, and what to write instead, rendered with file, line and caret.
//!
//! A place lies in one of several sources: the file, the text of one `--set`, or a file that the scenario
//! names.

use std::fmt;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

/// A place in one of the sources, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    /// Index into [`Sources`]: 0 is the file.
    pub source: usize,
    /// First byte.
    pub start: usize,
    /// Past the last byte.
    pub end: usize,
}

impl Span {
    /// The file as a whole.
    pub(crate) const FILE: Self = Self { source: 0, start: 0, end: 0 };
}

/// One text that values come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// The file's name, or `--set`.
    pub name: String,
    /// All of it.
    pub text: Arc<str>,
}

/// The file, then one source for each override, then the files that the scenario names.
pub(crate) type Sources = Arc<[Source]>;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    message: String,
    span: Span,
    related: Vec<(Span, String)>,
    help: Vec<String>,
}

impl Diagnostic {
    /// Something wrong at a place.
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        Self { message: message.into(), span, related: Vec::new(), help: Vec::new() }
    }

    /// A second place that matters, with a few words.
    pub(crate) fn related(mut self, span: Option<Span>, label: impl Into<String>) -> Self {
        self.related.extend(span.map(|span| (span, label.into())));
        self
    }

    /// What to write instead.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// The first byte of the place.
    pub(crate) fn start(&self) -> usize {
        self.span.start
    }

    /// What is wrong, in one line.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Everything that is wrong with a scenario, in the order of the file. Displays as plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    sources: Sources,
    list: Vec<Diagnostic>,
}

/// How diagnostics are rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Letters only.
    Plain,
    /// With terminal colours.
    Coloured,
}

impl Diagnostics {
    pub(crate) fn new(sources: Sources, mut list: Vec<Diagnostic>) -> Self {
        list.sort_by_key(|diagnostic| (diagnostic.span.source, diagnostic.span.start));
        Self { sources, list }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// All of them as text, with the lines they are about. `fold` breaks the lines of a message and of a help where
    /// they are to be broken; lines of the file stay as they are.
    pub fn render(&self, style: Style, fold: impl Fn(&str) -> String) -> String {
        let renderer = match style {
            Style::Plain => Renderer::plain(),
            Style::Coloured => Renderer::styled(),
        };
        let texts: Vec<String> =
            self.list.iter().map(|diagnostic| renderer.render(&[self.group(diagnostic, &fold)])).collect();
        texts.join("\n\n")
    }

    fn group<'a>(&'a self, diagnostic: &'a Diagnostic, fold: &impl Fn(&str) -> String) -> Group<'a> {
        let title = Level::ERROR.primary_title(fold(&diagnostic.message));
        let mut group = match diagnostic.span {
            Span::FILE => title.element(Origin::path(self.sources[0].name.as_str())),
            span => title.element(self.snippet(span, diagnostic)),
        };
        let elsewhere = diagnostic.related.iter().filter(|(span, _)| span.source != diagnostic.span.source);
        for (span, label) in elsewhere {
            let kind = AnnotationKind::Context.span(self.range(*span));
            group = group.element(self.source(span.source).annotation(kind.label(label.as_str())));
        }
        for help in &diagnostic.help {
            group = group.element(Level::HELP.message(fold(help)));
        }
        group
    }

    fn snippet<'a>(
        &'a self,
        span: Span,
        diagnostic: &'a Diagnostic,
    ) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        let primary = AnnotationKind::Primary.span(self.range(span));
        let beside = diagnostic.related.iter().filter(|(other, _)| other.source == span.source);
        let beside = beside
            .map(|(other, label)| AnnotationKind::Context.span(self.range(*other)).label(label.as_str()));
        self.source(span.source).annotation(primary).annotations(beside)
    }

    fn source(&self, index: usize) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
        let source = &self.sources[index];
        Snippet::source(&*source.text).path(source.name.as_str())
    }

    /// The bytes of a place, kept inside the text and on character boundaries.
    fn range(&self, span: Span) -> std::ops::Range<usize> {
        let text = &self.sources[span.source].text;
        let inside = |at: usize| text.is_char_boundary(at);
        let start = (0..=span.start.min(text.len())).rev().find(|&at| inside(at));
        let end = (span.end.max(span.start)..=text.len()).find(|&at| inside(at));
        start.unwrap_or(0)..end.unwrap_or(text.len())
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Style::Plain, str::to_owned))
    }
}

impl std::error::Error for Diagnostics {}
