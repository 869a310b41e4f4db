//! The verb `selftest`: checks that the library refuses malformed files and reads numbers exactly.

mod headers;
mod indexes;
mod numbers;
mod plans;

use std::io::{self, Write};

use safetensors_zero::{Limits, SafeTensors};

use crate::files::failure::{Exit, Failure};
use crate::files::printer::Printer;
use crate::show::terminal::{Style, Terminal};

use headers::Case;

/// Which rules must refuse a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// None: the file is valid.
    Never,
    /// Only the strict rules, with an error of this kind.
    ByStrict(&'static str),
    /// Both the default and the strict rules. The default rules give an error of this kind.
    Always(&'static str),
}

impl Refused {
    fn expected(self) -> String {
        match self {
            Refused::Never => "accepted".to_owned(),
            Refused::ByStrict(kind) => format!("refused by the strict rules: {kind}"),
            Refused::Always(kind) => format!("refused: {kind}"),
        }
    }
}

pub(crate) fn run(terminal: &Terminal) -> Result<Exit, Failure> {
    let mut out = Printer::for_verdict();
    let mut tally = Tally::default();
    for case in headers::cases() {
        tally.record(&mut out, terminal, case.what, &case.refused.expected(), judge(&case))?;
    }
    for case in indexes::cases() {
        tally.record(&mut out, terminal, &case.what, &case.refused.expected(), case.check())?;
    }
    for (what, expected, outcome) in plans::outcomes() {
        tally.record(&mut out, terminal, what, &expected, outcome)?;
    }
    for sample in numbers::SAMPLES {
        tally.record(&mut out, terminal, &sample.what(), "exact", sample.check())?;
    }
    let Tally { good, bad } = tally;
    match bad {
        0 => writeln!(out, "all {good} passed")?,
        _ => writeln!(out, "{bad} of {} failed", good + bad)?,
    }
    out.flush()?;
    Ok(if bad == 0 { Exit::Success } else { Exit::Invalid })
}

/// Checks a case. An error says what the library did instead.
fn judge(case: &Case) -> Result<(), String> {
    let default = verdict(&case.file, &Limits::DEFAULT);
    let strict = verdict(&case.file, &Limits::STRICT);
    let right = match case.refused {
        Refused::Never => (default, strict) == (None, None),
        Refused::ByStrict(kind) => (default, strict) == (None, Some(kind)),
        // The strict rules can find another error first.
        Refused::Always(kind) => default == Some(kind) && strict.is_some(),
    };
    if right {
        return Ok(());
    }
    let describe = |verdict: Option<&str>| verdict.map_or("accepted".to_owned(), str::to_owned);
    Err(format!("by default {}, by the strict rules {}", describe(default), describe(strict)))
}

/// Returns the kind of error for a file, or `None` if it is accepted.
fn verdict(file: &[u8], limits: &Limits) -> Option<&'static str> {
    SafeTensors::deserialize_with(file, limits).err().map(|error| error.kind().name())
}

#[derive(Debug, Default)]
struct Tally {
    good: usize,
    bad: usize,
}

impl Tally {
    /// Counts an outcome and prints its line.
    fn record(
        &mut self,
        out: &mut Printer,
        terminal: &Terminal,
        what: &str,
        expected: &str,
        outcome: Result<(), String>,
    ) -> io::Result<()> {
        match outcome {
            Ok(()) => {
                self.good += 1;
                writeln!(out, "{}    {what}: {expected}", terminal.paint(Style::Good, "ok"))
            }
            Err(found) => {
                self.bad += 1;
                let wrong = terminal.paint(Style::Bad, "WRONG");
                writeln!(out, "{wrong} {what}: expected {expected}, found {found}")
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_wrong_verdict_on_a_header() {
        let valid = headers::cases().into_iter().next().unwrap();
        assert_eq!(valid.refused, Refused::Never);
        let wrong = Case { refused: Refused::Always("hole"), ..valid.clone() };
        assert_eq!(
            judge(&wrong),
            Err("by default accepted, by the strict rules accepted".to_owned())
        );
        let wrong = Case { refused: Refused::ByStrict("padding"), ..valid };
        assert!(judge(&wrong).is_err());
        let another = Case { what: "", file: Vec::new(), refused: Refused::Always("hole") };
        assert_eq!(
            judge(&another),
            Err("by default file_too_short, by the strict rules file_too_short".to_owned())
        );
    }

    #[test]
    fn covers_every_rule() {
        let cases = headers::cases();
        let has_case = |kind: &str| {
            cases.iter().any(|case| match case.refused {
                Refused::Never => false,
                Refused::ByStrict(expected) | Refused::Always(expected) => expected == kind,
            })
        };
        // All rules for files, except those that apply only with the caller's own limits.
        for kind in [
            "file_too_short",
            "foreign",
            "header_empty",
            "header_too_large",
            "header_truncated",
            "invalid_utf8",
            "header_start",
            "leading_whitespace",
            "nul_padding",
            "padding",
            "after_header",
            "unexpected_end",
            "unexpected_byte",
            "control_character",
            "invalid_escape",
            "lone_surrogate",
            "invalid_number",
            "number_range",
            "too_deep",
            "wrong_type",
            "missing_key",
            "duplicate_key",
            "unknown_key",
            "unknown_dtype",
            "not_natural",
            "integer_overflow",
            "integer_too_large",
            "rank_too_large",
            "shape_overflow",
            "partial_byte",
            "offset_count",
            "offsets_reversed",
            "size_mismatch",
            "duplicate_name",
            "duplicate_metadata",
            "duplicate_metadata_key",
            "null_metadata",
            "hole",
            "overlap",
            "data_truncated",
            "data_trailing",
        ] {
            assert!(has_case(kind), "{kind}");
        }
    }

    #[test]
    fn reports_a_wrong_verdict_on_an_index() {
        for case in indexes::cases() {
            assert_eq!(case.check(), Ok(()), "{}", case.what);
            let other = match case.refused {
                Refused::Never => Refused::Always("shard_name"),
                _ => Refused::Never,
            };
            assert!(indexes::Case { refused: other, ..case.clone() }.check().is_err());
        }
    }

    #[test]
    fn all_plans_have_the_expected_outcome() {
        assert!(plans::outcomes().all(|(_, _, outcome)| outcome == Ok(())));
    }

    #[test]
    fn reports_a_wrong_number() {
        for sample in numbers::SAMPLES {
            assert_eq!(sample.check(), Ok(()), "{}", sample.what());
            let wrong = numbers::Sample { bits: sample.bits ^ 1, ..*sample };
            assert!(wrong.check().is_err() || f32::from_bits(sample.bits).is_nan());
        }
    }
}
