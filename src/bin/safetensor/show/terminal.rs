//! The terminal: its width, whether it shows colours, and how text from files is made safe to
//! print.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal as _};

use safetensors_zero::Text;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// The properties of stdout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    color: bool,
    /// The number of columns. `None` if stdout is not a terminal; then nothing is shortened.
    width: Option<usize>,
    /// Whether block characters can be shown.
    unicode: bool,
}

/// The style of a piece of text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Style {
    Heading,
    Name,
    Bar,
    Plain,
    Good,
    Bad,
}

/// The width of drawings without a terminal.
const DEFAULT_WIDTH: usize = 80;

impl Terminal {
    pub(crate) fn new(color: Color) -> Terminal {
        let is_terminal = io::stdout().is_terminal();
        let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => is_terminal && !dumb && !set("NO_COLOR"),
        };
        let size = terminal_size::terminal_size();
        let width = size.map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0).max(20));
        Terminal { color, width: is_terminal.then_some(width), unicode: is_unicode() }
    }

    /// A terminal with these properties.
    #[cfg(test)]
    pub(crate) fn with(color: Color, width: Option<usize>, unicode: bool) -> Terminal {
        Terminal { color: color == Color::Always, width, unicode }
    }

    /// The width that lines must fit, or `None` if stdout is not a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// The width of drawings.
    pub(crate) fn drawing_width(&self) -> usize {
        self.width.unwrap_or(DEFAULT_WIDTH).min(120)
    }

    pub(crate) fn is_unicode(&self) -> bool {
        self.unicode
    }

    /// Returns the text in a style, if colours are on.
    pub(crate) fn paint<'t>(&self, style: Style, text: &'t str) -> Cow<'t, str> {
        if !self.color || text.is_empty() {
            return Cow::Borrowed(text);
        }
        let code = match style {
            Style::Heading => "1",
            Style::Name => "36",
            Style::Bar => "34",
            Style::Plain => return Cow::Borrowed(text),
            Style::Good => "32",
            Style::Bad => "31",
        };
        Cow::Owned(format!("\x1b[{code}m{text}\x1b[0m"))
    }
}

/// Whether the locale uses UTF-8. If none is set, as in most containers, UTF-8 is assumed.
fn is_unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| env::var(name).ok())
        .find(|value| !value.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        cfg!(windows) || locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Returns a string from a file in printable form: control characters, bidirectional overrides,
/// invisible characters and backslashes are escaped.
pub(crate) fn name<'t>(text: &Text<'t>) -> Cow<'t, str> {
    let raw = text.raw();
    if raw.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'\\') {
        return Cow::Borrowed(raw);
    }
    let quoted = format!("{text:?}");
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    Cow::Owned(inner.unwrap_or_default().replace("\\\"", "\""))
}

/// Escapes invisible characters in text that can contain names from outside, such as paths.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\'' | '\\' => safe.push(c),
            _ => safe.extend(c.escape_debug()),
        }
    }
    Cow::Owned(safe)
}

/// Returns the width of a text in columns.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Shortens a text to at most `most` columns. An ellipsis replaces the middle, since names differ
/// at their ends.
pub(crate) fn shortened<'t>(text: &'t str, most: usize, unicode: bool) -> Cow<'t, str> {
    if text.width() <= most {
        return Cow::Borrowed(text);
    }
    let ellipsis = if unicode { "…" } else { "..." };
    let room = most.saturating_sub(ellipsis.width());
    let begin = fitting(text.chars(), room / 2);
    let end: String = fitting(text.chars().rev(), room - begin.width()).chars().rev().collect();
    Cow::Owned(begin + ellipsis + &end)
}

/// Returns the characters that fit in `room` columns.
fn fitting(chars: impl Iterator<Item = char>, room: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= room
        })
        .collect()
}

/// Shortens a text to at most `most` columns, by cutting off its end.
pub(crate) fn cut<'t>(text: &'t str, most: usize, unicode: bool) -> Cow<'t, str> {
    if text.width() <= most {
        return Cow::Borrowed(text);
    }
    let ellipsis = if unicode { "…" } else { "..." };
    Cow::Owned(fitting(text.chars(), most.saturating_sub(ellipsis.width())) + ellipsis)
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened_in_the_middle() {
        let name = "model.layers.17.mlp.up_proj.weight";
        assert_eq!(shortened(name, 34, true), name);
        assert_eq!(shortened(name, 15, true), "model.l….weight");
        assert_eq!(shortened(name, 16, false), "model.....weight");
        assert_eq!(shortened("日本語日本語", 7, true), "日…本語");
        for most in 0..40 {
            for text in [name, "日本語日本語日本語日本語日本語日本語日本語", "e\u{301}e\u{301}"]
            {
                let columns = shortened(text, most, true).width();
                assert!(columns <= most.max(1), "{text} {most} {columns}");
            }
        }
        assert_eq!(cut("value", 5, true), "value");
        assert_eq!(cut("values", 5, true), "valu…");
    }

    #[test]
    fn escapes_invisible_characters() {
        assert_eq!(visible("plain 'a' \"b\" C:\\d"), "plain 'a' \"b\" C:\\d");
        assert_eq!(visible("Grüße"), "Grüße");
        assert_eq!(visible("a\nb\x1b[2J\u{202e}c\0"), "a\\nb\\u{1b}[2J\\u{202e}c\\0");
    }

    #[test]
    fn paints_only_if_colours_are_on() {
        let terminal = |color| Terminal::with(color, None, true);
        assert_eq!(terminal(Color::Never).paint(Style::Name, "a"), "a");
        assert_eq!(terminal(Color::Always).paint(Style::Name, "a"), "\x1b[36ma\x1b[0m");
        assert_eq!(terminal(Color::Always).paint(Style::Plain, "a"), "a");
    }
}
