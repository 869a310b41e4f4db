//! Charts of block characters, or of ASCII characters if the locale does not use UTF-8.

use crate::show::terminal::Terminal;

/// Draws a bar of length `value / most * width` columns. A bar is empty only if `value` is 0.
pub(crate) fn bar(terminal: &Terminal, value: u64, most: u64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = if most == 0 { 0.0 } else { value as f64 / most as f64 };
    if !terminal.is_unicode() {
        let len = (share * width as f64).round() as usize;
        return "#".repeat(len.max(usize::from(value > 0)));
    }
    let eighths = ((share * width as f64 * 8.0).round() as usize).max(usize::from(value > 0));
    "█".repeat(eighths / 8) + PARTS.get(eighths % 8).copied().unwrap_or_default()
}

/// Draws counts as columns `rows` lines high. Returns the lines from top to bottom.
pub(crate) fn columns(terminal: &Terminal, counts: &[u64], rows: usize) -> Vec<String> {
    const UNICODE: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII: [char; 9] = [' ', '.', '.', ':', ':', '|', '|', '#', '#'];
    let levels = if terminal.is_unicode() { UNICODE } else { ASCII };
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let eighths = |count: u64| {
        let eighths = (count as f64 / most as f64 * (rows * 8) as f64).round() as usize;
        eighths.max(usize::from(count > 0))
    };
    let level = |count: u64, row: usize| {
        let above = eighths(count).saturating_sub(row * 8).min(8);
        levels.get(above).copied().unwrap_or(' ')
    };
    (0..rows).rev().map(|row| counts.iter().map(|count| level(*count, row)).collect()).collect()
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use crate::show::terminal::Color;

    #[test]
    fn draws_bars_and_columns() {
        let terminal = Terminal::with(Color::Never, None, true);
        assert_eq!(bar(&terminal, 16, 16, 2), "██");
        assert_eq!(bar(&terminal, 9, 16, 2), "█▏");
        assert_eq!(bar(&terminal, 1, u64::MAX, 2), "▏");
        assert_eq!(bar(&terminal, 0, 16, 2), "");
        assert_eq!(bar(&terminal, 0, 0, 2), "");
        assert_eq!(columns(&terminal, &[0, 1, 8, 16], 2), ["   █", " ▁██"]);
        assert_eq!(columns(&terminal, &[], 1), [""]);
        let ascii = Terminal::with(Color::Never, None, false);
        assert_eq!(bar(&ascii, 9, 16, 4), "##");
        assert_eq!(columns(&ascii, &[0, 1, 16], 1), [" .#"]);
    }
}
