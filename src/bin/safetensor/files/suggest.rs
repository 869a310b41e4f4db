//! Suggests an existing name in place of a mistyped one.

use safetensors_zero::Text;

/// The longest name to compare, in characters. Longer names are hardly ever typed by hand.
const LONGEST: usize = 200;

/// Returns the name with the smallest edit distance to the one asked for, if that is small.
pub(crate) fn nearest<'m>(asked: &str, names: impl Iterator<Item = Text<'m>>) -> Option<Text<'m>> {
    let asked: Vec<char> = asked.chars().take(LONGEST + 1).collect();
    if asked.len() > LONGEST {
        return None;
    }
    let mut best = None;
    let mut fewest = asked.len() / 3 + 1;
    let mut row = Vec::new();
    for name in names {
        let len = name.raw().len();
        // Too long even if every character is an escape of six bytes.
        if len > 6 * LONGEST {
            continue;
        }
        let found = distance(&asked, name, &mut row, fewest);
        if found < fewest {
            (best, fewest) = (Some(name), found);
        }
    }
    best
}

/// Returns the Levenshtein distance: the number of characters to insert, remove or change. Stops at
/// `enough`.
fn distance(asked: &[char], name: Text<'_>, row: &mut Vec<usize>, enough: usize) -> usize {
    row.clear();
    row.extend(0..=asked.len());
    let mut count = 0;
    for (at, c) in name.chars().enumerate() {
        count = at + 1;
        let mut corner = at;
        let mut left = count;
        let mut least = left;
        for (above, a) in row.iter_mut().zip(std::iter::once(None).chain(asked.iter().map(Some))) {
            let Some(a) = a else {
                *above = count;
                continue;
            };
            let value = (corner + usize::from(*a != c)).min(left + 1).min(*above + 1);
            corner = *above;
            *above = value;
            left = value;
            least = least.min(value);
        }
        if least >= enough || count > asked.len() + enough {
            return enough;
        }
    }
    row.last().copied().unwrap_or(count)
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;
    use safetensors_zero::{SafeTensors, TensorSlot};

    fn nearest_in(asked: &str, names: &[&str]) -> Option<String> {
        let entries: Vec<String> = names
            .iter()
            .map(|n| format!(r#""{n}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#))
            .collect();
        let header = format!("{{{}}}", entries.join(","));
        let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
        let mut slots = [TensorSlot::EMPTY; 8];
        let tensors = SafeTensors::parse(&file, &mut slots).unwrap();
        nearest(asked, tensors.names()).map(|name| name.to_string())
    }

    #[test]
    fn finds_the_nearest_name_unless_it_is_far() {
        let names = ["model.embed.weight", "model.norm.weight", "lm_head.weight"];
        let found = |asked| nearest_in(asked, &names);
        assert_eq!(found("model.nrom.weight").as_deref(), Some("model.norm.weight"));
        assert_eq!(found("lm_head.weights").as_deref(), Some("lm_head.weight"));
        assert_eq!(found("model.embd.weight").as_deref(), Some("model.embed.weight"));
        assert_eq!(found("something else entirely"), None);
        assert_eq!(found(""), None);
        assert_eq!(nearest_in("kitten", &["sitting", "kit"]).as_deref(), None);
        assert_eq!(nearest_in("kitten", &["sittin"]).as_deref(), Some("sittin"));
        assert_eq!(nearest_in("kitten", &["kitte"]).as_deref(), Some("kitte"));
    }

    #[test]
    fn computes_the_levenshtein_distance() {
        let chars: Vec<char> = "kitten".chars().collect();
        let header = r#"{"sitting":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#;
        let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
        let mut slots = [TensorSlot::EMPTY; 1];
        let tensors = SafeTensors::parse(&file, &mut slots).unwrap();
        let name = tensors.names().next().unwrap();
        assert_eq!(distance(&chars, name, &mut Vec::new(), 9), 3);
        assert_eq!(distance(&chars, name, &mut Vec::new(), 2), 2);
    }
}
