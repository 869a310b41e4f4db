//! Name patterns: `*` matches any characters, `?` matches one.

/// Checks whether the pattern matches the whole name. Takes time proportional to the product of
/// both lengths, and allocates nothing.
pub(crate) fn matches(pattern: &[char], name: impl Iterator<Item = char> + Clone) -> bool {
    let mut rest = name;
    let mut at = 0;
    // Where to resume on a mismatch after the last `*`, which then matches one more character.
    let mut retry = None;
    loop {
        let before = rest.clone();
        match (pattern.get(at), rest.next()) {
            (Some('*'), _) => {
                at += 1;
                rest = before.clone();
                retry = Some((at, before));
                continue;
            }
            (Some('?'), Some(_)) => {
                at += 1;
                continue;
            }
            (Some(wanted), Some(found)) if *wanted == found => {
                at += 1;
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        let Some((after, mut from)) = retry else { return false };
        if from.next().is_none() {
            return false;
        }
        (at, rest) = (after, from.clone());
        retry = Some((after, from));
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    fn is_match(pattern: &str, name: &str) -> bool {
        matches(&pattern.chars().collect::<Vec<_>>(), name.chars())
    }

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name) in [
            ("", ""),
            ("*", ""),
            ("*", "a.b"),
            ("a*", "a"),
            ("*.weight", "model.norm.weight"),
            ("*.norm.*", "model.norm.weight"),
            ("model.layers.?.*", "model.layers.7.mlp"),
            ("*a*b*c", "xaybzbc"),
            ("?", "é"),
        ] {
            assert!(is_match(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("", "a"),
            ("?", ""),
            ("a", "ab"),
            ("*.weight", "weight"),
            ("model.layers.?.*", "model.layers.17.mlp"),
            ("*a*b*c", "xaybzb"),
        ] {
            assert!(!is_match(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_are_fast() {
        assert!(!is_match(&"*a".repeat(1_000), &"a".repeat(999)));
        assert!(is_match(&"*a".repeat(1_000), &"a".repeat(1_000)));
    }
}
