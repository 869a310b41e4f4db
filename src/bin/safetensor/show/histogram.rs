//! Histograms: counts of values in bins of equal width.

use safetensors_zero::{FileTensor, Stats};

use crate::files::failure::Failure;
use crate::files::values::Buffers;
use crate::show::chart;
use crate::show::numbers;
use crate::show::progress::Progress;
use crate::show::terminal::{Style, Terminal};

/// Counts of finite values, in bins from the smallest value to the largest.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) counts: Vec<u64>,
}

impl Histogram {
    /// Reads a tensor whose range is known from its statistics. Returns `None` if it has no finite
    /// value or `bins` is 0.
    pub(crate) fn of(
        tensor: &FileTensor<'_>,
        stats: &Stats,
        bins: usize,
        progress: &Progress,
    ) -> Result<Option<Histogram>, Failure> {
        let (Some(low), Some(high), true) = (stats.min, stats.max, bins > 0) else {
            return Ok(None);
        };
        let mut histogram = Histogram { low, high, counts: vec![0; bins] };
        let mut buffers = Buffers::default();
        progress.for_each_piece(0..tensor.elements(), &[tensor.dtype()], |piece| {
            histogram.add(buffers.read(tensor, &piece)?);
            Ok(())
        })?;
        Ok(Some(histogram))
    }

    fn add(&mut self, values: &[f64]) {
        // Halves, since the difference of two floats can overflow.
        let low = self.low / 2.0;
        let width = (self.high / 2.0 - low).max(f64::MIN_POSITIVE);
        let bins = self.counts.len();
        for value in values {
            if value.is_finite() {
                let bin = ((value / 2.0 - low) / width * bins as f64) as usize;
                if let Some(count) = self.counts.get_mut(bin.min(bins - 1)) {
                    *count += 1;
                }
            }
        }
    }

    /// Draws the histogram over an axis labelled with the ends of the range.
    pub(crate) fn draw(&self, terminal: &Terminal, rows: usize) -> Vec<String> {
        let most = numbers::grouped(self.counts.iter().copied().max().unwrap_or(0));
        let margin = most.len();
        let (side, corner, line) =
            if terminal.is_unicode() { ("┤", "└", "─") } else { ("|", "+", "-") };
        let mut lines: Vec<String> = chart::columns(terminal, &self.counts, rows)
            .iter()
            .enumerate()
            .map(|(at, drawn)| {
                let label = if at == 0 { most.as_str() } else { "" };
                format!("{label:>margin$} {side}{}", terminal.paint(Style::Bar, drawn.trim_end()))
            })
            .collect();
        let bins = self.counts.len();
        lines.push(format!("{:margin$} {corner}{}", "", line.repeat(bins)));
        let (low, high) = (numbers::short(self.low), numbers::short(self.high));
        let between = bins.saturating_sub(low.len());
        lines.push(format!("{:margin$}  {low}{high:>between$}", ""));
        lines
    }

    /// Draws the histogram in one line.
    pub(crate) fn line(&self, terminal: &Terminal) -> String {
        chart::columns(terminal, &self.counts, 1).concat()
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    fn counts(low: f64, high: f64, bins: usize, values: &[f64]) -> Vec<u64> {
        let mut histogram = Histogram { low, high, counts: vec![0; bins] };
        histogram.add(values);
        histogram.counts
    }

    #[test]
    fn counts_every_finite_value_once() {
        assert_eq!(counts(0.0, 4.0, 4, &[0.0, 0.9, 1.0, 3.9, 4.0, f64::NAN]), [2, 1, 0, 2]);
        assert_eq!(counts(2.0, 2.0, 3, &[2.0, 2.0]), [2, 0, 0]);
        let (low, high) = (-f64::MAX, f64::MAX);
        assert_eq!(counts(low, high, 2, &[low, low / 4.0, high / 4.0, high]), [2, 2]);
        assert_eq!(counts(0.0, 5e-324, 2, &[0.0, 5e-324]).iter().sum::<u64>(), 2);
    }
}
