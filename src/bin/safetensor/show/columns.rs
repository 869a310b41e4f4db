//! Tables that fit the terminal. The first column, of names, is shortened if needed.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::show::terminal::{self, Style, Terminal};

/// The greatest width of a cell other than a name: a shape can have ten thousand dimensions.
const WIDEST: usize = 40;
/// The smallest width of the names' column.
const NARROWEST: usize = 16;
const GAP: &str = "  ";

/// Columns with headings. All lines are measured before the first is written.
#[derive(Debug)]
pub(crate) struct Columns<'t, const N: usize> {
    terminal: &'t Terminal,
    headings: [&'static str; N],
    widths: [usize; N],
}

impl<'t, const N: usize> Columns<'t, N> {
    /// Columns with these headings. A column whose heading begins with a space is aligned right.
    pub(crate) fn new(terminal: &'t Terminal, headings: [&'static str; N]) -> Self {
        Columns { terminal, headings, widths: headings.map(|heading| heading.trim().len()) }
    }

    /// Widens the columns to fit a line.
    pub(crate) fn measure(&mut self, cells: &[Cow<'_, str>; N]) {
        for (at, (width, cell)) in self.widths.iter_mut().zip(cells).enumerate() {
            let needed = terminal::columns(cell);
            *width = (*width).max(if at == 0 { needed } else { needed.min(WIDEST) });
        }
    }

    /// Narrows the names' column so that lines fit the terminal, if there is one.
    pub(crate) fn fit(&mut self) {
        let Some(width) = self.terminal.width() else { return };
        let Some((names, others)) = self.widths.split_first_mut() else { return };
        let others: usize = others.iter().map(|width| width + GAP.len()).sum();
        *names = (*names).min(width.saturating_sub(others).max(NARROWEST));
    }

    pub(crate) fn heading(&self, out: &mut impl Write) -> io::Result<()> {
        let cells = self.headings.map(|heading| Cow::Borrowed(heading.trim()));
        self.cells(out, &cells, |_| Style::Heading)
    }

    pub(crate) fn line(&self, out: &mut impl Write, cells: &[Cow<'_, str>; N]) -> io::Result<()> {
        self.cells(out, cells, |at| if at == 0 { Style::Name } else { Style::Plain })
    }

    fn cells(
        &self,
        out: &mut impl Write,
        cells: &[Cow<'_, str>; N],
        style: impl Fn(usize) -> Style,
    ) -> io::Result<()> {
        let unicode = self.terminal.is_unicode();
        let mut line = String::new();
        for (at, ((cell, width), heading)) in
            cells.iter().zip(self.widths).zip(self.headings).enumerate()
        {
            if at > 0 {
                line.push_str(GAP);
            }
            let most = if self.terminal.width().is_some() { width } else { usize::MAX };
            let cell = terminal::shortened(cell, most, unicode);
            let padding = width.saturating_sub(terminal::columns(&cell));
            let painted = self.terminal.paint(style(at), &cell);
            if heading.starts_with(' ') {
                line.extend(std::iter::repeat_n(' ', padding));
                line.push_str(&painted);
            } else {
                line.push_str(&painted);
                if at + 1 < N {
                    line.extend(std::iter::repeat_n(' ', padding));
                }
            }
        }
        writeln!(out, "{}", line.trim_end())
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use crate::show::terminal::Color;

    fn printed(width: Option<usize>) -> String {
        let terminal = Terminal::with(Color::Never, width, true);
        let mut columns = Columns::new(&terminal, ["name", "dtype", " bytes"]);
        let long = "model.layers.0.mlp.weight";
        let lines: [[Cow<'_, str>; 3]; 2] =
            [[long.into(), "BF16".into(), "1,024".into()], ["b".into(), "F4".into(), "8".into()]];
        lines.iter().for_each(|line| columns.measure(line));
        columns.fit();
        let mut out = Vec::new();
        columns.heading(&mut out).unwrap();
        lines.iter().for_each(|line| columns.line(&mut out, line).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn shortens_names_to_fit_the_terminal() {
        assert_eq!(
            printed(Some(80)),
            "name                       dtype  bytes\n\
             model.layers.0.mlp.weight  BF16   1,024\n\
             b                          F4         8\n"
        );
        assert_eq!(printed(None), printed(Some(80)));
        assert_eq!(
            printed(Some(32)),
            "name                dtype  bytes\n\
             model.la…lp.weight  BF16   1,024\n\
             b                   F4         8\n"
        );
        assert_eq!(printed(Some(5)).lines().next(), Some("name              dtype  bytes"));
    }
}
