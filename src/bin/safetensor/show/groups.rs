//! Tensors in groups by name. A group's name ends at the number of a layer:
//! `model.layers.0.mlp.up.weight` is in the group `model.layers.0`. A name without a number is in
//! the group named by all but its last part.

use std::borrow::Cow;
use std::collections::HashMap;

use safetensors_zero::Text;

/// A group of tensors, with their total size.
#[derive(Debug, Clone)]
pub(crate) struct Group<'m> {
    pub(crate) name: Cow<'m, str>,
    pub(crate) tensors: u64,
    pub(crate) bytes: u64,
}

/// Groups in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct Groups<'m> {
    groups: Vec<Group<'m>>,
    places: HashMap<Cow<'m, str>, usize>,
    /// The index of the last tensor's group, which is nearly always the next tensor's too.
    last: usize,
}

impl<'m> Groups<'m> {
    pub(crate) fn add(&mut self, name: Text<'m>, bytes: u64) {
        let name = group_of(name);
        let place = match self.groups.get(self.last) {
            Some(group) if group.name == name => self.last,
            _ => self.place_of(name),
        };
        self.last = place;
        if let Some(group) = self.groups.get_mut(place) {
            group.tensors += 1;
            group.bytes = group.bytes.saturating_add(bytes);
        }
    }

    fn place_of(&mut self, name: Cow<'m, str>) -> usize {
        let next = self.groups.len();
        let place = *self.places.entry(name.clone()).or_insert(next);
        if place == next {
            self.groups.push(Group { name, tensors: 0, bytes: 0 });
        }
        place
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Returns the largest groups, in order of appearance, and the sum of all others.
    pub(crate) fn largest(&self, most: usize) -> (Vec<&Group<'m>>, Group<'m>) {
        let mut by_size: Vec<(usize, &Group<'m>)> = self.groups.iter().enumerate().collect();
        by_size.sort_by_key(|(at, group)| (std::cmp::Reverse(group.bytes), *at));
        let others = by_size.split_off(most.min(by_size.len()));
        by_size.sort_by_key(|(at, _)| *at);
        let mut rest = Group { name: Cow::Borrowed(""), tensors: 0, bytes: 0 };
        for (_, group) in others {
            rest.tensors += group.tensors;
            rest.bytes = rest.bytes.saturating_add(group.bytes);
        }
        (by_size.into_iter().map(|(_, group)| group).collect(), rest)
    }
}

fn group_of(name: Text<'_>) -> Cow<'_, str> {
    match name.to_cow() {
        Cow::Borrowed(name) => Cow::Borrowed(group(name)),
        Cow::Owned(name) => Cow::Owned(group(&name).to_owned()),
    }
}

fn group(name: &str) -> &str {
    let mut begin = 0;
    for part in name.split('.') {
        let end = begin + part.len();
        if begin > 0 && !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            return name.get(..end).unwrap_or(name);
        }
        begin = end + 1;
    }
    name.rsplit_once('.').map_or(name, |(group, _)| group)
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    #[test]
    fn groups_end_at_the_layer_number() {
        for (name, expected) in [
            ("model.layers.0.mlp.up.weight", "model.layers.0"),
            ("model.layers.17", "model.layers.17"),
            ("model.layers.0.experts.3.w1", "model.layers.0"),
            ("model.embed_tokens.weight", "model.embed_tokens"),
            ("lm_head", "lm_head"),
            ("0.weight", "0"),
            ("a..b", "a."),
            ("", ""),
            (".", ""),
        ] {
            assert_eq!(group(name), expected, "{name}");
        }
    }
}
